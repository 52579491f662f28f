/* Scatter-add without sorting: rows are marked in a bitmap, and a row's place among the distinct
 * ones is the number of marks before it. Then gradients are added where they belong:
 *  - `owner`: each thread owns a range of places and goes through all occurrences for them, so that
 *    sums are in the order of occurrences, as after a stable sort;
 *  - `atomic`: occurrences are cut among threads, which add with atomic operations, in any order.
 */
#include "kernels/cpu/back_gather.h"
#include "kernels/cpu/common.h"

#include "base/mem.h"

#include <omp.h>

#define WORD_BITS 64
#define AHEAD     8 /* occurrences whose sums are asked for early */

typedef struct State {
    uint64_t *marks; /* [rows / 64]; all zero between runs */
    uint32_t *ranks; /* [rows / 64]: marks before each word, within its thread's share */
    int64_t *before; /* [threads + 1]: marks before each thread's share */
    uint32_t *place; /* [occurrences] */
    uint8_t *begun;  /* [occurrences]: of places: something was added */
    size_t words;
} State;

static size_t occurrences(const EngBackGatherProblem *p)
{
    return (size_t)p->tokens * (size_t)p->columns;
}

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->marks);
    eng_free(state->ranks);
    eng_free(state->before);
    eng_free(state->place);
    eng_free(state->begun);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngBackGatherProblem *p = &problem->u.back_gather;
    size_t n = occurrences(p);
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "scatter-add", err);
    *out = state;
    if (status) return status;
    state->words = ((size_t)p->rows + WORD_BITS - 1) / WORD_BITS;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {{(void **)&state->marks, state->words, sizeof(uint64_t)},
                  {(void **)&state->ranks, state->words, sizeof(uint32_t)},
                  {(void **)&state->before, (size_t)problem->threads + 1, sizeof(int64_t)},
                  {(void **)&state->place, n, sizeof(uint32_t)},
                  {(void **)&state->begun, n, 1}};
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "marked rows", err);
    if (!status) return ENG_OK;
    destroy(state);
    *out = NULL;
    return status;
}

/* ---- finding the distinct rows: called by all threads of a team -------------------------------
 */

static void mark_rows(const EngBackGatherProblem *p, const EngBackGatherArgs *a, State *state)
{
    bool alone = omp_get_num_threads() == 1;
#pragma omp for schedule(static)
    for (int64_t t = 0; t < p->tokens; t++)
        for (int c = 0; c < p->columns; c++) {
            uint64_t row = (uint64_t)a->rows[t * a->row_stride + c];
            uint64_t *word = &state->marks[row / WORD_BITS];
            uint64_t bit = (uint64_t)1 << row % WORD_BITS;
            if (alone)
                *word |= bit;
            else if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
                __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
        }
}

static void rank_words(State *state, int64_t *from, int64_t *to)
{
    int threads = omp_get_num_threads(), me = omp_get_thread_num();
    uint32_t count = 0;
    eng_cpu_share((int64_t)state->words, threads, me, from, to);
    for (int64_t i = *from; i < *to; i++) {
        state->ranks[i] = count;
        count += (uint32_t)__builtin_popcountll(state->marks[i]);
    }
    state->before[me + 1] = count;
#pragma omp barrier
#pragma omp single
    for (int i = 0; i < threads; i++) state->before[i + 1] += state->before[i];
}

/* Writes the rows of this thread's words, ascending, and makes the ranks count from the first. */
static void list_rows(const EngBackGatherArgs *a, State *state, int64_t from, int64_t to)
{
    uint32_t base = (uint32_t)state->before[omp_get_thread_num()];
    int64_t slot = base;
    for (int64_t i = from; i < to; i++) {
        state->ranks[i] += base;
        for (uint64_t left = state->marks[i]; left; left &= left - 1)
            a->touched[slot++] = i * WORD_BITS + __builtin_ctzll(left);
    }
#pragma omp barrier
}

static void find_places(const EngBackGatherProblem *p, const EngBackGatherArgs *a, State *state)
{
#pragma omp for schedule(static)
    for (int64_t t = 0; t < p->tokens; t++)
        for (int c = 0; c < p->columns; c++) {
            uint64_t row = (uint64_t)a->rows[t * a->row_stride + c];
            uint64_t below = ((uint64_t)1 << row % WORD_BITS) - 1;
            size_t slot = (size_t)t * (size_t)p->columns + (size_t)c;
            state->place[slot] =
                state->ranks[row / WORD_BITS] +
                (uint32_t)__builtin_popcountll(state->marks[row / WORD_BITS] & below);
        }
}

