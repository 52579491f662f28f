# size: 1100 560
stats data using (strcol('part') eq 'paper' ? NaN : note(strcol('series'))) nooutput
ours = names
names = ''
stats data using (strcol('part') eq 'paper' ? note(strcol('series')) : NaN) nooutput
paper = names
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
bad(name, value) = part('seed', name, column('collapsed') > 0 ? value : NaN)
set xrange [0:1.03]
set xlabel 'rho'
set ylabel 'loss less that of pure MoE (nats per token)'
set key at graph 0.5, graph -0.17 center top vertical maxcols 1
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.08,0.98,0.24,0.88 spacing 0.1
# Two seeds have an interval of many times what they differ by: the axis is that of the runs.
stats data using (strcol('part') eq 'paper' ? NaN : column('y')) name 'RUNS' nooutput
edge = 0.1 * (RUNS_max - RUNS_min) + 0.001
set yrange [RUNS_min - edge:RUNS_max + edge]
set title 'here: mean, 95 % interval (to the edge), every seed' font ',11'
plot for [i=1:words(ours)] data using (part('seed', word(ours, i), column('x') + 0.008)):(column('y')) with points \
        pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
    for [i=1:words(ours)] data using (part('mean', word(ours, i), column('x'))):(column('y')):(column('lo')):(column('hi')) with yerrorbars \
        pointtype mark(word(ours, i), i) linecolor rgb hue(i) notitle, \
    for [i=1:words(ours)] data using (part('mean', word(ours, i), column('x'))):(column('y')) with linespoints \
        pointtype mark(word(ours, i), i) linecolor rgb hue(i) title word(ours, i), \
    for [i=1:words(ours)] data using (bad(word(ours, i), column('x') + 0.008)):(column('y')) with points pointtype 2 pointsize 1.4 \
        linecolor rgb '#000000' notitle
unset label 9
set autoscale y
set title 'the paper: one run each, read from its figure' font ',11'
plot for [i=1:words(paper)] data using (part('paper', word(paper, i), column('x'))):(column('y')) with linespoints \
    pointtype mark(word(paper, i), i) linecolor rgb hue(i + 3) title word(paper, i)
unset multiplot
