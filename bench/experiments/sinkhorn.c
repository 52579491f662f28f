/* sinkhorn: what does the Sinkhorn-balanced update of a table cost, and what does it keep? Rows are
 * those of corpus windows, one window a step; gradients are synthetic. The state begins as if all
 * windows had been steps already, so that as many rows are live as in the middle of a training. */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <string.h>

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
    float *w, *grad, *momentum, *norms;
    int32_t *row_steps;
    int64_t step;
    int64_t bounds[ENG_MAX_COLUMNS + 1]; /* rows before each head */
    double *want, *errors, *ratios;      /* of the oracle, while it lives */
    double live;                         /* rows */
} State;

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    int64_t rows = touched->table_rows, read = touched->per_window;
    *problem = (EngProblem){.op = ENG_OP_SINKHORN,
                            .threads = touched->shape.threads,
                            .u.sinkhorn = {.rows = rows,
                                           .row_dims = touched->shape.row_dims,
                                           .max_touched = read < rows ? read : rows,
                                           .beta = 0.95f,
                                           .gamma = 0.18f,
                                           .tau = 1e-3f,
                                           .eps = 1e-20f,
                                           .balance = (int)eng_point_int(point, "balance"),
                                           .n_groups = 1}};
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    return EST_NS_PER_WEIGHT * (double)touched->table_rows * problem->u.sinkhorn.row_dims;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    size_t rows = (size_t)p->rows, dims = (size_t)p->row_dims;
    (void)touched, (void)windows;
    const EngTrainingArray all[] = {
        {offsetof(State, w), rows, dims, 0, 0.1, 0},
        {offsetof(State, momentum), rows, dims, 0, 1e-3, 0},
        {offsetof(State, norms), rows, 1, 0, 0, 0},
        {offsetof(State, grad), (size_t)p->max_touched, dims, 0, 1e-3, 0},
        {offsetof(State, row_steps), rows, 1, 0, 0, sizeof(int32_t)},
    };
    memcpy(list, all, sizeof all);
}

/* Scales; the oracle's weights, gradients, momentum, step and errors. */
static size_t scratch(const EngProblem *problem)
{
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    return (size_t)p->rows * SCALE_BYTES + 5 * sizeof(double) * CHECKED_ROWS * (size_t)p->row_dims;
}

/* As if step w + 1 had touched window w's rows and left them this momentum. */
static void make_history(State *state)
{
    const EngTouched *touched = &state->training.touched;
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
    const EngAddress *address = &state->training.touched.shape.address;
    if (strcmp(eng_point_word(point, "group"), "head")) return;
    for (int c = 0; c < address->n_columns; c++) state->bounds[c] = address->offsets[0][c];
    state->bounds[address->n_columns] = p->rows;
    p->bounds = state->bounds;
    p->n_groups = address->n_columns;
}

static EngStatus prepare(void *opaque, const EngPoint *point, EngProblem *problem, EngErr *err)
{
    State *state = opaque;
    (void)err;
    make_history(state);
    set_groups(state, point, &problem->u.sinkhorn);
    return ENG_OK;
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    State *state = opaque;
    const EngTouched *touched = &state->training.touched;
    args->u.sinkhorn =
        (EngSinkhornArgs){.w = state->w,
                          .touched = touched->lists + window * (size_t)touched->per_window,
                          .n_touched = touched->n[window],
                          .grad = state->grad,
                          .momentum = state->momentum,
                          .row_norms = state->norms,
                          .row_steps = state->row_steps,
                          .rate = RATE,
                          .step = ++state->step};
}

/* The table's first rows as a table of their own: the oracle rewrites it eleven times in doubles.
 */
static bool few(void *opaque, EngProblem *problem, EngArgs *all)
{
    EngSinkhornProblem *p = &problem->u.sinkhorn;
    EngSinkhornArgs *args = &all->u.sinkhorn;
    int64_t n = 0;
    (void)opaque;
    if (p->rows <= CHECKED_ROWS) return false;
    p->rows = CHECKED_ROWS;
    p->bounds = NULL;
    p->n_groups = 1;
    while (n < args->n_touched && args->touched[n] < p->rows) n++;
    args->n_touched = n;
    if (p->max_touched > p->rows) p->max_touched = p->rows;
    return true;
}

