# size: 1100 560
stats data using (column('bar_no')) nooutput name 'B'
stats data using (column('all_usd')) nooutput name 'T'
height = B_max > 8 ? 130 + 24 * B_max : 320
load 'style.gp' # of a picture as tall as its bars need
stats data using (note(strcol('series'))) nooutput
labels = ''
seen = ''
tic(s, n) = strstrt(seen, '"' . s . '"') ? 0 : (seen = seen . '"' . s . '"', labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (tic(strcol('bar'), column('bar_no'))) nooutput
eval('set ytics (' . labels . ') scale 0 font ",10" noenhanced')
set yrange [B_max + 0.6:0.4]
set xrange [0:T_max * 1.3]
set xlabel 'USD per million tokens'
set lmargin 38
set key at screen 0.985, graph 1 right top
set rmargin 38
set style fill solid 0.85 noborder
plot for [i=1:words(names)] data using (0):(only('series', word(names, i), column('bar_no'))):(column('from_usd')):(column('to_usd')):(column('bar_no') - 0.36):(column('bar_no') + 0.36) \
        with boxxyerror linecolor rgb hue(i) title word(names, i), \
    data using (column('last') > 0 ? column('all_usd') : NaN):(column('bar_no')):(strcol('label')) with labels left offset character 0.6,0 font ',10' textcolor rgb '#444444' notitle
