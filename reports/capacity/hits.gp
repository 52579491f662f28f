# size: 1160 470
stats data using (note(strcol('panel'))) nooutput
panels = names
names = ''
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
n = words(panels)
unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.065,0.8,0.17,0.83 spacing 0.03
set logscale x
set format x '10^{%L}'
set yrange [0:100]
set xlabel 'cache for both layers (bytes)'
set ylabel 'look-ups answered (%)'
unset key
set style fill transparent solid 0.15 noborder
do for [p=1:n] {
    set title word(panels, p) font ',12' noenhanced
    if (p > 1) { set ylabel ''; set format y ''; unset label 9 }
    if (p == n) { set key at screen 0.81, screen 0.83 left top }
    plot data using (at(word(panels, p), word(names, 1), column('cache_bytes'))):(column('lo')):(column('hi')) with filledcurves linecolor rgb hue(1) notitle, \
        for [i=1:words(names)] data using (at(word(panels, p), word(names, i), column('cache_bytes'))):(column('hit_percent')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i), \
        data using (at(word(panels, p), word(names, 1), column('cache_bytes'))):(column('ceiling')) with lines dashtype 3 linecolor rgb '#444444' title 'all but first uses'
}
unset multiplot
