# size: 1060 520
stats data using (note(strcol('series'))) nooutput
stats data using (column('bar_no')) nooutput name 'B'
stats data using (column('to_gb')) nooutput name 'T'
labels = ''
seen = ''
tic(s, n) = strstrt(seen, '"' . s . '"') ? 0 : (seen = seen . '"' . s . '"', labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (tic(strcol('bar'), column('bar_no'))) nooutput
eval('set ytics (' . labels . ') scale 0 noenhanced')
set yrange [B_max + 0.6:0.4]
set xrange [0:T_max * 1.22]
set xlabel 'held by the fullest one (GB)'
set lmargin 24
set style fill solid 0.85 noborder
plot for [i=1:words(names)] data using (0):(only('series', word(names, i), column('bar_no'))):(column('from_gb')):(column('to_gb')):(column('bar_no') - 0.34):(column('bar_no') + 0.34) \
        with boxxyerror linecolor rgb hue(i) title word(names, i), \
    data using (column('all_gb')):(column('bar_no')):(column('capacity_gb') > 0 ? sprintf('%.1f of %.0f GB', column('all_gb'), column('capacity_gb')) : sprintf('%.1f GB', column('all_gb'))) \
        with labels left offset character 0.7,0 font ',10' textcolor rgb '#444444' notitle
