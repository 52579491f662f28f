# size: 900 520
stats data using (note(strcol('series'))) nooutput
stats data using (column('place')) nooutput name 'P'
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
set yrange [0.4:P_max + 0.8]
set ytics scale 0 noenhanced
set xlabel 'loss less that of pure MoE (nats per token); left of 0 is better'
set xzeroaxis
set key outside top center horizontal
shift(i) = (i - (words(names) + 1) / 2.0) * 0.25
plot data using (column('gain')):(column('place')):ytic(strcol('source')) with dots linecolor rgb '#ffffff' notitle, \
    for [i=1:words(names)] data using (part('mean', word(names, i), column('gain'))):(column('place') + shift(i)):(column('lo')):(column('hi')) \
        with xerrorbars pointtype mark(word(names, i), i) linecolor rgb hue(i) notitle, \
    for [i=1:words(names)] data using (part('mean', word(names, i), column('gain'))):(column('place') + shift(i)) \
        with points pointtype mark(word(names, i), i) linecolor rgb hue(i) title word(names, i), \
    for [i=1:words(names)] data using (part('seed', word(names, i), column('gain'))):(column('place') + shift(i) + 0.08) with points pointtype 6 pointsize 0.4 linecolor rgb hue(i) notitle
