/* Hash as one would write it first: every order mixed anew, a division for every row. What the
 * other variants are compared with. */
#include "kernels/cpu/common.h"
#include "kernels/cpu/hash.h"

#include <omp.h>

static void hash_position(const EngAddress *address, const EngHashBatch *batch, int64_t sequence,
                          int64_t t, int layer, int64_t *rows)
{
    for (int order = address->min_order; order <= address->max_order; order++) {
        int64_t mix = 0;
        int blocked = 0;
        for (int lag = 0; lag < order; lag++) {
            int32_t id = blocked ? ENG_TOKEN_DEAD : eng_cpu_hash_id(batch, sequence, t - lag);
            blocked = id == ENG_TOKEN_DEAD;
            if (blocked) id = address->pad;
            mix ^= id * address->multipliers[layer][lag];
        }
        int first = (order - address->min_order) * address->heads;
        for (int column = first; column < first + address->heads; column++)
            rows[column] = mix % address->primes[layer][column] + address->offsets[layer][column];
    }
}

static void hash_range(const EngAddress *address, const EngHashBatch *batch, int64_t from,
                       int64_t to)
{
    int64_t *rows = batch->args->rows;
    int64_t s = from < to ? eng_cpu_hash_sequence_at(batch, from) : 0;
    for (int64_t t = from; t < to; t++) {
        while (batch->starts[s + 1] <= t) s++;
        for (int layer = 0; layer < address->n_layers; layer++)
            hash_position(address, batch, s, t, layer,
                          rows + (t * address->n_layers + layer) * address->n_columns);
    }
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state;
    const EngAddress *address = problem->u.hash.address;
    int threads = problem->threads;
    EngHashBatch batch;
    EngStatus status = eng_cpu_hash_batch(problem, &args->u.hash, &batch, err);
    if (status) return status;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(batch.end, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        hash_range(address, &batch, from, to);
    }
    return ENG_OK;
}

const EngKernel eng_cpu_hash_naive = {
    .op = ENG_OP_HASH,
    .name = "naive",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one mix per order, one division per row",
    .supports = eng_cpu_hash_supports,
    .cost = eng_cpu_hash_cost,
    .run = run,
};
