# size: 1160 480
stats data using (note(strcol('series'))) nooutput
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
dash(name) = strstrt(name, 'layers') ? 3 : 1
shade(i) = strstrt(word(names, i), 'layers') ? '#444444' : hue(i)
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.82,0.17,0.83 spacing 0.07
set logscale x 2
set xlabel 'chunk (tokens)'
set offsets graph 0.03, graph 0.03, 0, 0
unset key
do for [p in '"a chunk takes (ms)" "hidden (%)"'] {
    set title p font ',12' noenhanced
    if (p eq 'hidden (%)') {
        unset logscale y
        set yrange [-4:106]
        unset label 9
        set key at screen 0.83, screen 0.83 left
    } else {
        set logscale y 10
        set format y '%g'
    }
    plot for [i=1:words(names)] data using (at(p, word(names, i), column('chunk'))):(column('y')):(column('lo')):(column('hi')) \
        with yerrorlines linecolor rgb shade(i) linewidth 1.5 dashtype dash(word(names, i)) pointtype mark(word(names, i), i) notitle, \
        for [i=1:words(names)] keyentry with linespoints linecolor rgb shade(i) linewidth 1.5 dashtype dash(word(names, i)) pointtype mark(word(names, i), i) title word(names, i)
}
unset multiplot
