/* Row loop of the gathers; see gather.h. Rows come from anywhere in a table far larger than the
 * cache, so what counts is how many misses are in flight: a group of rows requested back to back
 * keeps the line buffers full while the group before it is decoded.
 */
#include "kernels/cpu/gather.h"

#include "kernels/cpu/common.h"

#include <omp.h>

typedef struct Loop {
    const EngTable *table;
    const EngGatherArgs *args;
    EngGatherRow *row_fn;
    size_t value_bytes, scale_bytes; /* of a table row */
    size_t out_bytes, out_scale_bytes;
    int columns;
    int64_t end; /* slots (token * columns + column) of this thread end here */
} Loop;

/* Walks slots without a division per row. */
typedef struct Cursor {
    int64_t slot, token;
    int column;
} Cursor;

static Cursor cursor_at(const Loop *loop, int64_t slot)
{
    return (Cursor){
        .slot = slot, .token = slot / loop->columns, .column = (int)(slot % loop->columns)};
}

static inline int64_t next_row(const Loop *loop, Cursor *cursor)
{
    int64_t row = loop->args->rows[cursor->token * loop->args->row_stride + cursor->column];
    cursor->slot++;
    if (++cursor->column == loop->columns) {
        cursor->column = 0;
        cursor->token++;
    }
    return row;
}

/* Always inlined: gcc takes a function that does nothing but prefetch for pure and drops the calls.
 */
static inline __attribute__((always_inline)) void prefetch_bytes(const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += 64) __builtin_prefetch(from + i);
    if (n && ((uintptr_t)from & 63) + (n - 1) % 64 >= 64) /* the last line of an unaligned row */
        __builtin_prefetch(from + n - 1);
}

static inline __attribute__((always_inline)) void prefetch_row(const Loop *loop, int64_t row)
{
    prefetch_bytes(loop->table->values + (size_t)row * loop->value_bytes, loop->value_bytes);
    if (loop->scale_bytes)
        prefetch_bytes(loop->table->scales + (size_t)row * loop->scale_bytes, loop->scale_bytes);
}

static inline void use_row(const Loop *loop, int64_t row, int64_t slot)
{
    uint8_t *scales = loop->out_scale_bytes
                          ? loop->args->out_scales + (size_t)slot * loop->out_scale_bytes
                          : NULL;
    loop->row_fn(loop->table, row, (uint8_t *)loop->args->out + (size_t)slot * loop->out_bytes,
                 scales);
}

static void run_plain(const Loop *loop, int64_t from)
{
    for (Cursor at = cursor_at(loop, from); at.slot < loop->end;) {
        int64_t slot = at.slot;
        use_row(loop, next_row(loop, &at), slot);
    }
}

static void run_rolling(const Loop *loop, int64_t from, int depth)
{
    Cursor at = cursor_at(loop, from), ahead = at;
    while (ahead.slot < loop->end && ahead.slot < from + depth)
        prefetch_row(loop, next_row(loop, &ahead));
    while (at.slot < loop->end) {
        if (ahead.slot < loop->end) prefetch_row(loop, next_row(loop, &ahead));
        int64_t slot = at.slot;
        use_row(loop, next_row(loop, &at), slot);
    }
}

/* Requests the next group and keeps its row ids; returns how many. */
static int request_group(const Loop *loop, Cursor *ahead, int depth, int64_t *ids)
{
    int n = 0;
    for (; n < depth && ahead->slot < loop->end; n++) {
        ids[n] = next_row(loop, ahead);
        prefetch_row(loop, ids[n]);
    }
    return n;
}

static void run_groups(const Loop *loop, int64_t from, int depth)
{
    int64_t ids[2][ENG_PREFETCH_MAX_DEPTH];
    Cursor ahead = cursor_at(loop, from);
    int n = request_group(loop, &ahead, depth, ids[0]);
    int64_t slot = from;
    for (int now = 0; n > 0; now ^= 1) {
        int n_next = request_group(loop, &ahead, depth, ids[now ^ 1]);
        for (int i = 0; i < n; i++) use_row(loop, ids[now][i], slot++);
        n = n_next;
    }
}

void eng_cpu_gather_rows(const EngProblem *problem, const EngGatherArgs *args, EngGatherRow *row_fn,
                         EngPrefetchPlan plan, int depth)
{
    const EngGatherProblem *p = &problem->u.gather;
    const EngTable *table = &p->table;
    int threads = problem->threads;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Loop loop = {
            .table = table,
            .args = args,
            .row_fn = row_fn,
            .value_bytes = eng_row_value_bytes(table->format, table->row_dims),
            .scale_bytes = eng_row_scale_bytes(table->format, table->row_dims),
            .out_bytes = eng_dtype_bytes(p->out, (size_t)table->row_dims),
            .columns = p->columns,
        };
        if (p->out == ENG_FP8) loop.out_scale_bytes = loop.scale_bytes;
        int64_t from;
        eng_cpu_share(p->tokens * p->columns, omp_get_num_threads(), omp_get_thread_num(), &from,
                      &loop.end);
        if (plan == ENG_PREFETCH_GROUPS)
            run_groups(&loop, from, depth);
        else if (plan == ENG_PREFETCH_ROLLING)
            run_rolling(&loop, from, depth);
        else
            run_plain(&loop, from);
    }
}