/* Distinct rows into touched, places of all occurrences; marks are zero again. */
static void find_rows(const EngBackGatherProblem *p, const EngBackGatherArgs *a, State *state)
{
    int64_t from, to;
    mark_rows(p, a, state);
    rank_words(state, &from, &to);
    list_rows(a, state, from, to);
    find_places(p, a, state);
    int64_t n = state->before[omp_get_num_threads()];
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; i++)
        __atomic_store_n(&state->marks[a->touched[i] / WORD_BITS], 0, __ATOMIC_RELAXED);
#pragma omp single
    *a->n_touched = n;
}

/* ---- adding -----------------------------------------------------------------------------------
 */

static void add_owned(const EngBackGatherProblem *p, const EngBackGatherArgs *a, State *state)
{
    size_t n = occurrences(p), dims = (size_t)p->row_dims;
    int64_t from, to;
    eng_cpu_share(*a->n_touched, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
    memset(state->begun + from, 0, (size_t)(to - from));
    for (size_t i = 0; i < n; i++) {
        uint32_t place = state->place[i];
        if (i + AHEAD < n) {
            uint32_t later = state->place[i + AHEAD];
            if (later >= from && later < to)
                for (size_t j = 0; j < dims; j += 16)
                    __builtin_prefetch(a->d_rows + later * dims + j, 1);
        }
        if (place < from || place >= to) continue;
        if (state->begun[place])
            eng_cpu_row_add(a->d_out + i * dims, dims, a->d_rows + place * dims);
        else
            eng_cpu_row_copy(a->d_out + i * dims, dims, a->d_rows + place * dims);
        state->begun[place] = 1;
    }
}

static void add_atomically(const EngBackGatherProblem *p, const EngBackGatherArgs *a, State *state)
{
    size_t dims = (size_t)p->row_dims;
    int64_t n = (int64_t)occurrences(p), distinct = *a->n_touched;
    bool alone = omp_get_num_threads() == 1;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < distinct; i++)
        memset(a->d_rows + (size_t)i * dims, 0, dims * sizeof(float));
#pragma omp for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        const float *from = a->d_out + (size_t)i * dims;
        float *to = a->d_rows + state->place[i] * dims;
        if (alone) {
            eng_cpu_row_add(from, dims, to);
            continue;
        }
        for (size_t j = 0; j < dims; j++) {
#pragma omp atomic
            to[j] += from[j];
        }
    }
}

static EngStatus run_owner(void *opaque, const EngProblem *problem, const EngArgs *args,
                           EngErr *err)
{
    int threads = problem->threads;
    (void)err;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        find_rows(&problem->u.back_gather, &args->u.back_gather, opaque);
        add_owned(&problem->u.back_gather, &args->u.back_gather, opaque);
    }
    return ENG_OK;
}

static EngStatus run_atomic(void *opaque, const EngProblem *problem, const EngArgs *args,
                            EngErr *err)
{
    int threads = problem->threads;
    (void)err;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        find_rows(&problem->u.back_gather, &args->u.back_gather, opaque);
        add_atomically(&problem->u.back_gather, &args->u.back_gather, opaque);
    }
    return ENG_OK;
}

#define VARIANT(id, run_fn, text)                                                                  \
    const EngKernel eng_cpu_back_gather_##id = {                                                   \
        .op = ENG_OP_BACK_GATHER,                                                                  \
        .name = #id,                                                                               \
        .backend = ENG_CPU,                                                                        \
        .checked = true,                                                                           \
        .summary = text,                                                                           \
        .supports = eng_cpu_back_gather_supports,                                                  \
        .cost = eng_cpu_back_gather_cost,                                                          \
        .create = create,                                                                          \
        .run = run_fn,                                                                             \
        .destroy = destroy,                                                                        \
    }

VARIANT(
    owner, run_owner,
    "rows ranked in a bitmap, each thread sums the rows it owns: the same bits for any threads");
VARIANT(atomic, run_atomic,
        "rows ranked in a bitmap, atomic additions: sums in no fixed order with several threads");
