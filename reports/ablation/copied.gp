# size: 1100 520
stats data using (note(strcol('series'))) nooutput
part(p, what, name, value) = strcol('part') eq p && strcol('what') eq what && strcol('series') eq name ? value : NaN
set xrange [0:1.03]
set xlabel 'rho'
set ylabel 'loss less that of pure MoE (nats per token)'
set key at graph 0.5, graph -0.17 center top vertical maxcols 1
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.08,0.98,0.24,0.87 spacing 0.1
do for [what in "'not copied' copied"] {
    # As in rho.gp: the axis is that of the runs; `stats` leaves out what lies beyond one that is set.
    set autoscale y
    stats data using (strcol('what') eq what ? column('y') : NaN) name 'RUNS' nooutput
    edge = 0.1 * (RUNS_max - RUNS_min) + 0.001
    set yrange [RUNS_min - edge:RUNS_max + edge]
    set title what . ': mean, 95 % interval (to the edge), every seed' font ',11'
    plot for [i=1:words(names)] data using (part('seed', what, word(names, i), column('x') + 0.008)):(column('y')) with points \
            pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
        for [i=1:words(names)] data using (part('mean', what, word(names, i), column('x'))):(column('y')):(column('lo')):(column('hi')) with yerrorbars \
            pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle, \
        for [i=1:words(names)] data using (part('mean', what, word(names, i), column('x'))):(column('y')) with linespoints \
            pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i)
    unset label 9
}
unset multiplot
