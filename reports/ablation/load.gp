# size: 900 480
stats data using (note(strcol('series'))) nooutput
set logscale x
set xtics (1, 1.2, 1.5, 2, 3, 5, 10, 20, 50)
set xrange [*:*] noextend
set offsets graph 0.03, graph 0.03, 0, 0
set xlabel 'busiest expert over the mean load, last quarter of training'
set ylabel 'loss less the means of its arm and seed (nats)'
set xzeroaxis linecolor rgb '#333333'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('load_max'))):(column('rest')) with points \
        pointtype mark(word(names, i), i) pointsize 0.7 linecolor rgb hue(i) title word(names, i), \
    data using (column('collapsed') > 0 ? column('load_max') : NaN):(column('rest')) with points pointtype 2 pointsize 1.6 linecolor rgb '#000000' title 'collapsed'
