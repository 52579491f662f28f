/* Set-associative caches with LRU inside a set: the recency list of each set, cut at `ways` rows,
 * tells the hits of every number of ways up to that at once (Hill and Smith, 1989). One way is the
 * direct-mapped cache. The set of a row is its remainder, as in the row cache of kernels/store.
 */
#ifndef ENG_SIM_CACHE_SETS_H
#define ENG_SIM_CACHE_SETS_H

#include <stdint.h>
#include <engram/status.h>

#define ENG_SETS_MAX_WAYS 64

typedef struct EngSets {
    int64_t sets;
    int ways;
    int64_t *rows;                       /* [sets, ways] row + 1, the most recent first; 0: none */
    int64_t at_depth[ENG_SETS_MAX_WAYS]; /* accesses by place in the list */
    int64_t accesses;
} EngSets;

/* ENG_USAGE: no sets, ways outside 1 .. ENG_SETS_MAX_WAYS. */
EngStatus eng_sets_init(EngSets *sets, int64_t n_sets, int ways, EngErr *err);
void eng_sets_fini(EngSets *sets); /* accepts zeros */
void eng_sets_add(EngSets *sets, int64_t row);
/* Hits of a cache of the same sets with `ways` ways, at most those counted. */
int64_t eng_sets_hits(const EngSets *sets, int ways);

#endif
