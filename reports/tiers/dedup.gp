# size: 1060 500
stats data using (note(strcol('series'))) nooutput
stats data using (column('ratio')) nooutput name 'Y'
set logscale y 2
bottom = (Y_min < 0.8 ? Y_min : 0.8) / 1.2
top = (Y_max > 1.25 ? Y_max : 1.25) * 1.2
set yrange [bottom:top]
set xrange [-2:102]
set xlabel 'rows of the batch that it has already named (%)'
set ylabel 'time without over time with (no unit)'
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb '#444444' dashtype 3 linewidth 1.5
plot for [i=1:words(names)] data using (only('series', word(names, i), column('share'))):(column('ratio')):(column('lo')):(column('hi')) \
        with yerrorbars linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i), \
    for [i=1:words(names)] data using (only('series', word(names, i), column('pays_from'))):(bottom):(0):(top - bottom) \
        with vectors nohead linecolor rgb hue(i) dashtype 2 linewidth 1.2 title word(names, i) . ' pays from here', \
    keyentry with lines linecolor rgb '#444444' dashtype 3 linewidth 1.5 title 'no difference'
