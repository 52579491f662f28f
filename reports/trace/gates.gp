# size: 1100 480
stats data using (note(strcol('series'))) nooutput
series = names
names = ''
stats data using (note(strcol('panel'))) nooutput
panels = names
n = words(panels)
stats data using (column('percent')) nooutput name 'P'
stats data using (column('percent') > 0 ? column('percent') : NaN) nooutput name 'Q'
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN

unset title
set multiplot layout 1,n title title_text font ',14' noenhanced margins 0.085,0.87,0.17,0.83 spacing 0.03
set xrange [0:1]
set xtics 0.2
set logscale y 10
set yrange [10**(Q_min < 0.001 ? -3 : floor(log10(Q_min * 0.999))):10**ceil(log10(P_max))]
set format y '%g'
set xlabel 'gate (no unit)'
unset key
do for [f=1:n] {
    set title word(panels, f) font ',12'
    if (f == 1) { set ylabel 'share of gates in a bin (%)' }
    if (f > 1) { set ylabel ''; set format y ''; unset label 9 }
    if (f == n) { set key outside right top }
    # Wider lines below: what lies on each other stays visible.
    plot for [i=1:words(series)] data using (at(word(panels, f), word(series, i), column('gate'))):(column('percent') > 0 ? column('percent') : 1e-12) \
        with histeps linecolor rgb hue(i) linewidth 1.3 + 0.6 * (words(series) - i) title word(series, i)
}
unset multiplot
