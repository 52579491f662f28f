/* Hash as one would write it first: every order mixed anew, a division for every row, one thread.
 * What the other variants are compared with. */
#include "kernels/cpu/hash.h"

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

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state;
    const EngAddress *address = problem->u.hash.address;
    EngHashBatch batch;
    EngStatus status = eng_cpu_hash_batch(problem, &args->u.hash, &batch, err);
    if (status) return status;
    int64_t *rows = args->u.hash.rows;
    for (int64_t s = 0; s < batch.n_seqs; s++)
        for (int64_t t = batch.starts[s]; t < batch.starts[s + 1] && t < batch.end; t++)
            for (int layer = 0; layer < address->n_layers; layer++)
                hash_position(address, &batch, s, t, layer,
                              rows + (t * address->n_layers + layer) * address->n_columns);
    return ENG_OK;
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cpu_hash_supports(problem, why);
    if (!status && problem->threads != 1)
        status = ENG_FAIL(why, ENG_UNSUPPORTED, "one thread only");
    return status;
}

const EngKernel eng_cpu_hash_naive = {
    .op = ENG_OP_HASH,
    .name = "naive",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one mix per order, one division per row, one thread",
    .supports = supports,
    .cost = eng_cpu_hash_cost,
    .run = run,
};
