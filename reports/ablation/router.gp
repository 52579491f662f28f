# size: 1150 540
stats data using (note(strcol('series'))) nooutput
part(p, a, name, value) = strcol('part') eq p && strcol('axis') eq a && strcol('series') eq name ? value : NaN
bad(a, name, value) = part('seed', a, name, column('collapsed') > 0 ? value : NaN)
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.09,0.98,0.26,0.89 spacing 0.1
set logscale x
set format x '%g'
set key at graph 0.5, graph -0.17 center top vertical maxcols 1
set xlabel 'bias step'
set ylabel 'loss less the mean over the axis (nats)'
plot for [i=1:words(names)] data using (part('seed', 'bias_step', word(names, i), column('x'))):(column('difference')) with points \
        pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('mean', 'bias_step', word(names, i), column('x'))):(column('difference')) with linespoints \
        pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i), \
    for [i=1:words(names)] data using (bad('bias_step', word(names, i), column('x'))):(column('difference')) with points pointtype 2 \
        pointsize 1.4 linecolor rgb '#000000' notitle
unset label 9
unset key
set ylabel 'busiest expert over the mean load'
plot for [i=1:words(names)] data using (part('seed', 'bias_step', word(names, i), column('x'))):(column('load_max')) with points \
        pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('mean', 'bias_step', word(names, i), column('x'))):(column('load_max')) with linespoints \
        pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle
set xlabel 'learning rate'
set ylabel 'loss less the mean over the axis (nats)'
plot for [i=1:words(names)] data using (part('seed', 'lr', word(names, i), column('x'))):(column('difference')) with points \
        pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('mean', 'lr', word(names, i), column('x'))):(column('difference')) with linespoints \
        pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle
unset multiplot
