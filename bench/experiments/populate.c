/* populate: how fast does memory come that a table is to be read into?
 *
 * Threads touch every page of a set that has none: the kernel finds, zeroes and maps each. A sample
 * touches one chunk and the next sample the next. What is touched has been free for some seconds,
 * as the memory of a machine that starts has: where a hypervisor takes free memory back, which
 * Linux tells it two seconds later, it must find it again, and pages that were in use just before
 * would come many times as fast.
 */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/store/pages.h"

#define PAGE_BYTES  4096
#define CHUNK_BYTES ((size_t)32 << 20) /* of a sample */
#define PART_BYTES  ((size_t)2 << 20)  /* of one thread at a time: no huge page is shared */
#define MARK        0x5a
#define EST_NS_BYTE 0.5
#define FREE_S      4 /* that memory has been free */

static const char *const g_words_pages[] = {"4k", "2m", NULL};

static const EngAxisDef g_axes[] = {
    {"bytes", ENG_AXIS_INT, "1073741824", "bytes", 2 * (double)CHUNK_BYTES, 0x1p46, NULL,
     "that are touched before they are given back"},
    {"pages", ENG_AXIS_WORD, "2m", "", 0, 0, g_words_pages,
     "page size; 2m: where the kernel grants it (huge_share)"},
    {"threads", ENG_AXIS_INT, "1", "", 1, 256, NULL, "that touch parts of their own"},
};

static const EngMetricDef g_metrics[] = {
    {"wall_gbps", "GB/s", +1, "wall", "bytes that came per wall time"},
    {"huge_share", "", 0, "none", "share of the set that lies on pages larger than 4 KiB"},
};

typedef struct State {
    EngPages pages;
    int threads;
    size_t chunk, at; /* that is touched next */
    bool touched;     /* in this window: nothing is left to find there */
} State;

static EngStatus check(const EngPoint *point, EngErr *why)
{
    (void)point, (void)why;
    return ENG_OK;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    (void)err;
    *need = (EngNeed){.private_bytes = (size_t)eng_point_int(point, "bytes")};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    double touch = EST_NS_BYTE * (double)CHUNK_BYTES / eng_point_real(point, "threads");
    /* Its part of the wait that a whole set takes. */
    return touch + FREE_S * 1e9 * (double)CHUNK_BYTES / eng_point_real(point, "bytes");
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_pages_unmap(&state->pages);
    eng_free(state);
}

/* A set of one chunk, less than the axis takes, is a test of how it works. */
static bool wait_until_free(const State *state)
{
    if (state->pages.n == state->chunk) return false;
    nanosleep(&(struct timespec){.tv_sec = FREE_S}, NULL);
    return true;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    (void)bench;
    static bool waited;
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "populate", err);
    if (status) return status;
    state->threads = (int)eng_point_int(point, "threads");
    status = eng_pages_map(&state->pages, (size_t)eng_point_int(point, "bytes"),
                           (EngPageKind)eng_page_kind_parse(eng_point_word(point, "pages")), err);
    state->chunk = state->pages.n < CHUNK_BYTES ? state->pages.n : CHUNK_BYTES;
    if (status) {
        teardown(state);
        return status;
    }
    /* Since this process began nothing was given back. */
    if (!waited) waited = wait_until_free(state);
    *out = state;
    return ENG_OK;
}

static EngStatus prepare(void *opaque, EngErr *err)
{
    State *state = opaque;
    if (state->touched) state->at += state->chunk;
    state->touched = false;
    if (state->at + state->chunk <= state->pages.n) return ENG_OK;
    state->at = 0;
    EngStatus status = eng_pages_drop(&state->pages, err);
    wait_until_free(state);
    return status;
}

static void touch_part(void *context, int64_t part)
{
    const State *state = context;
    size_t from = (size_t)part * PART_BYTES, left = state->chunk - from;
    size_t to = from + (left < PART_BYTES ? left : PART_BYTES);
    volatile uint8_t *chunk = state->pages.bytes + state->at;
    for (size_t i = from; i < to; i += PAGE_BYTES) chunk[i] = MARK;
}

static EngStatus run(void *opaque, EngErr *err)
{
    (void)err;
    State *state = opaque;
    size_t parts = (state->chunk + PART_BYTES - 1) / PART_BYTES;
    if (!state->touched) eng_parallel_for((int64_t)parts, state->threads, touch_part, state);
    state->touched = true;
    return ENG_OK;
}

/* No page is there before and all are after; each has the mark and zeros. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    double before = NAN, after = NAN;
    int64_t wrong = 0;
    EngStatus status = prepare(state, err);
    EngPages chunk = {.bytes = state->pages.bytes + state->at, .n = state->chunk};
    if (!status) status = eng_pages_resident(&chunk, &before, err);
    if (!status) status = run(state, err);
    if (!status) status = eng_pages_resident(&chunk, &after, err);
    for (size_t i = 0; i < chunk.n && !status; i++)
        wrong += chunk.bytes[i] != (i % PAGE_BYTES ? 0 : MARK);
    *residual = (EngResidual){.of = "exact",
                              .pass = !wrong && before == 0 && after == 1,
                              .max_rel = !wrong && before == 0 && after == 1 ? 0 : 1,
                              .n_checked = (int64_t)chunk.n,
                              .n_outputs = (int64_t)chunk.n};
    snprintf(residual->note, sizeof residual->note,
             "%lld bytes differ, %g of the pages were there before and %g after", (long long)wrong,
             before, after);
    return status;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    values[0] = (double)state->chunk / (double)timing->wall_ns;
    values[1] = eng_pages_huge_share(&state->pages);
}

const EngExperiment eng_experiment_populate = {
    .name = "populate",
    .question = "How fast does memory come with the first touch, before a table is read into it?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
    .once = true,
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
