/* What experiments on training operations share: arrays of synthetic numbers, a kernel made ready,
 * metrics, and comparison with the oracles, which take doubles and give worst cases.
 */
#ifndef ENG_EXPERIMENTS_TRAINING_H
#define ENG_EXPERIMENTS_TRAINING_H

#include "bench/experiments/axes.h"
#include "bench/experiments/support.h"

#define ENG_TRAINING_ARRAYS 16

typedef struct EngTraining {
    EngRunner runner;
    int64_t windows, next;              /* inputs rotated through; the one used next */
    float *arrays[ENG_TRAINING_ARRAYS]; /* owned */
    size_t array_bytes[ENG_TRAINING_ARRAYS];
    int n_arrays;
    size_t bytes; /* of all arrays */
    uint64_t seed;
} EngTraining;

/* Kernel and settings of the point's `variant` axis into problem, and whether it runs here. */
EngStatus eng_training_check(const EngPoint *point, EngProblem *problem, EngErr *why);
/* The same, and the runner opened; windows >= 1. */
EngStatus eng_training_open(EngTraining *training, const EngPoint *point, EngProblem *problem,
                            int64_t windows, EngErr *err);
void eng_training_close(EngTraining *training);
/* n * each floats, normal with this mean and deviation (0 and 0: zeros), repeating after 2^18;
 * owned by training. */
EngStatus eng_training_array(EngTraining *training, size_t n, size_t each, double mean,
                             double deviation, float **out, EngErr *err);
/* For a kernel of a device, once the arrays have their content: windows are parts of them. */
EngStatus eng_training_cover(EngTraining *training, EngErr *err);
/* The window to use now; the next call gives the next one. */
int64_t eng_training_next(EngTraining *training);

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
/* Of optimizers, next in their tables. */
#define ENG_STATE_METRIC                                                                           \
    {                                                                                              \
        "state_bytes_per_param", "B", -1, "none",                                                  \
            "memory the optimizer keeps for each weight, beside weight and gradient"               \
    }
/* Fills those; `count` of what ns_per_<per> counts, in one call. */
void eng_training_observe(const EngTraining *training, const EngTiming *timing, double count,
                          double *values);

/* ---- comparison with oracles ----
 */

/* Arrays of doubles that live until eng_doubles_free; an allocation that fails gives NULL and sets
 * `failed`. */
typedef struct EngDoubles {
    double *blocks[32];
    int n;
    bool failed;
} EngDoubles;
double *eng_doubles(EngDoubles *doubles, size_t n); /* zeros */
double *eng_widened(EngDoubles *doubles, const float *from, size_t n);
EngStatus eng_doubles_status(const EngDoubles *doubles, EngErr *err);
void eng_doubles_free(EngDoubles *doubles);

/* Adds n elements with their worst cases. */
void eng_training_compare(EngCheck *check, const float *got, const double *want,
                          const double *errors, size_t n);

#endif
