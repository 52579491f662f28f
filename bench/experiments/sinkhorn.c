/* sinkhorn: what does the Sinkhorn-balanced update of a table cost, and what does it keep? Rows are
 * those of corpus windows, one window a step; gradients are synthetic. The state begins as if all
 * windows had been steps already, so that as many rows are live as in the middle of a training. */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bench/experiments/touched.h"
#include "bench/experiments/training.h"
#include "kernels/ref/sinkhorn.h"

#define EST_NS_PER_WEIGHT 4.0
#define WINDOWS           128
#define RATE              5e-3f
#define SCALE_BYTES       40 /* of a row, beside its momentum */
#define OLD               135
#define CHECKED_ROWS      4096
#define NEAR              1e-4 /* a ratio this near tau may be decided otherwise */

static const char *const g_groups[] = {"table", "head", NULL};

static const EngAxisDef g_axes[] = {
    {"preset", ENG_AXIS_WORD, "laptop", "", 0, 0, NULL,
     "published or laptop-scale configuration: layers, vocabulary"},
    ENG_AXIS_LAYER_DEF,
    ENG_AXIS_ORDERS_DEF,
    ENG_AXIS_HEADS_DEF,
    ENG_AXIS_ROWS_DEF,
    ENG_AXIS_ROW_DIMS_DEF,
    {"group", ENG_AXIS_WORD, "table", "", 0, 0, g_groups, "what is balanced by itself"},
    {"balance", ENG_AXIS_INT, "11", "", 1, 99, NULL, "K: row and column steps, an odd number"},
    ENG_AXIS_CORPUS_DEF,
    ENG_AXIS_TOKENS_DEF("128", "tokens of a step's batch"),
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_VARIANT_DEF("sinkhorn"),
};

static const EngMetricDef g_metrics[] = {
    ENG_TRAINING_METRICS("live_row"),
    ENG_STATE_METRIC,
    {"touched_rows", "rows", 0, "none", "distinct rows of a step, mean over windows"},
    {"live_rows", "rows", 0, "none", "rows whose last gradient is at most 134 steps old"},
    {"table_rows", "rows", 0, "none", "rows of the table"},
};

typedef struct State {
    EngTraining training;
    EngTouched touched;
    float *w, *grad, *momentum, *norms;
    int32_t *row_steps;
    int64_t step;
    int64_t bounds[ENG_MAX_COLUMNS + 1]; /* rows before each head */
} State;

