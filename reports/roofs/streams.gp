# size: 1000 480
stats data using (note(strcol('series'))) nooutput
stats data using (column('place')) nooutput name 'P'
labels = ''
tic(s, n) = (labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (strcol('series') eq word(names, 1) ? tic(strcol('what'), column('place')) : 0) nooutput
eval('set xtics (' . labels . ') scale 0')
set xrange [0.4:P_max + 0.6]
set yrange [0:*]
set ylabel 'bytes loaded and stored per wall time (GB/s)'
set style fill solid 0.85 noborder
w = 0.8 / words(names)
set boxwidth w * 0.92
x(i) = column('place') + (i - (words(names) + 1) / 2.0) * w
plot for [i=1:words(names)] data using (only('series', word(names, i), x(i))):(column('gbps')) with boxes linecolor rgb hue(i) title word(names, i), \
    for [i=1:words(names)] data using (only('series', word(names, i), x(i))):(column('gbps')):(column('gbps_lo')):(column('gbps_hi')) \
        with yerrorbars linecolor rgb '#333333' linewidth 1 pointtype 0 notitle
