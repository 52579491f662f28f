# size: 1100 480
stats data using (note(strcol('series'))) nooutput
stats data using (column('gate_noise')) nooutput name 'N'
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.86,0.17,0.87 spacing 0.1
set xlabel 'row (bytes, scales and padding included)'
set ylabel 'CPU time per row (ns)'
set logscale x 2
set xtics 64, 2
set format x '%.0f'
set yrange [0:*]
set offsets graph 0.08, graph 0.08, graph 0.1, 0
unset key
plot for [i=1:words(names)] data using (only('series', word(names, i), column('row_bytes'))):(column('row_ns')):(column('lo')):(column('hi')) \
    with yerrorbars linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset label 9
set ylabel 'mean change of the gate (no unit)'
set logscale y 10
set yrange [1e-7:0.1]
set format y '10^{%L}'
set key outside right top
set arrow 1 from graph 0, first N_max to graph 1, first N_max nohead linecolor rgb '#444444' dashtype 3 linewidth 1.5
set label 7 'nothing changed: at the lower edge' at graph 0.97, graph 0.04 right font ',9' textcolor rgb '#666666'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('row_bytes'))):(column('gate_drift') > 1e-7 ? column('gate_drift') : 1e-7) \
        with points linecolor rgb hue(i) pointtype mark(word(names, i), i) title word(names, i), \
    keyentry with lines linecolor rgb '#444444' dashtype 3 linewidth 1.5 title 'noise floor'
unset multiplot
