# size: 1160 460
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.075,0.66,0.17,0.88 spacing 0.09
set logscale x 2
set xlabel 'ranks of an Engram group'
unset key
set logscale y
set format y '10^{%L}'
set ylabel 'tables and optimizer state of a rank (GB)'
plot data using (column('ranks')):(column('gb')) with linespoints linecolor rgb hue(1) linewidth 1.5 pointtype 6 notitle
unset label 9
unset logscale y
set format y '%g'
set yrange [0:*]
set ylabel 'of a batch (ms)'
set key at screen 0.675, screen 0.88 left top
plot data using (column('ranks')):(column('fetch_ms')) with linespoints linecolor rgb hue(1) linewidth 1.5 pointtype 6 title 'fetch (simulated)', \
    data using (column('ranks')):(column('return_ms')) with linespoints linecolor rgb hue(2) linewidth 1.5 pointtype 4 title 'gradients back (simulated)', \
    data using (column('ranks')):(column('replicas_ms')) with linespoints linecolor rgb hue(4) linewidth 1.5 pointtype 10 title 'gradients between replicas (simulated)', \
    data using (column('ranks')):(column('exposed_ms')) with linespoints linecolor rgb hue(3) linewidth 1.5 pointtype 8 title 'not hidden (simulated)'
unset multiplot
