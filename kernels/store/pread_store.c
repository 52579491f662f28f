/* pread: a pool of threads, one pread per row (two where scales lie apart); buffered or direct. */
#include "kernels/store/pread_store.h"

#include "base/mem.h"
#include "kernels/store/stores.h"

#define DEFAULT_THREADS 8

typedef struct Batch {
    EngPreadStore *store;
    const int64_t *rows, *slots;
    const EngRowsOut *out;
} Batch;

EngStatus eng_pread_store_init(EngPreadStore *store, const EngStoreOps *ops, const char *path,
                               const EngStoreOptions *options, int default_threads, EngErr *err)
{
    int threads = options->threads ? options->threads : default_threads;
    EngStatus status = eng_file_store_open(&store->file, ops, path, options, err);
    if (status) return status;
    status = eng_pool_create(threads, &store->pool, err);
    if (!status) status = eng_file_store_bounce(&store->file, threads, &store->bounce, err);
    store->file.stats.memory_bytes = (int64_t)store->bounce.n;
    if (status) eng_pread_store_fini(store);
    return status;
}

void eng_pread_store_fini(EngPreadStore *store)
{
    eng_pool_destroy(store->pool);
    eng_pages_unmap(&store->bounce);
    eng_file_store_close(&store->file);
}

static EngStatus read_row(void *context, int thread, int64_t i, EngErr *err)
{
    const Batch *batch = context;
    const EngPreadStore *store = batch->store;
    const EngFileStore *file = &store->file;
    uint8_t *bounce =
        store->bounce.n ? store->bounce.bytes + (size_t)thread * file->span_bytes : NULL;
    EngStatus status = ENG_OK;
    for (int p = 0; p < file->parts && !status; p++) {
        EngRowPart part = eng_file_store_part(file, p, batch->rows[i],
                                              batch->slots ? batch->slots[i] : i, batch->out);
        status = eng_file_store_fetch(file, &part, bounce, err);
    }
    return status;
}

static EngStatus read_rows(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    EngPreadStore *store = (EngPreadStore *)base;
    Batch batch = {store, rows, slots, out};
    EngStatus status =
        eng_pool_run(store->pool, n, eng_pool_chunk(store->pool, n), read_row, &batch, err);
    if (!status) eng_file_store_finish(&store->file, rows, slots, n, out);
    return status;
}

static void destroy(EngStore *base)
{
    eng_pread_store_fini((EngPreadStore *)base);
    eng_free(base);
}

static const EngStoreOps g_ops = {
    .name = "pread",
    .read = read_rows,
    .stats = eng_file_store_stats,
    .reset_stats = eng_file_store_reset_stats,
    .destroy = destroy,
};

EngStatus eng_pread_store_open(const char *path, const EngStoreOptions *options, EngStore **out,
                               EngErr *err)
{
    EngPreadStore *store;
    EngStatus status = eng_alloc_or((void **)&store, 1, sizeof *store, "pread store", err);
    if (status) return status;
    status = eng_pread_store_init(store, &g_ops, path, options, DEFAULT_THREADS, err);
    if (status)
        eng_free(store);
    else
        *out = &store->file.base;
    return status;
}
