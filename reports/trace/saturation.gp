# size: 900 460
stats data using (note(strcol('series'))) nooutput
stats data using (column('stream')) nooutput name 'S'
stats data using (column('at_10')) nooutput name 'V'
set xrange [S_min - 0.6:S_max + 0.6]
set yrange [0:V_max > 0 ? V_max * 1.18 : 1]
set xtics 1 scale 0
set xlabel 'residual stream'
set ylabel 'saturated gates (%)'
set style fill solid 0.85 noborder
n = words(names)
w = 0.8 / n
x(i) = column('stream') + (i - (n + 1) / 2.0) * w
plot for [i=1:n] data using (only('series', word(names, i), x(i))):(column('at_05')):(w * 0.9) \
        with boxes linecolor rgb hue(i) title word(names, i) . ', 0.05 and 0.95', \
    for [i=1:n] data using (only('series', word(names, i), x(i))):(column('at_10')) \
        with points linecolor rgb '#333333' pointtype 2 pointsize 1 notitle, \
    keyentry with points linecolor rgb '#333333' pointtype 2 pointsize 1 title '0.1 and 0.9'
