# size: 1000 620
stats data using (note(strcol('series'))) nooutput
set logscale xy
set format x '10^{%L}'; set format y '10^{%L}'
set xlabel 'measured (unit of the metric)'
set ylabel 'predicted (unit of the metric)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('measured'))):(column('predicted')) with points linecolor rgb hue(i) pointtype mark(word(names, i), i) title word(names, i), \
    x with lines linecolor rgb '#444444' title 'equal', \
    1.1 * x with lines dashtype 2 linecolor rgb '#888888' title '10 %', x / 1.1 with lines dashtype 2 linecolor rgb '#888888' notitle, \
    1.25 * x with lines dashtype 3 linecolor rgb '#aaaaaa' title '25 %', x / 1.25 with lines dashtype 3 linecolor rgb '#aaaaaa' notitle
