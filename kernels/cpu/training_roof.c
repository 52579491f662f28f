/* Roofs of the training operations: every input is read once, every output stored once, state and
 * weights rewritten in place with the same bits, and nothing is computed but one logical operation
 * a word. The mask that keeps the bits is 0 but unknown to the compiler.
 *
 * What a roof leaves out: a backward's second look at its inputs (from the cache), and rows that
 * scatter-add writes (how many are distinct is the data's).
 */
#include "kernels/cpu/training_roof.h"

#include "kernels/cpu/common.h"

#include "base/mem.h"

#include <omp.h>

#define MAX_ARRAYS 8
#define CHUNK      4096 /* values of a flat array that are moved at a time */
#define STRIP      2048 /* bytes of one array before the next */
#define AHEAD      2    /* rows of a table asked for early */

typedef uint64_t Words __attribute__((vector_size(64), aligned(4), may_alias));

typedef enum Use { READ, WRITE, REWRITE } Use;

/* An array cut into units of `each` values, the last one shorter; indexed: the unit's place is
 * index[unit]. */
typedef struct Array {
    Use use;
    void *at;
    int64_t each, total;
    bool indexed;
} Array;

typedef struct Moves {
    Array arrays[MAX_ARRAYS];
    int n;
    int64_t units;
    const int64_t *index;
    bool abreast; /* one input and arrays to rewrite, of one length: word by word */
} Moves;

static void add(Moves *moves, Use use, const void *at, int64_t each)
{
    /* Inputs are only read. */
    moves->arrays[moves->n++] =
        (Array){use, (void *)(uintptr_t)at, each, moves->units * each, false};
}

static void add_flat(Moves *moves, Use use, const void *at, int64_t n)
{
    moves->units = (n + CHUNK - 1) / CHUNK;
    moves->arrays[moves->n++] = (Array){use, (void *)(uintptr_t)at, CHUNK, n, false};
}

static void add_rows(Moves *moves, Use use, const void *at, int64_t each)
{
    moves->arrays[moves->n++] = (Array){use, (void *)(uintptr_t)at, each, INT64_MAX, true};
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    (void)problem;
    return eng_alloc_or(out, 1, sizeof(uint64_t), "roof", err); /* zeroed: the mask */
}

/* ---- moving -----------------------------------------------------------------------------------
 */

static inline __attribute__((always_inline)) Words *word_at(void *at, size_t i)
{
    return (Words *)((uint8_t *)at + i);
}

ENG_CLONES static void read_unit(void *at, size_t bytes, uint64_t *sum)
{
    Words a = {0}, b = {0};
    size_t i = 0;
    for (; i + 128 <= bytes; i += 128) {
        a ^= *word_at(at, i);
        b ^= *word_at(at, i + 64);
    }
    a ^= b;
    for (int j = 0; j < 8; j++) *sum ^= a[j];
    for (; i < bytes; i++) *sum ^= ((const uint8_t *)at)[i];
}

ENG_CLONES static void write_unit(void *at, size_t bytes, uint64_t value)
{
    Words words = {value, value, value, value, value, value, value, value};
    size_t i = 0;
    for (; i + 64 <= bytes; i += 64) *word_at(at, i) = words;
    for (; i < bytes; i++) ((uint8_t *)at)[i] = (uint8_t)value;
}

ENG_CLONES static void rewrite_unit(void *at, size_t bytes, uint64_t zero)
{
    size_t i = 0;
    for (; i + 64 <= bytes; i += 64) *word_at(at, i) ^= zero;
    for (; i < bytes; i++) ((uint8_t *)at)[i] ^= (uint8_t)zero;
}

/* at[0] read, the others rewritten; n is a constant where this is inlined. */
static inline __attribute__((always_inline)) void rewrite_abreast(void *const *at, int n,
                                                                  size_t bytes, uint64_t mask)
{
    size_t i = 0;
    for (; i + 64 <= bytes; i += 64) {
        Words word = *word_at(at[0], i) & mask;
        for (int j = 1; j < n; j++) *word_at(at[j], i) ^= word;
    }
    for (; i < bytes; i++)
        for (int j = 1; j < n; j++)
            ((uint8_t *)at[j])[i] ^= ((const uint8_t *)at[0])[i] & (uint8_t)mask;
}

ENG_CLONES static void rewrite_two(void *const *at, size_t bytes, uint64_t mask)
{
    rewrite_abreast(at, 2, bytes, mask);
}

ENG_CLONES static void rewrite_three(void *const *at, size_t bytes, uint64_t mask)
{
    rewrite_abreast(at, 3, bytes, mask);
}

ENG_CLONES static void rewrite_four(void *const *at, size_t bytes, uint64_t mask)
{
    rewrite_abreast(at, 4, bytes, mask);
}

