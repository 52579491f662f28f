# size: 1200 470
stats data using (note(strcol('series'))) nooutput
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.06,0.98,0.17,0.85 spacing 0.06
set xlabel 'tenth by frequency (rarest first)'
set xrange [0.5:10.7]
set xtics 1
set yrange [0:105]
set title "reads of a token's rows by other n-grams (%)" font ',11'
set key bottom left inside
plot for [i=1:words(names)] data using (part('foreign', word(names, i), column('place') + 0.08 * (i - 1))):(column('value')):(column('lo')):(column('hi')) \
    with yerrorbars pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('foreign', word(names, i), column('place') + 0.08 * (i - 1))):(column('value')) \
    with linespoints pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i)
unset label 9
unset key
set yrange [0:*]
set title 'rows gathered for nothing: all gates at most 0.05 (%)' font ',11'
plot for [i=1:words(names)] data using (part('unused', word(names, i), column('place') + 0.08 * (i - 1))):(column('value')):(column('lo')):(column('hi')) \
    with yerrorbars pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('unused', word(names, i), column('place') + 0.08 * (i - 1))):(column('value')) \
    with linespoints pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle
set title 'mean gate, by share of foreign reads' font ',11'
set xlabel "foreign share of reads of a token's rows"
set xrange [0:1]
set xtics 0.2
set yrange [0:1]
plot for [i=1:words(names)] data using (part('gate', word(names, i), column('place'))):(column('value')):(column('lo')):(column('hi')) \
    with yerrorbars pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('gate', word(names, i), column('place'))):(column('value')) \
    with linespoints pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle
unset multiplot
