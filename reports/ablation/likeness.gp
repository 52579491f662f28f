# size: 1150 540
stats data using (strcol('part') eq 'paper' ? NaN : note(strcol('series'))) nooutput
ours = names
names = ''
stats data using (strcol('part') eq 'paper' ? note(strcol('series')) : NaN) nooutput
paper = names
part(p, m, name, value) = strcol('part') eq p && strcol('measure') eq m && strcol('series') eq name ? value : NaN
shift(i) = (i - (words(ours) + 1) / 2.0) * 0.12 # series at the same layer, side by side
set xlabel 'layer, from 0 (the last: output)'
set key at graph 0.5, graph -0.17 center top vertical maxcols 1
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.06,0.98,0.27,0.87 spacing 0.07
set title 'here: 95 % interval, every seed' font ',11'
set ylabel 'aligned layer of the pure MoE'
set xtics 1
set offsets 0.3, 0.3, 0, 0
set xrange [*:*] noextend
do for [m in '"alignment" "same layer"'] {
    plot for [i=1:words(ours)] data using (part('seed', m, word(ours, i), column('x') + shift(i) + 0.05)):(column('y')) with points pointtype 6 pointsize 0.4 linecolor rgb hue(i) notitle, \
        for [i=1:words(ours)] data using (part('mean', m, word(ours, i), column('x') + shift(i))):(column('y')):(column('lo')):(column('hi')) with yerrorbars \
            pointtype mark(word(ours, i), i) linecolor rgb hue(i) notitle, \
        for [i=1:words(ours)] data using (part('mean', m, word(ours, i), column('x') + shift(i))):(column('y')) with linespoints \
            pointtype mark(word(ours, i), i) linecolor rgb hue(i) title (m eq 'alignment' ? word(ours, i) : ''), \
        (m eq 'alignment' ? x : NaN) with lines linecolor rgb '#aaaaaa' dashtype 2 notitle
    unset label 9
    set title 'here: CKA with the same layer' font ',11'
    set ylabel 'linear CKA'
    set yrange [0:1.05]
}
set yrange [*:*]
set xtics auto
set title 'the paper: one pair each, from its figure' font ',11'
set ylabel 'aligned layer of MoE-27B'
plot for [i=1:words(paper)] data using (part('paper', 'alignment', word(paper, i), column('x'))):(column('y')) with linespoints pointtype 3 pointsize 0.6 linecolor rgb hue(i + 3) title word(paper, i), \
    x with lines linecolor rgb '#aaaaaa' dashtype 2 notitle
unset multiplot
