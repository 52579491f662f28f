# size: 1160 460
stats data using (note(strcol('panel'))) nooutput
panels = names
n = words(panels)
rows = (n + 1) / 2
height = 130 + 300 * rows
load 'style.gp' # of a picture as tall as its panels need
stats data using (note(strcol('series'))) nooutput
of(panel, name, misses) = strcol('panel') eq panel && strcol('series') eq name && column('misses') == misses ? column('hosts') : NaN
wide(i) = 1.5 + 2.2 * (words(names) - i) # lines that coincide stay visible
unset title
set multiplot layout rows,n > 1 ? 2 : 1 title title_text font ',14' noenhanced margins screen 0.065,screen 0.7,screen 80.0 / height,screen 1 - 75.0 / height spacing screen 0.06,screen 105.0 / height
set logscale xy
set format x '10^{%L}'; set format y '10^{%L}'
set xlabel 'tokens/s wanted (tokens/s)'
set ylabel 'hosts (hosts)'
set xrange [1000:1.1e7]
set yrange [0.8:*]
do for [p=1:n] {
    set title word(panels, p) font ',11' noenhanced
    if (p == 1) { set key at screen 0.715, screen 1 - 75.0 / height left top Left reverse } else { unset key; unset label 9 }
    plot for [i=1:words(names)] data using (column('target')):(of(word(panels, p), word(names, i), 0)) with steps linecolor rgb hue(i) linewidth wide(i) notitle, \
        for [i=1:words(names)] data using (column('target')):(of(word(panels, p), word(names, i), 1)) with steps linecolor rgb hue(i) linewidth wide(i) dashtype 2 notitle, \
        for [i=1:words(names)] keyentry with lines linecolor rgb hue(i) linewidth 2.5 title word(names, i), \
        keyentry with lines linecolor rgb '#444444' linewidth 2.5 dashtype 2 title 'dashed: misses the mean asked for'
}
unset multiplot
