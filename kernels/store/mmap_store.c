/* mmap: rows are copied out of a mapping of the whole file, so that a page fault is the read.
 *
 * A file that is cut short while mapped shows itself in two ways, and both become errors: access
 * beyond its last page raises SIGBUS (guard.h), and the rest of its last page reads as zeros, which
 * the size of the file after the batch gives away.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "kernels/store/copy.h"
#include "kernels/store/file_store.h"
#include "kernels/store/guard.h"
#include "kernels/store/pool.h"
#include "kernels/store/stores.h"

#define PAGE ((uintptr_t)4096)

typedef struct MmapStore {
    EngFileStore file;
    EngPool *pool;
    const uint8_t *map; /* the whole file */
    EngMapAdvice advice;
    EngRowSizes sizes;
} MmapStore;

typedef struct Batch {
    const MmapStore *store;
    const int64_t *rows, *slots;
    const EngRowsOut *out;
    int64_t n, chunk;
} Batch;

typedef struct Chunk {
    const Batch *batch;
    int64_t from, to;
} Chunk;

static void will_need(const uint8_t *at, size_t bytes)
{
    uintptr_t first = (uintptr_t)at & ~(PAGE - 1), last = (uintptr_t)at + bytes;
    madvise((void *)first, last - first, MADV_WILLNEED); /* advice: nothing depends on it */
}

static const uint8_t *values_of(const MmapStore *store)
{
    return store->map + store->file.file.values_offset;
}

static const uint8_t *scales_of(const MmapStore *store)
{
    return store->file.parts > 1 ? store->map + store->file.file.scales_offset : NULL;
}

static void copy_chunk(void *context)
{
    const Chunk *chunk = context;
    const Batch *batch = chunk->batch;
    const MmapStore *store = batch->store;
    const uint8_t *values = values_of(store), *scales = scales_of(store);
    EngRowSizes sizes = store->sizes;
    if (!scales) sizes.scale = 0; /* in memory: copied after the batch */
    for (int64_t i = chunk->from; i < chunk->to; i++)
        eng_copy_row(&sizes, batch->out->values, batch->out->scales,
                     batch->slots ? batch->slots[i] : i, values, scales, batch->rows[i]);
}

static EngStatus read_chunk(void *context, int thread, int64_t index, EngErr *err)
{
    const Batch *batch = context;
    const EngTableFile *file = &batch->store->file.file;
    int64_t to = (index + 1) * batch->chunk;
    Chunk chunk = {batch, index * batch->chunk, to < batch->n ? to : batch->n};
    uintptr_t at;
    (void)thread;
    for (int64_t i = chunk.from; i < chunk.to; i++)
        if (eng_file_read_fails())
            return ENG_FAIL(err, ENG_IO, "%s: row %" PRId64 ": cannot read: %s", file->path,
                            batch->rows[i], strerror(EIO));
    if (eng_guarded(copy_chunk, &chunk, &at)) return ENG_OK;
    uint64_t offset = at - (uintptr_t)batch->store->map;
    struct stat now;
    if (!fstat(file->fd, &now) && (uint64_t)now.st_size >= file->file_bytes)
        return ENG_FAIL(err, ENG_IO,
                        "%s: rows %" PRId64 " and following of a batch: cannot read at %" PRIu64
                        ": %s",
                        file->path, batch->rows[chunk.from], offset, strerror(EIO));
    return ENG_FAIL(err, ENG_BAD_DATA,
                    "%s: rows %" PRId64 " and following of a batch: nothing at %" PRIu64
                    "; the file was cut short while open",
                    file->path, batch->rows[chunk.from], offset);
}

/* The last page of a shortened file reads as zeros. */
static EngStatus check_size(const MmapStore *store, EngErr *err)
{
    const EngTableFile *file = &store->file.file;
    struct stat now;
    if (fstat(file->fd, &now))
        return ENG_FAIL(err, ENG_IO, "%s: cannot look at it: %s", file->path, strerror(errno));
    if ((uint64_t)now.st_size == file->file_bytes) return ENG_OK;
    return ENG_FAIL(err, ENG_BAD_DATA,
                    "%s: %" PRId64 " bytes where %" PRIu64 " were: it was changed while open",
                    file->path, (int64_t)now.st_size, file->file_bytes);
}

static EngStatus read_rows(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    MmapStore *store = (MmapStore *)base;
    Batch batch = {store, rows, slots, out, n, eng_pool_chunk(store->pool, n)};
    if (store->advice == ENG_ADVICE_WILLNEED)
        for (int64_t i = 0; i < n; i++) {
            will_need(values_of(store) + (size_t)rows[i] * store->sizes.stride, store->sizes.value);
            if (store->file.parts > 1)
                will_need(scales_of(store) + (size_t)rows[i] * store->sizes.scale,
                          store->sizes.scale);
        }
    EngStatus status =
        eng_pool_run(store->pool, (n + batch.chunk - 1) / batch.chunk, 1, read_chunk, &batch, err);
    if (!status) status = check_size(store, err);
    if (!status) eng_file_store_finish(&store->file, rows, slots, n, out);
    return status;
}

static void release(EngStore *base)
{
    const MmapStore *store = (const MmapStore *)base;
    madvise((void *)store->map, store->file.file.file_bytes, MADV_DONTNEED);
}

static void destroy(EngStore *base)
{
    MmapStore *store = (MmapStore *)base;
    eng_pool_destroy(store->pool);
    if (store->map) munmap((void *)store->map, store->file.file.file_bytes);
    eng_file_store_close(&store->file);
    eng_free(store);
}

static void stats(const EngStore *base, EngStoreStats *out)
{
    eng_file_store_stats(base, out);
    out->requests = out->bytes_read = 0; /* the operating system's, and it does not say */
}

static const EngStoreOps g_ops = {
    .name = "mmap",
    .read = read_rows,
    .stats = stats,
    .reset_stats = eng_file_store_reset_stats,
    .release = release,
    .destroy = destroy,
};

static EngStatus map_file(MmapStore *store, EngErr *err)
{
    const EngTableFile *file = &store->file.file;
    void *map = mmap(NULL, file->file_bytes, PROT_READ, MAP_SHARED, file->fd, 0);
    if (map == MAP_FAILED)
        return ENG_FAIL(err, errno == ENOMEM ? ENG_NO_MEMORY : ENG_IO, "%s: cannot map: %s",
                        file->path, strerror(errno));
    store->map = map;
    if (store->advice != ENG_ADVICE_NORMAL) madvise(map, file->file_bytes, MADV_RANDOM);
    eng_guard_install();
    return ENG_OK;
}

EngStatus eng_mmap_store_open(const char *path, const EngStoreOptions *options, EngStore **out,
                              EngErr *err)
{
    MmapStore *store;
    if (options->direct)
        return ENG_FAIL(err, ENG_USAGE,
                        "mmap store: a mapping lies in the page cache, direct "
                        "reads pass it by");
    EngStatus status = eng_alloc_or((void **)&store, 1, sizeof *store, "mmap store", err);
    if (status) return status;
    store->advice = options->advice;
    status = eng_file_store_open(&store->file, &g_ops, path, options, err);
    if (status) {
        eng_free(store);
        return status;
    }
    store->sizes = eng_row_sizes(store->file.base.format, store->file.base.row_dims);
    status = eng_pool_create(options->threads ? options->threads : 1, &store->pool, err);
    if (!status) status = map_file(store, err);
    if (status)
        destroy(&store->file.base);
    else
        *out = &store->file.base;
    return status;
}
