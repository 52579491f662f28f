/* back_conv: what does the backward of the short convolution cost on whole sequences? Inputs are
 * synthetic; sequences are of equal length, packed end to end. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/mem.h"
#include "bench/experiments/training.h"
#include "kernels/ref/train_conv.h"

#define EST_NS_PER_VALUE 3.0
#define ROTATED_TOKENS   1024 /* 48 MiB at 4 streams of 1024 */
#define CHECKED_TOKENS   12   /* the oracle computes norms anew for each use */

static const EngAxisDef g_axes[] = {
    ENG_AXIS_TOKENS_DEF("256", "tokens per call"),
    {"sequence", ENG_AXIS_INT, "256", "tokens", 1, ENG_MAX_POINT_TOKENS, NULL,
     "tokens of a packed sequence"},
    {"streams", ENG_AXIS_INT, "4", "", 1, 16, NULL, "residual streams"},
    {"hidden", ENG_AXIS_INT, "1024", "values", 1, 65536, NULL, "width of a stream"},
    {"kernel", ENG_AXIS_INT, "4", "", 1, 64, NULL, "taps"},
    {"dilation", ENG_AXIS_INT, "3", "tokens", 1, 1024, NULL, "distance of taps"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_VARIANT_DEF("back_conv"),
};

static const EngMetricDef g_metrics[] = {ENG_TRAINING_METRICS("token")};

typedef struct State {
    EngTraining training;
    size_t width, window, taps;
    int64_t sequence, n_seqs;
    int64_t *starts; /* [n_seqs + 1] */
    float *value, *norm, *weight, *d_out, *d_value, *d_norm, *d_weight;
} State;

static EngProblem problem_of(const EngPoint *point)
{
    return (EngProblem){.op = ENG_OP_BACK_CONV,
                        .threads = (int)eng_point_int(point, "threads"),
                        .u.train_conv = {.tokens = eng_point_int(point, "tokens"),
                                         .streams = (int)eng_point_int(point, "streams"),
                                         .hidden = (int)eng_point_int(point, "hidden"),
                                         .kernel = (int)eng_point_int(point, "kernel"),
                                         .dilation = (int)eng_point_int(point, "dilation"),
                                         .eps = 1e-5f}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngProblem problem = problem_of(point);
    return eng_training_check(point, &problem, why);
}

static int64_t windows_of(int64_t tokens)
{
    return (ROTATED_TOKENS + tokens - 1) / tokens;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngProblem problem = problem_of(point);
    const EngTrainConvProblem *p = &problem.u.train_conv;
    size_t values = (size_t)p->tokens * (size_t)p->streams * (size_t)p->hidden;
    (void)err;
    *need = (EngNeed){.private_bytes =
                          sizeof(float) * values * (3 * (size_t)windows_of(p->tokens) + 2)};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngProblem problem = problem_of(point);
    const EngTrainConvProblem *p = &problem.u.train_conv;
    return EST_NS_PER_VALUE * (double)p->tokens * p->streams * p->hidden / problem.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_training_close(&state->training);
    eng_free(state->starts);
    eng_free(state);
}

static EngStatus make_arrays(State *state, const EngTrainConvProblem *p, EngErr *err)
{
    size_t tokens = (size_t)windows_of(p->tokens) * (size_t)p->tokens;
    state->width = (size_t)p->streams * (size_t)p->hidden;
    state->window = (size_t)p->tokens * state->width;
    state->taps = state->width * (size_t)p->kernel;
    struct {
        float **at;
        size_t n;
        double mean, deviation;
    } wanted[] = {
        {&state->value, tokens, 0, 1},
        {&state->norm, 1, 1, 0.1},
        {&state->weight, (size_t)p->kernel, 0, 0.5},
        {&state->d_out, tokens, 0, 1},
        {&state->d_value, tokens, 0, 0},
        {&state->d_norm, 1, 0, 0},
        {&state->d_weight, (size_t)p->kernel, 0, 0},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_training_array(&state->training, wanted[i].n, state->width, wanted[i].mean,
                                    wanted[i].deviation, wanted[i].at, err);
    state->n_seqs = (p->tokens + state->sequence - 1) / state->sequence;
    if (!status)
        status = eng_alloc_or((void **)&state->starts, (size_t)state->n_seqs + 1, sizeof(int64_t),
                              "sequences", err);
    return status;
}

/* Sequences of the first `tokens`; gives how many. */
static int64_t set_starts(State *state, int64_t tokens)
{
    int64_t n = (tokens + state->sequence - 1) / state->sequence;
    for (int64_t s = 0; s < n; s++) state->starts[s] = s * state->sequence;
    state->starts[n] = tokens;
    return n;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngProblem problem = problem_of(point);
    int64_t tokens = problem.u.train_conv.tokens;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "convolution", err);
    if (status) return status;
    state->training.seed = bench->seed;
    state->sequence = eng_point_int(point, "sequence");
    status = make_arrays(state, &problem.u.train_conv, err);
    if (!status) set_starts(state, tokens);
    if (!status)
        status = eng_training_open(&state->training, point, &problem, windows_of(tokens), err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(const State *state, size_t window)
{
    EngArgs args;
    args.u.back_conv = (EngBackConvArgs){.value = state->value + window * state->window,
                                         .norm_weight = state->norm,
                                         .conv_weight = state->weight,
                                         .starts = state->starts,
                                         .n_seqs = state->n_seqs,
                                         .d_out = state->d_out + window * state->window,
                                         .d_value = state->d_value + window * state->window,
                                         .d_norm_weight = state->d_norm,
                                         .d_conv_weight = state->d_weight};
    return args;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngArgs args = args_of(state, (size_t)eng_training_next(&state->training));
    return eng_runner_run(&state->training.runner, &args, err);
}

static EngStatus compare(const State *state, const EngTrainConvProblem *p, int64_t n_seqs,
                         EngCheck *check, EngErr *err)
{
    EngDoubles d = {0};
    size_t n = (size_t)p->tokens * state->width, width = state->width, taps = state->taps;
    EngRefConvInputs inputs = {eng_widened(&d, state->value, n),
                               eng_widened(&d, state->norm, width),
                               eng_widened(&d, state->weight, taps), state->starts, n_seqs};
    double *d_out = eng_widened(&d, state->d_out, n);
    EngRefConvGradients want = {eng_doubles(&d, n), eng_doubles(&d, width), eng_doubles(&d, taps)};
    EngRefConvGradients errors = {eng_doubles(&d, n), eng_doubles(&d, width),
                                  eng_doubles(&d, taps)};
    EngStatus status = eng_doubles_status(&d, err);
    if (!status && !eng_ref_back_conv(p, &inputs, d_out, &want, &errors)) {
        d.failed = true;
        status = eng_doubles_status(&d, err);
    }
    if (!status) {
        eng_training_compare(check, state->d_value, want.value, errors.value, n);
        eng_training_compare(check, state->d_norm, want.norm_weight, errors.norm_weight, width);
        eng_training_compare(check, state->d_weight, want.conv_weight, errors.conv_weight, taps);
    }
    eng_doubles_free(&d);
    return status;
}

/* Gradients of weights are sums over all tokens, so a call on many is checked by one on fewer. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngRunner few = {0}, *runner = &state->training.runner;
    EngArgs args = args_of(state, 0);
    EngProblem problem = runner->problem;
    EngStatus status = ENG_OK;
    if (eng_kernel_unchecked(runner->kernel)) {
        eng_residual_of_roof(residual);
        return eng_runner_run(runner, &args, err);
    }
    if (problem.u.train_conv.tokens > CHECKED_TOKENS) {
        problem.u.train_conv.tokens = CHECKED_TOKENS;
        status = eng_runner_open(&few, runner->kernel, &problem, err);
        runner = &few;
    }
    args.u.back_conv.n_seqs = set_starts(state, problem.u.train_conv.tokens);
    memset(state->d_norm, 0, state->width * sizeof(float));
    memset(state->d_weight, 0, state->taps * sizeof(float));
    if (!status) status = eng_runner_run(runner, &args, err);
    if (!status) status = compare(state, &problem.u.train_conv, args.u.back_conv.n_seqs, &sum, err);
    set_starts(state, state->training.runner.problem.u.train_conv.tokens);
    eng_runner_close(&few);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    eng_training_observe(&state->training, timing,
                         (double)state->training.runner.problem.u.train_conv.tokens, values);
}

const EngExperiment eng_experiment_back_conv = {
    .name = "back_conv",
    .question = "What does the backward of the short convolution cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_BACK_CONV,
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
