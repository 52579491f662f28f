/* muon: what does a step of Muon cost, where five rounds of Newton-Schulz stand against one pass of
 * AdamW? Weights and gradients are synthetic. */
#include "bench/experiments/experiments.h"

#include "base/mem.h"
#include "bench/experiments/training.h"
#include "kernels/ref/optimizers.h"

#define EST_FLOPS_PER_NS 60.0
#define CHECKED_VALUES   16384 /* of the largest matrix that the oracle orthogonalises */
#define RATE             1e-3f

static const EngAxisDef g_axes[] = {
    {"count", ENG_AXIS_INT, "1", "", 1, 1 << 20, NULL, "matrices stepped in one call"},
    {"rows", ENG_AXIS_INT, "512", "values", 1, 1 << 20, NULL, "of a matrix"},
    {"cols", ENG_AXIS_INT, "512", "values", 1, 1 << 20, NULL, "of a matrix"},
    {"ns_steps", ENG_AXIS_INT, "5", "", 0, 100, NULL, "rounds of Newton-Schulz"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_VARIANT_DEF("muon"),
};

static const EngMetricDef g_metrics[] = {ENG_TRAINING_METRICS("param"), ENG_STATE_METRIC};

typedef struct State {
    EngTraining training;
    float *w, *grad, *buffer;
} State;

static EngProblem problem_of(const EngPoint *point)
{
    return (EngProblem){.op = ENG_OP_MUON,
                        .threads = (int)eng_point_int(point, "threads"),
                        .u.muon = {.count = eng_point_int(point, "count"),
                                   .rows = (int)eng_point_int(point, "rows"),
                                   .cols = (int)eng_point_int(point, "cols"),
                                   .momentum = 0.95f,
                                   .decay = 0.1f,
                                   .rms = 0.18f,
                                   .ns_steps = (int)eng_point_int(point, "ns_steps")}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngProblem problem = problem_of(point);
    return eng_training_check(point, &problem, why);
}

static size_t params_of(const EngMuonProblem *p)
{
    return (size_t)p->count * (size_t)p->rows * (size_t)p->cols;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngProblem problem = problem_of(point);
    (void)err;
    *need = (EngNeed){.private_bytes = sizeof(float) * 5 * params_of(&problem.u.muon)};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngProblem problem = problem_of(point);
    const EngMuonProblem *p = &problem.u.muon;
    double side = p->rows < p->cols ? p->rows : p->cols;
    return (double)params_of(p) * 6 * side * (p->ns_steps + 1) / EST_FLOPS_PER_NS / problem.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_training_close(&state->training);
    eng_free(state);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngProblem problem = problem_of(point);
    size_t n = params_of(&problem.u.muon);
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "optimizer", err);
    if (status) return status;
    EngTraining *t = &state->training;
    t->seed = bench->seed;
    status = eng_training_array(t, n, 1, 0, 0.1, &state->w, err);
    if (!status) status = eng_training_array(t, n, 1, 0, 1e-3, &state->grad, err);
    if (!status) status = eng_training_array(t, n, 1, 0, 0, &state->buffer, err);
    if (!status) status = eng_training_open(t, point, &problem, 1, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngArgs args;
    args.u.muon = (EngMuonArgs){state->w, state->grad, state->buffer, RATE};
    return eng_runner_run(&state->training.runner, &args, err);
}

/* The first matrix; of large ones a smaller one made of the same numbers, since the oracle's
 * products are slow. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngTraining *t = &state->training;
    EngCheck sum = {0};
    EngDoubles d = {0};
    EngRunner few = {0};
    EngProblem problem = t->runner.problem;
    EngMuonProblem *p = &problem.u.muon;
    EngArgs args;
    p->count = 1;
    while ((int64_t)p->rows * p->cols > CHECKED_VALUES) {
        int *longer = p->rows > p->cols ? &p->rows : &p->cols;
        *longer = (*longer + 1) / 2;
    }
    size_t n = params_of(p);
    double *w = eng_widened(&d, state->w, n), *grad = eng_widened(&d, state->grad, n);
    double *buffer = eng_widened(&d, state->buffer, n), *errors = eng_doubles(&d, n);
    EngStatus status = eng_doubles_status(&d, err);
    args.u.muon = (EngMuonArgs){state->w, state->grad, state->buffer, RATE};
    if (!status) status = eng_runner_open(&few, t->runner.kernel, &problem, err);
    if (!status) status = eng_runner_run(&few, &args, err);
    if (!status && !eng_ref_muon(p, w, grad, buffer, RATE, errors))
        status = ENG_FAIL(err, ENG_NO_MEMORY, "no memory for the oracle");
    if (!status) eng_training_compare(&sum, state->w, w, errors, n);
    sum.n_outputs = (int64_t)params_of(&t->runner.problem.u.muon);
    eng_residual_of_check(&sum, "rel", residual);
    eng_runner_close(&few);
    eng_doubles_free(&d);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    eng_training_observe(&state->training, timing,
                         (double)params_of(&state->training.runner.problem.u.muon), values);
    values[ENG_TRAINING_N_METRICS] = sizeof(float);
}

const EngExperiment eng_experiment_muon = {
    .name = "muon",
    .question = "What does a step of Muon cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_MUON,
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
