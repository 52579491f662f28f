# size: 1160 480
stats data using (note(strcol('panel'))) nooutput
n = words(names)
rows = (n + 3) / 4
columns = n < 4 ? n : 4
height = 150 + 330 * rows
load 'style.gp' # of a picture as tall as its panels need
stats data using (note(strcol('panel'))) nooutput
stats data using (column('y')) nooutput name 'Y'
labels = ''
seen = ''
tic(s, n) = strstrt(seen, '"' . s . '"') ? 0 : (seen = seen . '"' . s . '"', labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (tic(sprintf('%g', column('placement')), column('y'))) nooutput
unset title
unset key
set multiplot layout rows,columns title title_text font ',14' noenhanced margins screen 0.06,screen 0.9,screen 86.0 / height,screen 1 - 72.0 / height spacing screen 0.015,screen 100.0 / height
set palette defined (0 '#f7f7f7', 0.001 '#fde0c5', 0.2 '#f59e53', 0.6 '#c8452a', 1 '#5b0f1a')
set cbrange [0:1]
set cblabel 'wait / step (no unit); grey: no wait'
set logscale x 2
set format x '2^{%L}'
set xtics 1, 16
set xrange [0.7:2**14 * 1.42]
set yrange [0.5:Y_max + 0.5]
set xlabel 'tokens of a step'
unset colorbox
set style fill solid 1 noborder
unset grid
do for [p=1:n] {
    set title word(names, p) font ',11' noenhanced
    if (p % columns == 1 % columns) {
        eval('set ytics (' . labels . ') scale 0 noenhanced')
        set ylabel 'layer of the module (from 0)'
    } else { set ylabel ''; unset ytics }
    if (p > 1) { unset label 9 }
    if (p == n) { set colorbox user origin screen 0.912,screen 86.0 / height size screen 0.018,screen 1 - 158.0 / height }
    plot data using (strcol('panel') eq word(names, p) ? column('tokens') : NaN):(column('y')):(column('tokens') / sqrt(2)):(column('tokens') * sqrt(2)):(column('y') - 0.5):(column('y') + 0.5):(column('stall_share')) \
        with boxxyerror linecolor palette notitle
}
unset multiplot
