# size: 1150 480
stats data using (note(strcol('series'))) nooutput
part(a, name, value) = strcol('axis') eq a && strcol('series') eq name ? value : NaN
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.07,0.84,0.17,0.89 spacing 0.085
unset key
set logscale x
set xlabel 'bias step'
set ylabel 'loss less the mean over the axis (nats)'
plot for [i=1:words(names)] data using (part('bias_step', word(names, i), column('x'))):(column('difference')) with linespoints \
    pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle
unset label 9
set ylabel 'busiest expert over the mean load'
plot for [i=1:words(names)] data using (part('bias_step', word(names, i), column('x'))):(column('load_max')) with linespoints \
    pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle
set key outside right top
set xlabel 'learning rate'
set ylabel 'loss less the mean over the axis (nats)'
plot for [i=1:words(names)] data using (part('lr', word(names, i), column('x'))):(column('difference')) with linespoints \
    pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i)
unset multiplot
