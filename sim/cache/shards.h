/* SHARDS: stack distances of a share of the rows, chosen by a hash of the row so that all accesses
 * to a chosen row are seen (Waldspurger et al., FAST 2015). Distances among the sample stand for
 * 1 / rate as many. With their adjustment: the difference between the expected and the seen number
 * of sampled accesses counts as hits at the smallest distance, since it comes from few very
 * frequent rows being in the sample or not.
 */
#ifndef ENG_SIM_CACHE_SHARDS_H
#define ENG_SIM_CACHE_SHARDS_H

#include "sim/cache/row_ids.h"
#include "sim/cache/stack.h"

typedef struct EngShards {
    double rate;
    uint64_t threshold;
    EngRowIds ids;
    EngStack stack;
    int64_t accesses;
} EngShards;

/* ENG_USAGE: a rate outside (0, 1]. */
EngStatus eng_shards_init(EngShards *shards, double rate, EngErr *err);
void eng_shards_fini(EngShards *shards); /* accepts zeros */
EngStatus eng_shards_add(EngShards *shards, int64_t row, EngErr *err);
/* rates[i]: estimated hit rate of an LRU cache of capacities[i] rows, which ascend, in [0, 1]. */
EngStatus eng_shards_rates(const EngShards *shards, const int64_t *capacities, int n, double *rates,
                           EngErr *err);

#endif
