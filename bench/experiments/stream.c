/* stream: how many bytes a second go through memory in order?
 *
 * Reads, writes, copies and updates in place over a working set, each thread in a part of its own.
 * A sample passes over one chunk of each part and the next sample over the next, so that samples
 * are short and sets may be large. Bytes are what the loop loads and stores, as outside tools count
 * them (scripts/roof_check compares).
 */
#include "bench/experiments/experiments.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/support.h"
#include "kernels/cpu/stream.h"
#include "kernels/store/pages.h"

#define LINE         64
#define CHUNK_BYTES  ((size_t)4 << 20) /* most of an array that a thread passes over in one run */
#define FILL_BYTES   ((size_t)1 << 20)
#define EST_NS_BYTE  0.05
#define FILL_FACTOR  0x9e3779b97f4a7c15u
#define UPDATE_VALUE 3u

static const char *const g_words_op[] = {"read", "write", "copy", "update", NULL};
static const char *const g_words_store[] = {"normal", "nt", NULL};
static const char *const g_words_pages[] = {"4k", "2m", "1g", NULL};

static const EngAxisDef g_axes[] = {
    {"pass", ENG_AXIS_WORD, "read", "", 0, 0, g_words_op, "what a pass does to every word"},
    {"bytes", ENG_AXIS_INT, "1073741824", "bytes", 4096, 0x1p46, NULL,
     "working set, all arrays and threads together"},
    {"store", ENG_AXIS_WORD, "normal", "", 0, 0, g_words_store,
     "how words are stored; nt: non-temporal, past the caches"},
    {"pages", ENG_AXIS_WORD, "2m", "", 0, 0, g_words_pages, "page size"},
    ENG_AXIS_THREADS_DEF,
};

static const EngMetricDef g_metrics[] = {
    {"gbps", "GB/s", +1, "cpu", "bytes loaded and stored per CPU time"},
    {"wall_gbps", "GB/s", +1, "wall", "bytes loaded and stored per wall time"},
    {"ns_per_line", "ns", -1, "cpu", "CPU time of a thread per 64 bytes of an array"},
    {"huge_share", "", 0, "none", "share of the set that lies on pages larger than 4 KiB"},
};

typedef struct Config {
    EngStreamOp op;
    bool non_temporal;
    EngPageKind pages;
    int threads;
    size_t array_bytes; /* of one array: the set, or half of it for a copy */
    size_t part_bytes;  /* of an array, per thread: whole lines */
    size_t chunk_bytes; /* per thread and run */
} Config;

typedef struct State {
    Config config;
    EngPages pages;
    uint8_t *to, *from;
    size_t *offset; /* [threads] */
    size_t at;      /* of the next chunk in every part */
    uint64_t value, sum;
    double huge_share;
} State;

static EngStatus read_config(const EngPoint *point, Config *c, EngErr *err)
{
    *c = (Config){.op = (EngStreamOp)eng_stream_op_parse(eng_point_word(point, "pass")),
                  .non_temporal = !strcmp(eng_point_word(point, "store"), "nt"),
                  .pages = (EngPageKind)eng_page_kind_parse(eng_point_word(point, "pages")),
                  .threads = (int)eng_point_int(point, "threads"),
                  .array_bytes = (size_t)eng_point_int(point, "bytes")};
    if (c->op == ENG_STREAM_COPY) c->array_bytes /= 2;
    c->part_bytes = c->array_bytes / (size_t)c->threads / LINE * LINE;
    c->chunk_bytes = c->part_bytes < CHUNK_BYTES ? c->part_bytes : CHUNK_BYTES;
    if (!c->part_bytes)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "%zu bytes are less than a line for each of %d threads", c->array_bytes,
                        c->threads);
    return ENG_OK;
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    Config c;
    EngStatus status = read_config(point, &c, why);
    return status ? status : eng_stream_supports(c.op, c.non_temporal, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    (void)err;
    *need = (EngNeed){.private_bytes = (size_t)eng_point_int(point, "bytes")};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    Config c;
    if (read_config(point, &c, NULL)) return 0;
    return EST_NS_BYTE * (double)c.chunk_bytes * eng_stream_op_factor(c.op);
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_pages_unmap(&state->pages);
    eng_free(state->offset);
    eng_free(state);
}

