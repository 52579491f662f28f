# size: 1100 480
stats data using (note(strcol('series'))) nooutput
set xlabel 'tokens (millions)'
unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.8,0.17,0.89 spacing 0.08
unset key
set logscale x
set ylabel 'training loss (nats per token)'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('tokens') / 1e6)):(column('loss')) with lines linecolor rgb hue(i) dashtype 1+(i>8) linewidth 1.5 notitle
unset label 9
unset logscale x
set ylabel 'busiest expert over the mean load'
set key outside right top
plot for [i=1:words(names)] data using (only('series', word(names, i), column('tokens') / 1e6)):(column('load_max')) with lines linecolor rgb hue(i) dashtype 1+(i>8) linewidth 1.5 title word(names, i)
unset multiplot
