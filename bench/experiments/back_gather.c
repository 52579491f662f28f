/* back_gather: what does scatter-add cost with the duplicates of real text, and what do atomic
 * additions cost against sorting? Rows are those of corpus windows, gradients are synthetic. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "bench/experiments/training.h"
#include "kernels/ref/back_gather.h"
#include "kernels/ref/compare.h"

#define EST_NS_PER_VALUE 1.0
#define ROTATED_TOKENS   2048 /* 50 MB of gradients at 24 rows of 256 */
#define CHECKED_ROWS     64

static const EngAxisDef g_axes[] = {
    ENG_AXES_ADDRESS,     ENG_AXIS_ROW_DIMS_DEF,
    ENG_AXIS_CORPUS_DEF,  ENG_AXIS_TOKENS_DEF("512", "tokens per call: a batch, or a micro-batch"),
    ENG_AXIS_THREADS_DEF, ENG_AXIS_VARIANT_DEF("back_gather"),
};

static const EngMetricDef g_metrics[] = {
    ENG_TRAINING_METRICS("row"),
    {"distinct_share", "share", 0, "none", "distinct rows over rows read, mean over windows"},
    {"added_gbps", "GB/s", +1, "cpu", "bytes of gradients read, per CPU time"},
};

typedef struct State {
    EngTraining training;
    float *d_out, *d_rows;
    int64_t *rows_out, n_out;
} State;

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    const EngShape *shape = &touched->shape;
    (void)point;
    *problem = (EngProblem){
        .op = ENG_OP_BACK_GATHER,
        .threads = shape->threads,
        .u.back_gather = {touched->table_rows, shape->row_dims, shape->columns, shape->tokens}};
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    return EST_NS_PER_VALUE * (double)touched->per_window * problem->u.back_gather.row_dims;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    size_t n = (size_t)touched->per_window, dims = (size_t)problem->u.back_gather.row_dims;
    const EngTrainingArray all[] = {
        {offsetof(State, d_out), n * windows, dims, 0, 1, 0},
        {offsetof(State, d_rows), n, dims, 0, 0, 0},
        {offsetof(State, rows_out), n, 1, 0, 0, sizeof(int64_t)},
    };
    memcpy(list, all, sizeof all);
}

static size_t scratch(const EngProblem *problem)
{
    return (size_t)problem->u.back_gather.rows / 4;
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    State *state = opaque;
    const EngTouched *touched = &state->training.touched;
    size_t rows = (size_t)touched->per_window, values = rows * (size_t)touched->shape.row_dims;
    args->u.back_gather = (EngBackGatherArgs){.rows = touched->rows + window * rows,
                                              .row_stride = touched->shape.columns,
                                              .d_out = state->d_out + window * values,
                                              .touched = state->rows_out,
                                              .n_touched = &state->n_out,
                                              .d_rows = state->d_rows};
}

/* All rows by their ids, and the sums of some of them. */
static EngStatus compare(void *opaque, const EngProblem *problem, const EngArgs *all,
                         EngOracle *oracle, EngErr *err)
{
    const State *state = opaque;
    const EngBackGatherProblem *p = &problem->u.back_gather;
    const EngBackGatherArgs *args = &all->u.back_gather;
    const int64_t *want_rows = state->training.touched.lists; /* of window 0 */
    int64_t n = state->training.touched.n[0], times;
    size_t dims = (size_t)p->row_dims;
    double *sum = eng_doubles(oracle, dims), *abs_sum = eng_doubles(oracle, dims);
    EngStatus status = eng_oracle_status(oracle, err);
    oracle->check.n_failed += state->n_out != n;
    for (int64_t i = 0; !status && i < n && i < state->n_out; i++) {
        oracle->check.n_failed += args->touched[i] != want_rows[i];
        if (n > CHECKED_ROWS && i % (n / CHECKED_ROWS)) continue;
        eng_ref_back_gather_row(p, args, want_rows[i], sum, abs_sum, &times);
        for (size_t j = 0; j < dims; j++)
            abs_sum[j] = eng_limit_sum(ENG_F32, sum[j], (double)times, abs_sum[j]).pass;
        eng_oracle_compare(oracle, args->d_rows + (size_t)i * dims, sum, abs_sum, dims);
    }
    oracle->n_outputs = n * (int64_t)dims;
    return status;
}

static double count(void *opaque)
{
    const State *state = opaque;
    return (double)state->training.touched.per_window;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const EngTouched *touched = &((const State *)opaque)->training.touched;
    double rows = (double)touched->per_window, values_read = rows * touched->shape.row_dims;
    values[ENG_TRAINING_N_METRICS] = touched->mean / rows;
    values[ENG_TRAINING_N_METRICS + 1] = values_read * sizeof(float) / eng_cpu_ns(timing);
}

static const EngTrainingKind g_kind = {
    .state_bytes = sizeof(State),
    .touches = true,
    .rotated_tokens = ROTATED_TOKENS,
    .problem = problem_of,
    .estimate_ns = estimate_ns,
    .arrays = arrays,
    .scratch = scratch,
    .args = args_of,
    .compare = compare,
    .count = count,
    .observe = observe,
};

const EngExperiment eng_experiment_back_gather = {
    .name = "back_gather",
    .question = "What does scatter-add cost with the duplicates of real text?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_BACK_GATHER,
    ENG_TRAINING_LIFE(&g_kind),
};
