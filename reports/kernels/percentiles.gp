# size: 960 560
stats data using (note(strcol('series'))) nooutput
stats data using (column('tokens')) nooutput name 'X'
set logscale x 2
set logscale y 10
set xtics 1, 2
set format x '%.0f'
set format y '%g'
set xrange [X_min / 1.25:X_max * 1.25]
set xlabel 'tokens in the batch (tokens)'
set ylabel 'wall time of a call (µs)'
x(i) = column('tokens') * (1 + 0.025 * (i - 3))
plot for [i=1:words(names)] data using (only('series', word(names, i), x(i))):(column('p50')):(column('p50')):(column('p99')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.6 pointtype mark(word(names, i), i) title word(names, i), \
    for [i=1:words(names)] data using (only('series', word(names, i), x(i))):(column('p90')) \
        with points linecolor rgb hue(i) pointtype 2 pointsize 0.6 notitle, \
    keyentry with points linecolor rgb '#444444' pointtype 2 pointsize 0.6 title '90th percentile', \
    keyentry with lines linecolor rgb '#444444' title 'bar: up to the 99th'
