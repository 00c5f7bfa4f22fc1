# SPDX-License-Identifier: LGPL-2.1-or-later
# gnuplot -e "data='FILE'; output='FILE'" cpu-per-gb.gnuplot - the points that report.awk wrote
set terminal svg size 760,460 font 'sans-serif,13' background 'white'
set output output
set logscale xy
set format x '%.0s%c'
set xlabel 'events a second, all CPUs'
set ylabel 'CPU seconds of the recorder per GB'
set yrange [0.05:20]
set grid xtics ytics mytics linecolor '#dddddd'
set key outside right top
set title 'CPU per GB of trace (without what it needs when idle)'
plot for [i=0:4] data index i using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.6 title columnheader(1)
