/* back_project: what do the two products of the projection's backward cost, in f32 and in bf16?
 * Inputs are synthetic. Outputs are checked by sampling. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/mem.h"
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
    uint64_t seed;
} State;

static EngProblem problem_of(const EngPoint *point)
{
    return (EngProblem){
        .op = ENG_OP_BACK_PROJECT,
        .threads = (int)eng_point_int(point, "threads"),
        .u.back_project = {.tokens = eng_point_int(point, "tokens"),
                           .n = (int)eng_point_int(point, "n"),
                           .k = (int)eng_point_int(point, "k"),
                           .type = (EngDtype)eng_dtype_parse(eng_point_word(point, "type"))}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngProblem problem = problem_of(point);
    return eng_training_check(point, &problem, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngProblem problem = problem_of(point);
    const EngBackProjectProblem *p = &problem.u.back_project;
    size_t m = (size_t)p->tokens, n = (size_t)p->n, k = (size_t)p->k;
    (void)err;
    *need = (EngNeed){.private_bytes = sizeof(float) * (4 * m * k + 3 * n * k + 2 * m * n)};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngProblem problem = problem_of(point);
    const EngBackProjectProblem *p = &problem.u.back_project;
    return 4 * (double)p->tokens * p->n * p->k / EST_FLOPS_PER_NS / problem.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_training_close(&state->training);
    eng_free(state);
}

static EngStatus make_arrays(State *state, const EngBackProjectProblem *p, EngErr *err)
{
    size_t m = (size_t)p->tokens, n = (size_t)p->n, k = (size_t)p->k;
    struct {
        float **at;
        size_t n, each;
        double deviation;
    } wanted[] = {{&state->x, m, k, 1},   {&state->w, n, k, 0.1}, {&state->d_out, m, n, 1},
                  {&state->d_x, m, k, 0}, {&state->d_w, n, k, 0}, {&state->d_bias, 1, n, 0}};
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_training_array(&state->training, wanted[i].n, wanted[i].each, 0,
                                    wanted[i].deviation, wanted[i].at, err);
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngProblem problem = problem_of(point);
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "projection", err);
    if (status) return status;
    state->seed = state->training.seed = bench->seed;
    status = make_arrays(state, &problem.u.back_project, err);
    if (!status) status = eng_training_open(&state->training, point, &problem, 1, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(const State *state)
{
    EngArgs args;
    args.u.back_project = (EngBackProjectArgs){state->x,   state->w,   state->d_out,
                                               state->d_x, state->d_w, state->d_bias};
    return args;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngArgs args = args_of(state);
    return eng_runner_run(&state->training.runner, &args, err);
}

static void compare(const State *state, const EngBackProjectArgs *args, EngCheck *check)
{
    const EngBackProjectProblem *p = &state->training.runner.problem.u.back_project;
    EngRng rng;
    eng_rng_seed(&rng, state->seed);
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
        eng_training_compare(check, got, value, error, 3);
    }
    check->n_outputs = p->tokens * p->k + (int64_t)p->n * p->k + p->n;
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngArgs args = args_of(state);
    const EngBackProjectProblem *p = &state->training.runner.problem.u.back_project;
    memset(state->d_w, 0, (size_t)p->n * (size_t)p->k * sizeof(float));
    memset(state->d_bias, 0, (size_t)p->n * sizeof(float));
    EngStatus status = eng_runner_run(&state->training.runner, &args, err);
    if (!status) compare(state, &args.u.back_project, &sum);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    eng_training_observe(&state->training, timing,
                         (double)state->training.runner.problem.u.back_project.tokens, values);
}

const EngExperiment eng_experiment_back_project = {
    .name = "back_project",
    .question = "What do the products of the projection's backward cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_BACK_PROJECT,
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
