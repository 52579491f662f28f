# size: 1200 640
stats data using (note(strcol('series'))) nooutput
series = names
names = ''
stats data using (note(strcol('panel'))) nooutput
panels = names
n = words(panels)
at(p, s, m, value) = strcol('panel') eq p && strcol('series') eq s && strcol('part') eq m ? value : NaN
unset title
set multiplot layout 2,n title title_text font ',14' noenhanced margins 0.07,0.8,0.12,0.88 spacing 0.02,0.13
array what[2] = ['gate', 'score']
do for [r=1:2] {
    do for [f=1:n] {
        set title (r == 1 ? word(panels, f) : '') font ',11' noenhanced
        set ylabel (f == 1 ? 'share in a bin (%)' : '')
        set xlabel what[r]
        set logscale y
        set yrange [0.001:100]
        if (f == 1) { set format y '%g' } else { set format y '' }
        if (r == 1) { set xrange [0:1]; set xtics 0.2 } else { set xrange [-4.01:4.01]; set xtics ('-10' -3.0004, '-1' -2.0043, '0' 0, '1' 2.0043, '10' 3.0004) }
        if (r == 1 && f == n) { set key outside right top } else { unset key }
        if (r > 1 || f > 1) { unset label 9 }
        plot for [i=1:words(series)] data using (at(word(panels, f), word(series, i), what[r], column('place'))):(column('percent') > 0 ? column('percent') : 1e-12) \
            with histeps linecolor rgb hue(i) linewidth 1.5 title word(series, i)
    }
}
unset multiplot
