/* Prefetcher: reads the rows of coming steps on a thread of its own, while the caller computes.
 *
 * As soon as the tokens of a step are known, and with them the rows of all its Engram layers,
 * submit() hands them over. The thread reads them layer by layer in the order of need, step by
 * step, into a fixed number of buffers. wait() gives the rows of one layer to the caller, who owns
 * that buffer until release(). Nothing is read into a buffer that somebody owns, and a layer whose
 * read failed gives its error to the one who waits for it: rows are never stale and never zeros.
 *
 *   submit(step) .. compute .. wait(layer) .. gather, project .. release(layer) .. wait(next layer)
 *
 * Back-pressure: at most `steps` steps are in hand, and at most `buffers` layers are read ahead.
 * Speculation: keep() drops the tokens that were rejected, cancel() a whole step; what was not read
 * yet is then never read. Training reads a whole batch before its micro-batches: as many buffers as
 * layers, wait_all(), and slices.
 *
 * One thread waits, keeps, cancels and releases; another one may submit.
 */
#ifndef ENGRAM_PREFETCH_H
#define ENGRAM_PREFETCH_H

#include <engram/store.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct EngPrefetcher EngPrefetcher;
typedef uint64_t EngPrefetchTicket; /* of a step; 0 is none */

#define ENG_PREFETCH_MAX_LAYERS 64

/* Zeros are good defaults but for columns and max_tokens. */
typedef struct EngPrefetchOptions {
    int columns;        /* rows per token and layer */
    int64_t max_tokens; /* of a step */
    int buffers;        /* 0: 2, so that one is read while one is used */
    int steps;          /* 0: 2 */
    int64_t piece_rows; /* rows per read; between reads keep() and cancel() act. 0: 4096 */
    bool pin;           /* the thread to processor `core` */
    int core;
    const int *layer_ids; /* [layers] of the model, from 0, for traces; NULL: 0, 1, .. */
} EngPrefetchOptions;

/* Rows of one layer and step. Times are of the monotonic clock (base/clock.h). */
typedef struct EngPrefetchRows {
    EngTable table;                       /* row t * columns + c is that of token t and column c */
    int64_t tokens;                       /* fewer than submitted after keep() */
    int64_t fetch_begin_ns, fetch_end_ns; /* the reads */
    int64_t needed_ns, ready_ns;          /* the wait */
} EngPrefetchRows;

typedef struct EngPrefetchStats {
    int64_t steps, rows_read;
    int64_t rows_dropped; /* cancelled before they were read */
    int64_t rows_in_vain; /* read, and then cancelled or never waited for */
    int64_t memory_bytes; /* buffers and row numbers */
} EngPrefetchStats;

/* stores[l] serves layer l, in the order of need; all of one row format and size. They belong to
 * the prefetcher's thread until destroy() and outlive it. ENG_USAGE, ENG_NO_MEMORY;
 * ENG_UNSUPPORTED: the processor cannot be had. */
EngStatus eng_prefetch_create(EngStore *const *stores, int layers,
                              const EngPrefetchOptions *options, EngPrefetcher **out, EngErr *err);
/* Ends after the read in flight. Every buffer becomes invalid. Accepts NULL. */
void eng_prefetch_destroy(EngPrefetcher *p);

/* Row of (token t, layer l, column c) at rows[t * token_stride + l * columns + c], as the hash
 * writes them; copied. `step` is a number for traces. A full prefetcher: with `block` waits until a
 * step is over (never from the thread that releases), else leaves *ticket 0. ENG_USAGE: sizes. Row
 * numbers are checked when they are read. */
EngStatus eng_prefetch_submit(EngPrefetcher *p, const int64_t *rows, int64_t token_stride,
                              int64_t tokens, int64_t step, bool block, EngPrefetchTicket *ticket,
                              EngErr *err);

/* Waits for the rows of a layer. Its error, once, when they could not be read; ENG_NOT_FOUND: a
 * ticket cancelled or over, a layer released; ENG_USAGE: every buffer holds rows that the caller
 * has not released, so that these can never come. */
EngStatus eng_prefetch_wait(EngPrefetcher *p, EngPrefetchTicket ticket, int layer,
                            EngPrefetchRows *out, EngErr *err);
/* All layers, out[layers]; after an error nothing is held and the step is cancelled. Needs a buffer
 * for each layer (ENG_USAGE). */
EngStatus eng_prefetch_wait_all(EngPrefetcher *p, EngPrefetchTicket ticket, EngPrefetchRows *out,
                                EngErr *err);
/* The rows of `tokens` tokens from `first` on, as a table of their own. */
EngTable eng_prefetch_slice(const EngPrefetcher *p, const EngPrefetchRows *rows, int64_t first,
                            int64_t tokens);
/* Gives the buffer of a layer back; the last layer ends the step. */
void eng_prefetch_release(EngPrefetcher *p, EngPrefetchTicket ticket, int layer);

/* Only the first `tokens` tokens are still wanted; rows that the caller holds stay valid. */
void eng_prefetch_keep(EngPrefetcher *p, EngPrefetchTicket ticket, int64_t tokens);
/* The step is over, with all it holds. A ticket that is over already is passed over. */
void eng_prefetch_cancel(EngPrefetcher *p, EngPrefetchTicket ticket);

void eng_prefetch_stats(EngPrefetcher *p, EngPrefetchStats *stats);

#ifdef __cplusplus
}
#endif
#endif
