# size: 1240 460
stats data using (note(strcol('series'))) nooutput
gates = 0
stats data using (strcol('panel') eq 'gate' ? (gates = 1, 0) : 0) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.07,0.77,0.17,0.88 spacing 0.06
set ylabel 'loss above the best (nats)'
set yrange [-0.0005:*]
unset key
set xlabel 'experts of inactive parameters, rho (%)'
plot for [i=1:words(names)] data using (at('rho', word(names, i), column('x'))):(column('y')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle
unset label 9
set ylabel ''
set xlabel 'layer of the one module (from 1)'
plot for [i=1:words(names)] data using (at('layer', word(names, i), column('x'))):(column('y')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle
set ylabel 'saturated gates (%)'
set xlabel 'cosine of key and state'
set yrange [0:100]
set xrange [0:1]
set key outside right top
set label 8 (gates ? '' : 'no gates in this database') at graph 0.5, graph 0.5 center textcolor rgb '#666666'
plot for [i=1:words(names)] data using (at('gate', word(names, i), column('x'))):(column('y')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle, \
    for [i=1:words(names)] keyentry with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset multiplot
