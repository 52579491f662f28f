# size: 1060 560
stats data using (strlen(strcol('store')) ? note(strcol('store')) : 0) nooutput
stores = names
names = ''
store(name) = sum [k=1:words(stores)] (word(stores, k) eq word(name, 1) ? k : 0)
cold(name) = strstrt(name, 'cold') > 0
dash(name) = 1 + cold(name)
stats data using (strcol('series') eq 'window' ? 0 : note(strcol('series'))) nooutput
stats data using (column('tokens')) nooutput name 'X'
window(v) = strcol('series') eq 'window' ? v : NaN
set logscale x 4
set logscale y 10
set format y '10^{%L}'
set xtics 1, 4
set xrange [X_min / 1.3:X_max * 2.2]
set xlabel 'tokens in the batch (tokens)'
set ylabel 'time to fetch the rows of a layer (µs)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('tokens'))):(column('us')):(column('lo')):(column('hi')) \
        with yerrorlines linecolor rgb hue(store(word(names, i))) linewidth 1.5 dashtype dash(word(names, i)) pointtype mark(word(names, i), 1 + cold(word(names, i))) title word(names, i), \
    data using (window(X_min / 1.3)):(column('us')):(X_max * 2.2 - X_min / 1.3):(0) with vectors nohead linecolor rgb '#888888' dashtype 3 linewidth 1.2 notitle, \
    data using (window(X_max * 1.15)):(column('us')):(strcol('series') eq 'window' ? 'layer ' . strcol('layer') : '') \
        with labels left offset 0,0.5 font ',10' textcolor rgb '#555555' notitle, \
    keyentry with lines linecolor rgb '#888888' dashtype 3 linewidth 1.2 title 'window (emulated)'
