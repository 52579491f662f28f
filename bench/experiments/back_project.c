/* back_project: what do the two products of the projection's backward cost, in f32 and in bf16?
 * Inputs are synthetic. Outputs are checked by sampling. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/rng.h"
#include "bench/experiments/training.h"
#include "kernels/ref/back_project.h"
#include "kernels/ref/compare.h"

#define EST_FLOPS_PER_NS 60.0
#define CHECKED          256 /* outputs of each kind */

static const char *const g_types[] = {"f32", "bf16", NULL};

static const EngAxisDef g_axes[] = {
    ENG_AXIS_TOKENS_DEF("256", "tokens per call: M"),
    {"n", ENG_AXIS_INT, "2560", "values", 1, 1 << 20, NULL,
     "outputs: (streams + 1) * hidden (default: 4 streams of 512)"},
    {"k", ENG_AXIS_INT, "1024", "values", 1, 1 << 20, NULL, "inputs: columns * row dims"},
    {"type", ENG_AXIS_WORD, "f32", "", 0, 0, g_types, "operands of the products; sums are f32"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_VARIANT_DEF("back_project"),
};

static const EngMetricDef g_metrics[] = {ENG_TRAINING_METRICS("token")};

typedef struct State {
    EngTraining training;
    float *x, *w, *d_out, *d_x, *d_w, *d_bias;
} State;

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    (void)touched;
    *problem = (EngProblem){
        .op = ENG_OP_BACK_PROJECT,
        .threads = (int)eng_point_int(point, "threads"),
        .u.back_project = {.tokens = eng_point_int(point, "tokens"),
                           .n = (int)eng_point_int(point, "n"),
                           .k = (int)eng_point_int(point, "k"),
                           .type = (EngDtype)eng_dtype_parse(eng_point_word(point, "type"))}};
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    (void)touched;
    return 4 * (double)p->tokens * p->n * p->k / EST_FLOPS_PER_NS;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    size_t m = windows * (size_t)p->tokens, n = (size_t)p->n, k = (size_t)p->k;
    (void)touched;
    const EngTrainingArray all[] = {
        {offsetof(State, x), m, k, 0, 1, 0},     {offsetof(State, w), n, k, 0, 0.1, 0},
        {offsetof(State, d_out), m, n, 0, 1, 0}, {offsetof(State, d_x), m, k, 0, 0, 0},
        {offsetof(State, d_w), n, k, 0, 0, 0},   {offsetof(State, d_bias), 1, n, 0, 0, 0},
    };
    memcpy(list, all, sizeof all);
}

/* The operands again, in bf16 or as the products want them. */
static size_t scratch(const EngProblem *problem)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    size_t m = (size_t)p->tokens, n = (size_t)p->n, k = (size_t)p->k;
    return sizeof(float) * (2 * m * k + n * k + m * n);
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    const State *state = opaque;
    (void)window;
    args->u.back_project = (EngBackProjectArgs){state->x,   state->w,   state->d_out,
                                                state->d_x, state->d_w, state->d_bias};
}

static EngStatus expect(void *opaque, const EngProblem *problem, const EngArgs *args,
                        EngOracle *oracle, EngErr *err)
{
    const State *state = opaque;
    const EngBackProjectProblem *p = &problem->u.back_project;
    (void)args, (void)oracle, (void)err;
    memset(state->d_w, 0, (size_t)p->n * (size_t)p->k * sizeof(float));
    memset(state->d_bias, 0, (size_t)p->n * sizeof(float));
    return ENG_OK;
}

static EngStatus compare(void *opaque, const EngProblem *problem, const EngArgs *all,
                         EngOracle *oracle, EngErr *err)
{
    const State *state = opaque;
    const EngBackProjectProblem *p = &problem->u.back_project;
    const EngBackProjectArgs *args = &all->u.back_project;
    EngRng rng;
    (void)err;
    eng_rng_seed(&rng, state->training.seed);
    for (int i = 0; i < CHECKED; i++) {
        double value[3], size[3], error[3];
        int64_t t = (int64_t)eng_rng_below(&rng, (uint64_t)p->tokens);
        int in = (int)eng_rng_below(&rng, (uint64_t)p->k);
        int out = (int)eng_rng_below(&rng, (uint64_t)p->n);
        float got[3] = {state->d_x[t * p->k + in], state->d_w[(int64_t)out * p->k + in],
                        state->d_bias[out]};
        double terms[3] = {p->n, (double)p->tokens, (double)p->tokens};
        eng_ref_back_project_x(p, args, t, in, &value[0], &size[0]);
        eng_ref_back_project_w(p, args, out, in, &value[1], &size[1]);
        eng_ref_back_project_bias(p, args, out, &value[2], &size[2]);
        for (int j = 0; j < 3; j++)
            error[j] = eng_limit_sum(ENG_F32, value[j], terms[j] + 1, size[j]).pass;
        eng_oracle_compare(oracle, got, value, error, 3);
    }
    oracle->n_outputs = p->tokens * p->k + (int64_t)p->n * p->k + p->n;
    return ENG_OK;
}

static const EngTrainingKind g_kind = {
    .state_bytes = sizeof(State),
    .problem = problem_of,
    .estimate_ns = estimate_ns,
    .arrays = arrays,
    .scratch = scratch,
    .args = args_of,
    .expect = expect,
    .compare = compare,
    .per = "tokens",
};

const EngExperiment eng_experiment_back_project = {
    .name = "back_project",
    .question = "What do the products of the projection's backward cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_BACK_PROJECT,
    ENG_TRAINING_LIFE(&g_kind),
};
