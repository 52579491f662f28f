/* Cache policies; see cache_index.h. */
#include "kernels/store/cache_index.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

#define MOST_ROWS    ((int64_t)1 << 31)
#define DEFAULT_WAYS 8
#define PLACE_BITS   4 /* of a tag: the place of the row within its set */
#define PLACE_MASK   15u

static bool in_sets(const EngCacheIndex *index)
{
    return index->policy == ENG_CACHE_DIRECT || index->policy == ENG_CACHE_WAYS;
}

/* Multiplicative hash; its high bits are the good ones. */
static uint64_t hash_row(int64_t row)
{
    return (uint64_t)row * 0x9e3779b97f4a7c15u;
}

/* ---- sets --------------------------------------------------------------------------------------
 */

static uint64_t set_of(const EngCacheIndex *index, int64_t row)
{
    return (uint64_t)((unsigned __int128)hash_row(row) * index->sets >> 64);
}

static int64_t access_set(EngCacheIndex *index, int64_t row, bool *hit)
{
    uint64_t set = set_of(index, row), want = (uint64_t)row + 1;
    int ways = index->ways, at = 0;
    uint64_t *tags = index->tags + set * (uint64_t)ways;
    while (at < ways - 1 && tags[at] && tags[at] >> PLACE_BITS != want) at++;
    uint64_t tag = tags[at];
    *hit = tag >> PLACE_BITS == want;
    /* Places are given out in the order in which a set fills. */
    uint64_t place = tag ? tag & PLACE_MASK : (uint64_t)at;
    if (*hit) {
        index->hits++;
    } else {
        index->misses++;
        index->evictions += tag != 0;
    }
    for (; at; at--) tags[at] = tags[at - 1];
    tags[0] = want << PLACE_BITS | place;
    return (int64_t)(set * (uint64_t)ways + place);
}

static int64_t guess_set(const EngCacheIndex *index, int64_t row)
{
    uint64_t set = set_of(index, row), want = (uint64_t)row + 1;
    const uint64_t *tags = index->tags + set * (uint64_t)index->ways;
    for (int at = 0; at < index->ways && tags[at]; at++)
        if (tags[at] >> PLACE_BITS == want)
            return (int64_t)(set * (uint64_t)index->ways + (tags[at] & PLACE_MASK));
    return -1;
}

/* ---- lists -------------------------------------------------------------------------------------
 */

static EngCacheNode *node_of(const EngCacheIndex *index, uint32_t slot_1)
{
    return &index->nodes[slot_1 - 1];
}

static uint32_t *bucket_of(const EngCacheIndex *index, int64_t row)
{
    return &index->buckets[hash_row(row) >> 32 & index->bucket_mask];
}

static uint32_t find(const EngCacheIndex *index, int64_t row)
{
    uint32_t s = *bucket_of(index, row);
    while (s && node_of(index, s)->row != row) s = node_of(index, s)->chain;
    return s;
}

static void unlink_node(EngCacheIndex *index, uint32_t s)
{
    EngCacheNode *node = node_of(index, s);
    if (node->newer)
        node_of(index, node->newer)->older = node->older;
    else
        index->newest = node->older;
    if (node->older)
        node_of(index, node->older)->newer = node->newer;
    else
        index->oldest = node->newer;
}

static void push_newest(EngCacheIndex *index, uint32_t s)
{
    EngCacheNode *node = node_of(index, s);
    node->newer = 0;
    node->older = index->newest;
    if (index->newest)
        node_of(index, index->newest)->newer = s;
    else
        index->oldest = s;
    index->newest = s;
}

static uint32_t choose_victim(EngCacheIndex *index)
{
    if (index->policy == ENG_CACHE_LRU) return index->oldest;
    uint32_t s = index->hand ? index->hand : index->oldest;
    while (node_of(index, s)->marked) {
        node_of(index, s)->marked = 0;
        s = node_of(index, s)->newer ? node_of(index, s)->newer : index->oldest;
    }
    index->hand = node_of(index, s)->newer;
    return s;
}

/* Gives up one row; its slot + 1. */
static uint32_t evict(EngCacheIndex *index)
{
    uint32_t s = choose_victim(index);
    uint32_t *link = bucket_of(index, node_of(index, s)->row);
    while (*link != s) link = &node_of(index, *link)->chain;
    *link = node_of(index, s)->chain;
    unlink_node(index, s);
    index->evictions++;
    return s;
}

