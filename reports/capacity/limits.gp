# size: 1160 560
stats data using (column('y')) nooutput name 'Y'
height = Y_max > 8 ? 130 + 24 * Y_max : 320
load 'style.gp' # of a picture as tall as its lines need
stats data using (note(strcol('series'))) nooutput
labels = ''
seen = ''
tic(s, n) = strstrt(seen, '"' . s . '"') ? 0 : (seen = seen . '"' . s . '"', labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (tic(strcol('config'), column('y'))) nooutput
eval('set ytics (' . labels . ') scale 0 font ",10" noenhanced')
set yrange [Y_max + 0.6:0.4]
set logscale x
set format x '10^{%L}'
set xlabel 'time of one layer if this limit were alone (µs)'
set lmargin 34
set offsets 0, 0, 0, 0
plot for [i=1:words(names)] data using (column('us')):(only('series', word(names, i), column('y'))) with points linecolor rgb hue(i) pointsize 1.3 linewidth 2 pointtype mark(word(names, i), i) title word(names, i), \
    data using (column('binds') > 0 ? column('us') : NaN):(column('y')) with points pointtype 6 pointsize 2.6 linecolor rgb '#444444' title 'binds its tier'
