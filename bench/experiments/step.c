/* step: how much of a fetch is hidden under the computation before it? One step of one layer: row
 * numbers are hashed, a second thread reads the rows (`fetch`) while this one computes products
 * that stand for the layers in between (`window`), then waits for the rows (`wait`), projects and
 * gates them. The smallest real overlap: row stores and a prefetcher that reads ahead are
 * experiments of their own.
 */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/histograms.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/stages.h"
#include "bench/experiments/support.h"

#define EST_FLOPS_PER_NS 60.0
#define CHECKED_OUTPUTS  96
#define CHECKED_TOKENS   16
#define SEED_STATES      0x737465702d686964u

static const char *const g_words_variant[] = {"portable", "best", NULL};

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,
    ENG_AXIS_TOKENS_DEF("16", "tokens per step"),
    ENG_AXIS_CORPUS_DEF,
    {"window", ENG_AXIS_INT, "1", "products", 0, 1000, NULL,
     "products of the projection's shape between hash and need; 0: rows are needed at once"},
    {"formula", ENG_AXIS_WORD, "copysign", "", 0, 0, eng_words_formula, "the gate's formula"},
    ENG_AXIS_THREADS_DEF,
    {"variant", ENG_AXIS_WORD, "best", "", 0, 0, g_words_variant,
     "portable throughout, or per stage the first of a list by preference that fits"},
};

static const EngMetricDef g_metrics[] = {
    {"wall_us", "us", -1, "wall", "wall time of one step"},
    {"fetch_us", "us", -1, "wall", "reading the rows, on the other thread"},
    {"stall_us", "us", -1, "wall", "waiting for rows, from needed to ready"},
    {"window_us", "us", 0, "wall", "computing before rows are needed"},
    {"hidden", "share", +1, "wall", "1 - stall / fetch, not below 0, over the sample's steps"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one step (busiest thread)"},
};

/* What the two threads share: one job at a time. */
typedef struct Fetcher {
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted, ready, over; /* under the lock */
    EngStatus status;
    EngErr err;
    int64_t fetch_ns; /* of the last job */
} Fetcher;

typedef struct State {
    EngShape shape;
    EngRunner hash, gather, product, project, gate;
    EngArgs hash_args, gather_args, product_args, project_args, gate_args;
    EngWindows windows;
    Fetcher fetcher;
    int64_t *rows;
    uint8_t *x, *x_scales, *other, *other_scales; /* gathered rows; the product's input */
    uint16_t *kv, *other_out, *states, *q_weight, *k_weight;
    float *gates;
    int64_t products;
    int64_t steps, fetch_ns, stall_ns, window_ns; /* of the sample */
    uint64_t seed;
} State;

/* ---- plan ---- */

static const EngOp g_ops[] = {ENG_OP_HASH, ENG_OP_GATHER, ENG_OP_PROJECT, ENG_OP_GATE};

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    const EngKernel *kernel;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (!status) status = eng_shape_check_matrix(&shape, why);
    if (status) return status;
    if (shape.preset.conv || shape.row_format != ENG_ROW_FP8)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "the step is V4.1's: fp8 rows, no short convolution");
    for (size_t i = 0; !status && i < sizeof g_ops / sizeof *g_ops; i++)
        status = eng_stage_kernel(point, &shape, g_ops[i], &kernel, why);
    return status;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    size_t weights = (size_t)shape.n * (size_t)shape.k;
    *need = eng_shape_need(point, &shape);
    need->weight_bytes = weights;
    need->private_bytes = (size_t)shape.tokens * (size_t)(4 * shape.k + 6 * shape.n) + 8 * weights;
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    double products = 1 + (double)eng_point_int(point, "window");
    return products * 2 * (double)shape.n * (double)shape.k * (double)shape.tokens /
           EST_FLOPS_PER_NS / shape.threads;
}

/* ---- the other thread ---- */

static void fetch(State *state)
{
    Fetcher *f = &state->fetcher;
    const EngShape *shape = &state->shape;
    int64_t bytes = shape->tokens * shape->columns * (int64_t)shape->row_bytes;
    int64_t from = eng_now_ns();
    eng_nvtx_push(ENG_RANGE_FETCH, (EngRangeInfo){.tokens = shape->tokens,
                                                  .layer = shape->layer,
                                                  .bytes = bytes,
                                                  .step = eng_nvtx_step});
    f->status = eng_runner_run(&state->gather, &state->gather_args, &f->err);
    eng_nvtx_pop();
    f->fetch_ns = eng_now_ns() - from;
}

