/* Opening, checking and reading back a table file; see table_file.h. */
#include "kernels/store/table_file.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/store/table_header.h"

/* ---- opening ---- */

static EngStatus open_file(EngTableFile *file, size_t *bytes, EngErr *err)
{
    EngStatus status = eng_file_open_read(file->path, &file->fd, bytes, err);
    if (status != ENG_NOT_FOUND) return status;
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file", file->path);
}

static EngStatus read_header(EngTableFile *file, uint64_t bytes, uint8_t *page,
                             const uint8_t **checks_sum, EngErr *err)
{
    if (bytes < ENG_TABLE_FILE_PAGE)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: %" PRIu64 " bytes: not a table file", file->path,
                        bytes);
    EngStatus status = eng_file_read_at(file->fd, file->path, page, ENG_TABLE_FILE_PAGE, 0, err);
    if (!status) status = eng_table_header_read(file->path, page, file, checks_sum, err);
    if (status) return status;
    EngErr why = {0};
    if (eng_table_layout(file, &why))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: %s", file->path, why.text);
    if (bytes == file->file_bytes) return ENG_OK;
    return ENG_FAIL(err, ENG_BAD_DATA,
                    "%s: %s: %" PRIu64 " bytes, where %" PRId64 " %s rows of %d dims take %" PRIu64,
                    file->path, bytes < file->file_bytes ? "truncated" : "too long", bytes,
                    file->rows, eng_row_format_name(file->format), file->row_dims,
                    file->file_bytes);
}

static EngStatus read_checks(EngTableFile *file, const uint8_t *checks_sum, EngErr *err)
{
    uint8_t sum[ENG_DIGEST_BYTES];
    size_t n = eng_table_checks_bytes(file);
    EngStatus status = eng_alloc_or((void **)&file->checks, n, 1, "block checksums", err);
    if (!status)
        status = eng_file_read_at(file->fd, file->path, file->checks, n,
                                  eng_table_checks_offset(file), err);
    if (!status) status = eng_digest_raw(file->checks, n, sum, err);
    if (!status && memcmp(sum, checks_sum, sizeof sum))
        status =
            ENG_FAIL(err, ENG_BAD_DATA, "%s: damaged: the list of block checksums", file->path);
    return status;
}

EngStatus eng_table_file_open(const char *path, EngTableFile *file, EngErr *err)
{
    uint8_t page[ENG_TABLE_FILE_PAGE];
    const uint8_t *checks_sum = NULL;
    size_t bytes = 0;
    *file = (EngTableFile){.fd = -1, .path = eng_strdup(path)};
    if (!file->path) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    EngStatus status = open_file(file, &bytes, err);
    if (!status) status = read_header(file, bytes, page, &checks_sum, err);
    if (!status) status = read_checks(file, checks_sum, err);
    if (status) eng_table_file_close(file);
    return status;
}

void eng_table_file_close(EngTableFile *file)
{
    if (file->path && file->fd >= 0) close(file->fd);
    eng_free(file->path);
    eng_free(file->checks);
    eng_free(file->description);
    *file = (EngTableFile){.fd = -1};
}

/* ---- blocks ---- */

void eng_table_file_block(const EngTableFile *file, int64_t block, uint64_t *offset, size_t *bytes,
                          int64_t *first_row, int64_t *last_row)
{
    bool scales = block >= file->value_blocks;
    uint64_t total = scales ? file->scales_bytes : file->values_bytes;
    uint64_t at =
        (uint64_t)(scales ? block - file->value_blocks : block) * ENG_TABLE_FILE_BLOCK_BYTES;
    size_t stride = scales ? file->scale_bytes : file->stride_bytes;
    *bytes =
        total - at < ENG_TABLE_FILE_BLOCK_BYTES ? (size_t)(total - at) : ENG_TABLE_FILE_BLOCK_BYTES;
    *offset = (scales ? file->scales_offset : file->values_offset) + at;
    *first_row = (int64_t)(at / stride);
    *last_row = (int64_t)((at + *bytes + stride - 1) / stride);
}

EngStatus eng_table_file_check(const EngTableFile *file, int64_t block, const void *bytes,
                               EngErr *err)
{
    uint8_t sum[ENG_DIGEST_BYTES];
    uint64_t offset;
    size_t n;
    int64_t first, last;
    eng_table_file_block(file, block, &offset, &n, &first, &last);
    EngStatus status = eng_digest_raw(bytes, n, sum, err);
    if (status || !memcmp(sum, file->checks + block * ENG_TABLE_FILE_CHECK_BYTES, sizeof sum))
        return status;
    return ENG_FAIL(err, ENG_BAD_DATA,
                    "%s: checksum mismatch in block %" PRId64 " (%s of rows %" PRId64 " to %" PRId64
                    ", %zu bytes at %" PRIu64 ")",
                    file->path, block, block < file->value_blocks ? "values" : "scales", first,
                    last - 1, n, offset);
}

/* ---- verification ---- */

typedef struct Verify {
    const EngTableFile *file;
    int64_t n;
    uint8_t **buffers;             /* one a worker */
    atomic_int_fast64_t next, bad; /* bad: lowest block known to fail, n: none */
    pthread_mutex_t lock;          /* of err, which belongs to `bad` */
    EngErr err;
} Verify;

static void verify_blocks(void *context, int64_t worker)
{
    Verify *v = context;
    for (int64_t block; (block = atomic_fetch_add(&v->next, 1)) < atomic_load(&v->bad);) {
        EngErr err = {0};
        uint64_t offset;
        size_t n;
        int64_t first, last;
        eng_table_file_block(v->file, block, &offset, &n, &first, &last);
        EngStatus status =
            eng_file_read_at(v->file->fd, v->file->path, v->buffers[worker], n, offset, &err);
        if (!status) status = eng_table_file_check(v->file, block, v->buffers[worker], &err);
        if (!status) continue;
        pthread_mutex_lock(&v->lock);
        if (block < atomic_load(&v->bad)) {
            atomic_store(&v->bad, block);
            v->err = err;
        }
        pthread_mutex_unlock(&v->lock);
    }
}

EngStatus eng_table_file_verify(const EngTableFile *file, int threads, EngErr *err)
{
    Verify v = {.file = file, .n = file->value_blocks + file->scale_blocks};
    if (threads <= 0) threads = eng_processor_count();
    EngStatus status =
        eng_alloc_or((void **)&v.buffers, (size_t)threads, sizeof *v.buffers, "buffers", err);
    for (int i = 0; i < threads && !status; i++)
        status =
            eng_alloc_or((void **)&v.buffers[i], ENG_TABLE_FILE_BLOCK_BYTES, 1, "a block", err);
    if (status) goto done;
    pthread_mutex_init(&v.lock, NULL);
    atomic_init(&v.next, 0);
    atomic_init(&v.bad, v.n);
    eng_parallel_for(threads, threads, verify_blocks, &v);
    pthread_mutex_destroy(&v.lock);
    if (v.err.status) status = ENG_FAIL(err, v.err.status, "%s", v.err.text);
done:
    for (int i = 0; v.buffers && i < threads; i++) eng_free(v.buffers[i]);
    eng_free(v.buffers);
    return status;
}
