# size: 980 480
stats data using (note(strcol('series'))) nooutput
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.08,0.72,0.17,0.88 spacing 0.09
set logscale xy
set format x '10^{%L}'; set format y '10^{%L}'
set xlabel 'streams of a decode step'
unset key
set ylabel 'rows read per layer (rows)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('streams'))):(column('rows')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle
unset label 9
set key at screen 0.735, screen 0.88 left top
set ylabel 'bytes read per layer (MB)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('streams'))):(column('mb')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset multiplot
