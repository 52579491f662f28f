/* What the hash variants share: shapes, cost, and the checks of a batch's layout; see hash.h. */
#include "kernels/cpu/hash.h"

#include <inttypes.h>

EngStatus eng_cpu_hash_supports(const EngProblem *problem, EngErr *why)
{
    if (problem->op != ENG_OP_HASH || !problem->u.hash.address)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "not a hash problem");
    if (problem->threads < 1) return ENG_FAIL(why, ENG_UNSUPPORTED, "%d threads", problem->threads);
    return ENG_OK;
}

void eng_cpu_hash_cost(const EngProblem *problem, EngCost *cost)
{
    const EngAddress *address = problem->u.hash.address;
    double tokens = (double)problem->u.hash.max_tokens;
    cost->flops = 0;
    cost->read_bytes = tokens * sizeof(int32_t);
    cost->write_bytes = tokens * address->n_layers * address->n_columns * (double)sizeof(int64_t);
}

EngStatus eng_cpu_hash_batch(const EngProblem *problem, const EngHashArgs *args,
                             EngHashBatch *batch, EngErr *err)
{
    if (args->n_tokens < 0 || args->n_tokens > problem->u.hash.max_tokens)
        return ENG_FAIL(err, ENG_USAGE, "hash: %" PRId64 " tokens, at most %" PRId64,
                        args->n_tokens, problem->u.hash.max_tokens);
    if (args->n_live < 0 || args->n_live > args->n_tokens)
        return ENG_FAIL(err, ENG_USAGE, "hash: %" PRId64 " live positions of %" PRId64,
                        args->n_live, args->n_tokens);
    *batch = (EngHashBatch){.args = args,
                            .starts = args->starts,
                            .n_seqs = args->starts ? args->n_seqs : 1,
                            .reach = problem->u.hash.address->max_order - 1,
                            .whole = {0, args->n_tokens}};
    if (!args->starts) batch->starts = batch->whole;
    int64_t before = 0;
    for (int64_t s = 0; s <= batch->n_seqs; s++) {
        int64_t start = batch->starts[s];
        if (start < before || start > args->n_tokens || (s == 0 && start != 0))
            return ENG_FAIL(err, ENG_USAGE,
                            "hash: starts[%" PRId64 "] is %" PRId64
                            ", must ascend from 0 to %" PRId64,
                            s, start, args->n_tokens);
        before = start;
    }
    batch->end = before < args->n_live ? before : args->n_live;
    return ENG_OK;
}

int64_t eng_cpu_hash_sequence_at(const EngHashBatch *batch, int64_t position)
{
    int64_t low = 0, high = batch->n_seqs; /* starts[low] <= position < starts[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (batch->starts[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}
