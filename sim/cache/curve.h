/* Hit curves: hits of caches of many capacities in one pass over a trace of rows, by the exact
 * model of each policy. They must equal the row cache of kernels/store on the same trace; the two
 * are written independently, and a test compares them.
 */
#ifndef ENG_SIM_CACHE_CURVE_H
#define ENG_SIM_CACHE_CURVE_H

#include <engram/store.h>

#include "sim/cache/row_ids.h"
#include "sim/cache/sets.h"
#include "sim/cache/sieve.h"
#include "sim/cache/stack.h"

typedef struct EngCurve {
    EngCachePolicy policy;
    int n;                      /* capacities */
    int64_t *capacities;        /* [n] rows, ways: rounded up to whole sets as the store does */
    int ways;                   /* of a set; direct: 1; lru and sieve: 0 */
    EngRowIds ids;              /* lru, sieve */
    EngStack stack;             /* lru */
    EngSieve *sieves;           /* [n] sieve */
    EngSets *sets;              /* [n] direct, ways */
    int64_t accesses, distinct; /* distinct: lru and sieve; else 0 */
} EngCurve;

/* ways: policy ENG_CACHE_WAYS only, 1 .. ENG_SETS_MAX_WAYS. ENG_USAGE: no capacities, capacities
 * that do not ascend from 1, an unknown policy. */
EngStatus eng_curve_open(EngCurve *curve, EngCachePolicy policy, int ways,
                         const int64_t *capacities, int n, EngErr *err);
void eng_curve_close(EngCurve *curve); /* accepts zeros */

/* The next n rows of the trace, none negative (ENG_BAD_DATA). */
EngStatus eng_curve_add(EngCurve *curve, const int64_t *rows, int64_t n, EngErr *err);

/* hits[i]: accesses so far that the cache of capacities[i] rows answered. */
void eng_curve_hits(const EngCurve *curve, int64_t *hits);

#endif
