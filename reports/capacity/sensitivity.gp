# size: 1160 700
stats data using (note(strcol('panel'))) nooutput
panels = names
n = words(panels)
rows = (n + 1) / 2
height = 100 + 210 * rows
load 'style.gp' # of a picture as tall as its panels need
stats data using (note(strcol('series'))) nooutput
stats data using (column('change_percent')) nooutput name 'C'
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
tic(s, n) = strstrt(seen, '"' . s . '"') ? 0 : (seen = seen . '"' . s . '"', labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
unset title
set multiplot layout rows,2 title title_text font ',14' noenhanced margins screen 0.17,screen 0.97,screen 90.0 / height,screen 1 - 75.0 / height spacing screen 0.19,screen 95.0 / height
set style fill solid 0.85 noborder
set xrange [C_min * 1.1:C_max * 1.1]
stats data using (column('y')) nooutput name 'Y'
set yrange [Y_max + 0.6:0.4]
set xlabel 'changes by (%)'
unset key
do for [p=1:n] {
    set title word(panels, p) font ',12' noenhanced
    labels = ''
    seen = ''
    stats data using (strcol('panel') eq word(panels, p) ? tic(strcol('input'), column('y')) : 0) nooutput
    eval('set ytics (' . (strlen(labels) ? labels : "'' 1") . ') scale 0 font ",10" noenhanced')
    if (p == 2 || n == 1) { set key at screen 0.015, screen 10.0 / height left bottom horizontal Left reverse maxrows 1 } else { unset key }
    if (p > 1) { unset label 9 }
    plot for [i=1:words(names)] data using (0):(at(word(panels, p), word(names, i), column('y'))):(0):(column('change_percent')):(column('y') - 0.38):(column('y') + 0.38) with boxxyerror linecolor rgb hue(i) title word(names, i)
}
unset multiplot
