# size: 900 520
stats data using (note(strcol('series'))) nooutput
set logscale xy
set format x '10^{%L}'; set format y '10^{%L}'
set xlabel 'fetch time predicted before (µs)'
set ylabel 'fetch time predicted now (µs)'
set samples 2
plot for [i=1:words(names)] data using (only('series', word(names, i), column('old_us'))):(column('new_us')) with points linecolor rgb hue(i) pointtype mark(word(names, i), i) title word(names, i), \
    x with lines linecolor rgb '#444444' dashtype 2 title 'no change'
