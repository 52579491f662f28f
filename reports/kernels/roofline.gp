# size: 960 560
stats data using (note(strcol('series'))) nooutput
stats data using (column('intensity')) nooutput name 'X'
stats data using (column('gflops')) nooutput name 'Y'
stats data using (column('stream_gbps')) nooutput name 'S'
stats data using (column('peak_gflops')) nooutput name 'P'
bandwidth = exists('S_records') && S_records > 0 ? S_max : NaN
peak = exists('P_records') && P_records > 0 ? P_max : NaN
set logscale xy 10
set format x '%g'
set format y '%g'
ridge = bandwidth == bandwidth && peak == peak ? peak / bandwidth : 0
set xrange [X_min / 2:3 * (X_max > ridge ? X_max : ridge)]
set yrange [Y_min / 3:*]
set xlabel 'arithmetic intensity (flop per byte that must move)'
set ylabel 'arithmetic per CPU or device time (GFLOP/s)'
set samples 1000
roof(x) = peak == peak ? (bandwidth * x < peak ? bandwidth * x : peak) : bandwidth * x
plot roof(x) with lines linecolor rgb '#444444' linewidth 1.6 dashtype 2 title 'CPU: read stream, product', \
    for [i=1:words(names)] data using (only('series', word(names, i), column('intensity'))):(column('gflops')):(column('gflops_lo')):(column('gflops_hi')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.4 pointtype mark(word(names, i), i) title word(names, i), \
    for [i=1:words(names)] data using (only('series', word(names, i), column('intensity'))):(column('gflops')):(strcol('label')) \
        with labels offset character 0.7,-0.6 left font ',9' textcolor rgb '#444444' notitle
