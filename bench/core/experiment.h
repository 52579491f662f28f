/* What an experiment is: one question, its axes, its metrics, and four callbacks. The harness
 * (plan, ledger, runner) knows nothing else of it. Implementations live in bench/experiments/, one
 * file per question.
 *
 * Life of a point inside a worker process: setup -> verify -> (prepare, run, observe) x samples ->
 * teardown. run() is one inner iteration and is all that the timed window holds; the harness
 * repeats it `inner` times, reads the clocks around it and then calls observe() outside the window.
 */
#ifndef ENG_BENCH_EXPERIMENT_H
#define ENG_BENCH_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/kernels.h>
#include <engram/status.h>

#define ENG_MAX_AXES    40
#define ENG_MAX_METRICS 24

typedef uint64_t EngAxisMask; /* a bit per axis */
#define ENG_AXIS_BIT(i) ((EngAxisMask)1 << (i))
_Static_assert(ENG_MAX_AXES <= 64, "axes have a bit each");

typedef enum EngAxisType { ENG_AXIS_INT = 0, ENG_AXIS_REAL, ENG_AXIS_WORD } EngAxisType;

/* An axis: a named knob of an experiment. One table per experiment drives the parser of sweep files
 * and of
 * `-a`, the help text and the documentation. */
typedef struct EngAxisDef {
    const char *name;
    EngAxisType type;
    const char *def;  /* canonical text, where the preset gives none (EngIdentity.axis_default) */
    const char *unit; /* "tokens", "" */
    double min, max;  /* numbers only, inclusive */
    const char *const *words; /* allowed words, NULL-terminated; NULL: any (checked by check()) */
    const char *help;
} EngAxisDef;

typedef struct EngMetricDef {
    const char *name; /* unit in the name where it has one */
    const char *unit;
    int better;        /* +1 more is better, -1 less, 0 neither */
    const char *clock; /* "cpu", "wall" or "none" (counted, not timed) */
    const char *help;
} EngMetricDef;

typedef struct EngExperiment EngExperiment;

typedef struct EngValue {
    const char *text; /* canonical: integers in decimal, reals shortest, words as they are */
    int64_t i;
    double f;
} EngValue;

/* One tuple of axis values, in the order of experiment->axes. Strings belong to the plan. */
typedef struct EngPoint {
    const EngExperiment *experiment;
    EngValue values[ENG_MAX_AXES];
} EngPoint;

/* Value of an axis by name; the name must be one of the experiment's (a broken one asserts). */
const EngValue *eng_point_value(const EngPoint *point, const char *axis);
int64_t eng_point_int(const EngPoint *point, const char *axis);
double eng_point_real(const EngPoint *point, const char *axis);
const char *eng_point_word(const EngPoint *point, const char *axis);

/* What a point needs of the run's shared memory; filled by need() before anything is allocated. */
typedef struct EngNeed {
    bool table; /* a row table of this format ... */
    EngRowFormat row_format;
    int row_dims;             /* ... with rows of so many dims (formats with scales inside rows) */
    size_t table_value_bytes; /* ... of this many bytes of values */
    size_t weight_bytes;      /* fp8 weights [n, k] from the shared weight arena, 0: none */
    size_t private_bytes;     /* an estimate of what the worker allocates besides */
    size_t shared_bytes;      /* ... and what it holds once for all points of this shared_id */
    uint64_t shared_id;       /* not 0 when shared_bytes is not */
    const char *corpus;       /* token stream by corpus name, NULL: none */
    const char *preset;       /* NULL: none */
    int64_t max_tokens;       /* tokens taken from the stream */
} EngNeed;

/* Shared resources of a run, made by the runner before workers are forked and read-only to them:
 * see bench/core/resources.h. */
typedef struct EngResources EngResources;

/* Where setup() finds what it needs. */
typedef struct EngBench {
    const EngResources *resources;
    uint64_t seed; /* of this worker lifetime: synthetic inputs, chosen outputs */
} EngBench;

