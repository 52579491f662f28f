# size: 960 500
stats data using (note(strcol('series'))) nooutput
set logscale x 2
set format x '%g'
set yrange [0:*]
set offsets graph 0.02, graph 0.02, 0, 0
set xlabel 'table (MiB)'
set ylabel 'lines read (GB/s)'
dash(name) = strstrt(name, '4k') ? 2 : 1
plot for [i=1:words(names)] data using (only('series', word(names, i), column('bytes') / 2**20)):(column('gbps')):(column('gbps_lo')):(column('gbps_hi')) \
    with yerrorlines linecolor rgb hue(i) linewidth 1.6 dashtype dash(word(names, i)) pointtype mark(word(names, i), i) title word(names, i)
