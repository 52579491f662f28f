# size: 1280 900
dash(name) = strstrt(name, 'emulated') ? 2 : 1
at(panel, name, value) = strcol('panel') eq panel && strcol('series') eq name ? value : NaN
array panels[4] = ['bandwidth', 'overlap', 'budget', 'saturation']
array series[4]
do for [p=1:4] {
    names = ''
    stats data using (strcol('panel') eq panels[p] ? note(strcol('series')) : 0) nooutput
    series[p] = names
}
stats data using (strcol('panel') eq panels[1] ? column('y') : NaN) nooutput name 'B'
array heading[4] = ['Bandwidth: K and table size', 'Overlap: placement layer', 'Budget: rho (1 is the pure MoE)', \
    'Saturation: synthetic hidden states']
array across[4] = ['rows per head (rows)', 'layer before which rows are needed (from 0)', 'rho (no unit)', 'cosine of hidden state and key (no unit)']
array upward[4] = ['gather (GB/s, logical bytes)', 'hidden share of the fetch (no unit)', 'time of a call (µs)', 'gates beyond 0.05 and 0.95 (%)']

unset title
set multiplot title title_text font ',14' noenhanced
set key inside font ',10' opaque
set tmargin 2.5
set bmargin 4
do for [p=1:4] {
    set size 0.49, 0.45
    set origin (p % 2 ? 0.005 : 0.505), (p < 3 ? 0.5 : 0.035)
    set title heading[p] font ',12' noenhanced
    set xlabel across[p]
    set ylabel upward[p]
    unset logscale
    set key maxrows 99
    set format x '%g'
    set format y '%g'
    set autoscale x
    set autoscale xfix
    set yrange [0:*]
    set offsets graph 0.03, graph 0.03, 0, 0
    set xtics autofreq
    if (p == 1) { set logscale x 2; set format x '2^{%L}'; set key right bottom; set offsets graph 0.03, graph 0.03, graph 0.05, 0 }
    # A device reads tens of times as fast as a CPU: both are seen on a logarithmic axis only.
    if (p == 1 && strstrt(series[1], ',')) {
        set key right top maxrows 4; set offsets graph 0.03, graph 0.03, graph 0.4, 0
        set logscale y 10; set yrange [B_min / 2:*]
    }
    if (p == 2) { n = words(series[2]) < 12 ? words(series[2]) : 12; set yrange [-0.03:1 / (0.97 - 0.06 * n)]; set ytics 0, 0.2, 1; set key left top maxrows 12 } else { set ytics autofreq }
    if (p == 3) { set logscale y 10; set yrange [10:*]; set format y '10^{%L}'; set offsets graph 0.03, graph 0.03, graph 0.25, 0; set key right top }
    if (p == 4) { set yrange [0:120]; set ytics 0, 20, 100; set key left top }
    if (p > 1) { unset label 9 }
    unset label 8
    if (words(series[p])) {
        plot for [i=1:words(series[p])] data using (at(panels[p], word(series[p], i), column('x'))):(column('y')):(column('lo')):(column('hi')) \
            with yerrorlines linecolor rgb hue(i) linewidth 1.5 dashtype dash(word(series[p], i)) \
            pointtype mark(word(series[p], i), i) title word(series[p], i)
    } else {
        set label 8 'not measured in this run' at graph 0.5, graph 0.5 center textcolor rgb '#666666'
        unset logscale
        set format x ''
        set format y ''
        plot [0:1] [0:1] NaN notitle
    }
}
unset multiplot
