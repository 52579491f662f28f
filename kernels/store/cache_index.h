/* Which rows a bounded cache holds, and which one goes: the index alone, without rows, so that hit
 * curves can be counted as fast as streams are read, and by the same code that serves rows.
 *
 * Slots are numbers below the capacity. direct and ways: a row may lie in the places of one set. A
 * set is a record of words: a tag for each place, the order of use, and which places still wait for
 * their bytes; one line of memory holds all of it for up to 8 ways, and a hit takes no branch that
 * depends on data. lru and sieve: a chained hash table of slots, which also form a list, newest
 * first; lru moves a row that is asked for to its front; sieve marks it instead, and a hand that
 * walks from the oldest to the newest takes the first unmarked row and clears the marks it passes
 * (Zhang et al., "SIEVE is simpler than LRU", NSDI 2024).
 */
#ifndef ENG_KERNELS_STORE_CACHE_INDEX_H
#define ENG_KERNELS_STORE_CACHE_INDEX_H

#include <engram/store.h>
#include "kernels/store/pages.h"

#define ENG_CACHE_MAX_WAYS 16

typedef enum EngCacheAnswer {
    ENG_CACHE_MISS = 0, /* the row has been given the slot, which may have been another's */
    ENG_CACHE_HIT,
    ENG_CACHE_WAITING /* a hit on a slot whose miss was not settled yet */
} EngCacheAnswer;

typedef struct EngCacheNode {
    int64_t row;
    uint32_t newer, older, chain; /* slot + 1; 0: none */
    uint16_t marked, waiting;
} EngCacheNode;

typedef struct EngCacheIndex {
    EngCachePolicy policy;
    int64_t capacity; /* slots */
    int64_t hits, misses, evictions;
    /* direct, ways */
    int ways;               /* 0: lru, sieve */
    uint64_t sets, inverse; /* inverse: ceil(2^64 / sets) */
    uint32_t *records;      /* [sets][eng_cache_record_words(ways)] */
    /* lru, sieve */
    EngCacheNode *nodes; /* [capacity] */
    uint32_t *buckets;   /* [bucket_mask + 1] slot + 1 */
    uint64_t bucket_mask;
    EngPages main_pages, bucket_pages;   /* what the arrays lie in */
    uint32_t used, newest, oldest, hand; /* hand: slot + 1 of the next candidate, 0: the oldest */
} EngCacheIndex;

/* For rows below `rows` of a table. ENG_USAGE: a capacity below 1 or beyond 2^31 rows, ways that
 * are none of 2, 4, 8, 16; ENG_UNSUPPORTED: 2^31 rows or more; ENG_NO_MEMORY. */
EngStatus eng_cache_index_init(EngCacheIndex *index, const EngCacheOptions *options, int64_t rows,
                               EngErr *err);
void eng_cache_index_fini(EngCacheIndex *index);  /* accepts zeros */
void eng_cache_index_clear(EngCacheIndex *index); /* forgets rows, keeps counts */

/* The row's slot, whether or not it was there; a miss waits until its slot is settled. */
int64_t eng_cache_index_ask(EngCacheIndex *index, int64_t row, EngCacheAnswer *answer);
void eng_cache_index_settle(EngCacheIndex *index, int64_t slot);
/* Both at once, for counting. */
int64_t eng_cache_index_access(EngCacheIndex *index, int64_t row, bool *hit);

/* Ask for the lines that ask() will read: of the first look-up, and later, lru and sieve only, of
 * what it leads to. */
void eng_cache_index_prefetch(const EngCacheIndex *index, int64_t row);
void eng_cache_index_prefetch_node(const EngCacheIndex *index, int64_t row);

size_t eng_cache_index_bytes(const EngCacheIndex *index);

/* ---- sets, for loops that know their ways at compile time ---- */

/* Tags, two words of order, one of waiting places, up to a power of two; direct: tag and waiting.
 */
