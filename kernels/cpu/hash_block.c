/* Plan, block driver and the integer fall-back of the hash; see hash_block.h. */
#include "kernels/cpu/hash_block.h"

#include "base/mem.h"

#include <string.h>

/* ---- plan --------------------------------------------------------------------------------------
 */

#define DEFAULT_BLOCK 64

const EngTunable eng_cpu_hash_tunables[] = {
    {.name = "block",
     .min = ENG_HASH_LANES,
     .max = ENG_HASH_BLOCK,
     .def = DEFAULT_BLOCK,
     .values = "16,32,64,128,256",
     .help = "positions mixed at a time, rounded up to eights"},
    {.name = NULL},
};

static uint64_t fraction_part(uint64_t prime, int i)
{
    unsigned __int128 one = (unsigned __int128)1 << (52 + ENG_HASH_PIECE_BITS * i);
    return (uint64_t)((one + prime - 1) / prime) & (((uint64_t)1 << 52) - 1);
}

static void set_head(EngHashOrder *order, int head, uint64_t prime, uint64_t offset)
{
    uint64_t half = (prime - 1) / 2;
    order->fold[head] = (double)(((uint64_t)1 << ENG_HASH_LOW_BITS) % prime);
    order->half[head] = -(double)half;
    order->inverse[head] = 1.0 / (double)prime;
    order->minus[head] = -(double)prime;
    order->last[head] = 0x1p52 + (double)(half + offset);
    for (int i = 0; i < 3; i++) order->part[i][head] = fraction_part(prime, i);
    order->prime[head] = prime;
    order->offset[head] = offset;
    order->reciprocal[head] = UINT64_MAX / prime;
}

EngStatus eng_cpu_hash_plan(const EngProblem *problem, void **out, EngErr *err)
{
    const EngAddress *address = problem->u.hash.address;
    int n_orders = address->max_order - address->min_order + 1;
    size_t n = (size_t)address->n_layers * (size_t)n_orders;
    EngHashPlan *plan = eng_alloc(sizeof *plan + n * sizeof *plan->orders);
    if (!plan) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the primes of %zu orders", n);
    plan->n_layers = address->n_layers;
    plan->n_columns = address->n_columns;
    plan->min_order = address->min_order;
    plan->max_order = address->max_order;
    plan->heads = address->heads;
    plan->pad = address->pad;
    plan->block = problem->tuned[0] ? problem->tuned[0] : DEFAULT_BLOCK;
    plan->block = (plan->block + ENG_HASH_LANES - 1) / ENG_HASH_LANES * ENG_HASH_LANES;
    plan->floats = plan->fractions = true;
    for (int layer = 0; layer < address->n_layers; layer++) {
        for (int lag = 0; lag < address->max_order; lag++)
            plan->multipliers[layer][lag] = (uint64_t)address->multipliers[layer][lag];
        for (int c = 0; c < address->n_columns; c++) {
            uint64_t prime = (uint64_t)address->primes[layer][c];
            uint64_t offset = (uint64_t)address->offsets[layer][c];
            plan->floats &= prime % 2 && prime >> 35 == 0 && offset >> 51 == 0;
            plan->fractions &= prime >> 29 == 0;
            set_head(&plan->orders[layer * n_orders + c / address->heads], c % address->heads,
                     prime, offset);
        }
    }
    for (size_t i = 0; i < n; i++)
        for (int head = plan->heads; head < ENG_HASH_MAX_PADDED; head++)
            set_head(&plan->orders[i], head, 3, 0);
    *out = plan;
    return ENG_OK;
}

/* ---- windows -----------------------------------------------------------------------------------
 */

/* Windows of a block that starts a sequence or sees dead ids. */
typedef struct Copied {
    int32_t source[ENG_MAX_ORDER + ENG_HASH_BLOCK], dead[ENG_HASH_BLOCK + ENG_HASH_LANES];
    int32_t ids[ENG_MAX_ORDER][ENG_HASH_BLOCK + ENG_HASH_LANES];
} Copied;

/* Windows of n positions of one sequence, into places `at` and following. The ids and what comes
 * before them are laid end to end; then each lag is the same loop, in which a dead id latches. */
static void copy_windows(const EngHashPlan *plan, const EngHashBatch *batch, int64_t sequence,
                         int64_t begin, int n, Copied *copied, int at)
{
    int32_t *source = copied->source, *dead = copied->dead;
    for (int i = -batch->reach; i < n; i++)
        source[i + batch->reach] = eng_cpu_hash_id(batch, sequence, begin + i);
    for (int i = 0; i < n; i++) dead[i] = 0;
    for (int lag = 0; lag < plan->max_order; lag++) {
        const int32_t *from = source + batch->reach - lag;
        int32_t *to = copied->ids[lag] + at;
        for (int i = 0; i < n; i++) {
            dead[i] |= -(from[i] == ENG_TOKEN_DEAD);
            to[i] = (from[i] & ~dead[i]) | (plan->pad & dead[i]);
        }
    }
}

