# size: 1200 900
stats data using (note(strcol('series'))) nooutput
series = names
names = ''
stats data using (note(strcol('panel'))) nooutput
panels = names
n = words(panels)
at(p, s, m, value) = strcol('panel') eq p && strcol('series') eq s && strcol('measure') eq m ? value : NaN
stats data using (strcol('measure') eq 'slope' ? column('value') : NaN) nooutput name 'S'
stats data using (strcol('measure') eq 'saturated05' ? column('value') : NaN) nooutput name 'C'
stats data using (column('place')) nooutput name 'K'
unset title
set multiplot layout 3,n title title_text font ',14' noenhanced margins 0.07,0.885,0.1,0.9 spacing 0.02,0.045
set xrange [0.6:K_max + 0.6]
array what[3] = ['mean', 'saturated05', 'slope']
array label[3] = ['mean gate', 'beyond [0.05, 0.95] (%)', 'mean d(gate)/d(score)']
do for [r=1:3] {
    do for [f=1:n] {
        set title (r == 1 ? word(panels, f) : '') font ',11' noenhanced
        set ylabel (f == 1 ? label[r] : '')
        if (r < 3) { set xtics format ''; set xlabel '' } else { set xtics format '%h'; set xlabel 'share of training done (%)' font ',11' }
        if (r == 1) { set yrange [0:1] } else { set yrange [0:C_max > 0 ? C_max * 1.15 : 1] }
        if (f == 1) { set format y '%g' } else { set format y '' }
        if (r == 3) { set yrange [0:S_max * 1.2] }
        if (r == 1 && f == n) { set key outside right top } else { unset key }
        if (r > 1 || f > 1) { unset label 9 }
        tics = ''
        stats data using (strstrt(tics, sprintf("' %d,", column('place'))) ? 0 : (tics = tics . sprintf("'%d' %d,", column('step'), column('place')), 0)) nooutput
        if (r == 3) { eval 'set xtics (' . tics . ')' }
        plot for [i=1:words(series)] data using (at(word(panels, f), word(series, i), what[r], column('place') + 0.08 * (i - 1))):(column('value')):(column('lo')):(column('hi')) \
            with yerrorbars pointtype mark(word(panels, f), i) pointsize 0.5 linecolor rgb hue(i) notitle, \
            for [i=1:words(series)] data using (at(word(panels, f), word(series, i), what[r], column('place') + 0.08 * (i - 1))):(column('value')) \
            with linespoints pointtype mark(word(panels, f), i) pointsize 0.5 linecolor rgb hue(i) title word(series, i)
    }
}
unset multiplot
