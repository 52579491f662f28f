# size: 1200 900
set datafile commentschars ''
stats data using (note(strcol('series'))) nooutput
series = names
names = ''
stats data using (note(strcol('panel'))) nooutput
panels = names
n = words(panels)
dash(i) = 2 * i > words(series) + 1 ? 2 : 1
at(p, s, value) = strcol('panel') eq p && strcol('series') eq s ? value : NaN
unset title
set multiplot layout 3,2 title title_text font ',14' noenhanced margins 0.06,0.84,0.11,0.9 spacing 0.05,0.13
set xrange [-0.6:11.6]
set ylabel 'gate'
do for [f=1:n] {
    set yrange [*:*] # stats minds it
    tics = ''
    stats data using (strcol('panel') eq word(panels, f) && strcol('series') eq word(series, 1) ? (tics = tics . sprintf("'%s' %d,", strcol('token'), column('place')), 0) : NaN) nooutput
    stats data using (strcol('panel') eq word(panels, f) && column('inside') > 0 ? column('place') : NaN) nooutput name 'P'
    set object 1 rectangle from P_min - 0.5,0 to P_max + 0.5,1 fillcolor rgb '#f3e9c8' fillstyle solid noborder behind
    eval 'set xtics (' . tics . ') rotate by 35 right font ",10" noenhanced'
    set yrange [0:1]
    set title word(panels, f) font ',11' noenhanced
    if (f == 2) { set key outside right top } else { unset key }
    if (f > 1) { unset label 9 }
    plot for [i=1:words(series)] data using (at(word(panels, f), word(series, i), column('place'))):(column('gate')) with linespoints \
        linecolor rgb hue(i) pointtype 7 pointsize 0.4 dashtype dash(i) title word(series, i)
}
unset multiplot
