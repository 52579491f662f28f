/* conv: what does the short convolution of the original variant cost, as a decode step and as a
 * prefill chunk? Values are synthetic (standard normals); the decode state carries over from call
 * to call, as in a text. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/replay.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"

#define EST_NS_PER_VALUE 0.5
#define ROTATED_TOKENS   1024 /* 16 MiB of values at 4 streams of 1024, and as much output */
#define CHECKED_TOKENS   64
#define DEFAULT_KERNEL   4 /* of presets without the convolution */

static const EngAxisDef g_axes[] = {
    {"preset", ENG_AXIS_WORD, "engram-demo", "", 0, 0, NULL,
     "configuration that gives taps and dilation (its longest n-gram)"},
    ENG_AXIS_TOKENS_DEF("64", "tokens per call: 1 is a decode step"),
    {"streams", ENG_AXIS_INT, "4", "", 1, 16, NULL, "residual streams"},
    {"hidden", ENG_AXIS_INT, "1024", "values", 1, 65536, NULL, "width of a stream"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_CACHE_DEF,
    ENG_AXIS_GRAPH_DEF,
    ENG_AXIS_VARIANT_DEF("conv"),
};

static const EngMetricDef g_metrics[] = {
    {"conv_gbps", "GB/s", +1, "cpu", "bytes of values read and results written, per CPU time"},
    {"ns_per_token", "ns", -1, "cpu", "CPU time per token, all streams"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},
    {"wall_us", "us", -1, "wall", "wall time of one call"},
    {"flops", "flop", 0, "none", "arithmetic of one call, from its shape (EngKernel.cost)"},
    {"moved_bytes", "B", 0, "none", "bytes one call must read and write, from its shape"},
    {"working_set_bytes", "B", 0, "none", "inputs and outputs of all windows timed"},
    ENG_METRIC_LAUNCHES_DEF,
};

typedef struct State {
    EngShape shape;
    EngRunner runner;
    EngReplay replay;
    int64_t windows, next;
    size_t window_values;
    float *norm_weight, *conv_weight;
    float *value, *out; /* [windows, tokens, streams, hidden] */
    float *history;     /* the decode state */
} State;

static EngProblem problem_of(const EngShape *shape)
{
    const EngPreset *preset = &shape->preset;
    return (EngProblem){
        .op = ENG_OP_CONV,
        .threads = shape->threads,
        .u.conv = {.tokens = shape->tokens,
                   .streams = shape->streams,
                   .hidden = shape->hidden,
                   .kernel = preset->conv_kernel ? preset->conv_kernel : DEFAULT_KERNEL,
                   .dilation = shape->max_order,
                   .eps = preset->gate_eps}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    const EngKernel *kernel;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (!status) status = eng_point_kernel(point, ENG_OP_CONV, &kernel, why);
    if (status) return status;
    EngProblem problem = problem_of(&shape);
    status = eng_point_settings(point, kernel, &problem, why);
    if (!status) status = eng_kernel_supports(kernel, &problem, why);
    return status ? status : eng_point_device_check(point, kernel, why);
}

static int64_t windows_of(const EngPoint *point, const EngShape *shape)
{
    return eng_windows_of_point(point, (ROTATED_TOKENS + shape->tokens - 1) / shape->tokens);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    size_t tokens = (size_t)(windows_of(point, &shape) * shape.tokens + shape.tokens);
    *need = (EngNeed){.preset = eng_point_word(point, "preset"),
                      .private_bytes = 2 * sizeof(float) * tokens * (size_t)shape.streams *
                                       (size_t)shape.hidden};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    double values = (double)shape.tokens * shape.streams * shape.hidden;
    return EST_NS_PER_VALUE * values / shape.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_replay_close(&state->replay);
    eng_runner_close(&state->runner);
    eng_free(state->norm_weight);
    eng_free(state->conv_weight);
    eng_free(state->value);
    eng_free(state->out);
    eng_free(state->history);
    eng_free(state);
}

static void fill(EngRng *rng, float *values, size_t n, double mean, double deviation)
{
    for (size_t i = 0; i < n; i++) values[i] = (float)(mean + deviation * eng_rng_normal(rng));
}

static EngStatus set_up_data(State *state, EngConvProblem *problem, uint64_t seed, EngErr *err)
{
    size_t width = (size_t)problem->streams * (size_t)problem->hidden;
    size_t taps = width * (size_t)problem->kernel;
    size_t history = (size_t)(problem->kernel - 1) * (size_t)problem->dilation;
    size_t windows = (size_t)state->windows;
    state->window_values = (size_t)problem->tokens * width;
    struct {
        float **at;
        size_t n, size;
    } wanted[] = {
        {&state->norm_weight, width, sizeof(float)},
        {&state->conv_weight, taps, sizeof(float)},
        {&state->value, windows, state->window_values * sizeof(float)},
        {&state->out, windows, state->window_values * sizeof(float)},
        {&state->history, history + 1, width * sizeof(float)},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or((void **)wanted[i].at, wanted[i].n, wanted[i].size,
                              "convolution data", err);
    if (status) return status;
    EngRng rng;
    eng_rng_seed(&rng, seed);
    fill(&rng, state->norm_weight, width, 1, 0.1);
    fill(&rng, state->conv_weight, taps, 0, 0.5);
    fill(&rng, state->value, windows * state->window_values, 0, 1);
    fill(&rng, state->history, history * width, 0, 1);
    problem->norm_weight = state->norm_weight;
    problem->conv_weight = state->conv_weight;
    return ENG_OK;
}

static EngStatus cover_windows(State *state, EngErr *err)
{
    size_t bytes = (size_t)state->windows * state->window_values * sizeof(float);
    EngStatus status = eng_runner_cover(&state->runner, state->value, bytes, err);
    return status ? status : eng_runner_cover(&state->runner, state->out, bytes, err);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    const EngKernel *kernel;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "convolution", err);
    if (status) return status;
    status = eng_shape_resolve(point, &state->shape, err);
    if (!status) status = eng_point_kernel(point, ENG_OP_CONV, &kernel, err);
    if (!status) {
        EngProblem problem = problem_of(&state->shape);
        state->windows = windows_of(point, &state->shape);
        status = set_up_data(state, &problem.u.conv, bench->seed, err);
        if (!status) status = eng_point_settings(point, kernel, &problem, err);
        if (!status) status = eng_runner_open(&state->runner, kernel, &problem, err);
    }
    if (!status) status = cover_windows(state, err);
    if (!status) status = eng_replay_open(&state->replay, point, state->windows, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(State *state, int64_t window)
{
    EngArgs args;
    size_t at = (size_t)window * state->window_values;
    args.u.conv =
        (EngConvArgs){.value = state->value + at, .state = state->history, .out = state->out + at};
    return args;
}

static EngStatus run_window(void *opaque, int64_t window, EngErr *err)
{
    State *state = opaque;
    EngArgs args = args_of(state, window);
    return eng_runner_run(&state->runner, &args, err);
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    int64_t window = state->next;
    state->next = state->next + 1 == state->windows ? 0 : state->next + 1;
    return eng_replay_run(&state->replay, run_window, state, window, err);
}

/* The state is what earlier calls left, or seeded values: both are a text's middle. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngArgs args = args_of(state, 0);
    const EngProblem *problem = &state->runner.problem;
    double *want = NULL;
    EngStatus status = eng_want_conv(&problem->u.conv, &args.u.conv, CHECKED_TOKENS, &want, err);
    memset(args.u.conv.out, 0xff, state->window_values * sizeof *args.u.conv.out);
    if (!status)
        status = eng_replay_run_whole(&state->replay, run_window, state, 0, &state->runner, &args,
                                      1, err);
    if (!status) eng_check_conv(&problem->u.conv, &args.u.conv, CHECKED_TOKENS, want, &sum);
    eng_free(want);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    double cpu_ns = eng_cpu_ns(timing);
    double bytes = 2 * sizeof(float) * (double)state->window_values;
    values[0] = bytes / cpu_ns;
    values[1] = cpu_ns / (double)state->shape.tokens;
    values[2] = cpu_ns * 1e-3;
    values[3] = eng_wall_ns(timing) * 1e-3;
    eng_runner_cost(&state->runner, &values[4], &values[5]);
    values[6] = bytes * (double)state->windows;
    values[7] = eng_launches(timing);
}

const EngExperiment eng_experiment_conv = {
    .name = "conv",
    .question = "What does the short convolution of the original variant cost?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_CONV,
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
