/* chain: what does the whole forward cost per token, and where does it go? Hash, gather of packed
 * fp8 rows, projection, gate + write-back, on windows of the stream; hidden states are synthetic
 * (standard normals). `fused` has one stage, the look-up, for gather and projection. The clock is
 * read once more than there are stages, well under a microsecond together, and the difference of
 * neighbours is a stage's share.
 */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/replay.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/stages.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"

#define CHECKED_OUTPUTS 96 /* of the projection */
#define CHECKED_TOKENS  16 /* of the gate: all their outputs */
#define SEED_STATES     0x686964646e657373u
#define MAX_STAGES      4
#define KEPT_RUNS       64 /* whose stages are remembered: most of a sample's */

static const char *const g_words_variant[] = {"portable", "best", "fused", "cuda", NULL};
static const EngOp g_apart[] = {ENG_OP_HASH, ENG_OP_GATHER, ENG_OP_PROJECT, ENG_OP_GATE};
static const EngOp g_fused[] = {ENG_OP_HASH, ENG_OP_LOOKUP, ENG_OP_GATE};
static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,
    ENG_AXIS_TOKENS_DEF("64", "tokens per call"),
    ENG_AXIS_CORPUS_DEF,
    {"formula", ENG_AXIS_WORD, "copysign", "", 0, 0, eng_words_formula, "the gate's formula"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_CACHE_DEF,
    ENG_AXIS_TABLE_AT_DEF,
    ENG_AXIS_GRAPH_DEF,
    {"variant", ENG_AXIS_WORD, "best", "", 0, 0, g_words_variant,
     "portable throughout, per stage the first of a list by preference that fits, the same with "
     "gather and projection fused, or kernels of the device"},
};

static const EngMetricDef g_metrics[] = {
    {"wall_us", "us", -1, "wall", "wall time of one call"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},
    {"us_per_token", "us", -1, "cpu", "CPU time per token of one layer"},
    {"share_hash", "share", 0, "wall", "share of the chain's wall time"},
    {"share_gather", "share", 0, "wall", "share of the chain's wall time"},
    {"share_project", "share", 0, "wall", "share of the chain's wall time"},
    {"share_gate", "share", 0, "wall", "share of the chain's wall time"},
    {"share_lookup", "share", 0, "wall", "share of the chain's wall time: gather and projection"},
    ENG_METRIC_LAUNCHES_DEF,
};

typedef struct State {
    EngShape shape;
    const EngOp *ops; /* [n_stages] */
    int n_stages;
    EngRunner stages[MAX_STAGES];
    EngReplay replay;
    EngWindows windows;
    int64_t *rows; /* of one window */
    uint8_t *x, *x_scales;
    uint16_t *kv, *states, *q_weight, *k_weight;
    float *gates;                            /* of the last traced run */
    int64_t stage_ns[KEPT_RUNS][MAX_STAGES]; /* of the last runs, a ring */
    int64_t runs;
    uint64_t seed;
} State;

/* ---- problems ---- */

static int stages_of(const EngPoint *point, const EngOp **ops)
{
    bool fused = !strcmp(eng_point_word(point, "variant"), "fused");
    *ops = fused ? g_fused : g_apart;
    return fused ? (int)(sizeof g_fused / sizeof *g_fused)
                 : (int)(sizeof g_apart / sizeof *g_apart);
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    const EngKernel *kernel;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (!status) status = eng_shape_check_matrix(&shape, why);
    if (status) return status;
    if (shape.preset.conv)
        return ENG_FAIL(why, ENG_UNSUPPORTED,
                        "preset %s has the short convolution; the chain is V4.1's, without",
                        shape.preset.name);
    if (shape.row_format != ENG_ROW_FP8)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "the chain hands packed fp8 rows on, not %s rows",
                        eng_row_format_name(shape.row_format));
    const EngOp *ops;
    int n = stages_of(point, &ops);
    for (int i = 0; !status && i < n; i++)
        status = eng_stage_kernel(point, &shape, ops[i], &kernel, why);
    return status ? status : eng_point_device_check(point, kernel, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    size_t weights = (size_t)shape.n * (size_t)shape.k;
    *need = eng_shape_need(point, &shape);
    need->weight_bytes = weights;
    need->private_bytes = (size_t)shape.tokens * (size_t)(2 * shape.k + 4 * shape.n) + 4 * weights;
    return ENG_OK;
}

