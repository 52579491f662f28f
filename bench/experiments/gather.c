/* gather: how fast are a table's rows read and decoded? Rows of real text at this table size, in a
 * table shared by all points of the run; logical, distinct and line bytes come from the windows
 * that are timed. */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/device_table.h"
#include "bench/experiments/replay.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "bench/experiments/table_pages.h"
#include "bench/experiments/windows.h"

#define EST_NS_PER_ROW      60.0 /* a row of far memory, prefetched */
#define EST_NS_PER_DECODED  0.1
#define SETUP_BYTES         120 /* per row of a window, while its bytes are counted */
#define MAX_VERIFIED_TOKENS 128

static const char *const g_words_out[] = {"bf16", "f32", "fp8", NULL};
static const char *const g_words_pages[] = {"2m", "4k", "1g", NULL};

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,
    ENG_AXIS_TOKENS_DEF("256", "tokens per call: 1 is a decode step"),
    ENG_AXIS_CORPUS_DEF,
    {"out", ENG_AXIS_WORD, "bf16", "", 0, 0, g_words_out,
     "type of the output; fp8: values and scales copied undecoded"},
    {"pages", ENG_AXIS_WORD, "2m", "", 0, 0, g_words_pages,
     "page size of the table; 2m: transparent huge pages, as many as are granted (metric "
     "huge_share); else a copy of it, made by each worker"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_CACHE_DEF,
    {ENG_AXIS_TABLE_AT, ENG_AXIS_WORD, "local", "", 0, 0, eng_words_table_of_gather,
     "local: memory of the processor that runs the kernel; of cuda variants alone: pinned host "
     "memory read by the device, rows staged by the host and copied, or the same rows made in the "
     "device's memory, of which the host holds none"},
    ENG_AXIS_GRAPH_DEF,
    ENG_AXIS_VARIANT_DEF("gather"),
};

static const EngMetricDef g_metrics[] = {
    {"gather_gbps", "GB/s", +1, "cpu", "logical bytes read per CPU time"},
    {"wall_gbps", "GB/s", +1, "wall", "logical bytes read per wall time"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},
    {"wall_us", "us", -1, "wall", "wall time of one call"},
    {"ns_per_token", "ns", -1, "cpu", "CPU time per token, all columns of one layer"},
    {"logical_bytes", "B", 0, "none", "tokens x columns x row bytes of one call"},
    {"distinct_bytes", "B", 0, "none", "distinct rows x row bytes, mean over the windows"},
    {"line_bytes", "B", 0, "none", "64-byte lines touched x 64, mean over the windows"},
    {"output_bytes", "B", 0, "none", "bytes stored by one call, scales included"},
    {"working_set_bytes", "B", 0, "none",
     "distinct rows of all windows timed x row bytes: what a cache would have to hold"},
    {"flops", "flop", 0, "none", "arithmetic of one call, from its shape (EngKernel.cost)"},
    {"moved_bytes", "B", 0, "none", "bytes one call must read and write, from its shape"},
    {"huge_share", "", 0, "none", "share of the table's values on huge pages"},
    ENG_METRIC_LAUNCHES_DEF,
    {"table_bytes", "B", 0, "none", "values and scales of the whole table"},
};

/* `engram tune gather` searches the page size, too. */
static const EngTunableAxis g_tunables[] = {
    {"threads", ENG_TUNE_CORES}, {"pin", NULL}, {"pages", "2m,4k"}, {NULL, NULL}};

typedef struct State {
    EngShape shape;
    EngRunner runner;
    EngReplay replay;
    EngWindows windows;
    int64_t *rows; /* [windows, tokens, columns] */
    void *out;
    uint8_t *out_scales;
    size_t output_bytes;
    EngRowBytes bytes;
    EngTablePages *pages; /* NULL: the table is the arena's */
    EngDeviceTable *made; /* NULL: the host has the table */
    double huge_share;
} State;

static EngPageKind pages_of(const EngPoint *point)
{
    return (EngPageKind)eng_page_kind_parse(eng_point_word(point, "pages"));
}

