/* lookup: what do gather and projection cost together, and does fusing them pay? Rows of real text
 * as in the experiment `gather`, weights as in `project`; variants are the two operations one after
 * the other through a buffer, or fused.
 */
#include "bench/experiments/experiments.h"

#include <string.h>

#include "base/mem.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"

#define CHECKED_OUTPUTS 96

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,      ENG_AXIS_TOKENS_DEF("64", "M: tokens per call"),
    ENG_AXIS_CORPUS_DEF, ENG_AXIS_THREADS_DEF,
    ENG_AXIS_CACHE_DEF,  ENG_AXIS_VARIANT_DEF("lookup"),
};

static const EngMetricDef g_metrics[] = {
    {"gflops", "GFLOP/s", +1, "cpu", "2 M n k per CPU time"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},
    {"wall_us", "us", -1, "wall", "wall time of one call"},
    {"us_per_token", "us", -1, "cpu", "CPU time per token"},
    {"flops", "flop", 0, "none", "arithmetic of one call, from its shape (EngKernel.cost)"},
    {"moved_bytes", "B", 0, "none", "bytes one call must read and write, from its shape"},
};

typedef struct State {
    EngShape shape;
    EngRunner runner;
    EngWindows windows;
    int64_t *rows; /* [windows, tokens, columns] */
    void *out;     /* [tokens, n] bf16 */
    uint64_t seed;
} State;

static EngProblem problem_of(const EngShape *shape, EngTable table)
{
    return (EngProblem){.op = ENG_OP_LOOKUP,
                        .threads = shape->threads,
                        .u.lookup = {.table = table,
                                     .columns = shape->columns,
                                     .tokens = shape->tokens,
                                     .n = (int)shape->n,
                                     .weights = ENG_FP8,
                                     .out = ENG_BF16}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    const EngKernel *kernel;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (!status) status = eng_point_kernel(point, ENG_OP_LOOKUP, &kernel, why);
    if (!status) status = eng_shape_check_matrix(&shape, why);
    if (status) return status;
    EngProblem problem = problem_of(&shape, eng_shape_table(&shape));
    status = eng_point_settings(point, kernel, &problem, why);
    return status ? status : eng_kernel_supports(kernel, &problem, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    size_t weights = (size_t)shape.n * (size_t)shape.k;
    size_t rows = (size_t)shape.tokens * (size_t)shape.columns;
    size_t activations = (size_t)shape.tokens * (size_t)(shape.k + shape.n);
    *need = eng_shape_need(point, &shape);
    need->weight_bytes = weights;
    need->private_bytes = 3 * activations + 4 * weights +
                          rows * (size_t)eng_windows_count(shape.tokens) * sizeof(int64_t);
    return ENG_OK;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_runner_close(&state->runner);
    eng_windows_destroy(&state->windows);
    eng_free(state->rows);
    eng_free(state->out);
    eng_free(state);
}

static EngStatus setup_rows(State *state, const EngBench *bench, const EngPoint *point,
                            const EngTable *table, EngErr *err)
{
    EngTokens tokens;
    EngShape *shape = &state->shape;
    char who[ENG_WHO_BYTES];
    EngStatus status = eng_resources_tokens(bench->resources, shape->preset.name,
                                            eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status =
            eng_windows_create(&state->windows, &tokens, shape->tokens,
                               eng_windows_of_point(point, eng_windows_count(shape->tokens)),
                               shape->max_order - 1, bench->seed, eng_point_who(point, who), err);
    if (!status) status = eng_windows_rows(&state->windows, &shape->address, &state->rows, err);
    if (!status)
        eng_touch_rows(table, state->rows, state->windows.n * shape->tokens * shape->columns);
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngTable table;
    const EngKernel *kernel;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "lookup", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    state->seed = bench->seed;
    status = eng_shape_resolve(point, shape, err);
    if (!status) status = eng_point_kernel(point, ENG_OP_LOOKUP, &kernel, err);
    if (!status)
        status = eng_resources_table(bench->resources, shape->row_format, shape->row_dims,
                                     shape->address.rows[0], &table, err);
    if (!status) status = setup_rows(state, bench, point, &table, err);
    if (!status)
        status = eng_alloc_or(&state->out, (size_t)shape->tokens * (size_t)shape->n,
                              sizeof(uint16_t), "look-up output", err);
    if (!status) {
        EngProblem problem = problem_of(shape, table);
        EngLookupProblem *p = &problem.u.lookup;
        status = eng_point_settings(point, kernel, &problem, err);
        if (!status)
            status = eng_resources_weights(bench->resources, p->n, (int)shape->k, &p->w,
                                           &p->w_scales, err);
        if (!status) status = eng_runner_open_at(&state->runner, point, kernel, &problem, err);
        if (!status) state->runner.layer = state->shape.layer;
    }
    if (!status)
        status = eng_runner_cover(
            &state->runner, state->rows,
            (size_t)(state->windows.n * shape->tokens * shape->columns) * sizeof *state->rows, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngArgs args_of(State *state, int64_t window)
{
    EngArgs args;
    const EngShape *shape = &state->shape;
    args.u.lookup = (EngLookupArgs){.rows = state->rows + window * shape->tokens * shape->columns,
                                    .row_stride = shape->columns,
                                    .out = state->out};
    return args;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngArgs args = args_of(state, eng_windows_next(&state->windows));
    return eng_runner_run(&state->runner, &args, err);
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    const EngLookupProblem *problem = &state->runner.problem.u.lookup;
    EngArgs args = args_of(state, eng_windows_next(&state->windows));
    /* An output left unwritten is then a NaN, which the scan finds. */
    memset(state->out, 0xff, (size_t)problem->tokens * (size_t)problem->n * sizeof(uint16_t));
    EngStatus status = eng_runner_run_whole(&state->runner, &args, err);
    if (!status)
        status = eng_check_lookup(problem, &args.u.lookup, state->seed, CHECKED_OUTPUTS, &sum, err);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    double cpu_ns = eng_cpu_ns(timing), tokens = (double)state->shape.tokens;
    values[0] = 2 * tokens * (double)state->shape.n * (double)state->shape.k / cpu_ns;
    values[1] = cpu_ns * 1e-3;
    values[2] = eng_wall_ns(timing) * 1e-3;
    values[3] = cpu_ns * 1e-3 / tokens;
    eng_runner_cost(&state->runner, &values[4], &values[5]);
}

const EngExperiment eng_experiment_lookup = {
    .name = "lookup",
    .question = "What do gather and projection cost together, and does fusing them pay?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_LOOKUP,
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
