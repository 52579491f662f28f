/* back_gate: what does the backward of gate + write-back cost? Inputs are synthetic; the forward
 * runs once in set-up, since the backward reads what it keeps. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "bench/experiments/training.h"
#include "kernels/ref/train_gate.h"

#define EST_NS_PER_VALUE 1.0
#define ROTATED_TOKENS   256 /* 110 MB at V4.1's width */
#define CHECKED_TOKENS   48

static const EngAxisDef g_axes[] = {
    ENG_AXIS_TOKENS_DEF("64", "tokens per call"),
    {"formula", ENG_AXIS_WORD, "copysign", "", 0, 0, eng_words_formula,
     "copysign: V4.1's signed root; sign: the demo's; plain: the paper's, without root"},
    {"streams", ENG_AXIS_INT, "4", "", 1, 16, NULL, "residual streams"},
    {"hidden", ENG_AXIS_INT, "5120", "values", 1, 65536, NULL, "width of a stream"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_VARIANT_DEF("back_gate"),
};

static const EngMetricDef g_metrics[] = {ENG_TRAINING_METRICS("token")};

typedef struct State {
    EngTraining training;
    size_t width;                          /* values of a token's streams */
    size_t window, kv_window, kept_window; /* values of a window */
    float *x, *kv, *q, *k, *out, *kept, *d_out, *d_x, *d_kv, *d_q, *d_k;
} State;

static void problem_of(const EngPoint *point, const EngTouched *touched, EngProblem *problem)
{
    (void)touched;
    *problem = (EngProblem){.op = ENG_OP_BACK_GATE,
                            .threads = (int)eng_point_int(point, "threads"),
                            .u.train_gate = {.tokens = eng_point_int(point, "tokens"),
                                             .streams = (int)eng_point_int(point, "streams"),
                                             .hidden = (int)eng_point_int(point, "hidden"),
                                             .formula = (EngGateFormula)eng_gate_formula_parse(
                                                 eng_point_word(point, "formula")),
                                             .eps = 1e-20f}};
}

static double estimate_ns(const EngProblem *problem, const EngTouched *touched)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    (void)touched;
    return EST_NS_PER_VALUE * (double)p->tokens * p->streams * p->hidden;
}

static void arrays(const EngProblem *problem, const EngTouched *touched, size_t windows,
                   EngTrainingArray *list)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    size_t hidden = (size_t)p->hidden, width = (size_t)p->streams * hidden;
    size_t tokens = windows * (size_t)p->tokens;
    (void)touched;
    const EngTrainingArray all[] = {
        {offsetof(State, x), tokens, width, 0, 1, 0},
        {offsetof(State, kv), tokens, width + hidden, 0, 1, 0},
        {offsetof(State, q), 1, width, 1, 0.25, 0},
        {offsetof(State, k), 1, width, 1, 0.25, 0},
        {offsetof(State, out), (size_t)p->tokens, width, 0, 0, 0},
        {offsetof(State, kept), tokens, (size_t)p->streams * ENG_GATE_KEPT, 0, 0, 0},
        {offsetof(State, d_out), tokens, width, 0, 1, 0},
        {offsetof(State, d_x), tokens, width, 0, 0, 0},
        {offsetof(State, d_kv), tokens, width + hidden, 0, 0, 0},
        {offsetof(State, d_q), 1, width, 0, 0, 0},
        {offsetof(State, d_k), 1, width, 0, 0, 0},
    };
    memcpy(list, all, sizeof all);
}

