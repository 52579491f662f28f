/* interference: what does a product lose while threads gather rows beside it, and what do they get?
 *
 * A run is three phases of about the same length in changing order: the product alone, the product
 * beside the gatherers, the gatherers alone. With no gatherer the first two are the same, which
 * shows how far the slow-down of the others can be trusted.
 */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "bench/experiments/device_beside.h"
#include "bench/experiments/gatherers.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/stages.h"

#define PHASES           3
#define PHASE_NS         3e6 /* at least one product; more until a phase has this length */
#define NS_PER_S         1000000000
#define MAX_REPEATS      1000
#define EST_FLOPS_PER_NS 30.0
#define CHECKED_OUTPUTS  96
#define SEED_X           0x766963746d2d78u

static const char *const g_words_source[] = {"table", "store", NULL};

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,
    ENG_AXIS_TOKENS_DEF("16", "tokens of a gatherer's batch"),
    ENG_AXIS_CORPUS_DEF,
    ENG_AXES_STORE,
    ENG_AXIS_RESIDENCY_DEF,
    ENG_AXIS_CORES_DEF,
    {"gatherers", ENG_AXIS_INT, "1", "threads", 0, ENG_MAX_GATHERERS, NULL,
     "threads that fetch without pause; 0: how much two equal phases differ"},
    {"source", ENG_AXIS_WORD, "table", "", 0, 0, g_words_source,
     "table: they gather from memory, decoding to bf16; store: they fetch from the store"},
    {"victim_tokens", ENG_AXIS_INT, "16", "tokens", 1, 65536, NULL,
     "rows of the product: few are bound by reading weights, many by arithmetic"},
    {"victim_width", ENG_AXIS_INT, "2048", "values", 32, 65536, NULL,
     "inputs and outputs of the product, fp8 weights; in multiples of 32"},
    {"threads", ENG_AXIS_INT, "1", "", 1, 256, NULL, "threads of the product"},
    ENG_AXES_DEVICE,
};

static const EngMetricDef g_metrics[] = {
    {"victim_us", "us", -1, "wall", "one product beside the gatherers"},
    {"victim_alone_us", "us", -1, "wall", "one product alone"},
    {"slowdown_percent", "%", -1, "wall", "by which the former is longer"},
    {"victim_gflops", "GF/s", +1, "wall", "arithmetic of the product beside the gatherers"},
    {"gather_gbps", "GB/s", +1, "wall",
     "bytes of rows that all gatherers got beside the product; none where batches outlast it"},
    {"gather_alone_gbps", "GB/s", +1, "wall", "the same without the product"},
    {"gather_slowdown_percent", "%", -1, "wall", "by which a row takes longer beside the product"},
    {"gather_rows_per_s", "rows/s", +1, "wall", "rows that all gatherers got beside the product"},
    {"products", "", 0, "none", "in one phase"},
    {"victim_weight_bytes", "B", 0, "none", "weights and scales that each product reads"},
};

typedef struct State {
    EngShape shape;
    bool on_device; /* then `device` has product and gathers */
    EngDeviceBeside device;
    EngBesideSums sums[ENG_PHASES];
    EngCores cores;
    EngGatherers gatherers;
    EngRunner product;
    EngArgs args;
    uint8_t *x, *x_scales;
    uint16_t *out;
    int64_t repeats, runs;
    int64_t phase_ns; /* that the products took alone the last time */
    uint64_t seed;
    int64_t victim_ns, alone_ns; /* sums over the sample's runs */
    EngGathered beside, quiet;
    int64_t n; /* runs of the sample */
} State;

/* ---- plan ---- */

static bool from_store(const EngPoint *point)
{
    return !strcmp(eng_point_word(point, "source"), "store");
}

static EngProblem problem_of(const EngPoint *point)
{
    int width = (int)eng_point_int(point, "victim_width");
    return (EngProblem){.op = ENG_OP_PROJECT,
                        .threads = (int)eng_point_int(point, "threads"),
                        .u.project = {.tokens = eng_point_int(point, "victim_tokens"),
                                      .n = width,
                                      .k = width,
                                      .x = ENG_FP8,
                                      .weights = ENG_FP8,
                                      .out = ENG_BF16}};
}

