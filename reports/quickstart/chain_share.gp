# size: 820 480
stats data using (column('tokens')) nooutput
set style data histograms
set style histogram rowstacked
set style fill solid 0.9 border linecolor rgb '#ffffff'
set boxwidth 0.75
set yrange [0:100]
set xrange [-0.7:STATS_records - 0.3]
set xtics scale 0
set xlabel 'tokens in the batch (tokens)'
set ylabel "share of the chain's wall time (%)"
set key invert
parts = 'hash gather project gate'
plot for [i=1:4] data using (column(word(parts, i))):xticlabels(strcol('tokens')) linecolor rgb hue(i) title word(parts, i)