/* ---- set-up ---- */

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_replay_close(&state->replay);
    for (int i = 0; i < MAX_STAGES; i++) eng_runner_close(&state->stages[i]);
    eng_windows_destroy(&state->windows);
    eng_free(state->rows);
    eng_free(state->x);
    eng_free(state->x_scales);
    eng_free(state->kv);
    eng_free(state->gates);
    eng_free(state->states);
    eng_free(state->q_weight);
    eng_free(state->k_weight);
    eng_free(state);
}

static EngStatus allocate(State *state, EngErr *err)
{
    const EngShape *shape = &state->shape;
    size_t tokens = (size_t)shape->tokens, k = (size_t)shape->k, n = (size_t)shape->n;
    size_t width = (size_t)shape->streams * (size_t)shape->hidden;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {
        {(void **)&state->rows, tokens, (size_t)shape->columns * sizeof(int64_t)},
        {(void **)&state->x, tokens, k},
        {(void **)&state->x_scales, tokens, k / ENG_SCALE_GROUP},
        {(void **)&state->kv, tokens, 2 * n},
        {(void **)&state->gates, tokens, (size_t)shape->streams * sizeof(float)},
        {(void **)&state->states, tokens, 2 * width},
        {(void **)&state->q_weight, width, 2},
        {(void **)&state->k_weight, width, 2},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "chain buffers", err);
    return status;
}

static EngStatus fill_states(State *state, EngErr *err)
{
    EngNormals *normals;
    int64_t width = (int64_t)state->shape.streams * state->shape.hidden;
    EngStatus status = eng_alloc_or((void **)&normals, 1, sizeof *normals, "table of normals", err);
    if (status) return status;
    eng_normals_init(normals);
    uint64_t seed = state->seed ^ SEED_STATES;
    eng_normals_bf16(normals, seed, 0, 1, 0.25f, width, state->q_weight);
    eng_normals_bf16(normals, seed, 1, 1, 0.25f, width, state->k_weight);
    eng_normals_bf16(normals, seed, 2, 0, 1, state->shape.tokens * width, state->states);
    eng_free(normals);
    return ENG_OK;
}

/* The rows that all windows will read, touched once by this process. */
static EngStatus touch(State *state, const EngTable *table, EngErr *err)
{
    int64_t *rows = NULL;
    int64_t n = state->windows.n * state->shape.tokens * state->shape.columns;
    EngStatus status = eng_windows_rows(&state->windows, &state->shape.address, &rows, err);
    if (!status) eng_touch_rows(table, rows, n);
    eng_free(rows);
    return status;
}

static EngStatus open_stage(State *state, const EngBench *bench, const EngPoint *point,
                            const EngTable *table, int stage, EngErr *err)
{
    const EngShape *shape = &state->shape;
    const EngKernel *kernel;
    const uint8_t *w = NULL, *w_scales = NULL;
    EngOp op = state->ops[stage];
    EngProblem problem = eng_stage_problem(point, shape, op);
    EngStatus status = eng_stage_kernel(point, shape, op, &kernel, err);
    if (!status && (op == ENG_OP_PROJECT || op == ENG_OP_LOOKUP))
        status = eng_resources_weights(bench->resources, (int)shape->n, (int)shape->k, &w,
                                       &w_scales, err);
    if (status) return status;
    if (op == ENG_OP_GATHER) problem.u.gather.table = *table;
    if (op == ENG_OP_PROJECT) {
        problem.u.project.w = w;
        problem.u.project.w_scales = w_scales;
    }
    if (op == ENG_OP_LOOKUP) {
        problem.u.lookup.table = *table;
        problem.u.lookup.w = w;
        problem.u.lookup.w_scales = w_scales;
    }
    if (op == ENG_OP_GATE) {
        problem.u.gate.q_weight = state->q_weight;
        problem.u.gate.k_weight = state->k_weight;
    }
    EngStatus opened = eng_runner_open_at(&state->stages[stage],
                                          op == ENG_OP_GATHER || op == ENG_OP_LOOKUP ? point : NULL,
                                          kernel, &problem, err);
    state->stages[stage].layer = op == ENG_OP_HASH ? -1 : shape->layer;
    return opened;
}

