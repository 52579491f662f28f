/* sgd: what does a step of SGD with momentum cost? The least that any optimizer with state does.
 * Weights and gradients are synthetic. */
#include "bench/experiments/experiments.h"

#include <string.h>

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

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    (void)touched;
    *problem = (EngProblem){.op = ENG_OP_SGD,
                            .threads = (int)eng_point_int(point, "threads"),
                            .u.sgd = {.n = eng_point_int(point, "params"),
                                      .momentum = (float)eng_point_real(point, "momentum"),
                                      .decay = 0.1f}};
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    (void)touched;
    return EST_NS_PER_WEIGHT * (double)problem->u.sgd.n;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    const EngSgdProblem *p = &problem->u.sgd;
    (void)touched;
    const EngTrainingArray all[] = {
        {offsetof(State, w), (size_t)p->n, 1, 0, 0.1, 0},
        {offsetof(State, grad), (size_t)p->n, windows, 0, 1e-3, 0},
        {offsetof(State, buffer), p->momentum > 0 ? (size_t)p->n : 0, 1, 0, 0, 0},
    };
    memcpy(list, all, sizeof all);
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    const State *state = opaque;
    (void)window;
    args->u.sgd = (EngSgdArgs){state->w, state->grad, state->buffer, RATE};
}

static EngStatus expect(void *opaque, const EngProblem *problem, const EngArgs *args,
                        EngOracle *oracle, EngErr *err)
{
    const EngSgdArgs *a = &args->u.sgd;
    EngSgdProblem few = problem->u.sgd;
    (void)opaque;
    if (few.n > CHECKED) few.n = CHECKED;
    size_t n = (size_t)few.n;
    double *w = eng_widened(oracle, a->w, n), *grad = eng_widened(oracle, a->grad, n);
    double *buffer = a->buffer ? eng_widened(oracle, a->buffer, n) : NULL;
    double *errors = eng_doubles(oracle, n);
    EngStatus status = eng_oracle_status(oracle, err);
    if (status) return status;
    eng_ref_sgd(&few, w, grad, buffer, RATE, errors);
    eng_oracle_pair(oracle, a->w, w, errors, n);
    oracle->n_outputs = problem->u.sgd.n;
    return ENG_OK;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    (void)timing;
    values[ENG_TRAINING_N_METRICS] = state->buffer ? sizeof(float) : 0;
}

static const EngTrainingKind g_kind = {
    .state_bytes = sizeof(State),
    .problem = problem_of,
    .estimate_ns = estimate_ns,
    .arrays = arrays,
    .args = args_of,
    .expect = expect,
    .per = "params",
    .observe = observe,
};

const EngExperiment eng_experiment_sgd = {
    .name = "sgd",
    .question = "What does a step of SGD cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_SGD,
    ENG_TRAINING_LIFE(&g_kind),
};
