# size: 1000 460
stats data using (strcol('part') eq 'paper' ? NaN : note(strcol('series'))) nooutput
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
set xlabel 'layer, from 0'
set ylabel 'loss less the mean over layers (nats)'
set xtics 1
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.09,0.98,0.17,0.85 spacing 0.1
set title 'here: mean, 95 % interval, every seed' font ',11'
set offsets 0.3, 0.3, 0, 0
set key top left inside
plot for [i=1:words(names)] data using (part('seed', word(names, i), column('x'))):(column('y')) with points pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('mean', word(names, i), column('x'))):(column('y')):(column('lo')):(column('hi')) with yerrorbars \
        pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i)
unset label 9
set title 'the paper: one run each, read from its figure' font ',11'
plot data using (strcol('part') eq 'paper' ? column('x') : NaN):(column('y')) with linespoints pointtype 3 linecolor rgb hue(4) title 'paper (published)'
unset multiplot
