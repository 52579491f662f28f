/* adamw: what does a step of AdamW cost, in time and in state? Weights and gradients are synthetic.
 */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "bench/experiments/training.h"
#include "kernels/ref/optimizers.h"

#define EST_NS_PER_WEIGHT 1.0
#define CHECKED           4096 /* weights; each is stepped by itself */
#define RATE              1e-3f

static const EngAxisDef g_axes[] = {
    {"params", ENG_AXIS_INT, "4194304", "weights", 1, 0x1p32, NULL, "weights stepped in one call"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_VARIANT_DEF("adamw"),
};

static const EngMetricDef g_metrics[] = {ENG_TRAINING_METRICS("param"), ENG_STATE_METRIC};

typedef struct State {
    EngTraining training;
    float *w, *grad, *m, *v;
    int64_t step;
} State;

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    (void)touched;
    *problem = (EngProblem){.op = ENG_OP_ADAMW,
                            .threads = (int)eng_point_int(point, "threads"),
                            .u.adamw = {.n = eng_point_int(point, "params"),
                                        .beta1 = 0.9f,
                                        .beta2 = 0.95f,
                                        .eps = 1e-20f,
                                        .decay = 0.1f}};
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    (void)touched;
    return EST_NS_PER_WEIGHT * (double)problem->u.adamw.n;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    (void)touched;
    const EngTrainingArray all[] = {
        {offsetof(State, w), (size_t)problem->u.adamw.n, 1, 0, 0.1, 0},
        {offsetof(State, grad), (size_t)problem->u.adamw.n, windows, 0, 1e-3, 0},
        {offsetof(State, m), (size_t)problem->u.adamw.n, 1, 0, 0, 0},
        {offsetof(State, v), (size_t)problem->u.adamw.n, 1, 0, 0, 0},
    };
    memcpy(list, all, sizeof all);
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    State *state = opaque;
    (void)window;
    args->u.adamw = (EngAdamWArgs){state->w, state->grad, state->m, state->v, RATE, ++state->step};
}

static EngStatus expect(void *opaque, const EngProblem *problem, const EngArgs *args,
                        EngOracle *oracle, EngErr *err)
{
    const State *state = opaque;
    EngAdamWProblem few = problem->u.adamw;
    if (few.n > CHECKED) few.n = CHECKED;
    size_t n = (size_t)few.n;
    double *w = eng_widened(oracle, state->w, n), *grad = eng_widened(oracle, state->grad, n);
    double *m = eng_widened(oracle, state->m, n), *v = eng_widened(oracle, state->v, n);
    double *errors = eng_doubles(oracle, n);
    EngStatus status = eng_oracle_status(oracle, err);
    if (status) return status;
    eng_ref_adamw(&few, w, grad, m, v, RATE, args->u.adamw.step, errors);
    eng_oracle_pair(oracle, state->w, w, errors, n);
    oracle->n_outputs = problem->u.adamw.n;
    return ENG_OK;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    (void)opaque, (void)timing;
    values[ENG_TRAINING_N_METRICS] = 2 * sizeof(float);
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

const EngExperiment eng_experiment_adamw = {
    .name = "adamw",
    .question = "What does a step of AdamW cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_ADAMW,
    ENG_TRAINING_LIFE(&g_kind),
};
