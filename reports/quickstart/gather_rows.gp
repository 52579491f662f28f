# size: 1160 520
stats data using (note(strcol('series'))) nooutput
stats data using (column('gbps')) nooutput name 'G'
stats data using (column('roof_gbps')) nooutput name 'R'
stats data using (column('cache_bytes') / 2**20) nooutput name 'C'
stats data using (column('rows_per_head')) nooutput name 'X'
stats data using (column('working_set_bytes') / 2**20) nooutput name 'W'
has_roof = exists('R_records') && R_records > 0
has_cache = exists('C_records') && C_records > 0
top = 1.12 * (has_roof && R_max > G_max ? R_max : G_max)

unset title
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.07,0.78,0.17,0.89 spacing 0.05
set yrange [0:top]
# A device reads tens of times as fast as a CPU: both are seen on a logarithmic axis only.
if (strstrt(names, ',')) { set logscale y 10; set yrange [G_min / 2:1.5 * top] }
set logscale x 2
set ylabel 'gather bandwidth (GB/s, logical bytes)'
set xlabel 'rows per head (rows)'
set format x '2^{%L}'
set offsets graph 0.03, graph 0.03, 0, 0
set xtics 1, ratio(X_min, X_max)
unset key
plot for [i=1:words(names)] data using (only('series', word(names, i), column('rows_per_head'))):(column('roof_gbps')) \
        with lines linecolor rgb hue(i) linewidth 1.5 dashtype 2 notitle, \
    for [i=1:words(names)] data using (only('series', word(names, i), column('rows_per_head'))):(column('gbps')):(column('gbps_lo')):(column('gbps_hi')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) notitle

unset label 9
set ylabel ''
set format y ''
set xlabel 'working set (MiB)'
set format x '%g'
set xtics 1, ratio(W_min, W_max)
set key outside right top
if (has_cache) {
    cache_label = ''
    stats data using (cache_label = strcol('cache_label'), 0) nooutput
    set arrow 1 from C_min, graph 0 to C_min, graph 1 nohead dashtype 3 linewidth 1.5 linecolor rgb '#444444'
}
plot for [i=1:words(names)] data using (only('series', word(names, i), column('working_set_bytes') / 2**20)):(column('gbps')):(column('gbps_lo')):(column('gbps_hi')) \
        with yerrorlines linecolor rgb hue(i) linewidth 1.5 pointtype mark(word(names, i), i) title word(names, i), \
    for [i=1:words(names)] data using (only('series', word(names, i), column('working_set_bytes') / 2**20)):(column('roof_gbps')) \
        with lines linecolor rgb hue(i) linewidth 1.5 dashtype 2 notitle, \
    keyentry with lines linecolor rgb '#444444' linewidth 1.5 dashtype 2 title 'roof (same colour)', \
    keyentry with lines linecolor rgb has_cache ? 0x444444 : 0xffffff linewidth 1.5 dashtype 3 title has_cache ? sprintf('%s: %.3g MiB', cache_label, C_min) : ' '
unset multiplot
