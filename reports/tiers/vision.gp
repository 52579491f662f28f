# size: 960 460
stats data using (note(strcol('panel'))) nooutput
panels = names
names = ''
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
n = words(panels)
unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.08,0.8,0.17,0.83 spacing 0.05
set logscale x 2
set xlabel 'prompt (tokens)'
set ylabel 'hidden share (no unit)'
set yrange [-0.04:1.06]
set offsets graph 0.05, graph 0.05, 0, 0
unset key
do for [p=1:n] {
    set title word(panels, p) font ',12' noenhanced
    if (p > 1) { set ylabel ''; unset label 9 }
    if (p == n) { set key at screen 0.81, screen 0.83 left }
    plot for [i=1:words(names)] data using (at(word(panels, p), word(names, i), column('tokens'))):(column('hidden')):(column('lo')):(column('hi')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle, \
        for [i=1:words(names)] keyentry with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
}
unset multiplot
