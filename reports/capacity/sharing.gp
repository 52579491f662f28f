# size: 1240 460
stats data using (note(strcol('series'))) nooutput
timed = 0
stats data using (column('us') > 0 ? (timed = 1, 0) : 0) nooutput
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.06,0.80,0.17,0.88 spacing 0.07
set logscale x 2
set xtics 2, 2
set xlabel 'ranks that share the tables'
unset key
set logscale y
set format y '10^{%L}'
set ylabel 'received per rank and layer (MB)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('ranks'))):(column('mb')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle
unset label 9
set ylabel 'exchange of a layer (µs)'
set xrange [2:64]
set yrange [1:*]
set label 8 (timed ? '' : 'no link was given') at graph 0.5, graph 0.5 center textcolor rgb '#666666'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('ranks'))):(column('us')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle, timed ? NaN : 1 linecolor rgb '#ffffff' notitle
unset label 8
unset logscale y
set format y '%g'
set yrange [0.95:*]
set ylabel 'fullest shard / mean (no unit)'
set key outside right top
plot data using (only('series', word(names, 1), column('ranks'))):(column('largest_over_mean')) with linespoints linecolor rgb '#000000' linewidth 1.5 pointtype 6 notitle, \
    for [i=1:words(names)] keyentry with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset multiplot
