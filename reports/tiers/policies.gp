# size: 1100 480
stats data using (note(strcol('panel'))) nooutput
panels = names
names = ''
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
n = words(panels)
stats data using (column('cache_rows')) nooutput name 'X'
unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.07,0.8,0.17,0.83 spacing 0.04
set logscale x 2
set format x '2^{%L}'
set xtics X_min, 16
set yrange [0:100]
set xlabel 'capacity (rows)'
set ylabel 'look-ups answered (%)'
set offsets graph 0.03, graph 0.03, 0, 0
unset key
do for [p=1:n] {
    set title word(panels, p) font ',12' noenhanced
    if (p > 1) { set ylabel ''; set format y ''; unset label 9 }
    if (p == n) { set key at screen 0.81, screen 0.83 left }
    plot for [i=1:words(names)] data using (at(word(panels, p), word(names, i), column('cache_rows'))):(column('hit_percent')) \
        with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i), \
        data using (at(word(panels, p), word(names, 1), column('cache_rows'))):(column('most_percent')) with lines linecolor rgb '#444444' dashtype 3 linewidth 1.5 \
        title 'asked for before'
}
unset multiplot