static void fill_chunk(void *context, int64_t chunk)
{
    const EngPages *pages = context;
    size_t from = (size_t)chunk * FILL_BYTES;
    size_t to = from + FILL_BYTES < pages->n ? from + FILL_BYTES : pages->n;
    for (size_t i = from; i + 8 <= to; i += 8) {
        uint64_t word = (uint64_t)(i / 8) * FILL_FACTOR;
        memcpy(pages->bytes + i, &word, sizeof word);
    }
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    (void)bench;
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "stream", err);
    if (status) return status;
    Config *c = &state->config;
    size_t array = 0;
    status = read_config(point, c, err);
    if (!status)
        status = eng_alloc_or((void **)&state->offset, (size_t)c->threads, sizeof *state->offset,
                              "stream parts", err);
    if (!status) {
        array = c->part_bytes * (size_t)c->threads;
        status =
            eng_pages_map(&state->pages, array * (c->op == ENG_STREAM_COPY ? 2 : 1), c->pages, err);
    }
    if (status) {
        teardown(state);
        return status;
    }
    eng_parallel_for((int64_t)((state->pages.n + FILL_BYTES - 1) / FILL_BYTES), 0, fill_chunk,
                     &state->pages);
    state->huge_share = eng_pages_huge_share(&state->pages);
    state->to = state->pages.bytes;
    if (c->op == ENG_STREAM_COPY) state->from = state->pages.bytes + array;
    state->value = UPDATE_VALUE;
    *out = state;
    return ENG_OK;
}

static EngStatus run(void *opaque, EngErr *err)
{
    (void)err;
    State *state = opaque;
    const Config *c = &state->config;
    for (int t = 0; t < c->threads; t++) state->offset[t] = (size_t)t * c->part_bytes + state->at;
    state->sum += eng_stream_parts(c->op, c->non_temporal, state->to, state->from, c->threads,
                                   state->offset, c->chunk_bytes, state->value);
    state->at += c->chunk_bytes;
    if (state->at + c->chunk_bytes > c->part_bytes) state->at = 0;
    return ENG_OK;
}

/* ---- what a pass must have done ----------------------------------------------------------------
 */

static uint64_t word_at(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Every word of the chunk that run() takes next, looked at before and after. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    const Config *c = &state->config;
    size_t n = c->chunk_bytes * (size_t)c->threads, at = state->at;
    uint64_t sum = 0, before = state->sum;
    int64_t wrong = 0;
    uint8_t *kept;
    EngStatus status = eng_alloc_or((void **)&kept, n, 1, "stream check", err);
    if (status) return status;
    const uint8_t *source = c->op == ENG_STREAM_COPY ? state->from : state->to;
    for (size_t t = 0; t < (size_t)c->threads; t++)
        memcpy(kept + t * c->chunk_bytes, source + t * c->part_bytes + at, c->chunk_bytes);
    state->value++;
    status = run(state, err);
    for (size_t i = 0; i < n && !status; i += 8) {
        size_t t = i / c->chunk_bytes;
        uint64_t was = word_at(kept + i);
        uint64_t is = word_at(state->to + t * c->part_bytes + at + i % c->chunk_bytes);
        uint64_t want = c->op == ENG_STREAM_WRITE    ? state->value
                        : c->op == ENG_STREAM_UPDATE ? was + state->value
                                                     : was;
        sum += was;
        wrong += is != want;
    }
    if (c->op == ENG_STREAM_READ) wrong += state->sum - before != sum;
    *residual = (EngResidual){.of = "exact",
                              .pass = !wrong,
                              .max_rel = wrong ? 1 : 0,
                              .n_checked = (int64_t)(n / 8),
                              .n_outputs = (int64_t)(n / 8)};
    snprintf(residual->note, sizeof residual->note, "%lld words differ", (long long)wrong);
    eng_free(kept);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const Config *c = &state->config;
    double cpu_ns = eng_cpu_ns(timing), wall_ns = eng_wall_ns(timing);
    double moved = (double)c->chunk_bytes * c->threads * eng_stream_op_factor(c->op);
    values[0] = moved / cpu_ns;
    values[1] = moved / wall_ns;
    values[2] = cpu_ns * LINE / (double)c->chunk_bytes;
    values[3] = state->huge_share;
}

const EngExperiment eng_experiment_stream = {
    .name = "stream",
    .question = "How many bytes a second can be read, written, copied or updated in order?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
