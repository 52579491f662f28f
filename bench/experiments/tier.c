/* tier: how fast does a row store answer the batches of real text, and from where?
 *
 * The table is a seeded file, made once (table_files.h). A call fetches all rows of `tokens` tokens
 * of one layer into a dense buffer; what a gather kernel does with them afterwards is the gather's
 * business. Cold and warm are made before every sample and read from the page cache itself; bytes
 * that the device gave are those that the kernel has on this process's account.
 */
#include "bench/experiments/experiments.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/open_table.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"
#include "kernels/store/residency.h"

#define EST_NS_PER_ROW      2000.0
#define MAX_VERIFIED_TOKENS 128

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,         ENG_AXIS_TOKENS_DEF("16", "tokens per call: 1 is a decode step"),
    ENG_AXIS_CORPUS_DEF,    ENG_AXES_STORE,
    ENG_AXIS_RESIDENCY_DEF,
};

static const EngMetricDef g_metrics[] = {
    {"wall_us", "us", -1, "wall", "wall time of one call"},
    {"rows_per_s", "rows/s", +1, "wall", "rows fetched per wall time"},
    {"row_ns", "ns", -1, "wall", "wall time per row"},
    {"gbps", "GB/s", +1, "wall", "bytes of rows fetched per wall time"},
    {"cpu_us", "us", -1, "cpu", "CPU time of one call (busiest thread)"},
    {"batch_rows", "rows", 0, "none", "rows of one call"},
    {"asked_bytes", "B", 0, "none", "bytes of these rows, scales included"},
    {"requests", "requests", 0, "none", "reads given to the operating system, per call"},
    {"read_bytes", "B", 0, "none", "bytes of these reads, per call"},
    {"device_bytes", "B", 0, "none", "bytes the device gave this process, per call"},
    {"amplification", "", 0, "none", "device bytes over bytes of rows"},
    {"ready_share", "", 0, "none", "nowait: requests that the page cache answered at once"},
    {"hit_rate", "", 0, "none", "row cache: rows found in it"},
    {"evicted_rows", "rows", 0, "none", "row cache: rows given up, per call"},
    {"duplicate_share", "", 0, "none", "dedup: rows copied instead of fetched"},
    {"resident_share", "", 0, "none", "share of the file in the page cache when the sample began"},
    {"memory_bytes", "B", 0, "none", "held by the store: table, cache, buffers, scales"},
    {"rss_bytes", "B", 0, "none", "resident set of the process after the sample"},
    {"file_rss_bytes", "B", 0, "none", "of that, mapped pages of files"},
    {"page_cache_bytes", "B", 0, "none", "page cache of the whole machine after the sample"},
};

typedef struct State {
    EngShape shape;
    EngOpenTable table;
    const EngResources *resources;
    EngWindows windows;
    int64_t *rows; /* [windows, tokens, columns] */
    int64_t per_window;
    EngRowsOut out;
    EngIoReading before;
} State;

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
    return resolve(point, &shape, &spec, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStoreSpec spec;
    EngStatus status = resolve(point, &shape, &spec, err);
    if (status) return status;
    size_t batch = (size_t)shape.tokens * (size_t)shape.columns;
    size_t windows = (size_t)eng_windows_count(shape.tokens);
    size_t scale = eng_row_scale_bytes(shape.row_format, shape.row_dims);
    *need = (EngNeed){
        .corpus = eng_point_word(point, "corpus"),
        .preset = eng_point_word(point, "preset"),
        .max_tokens = shape.tokens,
        .private_bytes =
            batch * (windows * sizeof(int64_t) + shape.row_bytes * (size_t)(spec.shards + 1)) +
            eng_store_spec_bytes(&spec, shape.address.rows[0], shape.row_bytes, scale)};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    return EST_NS_PER_ROW * (double)shape.tokens * shape.columns;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_open_table_close(&state->table);
    eng_windows_destroy(&state->windows);
    eng_free(state->rows);
    eng_free(state->out.values);
    eng_free(state->out.scales);
    eng_free(state);
}

