/* The row loop of the CPU gathers, inlined into each variant's own instruction set.
 *
 * Rows come from anywhere in a table far larger than the caches and the TLB, so what counts is how
 * many misses and page walks are in flight. A prefetch that walks holds its place in the reorder
 * buffer until the walk is done, so prefetches between decoded rows put only the few that fit in
 * that window in flight: a burst of rows requested back to back, then as many rows used, is up to
 * twice as fast. Cheap row functions (copies) may use small bursts, decoders want 24 rows or more.
 *
 * Output that leaves the caches anyway is stored past it where the variant asks for that:
 * ordinary stores first read the line they overwrite.
 */
#ifndef ENG_KERNELS_CPU_GATHER_LOOP_H
#define ENG_KERNELS_CPU_GATHER_LOOP_H

#include "kernels/cpu/common.h"
#include "kernels/cpu/gather.h"

#define ENG_ALWAYS_INLINE static inline __attribute__((always_inline))

/* One thread's part of a gather. */
typedef struct EngGatherLoop {
    const uint8_t *values, *scales; /* of row 0; scales NULL when the format has none */
    size_t stride, scale_stride;
    size_t row_bytes;    /* to be read at values */
    int lines;           /* requests of a row, 64 bytes apart */
    bool tail;           /* a row or its scales may end one line further */
    size_t scale_bytes;  /* to be read at scales, 0 when they lie with the values */
    const int64_t *rows; /* see EngGatherArgs */
    int64_t row_stride;
    int columns, dims, groups;
    uint8_t *out, *out_scales; /* of slot 0 (slot = token * columns + column) */
    size_t out_bytes, out_scale_bytes;
    int64_t from, to; /* slots */
    bool stream;      /* store past the cache: all output rows are aligned to 64 bytes */
    const void *state;
    unsigned burst, ahead; /* settings of the variant that replace its own; 0: none */
} EngGatherLoop;

/* Writes one row; see EngGatherRow, with the loop for sizes, tables and the kind of store. */
typedef void EngGatherRowFn(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                            uint8_t *out, uint8_t *out_scales);

/* Runs part `index` of `parts`; a variant's body, built from eng_gather_bursts. */
typedef void EngGatherPartFn(const EngGatherLoop *loop);

#define ENG_GATHER_MAX_AHEAD 128 /* a power of two */

/* Settings that any variant of these parts takes; see EngGatherLoop. */
extern const EngTunable eng_cpu_gather_tunables[];

/* What a loop over rows of this table is told of them; nothing of output and threads. */
EngGatherLoop eng_cpu_gather_loop(const EngTable *table, int columns);

/* Output bytes of a thread from which variants that store past the cache do so. Not constant for
 * tests alone. */
extern size_t eng_cpu_gather_stream_from;

/* Cuts the problem among threads and calls `part` in each. `state` goes to the row function;
 * stream_from: output bytes of a thread from which rows are stored past the cache. */
void eng_cpu_gather_parts(const EngProblem *problem, const EngGatherArgs *args,
                          EngGatherPartFn *part, const void *state, size_t stream_from);

/* What a loop is compiled for: rows of 256 split fp8 values, aligned to lines, with their sizes as
 * constants, or any rows. Few instructions count: they share the reorder buffer with the prefetches
 * that wait in it. */
typedef enum EngRowKind { ENG_ROWS_ANY, ENG_ROWS_SPLIT_256 } EngRowKind;

static inline EngRowKind eng_gather_kind(const EngGatherLoop *loop)
{
    bool split = loop->stride == 256 && loop->row_bytes == 256 && loop->scale_bytes == 8;
    return split && !loop->tail ? ENG_ROWS_SPLIT_256 : ENG_ROWS_ANY;
}

/* Requests the rows of slots from .. to - 1, whose ids are in the ring. Always inlined: gcc takes a
 * function that does nothing but prefetch for pure and drops the calls. */
ENG_ALWAYS_INLINE void eng_gather_request(const EngGatherLoop *loop, const uint64_t *ids,
                                          uint64_t from, uint64_t to, int lines, bool scales,
                                          bool tail, size_t stride, size_t scale_stride)
{
    const uint8_t *values = loop->values, *scale_base = loop->scales;
    const size_t last = loop->row_bytes - 1, last_scale = loop->scale_bytes - 1;
    for (; from < to; from++) {
        uint64_t row = ids[from % ENG_GATHER_MAX_AHEAD];
        const uint8_t *at = values + row * stride;
#pragma GCC unroll 5
        for (int i = 0; i < lines; i++) __builtin_prefetch(at + 64 * i);
        if (tail) __builtin_prefetch(at + last);
        if (scales) __builtin_prefetch(scale_base + row * scale_stride);
        if (scales && tail) __builtin_prefetch(scale_base + row * scale_stride + last_scale);
    }
}

