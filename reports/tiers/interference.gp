# size: 1060 500
stats data using (note(strcol('series'))) nooutput
set xlabel 'rows that all gatherers get (GB/s); numbers: gathering threads'
set ylabel 'the product takes longer by (%)'
stats data using (column('slowdown_percent')) nooutput name 'S'
set autoscale xfix
set offsets graph 0.03, graph 0.06, 0, 0
set yrange [(S_min < 0 ? 1.3 * S_min : 0) - 1:1.3 * S_max + 1] # a bar may leave it
plot for [i=1:words(names)] data using (only('series', word(names, i), column('gbps'))):(column('slowdown_percent')):(column('lo')):(column('hi')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i), \
    data using (column('gbps')):(column('slowdown_percent')):(column('gbps') > 0 ? strcol('gatherers') : '') with labels left offset character 0.6,0.7 font ',9' textcolor rgb '#444444' notitle, \
    data using (column('on_front') > 0 ? column('gbps') : NaN):(column('slowdown_percent')) with points pointtype 6 pointsize 2 linecolor rgb '#444444' title 'Pareto front'