/* Where a unit of an array lies, and its bytes. */
static void *unit_of(const Moves *moves, const Array *a, int64_t unit, size_t *bytes)
{
    int64_t from = (a->indexed && moves->index ? moves->index[unit] : unit) * a->each;
    int64_t n = a->total - from < a->each ? a->total - from : a->each;
    *bytes = (size_t)n * sizeof(float);
    return (float *)a->at + from;
}

static void move_abreast(const Moves *moves, int64_t unit, uint64_t mask)
{
    void *at[MAX_ARRAYS];
    size_t bytes;
    for (int i = 0; i < moves->n; i++) {
        at[i] = unit_of(moves, &moves->arrays[i], unit, &bytes);
        if (!moves->arrays[i].indexed || unit + AHEAD >= moves->units) continue;
        const uint8_t *later = unit_of(moves, &moves->arrays[i], unit + AHEAD, &bytes);
        for (size_t j = 0; j < bytes; j += 64) __builtin_prefetch(later + j, 1);
    }
    if (moves->n == 2) rewrite_two(at, bytes, mask);
    if (moves->n == 3) rewrite_three(at, bytes, mask);
    if (moves->n == 4) rewrite_four(at, bytes, mask);
}

/* Strip by strip of all arrays, so that the processor follows all of them at once. */
static void move_unit(const Moves *moves, int64_t unit, uint64_t mask, uint64_t *sum)
{
    void *at[MAX_ARRAYS];
    size_t bytes[MAX_ARRAYS], most = 0;
    for (int i = 0; i < moves->n; i++) {
        at[i] = unit_of(moves, &moves->arrays[i], unit, &bytes[i]);
        most = bytes[i] > most ? bytes[i] : most;
    }
    for (size_t strip = 0; strip < most; strip += STRIP)
        for (int i = 0; i < moves->n; i++) {
            if (strip >= bytes[i]) continue;
            size_t n = bytes[i] - strip < STRIP ? bytes[i] - strip : STRIP;
            void *here = (uint8_t *)at[i] + strip;
            if (moves->arrays[i].use == READ) read_unit(here, n, sum);
            if (moves->arrays[i].use == WRITE) write_unit(here, n, *sum & mask);
            if (moves->arrays[i].use == REWRITE) rewrite_unit(here, n, *sum & mask);
        }
}

static EngStatus move(void *opaque, const EngProblem *problem, const Moves *moves)
{
    uint64_t mask = *(const volatile uint64_t *)opaque;
    volatile uint64_t sink = 0;
    int threads = problem->threads;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        uint64_t sum = 0;
        eng_cpu_share(moves->units, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t unit = from; unit < to; unit++) {
            if (moves->abreast)
                move_abreast(moves, unit, mask);
            else
                move_unit(moves, unit, mask, &sum);
        }
        if (sum == 1) sink = sum; /* what was read is used */
    }
    (void)sink;
    return ENG_OK;
}

/* ---- what each operation moves ----------------------------------------------------------------
 */

static EngStatus run_train_gate(void *opaque, const EngProblem *problem, const EngArgs *args,
                                EngErr *err)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    const EngTrainGateArgs *a = &args->u.train_gate;
    int64_t width = (int64_t)p->streams * p->hidden;
    Moves moves = {.units = p->tokens};
    (void)err;
    add(&moves, READ, a->streams_in, width);
    add(&moves, READ, a->kv, width + p->hidden);
    add(&moves, WRITE, a->streams_out, width);
    return move(opaque, problem, &moves);
}

static EngStatus run_back_gate(void *opaque, const EngProblem *problem, const EngArgs *args,
                               EngErr *err)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    const EngBackGateArgs *a = &args->u.back_gate;
    int64_t width = (int64_t)p->streams * p->hidden;
    Moves moves = {.units = p->tokens};
    (void)err;
    add(&moves, READ, a->streams_in, width);
    add(&moves, READ, a->kv, width + p->hidden);
    if (a->d_streams != a->d_out) add(&moves, READ, a->d_out, width);
    add(&moves, a->d_streams == a->d_out ? REWRITE : WRITE, a->d_streams, width);
    add(&moves, WRITE, a->d_kv, width + p->hidden);
    return move(opaque, problem, &moves);
}

static EngStatus run_train_conv(void *opaque, const EngProblem *problem, const EngArgs *args,
                                EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    Moves moves = {.units = p->tokens};
    (void)err;
    add(&moves, READ, args->u.train_conv.value, (int64_t)p->streams * p->hidden);
    add(&moves, WRITE, args->u.train_conv.out, (int64_t)p->streams * p->hidden);
    return move(opaque, problem, &moves);
}

