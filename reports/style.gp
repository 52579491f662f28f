# What all figures share. Loaded by every script after it has set target (svg, png, or any other terminal of
# gnuplot), out, width, height, title_text and footer.

if (target eq 'svg') {
    set terminal svg size width, height dynamic enhanced font 'DejaVu Sans,Helvetica,Arial,sans-serif,13' background '#ffffff'
    set pointsize 0.75
} else { if (target eq 'png') {
    set terminal pngcairo size width * 3 / 2, height * 3 / 2 fontscale 1.5 linewidth 1.5 pointscale 1.3 enhanced font 'DejaVu Sans,10' background '#ffffff'
} else {
    set terminal @target
} }
set output out
set encoding utf8
set datafile separator "\t"
set datafile missing NaN

set title title_text font ',14' noenhanced
set label 9 footer at screen 0.99, screen 9.0 / height right font ',9' textcolor rgb '#666666' noenhanced
set bmargin 5
set border 3 linecolor rgb '#333333'
set tics nomirror out scale 0.6
set grid linecolor rgb '#dddddd' linetype 1 linewidth 0.7
set key outside right top vertical Left reverse samplen 2.5 spacing 1.15 noenhanced
set key autotitle columnheader # the first line of data is its header

# Okabe and Ito's palette: told apart with every kind of colour vision, and in grey.
array colour[8] = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#999999']
hue(i) = colour[1 + (i - 1) % 8]

# Symbols say where a number comes from. Measured ones are filled, simulated ones hollow, imported ones crosses,
# published ones open with a dot: no two kinds share one. A series of another kind than measured says so in its
# name, in parentheses.
array filled[6] = [7, 5, 9, 11, 13, 15]
array hollow[6] = [6, 4, 8, 10, 12, 14]
mark(name, i) = strstrt(name, '(imported)') ? 1 + (i - 1) % 2 : strstrt(name, '(published)') ? 3 : \
    strstrt(name, '(simulated)') ? hollow[1 + (i - 1) % 6] : filled[1 + (i - 1) % 6]

# Ticks of an axis in powers of two, few enough not to touch: set xtics 1, ratio(smallest, largest).
ratio(lo, hi) = hi > 2**17 * lo ? 16 : hi > 2**7 * lo ? 4 : 2

# The different values of a text column, in the order they come, quoted for word(). Use:
#     names = ''
#     stats data using (note(strcol('series'))) nooutput
names = ''
note(s) = strstrt(names, '"' . s . '"') ? 0 : (names = names . '"' . s . '" ', 0)
# value where column `key` is `name`, else missing
only(key, name, value) = strcol(key) eq name ? value : NaN
