/* Hash in plain C, for any instruction set: one pass over the tokens for all layers and orders,
 * remainders in double precision (proof in hash_block.h), which every compiler turns into vectors
 * over the heads. No fused multiply-add is needed: all products are exact.
 */
#include "base/mem.h"
#include "kernels/cpu/hash_block.h"

#include <string.h>

/* Both halves of the mixes of one order. */
typedef struct Halves {
    double high[ENG_HASH_BLOCK], low[ENG_HASH_BLOCK];
} Halves;

/* Extends the mixes of a block by one lag. */
static void mix_lag(uint64_t *restrict mixes, const int32_t *restrict ids, uint64_t multiplier,
                    int n)
{
    for (int i = 0; i < n; i++) mixes[i] ^= (uint64_t)ids[i] * multiplier;
}

static double double_of(uint64_t below_2_52)
{
    uint64_t bits = below_2_52 | ENG_HASH_DOUBLE_BITS;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value - 0x1p52;
}

static void split(const uint64_t *restrict mixes, Halves *restrict halves, int n)
{
    for (int i = 0; i < n; i++) {
        halves->high[i] = double_of(mixes[i] >> ENG_HASH_LOW_BITS);
        halves->low[i] = double_of(mixes[i] & (((uint64_t)1 << ENG_HASH_LOW_BITS) - 1));
    }
}

static inline int64_t row_of(const EngHashOrder *order, int head, double high, double low)
{
    double t = high * order->fold[head] + (low + order->half[head]);
    double quotient = (t * order->inverse[head] + ENG_HASH_ROUND) - ENG_HASH_ROUND;
    double row = (t + quotient * order->minus[head]) + order->last[head];
    uint64_t bits;
    memcpy(&bits, &row, sizeof bits);
    return (int64_t)(bits - ENG_HASH_DOUBLE_BITS);
}

static void reduce(const EngHashOrder *restrict order, int heads, const Halves *restrict halves,
                   int n, int64_t *restrict rows, int64_t per_token)
{
    for (int i = 0; i < n; i++, rows += per_token) {
        double high = halves->high[i], low = halves->low[i];
        int head = 0;
        for (; head + 8 <= heads; head += 8)
            for (int lane = 0; lane < 8; lane++)
                rows[head + lane] = row_of(order, head + lane, high, low);
        for (; head < heads; head++) rows[head] = row_of(order, head, high, low);
    }
}

static void hash_block(const EngHashPlan *plan, const EngHashBlock *block)
{
    uint64_t mixes[ENG_HASH_BLOCK];
    Halves halves;
    const EngHashOrder *order = plan->orders;
    int64_t *rows = block->rows, per_token = (int64_t)plan->n_layers * plan->n_columns;
    for (int layer = 0; layer < plan->n_layers; layer++) {
        memset(mixes, 0, (size_t)block->n * sizeof *mixes);
        for (int lag = 0; lag < plan->max_order; lag++) {
            mix_lag(mixes, block->ids[lag], plan->multipliers[layer][lag], block->n);
            if (lag + 1 < plan->min_order) continue;
            split(mixes, &halves, block->n);
            reduce(order++, plan->heads, &halves, block->n, rows, per_token);
            rows += plan->heads;
        }
    }
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngHashPlan *plan = state;
    return eng_cpu_hash_blocks(plan, problem, &args->u.hash,
                               plan->floats ? hash_block : eng_cpu_hash_block_reciprocal, err);
}

const EngKernel eng_cpu_hash_portable = {
    .op = ENG_OP_HASH,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one pass for all layers and orders, remainders in double precision; any processor",
    .tunables = eng_cpu_hash_tunables,
    .supports = eng_cpu_hash_supports,
    .cost = eng_cpu_hash_cost,
    .create = eng_cpu_hash_plan,
    .run = run,
    .destroy = eng_free,
};
