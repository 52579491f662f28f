# size: 900 500
stats data using (note(strcol('series'))) nooutput
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
set xlabel 'class of the token predicted'
set ylabel 'loss less that of pure MoE (nats per token)'
set xzeroaxis linecolor rgb '#333333'
set xrange [0.4:8.6]
set xtics rotate by 25 right noenhanced
shift(i) = (i - (words(names) + 1) / 2.0) * 0.2
plot data using (column('place')):(column('difference')):xtic(strcol('what')) with dots linecolor rgb '#ffffff' notitle, \
    for [i=1:words(names)] data using (part('mean', word(names, i), column('place') + shift(i))):(column('difference')):(column('lo')):(column('hi')) \
        with yerrorbars pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i), \
    for [i=1:words(names)] data using (part('seed', word(names, i), column('place') + shift(i) + 0.08)):(column('difference')) with points pointtype 6 pointsize 0.4 linecolor rgb hue(i) notitle