static EngStatus resolve(const EngPoint *point, EngShape *shape, EngStoreSpec *spec, EngErr *err)
{
    EngResidency residency;
    EngStatus status = eng_shape_resolve(point, shape, err);
    return status ? status : eng_open_table_read(point, shape->row_format, spec, &residency, err);
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    EngStoreSpec spec;
    EngCores cores;
    const EngKernel *kernel;
    EngProblem problem = problem_of(point);
    EngStatus status = resolve(point, &shape, &spec, why);
    if (status) return status;
    if (problem.u.project.n % ENG_SCALE_GROUP)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "victim_width: %d is no multiple of %d",
                        problem.u.project.n, ENG_SCALE_GROUP);
    if (eng_point_on_device(point)) {
        status = eng_cuda_device(why);
        if (status) return status;
        if (from_store(point))
            return ENG_FAIL(why, ENG_UNSUPPORTED, "backend=cuda gathers from a table");
        if (eng_point_has_graph(point) && eng_point_table_at(point) == ENG_TABLE_STAGED)
            return ENG_FAIL(why, ENG_UNSUPPORTED,
                            "graph=on: what the host packs is not in a graph");
        kernel = eng_kernel_find(ENG_OP_PROJECT, "cuda_cublaslt");
        if (!kernel) return ENG_FAIL(why, ENG_UNSUPPORTED, "no cuBLASLt in this build");
        return eng_kernel_supports(kernel, &problem, why);
    }
    if (eng_point_table_at(point) != ENG_TABLE_LOCAL || eng_point_has_graph(point) ||
        eng_point_int(point, "blocks"))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "table_at, graph and blocks are of backend=cuda");
    status = eng_cores_read(eng_point_word(point, "cores"), problem.threads, &cores, why);
    return status ? status : eng_stage_best(&problem, &kernel, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStoreSpec spec;
    EngStatus status = resolve(point, &shape, &spec, err);
    if (status) return status;
    bool store = from_store(point);
    size_t width = (size_t)eng_point_int(point, "victim_width");
    size_t batch = (size_t)(shape.tokens * shape.columns);
    size_t n = (size_t)eng_point_int(point, "gatherers");
    size_t scale = eng_row_scale_bytes(shape.row_format, shape.row_dims);
    *need = eng_shape_need(point, &shape);
    need->table = !store;
    need->weight_bytes = width * width;
    need->private_bytes = batch * (size_t)eng_windows_count(shape.tokens) * sizeof(int64_t) +
                          n * batch * (shape.row_bytes + 2 * (size_t)shape.row_dims) +
                          (size_t)eng_point_int(point, "victim_tokens") * width * 4 +
                          4 * width * width;
    if (store)
        need->private_bytes +=
            n * eng_store_spec_bytes(&spec, shape.address.rows[0], shape.row_bytes, scale);
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngProblem problem = problem_of(point);
    const EngProjectProblem *p = &problem.u.project;
    if (eng_point_on_device(point)) return PHASES * PHASE_NS;
    double one = 2.0 * (double)p->tokens * p->n * p->k / EST_FLOPS_PER_NS / problem.threads;
    return PHASES * fmax(one, PHASE_NS);
}

/* ---- life ---- */

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_device_beside_destroy(&state->device);
    eng_cores_free(&state->cores);
    eng_gatherers_destroy(&state->gatherers);
    eng_runner_close(&state->product);
    eng_free(state->x);
    eng_free(state->x_scales);
    eng_free(state->out);
    eng_free(state);
}

