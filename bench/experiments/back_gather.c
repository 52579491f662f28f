/* back_gather: what does scatter-add cost with the duplicates of real text, and what do atomic
 * additions cost against sorting? Rows are those of corpus windows, gradients are synthetic. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/mem.h"
#include "bench/experiments/touched.h"
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
    EngTouched touched;
    float *d_out, *d_rows;
    int64_t *rows_out, n_out;
    size_t window;
} State;

static EngProblem problem_of(const EngShape *shape, int64_t table_rows)
{
    return (EngProblem){
        .op = ENG_OP_BACK_GATHER,
        .threads = shape->threads,
        .u.back_gather = {table_rows, shape->row_dims, shape->columns, shape->tokens}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    int64_t table_rows;
    EngStatus status = eng_touched_shape(point, &shape, &table_rows, why);
    if (status) return status;
    EngProblem problem = problem_of(&shape, table_rows);
    return eng_training_check(point, &problem, why);
}

static int64_t windows_of(const EngShape *shape)
{
    return (ROTATED_TOKENS + shape->tokens - 1) / shape->tokens;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    int64_t table_rows;
    EngStatus status = eng_touched_shape(point, &shape, &table_rows, err);
    if (status) return status;
    size_t values = (size_t)shape.tokens * (size_t)shape.k;
    eng_touched_need(point, &shape, windows_of(&shape), need);
    need->private_bytes +=
        values * sizeof(float) * ((size_t)windows_of(&shape) + 1) + (size_t)table_rows / 4;
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    return EST_NS_PER_VALUE * (double)shape.tokens * (double)shape.k / shape.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_training_close(&state->training);
    eng_touched_destroy(&state->touched);
    eng_free(state->rows_out);
    eng_free(state);
}

static EngStatus make_arrays(State *state, EngErr *err)
{
    const EngShape *shape = &state->touched.shape;
    size_t n = (size_t)state->touched.per_window, dims = (size_t)shape->row_dims;
    state->window = n * dims;
    EngStatus status = eng_training_array(&state->training, n * (size_t)windows_of(shape), dims, 0,
                                          1, &state->d_out, err);
    if (!status) status = eng_training_array(&state->training, n, dims, 0, 0, &state->d_rows, err);
    if (!status)
        status = eng_alloc_or((void **)&state->rows_out, n, sizeof *state->rows_out, "rows", err);
    return status;
}

static EngStatus cover(State *state, EngErr *err)
{
    EngRunner *runner = &state->training.runner;
    size_t n = (size_t)state->touched.per_window, windows = (size_t)state->training.windows;
    EngStatus status = eng_training_cover(&state->training, err);
    return status
               ? status
               : eng_runner_cover(runner, state->touched.rows, windows * n * sizeof(int64_t), err);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngShape shape;
    int64_t table_rows;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "scatter-add", err);
    if (status) return status;
    state->training.seed = bench->seed;
    status = eng_touched_shape(point, &shape, &table_rows, err);
    if (!status)
        status = eng_touched_create(&state->touched, bench, point, windows_of(&shape), err);
    if (!status) status = make_arrays(state, err);
    if (!status) {
        EngProblem problem = problem_of(&shape, table_rows);
        status = eng_training_open(&state->training, point, &problem, windows_of(&shape), err);
        if (!status) status = cover(state, err);
    }
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(State *state, size_t window)
{
    EngArgs args;
    args.u.back_gather = (EngBackGatherArgs){.rows = state->touched.rows +
                                                     window * (size_t)state->touched.per_window,
                                             .row_stride = state->touched.shape.columns,
                                             .d_out = state->d_out + window * state->window,
                                             .touched = state->rows_out,
                                             .n_touched = &state->n_out,
                                             .d_rows = state->d_rows};
    return args;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngArgs args = args_of(state, (size_t)eng_training_next(&state->training));
    return eng_runner_run(&state->training.runner, &args, err);
}

/* All rows by their ids, and the sums of some of them. */
static EngStatus compare(State *state, const EngBackGatherArgs *args, EngCheck *check, EngErr *err)
{
    const EngBackGatherProblem *p = &state->training.runner.problem.u.back_gather;
    const int64_t *want_rows = state->touched.lists; /* of window 0 */
    int64_t n = state->touched.n[0], times;
    size_t dims = (size_t)p->row_dims;
    EngDoubles d = {0};
    double *sum = eng_doubles(&d, dims), *abs_sum = eng_doubles(&d, dims);
    EngStatus status = eng_doubles_status(&d, err);
    check->n_failed += state->n_out != n;
    for (int64_t i = 0; !status && i < n && i < state->n_out; i++) {
        check->n_failed += args->touched[i] != want_rows[i];
        if (n > CHECKED_ROWS && i % (n / CHECKED_ROWS)) continue;
        eng_ref_back_gather_row(p, args, want_rows[i], sum, abs_sum, &times);
        for (size_t j = 0; j < dims; j++)
            abs_sum[j] = eng_limit_sum(ENG_F32, sum[j], (double)times, abs_sum[j]).pass;
        eng_training_compare(check, args->d_rows + (size_t)i * dims, sum, abs_sum, dims);
    }
    check->n_outputs = n * (int64_t)dims;
    eng_doubles_free(&d);
    return status;
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngArgs args = args_of(state, 0);
    EngStatus status = eng_runner_run_whole(&state->training.runner, &args, err);
    if (eng_kernel_unchecked(state->training.runner.kernel)) {
        eng_residual_of_roof(residual);
        return status;
    }
    if (!status) status = compare(state, &args.u.back_gather, &sum, err);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    double rows = (double)state->touched.per_window;
    eng_training_observe(&state->training, timing, rows, values);
    values[ENG_TRAINING_N_METRICS] = state->touched.mean / rows;
    values[ENG_TRAINING_N_METRICS + 1] = (double)state->window * sizeof(float) / eng_cpu_ns(timing);
}

const EngExperiment eng_experiment_back_gather = {
    .name = "back_gather",
    .question = "What does scatter-add cost with the duplicates of real text?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_BACK_GATHER,
    .tunables = eng_tunable_placement,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
