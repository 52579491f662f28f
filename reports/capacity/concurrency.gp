# size: 1060 460
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.8,0.17,0.88 spacing 0.07
set logscale x
set format x '10^{%L}'
set yrange [0:100]
set ylabel 'look-ups answered (%)'
unset key
set xlabel 'streams side by side'
plot for [i=1:words(names)] data using (at('streams', word(names, i), column('x'))):(column('hit_percent')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle
unset label 9
set ylabel ''
set xlabel 'length of one stream (tokens)'
set key outside right top
plot for [i=1:words(names)] data using (at('length', word(names, i), column('x'))):(column('hit_percent')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset multiplot
