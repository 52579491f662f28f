/* Scatter-add by sorting: (row, occurrence) pairs in one word each are sorted by row, stably, with
 * a parallel radix sort; then each distinct row is the sum of a segment. Rows come out ascending
 * and every sum is in the order of its occurrences, whatever the number of threads.
 */
#include "kernels/cpu/back_gather.h"
#include "kernels/cpu/common.h"

#include "base/mem.h"

#include <omp.h>

#define DIGIT_BITS 11
#define DIGITS     (1 << DIGIT_BITS)
#define AHEAD      4 /* occurrences whose gradients are asked for early */

typedef struct State {
    uint64_t *keys[2]; /* [occurrences]: row << low_bits | occurrence */
    int64_t *counts;   /* [threads, DIGITS] */
    int64_t *segments; /* [threads + 1]: distinct rows before each share */
    int low_bits, row_bits;
} State;

static int bits_of(uint64_t largest)
{
    return largest ? 64 - __builtin_clzll(largest) : 0;
}

static size_t occurrences(const EngBackGatherProblem *p)
{
    return (size_t)p->tokens * (size_t)p->columns;
}

EngStatus eng_cpu_back_gather_supports(const EngProblem *problem, EngErr *why)
{
    const EngBackGatherProblem *p = &problem->u.back_gather;
    EngProblem plain = {.op = ENG_OP_GATHER, .threads = problem->threads};
    plain.u.gather = (EngGatherProblem){
        .table = {.format = ENG_ROW_F32, .row_dims = p->row_dims, .rows = p->rows},
        .columns = p->columns,
        .tokens = p->tokens,
        .out = ENG_F32};
    EngStatus status = eng_cpu_gather_supports(&plain, why);
    if (status) return status;
    if (occurrences(p) > UINT32_MAX ||
        bits_of((uint64_t)p->rows) + bits_of((uint64_t)occurrences(p)) > 64)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%lld rows and %zu occurrences are too many",
                        (long long)p->rows, occurrences(p));
    return ENG_OK;
}

void eng_cpu_back_gather_cost(const EngProblem *problem, EngCost *cost)
{
    /* As if every row were distinct: how many are is the data's. */
    const EngBackGatherProblem *p = &problem->u.back_gather;
    double values = (double)occurrences(p) * p->row_dims;
    cost->flops = values;
    cost->read_bytes = 4 * values;
    cost->write_bytes = 4 * values;
}

ENG_CLONES void eng_cpu_row_copy(const float *restrict from, size_t n, float *restrict to)
{
    for (size_t i = 0; i < n; i++) to[i] = from[i];
}

ENG_CLONES void eng_cpu_row_add(const float *restrict from, size_t n, float *restrict to)
{
    for (size_t i = 0; i < n; i++) to[i] += from[i];
}

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->keys[0]);
    eng_free(state->keys[1]);
    eng_free(state->counts);
    eng_free(state->segments);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngBackGatherProblem *p = &problem->u.back_gather;
    size_t n = occurrences(p), threads = (size_t)problem->threads;
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "scatter-add", err);
    *out = state;
    if (status) return status;
    state->low_bits = bits_of(n ? n - 1 : 0);
    state->row_bits = bits_of(p->rows ? (uint64_t)p->rows - 1 : 0);
    for (int i = 0; i < 2 && !status; i++)
        status = eng_alloc_or((void **)&state->keys[i], n, sizeof(uint64_t), "sorted rows", err);
    if (!status)
        status = eng_alloc_or((void **)&state->counts, threads, DIGITS * sizeof(int64_t),
                              "digit counts", err);
    if (!status)
        status = eng_alloc_or((void **)&state->segments, threads + 1, sizeof(int64_t),
                              "segment counts", err);
    if (!status) return ENG_OK;
    destroy(state);
    *out = NULL;
    return status;
}

/* ---- sorting: each function is called by all threads of a team --------------------------------
 */

static void fill_keys(const EngBackGatherProblem *p, const EngBackGatherArgs *a, State *state)
{
    size_t columns = (size_t)p->columns;
#pragma omp for schedule(static)
    for (int64_t t = 0; t < p->tokens; t++)
        for (size_t c = 0; c < columns; c++) {
            uint64_t slot = (uint64_t)t * columns + c;
            uint64_t row = (uint64_t)a->rows[t * a->row_stride + (int64_t)c];
            state->keys[0][slot] = row << state->low_bits | slot;
        }
}

