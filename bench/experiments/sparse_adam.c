/* sparse_adam: what does Adam on the touched rows of a table cost, and what does it keep? Rows are
 * those of corpus windows, one window a step; gradients are synthetic. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "bench/experiments/training.h"
#include "kernels/ref/optimizers.h"

#define EST_NS_PER_WEIGHT 1.0
#define WINDOWS           32
#define CHECKED_ROWS      ENG_ORACLE_PAIRS
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
    float *w, *grad, *m, *v;
    int32_t *row_steps; /* [table rows] */
    int64_t step;
} State;

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    (void)point;
    *problem = (EngProblem){
        .op = ENG_OP_SPARSE_ADAM,
        .threads = touched->shape.threads,
        .u.sparse_adam = {touched->table_rows, touched->shape.row_dims, 0.9f, 0.95f, 1e-20f}};
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    return EST_NS_PER_WEIGHT * (double)touched->per_window * problem->u.sparse_adam.row_dims;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    size_t rows = (size_t)touched->table_rows, dims = (size_t)problem->u.sparse_adam.row_dims;
    size_t read = (size_t)touched->per_window;
    (void)windows;
    const EngTrainingArray all[] = {
        {offsetof(State, w), rows, dims, 0, 0.1, 0},
        {offsetof(State, m), rows, dims, 0, 0, 0},
        {offsetof(State, v), rows, dims, 0, 0, 0},
        {offsetof(State, grad), read < rows ? read : rows, dims, 0, 1e-3, 0},
        {offsetof(State, row_steps), rows, 1, 0, 0, sizeof(int32_t)},
    };
    memcpy(list, all, sizeof all);
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    State *state = opaque;
    const EngTouched *touched = &state->training.touched;
    args->u.sparse_adam =
        (EngSparseAdamArgs){.w = state->w,
                            .touched = touched->lists + window * (size_t)touched->per_window,
                            .n_touched = touched->n[window],
                            .grad = state->grad,
                            .m = state->m,
                            .v = state->v,
                            .row_steps = state->row_steps,
                            .rate = RATE,
                            .step = ++state->step};
}

/* Some touched rows one after the other, as a table of their own. */
typedef struct Sample {
    double *w, *grad, *m, *v, *errors;
    int64_t order[CHECKED_ROWS];
    int32_t steps[CHECKED_ROWS];
    int64_t n;
} Sample;

static void take_row(const EngSparseAdamArgs *args, int64_t at, size_t dims, int64_t i,
                     EngOracle *oracle, Sample *s)
{
    size_t to = (size_t)i * dims, from = (size_t)args->touched[at] * dims;
    s->order[i] = i;
    s->steps[i] = args->row_steps[args->touched[at]];
    for (size_t j = 0; j < dims; j++) {
        s->w[to + j] = args->w[from + j];
        s->m[to + j] = args->m[from + j];
        s->v[to + j] = args->v[from + j];
        s->grad[to + j] = args->grad[(size_t)at * dims + j];
    }
    eng_oracle_pair(oracle, args->w + from, s->w + to, s->errors + to, dims);
}

static EngStatus expect(void *opaque, const EngProblem *problem, const EngArgs *all,
                        EngOracle *oracle, EngErr *err)
{
    const EngSparseAdamArgs *args = &all->u.sparse_adam;
    EngSparseAdamProblem few = problem->u.sparse_adam;
    Sample s = {.n = args->n_touched < CHECKED_ROWS ? args->n_touched : CHECKED_ROWS};
    double **parts[] = {&s.w, &s.grad, &s.m, &s.v, &s.errors};
    size_t dims = (size_t)few.row_dims;
    (void)opaque;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        *parts[i] = eng_doubles(oracle, (size_t)s.n * dims);
    EngStatus status = eng_oracle_status(oracle, err);
    if (status) return status;
    for (int64_t i = 0; i < s.n; i++)
        take_row(args, i * (args->n_touched / s.n), dims, i, oracle, &s);
    few.rows = s.n;
    eng_ref_sparse_adam(&few, s.w, s.order, s.n, s.grad, s.m, s.v, s.steps, RATE, args->step,
                        s.errors);
    oracle->n_outputs = args->n_touched * few.row_dims;
    return ENG_OK;
}

static double count(void *opaque)
{
    const State *state = opaque;
    return state->training.touched.mean;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const EngTouched *touched = &((const State *)opaque)->training.touched;
    double share = touched->mean / (double)touched->table_rows;
    (void)timing;
    eng_training_scale_cost(values, share); /* the cost is that of a whole table */
    values[ENG_TRAINING_N_METRICS] =
        2 * sizeof(float) + sizeof(int32_t) / (double)touched->shape.row_dims;
    values[ENG_TRAINING_N_METRICS + 1] = touched->mean;
    values[ENG_TRAINING_N_METRICS + 2] = share;
}

static const EngTrainingKind g_kind = {
    .state_bytes = sizeof(State),
    .touches = true,
    .windows = WINDOWS,
    .problem = problem_of,
    .estimate_ns = estimate_ns,
    .arrays = arrays,
    .args = args_of,
    .expect = expect,
    .count = count,
    .observe = observe,
};

const EngExperiment eng_experiment_sparse_adam = {
    .name = "sparse_adam",
    .question = "What does Adam on the touched rows of a table cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_SPARSE_ADAM,
    ENG_TRAINING_LIFE(&g_kind),
};
