/* Stores over a table file; see file_store.h. */
#include "kernels/store/file_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "kernels/store/memory.h"

#define DEFAULT_BLOCK 4096
#define LEAST_BLOCK   512
#define MOST_BLOCK    65536

/* ---- opening -----------------------------------------------------------------------------------
 */

/* A second descriptor past the page cache, proven by reading the header page. */
static EngStatus open_direct(EngFileStore *store, EngErr *err)
{
    const char *path = store->file.path;
    store->fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (store->fd < 0)
        return ENG_FAIL(err, errno == EINVAL ? ENG_UNSUPPORTED : ENG_IO,
                        "%s: cannot open for direct reads: %s", path, strerror(errno));
    EngPages probe;
    EngStatus status = eng_pages_map(&probe, store->block, ENG_PAGES_SMALL, err);
    if (status) return status;
    ssize_t got = pread(store->fd, probe.bytes, store->block, 0);
    int why = errno;
    eng_pages_unmap(&probe);
    if (got == (ssize_t)store->block) return ENG_OK;
    return ENG_FAIL(err, got < 0 && why == EINVAL ? ENG_UNSUPPORTED : ENG_IO,
                    "%s: no direct reads of %zu bytes: %s", path, store->block,
                    got < 0 ? strerror(why) : "short read");
}

/* Block by block, each compared with its checksum. */
static EngStatus load_scales(EngFileStore *store, EngErr *err)
{
    const EngTableFile *file = &store->file;
    EngStatus status = eng_memory_check(file->scales_bytes, "scales in memory", err);
    if (!status)
        status = eng_alloc_or((void **)&store->scales, file->scales_bytes, 1, "scales", err);
    for (int64_t b = 0; b < file->scale_blocks && !status; b++) {
        uint64_t offset;
        size_t bytes;
        int64_t first, last;
        eng_table_file_block(file, file->value_blocks + b, &offset, &bytes, &first, &last);
        uint8_t *to = store->scales + (offset - file->scales_offset);
        EngRowPart part = {.row = first, .from = offset, .span = bytes, .bytes = bytes, .to = to};
        status = eng_file_store_fetch(store, &part, NULL, err);
        if (!status) status = eng_table_file_check(file, file->value_blocks + b, to, err);
    }
    return status;
}

static EngStatus check_block(size_t block, EngErr *err)
{
    if (block >= LEAST_BLOCK && block <= MOST_BLOCK && !(block & (block - 1))) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE,
                    "direct reads of %zu bytes: a power of two from %d to %d is due", block,
                    LEAST_BLOCK, MOST_BLOCK);
}

EngStatus eng_file_store_open(EngFileStore *store, const EngStoreOps *ops, const char *path,
                              const EngStoreOptions *options, EngErr *err)
{
    EngTableFile *file = &store->file;
    store->fd = -1;
    EngStatus status = eng_table_file_open(path, file, err);
    if (status) return status;
    store->base = (EngStore){
        .ops = ops, .format = file->format, .row_dims = file->row_dims, .rows = file->rows};
    store->block = 1;
    store->fd = file->fd;
    if (options->verify) status = eng_table_file_verify(file, 0, err);
    if (!status && options->scales_in_memory && file->scale_bytes) status = load_scales(store, err);
    store->parts = file->scale_bytes && !store->scales ? 2 : 1;
    if (!status && options->direct) {
        store->block = options->block_bytes ? options->block_bytes : DEFAULT_BLOCK;
        status = check_block(store->block, err);
        if (!status) status = open_direct(store, err);
    }
    /* A part may begin at the last byte of a block. */
    size_t part = eng_row_value_bytes(file->format, file->row_dims);
    store->span_bytes = (part + 2 * store->block - 2) / store->block * store->block;
    if (status) eng_file_store_close(store);
    return status;
}

void eng_file_store_close(EngFileStore *store)
{
    if (store->fd >= 0 && store->fd != store->file.fd) close(store->fd);
    store->fd = -1;
    eng_free(store->scales);
    store->scales = NULL;
    eng_table_file_close(&store->file);
}

EngStatus eng_file_store_bounce(const EngFileStore *store, int n, EngPages *buffers, EngErr *err)
{
    size_t bytes;
    *buffers = (EngPages){0};
    if (store->block == 1) return ENG_OK;
    if (!eng_mul_size((size_t)n, store->span_bytes, &bytes))
        return ENG_FAIL(err, ENG_NO_MEMORY, "%d read buffers of %zu bytes overflow memory", n,
                        store->span_bytes);
    return eng_pages_map(buffers, bytes, ENG_PAGES_SMALL, err);
}