static EngStatus open_product(State *state, const EngBench *bench, const EngPoint *point,
                              EngErr *err)
{
    const EngKernel *kernel;
    EngProblem problem = problem_of(point);
    EngProjectProblem *p = &problem.u.project;
    size_t tokens = (size_t)p->tokens, width = (size_t)p->n;
    EngStatus status = eng_alloc_or((void **)&state->x, tokens, width, "product input", err);
    if (!status)
        status = eng_alloc_or((void **)&state->x_scales, tokens, width / ENG_SCALE_GROUP,
                              "product input", err);
    if (!status)
        status = eng_alloc_or((void **)&state->out, tokens, width * sizeof *state->out,
                              "product output", err);
    if (!status)
        status = eng_resources_weights(bench->resources, p->n, p->k, &p->w, &p->w_scales, err);
    if (status) return status;
    /* Any finite e4m3 numbers of common size: the product's time does not depend on them. */
    for (size_t i = 0; i < tokens * width; i++) state->x[i] = (uint8_t)(0x28 + i * 7 % 16);
    memset(state->x_scales, 127, tokens * width / ENG_SCALE_GROUP);
    state->args.u.project =
        (EngProjectArgs){.x = state->x, .x_scales = state->x_scales, .out = state->out};
    if (state->on_device)
        return eng_device_beside_create(&state->device, bench, point, &problem, &state->args, err);
    status = eng_stage_best(&problem, &kernel, err);
    return status ? status : eng_runner_open(&state->product, kernel, &problem, err);
}

static EngStatus products(State *state, int64_t n, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int64_t i = 0; i < n && !status; i++)
        status = eng_runner_run(&state->product, &state->args, err);
    return status;
}

