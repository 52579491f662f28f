# size: 1000 500
stats data using (note(strcol('series'))) nooutput
set logscale xy
set format x '10^{%L}'; set format y '10^{%L}'
set xlabel 'requests under way (requests)'
set ylabel 'rate (M requests/s)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('outstanding'))):(column('m_per_s')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i), \
    data using (column('outstanding') == 1 ? column('enough') : NaN):(column('enough_m_per_s')) with points pointtype 6 pointsize 2.6 linecolor rgb '#444444' title '90 % of the rate'
