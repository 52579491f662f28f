# size: 900 560
stats data using (note(strcol('series'))) nooutput
set xrange [0:1]
set yrange [0:1]
set xlabel 'counted (share of look-ups)'
set ylabel 'predicted'
plot [0:1] x with lines linecolor rgb '#555555' linewidth 1 notitle, \
    for [i=1:words(names)] data using (column('counted')):(only('series', word(names, i), column('predicted'))) \
        with points linecolor rgb hue(i) pointtype mark(word(names, i), i) title word(names, i)