/* ---- requests ----------------------------------------------------------------------------------
 */

EngRowPart eng_file_store_part(const EngFileStore *store, int part, int64_t row, int64_t slot,
                               const EngRowsOut *out)
{
    const EngTableFile *file = &store->file;
    EngRowPart p = {.row = row};
    uint64_t at;
    if (part == 0) {
        at = file->values_offset + (uint64_t)row * file->stride_bytes;
        p.bytes = eng_row_value_bytes(file->format, file->row_dims);
        p.to = out->values + (size_t)slot * file->stride_bytes;
    } else {
        at = file->scales_offset + (uint64_t)row * file->scale_bytes;
        p.bytes = file->scale_bytes;
        p.to = out->scales + (size_t)slot * file->scale_bytes;
    }
    p.from = at & ~(uint64_t)(store->block - 1);
    p.skip = (size_t)(at - p.from);
    p.span = (p.skip + p.bytes + store->block - 1) & ~(store->block - 1);
    return p;
}

EngStatus eng_file_store_take(const EngFileStore *store, const EngRowPart *part, int64_t got,
                              const uint8_t *bounce, EngErr *err)
{
    const char *path = store->file.path;
    if (got < 0)
        return ENG_FAIL(err, ENG_IO,
                        "%s: row %" PRId64 ": cannot read %zu bytes at %" PRIu64 ": %s", path,
                        part->row, part->span, part->from, strerror((int)-got));
    if ((uint64_t)got < part->skip + part->bytes)
        return ENG_FAIL(err, ENG_BAD_DATA,
                        "%s: row %" PRId64 ": the file ends before its %zu bytes at %" PRIu64
                        " do; it was cut short while open",
                        path, part->row, part->bytes, part->from + part->skip);
    if (bounce) memcpy(part->to, bounce + part->skip, part->bytes);
    return ENG_OK;
}

EngStatus eng_file_store_fetch(const EngFileStore *store, const EngRowPart *part, uint8_t *bounce,
                               EngErr *err)
{
    uint8_t *to = bounce ? bounce : part->to;
    size_t done = 0;
    if (eng_file_read_fails()) return eng_file_store_take(store, part, -EIO, NULL, err);
    while (done < part->span) {
        ssize_t got = pread(store->fd, to + done, part->span - done, (off_t)(part->from + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return eng_file_store_take(store, part, -errno, NULL, err);
        if (!got) break;
        done += (size_t)got;
        if (bounce && done % store->block) break; /* the end of the file: nothing follows */
    }
    return eng_file_store_take(store, part, (int64_t)done, bounce, err);
}

/* ---- counts ------------------------------------------------------------------------------------
 */

void eng_file_store_finish(EngFileStore *store, const int64_t *rows, const int64_t *slots,
                           int64_t n, const EngRowsOut *out)
{
    const EngTableFile *file = &store->file;
    EngStoreStats *stats = &store->stats;
    size_t value_bytes = eng_row_value_bytes(file->format, file->row_dims);
    size_t each = file->scale_bytes;
    for (int64_t i = 0; store->scales && i < n; i++)
        memcpy(out->scales + (size_t)(slots ? slots[i] : i) * each,
               store->scales + (size_t)rows[i] * each, each);
    stats->batches++;
    stats->rows += n;
    stats->bytes_asked += n * (int64_t)(value_bytes + each);
    stats->requests += n * store->parts;
    if (store->block == 1) {
        stats->bytes_read += n * (int64_t)(value_bytes + (store->parts > 1 ? each : 0));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < store->parts; p++)
            stats->bytes_read += (int64_t)eng_file_store_part(store, p, rows[i], 0, out).span;
}

void eng_file_store_stats(const EngStore *base, EngStoreStats *stats)
{
    const EngFileStore *store = (const EngFileStore *)base;
    *stats = store->stats;
    if (store->scales) stats->memory_bytes += (int64_t)store->file.scales_bytes;
}

void eng_file_store_reset_stats(EngStore *base)
{
    EngFileStore *store = (EngFileStore *)base;
    store->stats = (EngStoreStats){.memory_bytes = store->stats.memory_bytes};
}