/* The second product is timed: the first packs weights and faults pages in. */
static EngStatus size_phase(State *state, EngErr *err)
{
    EngStatus status = products(state, 1, err);
    int64_t from = eng_now_ns();
    if (!status) status = products(state, 1, err);
    double one = (double)(eng_now_ns() - from + 1);
    state->repeats = (int64_t)fmin(fmax(PHASE_NS / one, 1), MAX_REPEATS);
    state->phase_ns = state->repeats * (int64_t)one;
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "interference", err);
    if (status) return status;
    state->seed = bench->seed ^ SEED_X;
    state->gatherers.resources = bench->resources;
    status = eng_shape_resolve(point, &state->shape, err);
    if (!status)
        status = eng_cores_read(eng_point_word(point, "cores"),
                                (int)eng_point_int(point, "threads"), &state->cores, err);
    state->on_device = eng_point_on_device(point);
    if (!status) status = open_product(state, bench, point, err);
    if (!status && !state->on_device) status = size_phase(state, err);
    if (!status && !state->on_device)
        status = eng_gatherers_create(&state->gatherers, (int)eng_point_int(point, "gatherers"),
                                      &state->shape, from_store(point), &state->cores, bench, point,
                                      err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngStatus prepare(void *opaque, EngErr *err)
{
    State *state = opaque;
    state->victim_ns = state->alone_ns = state->n = 0;
    state->beside = state->quiet = (EngGathered){0};
    memset(state->sums, 0, sizeof state->sums);
    if (state->on_device) return ENG_OK;
    EngStatus status = eng_gatherers_prepare(&state->gatherers, err);
    return status ? status : eng_cores_compute(&state->cores, err);
}

/* ---- phases ---- */

static EngStatus alone(State *state, EngErr *err)
{
    int64_t from = eng_now_ns();
    EngStatus status = products(state, state->repeats, err);
    state->phase_ns = eng_now_ns() - from;
    state->alone_ns += state->phase_ns;
    return status;
}

static EngStatus beside(State *state, EngErr *err)
{
    EngGatherers *g = &state->gatherers;
    const EngRangeInfo info = {
        .tokens = -1, .layer = state->shape.layer, .step = eng_nvtx_step, .bytes = -1};
    eng_gatherers_start(g);
    int64_t from = eng_now_ns();
    eng_nvtx_push(ENG_RANGE_LAYER, info);
    EngStatus status = products(state, state->repeats, err);
    eng_nvtx_pop();
    state->victim_ns += eng_now_ns() - from;
    eng_gatherers_end(g);
    EngStatus stopped = eng_gatherers_stop(g, &state->beside, status ? NULL : err);
    return status ? status : stopped;
}

/* As long as the products take alone; the calling thread sleeps and leaves its processor idle. */
static EngStatus quiet(State *state, EngErr *err)
{
    EngGatherers *g = &state->gatherers;
    if (!g->n) return ENG_OK;
    const struct timespec time = {state->phase_ns / NS_PER_S, state->phase_ns % NS_PER_S};
    eng_gatherers_start(g);
    nanosleep(&time, NULL);
    eng_gatherers_end(g);
    return eng_gatherers_stop(g, &state->quiet, err);
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngStatus status = ENG_OK;
    int64_t run = state->runs++, direction = run / PHASES % 2 ? -1 : 1;
    state->n++;
    for (int64_t i = 0; i < PHASES && !status; i++) {
        int64_t which = (run + direction * i + PHASES) % PHASES;
        if (state->on_device) {
            EngBesidePhase phase = (EngBesidePhase)which;
            bool none = which == ENG_PHASE_QUIET && !state->device.any;
            if (!none)
                status = eng_device_beside_run(&state->device, phase, &state->sums[which], err);
            continue;
        }
        status = which == 0   ? alone(state, err)
                 : which == 1 ? beside(state, err)
                              : quiet(state, err);
    }
    return status;
}

static const EngRunner *product_of(const State *state)
{
    return state->on_device ? &state->device.product : &state->product;
}

/* Both while they disturb each other. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    const EngProjectProblem *p = &product_of(state)->problem.u.project;
    memset(state->out, 0xff, (size_t)p->tokens * (size_t)p->n * sizeof *state->out);
    EngStatus status = prepare(state, err);
    if (!status && state->on_device)
        status = eng_device_beside_verify(&state->device, &sum, err);
    else if (!status)
        status = beside(state, err);
    eng_cores_free(&state->cores);
    if (!status)
        status =
            eng_check_project(p, &state->args.u.project, state->seed, CHECKED_OUTPUTS, &sum, err);
    if (!status && !state->on_device) status = eng_gatherers_check(&state->gatherers, &sum, err);
    eng_residual_of_check(&sum, "rel", residual);
    return status;
}

static double ratio(int64_t a, int64_t b)
{
    return b > 0 ? (double)a / (double)b : NAN;
}

/* What events of the device told, where the host's clock tells it otherwise. */
static void take_sums(State *state)
{
    state->repeats = state->device.products;
    state->alone_ns = state->sums[ENG_PHASE_ALONE].products_ns;
    state->victim_ns = state->sums[ENG_PHASE_BESIDE].products_ns;
}

/* Rows per ns of all gatherers. */
static double rate_of(const State *state, EngBesidePhase phase)
{
    const EngBesideSums *sums = &state->sums[phase];
    return state->on_device
               ? ratio(sums->rows, sums->gathers_ns)
               : eng_gathered_rate(&state->gatherers,
                                   phase == ENG_PHASE_BESIDE ? &state->beside : &state->quiet);
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    State *state = opaque;
    const EngProjectProblem *p = &product_of(state)->problem.u.project;
    (void)timing;
    if (state->on_device) take_sums(state);
    double each = (double)(state->n * state->repeats), width = (double)p->n;
    double row_bytes = (double)state->shape.row_bytes;
    double beside_rows = rate_of(state, ENG_PHASE_BESIDE);
    double quiet_rows = rate_of(state, ENG_PHASE_QUIET);
    bool any = state->on_device ? state->device.any : state->gatherers.n > 0;
    eng_cores_free(&state->cores);
    values[0] = (double)state->victim_ns / each * 1e-3;
    values[1] = (double)state->alone_ns / each * 1e-3;
    values[2] = 100 * (ratio(state->victim_ns, state->alone_ns) - 1);
    values[3] = 2 * (double)p->tokens * width * width * each / (double)state->victim_ns;
    values[4] = any ? beside_rows * row_bytes : 0;
    values[5] = any ? quiet_rows * row_bytes : NAN;
    values[6] = any && beside_rows > 0 ? 100 * (quiet_rows / beside_rows - 1) : NAN;
    values[7] = any ? beside_rows * 1e9 : 0;
    values[8] = (double)state->repeats;
    values[9] = width * width * (1 + 1.0 / (ENG_SCALE_GROUP * ENG_SCALE_GROUP));
}

const EngExperiment eng_experiment_interference = {
    .name = "interference",
    .question = "What does a product lose beside threads that gather rows, and what do they get?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .prepare = prepare,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
