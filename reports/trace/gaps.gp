# size: 900 480
stats data using (note(strcol('series'))) nooutput
stats data using (column('gaps')) nooutput name 'N'
set logscale x 2
set format x '%g'
set xtics 1, 4
set yrange [0:N_max * 1.15]
set xlabel 'length of a gap (µs, bins of factor two)'
set ylabel 'gaps (count)'
set style fill solid 0.55 noborder
n = words(names)
# Bars of the series side by side within a bin.
edge(i, k) = column('lo_us') * 2 ** ((i - 1 + k) / (1.0 * n))
plot for [i=1:n] data using (column('middle_us')):(only('series', word(names, i), column('gaps'))):(edge(i, 0.08)):(edge(i, 0.92)):(0):(column('gaps')) \
        with boxxyerror linecolor rgb hue(i) title word(names, i)