static int64_t access_list(EngCacheIndex *index, int64_t row, bool *hit)
{
    uint32_t s = find(index, row);
    *hit = s != 0;
    if (s) {
        index->hits++;
        if (index->policy == ENG_CACHE_SIEVE) {
            node_of(index, s)->marked = 1;
        } else if (index->newest != s) {
            unlink_node(index, s);
            push_newest(index, s);
        }
        return (int64_t)s - 1;
    }
    index->misses++;
    s = index->used < (uint64_t)index->capacity ? ++index->used : evict(index);
    uint32_t *bucket = bucket_of(index, row);
    *node_of(index, s) = (EngCacheNode){.row = row, .chain = *bucket};
    *bucket = s;
    push_newest(index, s);
    return (int64_t)s - 1;
}

/* ---- either ------------------------------------------------------------------------------------
 */

int64_t eng_cache_index_access(EngCacheIndex *index, int64_t row, bool *hit)
{
    return in_sets(index) ? access_set(index, row, hit) : access_list(index, row, hit);
}

void eng_cache_index_prefetch(const EngCacheIndex *index, int64_t row)
{
    if (!in_sets(index)) {
        __builtin_prefetch(bucket_of(index, row));
        return;
    }
    const uint64_t *tags = index->tags + set_of(index, row) * (uint64_t)index->ways;
    __builtin_prefetch(tags, 1);
    if (index->ways > 8) __builtin_prefetch(tags + 8, 1);
}

int64_t eng_cache_index_guess(const EngCacheIndex *index, int64_t row)
{
    if (in_sets(index)) return guess_set(index, row);
    uint32_t s = *bucket_of(index, row);
    if (!s) return -1;
    __builtin_prefetch(node_of(index, s), 1);
    return (int64_t)s - 1;
}

EngStatus eng_cache_index_init(EngCacheIndex *index, const EngCacheOptions *options, EngErr *err)
{
    int ways = options->policy == ENG_CACHE_DIRECT ? 1
               : options->ways                     ? options->ways
                                                   : DEFAULT_WAYS;
    *index = (EngCacheIndex){.policy = options->policy, .capacity = options->rows, .ways = ways};
    if ((unsigned)options->policy >= ENG_CACHE_POLICY_COUNT)
        return ENG_FAIL(err, ENG_USAGE, "cache: no policy %d", (int)options->policy);
    if (options->rows < 1 || options->rows > MOST_ROWS)
        return ENG_FAIL(err, ENG_USAGE, "cache: %" PRId64 " rows, 1 to %" PRId64 " are possible",
                        options->rows, MOST_ROWS);
    if (options->policy == ENG_CACHE_WAYS && ways != 2 && ways != 4 && ways != 8 && ways != 16)
        return ENG_FAIL(err, ENG_USAGE, "cache: %d ways, 2, 4, 8 or 16 are possible", ways);
    if (in_sets(index)) {
        index->sets = ((uint64_t)options->rows + (uint64_t)ways - 1) / (uint64_t)ways;
        index->capacity = (int64_t)index->sets * ways;
        return eng_alloc_or((void **)&index->tags, (size_t)index->capacity, sizeof *index->tags,
                            "cache tags", err);
    }
    uint64_t buckets = 16;
    while (buckets < 2 * (uint64_t)index->capacity) buckets *= 2;
    index->bucket_mask = buckets - 1;
    EngStatus status = eng_alloc_or((void **)&index->nodes, (size_t)index->capacity,
                                    sizeof *index->nodes, "cache nodes", err);
    if (!status)
        status = eng_alloc_or((void **)&index->buckets, buckets, sizeof *index->buckets,
                              "cache buckets", err);
    if (status) eng_cache_index_fini(index);
    return status;
}

void eng_cache_index_fini(EngCacheIndex *index)
{
    eng_free(index->tags);
    eng_free(index->nodes);
    eng_free(index->buckets);
    *index = (EngCacheIndex){0};
}

void eng_cache_index_clear(EngCacheIndex *index)
{
    if (in_sets(index))
        memset(index->tags, 0, (size_t)index->capacity * sizeof *index->tags);
    else
        memset(index->buckets, 0, (index->bucket_mask + 1) * sizeof *index->buckets);
    index->used = index->newest = index->oldest = index->hand = 0;
}

size_t eng_cache_index_bytes(const EngCacheIndex *index)
{
    size_t n = (size_t)index->capacity;
    if (in_sets(index)) return n * sizeof *index->tags;
    return n * sizeof *index->nodes + (index->bucket_mask + 1) * sizeof *index->buckets;
}
