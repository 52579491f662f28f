# size: 1200 480
stats data using (note(strcol('panel'))) nooutput
panels = names
names = ''
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
n = words(panels)
unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.06,0.89,0.17,0.83 spacing 0.06
set logscale x 2
set logscale y 10
set format y '%.0s%c'
set ytics (1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8)
set xtics 1, 4
set xlabel 'reads under way (depth or threads)'
set ylabel 'rows a second (rows/s)'
set offsets graph 0.03, graph 0.03, 0, 0
unset key
do for [p=1:n] {
    set title word(panels, p) font (n > 3 ? ',9' : ',12') noenhanced
    set yrange [*:*]
    stats data using (strcol('panel') eq word(panels, p) ? column('rows_per_s') : NaN) nooutput name 'Y'
    set yrange [Y_min / 1.5:1.5 * Y_max] # a bar may leave it
    if (p > 1) { set ylabel ''; unset label 9 }
    if (p == n) { set key at screen 0.9, screen 0.83 left }
    plot for [i=1:words(names)] data using (at(word(panels, p), word(names, i), column('under_way'))):(column('rows_per_s')):(column('lo')):(column('hi')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle, \
        for [i=1:words(names)] keyentry with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
}
unset multiplot