/* The oracle takes all momentum as of the step before, and gradients in a dense table. */
static EngStatus expect(void *opaque, const EngProblem *problem, const EngArgs *all,
                        EngOracle *oracle, EngErr *err)
{
    State *state = opaque;
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    const EngSinkhornArgs *args = &all->u.sinkhorn;
    size_t rows = (size_t)p->rows, dims = (size_t)p->row_dims, n = rows * dims;
    double *w = state->want = eng_widened(oracle, args->w, n), *grad = eng_doubles(oracle, n);
    double *momentum = eng_widened(oracle, args->momentum, n);
    double *errors = state->errors = eng_doubles(oracle, n);
    double *ratios = state->ratios = eng_doubles(oracle, rows);
    EngStatus status = eng_oracle_status(oracle, err);
    if (status) return status;
    for (size_t row = 0; row < rows; row++) {
        double decayed = pow(p->beta, (double)(args->step - 1 - args->row_steps[row]));
        for (size_t j = 0; j < dims; j++) momentum[row * dims + j] *= decayed;
    }
    for (int64_t i = 0; i < args->n_touched; i++)
        for (size_t j = 0; j < dims; j++)
            grad[(size_t)args->touched[i] * dims + j] = args->grad[(size_t)i * dims + j];
    if (!eng_ref_sinkhorn(p, w, grad, momentum, RATE, ratios, errors)) oracle->failed = true;
    return ENG_OK;
}

static EngStatus compare(void *opaque, const EngProblem *problem, const EngArgs *args,
                         EngOracle *oracle, EngErr *err)
{
    const State *state = opaque;
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    size_t dims = (size_t)p->row_dims;
    (void)err;
    for (size_t row = 0; row < (size_t)p->rows; row++)
        if (fabs(state->ratios[row] / p->tau - 1) > NEAR)
            eng_oracle_compare(oracle, args->u.sinkhorn.w + row * dims, state->want + row * dims,
                               state->errors + row * dims, dims);
    oracle->n_outputs = state->training.touched.table_rows * p->row_dims;
    return ENG_OK;
}

/* About the rows that move: they began near the mean (paper.md 7.2). */
static double live_rows(void *opaque)
{
    State *state = opaque;
    EngArgs steps = {.u.sinkhorn.row_steps = state->row_steps};
    int64_t n = 0;
    (void)eng_runner_pull(&state->training.runner, &steps, NULL);
    for (int64_t row = 0; row < state->training.touched.table_rows; row++)
        n += state->row_steps[row] && state->step - state->row_steps[row] < OLD;
    state->live = (double)n;
    return state->live;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const EngTouched *touched = &state->training.touched;
    (void)timing;
    /* The cost is that of a table all of whose rows are live. */
    eng_training_scale_cost(values, state->live / (double)touched->table_rows);
    values[ENG_TRAINING_N_METRICS] =
        sizeof(float) +
        (sizeof *state->norms + sizeof *state->row_steps) / (double)touched->shape.row_dims;
    values[ENG_TRAINING_N_METRICS + 1] = touched->mean;
    values[ENG_TRAINING_N_METRICS + 2] = state->live;
    values[ENG_TRAINING_N_METRICS + 3] = (double)touched->table_rows;
}

static const EngTrainingKind g_kind = {
    .state_bytes = sizeof(State),
    .touches = true,
    .windows = WINDOWS,
    .problem = problem_of,
    .estimate_ns = estimate_ns,
    .arrays = arrays,
    .scratch = scratch,
    .prepare = prepare,
    .args = args_of,
    .few = few,
    .expect = expect,
    .compare = compare,
    .count = live_rows,
    .observe = observe,
};

const EngExperiment eng_experiment_sinkhorn = {
    .name = "sinkhorn",
    .question = "What does the Sinkhorn-balanced update of a table cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_SINKHORN,
    ENG_TRAINING_LIFE(&g_kind),
};