/* Where each thread's keys of each digit begin: all threads' counts of lower digits, then the same
 * digit's of earlier threads. */
static void add_up_counts(int64_t *counts, int threads)
{
    int64_t at = 0;
    for (int digit = 0; digit < DIGITS; digit++)
        for (int i = 0; i < threads; i++) {
            int64_t *count = &counts[(size_t)i * DIGITS + (size_t)digit];
            int64_t here = *count;
            *count = at;
            at += here;
        }
}

static void sort_by_digit(const uint64_t *from, uint64_t *to, int64_t n, int shift, int64_t *counts)
{
    int threads = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t *mine = counts + (size_t)me * DIGITS, first, end;
    eng_cpu_share(n, threads, me, &first, &end);
    memset(mine, 0, DIGITS * sizeof *mine);
    for (int64_t i = first; i < end; i++) mine[from[i] >> shift & (DIGITS - 1)]++;
#pragma omp barrier
#pragma omp single
    add_up_counts(counts, threads);
    for (int64_t i = first; i < end; i++) to[mine[from[i] >> shift & (DIGITS - 1)]++] = from[i];
#pragma omp barrier
}

/* ---- summing ----------------------------------------------------------------------------------
 */

static bool begins_segment(const uint64_t *keys, int64_t i, int low_bits)
{
    return i == 0 || keys[i] >> low_bits != keys[i - 1] >> low_bits;
}

/* Sums the whole segments in [first, end); slot is the first one's place in the output. */
static void sum_segments(const EngBackGatherProblem *p, const EngBackGatherArgs *a,
                         const State *state, const uint64_t *keys, int64_t first, int64_t end,
                         int64_t slot)
{
    size_t dims = (size_t)p->row_dims;
    uint64_t low = ((uint64_t)1 << state->low_bits) - 1;
    slot--;
    for (int64_t i = first; i < end; i++) {
        if (i + AHEAD < end)
            for (size_t j = 0; j < dims; j += 16)
                __builtin_prefetch(a->d_out + (keys[i + AHEAD] & low) * dims + j);
        const float *from = a->d_out + (keys[i] & low) * dims;
        if (begins_segment(keys, i, state->low_bits)) {
            slot++;
            a->touched[slot] = (int64_t)(keys[i] >> state->low_bits);
            eng_cpu_row_copy(from, dims, a->d_rows + (size_t)slot * dims);
        } else {
            eng_cpu_row_add(from, dims, a->d_rows + (size_t)slot * dims);
        }
    }
}

/* The first segment that begins at or after `i`, or n. */
static int64_t next_segment(const uint64_t *keys, int64_t i, int64_t n, int low_bits)
{
    while (i < n && !begins_segment(keys, i, low_bits)) i++;
    return i;
}

static void sum_all(const EngBackGatherProblem *p, const EngBackGatherArgs *a, State *state,
                    const uint64_t *keys)
{
    int threads = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t n = (int64_t)occurrences(p), first, end, distinct = 0;
    eng_cpu_share(n, threads, me, &first, &end);
    first = next_segment(keys, first, n, state->low_bits);
    end = next_segment(keys, end, n, state->low_bits);
    for (int64_t i = first; i < end; i++) distinct += begins_segment(keys, i, state->low_bits);
    state->segments[me + 1] = distinct;
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < threads; i++) state->segments[i + 1] += state->segments[i];
    if (me == threads - 1) *a->n_touched = state->segments[threads];
    sum_segments(p, a, state, keys, first, end, state->segments[me]);
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngBackGatherProblem *p = &problem->u.back_gather;
    const EngBackGatherArgs *a = &args->u.back_gather;
    State *state = opaque;
    int threads = problem->threads;
    (void)err;
    state->segments[0] = 0;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int from = 0;
        fill_keys(p, a, state);
        for (int done = 0; done < state->row_bits; done += DIGIT_BITS, from ^= 1)
            sort_by_digit(state->keys[from], state->keys[from ^ 1], (int64_t)occurrences(p),
                          state->low_bits + done, state->counts);
        sum_all(p, a, state, state->keys[from]);
    }
    return ENG_OK;
}

const EngKernel eng_cpu_back_gather_sort = {
    .op = ENG_OP_BACK_GATHER,
    .name = "sort",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "radix sort by row, then sums of segments: the same bits for any threads",
    .supports = eng_cpu_back_gather_supports,
    .cost = eng_cpu_back_gather_cost,
    .create = create,
    .run = run,
    .destroy = destroy,
};
