# size: 1100 620
stats data using (note(strcol('series'))) nooutput
stats data using (column('place')) nooutput name 'P'
labels = ''
tic(s, n) = (labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (strcol('series') eq word(names, 1) ? tic(strcol('shape_name'), column('place')) : 0) nooutput
set yrange [P_max + 0.6:0.4]
set xrange [0:*]
eval('set ytics (' . labels . ') scale 0 font ",10"')
set xlabel 'CPU time of a thread per line read (ns)'
set lmargin 41
set style fill solid 0.85 noborder
h = 0.26
y(i) = column('place') + (i - (words(names) + 1) / 2.0) * h
plot for [i=1:words(names)] data using (0):(only('series', word(names, i), y(i))):(0):(column('ns')):(y(i) - h * 0.45):(y(i) + h * 0.45) \
        with boxxyerror linecolor rgb hue(i) title word(names, i), \
    for [i=1:words(names)] data using (column('ns')):(only('series', word(names, i), y(i))):(column('ns_lo')):(column('ns_hi')) \
        with xerrorbars linecolor rgb '#333333' linewidth 1 pointtype 0 notitle
