/* Roof of the hash: reads the same ids and stores the same bytes of row indices without hashing.
 * What is stored is the id in every column, so that the store depends on the load. */
#include "kernels/cpu/common.h"
#include "kernels/cpu/hash.h"

ENG_CLONES static void store_range(const EngAddress *address, const EngHashArgs *args,
                                   int64_t begin, int64_t end)
{
    int64_t per_token = (int64_t)address->n_layers * address->n_columns;
    for (int64_t t = begin; t < end; t++) {
        int64_t id = args->tokens[t];
        int64_t *rows = args->rows + t * per_token;
        for (int64_t i = 0; i < per_token; i++) rows[i] = id;
    }
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state;
    const EngAddress *address = problem->u.hash.address;
    EngHashBatch batch;
    EngStatus status = eng_cpu_hash_batch(problem, &args->u.hash, &batch, err);
    if (status) return status;
    int64_t chunks = problem->threads;
    if (chunks == 1) {
        store_range(address, &args->u.hash, 0, batch.end);
        return ENG_OK;
    }
#pragma omp parallel for num_threads(problem->threads) schedule(static, 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        store_range(address, &args->u.hash, batch.end * chunk / chunks,
                    batch.end * (chunk + 1) / chunks);
    return ENG_OK;
}

const EngKernel eng_cpu_hash_roof_store = {
    .op = ENG_OP_HASH,
    .name = "roof_store",
    .backend = ENG_CPU,
    .roof = true,
    .summary = "reads the ids and stores as many bytes of rows, without hashing",
    .supports = eng_cpu_hash_supports,
    .cost = eng_cpu_hash_cost,
    .run = run,
};
