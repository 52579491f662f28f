# size: 1160 560
stats data using (note(strcol('series'))) nooutput
stats data using (column('line')) nooutput name 'L'
stats data using (column('start_us')) nooutput name 'A'
stats data using (column('end_us')) nooutput name 'B'
labels = ''
seen = ''
tic(s, n) = strstrt(seen, '"' . s . '"') ? 0 : (seen = seen . '"' . s . '"', labels = labels . sprintf("%s'%s' %g", strlen(labels) ? ', ' : '', s, n), 0)
stats data using (tic(strcol('line_name'), column('line'))) nooutput
set yrange [L_max + 0.7:0.3]
eval('set ytics (' . labels . ') scale 0 font ",10" noenhanced')
set xlabel 'time from the begin of the step (µs); numbers: layers, counted from 0'
set lmargin 22
# One colour a name, in both figures of a step.
fixed = 'window layer project gate hash wait fetch gather conv lookup'
place(s) = sum [k=1:words(fixed)] (word(fixed, k) eq s ? k : 0)
# A border keeps ranges visible that are too short to fill a pixel.
set style fill solid 0.85 border
set xrange [A_min:B_max]
unset grid
set grid xtics linecolor rgb '#dddddd' linetype 1 linewidth 0.7
plot for [i=1:words(names)] data using (0):(only('series', word(names, i), column('line'))):(column('start_us')):(column('end_us')):(column('line') - 0.36):(column('line') + 0.36) \
        with boxxyerror linecolor rgb hue(place(word(names, i))) linewidth 0.8 title word(names, i), \
    data using ((column('start_us') + column('end_us')) / 2):(column('line')):(strcol('label')) \
        with labels center font ',9' textcolor rgb '#ffffff' notitle