static EngProblem problem_of(const EngPoint *point, const EngShape *shape, EngTable table)
{
    return (EngProblem){
        .op = ENG_OP_GATHER,
        .threads = shape->threads,
        .u.gather = {.table = table,
                     .columns = shape->columns,
                     .tokens = shape->tokens,
                     .out = (EngDtype)eng_dtype_parse(eng_point_word(point, "out"))}};
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    const EngKernel *kernel;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (!status) status = eng_point_kernel(point, ENG_OP_GATHER, &kernel, why);
    if (status) return status;
    EngProblem problem = problem_of(point, &shape, eng_shape_table(&shape));
    if (problem.u.gather.out == ENG_FP8 && !eng_row_is_fp8(shape.row_format))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "fp8 output is a copy of fp8 rows, not of %s rows",
                        eng_row_format_name(shape.row_format));
    status = eng_point_settings(point, kernel, &problem, why);
    if (!status) status = eng_kernel_supports(kernel, &problem, why);
    if (!status) status = eng_point_device_check(point, kernel, why);
    if (status || eng_point_table_at(point) != ENG_TABLE_MADE) return status;
    return eng_device_table_fits(&problem.u.gather.table, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    int64_t windows = eng_windows_of_point(point, eng_windows_count(shape.tokens));
    size_t rows = (size_t)shape.tokens * (size_t)shape.columns;
    *need = eng_shape_need(point, &shape);
    need->table = eng_point_table_at(point) != ENG_TABLE_MADE;
    need->private_bytes = rows * ((size_t)windows * sizeof(int64_t) + SETUP_BYTES +
                                  (size_t)shape.row_dims * sizeof(float));
    if (pages_of(point) == ENG_PAGES_HUGE || !need->table) return ENG_OK;
    EngTable table = eng_shape_table(&shape);
    need->shared_bytes = shape.table_value_bytes +
                         (size_t)table.rows * eng_row_scale_bytes(table.format, table.row_dims);
    need->shared_id = ((uint64_t)1 << 63) | (uint64_t)table.rows << 23 |
                      (uint64_t)table.row_dims << 6 | (uint64_t)table.format << 2 |
                      (uint64_t)pages_of(point);
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    double rows = (double)shape.tokens * shape.columns;
    return rows * (EST_NS_PER_ROW + EST_NS_PER_DECODED * shape.row_dims) / shape.threads;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_replay_close(&state->replay);
    eng_runner_close(&state->runner);
    eng_windows_destroy(&state->windows);
    eng_table_pages_drop(state->pages);
    eng_device_table_drop(state->made);
    eng_free(state->rows);
    eng_free(state->out);
    eng_free(state->out_scales);
    eng_free(state);
}

static EngStatus allocate_output(State *state, EngDtype out, EngErr *err)
{
    size_t n = (size_t)state->shape.tokens * (size_t)state->shape.k;
    size_t scales = out == ENG_FP8 ? n / ENG_SCALE_GROUP : 0;
    state->output_bytes = eng_dtype_bytes(out, n) + scales;
    EngStatus status = eng_alloc_or(&state->out, eng_dtype_bytes(out, n), 1, "gather output", err);
    if (!status && scales)
        status = eng_alloc_or((void **)&state->out_scales, scales, 1, "gather scales", err);
    return status;
}

