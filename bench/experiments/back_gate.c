/* back_gate: what does the backward of gate + write-back cost? Inputs are synthetic; the forward
 * runs once in set-up, since the backward reads what it keeps. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/mem.h"
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
    size_t width, window, kv_window; /* values of a token, of a window of streams and of kv */
    float *x, *kv, *q, *k, *out, *kept, *d_out, *d_x, *d_kv, *d_q, *d_k;
} State;

static EngProblem problem_of(const EngPoint *point)
{
    return (EngProblem){.op = ENG_OP_BACK_GATE,
                        .threads = (int)eng_point_int(point, "threads"),
                        .u.train_gate = {.tokens = eng_point_int(point, "tokens"),
                                         .streams = (int)eng_point_int(point, "streams"),
                                         .hidden = (int)eng_point_int(point, "hidden"),
                                         .formula = (EngGateFormula)eng_gate_formula_parse(
                                             eng_point_word(point, "formula")),
                                         .eps = 1e-20f}};
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
    const EngTrainGateProblem *p = &problem.u.train_gate;
    size_t values = (size_t)p->tokens * (size_t)(p->streams + 1) * (size_t)p->hidden;
    (void)err;
    *need = (EngNeed){.private_bytes = sizeof(float) * 6 * values * (size_t)windows_of(p->tokens)};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngProblem problem = problem_of(point);
    const EngTrainGateProblem *p = &problem.u.train_gate;
    return EST_NS_PER_VALUE * (double)p->tokens * p->streams * p->hidden / problem.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_training_close(&state->training);
    eng_free(state);
}

