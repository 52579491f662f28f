# size: 900 560
stats data using (note(strcol('series'))) nooutput
stats data using (column('measured')) nooutput name 'M'
stats data using (column('predicted')) nooutput name 'P'
set logscale xy
set format xy '%g'
set xtics (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
set ytics (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
lo = 0.7 * (M_min < P_min ? M_min : P_min)
hi = 1.4 * (M_max > P_max ? M_max : P_max)
set xrange [lo:hi]
set yrange [lo:hi]
set xlabel 'measured (us)'
set ylabel 'predicted (us)'
set key inside right bottom
plot [lo:hi] x with lines linecolor rgb '#555555' linewidth 1 notitle, \
    x * 1.1 with lines dashtype 3 linecolor rgb '#999999' notitle, x / 1.1 with lines dashtype 3 linecolor rgb '#999999' notitle, \
    x * 1.25 with lines dashtype 3 linecolor rgb '#cccccc' notitle, x / 1.25 with lines dashtype 3 linecolor rgb '#cccccc' notitle, \
    for [i=1:words(names)] data using (column('measured')):(only('series', word(names, i), column('predicted'))):(column('measured_lo')):(column('measured_hi')) \
        with xerrorbars linecolor rgb hue(i) pointtype mark(word(names, i), i) title word(names, i)
