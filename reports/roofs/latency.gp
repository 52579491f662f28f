# size: 1000 500
stats data using (note(strcol('series'))) nooutput
stats data using (column('bytes') / 2**10) nooutput name 'X'
stats data using (column('knee_bytes') / 2**10) nooutput name 'K'
stats data using (column('os_bytes') / 2**10) nooutput name 'O'
set logscale x 2
set logscale y 10
set xtics 1, 16
set format x '%.0f'
set format y '%g'
set offsets graph 0.02, graph 0.02, 0, 0
set xlabel 'working set (KiB)'
set ylabel 'time of a load that depends on the last (ns)'
line(n, at, text) = sprintf("set arrow %d from %g, graph 0 to %g, graph 1 nohead dashtype 3 linewidth 1.5 linecolor rgb '#444444'; set label %d '%s' at %g, graph 0.02 rotate by 90 left offset character -0.8,0 font ',10' textcolor rgb '#444444'", n, at, at, n, text, at)
if (exists('K_records') && K_records > 0) { eval(line(1, K_min, 'measured knee')) }
if (exists('O_records') && O_records > 0) { eval(line(2, O_min, 'last-level cache (operating system)')) }
plot for [i=1:words(names)] data using (only('series', word(names, i), column('bytes') / 2**10)):(column('ns')):(column('ns_lo')):(column('ns_hi')) \
    with yerrorlines linecolor rgb hue(i) linewidth 1.6 pointtype mark(word(names, i), i) title word(names, i)
