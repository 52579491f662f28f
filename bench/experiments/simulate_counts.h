/* What the models of sim/cache say of points of `cache` and `reuse`. Both sides see the same rows,
 * so the exact models must give the same counts; they share no code with the row cache of
 * kernels/store nor with the sets that `reuse` counts with. */
#ifndef ENG_EXPERIMENTS_SIMULATE_COUNTS_H
#define ENG_EXPERIMENTS_SIMULATE_COUNTS_H

#include "bench/core/experiment.h"
#include "bench/core/resources.h"

typedef struct EngSimulatedHits {
    double exact, sampled,
        modelled; /* hit rates: Mattson, SHARDS (1 of 10 rows, of 10^7 look-ups 1 of 100), AET */
} EngSimulatedHits;

/* hits: [n], of caches as points[i] say, which differ in cache_rows only, ascending, policy lru and
 * no front. ENG_UNSUPPORTED: other caches. */
EngStatus eng_simulate_cache(const EngResources *resources, const EngPoint *const *points, int n,
                             EngSimulatedHits *hits, EngErr *err);
/* The mean share of distinct rows, compress=on. ENG_UNSUPPORTED: off. */
EngStatus eng_simulate_reuse(const EngResources *resources, const EngPoint *point, double *share,
                             EngErr *err);

#endif
