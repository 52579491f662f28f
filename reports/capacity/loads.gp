# size: 1240 500
stats data using (note(strcol('series'))) nooutput
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.063,0.695,0.17,0.88 spacing 0.072
set logscale xy
set xrange [1000:1e6]
set format x '10^{%L}'; set format y '10^{%L}'
set xlabel 'tokens/s of a host'
unset key
set ylabel 'GB/s'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('host_rate'))):(column('gbps')) with linespoints linecolor rgb hue(i) linewidth 1.3 pointtype mark(word(names, i), i) notitle
unset label 9
set ylabel 'M requests/s'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('host_rate'))):(column('m_per_s')) with linespoints linecolor rgb hue(i) linewidth 1.3 pointtype mark(word(names, i), i) notitle
set ylabel 'of what the host has of the tier (%)'
set arrow 1 from graph 0, first 100 to graph 1, first 100 nohead dashtype 3 linewidth 1.4 linecolor rgb '#000000'
set yrange [*:1000<*]
set label 1 'all it has' at graph 0.03, first 190 font ',9' textcolor rgb '#444444'
set key outside right top font ',10'
set xrange [1000:1e6]
plot for [i=1:words(names)] data using (only('series', word(names, i), column('host_rate'))):(column('used_percent')) with linespoints linecolor rgb hue(i) linewidth 1.3 pointtype mark(word(names, i), i) title word(names, i)
unset multiplot
