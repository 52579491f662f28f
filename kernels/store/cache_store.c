/* cache: a bounded cache of rows in front of any store.
 *
 * A batch is walked once in order, as if its rows were asked for one after the other, so that
 * counts are exact. Rows that are there are copied at once, before a later miss can take their
 * slot. Misses go below in one batch, straight to where the caller wants them, and are then copied
 * into their slots. A row asked for again while its first request is still to be fetched is a hit
 * whose copy waits. Index lines of rows further on are asked for ahead of the walk, and rows that
 * were found are copied a little after they were asked of memory.
 */
#include <string.h>

#include "base/mem.h"
#include "kernels/store/cache_index.h"
#include "kernels/store/copy.h"
#include "kernels/store/memory.h"
#include "kernels/store/pages.h"

#define TAG_AHEAD  16 /* rows between asking for an index line and reading it */
#define NODE_AHEAD 8
#define HUGE_FROM  ((size_t)1 << 20) /* bytes that are worth large pages */

typedef struct Late {
    int64_t from, to; /* slots of the destination */
} Late;

typedef struct CacheStore {
    EngStore base;
    EngStore *inner;
    EngCacheIndex index;
    EngRowSizes sizes;
    EngPages values, scales; /* [capacity] rows as in a table: scales together stay near */
    uint32_t *filler;        /* [capacity] of slots that wait: which miss of the batch fills them */
    int64_t room;
    int64_t *miss_rows, *miss_to; /* [room] as read() of the inner store takes them */
    int64_t *miss_slots;          /* [room] of the cache */
    Late *late;                   /* [room] */
    EngStoreStats stats;
} CacheStore;

/* What one walk leaves to do. */
typedef struct Walk {
    int64_t misses, late;
} Walk;

static void drop_room(CacheStore *store)
{
    eng_free(store->miss_rows);
    eng_free(store->miss_to);
    eng_free(store->miss_slots);
    eng_free(store->late);
    store->miss_rows = store->miss_to = store->miss_slots = NULL;
    store->late = NULL;
    store->room = 0;
}

static EngStatus make_room(CacheStore *store, int64_t n, EngErr *err)
{
    const char *what = "misses of a batch";
    size_t count = (size_t)n;
    if (n <= store->room) return ENG_OK;
    if (n >= UINT32_MAX) return ENG_FAIL(err, ENG_USAGE, "cache: %lld rows", (long long)n);
    drop_room(store);
    EngStatus status =
        eng_alloc_or((void **)&store->miss_rows, count, sizeof *store->miss_rows, what, err);
    if (!status)
        status = eng_alloc_or((void **)&store->miss_to, count, sizeof *store->miss_to, what, err);
    if (!status)
        status =
            eng_alloc_or((void **)&store->miss_slots, count, sizeof *store->miss_slots, what, err);
    if (!status) status = eng_alloc_or((void **)&store->late, count, sizeof(Late), what, err);
    if (status)
        drop_room(store);
    else
        store->room = n;
    return status;
}

static void copy_out(const CacheStore *store, int64_t slot, const EngRowsOut *out, int64_t to)
{
    eng_copy_row(&store->sizes, out->values, out->scales, to, store->values.bytes,
                 store->scales.bytes, slot);
}

static void copy_in(CacheStore *store, int64_t slot, const EngRowsOut *out, int64_t from)
{
    eng_copy_row(&store->sizes, store->values.bytes, store->scales.bytes, slot, out->values,
                 out->scales, from);
}

/* Asks the index for row i of the batch; a row that is there is asked of memory, and its slot kept
 * for the copy (-1: nothing to copy). */
static inline int64_t take_answer(CacheStore *store, Walk *w, int64_t row, int64_t to, int64_t slot,
                                  EngCacheAnswer answer)
{
    if (answer == ENG_CACHE_HIT) {
        eng_prefetch_row(&store->sizes, store->values.bytes, store->scales.bytes, slot);
        return slot;
    }
    if (answer == ENG_CACHE_WAITING) {
        store->late[w->late++] = (Late){store->miss_to[store->filler[slot]], to};
        return -1;
    }
    store->filler[slot] = (uint32_t)w->misses;
    store->miss_rows[w->misses] = row;
    store->miss_to[w->misses] = to;
    store->miss_slots[w->misses++] = slot;
    return -1;
}

