/* project: what does the key and value projection (wkv) cost? Inputs are rows of real text: packed
 * fp8 as they lie in the table when the weights are fp8, decoded to bf16 when they are bf16. */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/mem.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/replay.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"

#define MAX_WINDOWS     16
#define MAX_INPUT_BYTES (64u << 20) /* of all windows: larger ones need no rotation */
#define CHECKED_OUTPUTS 96

static const char *const g_words_weights[] = {"fp8", "bf16", NULL};

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,
    ENG_AXIS_TOKENS_DEF("64", "M: tokens per call"),
    ENG_AXIS_CORPUS_DEF,
    {"weights", ENG_AXIS_WORD, "fp8", "", 0, 0, g_words_weights,
     "fp8 with 32x32 scales, or the same values as bf16"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_CACHE_DEF,
    ENG_AXIS_GRAPH_DEF,
    ENG_AXIS_VARIANT_DEF("project"),
};

static const EngMetricDef g_metrics[] = {
    {"gflops", "GFLOP/s", +1, "cpu", "2 M n k per CPU time"},
    {"weight_gbps", "GB/s", +1, "cpu", "weight bytes (as stored) per CPU time"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},
    {"wall_us", "us", -1, "wall", "wall time of one call"},
    {"us_per_token", "us", -1, "cpu", "CPU time per token"},
    {"flops", "flop", 0, "none", "arithmetic of one call, from its shape (EngKernel.cost)"},
    {"moved_bytes", "B", 0, "none", "bytes one call must read and write, from its shape"},
    ENG_METRIC_LAUNCHES_DEF,
    {"working_set_bytes", "B", 0, "none", "weights, and inputs of all windows timed"},
};

typedef struct State {
    EngShape shape;
    EngRunner runner;
    EngReplay replay;
    EngInputs inputs;
    uint16_t *weights; /* bf16 copy, NULL for fp8 */
    void *out;
    double weight_bytes;
    uint64_t seed;
} State;

static EngDtype weights_of(const EngPoint *point)
{
    return (EngDtype)eng_dtype_parse(eng_point_word(point, "weights"));
}

static EngProblem problem_of(const EngPoint *point, const EngShape *shape)
{
    EngDtype weights = weights_of(point);
    return (EngProblem){.op = ENG_OP_PROJECT,
                        .threads = shape->threads,
                        .u.project = {.tokens = shape->tokens,
                                      .n = (int)shape->n,
                                      .k = (int)shape->k,
                                      .x = weights,
                                      .weights = weights,
                                      .out = ENG_BF16}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    const EngKernel *kernel;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (!status) status = eng_point_kernel(point, ENG_OP_PROJECT, &kernel, why);
    if (!status) status = eng_shape_check_matrix(&shape, why);
    if (status) return status;
    if (weights_of(point) == ENG_FP8 && shape.row_format != ENG_ROW_FP8)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "fp8 weights take fp8 rows, not %s rows",
                        eng_row_format_name(shape.row_format));
    EngProblem problem = problem_of(point, &shape);
    status = eng_point_settings(point, kernel, &problem, why);
    if (!status) status = eng_kernel_supports(kernel, &problem, why);
    return status ? status : eng_point_device_check(point, kernel, why);
}

static int64_t windows_of(const EngShape *shape)
{
    int64_t fit = (int64_t)(MAX_INPUT_BYTES / ((size_t)shape->tokens * (size_t)shape->k));
    return fit < 1 ? 1 : fit > MAX_WINDOWS ? MAX_WINDOWS : fit;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    size_t weights = (size_t)shape.n * (size_t)shape.k;
    size_t activations = (size_t)shape.tokens * (size_t)(shape.k + shape.n);
    *need = eng_shape_need(point, &shape);
    need->weight_bytes = weights;
    need->private_bytes = 2 * activations + 4 * weights;
    return ENG_OK;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_replay_close(&state->replay);
    eng_runner_close(&state->runner);
    eng_inputs_destroy(&state->inputs);
    eng_free(state->weights);
    eng_free(state->out);
    eng_free(state);
}

