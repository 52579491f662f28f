# size: 1000 480
stats data using (note(strcol('series'))) nooutput
stats data using (column('fetch_us')) nooutput name 'X'
set logscale x 2
set xtics 1, ratio(X_min, X_max)
set format x '%g'
set xrange [X_min / 2:X_max * 2]
set yrange [-0.05:1.08]
set xlabel 'mean fetch of a layer and step (µs); numbers: layers'
set ylabel 'hidden share of the fetch (no unit)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('fetch_us'))):(column('hidden')) \
        with points linecolor rgb hue(i) pointtype mark(word(names, i), i) pointsize 1.6 title word(names, i), \
    data using (column('fetch_us')):(column('hidden')):(strcol('layer')) \
        with labels left offset character 0.6,0.7 font ',9' textcolor rgb '#444444' notitle