static EngProblem problem_of(const EngPoint *point, const EngShape *shape, int64_t table_rows)
{
    int64_t read = shape->tokens * shape->columns;
    return (EngProblem){.op = ENG_OP_SINKHORN,
                        .threads = shape->threads,
                        .u.sinkhorn = {.rows = table_rows,
                                       .row_dims = shape->row_dims,
                                       .max_touched = read < table_rows ? read : table_rows,
                                       .beta = 0.95f,
                                       .gamma = 0.18f,
                                       .tau = 1e-3f,
                                       .eps = 1e-20f,
                                       .balance = (int)eng_point_int(point, "balance"),
                                       .n_groups = 1}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    int64_t table_rows;
    EngStatus status = eng_touched_shape(point, &shape, &table_rows, why);
    if (status) return status;
    EngProblem problem = problem_of(point, &shape, table_rows);
    return eng_training_check(point, &problem, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    int64_t table_rows;
    EngStatus status = eng_touched_shape(point, &shape, &table_rows, err);
    if (status) return status;
    size_t dims = (size_t)shape.row_dims;
    eng_touched_need(point, &shape, WINDOWS, need);
    /* Weights, momentum and scales; the oracle's weights, gradients, momentum, step and errors. */
    need->private_bytes += (size_t)table_rows * (2 * sizeof(float) * dims + SCALE_BYTES) +
                           5 * sizeof(double) * CHECKED_ROWS * dims +
                           2 * sizeof(float) * (size_t)shape.tokens * (size_t)shape.k;
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    int64_t table_rows;
    if (eng_touched_shape(point, &shape, &table_rows, NULL)) return 0;
    return EST_NS_PER_WEIGHT * (double)table_rows * shape.row_dims / shape.threads;
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
    if (!status) status = eng_training_array(t, rows, dims, 0, 1e-3, &state->momentum, err);
    if (!status) status = eng_training_array(t, rows, 1, 0, 0, &state->norms, err);
    if (!status)
        status =
            eng_training_array(t, (size_t)state->touched.largest, dims, 0, 1e-3, &state->grad, err);
    if (!status)
        status = eng_alloc_or((void **)&state->row_steps, rows, sizeof *state->row_steps,
                              "steps of rows", err);
    return status;
}

/* As if step w + 1 had touched window w's rows and left them this momentum. */
static void make_history(State *state)
{
    const EngTouched *touched = &state->touched;
    size_t dims = (size_t)touched->shape.row_dims;
    for (int64_t w = 0; w < WINDOWS; w++)
        for (int64_t i = 0; i < touched->n[w]; i++)
            state->row_steps[touched->lists[w * touched->per_window + i]] = (int32_t)(w + 1);
    for (int64_t row = 0; row < touched->table_rows; row++) {
        float *m = state->momentum + (size_t)row * dims;
        double squares = 0;
        for (size_t j = 0; j < dims; j++) {
            if (!state->row_steps[row]) m[j] = 0;
            squares += (double)m[j] * m[j];
        }
        state->norms[row] = (float)sqrt(squares);
    }
    state->step = WINDOWS;
}

static void set_groups(State *state, const EngPoint *point, EngSinkhornProblem *p)
{
    const EngAddress *address = &state->touched.shape.address;
    if (strcmp(eng_point_word(point, "group"), "head")) return;
    for (int c = 0; c < address->n_columns; c++) state->bounds[c] = address->offsets[0][c];
    state->bounds[address->n_columns] = p->rows;
    p->bounds = state->bounds;
    p->n_groups = address->n_columns;
}

static EngStatus cover(State *state, EngErr *err)
{
    EngRunner *runner = &state->training.runner;
    const EngTouched *touched = &state->touched;
    EngStatus status = eng_training_cover(&state->training, err);
    if (!status)
        status = eng_runner_cover(runner, touched->lists,
                                  (size_t)(WINDOWS * touched->per_window) * sizeof(int64_t), err);
    return status ? status
                  : eng_runner_cover(runner, state->row_steps,
                                     (size_t)touched->table_rows * sizeof(int32_t), err);
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
        EngProblem problem = problem_of(point, &state->touched.shape, state->touched.table_rows);
        make_history(state);
        set_groups(state, point, &problem.u.sinkhorn);
        status = eng_training_open(&state->training, point, &problem, WINDOWS, err);
        if (!status) status = cover(state, err);
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
    args.u.sinkhorn = (EngSinkhornArgs){.w = state->w,
                                        .touched = touched->lists + window * touched->per_window,
                                        .n_touched = touched->n[window],
                                        .grad = state->grad,
                                        .momentum = state->momentum,
                                        .row_norms = state->norms,
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

/* What the oracle takes: all momentum as of the step before, and gradients in a dense table. */
typedef struct Dense {
    EngDoubles d;
    double *w, *grad, *momentum, *errors, *ratios;
} Dense;

static EngStatus make_dense(const EngSinkhornProblem *p, const EngSinkhornArgs *args, Dense *dense,
                            EngErr *err)
{
    size_t rows = (size_t)p->rows, dims = (size_t)p->row_dims, n = rows * dims;
    dense->w = eng_widened(&dense->d, args->w, n);
    dense->momentum = eng_widened(&dense->d, args->momentum, n);
    dense->grad = eng_doubles(&dense->d, n);
    dense->errors = eng_doubles(&dense->d, n);
    dense->ratios = eng_doubles(&dense->d, rows);
    EngStatus status = eng_doubles_status(&dense->d, err);
    if (status) return status;
    for (size_t row = 0; row < rows; row++) {
        double decayed = pow(p->beta, (double)(args->step - 1 - args->row_steps[row]));
        for (size_t j = 0; j < dims; j++) dense->momentum[row * dims + j] *= decayed;
    }
    for (int64_t i = 0; i < args->n_touched; i++)
        for (size_t j = 0; j < dims; j++)
            dense->grad[(size_t)args->touched[i] * dims + j] = args->grad[(size_t)i * dims + j];
    return ENG_OK;
}

static EngStatus compare(const EngSinkhornProblem *p, const EngSinkhornArgs *args, Dense *dense,
                         EngCheck *check, EngErr *err)
{
    size_t dims = (size_t)p->row_dims;
    if (!eng_ref_sinkhorn(p, dense->w, dense->grad, dense->momentum, RATE, dense->ratios,
                          dense->errors))
        return ENG_FAIL(err, ENG_NO_MEMORY, "no memory for the oracle");
    for (size_t row = 0; row < (size_t)p->rows; row++)
        if (fabs(dense->ratios[row] / p->tau - 1) > NEAR)
            eng_training_compare(check, args->w + row * dims, dense->w + row * dims,
                                 dense->errors + row * dims, dims);
    return ENG_OK;
}

/* The table's first rows as a table of their own: the oracle rewrites it eleven times in doubles.
 */
static void keep_first(EngSinkhornProblem *p, EngSinkhornArgs *args)
{
    int64_t n = 0;
    if (p->rows <= CHECKED_ROWS) return;
    p->rows = CHECKED_ROWS;
    p->bounds = NULL;
    p->n_groups = 1;
    while (n < args->n_touched && args->touched[n] < p->rows) n++;
    args->n_touched = n;
    if (p->max_touched > p->rows) p->max_touched = p->rows;
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngRunner few = {0}, *runner = &state->training.runner;
    EngCheck sum = {0};
    Dense dense = {0};
    EngArgs args = args_of(state, 0);
    EngProblem problem = runner->problem;
    EngSinkhornProblem *p = &problem.u.sinkhorn;
    if (eng_kernel_unchecked(runner->kernel)) {
        eng_residual_of_roof(residual);
        return eng_runner_run(runner, &args, err);
    }
    keep_first(p, &args.u.sinkhorn);
    EngStatus status = eng_runner_pull(runner, &args, err);
    if (!status) status = make_dense(p, &args.u.sinkhorn, &dense, err);
    if (!status && p->rows < runner->problem.u.sinkhorn.rows) {
        status = eng_runner_open(&few, runner->kernel, &problem, err);
        runner = &few;
    }
    if (!status) status = eng_runner_run(runner, &args, err);
    if (!status) status = eng_runner_pull(runner, &args, err);
    if (!status) status = compare(p, &args.u.sinkhorn, &dense, &sum, err);
    sum.n_outputs = state->training.runner.problem.u.sinkhorn.rows * p->row_dims;
    if (!status) eng_residual_of_check(&sum, "rel", residual);
    eng_runner_close(&few);
    eng_doubles_free(&dense.d);
    return status;
}

/* About the rows that move: they began near the mean (paper.md 7.2). */
static double live_rows(const State *state)
{
    int64_t n = 0;
    for (int64_t row = 0; row < state->touched.table_rows; row++)
        n += state->row_steps[row] && state->step - state->row_steps[row] < OLD;
    return (double)n;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    State *state = opaque;
    const EngTouched *touched = &state->touched;
    EngArgs steps = {.u.sinkhorn.row_steps = state->row_steps};
    (void)eng_runner_pull(&state->training.runner, &steps, NULL);
    double live = live_rows(state);
    eng_training_observe(&state->training, timing, live, values);
    /* The cost is that of a table all of whose rows are live. */
    for (int i = 0; i < 7; i++)
        if (i < 2 || i > 4) values[i] *= live / (double)touched->table_rows;
    values[ENG_TRAINING_N_METRICS] =
        sizeof(float) +
        (sizeof *state->norms + sizeof *state->row_steps) / (double)touched->shape.row_dims;
    values[ENG_TRAINING_N_METRICS + 1] = touched->mean;
    values[ENG_TRAINING_N_METRICS + 2] = live;
    values[ENG_TRAINING_N_METRICS + 3] = (double)touched->table_rows;
}

const EngExperiment eng_experiment_sinkhorn = {
    .name = "sinkhorn",
    .question = "What does the Sinkhorn-balanced update of a table cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_SINKHORN,
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
