/* Experiments on training operations: one life for all of them. What each differs in is an
 * EngTrainingKind: the problem that its axes mean, the arrays that it works on, the arguments of a
 * call, and what the oracle makes of the same numbers.
 *
 * Inputs are synthetic, apart from the rows that steps touch, which are those of corpus windows.
 */
#ifndef ENG_EXPERIMENTS_TRAINING_H
#define ENG_EXPERIMENTS_TRAINING_H

#include <stddef.h>

#include "bench/experiments/axes.h"
#include "bench/experiments/support.h"
#include "bench/experiments/touched.h"

typedef struct EngTrainingKind EngTrainingKind;

/* An array of the State: normal numbers, repeating after 2^18, or zeros (mean and deviation 0). */
typedef struct EngTrainingArray {
    size_t at;      /* offsetof(State, the pointer) */
    size_t n, each; /* n * each values */
    double mean, deviation;
    size_t size; /* bytes of a value; 0: a float's, and with numbers it must be one */
} EngTrainingArray;
#define ENG_TRAINING_ARRAYS 16

/* First in the State of every such experiment. */
typedef struct EngTraining {
    const EngTrainingKind *kind;
    EngRunner runner;
    EngTouched touched;                /* empty unless the kind touches rows */
    int64_t windows, next;             /* inputs rotated through; the one used next */
    void *blocks[ENG_TRAINING_ARRAYS]; /* owned */
    size_t block_bytes[ENG_TRAINING_ARRAYS];
    int n_blocks;
    size_t bytes; /* of all blocks */
    double per;   /* the value of the axis that `per` names */
    uint64_t seed;
} EngTraining;

/* ---- comparison with oracles, which take doubles and give worst cases ---- */

#define ENG_ORACLE_PAIRS 64

typedef struct EngOracle {
    double *blocks[32]; /* owned */
    int n_blocks;
    bool failed; /* an allocation did */
    struct {
        const float *got;
        const double *want, *errors;
        size_t n;
    } pairs[ENG_ORACLE_PAIRS];
    int n_pairs;
    EngCheck check;
    int64_t n_outputs; /* of the call, when not all of them are compared; 0: those compared */
} EngOracle;

/* Arrays that live as long as the oracle; NULL when memory fails, which eng_oracle_status tells. */
double *eng_doubles(EngOracle *oracle, size_t n); /* zeros */
double *eng_widened(EngOracle *oracle, const float *from, size_t n);
EngStatus eng_oracle_status(const EngOracle *oracle, EngErr *err);
/* After the kernel's run `got` is compared with `want`, within `errors`. */
void eng_oracle_pair(EngOracle *oracle, const float *got, const double *want, const double *errors,
                     size_t n);
/* The same with arrays of zeros that the caller's oracle fills: want, and *errors. */
double *eng_oracle_want(EngOracle *oracle, const float *got, size_t n, double **errors);
/* Compares at once. */
void eng_oracle_compare(EngOracle *oracle, const float *got, const double *want,
                        const double *errors, size_t n);

/* ---- kinds ---- */

/* Callbacks take the State; those that may be NULL say so. `touched` is that of the point: before
 * set-up its shape, table_rows and per_window alone. */
struct EngTrainingKind {
    size_t state_bytes;
    bool touches;           /* rows of corpus windows */
    int64_t windows;        /* inputs to rotate through; 0: one, or .. */
    int64_t rotated_tokens; /* .. as many as hold so many tokens */
    void (*problem)(const EngPoint *point, const EngTouched *touched, EngProblem *problem);
    /* CPU time of one call, about. */
    double (*estimate_ns)(const EngProblem *problem, const EngTouched *touched);
    /* Into list, at most ENG_TRAINING_ARRAYS; one with n = 0 ends it. */
    void (*arrays)(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list);
    /* Bytes that kernel and oracle take besides; NULL: few. */
    size_t (*scratch)(const EngProblem *problem);
    /* Once the arrays are there: what they hold besides numbers, and what the problem points to.
     * NULL: nothing. */
    EngStatus (*prepare)(void *state, const EngPoint *point, EngProblem *problem, EngErr *err);
    void (*args)(void *state, size_t window, EngArgs *args);
    /* Whether a smaller problem is checked in place of a large one, and which; NULL: never. */
    bool (*few)(void *state, EngProblem *problem, EngArgs *args);
    /* Before the checked run: gradients that are added to set to 0, the oracle's results as pairs.
     * NULL: nothing. */
    EngStatus (*expect)(void *state, const EngProblem *problem, const EngArgs *args,
                        EngOracle *oracle, EngErr *err);
    /* After it, beside the pairs; NULL: nothing. */
    EngStatus (*compare)(void *state, const EngProblem *problem, const EngArgs *args,
                         EngOracle *oracle, EngErr *err);
    /* How many of what ns_per_<per> counts are in one call: an axis, or what a callback says. */
    const char *per;
    double (*count)(void *state);
    /* Metrics after the shared ones; NULL: none. */
    void (*observe)(void *state, const EngTiming *timing, double *values);
};

EngStatus eng_training_check(const EngPoint *point, EngErr *why);
EngStatus eng_training_need(const EngPoint *point, EngNeed *need, EngErr *err);
double eng_training_estimate(const EngPoint *point);
EngStatus eng_training_setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err);
EngStatus eng_training_run(void *state, EngErr *err);
EngStatus eng_training_verify(void *state, EngResidual *residual, EngErr *err);
void eng_training_observe(void *state, const EngTiming *timing, double *values);
void eng_training_teardown(void *state); /* accepts NULL */

/* Fields of an EngExperiment. */
#define ENG_TRAINING_LIFE(kind)                                                                    \
    .family = (kind), .tunables = eng_tunable_placement, .check = eng_training_check,              \
    .need = eng_training_need, .estimate_ns = eng_training_estimate, .setup = eng_training_setup,  \
    .run = eng_training_run, .verify = eng_training_verify, .observe = eng_training_observe,       \
    .teardown = eng_training_teardown

/* Metrics that all have, first in their tables; `per` is what ns_per_<per> counts. */
#define ENG_TRAINING_METRICS(per)                                                                  \
    {"moved_gbps", "GB/s", +1, "cpu", "bytes that must be read and written, per CPU time"},        \
        {"gflops", "Gflop/s", +1, "cpu", "arithmetic (EngKernel.cost) per CPU time"},              \
        {"ns_per_" per, "ns", -1, "cpu", "CPU time per " per},                                     \
        {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},                      \
        {"wall_us", "us", -1, "wall", "wall time of one call"},                                    \
        {"flops", "flop", 0, "none", "arithmetic of one call, from its shape (EngKernel.cost)"},   \
        {"moved_bytes", "B", 0, "none", "bytes one call must read and write, from its shape"},     \
    {                                                                                              \
        "working_set_bytes", "B", 0, "none", "inputs, outputs and state of all windows timed"      \
    }
#define ENG_TRAINING_N_METRICS 8
/* Those that follow from the cost, when a call does this share of what its shape says. */
void eng_training_scale_cost(double *values, double share);
/* Of optimizers, next in their tables. */
#define ENG_STATE_METRIC                                                                           \
    {                                                                                              \
        "state_bytes_per_param", "B", -1, "none",                                                  \
            "memory the optimizer keeps for each weight, beside weight and gradient"               \
    }

#endif
