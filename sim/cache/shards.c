/* Sampled stack distances; see shards.h. */
#include "sim/cache/shards.h"

#include <math.h>

EngStatus eng_shards_init(EngShards *shards, double rate, EngErr *err)
{
    *shards = (EngShards){.rate = rate};
    if (!(rate > 0 && rate <= 1))
        return ENG_FAIL(err, ENG_USAGE, "SHARDS: a sampling rate of %g, not in (0, 1]", rate);
    shards->threshold = rate < 1 ? (uint64_t)ldexp(rate, 64) : UINT64_MAX;
    EngStatus status = eng_row_ids_init(&shards->ids, err);
    if (!status) status = eng_stack_init(&shards->stack, err);
    if (status) eng_shards_fini(shards);
    return status;
}

void eng_shards_fini(EngShards *shards)
{
    eng_row_ids_fini(&shards->ids);
    eng_stack_fini(&shards->stack);
    *shards = (EngShards){0};
}

/* Not the hash of row_ids, whose table would otherwise be filled in one part only. */
static uint64_t draw(int64_t row)
{
    uint64_t x = (uint64_t)row + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

EngStatus eng_shards_add(EngShards *shards, int64_t row, EngErr *err)
{
    uint32_t id;
    shards->accesses++;
    if (draw(row) > shards->threshold) return ENG_OK;
    EngStatus status = eng_row_ids_of(&shards->ids, row, &id, err);
    return status ? status : eng_stack_add(&shards->stack, id, NULL, err);
}

EngStatus eng_shards_rates(const EngShards *shards, const int64_t *capacities, int n, double *rates,
                           EngErr *err)
{
    double expected = (double)shards->accesses * shards->rate;
    double extra = expected - (double)shards->stack.accesses;
    if (!shards->stack.accesses)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "SHARDS: none of %lld accesses was sampled",
                        (long long)shards->accesses);
    for (int i = 0; i < n; i++) {
        int64_t scaled = (int64_t)((double)capacities[i] * shards->rate), hits;
        eng_stack_hits(&shards->stack, &scaled, 1, &hits);
        rates[i] = fmin(1, fmax(0, ((double)hits + extra) / expected));
    }
    return ENG_OK;
}