/* The copy of a row follows its look-up by so many rows that its bytes have come in. In between
 * another row may have been given its slot, whose bytes stay until the batch's misses are there. */
static inline __attribute__((always_inline)) Walk walk_ways(CacheStore *store, const int64_t *rows,
                                                            const int64_t *slots, int64_t n,
                                                            const EngRowsOut *out, const int ways)
{
    Walk w = {0};
    int64_t found[ENG_COPY_AHEAD];
    EngCacheIndex *index = &store->index;
    for (int64_t i = 0; i < TAG_AHEAD && i < n; i++) eng_cache_index_prefetch(index, rows[i]);
    for (int64_t i = 0; i < n + ENG_COPY_AHEAD; i++) {
        int64_t *place = &found[i % ENG_COPY_AHEAD], copy = i - ENG_COPY_AHEAD;
        if (copy >= 0 && *place >= 0) copy_out(store, *place, out, slots ? slots[copy] : copy);
        if (i >= n) continue;
        if (i + TAG_AHEAD < n) eng_cache_index_prefetch(index, rows[i + TAG_AHEAD]);
        if (!ways && i + NODE_AHEAD < n) eng_cache_index_prefetch_node(index, rows[i + NODE_AHEAD]);
        EngCacheAnswer answer;
        int64_t slot = ways ? eng_cache_ask_set(index, rows[i], ways, &answer)
                            : eng_cache_index_ask(index, rows[i], &answer);
        *place = take_answer(store, &w, rows[i], slots ? slots[i] : i, slot, answer);
    }
    return w;
}

/* The same for sets of one place: its number is computed once, when its tag is asked of memory. */
static Walk walk_places(CacheStore *store, const int64_t *rows, const int64_t *slots, int64_t n,
                        const EngRowsOut *out)
{
    enum { AHEAD = ENG_COPY_AHEAD, RING = 2 * AHEAD };
    Walk w = {0};
    int64_t places[RING]; /* of row i from asking for its tag until its copy; -1: nothing to copy */
    EngCacheIndex *index = &store->index;
    int64_t misses = index->misses;
    for (int64_t i = -AHEAD; i < n + AHEAD; i++) {
        int64_t copy = i - AHEAD, ahead = i + AHEAD;
        uint64_t place;
        if (copy >= 0 && places[copy % RING] >= 0)
            copy_out(store, places[copy % RING], out, slots ? slots[copy] : copy);
        if (ahead < n) {
            __builtin_prefetch(eng_cache_record(index, rows[ahead], 1, &place), 1);
            places[ahead % RING] = (int64_t)place;
        }
        if (i < 0 || i >= n) continue;
        int64_t *mine = &places[i % RING];
        EngCacheAnswer answer = eng_cache_ask_tag(index, (uint64_t)*mine, rows[i]);
        *mine = take_answer(store, &w, rows[i], slots ? slots[i] : i, *mine, answer);
    }
    index->hits += n - (index->misses - misses);
    return w;
}

static Walk walk(CacheStore *store, const int64_t *rows, const int64_t *slots, int64_t n,
                 const EngRowsOut *out)
{
    switch (store->index.ways) {
    case 1:
        return walk_places(store, rows, slots, n, out);
    case 2:
        return walk_ways(store, rows, slots, n, out, 2);
    case 4:
        return walk_ways(store, rows, slots, n, out, 4);
    case 8:
        return walk_ways(store, rows, slots, n, out, 8);
    case 16:
        return walk_ways(store, rows, slots, n, out, 16);
    default:
        return walk_ways(store, rows, slots, n, out, 0);
    }
}

/* Fetched rows into their slots, unless a later row of the batch has taken one over. */
static void fill_slots(CacheStore *store, const Walk *w, const EngRowsOut *out)
{
    for (int64_t m = 0; m < w->misses; m++) {
        int64_t slot = store->miss_slots[m];
        if (store->filler[slot] != (uint32_t)m) continue;
        eng_cache_index_settle(&store->index, slot);
        copy_in(store, slot, out, store->miss_to[m]);
    }
    for (int64_t i = 0; i < w->late; i++)
        eng_copy_row(&store->sizes, out->values, out->scales, store->late[i].to, out->values,
                     out->scales, store->late[i].from);
}

