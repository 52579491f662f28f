# size: 1100 480
stats data using (note(strcol('series'))) nooutput
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.08,0.98,0.25,0.87 spacing 0.1
set xlabel 'class of the token predicted'
set ylabel 'loss less that of pure MoE (nats per token)'
set xzeroaxis linecolor rgb '#333333'
set xrange [0.4:8.6]
set xtics rotate by 25 right noenhanced
unset key
do for [i=1:words(names)] {
    set title word(names, i) . ': mean, 95 % interval, every seed' font ',11'
    plot data using (column('place')):(part('mean', word(names, i), column('difference'))):xtic(strcol('what')) with dots linecolor rgb '#ffffff', \
        data using (part('mean', word(names, i), column('place'))):(column('difference')):(column('lo')):(column('hi')) \
            with yerrorbars pointtype mark(word(names, i), i) linecolor rgb hue(i), \
        data using (part('mean', word(names, i), column('place'))):(column('difference')) with points pointtype mark(word(names, i), i) linecolor rgb hue(i), \
        data using (part('seed', word(names, i), column('place') + 0.2)):(column('difference')) with points pointtype 6 pointsize 0.4 linecolor rgb hue(i)
    unset label 9
}
unset multiplot
