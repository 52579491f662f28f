/* Which rows a bounded cache holds, and which one goes: the index alone, without rows, so that hit
 * curves can be counted as fast as streams are read, and by the same code that serves rows.
 *
 * Slots are numbers below the capacity. direct and ways: a row may lie in the places of one set;
 * the set's tags are kept in order of use, most recent first, so that the least recent is the last.
 * lru and sieve: a chained hash table of slots, which also form a list, newest first; lru moves a
 * row that is asked for to its front; sieve marks it instead, and a hand that walks from the oldest
 * to the newest takes the first unmarked row and clears the marks it passes (Zhang et al., "SIEVE
 * is simpler than LRU", NSDI 2024).
 */
#ifndef ENG_KERNELS_STORE_CACHE_INDEX_H
#define ENG_KERNELS_STORE_CACHE_INDEX_H

#include <engram/store.h>

typedef struct EngCacheNode {
    int64_t row;
    uint32_t newer, older, chain; /* slot + 1; 0: none */
    uint32_t marked;
} EngCacheNode;

typedef struct EngCacheIndex {
    EngCachePolicy policy;
    int64_t capacity; /* slots */
    int64_t hits, misses, evictions;
    /* direct, ways */
    int ways;
    uint64_t sets;
    uint64_t *tags; /* [sets * ways]: (row + 1) * 16 + place within the set; 0: empty */
    /* lru, sieve */
    EngCacheNode *nodes; /* [capacity] */
    uint32_t *buckets;   /* [bucket_mask + 1] slot + 1 */
    uint64_t bucket_mask;
    uint32_t used, newest, oldest, hand; /* hand: slot + 1 of the next candidate, 0: the oldest */
} EngCacheIndex;

/* ENG_USAGE: a capacity below 1 or beyond 2^31 rows, ways that are none of 2, 4, 8, 16. */
EngStatus eng_cache_index_init(EngCacheIndex *index, const EngCacheOptions *options, EngErr *err);
void eng_cache_index_fini(EngCacheIndex *index);  /* accepts zeros */
void eng_cache_index_clear(EngCacheIndex *index); /* forgets rows, keeps counts */

/* The row's slot. *hit false: the row was not there and has been given the slot, which may have
 * been another's. */
int64_t eng_cache_index_access(EngCacheIndex *index, int64_t row, bool *hit);
/* Without effect on the index: asks for the lines that access() reads first; and then, a little
 * later, the slot where the row probably lies, -1 when there is none. */
void eng_cache_index_prefetch(const EngCacheIndex *index, int64_t row);
int64_t eng_cache_index_guess(const EngCacheIndex *index, int64_t row);

size_t eng_cache_index_bytes(const EngCacheIndex *index);

#endif
