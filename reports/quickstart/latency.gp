# size: 1040 500
stats data using (note(strcol('series'))) nooutput
stats data using (column('tokens')) nooutput name 'X'
set logscale x 2
set xtics 1, ratio(X_min, X_max)
set offsets graph 0.02, graph 0.02, 0, 0
set logscale y 10
set xlabel 'tokens in the batch (tokens)'
set ylabel 'time per token (µs)'
set format x '%.0f'
set format y '%g'
# The chain is dashed: it lies on its most expensive part.
dash(name) = strstrt(name, 'chain') ? 2 : 1
plot for [i=1:words(names)] data using (only('series', word(names, i), column('tokens'))):(column('us_per_token')):(column('us_lo')):(column('us_hi')) \
    with yerrorlines linecolor rgb hue(i) linewidth 1.6 dashtype dash(word(names, i)) pointtype mark(word(names, i), i) title word(names, i)
