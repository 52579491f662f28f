/* muon: what does a step of Muon cost, where five rounds of Newton-Schulz stand against one pass of
 * AdamW? Weights and gradients are synthetic. */
#include "bench/experiments/experiments.h"

#include <string.h>

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

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    (void)touched;
    *problem = (EngProblem){.op = ENG_OP_MUON,
                            .threads = (int)eng_point_int(point, "threads"),
                            .u.muon = {.count = eng_point_int(point, "count"),
                                       .rows = (int)eng_point_int(point, "rows"),
                                       .cols = (int)eng_point_int(point, "cols"),
                                       .momentum = 0.95f,
                                       .decay = 0.1f,
                                       .rms = 0.18f,
                                       .ns_steps = (int)eng_point_int(point, "ns_steps")}};
}

static size_t params_of(const EngMuonProblem *p)
{
    return (size_t)p->count * (size_t)p->rows * (size_t)p->cols;
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    const EngMuonProblem *p = &problem->u.muon;
    double side = p->rows < p->cols ? p->rows : p->cols;
    (void)touched;
    return (double)params_of(p) * 6 * side * (p->ns_steps + 1) / EST_FLOPS_PER_NS;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    size_t n = params_of(&problem->u.muon);
    (void)touched;
    const EngTrainingArray all[] = {
        {offsetof(State, w), n, 1, 0, 0.1, 0},
        {offsetof(State, grad), n, windows, 0, 1e-3, 0},
        {offsetof(State, buffer), n, 1, 0, 0, 0},
    };
    memcpy(list, all, sizeof all);
}

static size_t scratch(const EngProblem *problem)
{
    return 2 * sizeof(float) * params_of(&problem->u.muon);
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    const State *state = opaque;
    (void)window;
    args->u.muon = (EngMuonArgs){state->w, state->grad, state->buffer, RATE};
}

/* The first matrix; of large ones a smaller one made of the same numbers, since the oracle's
 * products are slow. */
static bool few(void *opaque, EngProblem *problem, EngArgs *args)
{
    EngMuonProblem *p = &problem->u.muon;
    size_t before = params_of(p);
    (void)opaque, (void)args;
    p->count = 1;
    while ((int64_t)p->rows * p->cols > CHECKED_VALUES) {
        int *longer = p->rows > p->cols ? &p->rows : &p->cols;
        *longer = (*longer + 1) / 2;
    }
    return params_of(p) < before;
}

static EngStatus expect(void *opaque, const EngProblem *problem, const EngArgs *args,
                        EngOracle *oracle, EngErr *err)
{
    const State *state = opaque;
    const EngMuonArgs *a = &args->u.muon;
    size_t n = params_of(&problem->u.muon);
    double *w = eng_widened(oracle, a->w, n), *grad = eng_widened(oracle, a->grad, n);
    double *buffer = eng_widened(oracle, a->buffer, n), *errors = eng_doubles(oracle, n);
    EngStatus status = eng_oracle_status(oracle, err);
    if (status) return status;
    if (!eng_ref_muon(&problem->u.muon, w, grad, buffer, RATE, errors)) oracle->failed = true;
    eng_oracle_pair(oracle, a->w, w, errors, n);
    oracle->n_outputs = (int64_t)params_of(&state->training.runner.problem.u.muon);
    return ENG_OK;
}

static double count(void *opaque)
{
    const State *state = opaque;
    return (double)params_of(&state->training.runner.problem.u.muon);
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    (void)opaque, (void)timing;
    values[ENG_TRAINING_N_METRICS] = sizeof(float);
}

static const EngTrainingKind g_kind = {
    .state_bytes = sizeof(State),
    .problem = problem_of,
    .estimate_ns = estimate_ns,
    .arrays = arrays,
    .scratch = scratch,
    .args = args_of,
    .few = few,
    .expect = expect,
    .count = count,
    .observe = observe,
};

const EngExperiment eng_experiment_muon = {
    .name = "muon",
    .question = "What does a step of Muon cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_MUON,
    ENG_TRAINING_LIFE(&g_kind),
};
