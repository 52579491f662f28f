# size: 960 500
stats data using (note(strcol('series'))) nooutput
stats data using (column('cache_bytes') / 2**20) nooutput name 'C'
set logscale x 2
set format x '%g'
stats data using (column('gbps')) nooutput name 'G'
stats data using (strcol('backend') eq 'cpu' ? NaN : column('gbps')) nooutput name 'D'
set yrange [0:*]
# A device reads tens of times as fast as a CPU: both are seen on a logarithmic axis only.
if (exists('D_records') && D_records > 0) { set logscale y 10; set yrange [G_min / 2:*] }
set offsets graph 0.02, graph 0.02, 0, 0
set xlabel 'working set (MiB)'
set ylabel 'gather bandwidth (GB/s, logical bytes)'
if (exists('C_records') && C_records > 0) {
    set arrow 1 from C_min, graph 0 to C_min, graph 1 nohead dashtype 3 linewidth 1.5 linecolor rgb '#444444'
    set label 1 'last-level cache' at C_min, graph 0.98 rotate by 90 right offset character -0.8,0 font ',10' textcolor rgb '#444444'
}
is_roof(name) = substr(name, 1, 4) eq 'roof'
plot for [i=1:words(names)] data using (only('series', word(names, i), column('working_set_bytes') / 2**20)):(column('gbps')):(column('gbps_lo')):(column('gbps_hi')) \
    with yerrorlines linecolor rgb (word(names, i) eq 'roof' ? '#444444' : hue(i)) linewidth 1.6 dashtype is_roof(word(names, i)) ? 2 : 1 pointtype mark(word(names, i), i) title word(names, i)
