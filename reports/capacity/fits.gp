# size: 1160 520
stats data using (column('bar_no')) nooutput name 'B'
stats data using (column('to_gb')) nooutput name 'T'
height = 130 + 48 * B_max
load 'style.gp' # of a picture as tall as its bars need
stats data using (note(strcol('series'))) nooutput
labels = ''
seen = ''
tic(s, n) = strstrt(seen, '"' . s . '"') ? 0 : (seen = seen . '"' . s . '"', labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (tic(strcol('bar'), column('bar_no'))) nooutput
eval('set ytics (' . labels . ') scale 0 noenhanced')
set yrange [B_max + 0.6:0.4]
set xrange [0:T_max * 1.5]
set xlabel 'held by the fullest one (GB)'
set lmargin 24
set style fill solid 0.85 noborder
plot for [i=1:words(names)] data using (0):(only('series', word(names, i), column('bar_no'))):(column('from_gb')):(column('to_gb')):(column('bar_no') - 0.34):(column('bar_no') + 0.34) \
        with boxxyerror linecolor rgb hue(i) title word(names, i), \
    data using (column('last') > 0 ? column('all_gb') : NaN):(column('bar_no')):(column('capacity_gb') > 0 ? sprintf('%.1f of %.0f GB%s', column('all_gb'), column('capacity_gb'), column('all_gb') > column('capacity_gb') ? ', does not fit' : '') : sprintf('%.1f GB', column('all_gb'))) \
        with labels left offset character 0.7,0 font ',10' textcolor rgb '#444444' notitle