/* Comparison with the oracle, a row of `residuals`. */
typedef struct EngResidual {
    double max_abs, max_rel, limit; /* limit: what max_rel (or max_abs, see `of`) may be */
    const char *of;                 /* "rel", "abs", "ulp", "exact" */
    int64_t n_checked, n_outputs;
    int64_t n_nonfinite; /* NaN or infinity where the oracle has none, over all outputs */
    bool pass;
    char note[160];
} EngResidual;

/* Times of one sample. cpu_ns is the largest CPU time any thread of the team spent in the window;
 * of a sample that launched work on a device, the device's time between events around the window.
 */
typedef struct EngTiming {
    int64_t inner, wall_ns, cpu_ns;
    double launches; /* on a device, of all inner iterations; 0: none */
} EngTiming;

/* Receives one histogram row set: counts[n_bins] over [lo, hi] in `scale`: "linear", or
 * "signed_log", whose bins are equal steps of y = copysign(log10(1 + 100 |x|), x) between y(lo) and
 * y(hi). */
typedef void (*EngHistogramSink)(void *context, const char *name, int layer, int stream,
                                 const char *scale, double lo, double hi, const int64_t *counts,
                                 int n_bins);

/* An axis that changes how fast a point is and not what it computes: `engram tune` searches it.
 * values: a list as in a sweep, or ENG_TUNE_CORES: 1, 2, 4 .. and as many as there are CPUs; NULL:
 * its default, unless the user names several. Names that the experiment lacks are passed over. */
#define ENG_TUNE_CORES "cores"
typedef struct EngTunableAxis {
    const char *axis, *values;
} EngTunableAxis;

struct EngExperiment {
    const char *name;     /* also its verb on the command line: engram run <name> */
    const char *question; /* one sentence for `engram list` */
    const EngAxisDef *axes;
    int n_axes;
    const EngMetricDef *metrics;
    int n_metrics;
    int op;                         /* EngOp whose variants the `variant` axis names, or -1 */
    const EngTunableAxis *tunables; /* ends with an axis NULL; NULL: none */
    bool counted;                   /* deterministic counts: one sample, no clock, no pairs */
    bool once;          /* a window is one run(): what prepare() puts there is used up by it */
    const void *family; /* what experiments that share callbacks differ in; theirs alone to read */

    /* ENG_OK; ENG_UNSUPPORTED with the reason (a skipped row); ENG_USAGE for a value no machine
     * could run. Cheap and free of allocation beyond the stack: it runs for every point of a plan.
     */
    EngStatus (*check)(const EngPoint *point, EngErr *why);
    EngStatus (*need)(const EngPoint *point, EngNeed *need, EngErr *err);
    /* Estimated nanoseconds of one run(), for the ETA and the order of blocks. */
    double (*estimate_ns)(const EngPoint *point);
    EngStatus (*setup)(const EngBench *bench, const EngPoint *point, void **state, EngErr *err);
    /* Before each timed window, and outside it: puts the machine into the state that the point is
     * about (a file out of the page cache). NULL: nothing to do. */
    EngStatus (*prepare)(void *state, EngErr *err);
    EngStatus (*run)(void *state, EngErr *err);
    /* Runs once and compares with the oracle. NULL only for experiments that are oracles
     * themselves. */
    EngStatus (*verify)(void *state, EngResidual *residual, EngErr *err);
    /* Metric values of the sample just timed, in the order of metrics; NAN: not observed. */
    void (*observe)(void *state, const EngTiming *timing, double *values);
    /* Histograms of the outputs of the last run; may be NULL. */
    EngStatus (*histograms)(void *state, EngHistogramSink sink, void *context, EngErr *err);
    void (*teardown)(void *state); /* accepts NULL */
};

/* NULL-terminated list of all experiments; defined in bench/experiments/experiments.c and handed
 * down by the command line, since the core may not know it. */
typedef struct EngExperimentList {
    const EngExperiment *const *items;
    int n;
    /* For whoever looks here for an experiment of another verb: its name (NULL: any that is not
     * here), and what is said instead of a guess. */
    const char *elsewhere, *hint;
} EngExperimentList;

/* ENG_USAGE with the nearest name. */
EngStatus eng_experiment_find(const EngExperimentList *list, const char *name,
                              const EngExperiment **out, EngErr *err);

#endif