static EngStatus setup_rows(State *state, const EngBench *bench, const EngPoint *point,
                            const EngTable *table, EngErr *err)
{
    char who[ENG_WHO_BYTES];
    int64_t all = eng_replay_windows(point, eng_windows_count(state->shape.tokens));
    int64_t windows = eng_windows_of_point(point, all);
    EngTokens tokens;
    EngShape *shape = &state->shape;
    int64_t per_window = shape->tokens * shape->columns;
    EngStatus status = eng_resources_tokens(bench->resources, shape->preset.name,
                                            eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status =
            eng_windows_create(&state->windows, &tokens, shape->tokens, windows,
                               shape->max_order - 1, bench->seed, eng_point_who(point, who), err);
    if (!status) status = eng_windows_rows(&state->windows, &shape->address, &state->rows, err);
    if (!status)
        status = eng_windows_row_bytes(table, state->rows, per_window, state->windows.n,
                                       &state->bytes, err);
    if (!status && !state->made) eng_touch_rows(table, state->rows, per_window * state->windows.n);
    return status;
}

static EngStatus cover_rows(State *state, EngErr *err)
{
    int64_t n = state->windows.n * state->shape.tokens * state->shape.columns;
    return eng_runner_cover(&state->runner, state->rows, (size_t)n * sizeof *state->rows, err);
}

static EngStatus take_table(State *state, const EngBench *bench, const EngPoint *point,
                            EngTable *table, EngErr *err)
{
    const EngShape *shape = &state->shape;
    *table = eng_shape_table(shape);
    state->huge_share = NAN;
    if (eng_point_table_at(point) == ENG_TABLE_MADE) {
        EngStatus status =
            eng_device_table_take(table, eng_resources_seed(bench->resources), &state->made, err);
        if (!status) *table = state->made->table;
        return status;
    }
    EngStatus status = eng_resources_table(bench->resources, shape->row_format, shape->row_dims,
                                           shape->address.rows[0], table, err);
    if (status) return status;
    const EngTableArena *arena = eng_resources_arena(bench->resources);
    state->huge_share = (double)arena->huge_bytes / (double)arena->value_bytes;
    if (pages_of(point) == ENG_PAGES_HUGE) return ENG_OK;
    status = eng_table_pages_take(table, pages_of(point), &state->pages, err);
    if (status) return status;
    *table = state->pages->table;
    state->huge_share = state->pages->huge_share;
    return ENG_OK;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngTable table;
    const EngKernel *kernel;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "gather", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    status = eng_shape_resolve(point, shape, err);
    if (!status) status = eng_point_kernel(point, ENG_OP_GATHER, &kernel, err);
    if (!status) status = take_table(state, bench, point, &table, err);
    if (!status) status = setup_rows(state, bench, point, &table, err);
    if (!status) {
        EngProblem problem = problem_of(point, shape, table);
        status = eng_point_settings(point, kernel, &problem, err);
        if (!status) status = allocate_output(state, problem.u.gather.out, err);
        if (!status) status = eng_runner_open_at(&state->runner, point, kernel, &problem, err);
        if (!status) state->runner.layer = state->shape.layer;
    }
    if (!status) status = cover_rows(state, err);
    if (!status) status = eng_replay_open(&state->replay, point, state->windows.n, err);
    if (status) {
        teardown(state);
        return status;
    }
    *out = state;
    return ENG_OK;
}

static EngArgs args_of(State *state, int64_t window)
{
    EngArgs args;
    const EngShape *shape = &state->shape;
    args.u.gather = (EngGatherArgs){.rows = state->rows + window * shape->tokens * shape->columns,
                                    .row_stride = shape->columns,
                                    .out = state->out,
                                    .out_scales = state->out_scales};
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

/* Of a table that the host does not have, the rows wanted are made anew. */
static EngStatus compare(const State *state, const EngGatherArgs *args, EngCheck *sum, EngErr *err)
{
    EngGatherProblem problem = state->runner.problem.u.gather;
    EngGatherArgs there = *args;
    int64_t n = problem.tokens * problem.columns, *ids = NULL;
    if (!state->made) return eng_check_gather(&problem, args, sum, err);
    EngStatus status = eng_device_table_rows(state->made, args->rows, n, &problem.table, err);
    if (!status) status = eng_alloc_or((void **)&ids, (size_t)n, sizeof *ids, "rows", err);
    for (int64_t i = 0; i < n && !status; i++) ids[i] = i;
    there.rows = ids;
    if (!status) status = eng_check_gather(&problem, &there, sum, err);
    eng_free((void *)problem.table.values);
    eng_free((void *)problem.table.scales);
    eng_free(ids);
    return status;
}

/* Every output of the windows verified: as many as make 128 tokens, and at least one. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngStatus status = ENG_OK;
    if (eng_kernel_unchecked(state->runner.kernel)) {
        eng_residual_of_roof(residual);
        return run(state, err);
    }
    for (int64_t w = 0; !status && w < state->windows.n; w++) {
        if (w && w * state->shape.tokens >= MAX_VERIFIED_TOKENS) break;
        EngArgs args = args_of(state, w);
        /* What an earlier window left behind must not pass for this one's output. */
        memset(state->out, 0xff,
               eng_dtype_bytes(state->runner.problem.u.gather.out,
                               (size_t)state->shape.tokens * (size_t)state->shape.k));
        status = eng_replay_run_whole(&state->replay, run_window, state, w, &state->runner, &args,
                                      1, err);
        if (!status) status = compare(state, &args.u.gather, &sum, err);
    }
    eng_residual_of_check(&sum, "exact", residual);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    double cpu_ns = eng_cpu_ns(timing), wall_ns = eng_wall_ns(timing);
    values[0] = state->bytes.logical / cpu_ns;
    values[1] = state->bytes.logical / wall_ns;
    values[2] = cpu_ns * 1e-3;
    values[3] = wall_ns * 1e-3;
    values[4] = cpu_ns / (double)state->shape.tokens;
    values[5] = state->bytes.logical;
    values[6] = state->bytes.distinct;
    values[7] = state->bytes.lines;
    values[8] = (double)state->output_bytes;
    values[9] = state->bytes.working_set;
    eng_runner_cost(&state->runner, &values[10], &values[11]);
    values[12] = state->huge_share;
    values[13] = eng_launches(timing);
    const EngTable *table = &state->runner.problem.u.gather.table;
    values[14] =
        (double)table->rows * (double)(eng_row_stride_bytes(table->format, table->row_dims) +
                                       eng_row_scale_bytes(table->format, table->row_dims));
}

const EngExperiment eng_experiment_gather = {
    .name = "gather",
    .question = "How fast are table rows read and decoded, and how far from the memory's limit?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_GATHER,
    .tunables = g_tunables,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
