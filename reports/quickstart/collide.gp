# size: 1100 480
stats data using (note(strcol('series'))) nooutput
stats data using (column('heads')) nooutput name 'K'
stats data using (column('ngrams_per_row')) nooutput name 'N'
stats data using (column('heads_bound')) nooutput name 'B'
stats data using (column('heads_shared')) nooutput name 'S'
# Lines that would lie on each other are set apart by a little of the axis.
apart(i) = 2**((i - (words(names) + 1) / 2.0) * 0.12)

unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.075,0.87,0.17,0.89 spacing 0.085
set xlabel 'heads per order K (heads)'
set logscale x 2
set xrange [K_min / 1.4:K_max * 1.4]
unset key
if (N_max > 30 * N_min) {
    set logscale y
    set yrange [N_min / 2:N_max * 2]
} else {
    set yrange [0:1.15 * N_max]
}
set format y '%g'
set ylabel 'n-grams per used row (n-grams)'
plot data using (column('heads')):(column('ngrams_per_row')):xticlabels(strcol('heads')) with dots linecolor rgb '#ffffff' notitle, \
    for [i=1:words(names)] data using (only('series', word(names, i), column('heads'))):(column('ngrams_per_row')) \
    with linespoints linecolor rgb hue(i) linewidth 1.6 pointtype mark(word(names, i), i) notitle

unset label 9
unset logscale y
set yrange [0:1 + (B_max > S_max ? B_max : S_max)]
set ytics 1
set ylabel 'heads shared by two n-grams, most (heads)'
set key outside right top
plot for [i=1:words(names)] data using (only('series', word(names, i), column('heads') * apart(i))):(column('heads_shared')) \
        with points linecolor rgb hue(i) pointtype mark(word(names, i), i) title word(names, i), \
    data using (column('heads')):(column('heads_bound')):xticlabels(strcol('heads')) with dots linecolor rgb '#ffffff' notitle, \
    data using (column('heads')):(column('heads_bound')) smooth unique with lines linecolor rgb '#444444' linewidth 1.6 dashtype 2 title 'bound'
unset multiplot