static EngStatus open_stages(State *state, const EngBench *bench, const EngPoint *point,
                             const EngTable *table, EngErr *err)
{
    EngStatus status = ENG_OK;
    state->n_stages = stages_of(point, &state->ops);
    for (int i = 0; !status && i < state->n_stages; i++)
        status = open_stage(state, bench, point, table, i, err);
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngTokens tokens;
    EngTable table;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "chain", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    state->seed = bench->seed;
    status = eng_shape_resolve(point, shape, err);
    if (!status)
        status = eng_resources_tokens(bench->resources, shape->preset.name,
                                      eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status = eng_resources_table(bench->resources, shape->row_format, shape->row_dims,
                                     shape->address.rows[0], &table, err);
    if (!status)
        status = eng_windows_create(
            &state->windows, &tokens, shape->tokens,
            eng_replay_windows(point,
                               eng_windows_of_point(point, eng_windows_count(shape->tokens))),
            shape->max_order - 1, bench->seed, eng_point_word(point, "variant"), err);
    if (!status) status = touch(state, &table, err);
    if (!status) status = allocate(state, err);
    if (!status) status = fill_states(state, err);
    if (!status) status = open_stages(state, bench, point, &table, err);
    if (!status)
        status = eng_runner_cover(&state->stages[0], tokens.compressed,
                                  (size_t)tokens.n_tokens * sizeof *tokens.compressed, err);
    if (!status) status = eng_replay_open(&state->replay, point, state->windows.n, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

/* ---- runs ---- */

/* Arguments of each operation, by EngOp. */
static void fill_args(State *state, int64_t window, EngArgs args[ENG_OP_COUNT])
{
    args[ENG_OP_HASH].u.hash =
        eng_windows_hash_args(&state->windows, window, state->shape.max_order - 1, state->rows);
    args[ENG_OP_GATHER].u.gather = (EngGatherArgs){.rows = state->rows,
                                                   .row_stride = state->shape.columns,
                                                   .out = state->x,
                                                   .out_scales = state->x_scales};
    args[ENG_OP_PROJECT].u.project =
        (EngProjectArgs){.x = state->x, .x_scales = state->x_scales, .out = state->kv};
    args[ENG_OP_LOOKUP].u.lookup =
        (EngLookupArgs){.rows = state->rows, .row_stride = state->shape.columns, .out = state->kv};
    args[ENG_OP_GATE].u.gate =
        (EngGateArgs){.streams_in = state->states, .streams_out = state->states, .kv = state->kv};
}

static EngStatus run_window(void *opaque, int64_t window, EngErr *err)
{
    State *state = opaque;
    EngArgs args[ENG_OP_COUNT];
    EngStatus status = ENG_OK;
    fill_args(state, window, args);
    if (eng_nvtx_on) args[ENG_OP_GATE].u.gate.gates = state->gates;
    eng_nvtx_push(ENG_RANGE_LAYER, (EngRangeInfo){.tokens = state->shape.tokens,
                                                  .layer = state->shape.layer,
                                                  .step = eng_nvtx_step});
    int64_t *stage_ns = state->stage_ns[state->runs++ % KEPT_RUNS];
    int64_t before = eng_now_ns();
    for (int i = 0; i < state->n_stages && !status; i++) {
        status = eng_runner_run(&state->stages[i], &args[state->ops[i]], err);
        int64_t now = eng_now_ns();
        stage_ns[i] = now - before;
        before = now;
    }
    if (!status && eng_nvtx_on && !state->replay.graphs)
        status = eng_runner_pull(&state->stages[state->n_stages - 1], &args[ENG_OP_GATE], err);
    if (!status && !state->replay.graphs)
        eng_mark_saturated(state->gates, state->shape.tokens * state->shape.streams);
    eng_nvtx_pop();
    return status;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    int64_t window = eng_windows_next(&state->windows);
    return eng_replay_run(&state->replay, run_window, state, window, err);
}

static EngStatus check_stage(State *state, int stage, const EngArgs *args, EngCheck *sum,
                             EngErr *err)
{
    const EngProblem *problem = &state->stages[stage].problem;
    switch (problem->op) {
    case ENG_OP_HASH:
        return eng_check_hash(&state->shape.address, &args->u.hash, sum, err);
    case ENG_OP_GATHER:
        return eng_check_gather(&problem->u.gather, &args->u.gather, sum, err);
    case ENG_OP_PROJECT:
        return eng_check_project(&problem->u.project, &args->u.project, state->seed,
                                 CHECKED_OUTPUTS, sum, err);
    case ENG_OP_LOOKUP:
        return eng_check_lookup(&problem->u.lookup, &args->u.lookup, state->seed, CHECKED_OUTPUTS,
                                sum, err);
    default:
        return eng_check_gate(&problem->u.gate, &args->u.gate, state->seed, CHECKED_TOKENS, sum,
                              err);
    }
}

/* Each stage against the oracle of its own inputs, which are the previous stage's outputs: together
 * that is the oracle of the chain with its roundings (bf16 keys and values) where they belong. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngArgs args[ENG_OP_COUNT], of_stages[MAX_STAGES];
    uint16_t *before = NULL;
    const EngShape *shape = &state->shape;
    size_t tokens = (size_t)shape->tokens, k = (size_t)shape->k;
    size_t values = tokens * (size_t)shape->streams * (size_t)shape->hidden;
    fill_args(state, 0, args);
    for (int i = 0; i < state->n_stages; i++) of_stages[i] = args[state->ops[i]];
    EngStatus status = eng_alloc_or((void **)&before, values, sizeof *before, "streams", err);
    if (!status) memcpy(before, state->states, values * sizeof *before);
    /* A stage that writes nothing leaves NaNs; row numbers have to be some of the table's. */
    memset(state->rows, 0, tokens * (size_t)shape->columns * sizeof *state->rows);
    memset(state->x, 0xff, tokens * k);
    memset(state->x_scales, 0xff, tokens * (k / ENG_SCALE_GROUP));
    memset(state->kv, 0xff, tokens * (size_t)shape->n * sizeof *state->kv);
    if (!status)
        status = eng_replay_run_whole(&state->replay, run_window, state, 0, state->stages,
                                      of_stages, state->n_stages, err);
    args[ENG_OP_GATE].u.gate.streams_in = before;
    for (int i = 0; !status && i < state->n_stages; i++)
        status = check_stage(state, i, &args[state->ops[i]], &sum, err);
    eng_residual_of_check(&sum, "rel", residual);
    eng_free(before);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    static const EngOp shares[] = {ENG_OP_HASH, ENG_OP_GATHER, ENG_OP_PROJECT, ENG_OP_GATE,
                                   ENG_OP_LOOKUP};
    enum { N_SHARES = sizeof shares / sizeof *shares };
    const State *state = opaque;
    double ns[ENG_OP_COUNT] = {0}, total = 0;
    int64_t kept = timing->inner < KEPT_RUNS ? timing->inner : KEPT_RUNS;
    if (kept > state->runs) kept = state->runs;
    for (int i = 0; i < state->n_stages; i++) {
        for (int64_t r = 1; r <= kept; r++)
            ns[state->ops[i]] += (double)state->stage_ns[(state->runs - r) % KEPT_RUNS][i];
        total += ns[state->ops[i]];
    }
    values[0] = eng_wall_ns(timing) * 1e-3;
    values[1] = eng_cpu_ns(timing) * 1e-3;
    values[2] = values[1] / (double)state->shape.tokens;
    for (int i = 0; i < N_SHARES; i++) values[3 + i] = NAN; /* not a stage of this variant */
    values[3 + N_SHARES] = eng_launches(timing);
    /* The host only launches: its times are not the stages'. */
    bool device = state->stages[0].kernel->backend == ENG_CUDA;
    for (int i = 0; i < N_SHARES && !device; i++)
        for (int k = 0; k < state->n_stages; k++)
            if (state->ops[k] == shares[i]) values[3 + i] = ns[shares[i]] / total;
}

const EngExperiment eng_experiment_chain = {
    .name = "chain",
    .question = "What does the whole forward cost per token, and which stage takes it?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
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
