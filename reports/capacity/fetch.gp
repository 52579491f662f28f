# size: 1060 560
stats data using (strcol('what') eq 'fetch' ? note(strcol('series')) : 0) nooutput
set logscale xy
set format x '10^{%L}'; set format y '10^{%L}'
set xlabel 'tokens of a step (tokens)'
set ylabel 'mean time to gather one layer (µs)'
set xrange [0.8:80000]
set style textbox opaque fillcolor rgb '#ffffff' noborder margins 0.2,0.1
plot data using (strcol('what') eq 'window' && column('tokens') == 1 ? column('tokens') : NaN):(column('us')):(80000):(0) with vectors nohead dashtype 2 linecolor rgb '#444444' notitle, \
    data using (strcol('what') eq 'window' && column('tokens') == 1 ? column('label_at') : NaN):(column('us')):(strcol('label')) with labels boxed left offset character 0.3,0.55 font ',9' textcolor rgb '#444444' notitle, \
    for [i=1:words(names)] data using (only('series', word(names, i), column('tokens'))):(column('us')) with linespoints linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i), \
    keyentry with lines dashtype 2 linecolor rgb '#444444' title 'windows'