static EngStatus setup_weights(State *state, const EngBench *bench, EngProjectProblem *problem,
                               EngErr *err)
{
    const uint8_t *values, *scales;
    EngStatus status =
        eng_resources_weights(bench->resources, problem->n, problem->k, &values, &scales, err);
    if (status) return status;
    size_t n = (size_t)problem->n * (size_t)problem->k;
    problem->w = values;
    problem->w_scales = scales;
    state->weight_bytes = (double)n * (1 + 1.0 / (ENG_SCALE_GROUP * ENG_SCALE_GROUP));
    if (problem->weights == ENG_FP8) return ENG_OK;
    status = eng_weights_to_bf16(values, scales, problem->n, problem->k, &state->weights, err);
    problem->w = (const uint8_t *)state->weights;
    problem->w_scales = NULL;
    state->weight_bytes = 2 * (double)n;
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    const EngKernel *kernel;
    char who[ENG_WHO_BYTES];
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "project", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    state->seed = bench->seed;
    status = eng_shape_resolve(point, shape, err);
    if (!status) status = eng_point_kernel(point, ENG_OP_PROJECT, &kernel, err);
    if (!status)
        status = eng_inputs_create(
            &state->inputs, bench, shape, eng_point_word(point, "corpus"),
            eng_windows_of_point(point, eng_replay_windows(point, windows_of(shape))),
            weights_of(point), eng_point_who(point, who), err);
    if (!status) {
        EngProblem problem = problem_of(point, shape);
        status = eng_point_settings(point, kernel, &problem, err);
        if (!status)
            status =
                eng_alloc_or(&state->out, (size_t)shape->tokens * (size_t)shape->n,
                             eng_dtype_bytes(problem.u.project.out, 1), "projection output", err);
        if (!status) status = setup_weights(state, bench, &problem.u.project, err);
        if (!status) status = eng_runner_open(&state->runner, kernel, &problem, err);
        if (!status) state->runner.layer = state->shape.layer;
    }
    if (!status) status = eng_inputs_cover(&state->inputs, &state->runner, err);
    if (!status) status = eng_replay_open(&state->replay, point, state->inputs.windows.n, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(State *state, int64_t window)
{
    EngArgs args;
    args.u.project = (EngProjectArgs){.x = eng_inputs_x(&state->inputs, window),
                                      .x_scales = eng_inputs_scales(&state->inputs, window),
                                      .out = state->out};
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
    int64_t window = eng_windows_next(&state->inputs.windows);
    return eng_replay_run(&state->replay, run_window, state, window, err);
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    const EngProjectProblem *problem = &state->runner.problem.u.project;
    int64_t window = eng_windows_next(&state->inputs.windows);
    EngArgs args = args_of(state, window);
    /* An output left unwritten is then a NaN, which the scan finds. */
    memset(state->out, 0xff,
           eng_dtype_bytes(problem->out, (size_t)problem->tokens * (size_t)problem->n));
    EngStatus status = eng_replay_run_whole(&state->replay, run_window, state, window,
                                            &state->runner, &args, 1, err);
    if (eng_kernel_unchecked(state->runner.kernel)) {
        eng_residual_of_roof(residual);
        return status;
    }
    if (!status)
        status =
            eng_check_project(problem, &args.u.project, state->seed, CHECKED_OUTPUTS, &sum, err);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    double cpu_ns = eng_cpu_ns(timing), tokens = (double)state->shape.tokens;
    values[0] = 2 * tokens * (double)state->shape.n * (double)state->shape.k / cpu_ns;
    values[1] = state->weight_bytes / cpu_ns;
    values[2] = cpu_ns * 1e-3;
    values[3] = eng_wall_ns(timing) * 1e-3;
    values[4] = cpu_ns * 1e-3 / tokens;
    eng_runner_cost(&state->runner, &values[5], &values[6]);
    values[7] = eng_launches(timing);
    values[8] =
        state->weight_bytes + (double)state->inputs.windows.n *
                                  (double)(state->inputs.value_bytes + state->inputs.scale_bytes);
}

const EngExperiment eng_experiment_project = {
    .name = "project",
    .question = "What does the key and value projection cost, by tokens and weight format?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_PROJECT,
    .tunables = eng_tunable_placement,
    .check = check,
    .need = need,
    .estimate_ns = eng_shape_product_ns,
    .setup = setup,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
