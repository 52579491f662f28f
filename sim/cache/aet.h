/* AET: hit rates of LRU caches from the times between uses of the same row (Hu et al., "Kinetic
 * modeling of data eviction in cache", ATC 2016). A row that is not asked for again moves down the
 * list at the rate of accesses whose reuse time is longer than its age, so a cache of C rows evicts
 * at the age T where the sum of P(reuse time > t), t < T, reaches C, and misses P(reuse time > T).
 * One counter per time, in 256 steps per doubling.
 */
#ifndef ENG_SIM_CACHE_AET_H
#define ENG_SIM_CACHE_AET_H

#include <stdint.h>
#include <engram/status.h>

#define ENG_AET_STEPS 256 /* per doubling */
#define ENG_AET_BINS  (64 * ENG_AET_STEPS)

typedef struct EngAet {
    int64_t *last; /* [last_room] by id: 1 + moment of last use */
    uint64_t last_room;
    int64_t *bins; /* [ENG_AET_BINS] accesses by reuse time */
    int64_t accesses, reuses;
} EngAet;

EngStatus eng_aet_init(EngAet *aet, EngErr *err);
void eng_aet_fini(EngAet *aet); /* accepts zeros */
EngStatus eng_aet_add(EngAet *aet, uint32_t id, EngErr *err);
/* rates[i]: modelled hit rate of capacities[i] rows, which ascend. */
void eng_aet_rates(const EngAet *aet, const int64_t *capacities, int n, double *rates);

#endif
