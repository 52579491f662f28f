/* hash: how fast do token ids become row numbers? The rows of one layer, or of all in one call, for
 * windows of the stream, each with its real history, as a prefill chunk or a decode step would ask
 * for them. */
#include "bench/experiments/experiments.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/replay.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"

#define EST_NS_PER_ROW 1.0 /* a remainder by multiplication */
#define EST_NS_CALL    60.0
#define DEVICE_WINDOWS 64 /* verified: each costs copies and a wait */

static const char *const g_words_layers[] = {"one", "all", NULL};

static const EngAxisDef g_axes[] = {
    ENG_AXES_ADDRESS,
    {"layers", ENG_AXIS_WORD, "one", "", 0, 0, g_words_layers,
     "all: rows of every layer of the preset in one call"},
    ENG_AXIS_TOKENS_DEF("4096", "positions per call: 1 is a decode step"),
    ENG_AXIS_CORPUS_DEF,
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_GRAPH_DEF,
    ENG_AXIS_VARIANT_DEF("hash"),
};

static const EngMetricDef g_metrics[] = {
    {"mtok_per_s", "Mtok/s", +1, "cpu", "million token positions per second"},
    {"ns_per_token", "ns", -1, "cpu", "CPU time per position, all columns"},
    {"wall_us", "us", -1, "wall", "wall time of one call"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},
    ENG_METRIC_LAUNCHES_DEF,
};

typedef struct State {
    EngShape shape;
    EngRunner runner;
    EngReplay replay;
    EngWindows windows;
    int64_t *rows;
} State;

/* The shape's address is that of all layers where the axis says so. */
static EngStatus resolve(const EngPoint *point, EngShape *shape, EngErr *err)
{
    EngStatus status = eng_shape_resolve(point, shape, err);
    if (status || strcmp(eng_point_word(point, "layers"), "all")) return status;
    return eng_shape_layers(shape, shape->preset.address.vocab, &shape->address, err);
}

static size_t row_numbers(const EngShape *shape)
{
    return (size_t)shape->tokens * (size_t)(shape->address.n_layers * shape->columns);
}

static EngProblem problem_of(const EngShape *shape)
{
    return (EngProblem){.op = ENG_OP_HASH,
                        .threads = shape->threads,
                        .u.hash = {.address = &shape->address, .max_tokens = shape->tokens}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    const EngKernel *kernel;
    EngStatus status = resolve(point, &shape, why);
    if (!status) status = eng_point_kernel(point, ENG_OP_HASH, &kernel, why);
    if (status) return status;
    EngProblem problem = problem_of(&shape);
    status = eng_point_settings(point, kernel, &problem, why);
    if (!status) status = eng_kernel_supports(kernel, &problem, why);
    return status ? status : eng_point_device_check(point, kernel, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = resolve(point, &shape, err);
    if (status) return status;
    *need = (EngNeed){.corpus = eng_point_word(point, "corpus"),
                      .preset = eng_point_word(point, "preset"),
                      .max_tokens = shape.tokens,
                      .private_bytes = row_numbers(&shape) * sizeof(int64_t)};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (resolve(point, &shape, NULL)) return 0;
    return EST_NS_CALL + EST_NS_PER_ROW * (double)row_numbers(&shape) / shape.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_replay_close(&state->replay);
    eng_runner_close(&state->runner);
    eng_windows_destroy(&state->windows);
    eng_free(state->rows);
    eng_free(state);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngTokens tokens;
    const EngKernel *kernel;
    char who[ENG_WHO_BYTES];
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "hash", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    status = resolve(point, shape, err);
    if (!status) status = eng_point_kernel(point, ENG_OP_HASH, &kernel, err);
    if (!status)
        status = eng_resources_tokens(bench->resources, shape->preset.name,
                                      eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status =
            eng_windows_create(&state->windows, &tokens, shape->tokens,
                               eng_replay_windows(point, eng_windows_count(shape->tokens)),
                               shape->max_order - 1, bench->seed, eng_point_who(point, who), err);
    if (!status)
        status =
            eng_alloc_or((void **)&state->rows, row_numbers(shape), sizeof(int64_t), "rows", err);
    EngProblem problem = problem_of(shape);
    if (!status) status = eng_point_settings(point, kernel, &problem, err);
    if (!status) status = eng_runner_open(&state->runner, kernel, &problem, err);
    if (!status)
        status = eng_runner_cover(&state->runner, tokens.compressed,
                                  (size_t)tokens.n_tokens * sizeof *tokens.compressed, err);
    if (!status) status = eng_replay_open(&state->replay, point, state->windows.n, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(const State *state, int64_t window)
{
    EngArgs args;
    args.u.hash =
        eng_windows_hash_args(&state->windows, window, state->shape.max_order - 1, state->rows);
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
    int64_t window = eng_windows_next(&state->windows);
    return eng_replay_run(&state->replay, run_window, state, window, err);
}

/* All windows up to 65,536 positions (of a device's kernel: some), and at least one. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngStatus status = ENG_OK;
    if (eng_kernel_unchecked(state->runner.kernel)) {
        eng_residual_of_roof(residual);
        return run(state, err);
    }
    int64_t n = state->windows.n;
    if (state->runner.kernel->backend == ENG_CUDA && n > DEVICE_WINDOWS) n = DEVICE_WINDOWS;
    for (int64_t w = 0; !status && w < n; w++) {
        if (w && w * state->shape.tokens >= 65536) break;
        EngArgs args = args_of(state, w);
        memset(state->rows, 0xff, (size_t)row_numbers(&state->shape) * sizeof *state->rows);
        status = eng_replay_run_whole(&state->replay, run_window, state, w, &state->runner, &args,
                                      1, err);
        if (!status) status = eng_check_hash(&state->shape.address, &args.u.hash, &sum, err);
    }
    eng_residual_of_check(&sum, "exact", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    double per_token = eng_cpu_ns(timing) / (double)state->shape.tokens;
    values[0] = 1e3 / per_token;
    values[1] = per_token;
    values[2] = eng_wall_ns(timing) * 1e-3;
    values[3] = eng_cpu_ns(timing) * 1e-3;
    values[4] = eng_launches(timing);
}

const EngExperiment eng_experiment_hash = {
    .name = "hash",
    .question = "How fast do token ids become row numbers?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_HASH,
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
