# size: 1400 460
stats data using (note(strcol('series'))) nooutput
gates = 0
stats data using (strcol('panel') eq 'gate' ? (gates = 1, 0) : 0) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.075,0.69,0.17,0.88 spacing 0.065
set ylabel 'loss above the best (nats, square-root scale)'
set yrange [0:*]
unset key
set xtics 20
set ytics ('0' 0, '0.001' sqrt(0.001), '0.005' sqrt(0.005), '0.02' sqrt(0.02), '0.05' sqrt(0.05), '0.1' sqrt(0.1), '0.2' sqrt(0.2), '0.5' sqrt(0.5), '1' 1)
set xlabel 'experts of inactive parameters, rho (%)'
plot for [i=1:words(names)] data using (at('rho', word(names, i), column('x'))):(sqrt(column('y'))) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle
unset label 9
set ytics autofreq
set yrange [-0.0005:*]
set xtics autofreq
set ylabel 'the same (nats)'
set xlabel 'layer of the one module (from 1)'
plot for [i=1:words(names)] data using (at('layer', word(names, i), column('x'))):(column('y')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle
set ylabel 'saturated gates (%)'
set xlabel 'cosine of key and state'
set yrange [0:100]
set xrange [0:1]
set key at screen 0.995, screen 0.86 right top samplen 2 font ',10'
set label 8 (gates ? '' : 'no gates in this database') at graph 0.5, graph 0.5 center textcolor rgb '#666666'
plot for [i=1:words(names)] data using (at('gate', word(names, i), column('x'))):(column('y')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle, \
    for [i=1:words(names)] keyentry with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset multiplot