static EngStatus setup_rows(State *state, const EngBench *bench, const EngPoint *point, EngErr *err)
{
    EngTokens tokens;
    EngShape *shape = &state->shape;
    EngStatus status = eng_resources_tokens(bench->resources, shape->preset.name,
                                            eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status = eng_windows_create(&state->windows, &tokens, shape->tokens,
                                    eng_windows_count(shape->tokens), shape->max_order - 1,
                                    bench->seed, eng_point_word(point, "store"), err);
    if (!status) status = eng_windows_rows(&state->windows, &shape->address, &state->rows, err);
    return status;
}

static EngStatus setup_output(State *state, EngErr *err)
{
    const EngShape *shape = &state->shape;
    size_t n = (size_t)state->per_window;
    size_t stride = eng_row_stride_bytes(shape->row_format, shape->row_dims);
    size_t scale = eng_row_scale_bytes(shape->row_format, shape->row_dims);
    EngStatus status = eng_alloc_or((void **)&state->out.values, n, stride, "fetched rows", err);
    if (!status && scale)
        status = eng_alloc_or((void **)&state->out.scales, n, scale, "fetched scales", err);
    return status;
}

static EngStatus fetch(State *state, int64_t window, EngErr *err)
{
    return eng_store_read(state->table.store, state->rows + window * state->per_window,
                          state->per_window, &state->out, err);
}

/* A row cache as it is after a while: rows of the text in shuffled order, so that rows of one
 * window do not lie side by side in it, then windows as they come. Each part as many rows as it
 * holds. */
static EngStatus fill_cache(State *state, uint64_t seed, EngErr *err)
{
    int64_t all = state->windows.n * state->per_window, most = state->table.spec.cache.rows, *mixed;
    EngRng rng;
    EngStatus status =
        eng_alloc_or((void **)&mixed, (size_t)all, sizeof *mixed, "rows to fill a cache with", err);
    if (status) return status;
    memcpy(mixed, state->rows, (size_t)all * sizeof *mixed);
    eng_rng_seed(&rng, seed);
    for (int64_t i = all - 1; i > 0; i--) {
        int64_t other = (int64_t)eng_rng_below(&rng, (uint64_t)i + 1), kept = mixed[i];
        mixed[i] = mixed[other];
        mixed[other] = kept;
    }
    if (most > all || most >= state->table.store->rows) most = all;
    for (int64_t at = 0; at < most && !status; at += state->per_window)
        status =
            eng_store_read(state->table.store, mixed + at, state->per_window, &state->out, err);
    for (int64_t at = 0; at < most && !status; at += state->per_window)
        status = fetch(state, at / state->per_window, err);
    eng_free(mixed);
    return status;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "tier", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    state->resources = bench->resources;
    status = eng_shape_resolve(point, shape, err);
    state->per_window = shape->tokens * shape->columns;
    if (!status) status = eng_open_table(&state->table, bench->resources, shape, point, err);
    if (!status) status = setup_rows(state, bench, point, err);
    if (!status) status = setup_output(state, err);
    if (!status && state->table.spec.cached) status = fill_cache(state, bench->seed, err);
    if (status) {
        teardown(state);
        return status;
    }
    *out = state;
    return ENG_OK;
}

static EngStatus prepare(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngStatus status = eng_open_table_prepare(&state->table, err);
    eng_io_read(&state->before);
    return status;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    return fetch(state, eng_windows_next(&state->windows), err);
}

/* Every row of the first windows, as many as make 128 tokens and at least one, against the seed. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    const EngShape *shape = &state->shape;
    int64_t wrong = 0, checked = 0;
    EngStatus status = prepare(state, err);
    for (int64_t w = 0; w < state->windows.n && !status; w++) {
        if (w && w * shape->tokens >= MAX_VERIFIED_TOKENS) break;
        const int64_t *rows = state->rows + w * state->per_window;
        memset(state->out.values, 0xff,
               eng_rows_value_bytes(shape->row_format, shape->row_dims, state->per_window));
        status = fetch(state, w, err);
        if (!status)
            status = eng_table_rows_check(state->resources, shape->row_format, shape->row_dims,
                                          rows, state->per_window, &state->out, &wrong, err);
        checked += state->per_window;
    }
    *residual = (EngResidual){.of = "exact",
                              .max_rel = wrong ? 1 : 0,
                              .pass = !wrong,
                              .n_checked = checked,
                              .n_outputs = checked};
    snprintf(residual->note, sizeof residual->note, "%" PRId64 " of %" PRId64 " rows differ", wrong,
             checked);
    return status;
}

static double share_of(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    State *state = opaque;
    EngStoreStats s;
    EngIoReading now;
    const EngStoreSpec *spec = &state->table.spec;
    double wall_ns = eng_wall_ns(timing), rows = (double)state->per_window;
    double calls = (double)timing->inner;
    double asked = rows * (double)state->shape.row_bytes;
    eng_store_stats(state->table.store, &s);
    eng_io_read(&now);
    double device = now.device_bytes < 0
                        ? NAN
                        : (double)(now.device_bytes - state->before.device_bytes) / calls;
    values[0] = wall_ns * 1e-3;
    values[1] = rows / wall_ns * 1e9;
    values[2] = wall_ns / rows;
    values[3] = asked / wall_ns;
    values[4] = eng_cpu_ns(timing) * 1e-3;
    values[5] = rows;
    values[6] = asked;
    values[7] = (double)s.requests / calls;
    values[8] = (double)s.bytes_read / calls;
    values[9] = device;
    values[10] = device / asked;
    values[11] = spec->kind == ENG_STORE_NOWAIT ? share_of(s.ready, s.requests) : NAN;
    values[12] = spec->cached ? share_of(s.hits, s.hits + s.misses) : NAN;
    values[13] = spec->cached ? (double)s.evictions / calls : NAN;
    values[14] = spec->dedup ? share_of(s.duplicates, s.rows) : NAN;
    values[15] = state->table.resident_share;
    values[16] = (double)s.memory_bytes;
    values[17] = (double)now.rss_bytes;
    values[18] = (double)now.file_rss_bytes;
    values[19] = (double)now.cached_bytes;
}

const EngExperiment eng_experiment_tier = {
    .name = "tier",
    .question = "How fast does a row store answer, by store, depth, threads, format and residency?",
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
