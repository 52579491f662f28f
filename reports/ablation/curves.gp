# size: 1250 480
stats data using (note(strcol('series'))) nooutput
set xlabel 'tokens (millions)'
set xrange [*:*] noextend
unset title
set multiplot layout 1,3 title title_text font ',14' noenhanced margins 0.06,0.82,0.17,0.89 spacing 0.07
unset key
set logscale x
set ylabel 'training loss (nats per token)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('tokens') / 1e6)):(column('loss')) with lines linecolor rgb hue(i) dashtype 1+(i>8) linewidth 1.5 notitle
unset label 9
set ylabel 'the same, less that of pure MoE'
paired = 0
stats data using (column('difference') <= 0 || column('difference') > 0 ? (paired = 1) : NaN) nooutput
if (paired) {
    plot for [i=1:words(names)] data using (only('series', word(names, i), column('tokens') / 1e6)):(column('difference')) with lines linecolor rgb hue(i) dashtype 1+(i>8) linewidth 1.5 notitle
} else { set multiplot next }
unset logscale x
set ylabel 'busiest expert over the mean load'
set logscale y
set ytics (1, 1.2, 1.5, 2, 3, 5, 10, 20)
set key outside right top
plot for [i=1:words(names)] data using (only('series', word(names, i), column('tokens') / 1e6)):(column('load_max')) with lines linecolor rgb hue(i) dashtype 1+(i>8) linewidth 1.5 title word(names, i)
unset multiplot
