# size: 1160 520
stats data using (note(strcol('layout'))) nooutput
layouts = names
names = ''
stats data using (note(strcol('series'))) nooutput
n = words(names)
apart(i) = 0.12 * (i - (n + 1) / 2.0)
stats data using (column('row_us')) nooutput name 'T'
stats data using (column('read_bytes')) nooutput name 'B'
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.86,0.34,0.87 spacing 0.09
set xlabel 'row (bytes, scales included)'
set xtics () rotate by 35 right
do for [k=1:words(layouts)] { set xtics add (word(layouts, k) k) }
set xrange [0.5:words(layouts) + 0.5]
set logscale y 10
set format y '%g'
set ytics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
set yrange [T_min / 1.5:1.5 * T_max] # a bar may leave it
set ylabel 'wall time of a row (µs)'
unset key
plot for [i=1:n] data using (only('series', word(names, i), column('layout_no') + apart(i))):(column('row_us')):(column('lo')):(column('hi')) \
    with yerrorbars linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset label 9
set logscale y 2
set ytics auto
set yrange [B_min / 1.5:1.5 * B_max]
set ylabel 'bytes that the reads of a row ask for (B)'
set key outside right top
plot for [i=1:n] data using (only('series', word(names, i), column('layout_no') + apart(i))):(column('read_bytes')) \
    with points linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i)
unset multiplot
