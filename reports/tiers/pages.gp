# size: 960 480
dash(name) = strstrt(name, '4k') ? 2 : 1
stats data using (note(strcol('series'))) nooutput
set logscale x 2
set format x '%.0f'
stats data using (column('about_bytes') / 2**20) nooutput name 'X'
stats data using (column('row_ns')) nooutput name 'Y'
set yrange [0:1.6 * Y_max] # a bar may leave it
set offsets graph 0.03, graph 0.03, 0, 0
set xlabel 'table (MiB, about)'
set ylabel 'CPU time per row (ns)'
set xtics X_min, 4
plot for [i=1:words(names)] data using (only('series', word(names, i), column('about_bytes') / 2**20)):(column('row_ns')):(column('lo')):(column('hi')) \
    with yerrorlines linecolor rgb hue(i) linewidth 1.5 dashtype dash(word(names, i)) pointtype mark(word(names, i), i) title word(names, i)
