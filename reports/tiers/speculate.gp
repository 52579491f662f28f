# size: 1260 480
dash(name) = strstrt(name, 'ahead') ? 2 : 1
stats data using (note(strcol('panel'))) nooutput
panels = names
names = ''
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
apart(i) = 0.7 * (i - (words(names) + 1) / 2.0)
n = words(panels)
unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.05,0.74,0.17,0.83 spacing 0.05
set xlabel 'accepted drafts (%)'
set yrange [0:*]
set offsets graph 0.05, graph 0.05, graph 0.08, 0
unset key
do for [p=1:n] {
    set title word(panels, p) font ',12' noenhanced
    if (p > 1) { unset label 9 }
    if (p == n) { set key at screen 0.75, screen 0.83 left }
    set xtics 10
    plot for [i=1:words(names)] data using (at(word(panels, p), word(names, i), 100 * column('acceptance') + apart(i))):(column('y')):(column('lo')):(column('hi')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.5 dashtype dash(word(names, i)) pointtype mark(word(names, i), i) notitle, \
        for [i=1:words(names)] keyentry with linespoints linecolor rgb hue(i) linewidth 1.5 dashtype dash(word(names, i)) pointtype mark(word(names, i), i) title word(names, i)
}
unset multiplot
