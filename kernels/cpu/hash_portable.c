/* Hash in one pass over the tokens: all layers and orders share a window, each order extends the
 * mix of the one before, and remainders come from a multiplication by the prime's reciprocal.
 *
 * Remainder: with r = floor((2^64 - 1) / p), q = floor(m * r / 2^64) is m / p or one less for every
 * m < 2^64, so one conditional subtraction finishes it.
 */
#include "kernels/cpu/hash.h"

#include <inttypes.h>

#include "base/mem.h"

typedef struct Column {
    uint64_t reciprocal, prime, offset;
} Column;

typedef struct State {
    int n_layers, n_columns, min_order, max_order, heads;
    int32_t pad;
    uint64_t multipliers[ENG_MAX_LAYERS][ENG_MAX_ORDER];
    Column columns[]; /* [n_layers, n_columns] */
} State;

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngAddress *address = problem->u.hash.address;
    size_t columns = (size_t)address->n_layers * (size_t)address->n_columns;
    State *state = eng_alloc(sizeof *state + columns * sizeof *state->columns);
    if (!state)
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the primes of %zu columns", columns);
    state->n_layers = address->n_layers;
    state->n_columns = address->n_columns;
    state->min_order = address->min_order;
    state->max_order = address->max_order;
    state->heads = address->heads;
    state->pad = address->pad;
    for (int layer = 0; layer < address->n_layers; layer++) {
        for (int lag = 0; lag < address->max_order; lag++)
            state->multipliers[layer][lag] = (uint64_t)address->multipliers[layer][lag];
        for (int c = 0; c < address->n_columns; c++) {
            uint64_t prime = (uint64_t)address->primes[layer][c];
            state->columns[layer * address->n_columns + c] =
                (Column){UINT64_MAX / prime, prime, (uint64_t)address->offsets[layer][c]};
        }
    }
    *out = state;
    return ENG_OK;
}

static inline uint64_t row_of(uint64_t mix, const Column *column)
{
    uint64_t quotient = (uint64_t)((unsigned __int128)mix * column->reciprocal >> 64);
    uint64_t rest = mix - quotient * column->prime;
    rest -= rest >= column->prime ? column->prime : 0;
    return rest + column->offset;
}

static inline void hash_window(const State *state, const uint64_t window[ENG_MAX_ORDER],
                               int64_t *rows)
{
    const Column *column = state->columns;
    for (int layer = 0; layer < state->n_layers; layer++) {
        const uint64_t *multipliers = state->multipliers[layer];
        uint64_t mix = 0;
        int lag = 0;
        while (lag < state->min_order - 1) {
            mix ^= window[lag] * multipliers[lag];
            lag++;
        }
        for (; lag < state->max_order; lag++) {
            mix ^= window[lag] * multipliers[lag];
            for (int head = 0; head < state->heads; head++)
                *rows++ = (int64_t)row_of(mix, column++);
        }
    }
}

/* Ids before `t` that no dead one hides, at most `reach`: enough to start in mid-sequence. */
static int alive_before(const EngHashBatch *batch, int64_t sequence, int64_t t)
{
    int alive = 0;
    while (alive < batch->reach &&
           eng_cpu_hash_id(batch, sequence, t - 1 - alive) != ENG_TOKEN_DEAD)
        alive++;
    return alive;
}

/* Positions begin .. end-1 of one sequence. The window slides; a dead id fills all of it with pad,
 * and the pads it leaves behind are the latch: they block until they have slid out. */
static void hash_run(const State *state, const EngHashBatch *batch, int64_t sequence, int64_t begin,
                     int64_t end)
{
    uint64_t window[ENG_MAX_ORDER];
    uint64_t pad = (uint64_t)state->pad;
    int64_t stride = (int64_t)state->n_layers * state->n_columns;
    int alive = alive_before(batch, sequence, begin);
    for (int lag = 0; lag < batch->reach; lag++)
        window[lag] =
            lag < alive ? (uint64_t)eng_cpu_hash_id(batch, sequence, begin - 1 - lag) : pad;
    for (int64_t t = begin; t < end; t++) {
        int32_t id = batch->args->tokens[t];
        for (int lag = batch->reach; lag > 0; lag--) window[lag] = window[lag - 1];
        window[0] = (uint64_t)id;
        if (id == ENG_TOKEN_DEAD)
            for (int lag = 0; lag < state->max_order; lag++) window[lag] = pad;
        hash_window(state, window, batch->args->rows + t * stride);
    }
}

static void hash_range(const State *state, const EngHashBatch *batch, int64_t begin, int64_t end)
{
    if (begin >= end) return;
    int64_t sequence = eng_cpu_hash_sequence_at(batch, begin);
    while (begin < end) {
        int64_t stop = batch->starts[sequence + 1];
        if (stop > end) stop = end;
        if (begin < stop) hash_run(state, batch, sequence, begin, stop);
        begin = stop;
        sequence++;
    }
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    EngHashBatch batch;
    EngStatus status = eng_cpu_hash_batch(problem, &args->u.hash, &batch, err);
    if (status) return status;
    int64_t chunks = problem->threads;
    if (chunks == 1) {
        hash_range(state, &batch, 0, batch.end);
        return ENG_OK;
    }
#pragma omp parallel for num_threads(problem->threads) schedule(static, 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        hash_range(state, &batch, batch.end * chunk / chunks, batch.end * (chunk + 1) / chunks);
    return ENG_OK;
}

const EngKernel eng_cpu_hash_portable = {
    .op = ENG_OP_HASH,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one pass for all layers and orders, remainders by reciprocal, threads over tokens",
    .supports = eng_cpu_hash_supports,
    .cost = eng_cpu_hash_cost,
    .create = create,
    .run = run,
    .destroy = eng_free,
};
