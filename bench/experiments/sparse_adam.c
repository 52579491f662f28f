/* sparse_adam: what does Adam on the touched rows of a table cost, and what does it keep? Rows are
 * those of corpus windows, one window a step; gradients are synthetic. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/mem.h"
#include "bench/experiments/touched.h"
#include "bench/experiments/training.h"
#include "kernels/ref/optimizers.h"

#define EST_NS_PER_WEIGHT 1.0
#define WINDOWS           32
#define CHECKED_ROWS      64
#define RATE              5e-3f

static const EngAxisDef g_axes[] = {
    {"preset", ENG_AXIS_WORD, "laptop", "", 0, 0, NULL,
     "published or laptop-scale configuration: layers, vocabulary"},
    ENG_AXIS_LAYER_DEF,
    ENG_AXIS_ORDERS_DEF,
    ENG_AXIS_HEADS_DEF,
    ENG_AXIS_ROWS_DEF,
    ENG_AXIS_ROW_DIMS_DEF,
    ENG_AXIS_CORPUS_DEF,
    ENG_AXIS_TOKENS_DEF("512", "tokens of a step's batch"),
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_VARIANT_DEF("sparse_adam"),
};

static const EngMetricDef g_metrics[] = {
    ENG_TRAINING_METRICS("row"),
    ENG_STATE_METRIC,
    {"touched_rows", "rows", 0, "none", "distinct rows of a step, mean over windows"},
    {"touched_share", "share", 0, "none", "of the table's rows"},
};

typedef struct State {
    EngTraining training;
    EngTouched touched;
    float *w, *grad, *m, *v;
    int32_t *row_steps; /* [table rows] */
    int64_t step;
} State;

static EngProblem problem_of(const EngShape *shape, int64_t table_rows)
{
    return (EngProblem){.op = ENG_OP_SPARSE_ADAM,
                        .threads = shape->threads,
                        .u.sparse_adam = {table_rows, shape->row_dims, 0.9f, 0.95f, 1e-20f}};
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

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    int64_t table_rows;
    EngStatus status = eng_touched_shape(point, &shape, &table_rows, err);
    if (status) return status;
    size_t values = (size_t)shape.row_dims * sizeof(float);
    eng_touched_need(point, &shape, WINDOWS, need);
    need->private_bytes +=
        values * (3 * (size_t)table_rows + (size_t)shape.tokens * (size_t)shape.columns);
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    return EST_NS_PER_WEIGHT * (double)shape.tokens * (double)shape.k / shape.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_training_close(&state->training);
    eng_touched_destroy(&state->touched);
    eng_free(state->row_steps);
    eng_free(state);
}

static EngStatus make_arrays(State *state, EngErr *err)
{
    EngTraining *t = &state->training;
    size_t rows = (size_t)state->touched.table_rows;
    size_t dims = (size_t)state->touched.shape.row_dims;
    EngStatus status = eng_training_array(t, rows, dims, 0, 0.1, &state->w, err);
    if (!status) status = eng_training_array(t, rows, dims, 0, 0, &state->m, err);
    if (!status) status = eng_training_array(t, rows, dims, 0, 0, &state->v, err);
    if (!status)
        status =
            eng_training_array(t, (size_t)state->touched.largest, dims, 0, 1e-3, &state->grad, err);
    if (!status)
        status = eng_alloc_or((void **)&state->row_steps, rows, sizeof *state->row_steps,
                              "steps of rows", err);
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "optimizer", err);
    if (status) return status;
    state->training.seed = bench->seed;
    status = eng_touched_create(&state->touched, bench, point, WINDOWS, err);
    if (!status) status = make_arrays(state, err);
    if (!status) {
        EngProblem problem = problem_of(&state->touched.shape, state->touched.table_rows);
        status = eng_training_open(&state->training, point, &problem, WINDOWS, err);
    }
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(State *state, int64_t window)
{
    EngArgs args;
    const EngTouched *touched = &state->touched;
    args.u.sparse_adam =
        (EngSparseAdamArgs){.w = state->w,
                            .touched = touched->lists + window * touched->per_window,
                            .n_touched = touched->n[window],
                            .grad = state->grad,
                            .m = state->m,
                            .v = state->v,
                            .row_steps = state->row_steps,
                            .rate = RATE,
                            .step = ++state->step};
    return args;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngArgs args = args_of(state, eng_training_next(&state->training));
    return eng_runner_run(&state->training.runner, &args, err);
}

