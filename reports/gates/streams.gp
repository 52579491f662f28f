# size: 1150 460
stats data using (note(strcol('series'))) nooutput
part(p, name, value) = strcol('part') eq p && strcol('series') eq name ? value : NaN
shift(i) = (i - (words(names) + 1) / 2.0) * 0.14
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.06,0.98,0.17,0.85 spacing 0.06
set xlabel 'layer, from 0 (the last: output)'
set xtics 1
stats data using (column('layer')) nooutput name 'L'
stats data using (strcol('part') eq 'stream_cosine' ? column('value') : NaN) nooutput name 'A'
set xrange [-0.4:L_max + 0.4]
set xzeroaxis linecolor rgb '#333333'
array what[3] = ['stream_cosine', 'gate_cosine', 'gate_correlation']
array label[3] = ['cosine of two streams of a token', 'cosine of two gates over tokens', 'correlation of two gates over tokens']
do for [f=1:3] {
    set title label[f] font ',11'
    if (f == 1) { set yrange [A_min - 0.1 * (1 - A_min) - 0.001:1.0005] } else { set yrange [-1.05:1.05] }
    if (f == 1) { set key bottom left inside } else { unset key; unset label 9; set xlabel 'layer, from 0' }
    plot for [i=1:words(names)] data using (part(what[f], word(names, i), column('layer') + shift(i))):(column('value')) with points \
        pointtype mark(word(names, i), i) pointsize 0.8 linecolor rgb hue(i) title word(names, i)
}
unset multiplot
