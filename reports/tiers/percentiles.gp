# size: 1060 520
stats data using (strlen(strcol('store')) ? note(strcol('store')) : 0) nooutput
stores = names
names = ''
store(name) = sum [k=1:words(stores)] (word(stores, k) eq word(name, 1) ? k : 0)
cold(name) = strstrt(name, 'cold') > 0
stats data using (note(strcol('series'))) nooutput
stats data using (column('tokens')) nooutput name 'X'
set logscale x 4
set logscale y 10
set format y '10^{%L}'
set xtics 1, 4
set xrange [X_min / 1.8:X_max * 1.8]
set xlabel 'tokens in the batch (tokens; series are set apart)'
set ylabel 'wall time of a fetch (µs)'
apart(i) = 1.07 ** (i - 1 - words(names) / 2.0)
plot for [i=1:words(names)] data using (only('series', word(names, i), column('tokens') * apart(i))):(column('p50')):(column('p50')):(column('p99')) \
        with yerrorbars linecolor rgb hue(store(word(names, i))) linewidth 1.6 pointtype mark(word(names, i), 1 + cold(word(names, i))) title word(names, i), \
    for [i=1:words(names)] data using (only('series', word(names, i), column('tokens') * apart(i))):(column('p90')) \
        with points linecolor rgb hue(store(word(names, i))) pointtype 1 pointsize 0.8 notitle, \
    keyentry with points linecolor rgb '#444444' pointtype 1 title '90th; bar ends: 99th'