static void *fetch_thread(void *opaque)
{
    State *state = opaque;
    Fetcher *f = &state->fetcher;
    eng_nvtx_name_thread("fetch");
    pthread_mutex_lock(&f->lock);
    while (!f->over) {
        if (!f->wanted) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        f->wanted = false;
        pthread_mutex_unlock(&f->lock);
        fetch(state);
        pthread_mutex_lock(&f->lock);
        f->ready = true;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void want_rows(Fetcher *f)
{
    pthread_mutex_lock(&f->lock);
    f->wanted = true;
    f->ready = false;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void wait_for_rows(Fetcher *f)
{
    pthread_mutex_lock(&f->lock);
    while (!f->ready) pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static EngStatus start_fetcher(State *state, EngErr *err)
{
    Fetcher *f = &state->fetcher;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->started = pthread_create(&f->thread, NULL, fetch_thread, state) == 0;
    return f->started ? ENG_OK : ENG_FAIL(err, ENG_NO_MEMORY, "cannot start the fetching thread");
}

static void stop_fetcher(Fetcher *f)
{
    if (!f->started) return;
    pthread_mutex_lock(&f->lock);
    f->over = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
}

/* ---- set-up ---- */

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    stop_fetcher(&state->fetcher);
    EngRunner *runners[] = {&state->hash, &state->gather, &state->product, &state->project,
                            &state->gate};
    void *buffers[] = {state->rows,         state->x,        state->x_scales,  state->other,
                       state->other_scales, state->kv,       state->other_out, state->states,
                       state->q_weight,     state->k_weight, state->gates};
    for (size_t i = 0; i < sizeof runners / sizeof *runners; i++) eng_runner_close(runners[i]);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) eng_free(buffers[i]);
    eng_windows_destroy(&state->windows);
    eng_free(state);
}

static EngStatus allocate(State *state, EngErr *err)
{
    const EngShape *shape = &state->shape;
    size_t tokens = (size_t)shape->tokens, k = (size_t)shape->k, n = (size_t)shape->n;
    size_t width = (size_t)shape->streams * (size_t)shape->hidden, groups = k / ENG_SCALE_GROUP;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {
        {(void **)&state->rows, tokens, (size_t)shape->columns * sizeof(int64_t)},
        {(void **)&state->x, tokens, k},
        {(void **)&state->x_scales, tokens, groups},
        {(void **)&state->other, tokens, k},
        {(void **)&state->other_scales, tokens, groups},
        {(void **)&state->kv, tokens, 2 * n},
        {(void **)&state->other_out, tokens, 2 * n},
        {(void **)&state->states, tokens, 2 * width},
        {(void **)&state->q_weight, width, 2},
        {(void **)&state->k_weight, width, 2},
        {(void **)&state->gates, tokens, (size_t)shape->streams * sizeof(float)},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "step buffers", err);
    return status;
}

static EngStatus fill(State *state, EngErr *err)
{
    EngNormals *normals;
    const EngShape *shape = &state->shape;
    int64_t width = (int64_t)shape->streams * shape->hidden;
    uint64_t seed = state->seed ^ SEED_STATES;
    EngStatus status = eng_alloc_or((void **)&normals, 1, sizeof *normals, "table of normals", err);
    if (status) return status;
    eng_normals_init(normals);
    eng_normals_bf16(normals, seed, 0, 1, 0.25f, width, state->q_weight);
    eng_normals_bf16(normals, seed, 1, 1, 0.25f, width, state->k_weight);
    eng_normals_bf16(normals, seed, 2, 0, 1, shape->tokens * width, state->states);
    eng_free(normals);
    /* Any finite e4m3 numbers of common size: the product's time does not depend on them. */
    for (int64_t i = 0; i < shape->tokens * shape->k; i++)
        state->other[i] = (uint8_t)(0x28 + i * 7 % 16);
    memset(state->other_scales, 127, (size_t)(shape->tokens * shape->k / ENG_SCALE_GROUP));
    return ENG_OK;
}

static EngStatus open_runner(const EngPoint *point, const EngShape *shape, EngRunner *runner,
                             EngProblem *problem, EngErr *err)
{
    const EngKernel *kernel;
    EngStatus status = eng_stage_kernel(point, shape, problem->op, &kernel, err);
    if (!status) status = eng_runner_open(runner, kernel, problem, err);
    if (!status) runner->layer = shape->layer;
    return status;
}

static EngStatus open_runners(State *state, const EngBench *bench, const EngPoint *point,
                              const EngTable *table, EngErr *err)
{
    const EngShape *shape = &state->shape;
    EngProblem hash = eng_stage_problem(point, shape, ENG_OP_HASH);
    EngProblem gather = eng_stage_problem(point, shape, ENG_OP_GATHER);
    EngProblem project = eng_stage_problem(point, shape, ENG_OP_PROJECT);
    EngProblem gate = eng_stage_problem(point, shape, ENG_OP_GATE);
    gather.threads = 1; /* the fetching thread alone */
    gather.u.gather.table = *table;
    gate.u.gate.q_weight = state->q_weight;
    gate.u.gate.k_weight = state->k_weight;
    EngStatus status =
        eng_resources_weights(bench->resources, (int)shape->n, (int)shape->k, &project.u.project.w,
                              &project.u.project.w_scales, err);
    if (!status) status = open_runner(point, shape, &state->hash, &hash, err);
    if (!status) status = open_runner(point, shape, &state->gather, &gather, err);
    if (!status) status = open_runner(point, shape, &state->product, &project, err);
    if (!status) status = open_runner(point, shape, &state->project, &project, err);
    if (!status) status = open_runner(point, shape, &state->gate, &gate, err);
    state->hash.layer = state->product.layer = -1;
    return status;
}

static void fill_args(State *state)
{
    state->gather_args.u.gather = (EngGatherArgs){.rows = state->rows,
                                                  .row_stride = state->shape.columns,
                                                  .out = state->x,
                                                  .out_scales = state->x_scales};
    state->product_args.u.project = (EngProjectArgs){
        .x = state->other, .x_scales = state->other_scales, .out = state->other_out};
    state->project_args.u.project =
        (EngProjectArgs){.x = state->x, .x_scales = state->x_scales, .out = state->kv};
    state->gate_args.u.gate = (EngGateArgs){.streams_in = state->states,
                                            .streams_out = state->states,
                                            .kv = state->kv,
                                            .gates = state->gates};
}

static EngStatus touch(State *state, const EngTable *table, EngErr *err)
{
    int64_t *rows = NULL, n = state->windows.n * state->shape.tokens * state->shape.columns;
    EngStatus status = eng_windows_rows(&state->windows, &state->shape.address, &rows, err);
    if (!status) eng_touch_rows(table, rows, n);
    eng_free(rows);
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngTokens tokens;
    EngTable table;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "step", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    state->seed = bench->seed;
    state->products = eng_point_int(point, "window");
    status = eng_shape_resolve(point, shape, err);
    if (!status)
        status = eng_resources_tokens(bench->resources, shape->preset.name,
                                      eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status = eng_resources_table(bench->resources, shape->row_format, shape->row_dims,
                                     shape->address.rows[0], &table, err);
    if (!status)
        status = eng_windows_create(&state->windows, &tokens, shape->tokens,
                                    eng_windows_count(shape->tokens), shape->max_order - 1,
                                    bench->seed, eng_point_word(point, "variant"), err);
    if (!status) status = touch(state, &table, err);
    if (!status) status = allocate(state, err);
    if (!status) status = fill(state, err);
    if (!status) status = open_runners(state, bench, point, &table, err);
    if (!status) fill_args(state);
    if (!status) status = start_fetcher(state, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

/* ---- runs ---- */

/* Row numbers, then the fetch beside the window's products; returns when the rows are there. */
static EngStatus fetch_beside_window(State *state, int64_t window, EngErr *err)
{
    const EngShape *shape = &state->shape;
    Fetcher *f = &state->fetcher;
    const EngRangeInfo info = {
        .tokens = shape->tokens, .layer = shape->layer, .step = eng_nvtx_step};
    state->hash_args.u.hash =
        eng_windows_hash_args(&state->windows, window, shape->max_order - 1, state->rows);
    EngStatus status = eng_runner_run(&state->hash, &state->hash_args, err);
    if (status) return status;
    /* Without a window rows are needed now: waking the other thread may hand it this processor, and
     * then the rows are there before the call returns. */
    int64_t from = eng_now_ns(), needed = from;
    if (!state->products) eng_nvtx_push(ENG_RANGE_WAIT, info);
    want_rows(f);
    if (state->products) {
        eng_nvtx_push(ENG_RANGE_WINDOW, info);
        for (int64_t i = 0; i < state->products && !status; i++)
            status = eng_runner_run(&state->product, &state->product_args, err);
        eng_nvtx_pop();
        needed = eng_now_ns();
        eng_nvtx_push(ENG_RANGE_WAIT, info);
    }
    wait_for_rows(f);
    eng_nvtx_pop();
    state->stall_ns += eng_now_ns() - needed;
    state->window_ns += needed - from;
    state->fetch_ns += f->fetch_ns;
    state->steps++;
    if (status || !f->status) return status;
    if (err) *err = f->err;
    return f->status;
}

static EngStatus run_window(State *state, int64_t window, EngErr *err)
{
    const EngShape *shape = &state->shape;
    EngStatus status = fetch_beside_window(state, window, err);
    if (status) return status;
    eng_nvtx_push(
        ENG_RANGE_LAYER,
        (EngRangeInfo){.tokens = shape->tokens, .layer = shape->layer, .step = eng_nvtx_step});
    status = eng_runner_run(&state->project, &state->project_args, err);
    if (!status) status = eng_runner_run(&state->gate, &state->gate_args, err);
    if (!status) eng_mark_saturated(state->gates, shape->tokens * shape->streams);
    eng_nvtx_pop();
    return status;
}

static EngStatus prepare(void *opaque, EngErr *err)
{
    State *state = opaque;
    (void)err;
    state->steps = state->fetch_ns = state->stall_ns = state->window_ns = 0;
    return ENG_OK;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    return run_window(state, eng_windows_next(&state->windows), err);
}

/* Each stage against the oracle of its own inputs, as in the chain. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    uint16_t *before = NULL;
    const EngShape *shape = &state->shape;
    size_t values = (size_t)(shape->tokens * shape->streams) * (size_t)shape->hidden;
    EngStatus status = eng_alloc_or((void **)&before, values, sizeof *before, "streams", err);
    if (!status) {
        memcpy(before, state->states, values * sizeof *before);
        memset(state->x, 0xff, (size_t)(shape->tokens * shape->k));
        memset(state->kv, 0xff, (size_t)(shape->tokens * shape->n) * sizeof *state->kv);
        status = run_window(state, 0, err);
    }
    EngArgs gate = state->gate_args;
    gate.u.gate.streams_in = before;
    if (!status) status = eng_check_hash(&shape->address, &state->hash_args.u.hash, &sum, err);
    if (!status)
        status = eng_check_gather(&state->gather.problem.u.gather, &state->gather_args.u.gather,
                                  &sum, err);
    if (!status)
        status =
            eng_check_project(&state->project.problem.u.project, &state->project_args.u.project,
                              state->seed, CHECKED_OUTPUTS, &sum, err);
    if (!status)
        status = eng_check_gate(&state->gate.problem.u.gate, &gate.u.gate, state->seed,
                                CHECKED_TOKENS, &sum, err);
    eng_residual_of_check(&sum, "rel", residual);
    eng_free(before);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    double steps = (double)(state->steps ? state->steps : 1);
    double fetch_ns = (double)state->fetch_ns, stall_ns = (double)state->stall_ns;
    values[0] = eng_wall_ns(timing) * 1e-3;
    values[1] = fetch_ns / steps * 1e-3;
    values[2] = stall_ns / steps * 1e-3;
    values[3] = (double)state->window_ns / steps * 1e-3;
    values[4] = fetch_ns > 0 ? fmax(0, 1 - stall_ns / fetch_ns) : NAN;
    values[5] = eng_cpu_ns(timing) * 1e-3;
}

static EngStatus histograms(void *opaque, EngHistogramSink sink, void *context, EngErr *err)
{
    const State *state = opaque;
    const EngShape *shape = &state->shape;
    return eng_gate_histograms(NULL, state->gates, shape->tokens, shape->streams, shape->layer,
                               sink, context, err);
}

const EngExperiment eng_experiment_step = {
    .name = "step",
    .question = "How much of reading a layer's rows hides under the computation before it?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
    .tunables = eng_tunable_placement,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .prepare = prepare,
    .run = run,
    .verify = verify,
    .observe = observe,
    .histograms = histograms,
    .teardown = teardown,
};
