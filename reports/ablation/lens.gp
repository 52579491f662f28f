# size: 1000 460
stats data using (strcol('part') eq 'paper' ? NaN : note(strcol('series'))) nooutput
ours = names
names = ''
stats data using (strcol('part') eq 'paper' ? note(strcol('series')) : NaN) nooutput
paper = names
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
set xlabel 'layer, from 0 (the last: output)'
set ylabel 'KL divergence (nats)'
set key top right inside
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.98,0.17,0.85 spacing 0.09
set title 'here: mean, 95 % interval, every seed' font ',11'
set xtics 1
plot for [i=1:words(ours)] data using (part('seed', word(ours, i), column('x'))):(column('kl')) with points pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
    for [i=1:words(ours)] data using (part('mean', word(ours, i), column('x'))):(column('kl')):(column('lo')):(column('hi')) with yerrorbars \
        pointtype mark(word(ours, i), i) linecolor rgb hue(i) notitle, \
    for [i=1:words(ours)] data using (part('mean', word(ours, i), column('x'))):(column('kl')) with linespoints \
        pointtype mark(word(ours, i), i) linecolor rgb hue(i) title word(ours, i)
unset label 9
set xtics auto
set title 'the paper: one model each, read from its figure' font ',11'
plot for [i=1:words(paper)] data using (part('paper', word(paper, i), column('x'))):(column('kl')) with linespoints pointtype 3 pointsize 0.6 linecolor rgb hue(i + 3) title word(paper, i)
unset multiplot