static EngStatus make_arrays(State *state, const EngTrainGateProblem *p, EngErr *err)
{
    EngTraining *t = &state->training;
    size_t streams = (size_t)p->streams, hidden = (size_t)p->hidden;
    size_t tokens = (size_t)windows_of(p->tokens) * (size_t)p->tokens;
    state->width = streams * hidden;
    state->window = (size_t)p->tokens * state->width;
    state->kv_window = (size_t)p->tokens * (state->width + hidden);
    struct {
        float **at;
        size_t n, each;
        double mean, deviation;
    } wanted[] = {
        {&state->x, tokens, state->width, 0, 1},
        {&state->kv, tokens, state->width + hidden, 0, 1},
        {&state->q, 1, state->width, 1, 0.25},
        {&state->k, 1, state->width, 1, 0.25},
        {&state->out, (size_t)p->tokens, state->width, 0, 0},
        {&state->kept, tokens, streams * ENG_GATE_KEPT, 0, 0},
        {&state->d_out, tokens, state->width, 0, 1},
        {&state->d_x, tokens, state->width, 0, 0},
        {&state->d_kv, tokens, state->width + hidden, 0, 0},
        {&state->d_q, 1, state->width, 0, 0},
        {&state->d_k, 1, state->width, 0, 0},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_training_array(t, wanted[i].n, wanted[i].each, wanted[i].mean,
                                    wanted[i].deviation, wanted[i].at, err);
    return status;
}

/* Fills what the forward keeps, of all windows. */
static EngStatus run_forward(State *state, const EngProblem *problem, EngErr *err)
{
    EngRunner runner = {0};
    EngProblem forward = *problem;
    forward.op = ENG_OP_TRAIN_GATE;
    memset(forward.tuned, 0, sizeof forward.tuned);
    EngStatus status =
        eng_runner_open(&runner, eng_kernel_find(ENG_OP_TRAIN_GATE, "portable"), &forward, err);
    for (size_t w = 0; !status && w < (size_t)state->training.windows; w++) {
        EngArgs args;
        size_t kept = state->window / (size_t)problem->u.train_gate.hidden * ENG_GATE_KEPT;
        args.u.train_gate = (EngTrainGateArgs){.streams_in = state->x + w * state->window,
                                               .kv = state->kv + w * state->kv_window,
                                               .q_weight = state->q,
                                               .k_weight = state->k,
                                               .streams_out = state->out,
                                               .kept = state->kept + w * kept};
        status = eng_runner_run(&runner, &args, err);
    }
    eng_runner_close(&runner);
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngProblem problem = problem_of(point);
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "gate backward", err);
    if (status) return status;
    state->training.seed = bench->seed;
    status = make_arrays(state, &problem.u.train_gate, err);
    if (!status)
        status = eng_training_open(&state->training, point, &problem,
                                   windows_of(problem.u.train_gate.tokens), err);
    if (!status) status = run_forward(state, &problem, err);
    if (!status) status = eng_training_cover(&state->training, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(const State *state, size_t window)
{
    EngArgs args;
    size_t kept =
        state->window / (size_t)state->training.runner.problem.u.train_gate.hidden * ENG_GATE_KEPT;
    args.u.back_gate = (EngBackGateArgs){.streams_in = state->x + window * state->window,
                                         .kv = state->kv + window * state->kv_window,
                                         .q_weight = state->q,
                                         .k_weight = state->k,
                                         .kept = state->kept + window * kept,
                                         .d_out = state->d_out + window * state->window,
                                         .d_streams = state->d_x + window * state->window,
                                         .d_kv = state->d_kv + window * state->kv_window,
                                         .d_q_weight = state->d_q,
                                         .d_k_weight = state->d_k};
    return args;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngArgs args = args_of(state, (size_t)eng_training_next(&state->training));
    return eng_runner_run(&state->training.runner, &args, err);
}

/* The oracle's gradients of `p`, compared with what the kernel left. */
static EngStatus compare(const State *state, const EngTrainGateProblem *p, EngCheck *check,
                         EngErr *err)
{
    EngDoubles d = {0};
    size_t n = (size_t)p->tokens * state->width;
    size_t n_kv = n + (size_t)p->tokens * (size_t)p->hidden, width = state->width;
    EngRefGateInputs inputs = {eng_widened(&d, state->x, n), eng_widened(&d, state->kv, n_kv),
                               eng_widened(&d, state->q, width), eng_widened(&d, state->k, width),
                               NULL};
    double *d_out = eng_widened(&d, state->d_out, n);
    EngRefGateGradients want = {eng_doubles(&d, n), eng_doubles(&d, n_kv), eng_doubles(&d, width),
                                eng_doubles(&d, width)};
    EngRefGateGradients errors = {eng_doubles(&d, n), eng_doubles(&d, n_kv), eng_doubles(&d, width),
                                  eng_doubles(&d, width)};
    EngStatus status = eng_doubles_status(&d, err);
    if (!status) {
        eng_ref_back_gate(p, &inputs, d_out, &want, &errors);
        eng_training_compare(check, state->d_x, want.streams, errors.streams, n);
        eng_training_compare(check, state->d_kv, want.kv, errors.kv, n_kv);
        eng_training_compare(check, state->d_q, want.q_weight, errors.q_weight, width);
        eng_training_compare(check, state->d_k, want.k_weight, errors.k_weight, width);
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
    if (problem.u.train_gate.tokens > CHECKED_TOKENS) {
        problem.u.train_gate.tokens = CHECKED_TOKENS;
        status = eng_runner_open(&few, runner->kernel, &problem, err);
        runner = &few;
    }
    memset(state->d_q, 0, state->width * sizeof(float));
    memset(state->d_k, 0, state->width * sizeof(float));
    if (!status) status = eng_runner_run_whole(runner, &args, err);
    if (!status) status = compare(state, &problem.u.train_gate, &sum, err);
    eng_runner_close(&few);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    eng_training_observe(&state->training, timing,
                         (double)state->training.runner.problem.u.train_gate.tokens, values);
}

const EngExperiment eng_experiment_back_gate = {
    .name = "back_gate",
    .question = "What does the backward of gate and write-back cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_BACK_GATE,
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