static EngStatus run_back_conv(void *opaque, const EngProblem *problem, const EngArgs *args,
                               EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    const EngBackConvArgs *a = &args->u.back_conv;
    Moves moves = {.units = p->tokens};
    (void)err;
    add(&moves, READ, a->value, (int64_t)p->streams * p->hidden);
    add(&moves, READ, a->d_out, (int64_t)p->streams * p->hidden);
    add(&moves, WRITE, a->d_value, (int64_t)p->streams * p->hidden);
    return move(opaque, problem, &moves);
}

static EngStatus run_back_gather(void *opaque, const EngProblem *problem, const EngArgs *args,
                                 EngErr *err)
{
    const EngBackGatherProblem *p = &problem->u.back_gather;
    Moves moves = {.units = p->tokens * p->columns};
    (void)err;
    add(&moves, READ, args->u.back_gather.d_out, p->row_dims);
    return move(opaque, problem, &moves);
}

static EngStatus run_sgd(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngSgdProblem *p = &problem->u.sgd;
    const EngSgdArgs *a = &args->u.sgd;
    Moves moves = {.abreast = true};
    (void)err;
    add_flat(&moves, READ, a->grad, p->n);
    if (p->momentum > 0) add_flat(&moves, REWRITE, a->buffer, p->n);
    add_flat(&moves, REWRITE, a->w, p->n);
    return move(opaque, problem, &moves);
}

static EngStatus run_adamw(void *opaque, const EngProblem *problem, const EngArgs *args,
                           EngErr *err)
{
    int64_t n = problem->u.adamw.n;
    const EngAdamWArgs *a = &args->u.adamw;
    Moves moves = {.abreast = true};
    (void)err;
    add_flat(&moves, READ, a->grad, n);
    add_flat(&moves, REWRITE, a->m, n);
    add_flat(&moves, REWRITE, a->v, n);
    add_flat(&moves, REWRITE, a->w, n);
    return move(opaque, problem, &moves);
}

static EngStatus run_sparse_adam(void *opaque, const EngProblem *problem, const EngArgs *args,
                                 EngErr *err)
{
    const EngSparseAdamArgs *a = &args->u.sparse_adam;
    int64_t dims = problem->u.sparse_adam.row_dims;
    Moves moves = {.units = a->n_touched, .index = a->touched, .abreast = true};
    (void)err;
    add(&moves, READ, a->grad, dims);
    add_rows(&moves, REWRITE, a->m, dims);
    add_rows(&moves, REWRITE, a->v, dims);
    add_rows(&moves, REWRITE, a->w, dims);
    return move(opaque, problem, &moves);
}

#define ROOF(id, OP, of, text)                                                                     \
    const EngKernel eng_cpu_##id##_roof = {                                                        \
        .op = OP,                                                                                  \
        .name = "roof_move",                                                                       \
        .backend = ENG_CPU,                                                                        \
        .roof = true,                                                                              \
        .checked = false,                                                                          \
        .summary = "roof: " text,                                                                  \
        .supports = of##_supports,                                                                 \
        .cost = of##_cost,                                                                         \
        .create = create,                                                                          \
        .run = run_##id,                                                                           \
        .destroy = eng_free,                                                                       \
    }

/* Constraints and costs are those of the operation's plain variant. */
#define FORWARD(id)                                                                                \
    static EngStatus id##_supports(const EngProblem *problem, EngErr *why)                         \
    {                                                                                              \
        return eng_cpu_##id.supports(problem, why);                                                \
    }                                                                                              \
    static void id##_cost(const EngProblem *problem, EngCost *cost)                                \
    {                                                                                              \
        eng_cpu_##id.cost(problem, cost);                                                          \
    }

FORWARD(train_gate_portable)
FORWARD(back_gate_portable)
FORWARD(train_conv_portable)
FORWARD(back_conv_portable)
FORWARD(back_gather_sort)
FORWARD(sgd_portable)
FORWARD(adamw_portable)
FORWARD(sparse_adam_portable)

ROOF(train_gate, ENG_OP_TRAIN_GATE, train_gate_portable, "streams and kv read, streams stored");
ROOF(back_gate, ENG_OP_BACK_GATE, back_gate_portable,
     "streams, kv and gradient read, gradients of streams and kv stored");
ROOF(train_conv, ENG_OP_TRAIN_CONV, train_conv_portable, "values read, values stored");
ROOF(back_conv, ENG_OP_BACK_CONV, back_conv_portable,
     "values and gradient read, gradient of values stored");
ROOF(back_gather, ENG_OP_BACK_GATHER, back_gather_sort, "gradients read once");
ROOF(sgd, ENG_OP_SGD, sgd_portable, "gradients read, weights and momentum rewritten");
ROOF(adamw, ENG_OP_ADAMW, adamw_portable, "gradients read, weights and both means rewritten");
ROOF(sparse_adam, ENG_OP_SPARSE_ADAM, sparse_adam_portable,
     "gradients read, touched rows of weights and both means rewritten");