/* The same, with constants for the usual rows. */
ENG_ALWAYS_INLINE void eng_gather_request_rows(const EngGatherLoop *loop, const uint64_t *ids,
                                               uint64_t from, uint64_t to, EngRowKind kind)
{
    size_t stride = loop->stride, scale_stride = loop->scale_stride;
    if (kind == ENG_ROWS_SPLIT_256)
        eng_gather_request(loop, ids, from, to, 4, true, false, 256, 8);
    else if (loop->lines == 5 && !loop->scale_bytes && !loop->tail) /* packed */
        eng_gather_request(loop, ids, from, to, 5, false, false, stride, 0);
    else if (loop->lines == 3 && !loop->scale_bytes && !loop->tail) /* int4 */
        eng_gather_request(loop, ids, from, to, 3, false, false, stride, 0);
    else
        eng_gather_request(loop, ids, from, to, loop->lines, loop->scale_bytes != 0, loop->tail,
                           stride, scale_stride);
}

/* Requests `burst` rows, uses `burst` rows, `ahead` rows behind the requests; ahead = 0: no
 * prefetch at all. ahead + burst <= ENG_GATHER_MAX_AHEAD. */
ENG_ALWAYS_INLINE void eng_gather_bursts(const EngGatherLoop *loop, EngGatherRowFn *row_fn,
                                         unsigned burst, unsigned ahead, EngRowKind kind)
{
    if (loop->burst) burst = ahead = loop->burst;
    if (loop->ahead) ahead = loop->ahead;
    uint64_t ids[ENG_GATHER_MAX_AHEAD]; /* a ring: slot modulo its size */
    const size_t stride = kind == ENG_ROWS_SPLIT_256 ? 256 : loop->stride;
    const size_t scale_stride = kind == ENG_ROWS_SPLIT_256 ? 8 : loop->scale_stride;
    const uint8_t *values = loop->values, *scales = loop->scales ? loop->scales : values;
    const uint64_t end = (uint64_t)loop->to;
    uint64_t at = (uint64_t)loop->from, requested = at, goal = at + ahead;
    int columns = loop->columns, column = (int)(loop->from % columns);
    const int64_t *next = loop->rows + loop->from / columns * loop->row_stride + column;
    const int64_t skip = loop->row_stride - columns;
    uint8_t *out = loop->out + at * loop->out_bytes;
    uint8_t *out_scales = loop->out_scales + at * loop->out_scale_bytes;
    while (at < end) {
        uint64_t first = requested;
        goal = goal + burst < end ? goal + burst : end;
        for (; requested < goal; requested++) {
            ids[requested % ENG_GATHER_MAX_AHEAD] = (uint64_t)*next++;
            if (++column == columns) {
                column = 0;
                next += skip;
            }
        }
        if (ahead) eng_gather_request_rows(loop, ids, first, requested, kind);
        uint64_t stop = at + burst < end ? at + burst : end;
        for (; at < stop; at++) {
            uint64_t row = ids[at % ENG_GATHER_MAX_AHEAD];
            row_fn(loop, values + row * stride, scales + row * scale_stride, out, out_scales);
            out += loop->out_bytes;
            out_scales += loop->out_scale_bytes;
        }
    }
}

/* Whether all scales give normal results for every code, in bf16 and f32: 10 to 246. Others, which
 * no sensible table has, go to the scalar decoder. */
ENG_ALWAYS_INLINE bool eng_gather_plain_scales(const uint8_t *scales, int groups)
{
    unsigned odd = 0;
    int g = 0;
    for (; g + 8 <= groups; g += 8) {
        uint64_t s, low, high;
        memcpy(&s, scales + g, sizeof s);
        /* Per byte: s >= 128 and (s & 127) + 9 carries, or s < 128 and (s & 127) < 10. */
        high = s & ((s & 0x7f7f7f7f7f7f7f7full) + 0x0909090909090909ull) & 0x8080808080808080ull;
        low = ~s & ~((s & 0x7f7f7f7f7f7f7f7full) + 0x7676767676767676ull) & 0x8080808080808080ull;
        odd |= (high | low) != 0;
    }
    for (; g < groups; g++) odd |= (unsigned)(scales[g] - 10) > 236;
    return !odd;
}

#endif
