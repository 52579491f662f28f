/* Between the files that read a sweep (sweep.c, sweep_ini.c, sweep_values.c); no one else needs it.
 */
#ifndef ENG_BENCH_SWEEP_PARTS_H
#define ENG_BENCH_SWEEP_PARTS_H

#include "bench/core/sweep.h"

/* The longest line of a sweep file: inih cuts longer ones into pieces, so they are refused. Values
 * may go on over several lines, each further one indented. */
#define ENG_SWEEP_LINE_BYTES    195
#define ENG_SWEEP_SECTION_BYTES 47

/* "key = value" of a section; line 0: from the command line. */
typedef struct EngSweepEntry {
    const char *key, *value;
    int line;
    struct EngSweepEntry *next;
} EngSweepEntry;

typedef struct EngSweepRaw {
    const char *name; /* without brackets */
    int line;
    EngSweepEntry *entries; /* in order */
    struct EngSweepRaw *next;
} EngSweepRaw;

/* Sections of an INI text in order, headings without keys included. */
EngStatus eng_sweep_ini(const char *text, const char *source, EngArena *arena, EngSweepRaw **raw,
                        EngErr *err);

/* Values of a list ("1,4,2^10:2^20:x4"), repeats kept. */
EngStatus eng_axis_values(const EngCatalog *catalog, const EngExperiment *experiment, int axis,
                          const char *text, EngArena *arena, EngValue **values, int *n,
                          EngErr *err);

/* "; did you mean 'x'?" into `out`, or nothing. */
const char *eng_sweep_hint(const char *name, const char *const *candidates, size_t n, char *out,
                           size_t size);

#endif
