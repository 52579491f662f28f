/* dedup: the distinct rows of a batch are fetched once, each into the first place that wants it,
 * and copied to the others. Rows are found by an open hash table over the batch, cleared by
 * counting up its stamp; entries of rows further on are asked of memory ahead.
 */
#include <string.h>

#include "base/mem.h"
#include "kernels/store/copy.h"
#include "kernels/store/stores.h"

typedef struct Entry {
    int64_t row;
    uint32_t stamp; /* of the batch that wrote it */
    uint32_t first; /* place of the batch that asked first */
} Entry;

typedef struct Copy {
    int64_t from, to; /* slots */
} Copy;

typedef struct DedupStore {
    EngStore base;
    EngStore *inner;
    EngRowSizes sizes;
    int64_t room; /* places that a batch may have, without new memory */
    Entry *entries;
    uint64_t mask; /* entries - 1 */
    uint32_t stamp;
    int64_t *rows, *slots; /* [room] to fetch */
    Copy *copies;          /* [room] */
    EngStoreStats stats;
} DedupStore;

static void drop_room(DedupStore *store)
{
    eng_free(store->entries);
    eng_free(store->rows);
    eng_free(store->slots);
    eng_free(store->copies);
    store->entries = NULL;
    store->rows = store->slots = NULL;
    store->copies = NULL;
    store->room = 0;
}

static EngStatus make_room(DedupStore *store, int64_t n, EngErr *err)
{
    const char *what = "rows of a batch";
    size_t count = (size_t)n, entries = 16;
    if (n <= store->room) return ENG_OK;
    if (n > UINT32_MAX) return ENG_FAIL(err, ENG_USAGE, "dedup store: %lld rows", (long long)n);
    drop_room(store);
    while (entries < 2 * count) entries *= 2;
    EngStatus status =
        eng_alloc_or((void **)&store->entries, entries, sizeof *store->entries, what, err);
    if (!status)
        status = eng_alloc_or((void **)&store->rows, count, sizeof *store->rows, what, err);
    if (!status)
        status = eng_alloc_or((void **)&store->slots, count, sizeof *store->slots, what, err);
    if (!status)
        status = eng_alloc_or((void **)&store->copies, count, sizeof *store->copies, what, err);
    if (status) return drop_room(store), status;
    store->mask = entries - 1;
    store->stamp = 0;
    store->room = n;
    return ENG_OK;
}

static uint64_t entry_of(const DedupStore *store, int64_t row)
{
    uint64_t at = (uint64_t)row * 0x9e3779b97f4a7c15u;
    return (at ^ at >> 32) & store->mask;
}

/* The place that asked for the row first: `place` itself when it is new. */
static uint32_t first_place(DedupStore *store, int64_t row, uint32_t place)
{
    uint64_t at = entry_of(store, row);
    while (store->entries[at].stamp == store->stamp) {
        if (store->entries[at].row == row) return store->entries[at].first;
        at = (at + 1) & store->mask;
    }
    store->entries[at] = (Entry){row, store->stamp, place};
    return place;
}

static EngStatus read_rows(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    DedupStore *store = (DedupStore *)base;
    int64_t distinct = 0, copies = 0;
    EngStatus status = make_room(store, n, err);
    if (status) return status;
    if (!++store->stamp) { /* after 2^32 batches old stamps would look new */
        memset(store->entries, 0, (store->mask + 1) * sizeof *store->entries);
        store->stamp = 1;
    }
    for (int64_t i = 0; i < n; i++) {
        if (i + ENG_COPY_AHEAD < n)
            __builtin_prefetch(&store->entries[entry_of(store, rows[i + ENG_COPY_AHEAD])], 1);
        uint32_t first = first_place(store, rows[i], (uint32_t)i);
        int64_t slot = slots ? slots[i] : i;
        if (first == i) {
            store->rows[distinct] = rows[i];
            store->slots[distinct++] = slot;
        } else {
            store->copies[copies++] = (Copy){slots ? slots[first] : first, slot};
        }
    }
    status = store->inner->ops->read(store->inner, store->rows, store->slots, distinct, out, err);
    if (status) return status;
    for (int64_t i = 0; i < copies; i++)
        eng_copy_row(&store->sizes, out->values, out->scales, store->copies[i].to, out->values,
                     out->scales, store->copies[i].from);
    store->stats.batches++;
    store->stats.rows += n;
    store->stats.bytes_asked += n * (int64_t)(store->sizes.value + store->sizes.scale);
    store->stats.duplicates += copies;
    return ENG_OK;
}

static void stats(const EngStore *base, EngStoreStats *out)
{
    const DedupStore *store = (const DedupStore *)base;
    eng_store_stats(store->inner, out);
    out->batches = store->stats.batches;
    out->rows = store->stats.rows;
    out->bytes_asked = store->stats.bytes_asked;
    out->duplicates += store->stats.duplicates;
    out->memory_bytes += store->entries
                             ? (int64_t)((store->mask + 1) * sizeof *store->entries) +
                                   store->room * (int64_t)(2 * sizeof(int64_t) + sizeof(Copy))
                             : 0;
}

static void reset_stats(EngStore *base)
{
    DedupStore *store = (DedupStore *)base;
    store->stats = (EngStoreStats){0};
    eng_store_reset_stats(store->inner);
}

static void release(EngStore *base)
{
    eng_store_release(((DedupStore *)base)->inner);
}

static void destroy(EngStore *base)
{
    DedupStore *store = (DedupStore *)base;
    drop_room(store);
    eng_store_destroy(store->inner);
    eng_free(store);
}

static const EngStoreOps g_ops = {
    .name = "dedup",
    .read = read_rows,
    .stats = stats,
    .reset_stats = reset_stats,
    .release = release,
    .destroy = destroy,
};

EngStatus eng_store_dedup(EngStore *inner, EngStore **out, EngErr *err)
{
    DedupStore *store;
    EngStatus status = eng_alloc_or((void **)&store, 1, sizeof *store, "dedup store", err);
    if (status) return status;
    store->base = *inner;
    store->base.ops = &g_ops;
    store->inner = inner;
    store->sizes = eng_row_sizes(inner->format, inner->row_dims);
    *out = &store->base;
    return ENG_OK;
}
