# size: 1100 480
stats data using (column('tokens')) nooutput name 'X'
parts = 'hash gather project gate'
# Time of a part, from its share: 1 % of the whole is wall_us / 100.
part_us(i) = column(word(parts, i)) * column('wall_us') / 100 / column('tokens')

unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.87,0.17,0.89 spacing 0.1
unset key
set xlabel 'tokens in the batch (tokens)'
set yrange [0:100]
set xrange [-0.7:X_records - 0.3]
set xtics scale 0
set ylabel "share of the chain's wall time (%)"
set style histogram rowstacked
set style fill solid 0.9 border linecolor rgb '#ffffff'
set boxwidth 0.75
plot for [i=1:4] data using (column(word(parts, i))):xticlabels(strcol('tokens')) with histograms linecolor rgb hue(i) notitle

unset label 9
set autoscale x
set autoscale y
set logscale x 2
set logscale y 10
set xtics 1, ratio(X_min, X_max) scale 0.6
set offsets graph 0.04, graph 0.04, 0, 0
set format y '%g'
set ylabel 'wall time per token (µs)'
set key outside right top invert
plot for [i=1:4] data using (column('tokens')):(part_us(i)) \
    with linespoints linecolor rgb hue(i) linewidth 1.6 pointtype mark('', i) title word(parts, i)
unset multiplot
