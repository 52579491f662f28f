/* sharded: row ranges that tile the table, as ranks of the reference engine hold them. Every shard
 * answers the whole batch side by side, zeros where a row is another's, and the answers are summed.
 *
 * The sum is one of integers over the rows' bytes, eight at a time: all but one answer are zero
 * bytes, so it carries nothing and gives back every bit. A sum of floating point numbers would
 * not: -0 + 0 is +0, and a NaN may lose its payload.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/store/copy.h"
#include "kernels/store/pool.h"
#include "kernels/store/stores.h"

typedef struct Shard {
    EngStore *store;
    int64_t first, last;      /* rows [first, last) */
    int64_t *rows, *slots;    /* [room] its own of the batch */
    uint8_t *values, *scales; /* [room] its answer */
} Shard;

typedef struct ShardedStore {
    EngStore base;
    EngRowSizes sizes;
    int n;
    Shard *shards;
    EngPool *pool;
    int64_t room;
    EngStoreStats stats;
} ShardedStore;

typedef struct Batch {
    ShardedStore *store;
    const int64_t *rows;
    int64_t n;
} Batch;

static void drop_room(ShardedStore *store)
{
    for (int s = 0; s < store->n; s++) {
        Shard *shard = &store->shards[s];
        eng_free(shard->rows);
        eng_free(shard->slots);
        eng_free(shard->values);
        eng_free(shard->scales);
        shard->rows = shard->slots = NULL;
        shard->values = shard->scales = NULL;
    }
    store->room = 0;
}

static EngStatus make_room(ShardedStore *store, int64_t n, EngErr *err)
{
    const char *what = "a shard's answer";
    size_t count = (size_t)n;
    EngStatus status = ENG_OK;
    if (n <= store->room) return ENG_OK;
    drop_room(store);
    for (int s = 0; s < store->n && !status; s++) {
        Shard *shard = &store->shards[s];
        status = eng_alloc_or((void **)&shard->rows, count, sizeof *shard->rows, what, err);
        if (!status)
            status = eng_alloc_or((void **)&shard->slots, count, sizeof *shard->slots, what, err);
        if (!status)
            status = eng_alloc_or((void **)&shard->values, count, store->sizes.stride, what, err);
        if (!status && store->sizes.scale)
            status = eng_alloc_or((void **)&shard->scales, count, store->sizes.scale, what, err);
    }
    if (status)
        drop_room(store);
    else
        store->room = n;
    return status;
}

/* Shard s answers the batch. */
static EngStatus answer(void *context, int thread, int64_t s, EngErr *err)
{
    const Batch *batch = context;
    const EngRowSizes *sizes = &batch->store->sizes;
    Shard *shard = &batch->store->shards[s];
    int64_t own = 0;
    (void)thread;
    memset(shard->values, 0, (size_t)batch->n * sizes->stride);
    if (sizes->scale) memset(shard->scales, 0, (size_t)batch->n * sizes->scale);
    for (int64_t i = 0; i < batch->n; i++) {
        if (batch->rows[i] < shard->first || batch->rows[i] >= shard->last) continue;
        shard->rows[own] = batch->rows[i];
        shard->slots[own++] = i;
    }
    EngRowsOut out = {shard->values, shard->scales};
    if (!own) return ENG_OK;
    EngStatus status =
        shard->store->ops->read(shard->store, shard->rows, shard->slots, own, &out, err);
    return status ? eng_err_prefix(err, "shard %d", (int)s) : ENG_OK;
}

/* to += from, as integers. */
static void add_bytes(uint8_t *to, const uint8_t *from, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t a, b;
        memcpy(&a, to + i, 8);
        memcpy(&b, from + i, 8);
        a += b;
        memcpy(to + i, &a, 8);
    }
    for (; i < n; i++) to[i] = (uint8_t)(to[i] + from[i]);
}

static void sum_row(const ShardedStore *store, int64_t i, int64_t slot, const EngRowsOut *out)
{
    const EngRowSizes *sizes = &store->sizes;
    uint8_t *values = out->values + (size_t)slot * sizes->stride;
    uint8_t *scales = sizes->scale ? out->scales + (size_t)slot * sizes->scale : NULL;
    memcpy(values, store->shards[0].values + (size_t)i * sizes->stride, sizes->value);
    if (scales) memcpy(scales, store->shards[0].scales + (size_t)i * sizes->scale, sizes->scale);
    for (int s = 1; s < store->n; s++) {
        add_bytes(values, store->shards[s].values + (size_t)i * sizes->stride, sizes->value);
        if (scales)
            add_bytes(scales, store->shards[s].scales + (size_t)i * sizes->scale, sizes->scale);
    }
}