/* The same for one position: decoding hands over sequences of one id. */
static void copy_window(const EngHashPlan *plan, const EngHashBatch *batch, int64_t sequence,
                        int64_t position, Copied *copied, int at)
{
    bool blocked = false;
    for (int lag = 0; lag < plan->max_order; lag++) {
        int32_t id = blocked ? ENG_TOKEN_DEAD : eng_cpu_hash_id(batch, sequence, position - lag);
        blocked = id == ENG_TOKEN_DEAD;
        copied->ids[lag][at] = blocked ? plan->pad : id;
    }
}

static bool any_dead(const int32_t *ids, int64_t n)
{
    int dead = 0;
    for (int64_t i = 0; i < n; i++) dead |= ids[i] == ENG_TOKEN_DEAD;
    return dead;
}

/* Positions from `begin` whose windows can be read in place: whole groups of lanes, since block
 * functions read that far. */
static int64_t plain_run(const EngHashPlan *plan, const EngHashBatch *batch, int64_t sequence,
                         int64_t begin, int64_t end)
{
    int64_t stop = batch->starts[sequence + 1] < end ? batch->starts[sequence + 1] : end;
    int64_t n = stop - begin < plan->block ? stop - begin : plan->block;
    n -= n % ENG_HASH_LANES;
    if (n <= 0 || begin - batch->starts[sequence] < batch->reach) return 0;
    return any_dead(batch->args->tokens + begin - batch->reach, n + batch->reach) ? 0 : n;
}

/* A block of copied windows from `begin` on, across sequences; returns its positions. */
static int copy_block(const EngHashPlan *plan, const EngHashBatch *batch, int64_t *sequence,
                      int64_t begin, int64_t end, Copied *copied)
{
    int n = 0, most = end - begin < plan->block ? (int)(end - begin) : plan->block;
    while (n < most) {
        int64_t position = begin + n;
        while (batch->starts[*sequence + 1] <= position) ++*sequence;
        int64_t left = batch->starts[*sequence + 1] - position;
        int run = left < most - n ? (int)left : most - n;
        if (run >= ENG_HASH_FEW)
            copy_windows(plan, batch, *sequence, position, run, copied, n);
        else
            for (int i = 0; i < run; i++)
                copy_window(plan, batch, *sequence, position + i, copied, n + i);
        n += run;
    }
    /* Block functions read on to the end of a vector: there must be something. */
    for (int lag = 0; lag < plan->max_order && n > ENG_HASH_FEW; lag++)
        memset(copied->ids[lag] + n, 0, ENG_HASH_LANES * sizeof *copied->ids[lag]);
    return n;
}

static void hash_range(const EngHashPlan *plan, const EngHashBatch *batch, int64_t begin,
                       int64_t end, EngHashBlockFn *fn)
{
    if (begin >= end) return;
    Copied copied;
    int64_t per_token = (int64_t)plan->n_layers * plan->n_columns;
    int64_t sequence = eng_cpu_hash_sequence_at(batch, begin);
    while (begin < end) {
        while (batch->starts[sequence + 1] <= begin) sequence++;
        EngHashBlock block = {.rows = batch->args->rows + begin * per_token};
        block.n = (int)plain_run(plan, batch, sequence, begin, end);
        if (block.n) {
            for (int lag = 0; lag < plan->max_order; lag++)
                block.ids[lag] = batch->args->tokens + begin - lag;
        } else {
            block.n = copy_block(plan, batch, &sequence, begin, end, &copied);
            for (int lag = 0; lag < plan->max_order; lag++) block.ids[lag] = copied.ids[lag];
        }
        fn(plan, &block);
        begin += block.n;
    }
}

EngStatus eng_cpu_hash_blocks(const EngHashPlan *plan, const EngProblem *problem,
                              const EngHashArgs *args, EngHashBlockFn *fn, EngErr *err)
{
    EngHashBatch batch;
    EngStatus status = eng_cpu_hash_batch(problem, args, &batch, err);
    if (status) return status;
    int64_t chunks = problem->threads;
    if (chunks == 1) {
        hash_range(plan, &batch, 0, batch.end, fn);
        return ENG_OK;
    }
#pragma omp parallel for num_threads(problem->threads) schedule(static, 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        hash_range(plan, &batch, batch.end * chunk / chunks, batch.end * (chunk + 1) / chunks, fn);
    return ENG_OK;
}

/* ---- any prime ---------------------------------------------------------------------------------
 */

static inline uint64_t row_of(uint64_t mix, const EngHashOrder *order, int head)
{
    uint64_t quotient = (uint64_t)((unsigned __int128)mix * order->reciprocal[head] >> 64);
    uint64_t rest = mix - quotient * order->prime[head];
    rest -= rest >= order->prime[head] ? order->prime[head] : 0;
    return rest + order->offset[head];
}

void eng_cpu_hash_block_reciprocal(const EngHashPlan *plan, const EngHashBlock *block)
{
    int64_t *rows = block->rows;
    for (int i = 0; i < block->n; i++) {
        const EngHashOrder *order = plan->orders;
        for (int layer = 0; layer < plan->n_layers; layer++) {
            uint64_t mix = 0;
            for (int lag = 0; lag < plan->max_order; lag++) {
                mix ^= (uint64_t)block->ids[lag][i] * plan->multipliers[layer][lag];
                if (lag + 1 < plan->min_order) continue;
                for (int head = 0; head < plan->heads; head++)
                    *rows++ = (int64_t)row_of(mix, order, head);
                order++;
            }
        }
    }
}
