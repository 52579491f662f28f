# size: 1150 500
stats data using (strcol('part') eq 'mean' ? note(strcol('series')) : NaN) nooutput
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
bad(name, value) = part('seed', name, column('collapsed') > 0 ? value : NaN)
ticks = ''
stats data using (strcol('part') eq 'mean' ? (ticks = ticks . sprintf("%s'%s' %g", ticks eq '' ? '' : ', ', strcol('layers'), column('x')), 1) : NaN) nooutput
unset title
set ylabel 'loss less the mean over single layers (nats)'
set key at graph 0.5, graph -0.17 center top vertical maxcols 1
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.09,0.98,0.26,0.87 spacing 0.1
set title 'here: mean, 95 % interval, every seed' font ',11'
set xlabel 'layers with Engram, from 0'
eval 'set xtics (' . ticks . ')'
set offsets 0.5, 0.5, 0, 0
set xzeroaxis linecolor rgb '#333333'
plot for [i=1:words(names)] data using (part('seed', word(names, i), column('x') + 0.15)):(column('y')) with points pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('mean', word(names, i), column('x'))):(column('y')):(column('lo')):(column('hi')) with yerrorbars \
        pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('mean', word(names, i), column('x'))):(column('y')) with points \
        pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i), \
    for [i=1:words(names)] data using (bad(word(names, i), column('x') + 0.15)):(column('y')) with points pointtype 2 linecolor rgb '#000000' notitle
unset label 9
set title 'the paper: one run each, read from its figure' font ',11'
set xlabel 'layer, from 0'
set xtics 1
plot data using (strcol('part') eq 'paper' ? column('x') : NaN):(column('y')) with linespoints pointtype 3 linecolor rgb hue(4) title 'one module (published)', \
    data using (strcol('part') eq 'pair' ? 0 : NaN):(column('y')):(11):(0) with vectors nohead dashtype 2 linecolor rgb hue(5) title 'two modules, layers 1 and 5 (published)'
unset multiplot