static EngStatus read_rows(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    ShardedStore *store = (ShardedStore *)base;
    Batch batch = {store, rows, n};
    EngStatus status = make_room(store, n, err);
    if (!status) status = eng_pool_run(store->pool, store->n, 1, answer, &batch, err);
    if (status) return status;
    for (int64_t i = 0; i < n; i++) sum_row(store, i, slots ? slots[i] : i, out);
    store->stats.batches++;
    store->stats.rows += n;
    store->stats.bytes_asked += n * (int64_t)(store->sizes.value + store->sizes.scale);
    return ENG_OK;
}

static void stats(const EngStore *base, EngStoreStats *out)
{
    const ShardedStore *store = (const ShardedStore *)base;
    size_t each = 2 * sizeof(int64_t) + store->sizes.stride + store->sizes.scale;
    *out = store->stats;
    out->memory_bytes = (int64_t)((size_t)store->room * (size_t)store->n * each);
    for (int s = 0; s < store->n; s++) {
        EngStoreStats one;
        eng_store_stats(store->shards[s].store, &one);
        out->requests += one.requests;
        out->bytes_read += one.bytes_read;
        out->ready += one.ready;
        out->hits += one.hits;
        out->misses += one.misses;
        out->evictions += one.evictions;
        out->duplicates += one.duplicates;
        out->memory_bytes += one.memory_bytes;
    }
}

static void reset_stats(EngStore *base)
{
    ShardedStore *store = (ShardedStore *)base;
    store->stats = (EngStoreStats){0};
    for (int s = 0; s < store->n; s++) eng_store_reset_stats(store->shards[s].store);
}

static void release(EngStore *base)
{
    ShardedStore *store = (ShardedStore *)base;
    for (int s = 0; s < store->n; s++) eng_store_release(store->shards[s].store);
}

static void destroy(EngStore *base)
{
    ShardedStore *store = (ShardedStore *)base;
    eng_pool_destroy(store->pool);
    drop_room(store);
    for (int s = 0; s < store->n; s++) eng_store_destroy(store->shards[s].store);
    eng_free(store->shards);
    eng_free(store);
}

static const EngStoreOps g_ops = {
    .name = "sharded",
    .read = read_rows,
    .stats = stats,
    .reset_stats = reset_stats,
    .release = release,
    .destroy = destroy,
};

static EngStatus check_shards(EngStore *const *shards, const int64_t *starts, int n, EngErr *err)
{
    if (n < 1 || n > ENG_STORE_MAX_THREADS)
        return ENG_FAIL(err, ENG_USAGE, "sharded store: %d shards, 1 to %d are possible", n,
                        ENG_STORE_MAX_THREADS);
    for (int s = 0; s < n; s++) {
        if (shards[s]->rows != shards[0]->rows || shards[s]->format != shards[0]->format ||
            shards[s]->row_dims != shards[0]->row_dims)
            return ENG_FAIL(err, ENG_USAGE, "sharded store: shard %d is of another table", s);
        if (starts[s] > starts[s + 1])
            return ENG_FAIL(err, ENG_USAGE,
                            "sharded store: shard %d would own rows %" PRId64 " to %" PRId64, s,
                            starts[s], starts[s + 1]);
    }
    if (starts[0] || starts[n] != shards[0]->rows)
        return ENG_FAIL(err, ENG_USAGE,
                        "sharded store: rows %" PRId64 " to %" PRId64
                        " do not tile a table of %" PRId64,
                        starts[0], starts[n], shards[0]->rows);
    return ENG_OK;
}

EngStatus eng_store_sharded(EngStore *const *shards, const int64_t *starts, int n, EngStore **out,
                            EngErr *err)
{
    ShardedStore *store = NULL;
    EngStatus status = check_shards(shards, starts, n, err);
    if (!status) status = eng_alloc_or((void **)&store, 1, sizeof *store, "sharded store", err);
    if (!status)
        status =
            eng_alloc_or((void **)&store->shards, (size_t)n, sizeof *store->shards, "shards", err);
    if (!status) status = eng_pool_create(n, &store->pool, err);
    if (status) { /* the shards stay the caller's */
        if (store) eng_free(store->shards);
        eng_free(store);
        return status;
    }
    store->base = *shards[0];
    store->base.ops = &g_ops;
    store->sizes = eng_row_sizes(store->base.format, store->base.row_dims);
    store->n = n;
    for (int s = 0; s < n; s++)
        store->shards[s] = (Shard){.store = shards[s], .first = starts[s], .last = starts[s + 1]};
    *out = &store->base;
    return ENG_OK;
}
