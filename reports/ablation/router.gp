# size: 1150 560
stats data using (strcol('axis') eq 'bias_step' ? note(strcol('series')) : NaN) nooutput
steps = names
names = ''
stats data using (strcol('axis') eq 'lr' ? note(strcol('series')) : NaN) nooutput
rates = names
part(p, a, name, value) = strcol('part') eq p && strcol('axis') eq a && strcol('series') eq name ? value : NaN
bad(a, name, value) = part('seed', a, name, column('collapsed') > 0 ? value : NaN)
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.08,0.98,0.32,0.89 spacing 0.09
set logscale x
set xrange [*:*] noextend
set offsets graph 0.05, graph 0.05, 0, 0
tick(x) = (strstrt(ticks, sprintf('%g,', x)) ? 0 : (ticks = ticks . (ticks eq '' ? '' : ' ') . sprintf('%g,', x)), 1)
ticks = ''
stats data using (strcol('axis') eq 'lr' ? tick(column('x')) : NaN) nooutput
of_rates = ticks
ticks = ''
stats data using (strcol('axis') eq 'bias_step' ? tick(column('x')) : NaN) nooutput
cut(list) = list[1:strlen(list) - 1]
if (strlen(ticks)) { eval 'set xtics (' . cut(ticks) . ')' }
set key at graph 0.5, graph -0.17 center top vertical maxcols 1 font ',10'
set xlabel 'bias step'
set ylabel 'loss less the mean over the axis (nats)'
if (words(steps)) {
    plot for [i=1:words(steps)] data using (part('seed', 'bias_step', word(steps, i), column('x'))):(column('difference')) with points \
            pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
        for [i=1:words(steps)] data using (part('mean', 'bias_step', word(steps, i), column('x'))):(column('difference')) with linespoints \
            pointtype mark(word(steps, i), i) linecolor rgb hue(i) title word(steps, i), \
        for [i=1:words(steps)] data using (bad('bias_step', word(steps, i), column('x'))):(column('difference')) with points pointtype 2 \
            pointsize 1.4 linecolor rgb '#000000' notitle
    unset label 9
    unset key
    set ylabel 'busiest expert over the mean load'
    plot for [i=1:words(steps)] data using (part('seed', 'bias_step', word(steps, i), column('x'))):(column('load_max')) with points \
            pointtype 6 pointsize 0.5 linecolor rgb hue(i) notitle, \
        for [i=1:words(steps)] data using (part('mean', 'bias_step', word(steps, i), column('x'))):(column('load_max')) with linespoints \
            pointtype mark(word(steps, i), i) linecolor rgb hue(i) notitle
    set key at graph 0.5, graph -0.17 center top vertical maxcols 1 font ',10'
    set ylabel 'loss less the mean over the axis (nats)'
}
set xlabel 'learning rate'
if (words(rates)) { # other series than on the left: no hue twice
    eval 'set xtics (' . cut(of_rates) . ')'
    plot for [i=1:words(rates)] data using (part('seed', 'lr', word(rates, i), column('x'))):(column('difference')) with points \
            pointtype 6 pointsize 0.5 linecolor rgb hue(words(steps) + i) notitle, \
        for [i=1:words(rates)] data using (part('mean', 'lr', word(rates, i), column('x'))):(column('difference')) with linespoints \
            pointtype mark(word(rates, i), i) linecolor rgb hue(words(steps) + i) title word(rates, i)
}
unset multiplot