/* Some touched rows one after the other, as a table of their own. */
typedef struct Sample {
    EngDoubles d;
    double *w, *grad, *m, *v, *errors;
    float *got;
    int64_t rows[CHECKED_ROWS], order[CHECKED_ROWS];
    int32_t steps[CHECKED_ROWS];
    int64_t n;
} Sample;

static EngStatus take_sample(const State *state, const EngSparseAdamArgs *args, Sample *s,
                             EngErr *err)
{
    size_t dims = (size_t)state->touched.shape.row_dims;
    double **all[] = {&s->w, &s->grad, &s->m, &s->v, &s->errors};
    s->n = args->n_touched < CHECKED_ROWS ? args->n_touched : CHECKED_ROWS;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = eng_doubles(&s->d, (size_t)s->n * dims);
    EngStatus status = eng_doubles_status(&s->d, err);
    for (int64_t i = 0; !status && i < s->n; i++) {
        int64_t at = i * (args->n_touched / s->n);
        s->rows[i] = args->touched[at];
        s->order[i] = i;
        s->steps[i] = args->row_steps[s->rows[i]];
        for (size_t j = 0; j < dims; j++) {
            size_t to = (size_t)i * dims + j, from = (size_t)s->rows[i] * dims + j;
            s->w[to] = args->w[from];
            s->m[to] = args->m[from];
            s->v[to] = args->v[from];
            s->grad[to] = args->grad[(size_t)at * dims + j];
        }
    }
    return status;
}

static void compare(const State *state, Sample *s, EngCheck *check)
{
    EngSparseAdamProblem p = state->training.runner.problem.u.sparse_adam;
    size_t dims = (size_t)p.row_dims;
    p.rows = s->n;
    eng_ref_sparse_adam(&p, s->w, s->order, s->n, s->grad, s->m, s->v, s->steps, RATE, state->step,
                        s->errors);
    for (int64_t i = 0; i < s->n; i++)
        eng_training_compare(check, state->w + (size_t)s->rows[i] * dims, s->w + (size_t)i * dims,
                             s->errors + (size_t)i * dims, dims);
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    Sample sample = {0};
    EngArgs args = args_of(state, 0);
    EngStatus status = take_sample(state, &args.u.sparse_adam, &sample, err);
    if (!status) status = eng_runner_run(&state->training.runner, &args, err);
    if (eng_kernel_unchecked(state->training.runner.kernel)) {
        eng_residual_of_roof(residual);
    } else if (!status) {
        compare(state, &sample, &sum);
        sum.n_outputs = args.u.sparse_adam.n_touched * state->touched.shape.row_dims;
        eng_residual_of_check(&sum, "rel", residual);
    }
    eng_doubles_free(&sample.d);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const EngTouched *touched = &state->touched;
    double share = touched->mean / (double)touched->table_rows;
    eng_training_observe(&state->training, timing, touched->mean, values);
    for (int i = 0; i < 2; i++) values[i] *= share; /* the cost is that of a whole table */
    for (int i = 5; i < 7; i++) values[i] *= share;
    values[ENG_TRAINING_N_METRICS] =
        2 * sizeof(float) + sizeof *state->row_steps / (double)touched->shape.row_dims;
    values[ENG_TRAINING_N_METRICS + 1] = touched->mean;
    values[ENG_TRAINING_N_METRICS + 2] = share;
}

const EngExperiment eng_experiment_sparse_adam = {
    .name = "sparse_adam",
    .question = "What does Adam on the touched rows of a table cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_SPARSE_ADAM,
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
