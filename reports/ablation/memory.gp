# size: 1000 500
stats data using (strcol('part') eq 'paper' ? NaN : note(strcol('series'))) nooutput
ours = names
names = ''
stats data using (strcol('part') eq 'paper' ? note(strcol('series')) : NaN) nooutput
paper = names
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
apart(i, x) = x * 1.08**(i - 1) # series at the same size, side by side
set logscale x
set format x '10^{%T}'
set xlabel 'parameters of all tables'
set ylabel 'loss less that of pure MoE (nats)'
set key at graph 0.5, graph -0.17 center top vertical maxcols 1
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.09,0.98,0.24,0.86 spacing 0.1
set title 'here: mean, 95 % interval, every seed' font ',11'
plot for [i=1:words(ours)] data using (part('seed', word(ours, i), 1.04 * apart(i, column('x')))):(column('y')) with points pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
    for [i=1:words(ours)] data using (part('mean', word(ours, i), apart(i, column('x')))):(column('y')):(column('lo')):(column('hi')) with yerrorbars \
        pointtype mark(word(ours, i), i) linecolor rgb hue(i) notitle, \
    for [i=1:words(ours)] data using (part('mean', word(ours, i), apart(i, column('x')))):(column('y')) with points \
        pointtype mark(word(ours, i), i) linecolor rgb hue(i) title word(ours, i), \
    for [i=1:words(ours)] data using (part('seed', word(ours, i), column('collapsed') > 0 ? 1.04 * apart(i, column('x')) : NaN)):(column('y')) with points \
        pointtype 2 linecolor rgb '#000000' notitle
unset label 9
set xlabel 'parameters of all tables (a slot is 1280)'
set title 'the paper: one run each, read from its figure' font ',11'
plot for [i=1:words(paper)] data using (part('paper', word(paper, i), column('x'))):(column('y')) with linespoints pointtype 3 linecolor rgb hue(i + 3) title word(paper, i)
unset multiplot
