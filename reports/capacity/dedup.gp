# size: 1060 460
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.8,0.17,0.83 spacing 0.05
set logscale x 2
set format x '2^{%L}'
set xtics 16, 4
set yrange [0:1.03]
set xlabel 'tokens of a step (tokens)'
set ylabel 'rows left (share)'
unset key
set title 'prefill: tokens in a row' font ',12'
plot for [i=1:words(names)] data using (at('tokens in a row', word(names, i), column('tokens'))):(column('share')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle
unset label 9
set ylabel ''
set format y ''
set title 'decode: a token of each stream' font ',12'
set key outside right top
plot for [i=1:words(names)] data using (at('a token of each stream', word(names, i), column('tokens'))):(column('share')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset multiplot
