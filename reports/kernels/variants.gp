# size: 1040 760
stats data using (note(strcol('series'))) nooutput
stats data using (column('place')) nooutput name 'P'
stats data using (column('percent')) nooutput name 'V'
labels = ''
seen = ''
tic(s, n) = strstrt(seen, '"' . s . '"') ? 0 : (seen = seen . '"' . s . '"', labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (tic(strcol('name'), column('place'))) nooutput
set yrange [P_max + 0.6:0.4]
set xrange [0:V_max * 1.12 < 110 ? 110 : V_max * 1.12]
eval('set ytics (' . labels . ') scale 0 font ",10" noenhanced')
set xlabel 'percent of the roof measured beside it (%)'
set lmargin 26
set style fill solid 0.85 noborder
set arrow 1 from 100, graph 0 to 100, graph 1 nohead dashtype 3 linewidth 1.2 linecolor rgb '#444444'
h = 0.8 / words(names)
y(i) = column('place') + (i - (words(names) + 1) / 2.0) * h
plot for [i=1:words(names)] data using (0):(only('series', word(names, i), y(i))):(0):(column('percent')):(y(i) - h * 0.45):(y(i) + h * 0.45) \
        with boxxyerror linecolor rgb hue(i) title word(names, i), \
    for [i=1:words(names)] data using (column('percent')):(only('series', word(names, i), y(i))):(column('percent_lo')):(column('percent_hi')) \
        with xerrorbars linecolor rgb '#333333' linewidth 1 pointtype 0 notitle, \
    for [i=1:words(names)] data using (column('percent_hi')):(only('series', word(names, i), y(i))):(strcol('label')) \
        with labels left offset character 0.6,0 font ',9' textcolor rgb '#444444' notitle
