# size: 1000 480
stats data using (note(strcol('series'))) nooutput
set palette defined (0 '#ffffff', 1 '#0072b2')
set cbrange [0:1]
set cblabel 'linear CKA'
set xtics 1
set ytics 1
set size ratio 1
set autoscale xfix
set autoscale yfix
unset grid
unset key
unset title
set xlabel 'layer, from 0 (the last: output)'
set ylabel 'layer of the pure MoE'
set multiplot layout 1,2 title title_text font ',14' noenhanced margins 0.06,0.9,0.17,0.87 spacing 0.12
do for [i=1:words(names)] {
    set title word(names, i) font ',11'
    plot data using (only('series', word(names, i), column('layer'))):(column('reference')):(column('cka')) with image, \
        data using (only('series', word(names, i), column('layer'))):(column('reference')):(sprintf('%.2f', column('cka'))) with labels font ',9' notitle
    unset label 9
}
unset multiplot