/* Fills what the forward keeps, of all windows. */
static EngStatus run_forward(void *opaque, const EngPoint *point, EngProblem *problem, EngErr *err)
{
    State *state = opaque;
    const EngTrainGateProblem *p = &problem->u.train_gate;
    EngRunner runner = {0};
    EngProblem forward = *problem;
    (void)point;
    state->width = (size_t)p->streams * (size_t)p->hidden;
    state->window = (size_t)p->tokens * state->width;
    state->kv_window = state->window + (size_t)p->tokens * (size_t)p->hidden;
    state->kept_window = (size_t)p->tokens * (size_t)p->streams * ENG_GATE_KEPT;
    forward.op = ENG_OP_TRAIN_GATE;
    EngStatus status =
        eng_runner_open(&runner, eng_kernel_find(ENG_OP_TRAIN_GATE, "portable"), &forward, err);
    for (size_t w = 0; !status && w < (size_t)state->training.windows; w++) {
        EngArgs args;
        args.u.train_gate = (EngTrainGateArgs){.streams_in = state->x + w * state->window,
                                               .kv = state->kv + w * state->kv_window,
                                               .q_weight = state->q,
                                               .k_weight = state->k,
                                               .streams_out = state->out,
                                               .kept = state->kept + w * state->kept_window};
        status = eng_runner_run(&runner, &args, err);
    }
    eng_runner_close(&runner);
    return status;
}

static void args_of(void *opaque, size_t window, EngArgs *args)
{
    const State *state = opaque;
    args->u.back_gate = (EngBackGateArgs){.streams_in = state->x + window * state->window,
                                          .kv = state->kv + window * state->kv_window,
                                          .q_weight = state->q,
                                          .k_weight = state->k,
                                          .kept = state->kept + window * state->kept_window,
                                          .d_out = state->d_out + window * state->window,
                                          .d_streams = state->d_x + window * state->window,
                                          .d_kv = state->d_kv + window * state->kv_window,
                                          .d_q_weight = state->d_q,
                                          .d_k_weight = state->d_k};
}

/* Gradients of weights are sums over all tokens, so a call on many is checked by one on fewer. */
static bool few(void *opaque, EngProblem *problem, EngArgs *args)
{
    (void)opaque, (void)args;
    if (problem->u.train_gate.tokens <= CHECKED_TOKENS) return false;
    problem->u.train_gate.tokens = CHECKED_TOKENS;
    return true;
}

static EngStatus expect(void *opaque, const EngProblem *problem, const EngArgs *args, EngOracle *o,
                        EngErr *err)
{
    const State *state = opaque;
    const EngBackGateArgs *a = &args->u.back_gate;
    const EngTrainGateProblem *p = &problem->u.train_gate;
    size_t width = state->width, n = (size_t)p->tokens * width;
    size_t n_kv = n + (size_t)p->tokens * (size_t)p->hidden;
    EngRefGateInputs inputs = {eng_widened(o, a->streams_in, n), eng_widened(o, a->kv, n_kv),
                               eng_widened(o, a->q_weight, width),
                               eng_widened(o, a->k_weight, width), NULL};
    EngRefGateGradients want, errors;
    double *d_out = eng_widened(o, a->d_out, n);
    want.streams = eng_oracle_want(o, a->d_streams, n, &errors.streams);
    want.kv = eng_oracle_want(o, a->d_kv, n_kv, &errors.kv);
    want.q_weight = eng_oracle_want(o, a->d_q_weight, width, &errors.q_weight);
    want.k_weight = eng_oracle_want(o, a->d_k_weight, width, &errors.k_weight);
    EngStatus status = eng_oracle_status(o, err);
    if (!status) eng_ref_back_gate(p, &inputs, d_out, &want, &errors);
    memset(state->d_q, 0, width * sizeof(float));
    memset(state->d_k, 0, width * sizeof(float));
    return status;
}

static const EngTrainingKind g_kind = {
    .state_bytes = sizeof(State),
    .rotated_tokens = ROTATED_TOKENS,
    .problem = problem_of,
    .estimate_ns = estimate_ns,
    .arrays = arrays,
    .prepare = run_forward,
    .args = args_of,
    .few = few,
    .expect = expect,
    .per = "tokens",
};

const EngExperiment eng_experiment_back_gate = {
    .name = "back_gate",
    .question = "What does the backward of gate and write-back cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_BACK_GATE,
    ENG_TRAINING_LIFE(&g_kind),
};
