/* gate: what does gate + write-back cost, and how saturated are the gates? Hidden states and keys
 * are synthetic with a stated alignment (inputs.h); timing runs in place, as the model does.
 *
 * Gates and scores for the statistics come from a pass over the inputs as they were made. Timed
 * runs rewrite the streams again and again; the streams drift along the values, which are
 * independent of the keys, so the work stays the same.
 */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/nvtx.h"
#include "base/rng.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/histograms.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/replay.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"

#define EST_NS_PER_VALUE 0.25 /* of kv, with the streams it goes with */
#define ROTATED_TOKENS   512  /* 47 MB at V4.1's width: beyond the caches */
#define CHECKED_TOKENS   64
#define WEIGHT_DEVIATION 0.25f
#define SEED_WEIGHTS     0x77656967687473u

static const EngAxisDef g_axes[] = {
    ENG_AXIS_PRESET_DEF,
    ENG_AXIS_LAYER_DEF,
    ENG_AXIS_TOKENS_DEF("64", "tokens per call"),
    {"formula", ENG_AXIS_WORD, "copysign", "", 0, 0, eng_words_formula,
     "copysign: V4.1's signed root; sign: the demo's; plain: the paper's, without root"},
    {"alignment", ENG_AXIS_REAL, "0.3", "", 0, 1, NULL,
     "cosine between synthetic hidden states and their keys"},
    {"streams", ENG_AXIS_INT, "4", "", 1, 16, NULL, "residual streams"},
    {"hidden", ENG_AXIS_INT, "5120", "values", 1, 65536, NULL, "width of a stream"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_CACHE_DEF,
    ENG_AXIS_GRAPH_DEF,
    ENG_AXIS_VARIANT_DEF("gate"),
};

static const EngMetricDef g_metrics[] = {
    {"gate_gbps", "GB/s", +1, "cpu", "bytes of kv read, streams read and written, per CPU time"},
    {"ns_per_token", "ns", -1, "cpu", "CPU time per token, all streams"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},
    {"wall_us", "us", -1, "wall", "wall time of one call"},
    {"sat_05", "share", 0, "none", "share of gates <= 0.05 or >= 0.95 (synthetic hidden states)"},
    {"sat_10", "share", 0, "none", "share of gates <= 0.1 or >= 0.9 (synthetic hidden states)"},
    {"mean_dgate", "", 0, "none", "mean of d gate / d score (synthetic hidden states)"},
    {"divergence_sign", "", 0, "none", "most that a gate differs from the sign formula's"},
    {"divergence_plain", "", 0, "none", "most that a gate differs from the plain formula's"},
    {"flops", "flop", 0, "none", "arithmetic of one call, from its shape (EngKernel.cost)"},
    {"moved_bytes", "B", 0, "none", "bytes one call must read and write, from its shape"},
    {"working_set_bytes", "B", 0, "none", "inputs of all windows timed"},
    ENG_METRIC_LAUNCHES_DEF,
};

typedef struct Stats {
    double sat_05, sat_10, mean_dgate, divergence_sign, divergence_plain;
} Stats;

typedef struct State {
    EngShape shape;
    EngRunner runner;
    EngReplay replay;
    int64_t windows, next;
    bool rotates;                    /* false: one window is run on again and again */
    size_t kv_values, stream_values; /* of one window */
    uint16_t *q_weight, *k_weight;   /* [streams, hidden] */
    uint16_t *kv, *states;           /* all windows */
    uint16_t *scratch;               /* one window of streams */
    float *gates, *scores;           /* [windows * tokens, streams]; NULL for unchecked roofs */
    Stats stats;
    uint64_t seed;
} State;

static EngProblem problem_of(const EngPoint *point, const EngShape *shape)
{
    int formula = eng_gate_formula_parse(eng_point_word(point, "formula"));
    return (EngProblem){.op = ENG_OP_GATE,
                        .threads = shape->threads,
                        .u.gate = {.tokens = shape->tokens,
                                   .streams = shape->streams,
                                   .hidden = shape->hidden,
                                   .formula = (EngGateFormula)formula,
                                   .eps = shape->preset.gate_eps}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    const EngKernel *kernel;
    double alignment = eng_point_real(point, "alignment");
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (!status) status = eng_point_kernel(point, ENG_OP_GATE, &kernel, why);
    if (status) return status;
    if (!(alignment >= 0 && alignment <= 1))
        return ENG_FAIL(why, ENG_USAGE, "alignment: %g must be 0 to 1", alignment);
    if (shape.hidden < 1 || shape.streams < 1)
        return ENG_FAIL(why, ENG_USAGE, "streams and hidden: %d and %d must be 1 or more",
                        shape.streams, shape.hidden);
    EngProblem problem = problem_of(point, &shape);
    status = eng_point_settings(point, kernel, &problem, why);
    if (!status) status = eng_kernel_supports(kernel, &problem, why);
    return status ? status : eng_point_device_check(point, kernel, why);
}

static int64_t windows_of(const EngShape *shape)
{
    return (ROTATED_TOKENS + shape->tokens - 1) / shape->tokens;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    size_t tokens = (size_t)(windows_of(&shape) * shape.tokens + shape.tokens);
    *need = (EngNeed){.preset = eng_point_word(point, "preset"),
                      .private_bytes = 2 * tokens * (size_t)(2 * shape.n)};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    return EST_NS_PER_VALUE * (double)shape.tokens * (double)shape.n / shape.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_replay_close(&state->replay);
    eng_runner_close(&state->runner);
    eng_free(state->q_weight);
    eng_free(state->k_weight);
    eng_free(state->kv);
    eng_free(state->states);
    eng_free(state->scratch);
    eng_free(state->gates);
    eng_free(state->scores);
    eng_free(state);
}

/* ---- set-up ------------------------------------------------------------------------------------
 */

static EngStatus allocate(State *state, EngErr *err)
{
    const EngShape *shape = &state->shape;
    size_t weights = (size_t)shape->streams * (size_t)shape->hidden;
    size_t windows = (size_t)state->windows, tokens = (size_t)shape->tokens;
    size_t gates = windows * tokens * (size_t)shape->streams;
    state->kv_values = tokens * (size_t)shape->n;
    state->stream_values = tokens * weights;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {
        {(void **)&state->q_weight, weights, 2},
        {(void **)&state->k_weight, weights, 2},
        {(void **)&state->kv, windows, 2 * state->kv_values},
        {(void **)&state->states, windows, 2 * state->stream_values},
        {(void **)&state->scratch, 1, 2 * state->stream_values},
        {(void **)&state->gates, gates, sizeof(float)},
        {(void **)&state->scores, gates, sizeof(float)},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "gate inputs", err);
    return status;
}

static EngStatus fill_inputs(State *state, double alignment, EngErr *err)
{
    EngNormals *normals;
    const EngShape *shape = &state->shape;
    int64_t weights = (int64_t)shape->streams * shape->hidden;
    EngStatus status = eng_alloc_or((void **)&normals, 1, sizeof *normals, "table of normals", err);
    if (status) return status;
    eng_normals_init(normals);
    uint64_t seed = state->seed ^ SEED_WEIGHTS;
    eng_normals_bf16(normals, seed, 0, 1, WEIGHT_DEVIATION, weights, state->q_weight);
    eng_normals_bf16(normals, seed, 1, 1, WEIGHT_DEVIATION, weights, state->k_weight);
    status = eng_synthetic_gate_inputs(normals, state->seed, 0, state->windows * shape->tokens,
                                       shape->streams, shape->hidden, alignment, state->kv,
                                       state->states, err);
    eng_free(normals);
    return status;
}

static EngArgs timed_args(State *state, int64_t window)
{
    EngArgs args;
    uint16_t *streams = state->states + (size_t)window * state->stream_values;
    args.u.gate = (EngGateArgs){.streams_in = streams,
                                .streams_out = streams,
                                .kv = state->kv + (size_t)window * state->kv_values};
    return args;
}

/* In place on a copy, as timed, but with gates and scores written; the inputs stay. */
static EngStatus run_on_copy(State *state, int64_t window, const uint8_t *dead, EngArgs *args,
                             EngErr *err)
{
    size_t first = (size_t)(window * state->shape.tokens) * (size_t)state->shape.streams;
    *args = timed_args(state, window);
    memcpy(state->scratch, args->u.gate.streams_in, 2 * state->stream_values);
    args->u.gate.streams_in = args->u.gate.streams_out = state->scratch;
    args->u.gate.dead = dead;
    args->u.gate.gates = state->gates + first;
    args->u.gate.scores = state->scores + first;
    EngStatus status = eng_runner_run_whole(&state->runner, args, err);
    args->u.gate.streams_in = timed_args(state, window).u.gate.streams_in;
    return status;
}

static Stats stats_of(EngGateFormula formula, const float *gates, const float *scores, int64_t n)
{
    Stats stats = {0};
    int64_t sat_05 = 0, sat_10 = 0;
    double slope = 0;
    for (int64_t i = 0; i < n; i++) {
        double gate = gates[i], score = scores[i];
        sat_05 += gate <= 0.05 || gate >= 0.95;
        sat_10 += gate <= 0.1 || gate >= 0.9;
        slope += eng_gate_slope(formula, score);
        stats.divergence_sign =
            fmax(stats.divergence_sign, fabs(gate - eng_gate_value(ENG_GATE_SIGN, score)));
        stats.divergence_plain =
            fmax(stats.divergence_plain, fabs(gate - eng_gate_value(ENG_GATE_PLAIN, score)));
    }
    stats.sat_05 = (double)sat_05 / (double)n;
    stats.sat_10 = (double)sat_10 / (double)n;
    stats.mean_dgate = slope / (double)n;
    return stats;
}

static EngStatus gather_stats(State *state, EngErr *err)
{
    const EngShape *shape = &state->shape;
    EngStatus status = ENG_OK;
    EngArgs args;
    for (int64_t w = 0; !status && w < state->windows; w++)
        status = run_on_copy(state, w, NULL, &args, err);
    if (!status)
        state->stats = stats_of(state->runner.problem.u.gate.formula, state->gates, state->scores,
                                state->windows * shape->tokens * shape->streams);
    return status;
}

static EngStatus cover_windows(State *state, EngErr *err)
{
    size_t windows = (size_t)state->windows;
    size_t gates = windows * (size_t)(state->shape.tokens * state->shape.streams);
    struct {
        const void *at;
        size_t bytes;
    } all[] = {{state->kv, 2 * windows * state->kv_values},
               {state->states, 2 * windows * state->stream_values},
               {state->gates, gates * sizeof(float)},
               {state->scores, gates * sizeof(float)}};
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof all / sizeof *all; i++)
        status = eng_runner_cover(&state->runner, all[i].at, all[i].bytes, err);
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    const EngKernel *kernel;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "gate", err);
    if (status) return status;
    state->seed = bench->seed;
    status = eng_shape_resolve(point, &state->shape, err);
    if (!status) status = eng_point_kernel(point, ENG_OP_GATE, &kernel, err);
    if (!status) {
        state->windows = windows_of(&state->shape);
        state->rotates = eng_windows_of_point(point, 2) > 1;
        status = allocate(state, err);
    }
    if (!status) status = fill_inputs(state, eng_point_real(point, "alignment"), err);
    if (!status) {
        EngProblem problem = problem_of(point, &state->shape);
        problem.u.gate.q_weight = state->q_weight;
        problem.u.gate.k_weight = state->k_weight;
        status = eng_point_settings(point, kernel, &problem, err);
        if (!status) status = eng_runner_open(&state->runner, kernel, &problem, err);
        if (!status) state->runner.layer = state->shape.layer;
    }
    if (!status) status = cover_windows(state, err);
    if (!status) status = eng_replay_open(&state->replay, point, state->windows, err);
    if (!status && !eng_kernel_unchecked(kernel)) status = gather_stats(state, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

/* ---- runs --------------------------------------------------------------------------------------
 */

static EngStatus run_window(void *opaque, int64_t window, EngErr *err)
{
    State *state = opaque;
    EngArgs args = timed_args(state, window);
    return eng_runner_run(&state->runner, &args, err);
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    int64_t window = state->next, n = state->shape.tokens * state->shape.streams;
    if (state->rotates) state->next = state->next + 1 == state->windows ? 0 : state->next + 1;
    eng_nvtx_push(ENG_RANGE_LAYER, (EngRangeInfo){.tokens = state->shape.tokens,
                                                  .layer = state->shape.layer,
                                                  .step = eng_nvtx_step});
    EngStatus status = eng_replay_run(&state->replay, run_window, state, window, err);
    if (state->gates) eng_mark_saturated(state->gates + window * n, n);
    eng_nvtx_pop();
    return status;
}

/* One window with every third token masked: those must keep their bits. */
static EngStatus verify_masked(State *state, EngCheck *sum, EngErr *err)
{
    EngArgs args;
    uint8_t *dead;
    int64_t tokens = state->shape.tokens;
    EngStatus status = eng_alloc_or((void **)&dead, (size_t)tokens, 1, "mask", err);
    for (int64_t t = 0; !status && t < tokens; t += 3) dead[t] = 1;
    if (!status) status = run_on_copy(state, 0, dead, &args, err);
    if (!status)
        status = eng_check_gate(&state->runner.problem.u.gate, &args.u.gate, state->seed,
                                CHECKED_TOKENS, sum, err);
    /* Statistics come from unmasked gates: put window 0's back. */
    if (!status) status = run_on_copy(state, 0, NULL, &args, err);
    eng_free(dead);
    return status;
}

/* The graph that is timed, which writes no gates, on window 0, whose streams are then put back. */
static EngStatus verify_replay(State *state, EngCheck *sum, EngErr *err)
{
    EngArgs args = timed_args(state, 0);
    uint16_t *streams = args.u.gate.streams_out;
    if (!state->replay.graphs) return ENG_OK;
    memcpy(state->scratch, streams, 2 * state->stream_values);
    EngStatus status =
        eng_replay_run_whole(&state->replay, run_window, state, 0, &state->runner, &args, 1, err);
    args.u.gate.streams_in = state->scratch;
    if (!status)
        status = eng_check_gate(&state->runner.problem.u.gate, &args.u.gate, state->seed,
                                CHECKED_TOKENS, sum, err);
    memcpy(streams, state->scratch, 2 * state->stream_values);
    return status;
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngStatus status = ENG_OK;
    if (eng_kernel_unchecked(state->runner.kernel)) {
        eng_residual_of_roof(residual);
        return run(state, err);
    }
    int64_t checked = 0;
    for (int64_t w = 0; !status && w < state->windows && checked < CHECKED_TOKENS; w++) {
        EngArgs args;
        status = run_on_copy(state, w, NULL, &args, err);
        if (!status)
            status = eng_check_gate(&state->runner.problem.u.gate, &args.u.gate, state->seed,
                                    CHECKED_TOKENS - checked, &sum, err);
        checked += state->shape.tokens;
    }
    if (!status) status = verify_masked(state, &sum, err);
    if (!status) status = verify_replay(state, &sum, err);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    double cpu_ns = eng_cpu_ns(timing);
    values[0] = 2 * (double)(state->kv_values + 2 * state->stream_values) / cpu_ns;
    values[1] = cpu_ns / (double)state->shape.tokens;
    values[2] = cpu_ns * 1e-3;
    values[3] = eng_wall_ns(timing) * 1e-3;
    bool none = eng_kernel_unchecked(state->runner.kernel);
    values[4] = none ? NAN : state->stats.sat_05;
    values[5] = none ? NAN : state->stats.sat_10;
    values[6] = none ? NAN : state->stats.mean_dgate;
    values[7] = none ? NAN : state->stats.divergence_sign;
    values[8] = none ? NAN : state->stats.divergence_plain;
    eng_runner_cost(&state->runner, &values[9], &values[10]);
    values[11] = 2.0 * (double)(state->kv_values + state->stream_values) *
                 (double)(state->rotates ? state->windows : 1);
    values[12] = eng_launches(timing);
}

/* One pair per residual stream. */
static EngStatus histograms(void *opaque, EngHistogramSink sink, void *context, EngErr *err)
{
    State *state = opaque;
    const EngShape *shape = &state->shape;
    int64_t tokens = state->windows * shape->tokens;
    if (eng_kernel_unchecked(state->runner.kernel)) return ENG_OK;
    EngStatus status = eng_gate_histograms(&state->runner, state->gates, tokens, shape->streams,
                                           shape->layer, sink, context, err);
    if (status) return status;
    return eng_score_histograms(&state->runner, state->scores, tokens, shape->streams, shape->layer,
                                sink, context, err);
}

const EngExperiment eng_experiment_gate = {
    .name = "gate",
    .question = "What does gate + write-back cost, and how saturated are the gates?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_GATE,
    .tunables = eng_tunable_placement,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .run = run,
    .verify = verify,
    .observe = observe,
    .histograms = histograms,
    .teardown = teardown,
};
