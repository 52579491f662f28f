# size: 1160 480
stats data using (note(strcol('panel'))) nooutput
panels = names
names = ''
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
n = words(panels)
dash(name) = strstrt(name, 'misses') ? 2 : 1
unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.065,0.7,0.17,0.83 spacing 0.05
set logscale xy
set format x '10^{%L}'; set format y '10^{%L}'
set xlabel 'tokens/s wanted (tokens/s)'
set ylabel 'hosts (hosts)'
set xrange [1000:1.1e7]
unset key
do for [p=1:n] {
    set title word(panels, p) font ',10' noenhanced
    if (p > 1) { set ylabel ''; unset label 9 }
    if (p == n) { set key outside right top }
    plot for [i=1:words(names)] data using (at(word(panels, p), word(names, i), column('target'))):(column('hosts')) with steps linecolor rgb hue(i) linewidth 2 dashtype dash(word(names, i)) notitle, \
        for [i=1:words(names)] data using (at(word(panels, p), word(names, i), column('target'))):(column('hosts')) with points linecolor rgb hue(i) pointsize 0.6 pointtype mark(word(names, i), i) notitle, \
        for [i=1:words(names)] keyentry with linespoints linecolor rgb hue(i) linewidth 2 dashtype dash(word(names, i)) pointtype mark(word(names, i), i) title word(names, i)
}
unset multiplot
