/* Drawing: gnuplot is started with a script file and arguments, never through a shell.
 */
#ifndef ENG_REPORTS_PLOT_H
#define ENG_REPORTS_PLOT_H

#include <engram/status.h>

/* Draws <dir>/<name>.gp into <dir>/<name>.svg and .png, each through a temporary name, so that a
 * picture that is there is whole. The script must end in the preamble's contract
 * (reports/style.gp): it draws to `out` in format `target`. ENG_IO with gnuplot's own words when it
 * is missing or fails. ENG_GNUPLOT in the environment names another program. */
EngStatus eng_plot(const char *dir, const char *name, EngErr *err);

#endif
