/* Cache policies; see cache_index.h. */
#include "kernels/store/cache_index.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/store/memory.h"

#define MOST_ROWS    ((int64_t)1 << 31)
#define DEFAULT_WAYS 8
#define HUGE_FROM    ((size_t)1 << 20) /* bytes of an array that is worth large pages */

/* ---- lists -------------------------------------------------------------------------------------
 */

static EngCacheNode *node_of(const EngCacheIndex *index, uint32_t slot_1)
{
    return &index->nodes[slot_1 - 1];
}

/* Multiplicative hash; its high bits are the good ones. */
static uint64_t hash_row(int64_t row)
{
    return (uint64_t)row * 0x9e3779b97f4a7c15u;
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

static int64_t ask_list(EngCacheIndex *index, int64_t row, EngCacheAnswer *answer)
{
    uint32_t s = find(index, row);
    *answer = ENG_CACHE_MISS;
    if (s) {
        *answer = node_of(index, s)->waiting ? ENG_CACHE_WAITING : ENG_CACHE_HIT;
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
    *node_of(index, s) = (EngCacheNode){.row = row, .chain = *bucket, .waiting = 1};
    *bucket = s;
    push_newest(index, s);
    return (int64_t)s - 1;
}

/* ---- either ------------------------------------------------------------------------------------
 */

int64_t eng_cache_index_ask(EngCacheIndex *index, int64_t row, EngCacheAnswer *answer)
{
    switch (index->ways) {
    case 1:
        return eng_cache_ask_set(index, row, 1, answer);
    case 2:
        return eng_cache_ask_set(index, row, 2, answer);
    case 4:
        return eng_cache_ask_set(index, row, 4, answer);
    case 8:
        return eng_cache_ask_set(index, row, 8, answer);
    case 16:
        return eng_cache_ask_set(index, row, 16, answer);
    default:
        return ask_list(index, row, answer);
    }
}

void eng_cache_index_settle(EngCacheIndex *index, int64_t slot)
{
    int ways = index->ways;
    if (!ways) {
        index->nodes[slot].waiting = 0;
        return;
    }
    uint32_t *record = index->records + slot / ways * eng_cache_record_words(ways);
    if (ways == 1)
        record[0] &= ~ENG_CACHE_WAITS;
    else
        record[ways + 2] &= ~(1u << slot % ways);
}

int64_t eng_cache_index_access(EngCacheIndex *index, int64_t row, bool *hit)
{
    EngCacheAnswer answer;
    int64_t slot = eng_cache_index_ask(index, row, &answer);
    *hit = answer != ENG_CACHE_MISS;
    if (!*hit) eng_cache_index_settle(index, slot);
    return slot;
}

void eng_cache_index_prefetch(const EngCacheIndex *index, int64_t row)
{
    uint64_t set;
    if (!index->ways) {
        __builtin_prefetch(bucket_of(index, row));
        return;
    }
    const uint32_t *record = eng_cache_record(index, row, index->ways, &set);
    __builtin_prefetch(record, 1);
    if (index->ways > 8) __builtin_prefetch(record + 16, 1);
}

void eng_cache_index_prefetch_node(const EngCacheIndex *index, int64_t row)
{
    if (index->ways) return;
    uint32_t s = *bucket_of(index, row);
    if (s) __builtin_prefetch(node_of(index, s), 1);
}

/* Zeroed; on large pages where there is much of it, since every look-up goes somewhere else. */
static EngStatus map_array(EngPages *pages, uint64_t n, size_t size, EngErr *err)
{
    size_t bytes;
    if (!eng_mul_size(n, size, &bytes))
        return ENG_FAIL(err, ENG_NO_MEMORY, "cache index: %" PRIu64 " places do not fit memory", n);
    EngStatus status = eng_memory_check(bytes, "cache index", err);
    if (status) return status;
    return eng_pages_map(pages, bytes, bytes < HUGE_FROM ? ENG_PAGES_SMALL : ENG_PAGES_HUGE, err);
}

static EngStatus check_options(const EngCacheOptions *options, int64_t rows, EngErr *err)
{
    int ways = options->ways;
    if ((unsigned)options->policy >= ENG_CACHE_POLICY_COUNT)
        return ENG_FAIL(err, ENG_USAGE, "cache: no policy %d", (int)options->policy);
    if (options->rows < 1 || options->rows > MOST_ROWS)
        return ENG_FAIL(err, ENG_USAGE, "cache: %" PRId64 " rows, 1 to %" PRId64 " are possible",
                        options->rows, MOST_ROWS);
    if (options->policy == ENG_CACHE_WAYS && ways &&
        (ways < 2 || ways > ENG_CACHE_MAX_WAYS || ways & (ways - 1)))
        return ENG_FAIL(err, ENG_USAGE, "cache: %d ways, 2, 4, 8 or 16 are possible", ways);
    if (rows >= INT32_MAX)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "cache: a table of %" PRId64 " rows, tags are of 31 bits", rows);
    return ENG_OK;
}

EngStatus eng_cache_index_init(EngCacheIndex *index, const EngCacheOptions *options, int64_t rows,
                               EngErr *err)
{
    *index = (EngCacheIndex){.policy = options->policy, .capacity = options->rows};
    EngStatus status = check_options(options, rows, err);
    if (status) return status;
    if (options->policy == ENG_CACHE_DIRECT)
        index->ways = 1;
    else if (options->policy == ENG_CACHE_WAYS)
        index->ways = options->ways ? options->ways : DEFAULT_WAYS;
    if (index->ways) {
        uint64_t ways = (uint64_t)index->ways;
        index->sets = ((uint64_t)options->rows + ways - 1) / ways;
        index->inverse = UINT64_MAX / index->sets + 1; /* one set: 0, and all remainders are 0 */
        index->capacity = (int64_t)(index->sets * ways);
        status =
            map_array(&index->main_pages, index->sets,
                      (size_t)eng_cache_record_words(index->ways) * sizeof *index->records, err);
        index->records = (uint32_t *)(void *)index->main_pages.bytes;
        return status;
    }
    uint64_t buckets = 16;
    while (buckets < 2 * (uint64_t)index->capacity) buckets *= 2;
    index->bucket_mask = buckets - 1;
    status = map_array(&index->main_pages, (uint64_t)index->capacity, sizeof *index->nodes, err);
    if (!status) status = map_array(&index->bucket_pages, buckets, sizeof *index->buckets, err);
    index->nodes = (EngCacheNode *)(void *)index->main_pages.bytes;
    index->buckets = (uint32_t *)(void *)index->bucket_pages.bytes;
    if (status) eng_cache_index_fini(index);
    return status;
}

void eng_cache_index_fini(EngCacheIndex *index)
{
    eng_pages_unmap(&index->main_pages);
    eng_pages_unmap(&index->bucket_pages);
    *index = (EngCacheIndex){0};
}

void eng_cache_index_clear(EngCacheIndex *index)
{
    if (index->ways)
        memset(index->main_pages.bytes, 0, index->main_pages.n);
    else
        memset(index->bucket_pages.bytes, 0, index->bucket_pages.n);
    index->used = index->newest = index->oldest = index->hand = 0;
}

size_t eng_cache_index_bytes(const EngCacheIndex *index)
{
    return index->main_pages.n + index->bucket_pages.n;
}
