/* back_conv: what does the backward of the short convolution cost on whole sequences? Inputs are
 * synthetic; sequences are of equal length, packed end to end. */
#include "bench/experiments/experiments.h"

#include <string.h>

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
    size_t width, window; /* values of a token, of a window */
    int64_t sequence, n_seqs;
    int64_t *starts, *few_starts; /* sequences of all tokens; of those checked */
    float *value, *norm, *weight, *d_out, *d_value, *d_norm, *d_weight;
} State;

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    (void)touched;
    *problem = (EngProblem){.op = ENG_OP_BACK_CONV,
                            .threads = (int)eng_point_int(point, "threads"),
                            .u.train_conv = {.tokens = eng_point_int(point, "tokens"),
                                             .streams = (int)eng_point_int(point, "streams"),
                                             .hidden = (int)eng_point_int(point, "hidden"),
                                             .kernel = (int)eng_point_int(point, "kernel"),
                                             .dilation = (int)eng_point_int(point, "dilation"),
                                             .eps = 1e-5f}};
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    (void)touched;
    return EST_NS_PER_VALUE * (double)p->tokens * p->streams * p->hidden;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    size_t tokens = windows * (size_t)p->tokens, taps = (size_t)p->kernel;
    size_t width = (size_t)p->streams * (size_t)p->hidden;
    (void)touched;
    const EngTrainingArray all[] = {
        {offsetof(State, value), tokens, width, 0, 1, 0},
        {offsetof(State, norm), 1, width, 1, 0.1, 0},
        {offsetof(State, weight), taps, width, 0, 0.5, 0},
        {offsetof(State, d_out), tokens, width, 0, 1, 0},
        {offsetof(State, d_value), tokens, width, 0, 0, 0},
        {offsetof(State, d_norm), 1, width, 0, 0, 0},
        {offsetof(State, d_weight), taps, width, 0, 0, 0},
        {offsetof(State, starts), (size_t)p->tokens + 1, 1, 0, 0, sizeof(int64_t)},
        {offsetof(State, few_starts), CHECKED_TOKENS + 1, 1, 0, 0, sizeof(int64_t)},
    };
    memcpy(list, all, sizeof all);
}

/* Sequences of so many tokens; gives how many. */
static int64_t set_starts(const State *state, int64_t *starts, int64_t tokens)
{
    int64_t n = (tokens + state->sequence - 1) / state->sequence;
    for (int64_t s = 0; s < n; s++) starts[s] = s * state->sequence;
    starts[n] = tokens;
    return n;
}

static EngStatus prepare(void *opaque, const EngPoint *point, EngProblem *problem, EngErr *err)
{
    State *state = opaque;
    const EngTrainConvProblem *p = &problem->u.train_conv;
    (void)err;
    state->width = (size_t)p->streams * (size_t)p->hidden;
    state->window = (size_t)p->tokens * state->width;
    state->sequence = eng_point_int(point, "sequence");
    state->n_seqs = set_starts(state, state->starts, p->tokens);
    return ENG_OK;
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    const State *state = opaque;
    args->u.back_conv = (EngBackConvArgs){.value = state->value + window * state->window,
                                          .norm_weight = state->norm,
                                          .conv_weight = state->weight,
                                          .starts = state->starts,
                                          .n_seqs = state->n_seqs,
                                          .d_out = state->d_out + window * state->window,
                                          .d_value = state->d_value + window * state->window,
                                          .d_norm_weight = state->d_norm,
                                          .d_conv_weight = state->d_weight};
}

/* Gradients of weights are sums over all tokens, so a call on many is checked by one on fewer. */
static bool few(void *opaque, EngProblem *problem, EngArgs *args)
{
    State *state = opaque;
    if (problem->u.train_conv.tokens <= CHECKED_TOKENS) return false;
    problem->u.train_conv.tokens = CHECKED_TOKENS;
    args->u.back_conv.starts = state->few_starts;
    args->u.back_conv.n_seqs = set_starts(state, state->few_starts, CHECKED_TOKENS);
    return true;
}

static EngStatus expect(void *opaque, const EngProblem *problem, const EngArgs *args, EngOracle *o,
                        EngErr *err)
{
    const State *state = opaque;
    const EngBackConvArgs *a = &args->u.back_conv;
    const EngTrainConvProblem *p = &problem->u.train_conv;
    size_t width = state->width, n = (size_t)p->tokens * width, taps = (size_t)p->kernel * width;
    EngRefConvInputs inputs = {eng_widened(o, a->value, n), eng_widened(o, a->norm_weight, width),
                               eng_widened(o, a->conv_weight, taps), a->starts, a->n_seqs};
    EngRefConvGradients want, errors;
    double *d_out = eng_widened(o, a->d_out, n);
    want.value = eng_oracle_want(o, a->d_value, n, &errors.value);
    want.norm_weight = eng_oracle_want(o, a->d_norm_weight, width, &errors.norm_weight);
    want.conv_weight = eng_oracle_want(o, a->d_conv_weight, taps, &errors.conv_weight);
    EngStatus status = eng_oracle_status(o, err);
    if (!status && !eng_ref_back_conv(p, &inputs, d_out, &want, &errors)) o->failed = true;
    memset(state->d_norm, 0, width * sizeof(float));
    memset(state->d_weight, 0, taps * sizeof(float));
    return status;
}

static const EngTrainingKind g_kind = {
    .state_bytes = sizeof(State),
    .rotated_tokens = ROTATED_TOKENS,
    .problem = problem_of,
    .estimate_ns = estimate_ns,
    .arrays = arrays,
    .prepare = prepare,
    .args = args_of,
    .few = few,
    .expect = expect,
    .per = "tokens",
};

const EngExperiment eng_experiment_back_conv = {
    .name = "back_conv",
    .question = "What does the backward of the short convolution cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_BACK_CONV,
    ENG_TRAINING_LIFE(&g_kind),
};
