/* Sweeps: which points to measure, read from a file (sweeps/README.md has the grammar) or from
 * `engram run <experiment> -a axis=values ...`. Reading checks every name, type and range, so that
 * a plan (plan.h) can be expanded without meeting a user's mistake again.
 */
#ifndef ENG_BENCH_SWEEP_H
#define ENG_BENCH_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"
#include "bench/core/experiment.h"
#include "bench/core/where.h"

#define ENG_AXIS_VARIANT "variant" /* the axis that names a kernel variant */
#define ENG_VARIANT_ALL  "all"     /* its value for: every variant that is no roof */
#define ENG_AXIS_BACKEND "backend" /* of experiments that are not of one operation */
#define ENG_AXIS_CORPUS  "corpus"
#define ENG_AXIS_PRESET  "preset"

/* What names may be used: all experiments, and the kernel variants of an operation (eng_kernels;
 * NULL when no experiment has an operation). */
typedef struct EngCatalog {
    const EngExperimentList *experiments;
    const EngKernel *const *(*kernels)(EngOp op, int *n);
} EngCatalog;

/* Traced samples of a point when tracing is asked for without a number; also the least number. */
#define ENG_TRACE_SAMPLES 20

typedef struct EngSweepSettings {
    int pairs;         /* samples per point and segment, 1..10000 */
    int segments;      /* worker lifetimes per block, 1..1000 */
    int64_t budget_ms; /* most wall time the sampling of a block may take, 0: no limit */
    uint64_t seed;     /* of block order, sample order and synthetic inputs */
    /* Shares in hundredths of a percent, 0: off. Points end before all their pairs are taken ... */
    int precision; /* when their intervals are as narrow as this on both sides of the median */
    int settled;   /* when twice the samples narrowed them by less than this */
    int trace;     /* samples of a traced pass of each measured point, 0: none */
} EngSweepSettings;

/* What an empty [sweep] section means. */
extern const EngSweepSettings eng_sweep_defaults;

/* Values of one axis, canonical, without repeats, in the order written. */
typedef struct EngSweepAxis {
    int axis; /* index in experiment->axes */
    EngValue *values;
    int n;
    int zip; /* axes with the same number >= 0 walk in lockstep; -1: on its own */
} EngSweepAxis;

typedef struct EngSweepSection {
    const EngExperiment *experiment;
    const char *label; /* "" when the section has none */
    EngSweepAxis axes[ENG_MAX_AXES];
    int n_axes;                /* only axes that the section names; the last one walks fastest */
    EngWhere *where;           /* NULL: every point */
    const char *where_text;    /* "" when where is NULL */
    int compare;               /* index in experiment->axes, -1 when it has no variant axis */
    EngAxisMask compare_mask;  /* `compare` and any further axes named with it */
    const char *compare_text;  /* their names, "variant,threads"; "" for none */
    EngSweepSettings settings; /* the file's, overridden by the section's */
} EngSweepSection;

typedef struct EngSweep {
    EngArena *arena; /* owns everything below */
    const EngCatalog *catalog;
    const char *source; /* path, or "command line" */
    const char
        *name; /* [sweep] name; the file's name without folder and ending, else the experiment */
    const char *question; /* "" when none is given */
    EngSweepSettings settings;
    EngSweepSection *sections;
    int n_sections;
} EngSweep;

/* Reads a sweep. `assignments` are "axis=values" texts of the command line (-a): each replaces that
 * axis, setting, `where`, `zip` or `compare` in every section that can have it, and at least one
 * section must. The catalog must outlive the sweep. Free with eng_sweep_free.
 * ENG_BAD_DATA / ENG_IO: the file; ENG_USAGE: what it says, naming file, section, key and value.
 */
EngStatus eng_sweep_read(const char *path, const EngCatalog *catalog,
                         const char *const *assignments, int n_assignments, EngSweep **sweep,
                         EngErr *err);
/* The same from memory; `source` is what errors call it. */
EngStatus eng_sweep_parse(const char *text, const char *source, const EngCatalog *catalog,
                          const char *const *assignments, int n_assignments, EngSweep **sweep,
                          EngErr *err);
/* Of how points are measured ("pairs"), not which ("tokens"). */
bool eng_sweep_is_setting(const char *key);
/* A sweep of one experiment from "axis=values" texts alone. */
EngStatus eng_sweep_adhoc(const char *experiment, const EngCatalog *catalog,
                          const char *const *assignments, int n_assignments, EngSweep **sweep,
                          EngErr *err);
void eng_sweep_free(EngSweep *sweep); /* accepts NULL */

/* Adds the effective sweep in the file's own grammar: lists written out, overrides applied,
 * settings explicit. Reading it again gives the same sweep. For the run's row and --dry-run. */
EngStatus eng_sweep_text(const EngSweep *sweep, EngStr *out, EngErr *err);

/* One value of an axis from text ("2^10" and "1024" are one value): canonical text in `arena`,
 * checked against type, range and words. ENG_USAGE names axis and value. */
EngStatus eng_axis_value(const EngCatalog *catalog, const EngExperiment *experiment, int axis,
                         const char *text, EngArena *arena, EngValue *value, EngErr *err);

/* Whether a sweep can name it: characters that print, without those of the grammar; not empty. */
bool eng_word_valid(const char *text);

/* Values of the variant axis that stand for several kernels, roofs never among them: `all` for
 * those whose backend is here, and the name of a backend for its own (without a device they are
 * skipped for that reason). */
bool eng_variant_is_group(const char *text);
bool eng_variant_covers(const char *text, const EngKernel *kernel);

/* Index of an axis by name, -1 when the experiment has none of that name. */
int eng_experiment_axis(const EngExperiment *experiment, const char *axis);

#endif
