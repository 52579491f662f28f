# size: 1100 480
stats data using (note(strcol('panel'))) nooutput
panels = names
names = ''
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
n = words(panels)
stats data using (column('front_rows')) nooutput name 'X'
unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.07,0.79,0.17,0.83 spacing 0.04
set logscale x 2
set format x '2^{%L}'
set xtics X_min, 4
set yrange [0:100]
set xlabel 'front (rows)'
set ylabel 'look-ups answered (%)'
set offsets graph 0.03, graph 0.03, 0, 0
unset key
do for [p=1:n] {
    set title word(panels, p) font ',12' noenhanced
    if (p > 1) { set ylabel ''; set format y ''; unset label 9 }
    if (p == n) { set key at screen 0.8, screen 0.83 left }
    plot for [i=1:words(names)] data using (at(word(panels, p), word(names, i), column('front_rows'))):(column('y')) \
        with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
}
unset multiplot
