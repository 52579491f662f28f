# size: 900 480
stats data using (note(strcol('series'))) nooutput
set logscale x 2
set logscale y 10
set xtics 1, 2
set format x '%.0f'
set format y '%g'
set offsets graph 0.02, graph 0.02, 0, 0
set xlabel 'independent chains of one thread'
set ylabel '64-byte lines a second (10^9/s)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('chains'))):(column('gload')):(column('gload_lo')):(column('gload_hi')) \
    with yerrorlines linecolor rgb hue(i) linewidth 1.6 pointtype mark(word(names, i), i) title word(names, i)
