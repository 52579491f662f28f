# size: 1150 480
stats data using (note(strcol('series'))) nooutput
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
set ylabel 'held-out loss (nats per token)'
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.06,0.86,0.22,0.89 spacing 0.08
unset key
set offsets 0.4, 0.4, 0, 0
set xlabel 'tenth of the tokens, by count of the two ids before in training (rarest first)'
plot for [i=1:words(names)] data using (part('decile', word(names, i), column('place'))):(column('loss')):(column('lo')):(column('hi')) with yerrorlines \
    pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle
unset label 9
unset ylabel
set xlabel 'class of the token predicted'
set xtics rotate by 30 right noenhanced
set key outside right top
plot data using (strcol('part') eq 'class' ? column('place') : NaN):(column('loss')):xtic(strcol('what')) with dots linecolor rgb '#ffffff' notitle, \
    for [i=1:words(names)] data using (part('class', word(names, i), column('place') + 0.18 * (i - 2))):(column('loss')):(column('lo')):(column('hi')) with yerrorbars \
    pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i)
unset multiplot
