# size: 1100 1050
stats data using (column('place')) nooutput name 'P'
part(p, value) = strcol('part') eq p ? value : NaN
set yrange [0:P_max + 1]
set xlabel 'loss less that of the reference (nats per token); right of 0 is worse'
set ytics scale 0 font ',9' noenhanced
set xzeroaxis
set arrow from 0, graph 0 to 0, graph 1 nohead linecolor rgb '#333333'
set key at screen 0.5, screen 0.99 center top horizontal maxrows 2
set title offset 0,-0.5
set tmargin 6
plot data using (part('mean', column('y'))):(column('place')):(column('lo')):(column('hi')):ytic(strcol('name')) \
        with xerrorbars pointtype 7 linecolor rgb hue(1) title 'mean and 95 % interval', \
    data using (part('seed', column('y'))):(column('place') + 0.25) with points pointtype 6 pointsize 0.5 linecolor rgb hue(1) title 'each seed', \
    data using (part('seed', column('collapsed') > 0 ? column('y') : NaN)):(column('place') + 0.25) with points pointtype 2 linecolor rgb '#000000' title 'router collapsed', \
    data using (part('paper', column('y'))):(column('place') - 0.25) with points pointtype 3 linecolor rgb hue(2) title 'the paper, one run, read from its figure (published)'
