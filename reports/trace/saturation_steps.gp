# size: 900 460
stats data using (note(strcol('series'))) nooutput
stats data using (column('hi')) nooutput name 'V'
stats data using (column('step')) nooutput name 'S'
set xrange [S_min - 0.5:S_max + 0.5]
set yrange [0:V_max > 0 ? V_max * 1.15 : 1]
set xlabel 'step of the traced pass'
set ylabel 'saturated gates (%)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('step'))):(column('mean')):(column('lo')):(column('hi')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.6 pointtype mark(word(names, i), i) title word(names, i), \
    keyentry with lines linecolor rgb '#444444' title 'bar: least and most'
