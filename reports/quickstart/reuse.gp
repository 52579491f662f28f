# size: 1200 500
stats data using (note(strcol('corpus'))) nooutput
corpora = names
names = ''
stats data using (note(strcol('gram'))) nooutput
grams = names
n = words(grams)
at(gram, corpus, compress, value) = strcol('gram') eq gram && strcol('corpus') eq corpus && strcol('compress') eq compress ? value : NaN

stats data using (column('tokens')) nooutput name 'X'

unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.065,0.83,0.17,0.83 spacing 0.02
set logscale x 2
set format x '%.0f'
set xtics 1, ratio(X_min, X_max)
set offsets graph 0.04, graph 0.04, 0, 0
set yrange [0:102]
set xlabel 'tokens in the batch (tokens)'
unset key
do for [g=1:n] {
    set title word(grams, g) . '-grams' font ',12'
    if (g == 1) { set ylabel 'distinct rows (% of rows looked up)' }
    if (g > 1) { set ylabel ''; set format y ''; unset label 9 }
    if (g == n) { set key outside right top }
    plot for [i=1:words(corpora)] data using (at(word(grams, g), word(corpora, i), 'on', column('tokens'))):(column('distinct_percent')) \
            with linespoints linecolor rgb hue(i) linewidth 1.6 pointtype mark(word(corpora, i), i) notitle, \
        for [i=1:words(corpora)] data using (at(word(grams, g), word(corpora, i), 'off', column('tokens'))):(column('distinct_percent')) \
            with linespoints linecolor rgb hue(i) linewidth 1.3 dashtype 2 pointtype mark(word(corpora, i), i) pointsize 0.35 notitle, \
        for [i=1:words(corpora)] keyentry with linespoints linecolor rgb hue(i) linewidth 1.6 pointtype mark(word(corpora, i), i) title word(corpora, i), \
        keyentry with lines linecolor rgb '#444444' linewidth 1.6 title 'ids compressed', \
        keyentry with lines linecolor rgb '#444444' linewidth 1.3 dashtype 2 title 'not compressed'
}
unset multiplot