static inline int eng_cache_record_words(int ways)
{
    return ways == 1 ? 1 : ways <= 4 ? 8 : 2 * ways;
}

/* Set of a row: its remainder, since row numbers are hashes already and a cache as large as the
 * table then has a place for every row. Without a division, for 32-bit numbers (Lemire, Kaser,
 * Kurz, "Faster remainder by direct computation", 2019). */
static inline uint32_t *eng_cache_record(const EngCacheIndex *index, int64_t row, int ways,
                                         uint64_t *set)
{
    uint64_t fraction = index->inverse * (uint64_t)row;
    *set = (uint64_t)((unsigned __int128)fraction * index->sets >> 64);
    return index->records + *set * (uint64_t)eng_cache_record_words(ways);
}

/* Order of use: a list of places in nibbles, the most recent lowest. A record of zeros means that
 * place 0 is the least recent, then 1, so that places are given out as they are numbered. */
static inline uint64_t eng_cache_first_order(int ways)
{
    uint64_t order = 0;
    for (int p = 0; p < ways; p++) order |= (uint64_t)(ways - 1 - p) << (4 * p);
    return order;
}

#define ENG_CACHE_WAITS (1u << 31) /* of a tag, direct only */

/* Of a row whose place is known; hits are for the caller to count. */
static inline EngCacheAnswer eng_cache_ask_tag(EngCacheIndex *index, uint64_t place, int64_t row)
{
    uint32_t *tag = index->records + place, want = (uint32_t)row + 1, held = *tag;
    if (held == want) return ENG_CACHE_HIT;
    if (held == (want | ENG_CACHE_WAITS)) return ENG_CACHE_WAITING;
    index->misses++;
    index->evictions += held != 0;
    *tag = want | ENG_CACHE_WAITS;
    return ENG_CACHE_MISS;
}

static inline int64_t eng_cache_ask_place(EngCacheIndex *index, int64_t row, EngCacheAnswer *answer)
{
    uint64_t place;
    eng_cache_record(index, row, 1, &place);
    *answer = eng_cache_ask_tag(index, place, row);
    index->hits += *answer != ENG_CACHE_MISS;
    return (int64_t)place;
}

/* The list with `place` moved to its front. */
static inline uint64_t eng_cache_to_front(uint64_t order, unsigned place)
{
    const uint64_t ones = 0x1111111111111111u;
    uint64_t differ = order ^ place * ones;
    uint64_t found =
        (differ - ones) & ~differ & (ones << 3); /* lowest bit: the first zero nibble */
    uint64_t through = found ^ (found - 1);      /* nibbles up to and with it */
    return (order & ~through) | ((order << 4 | place) & through);
}

static inline int64_t eng_cache_ask_set(EngCacheIndex *index, int64_t row, int ways,
                                        EngCacheAnswer *answer)
{
    if (ways == 1) return eng_cache_ask_place(index, row, answer);
    uint64_t set, order;
    uint32_t *record = eng_cache_record(index, row, ways, &set);
    uint32_t want = (uint32_t)row + 1, match = 0, *waiting = &record[ways + 2];
    for (int k = 0; k < ways; k++) match |= (uint32_t)(record[k] == want) << k;
    __builtin_memcpy(&order, record + ways, sizeof order);
    order ^= eng_cache_first_order(ways);
    unsigned place;
    if (match) {
        place = (unsigned)__builtin_ctz(match);
        index->hits++;
        *answer = *waiting >> place & 1 ? ENG_CACHE_WAITING : ENG_CACHE_HIT;
    } else {
        place = (unsigned)(order >> (4 * (ways - 1)) & 15);
        index->misses++;
        index->evictions += record[place] != 0;
        record[place] = want;
        *waiting |= 1u << place;
        *answer = ENG_CACHE_MISS;
    }
    order = eng_cache_to_front(order, place) ^ eng_cache_first_order(ways);
    __builtin_memcpy(record + ways, &order, sizeof order);
    return (int64_t)(set * (uint64_t)ways + place);
}

#endif
