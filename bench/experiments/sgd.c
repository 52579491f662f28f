/* sgd: what does a step of SGD with momentum cost? The least that any optimizer with state does.
 * Weights and gradients are synthetic. */
#include "bench/experiments/experiments.h"

#include "base/mem.h"
#include "bench/experiments/training.h"
#include "kernels/ref/optimizers.h"

#define EST_NS_PER_WEIGHT 1.0
#define CHECKED           4096 /* weights; each is stepped by itself */
#define RATE              1e-3f

static const EngAxisDef g_axes[] = {
    {"params", ENG_AXIS_INT, "4194304", "weights", 1, 0x1p32, NULL, "weights stepped in one call"},
    {"momentum", ENG_AXIS_REAL, "0.9", "", 0, 1, NULL, "0: plain, without state"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_VARIANT_DEF("sgd"),
};

static const EngMetricDef g_metrics[] = {ENG_TRAINING_METRICS("param"), ENG_STATE_METRIC};

typedef struct State {
    EngTraining training;
    float *w, *grad, *buffer;
} State;

static EngProblem problem_of(const EngPoint *point)
{
    return (EngProblem){.op = ENG_OP_SGD,
                        .threads = (int)eng_point_int(point, "threads"),
                        .u.sgd = {.n = eng_point_int(point, "params"),
                                  .momentum = (float)eng_point_real(point, "momentum"),
                                  .decay = 0.1f}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngProblem problem = problem_of(point);
    return eng_training_check(point, &problem, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    (void)err;
    *need = (EngNeed){.private_bytes = sizeof(float) * 3 * (size_t)eng_point_int(point, "params")};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    return EST_NS_PER_WEIGHT * (double)eng_point_int(point, "params") /
           (double)eng_point_int(point, "threads");
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
    size_t n = (size_t)problem.u.sgd.n;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "optimizer", err);
    if (status) return status;
    EngTraining *t = &state->training;
    t->seed = bench->seed;
    status = eng_training_array(t, n, 1, 0, 0.1, &state->w, err);
    if (!status) status = eng_training_array(t, n, 1, 0, 1e-3, &state->grad, err);
    if (!status && problem.u.sgd.momentum > 0)
        status = eng_training_array(t, n, 1, 0, 0, &state->buffer, err);
    if (!status) status = eng_training_open(t, point, &problem, 1, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(State *state)
{
    EngArgs args;
    args.u.sgd = (EngSgdArgs){state->w, state->grad, state->buffer, RATE};
    return args;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngArgs args = args_of(state);
    return eng_runner_run(&state->training.runner, &args, err);
}

/* A step from the state that earlier ones left. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngTraining *t = &state->training;
    EngCheck sum = {0};
    EngDoubles d = {0};
    EngProblem few = t->runner.problem;
    EngArgs args = args_of(state);
    if (few.u.sgd.n > CHECKED) few.u.sgd.n = CHECKED;
    size_t n = (size_t)few.u.sgd.n;
    double *w = eng_widened(&d, state->w, n), *grad = eng_widened(&d, state->grad, n);
    double *buffer = state->buffer ? eng_widened(&d, state->buffer, n) : NULL;
    double *errors = eng_doubles(&d, n);
    EngStatus status = eng_doubles_status(&d, err);
    if (!status) status = eng_runner_run(&t->runner, &args, err);
    if (eng_kernel_unchecked(t->runner.kernel)) {
        eng_residual_of_roof(residual);
    } else if (!status) {
        eng_ref_sgd(&few.u.sgd, w, grad, buffer, RATE, errors);
        eng_training_compare(&sum, state->w, w, errors, n);
        sum.n_outputs = t->runner.problem.u.sgd.n;
        eng_residual_of_check(&sum, "rel", residual);
    }
    eng_doubles_free(&d);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    eng_training_observe(&state->training, timing, (double)state->training.runner.problem.u.sgd.n,
                         values);
    values[ENG_TRAINING_N_METRICS] = state->buffer ? sizeof(float) : 0;
}

const EngExperiment eng_experiment_sgd = {
    .name = "sgd",
    .question = "What does a step of SGD cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_SGD,
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