static EngStatus read_rows(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    CacheStore *store = (CacheStore *)base;
    EngStatus status = make_room(store, n, err);
    if (status) return status;
    Walk w = walk(store, rows, slots, n, out);
    if (w.misses)
        status = store->inner->ops->read(store->inner, store->miss_rows, store->miss_to, w.misses,
                                         out, err);
    if (status) { /* slots given to rows that did not come hold others' bytes */
        eng_cache_index_clear(&store->index);
        return status;
    }
    fill_slots(store, &w, out);
    store->stats.batches++;
    store->stats.rows += n;
    store->stats.bytes_asked += n * (int64_t)(store->sizes.value + store->sizes.scale);
    return ENG_OK;
}

static void stats(const EngStore *base, EngStoreStats *out)
{
    const CacheStore *store = (const CacheStore *)base;
    eng_store_stats(store->inner, out);
    out->batches = store->stats.batches;
    out->rows = store->stats.rows;
    out->bytes_asked = store->stats.bytes_asked;
    out->hits += store->index.hits;
    out->misses += store->index.misses;
    out->evictions += store->index.evictions;
    out->memory_bytes +=
        (int64_t)(store->values.n + store->scales.n + eng_cache_index_bytes(&store->index) +
                  (size_t)store->index.capacity * sizeof *store->filler +
                  (size_t)store->room * (3 * sizeof(int64_t) + sizeof(Late)));
}

static void reset_stats(EngStore *base)
{
    CacheStore *store = (CacheStore *)base;
    store->stats = (EngStoreStats){0};
    store->index.hits = store->index.misses = store->index.evictions = 0;
    eng_store_reset_stats(store->inner);
}

/* All but the store below. */
static void free_cache(CacheStore *store)
{
    drop_room(store);
    eng_cache_index_fini(&store->index);
    eng_free(store->filler);
    eng_pages_unmap(&store->values);
    eng_pages_unmap(&store->scales);
    eng_free(store);
}

static void release(EngStore *base)
{
    eng_store_release(((CacheStore *)base)->inner);
}

static void destroy(EngStore *base)
{
    CacheStore *store = (CacheStore *)base;
    eng_store_destroy(store->inner);
    free_cache(store);
}

static const EngStoreOps g_ops = {
    .name = "cache",
    .read = read_rows,
    .stats = stats,
    .reset_stats = reset_stats,
    .release = release,
    .destroy = destroy,
};

static EngStatus map_part(EngPages *pages, size_t rows, size_t row_bytes, EngErr *err)
{
    size_t bytes;
    if (!row_bytes) return ENG_OK;
    if (!eng_mul_size(rows, row_bytes, &bytes))
        return ENG_FAIL(err, ENG_NO_MEMORY, "a cache of %zu rows does not fit memory", rows);
    EngStatus status = eng_memory_check(bytes, "cache", err);
    EngPageKind kind = bytes < HUGE_FROM ? ENG_PAGES_SMALL : ENG_PAGES_HUGE;
    return status ? status : eng_pages_map(pages, bytes, kind, err);
}

static EngStatus map_rows(CacheStore *store, EngErr *err)
{
    size_t n = (size_t)store->index.capacity;
    EngStatus status = map_part(&store->values, n, store->sizes.stride, err);
    if (!status) status = map_part(&store->scales, n, store->sizes.scale, err);
    if (!status)
        status = eng_alloc_or((void **)&store->filler, n, sizeof *store->filler, "cache", err);
    return status;
}

EngStatus eng_store_cache(EngStore *inner, const EngCacheOptions *options, EngStore **out,
                          EngErr *err)
{
    CacheStore *store;
    EngStatus status = eng_alloc_or((void **)&store, 1, sizeof *store, "cache store", err);
    if (status) return status;
    store->base = *inner;
    store->base.ops = &g_ops;
    store->inner = inner;
    store->sizes = eng_row_sizes(inner->format, inner->row_dims);
    status = eng_cache_index_init(&store->index, options, inner->rows, err);
    if (!status) status = map_rows(store, err);
    if (status)
        free_cache(store);
    else
        *out = &store->base;
    return status;
}
