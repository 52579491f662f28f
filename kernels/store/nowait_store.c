/* nowait: the caller asks for every row with RWF_NOWAIT, which answers what the page cache holds
 * and refuses what would block; the refused rows go to the pool. Rows that are there cost no
 * wake-up of another thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/file.h"
#include "base/mem.h"
#include "kernels/store/pread_store.h"
#include "kernels/store/stores.h"

#define DEFAULT_THREADS 8

typedef struct NowaitStore {
    EngPreadStore pread;
    EngRowPart *refused; /* of the batch: requests for the pool */
    int64_t room;
    bool unsupported; /* by the file system: everything goes to the pool */
} NowaitStore;

static EngStatus read_refused(void *context, int thread, int64_t i, EngErr *err)
{
    const NowaitStore *store = context;
    (void)thread;
    return eng_file_store_fetch(&store->pread.file, &store->refused[i], NULL, err);
}

/* true: the part is there. A short answer is a part that is not all in the page cache. */
static bool try_now(NowaitStore *store, const EngRowPart *part)
{
    const EngFileStore *file = &store->pread.file;
    struct iovec to = {.iov_base = part->to, .iov_len = part->span};
    if (store->unsupported) return false;
    ssize_t got = preadv2(file->fd, &to, 1, (off_t)part->from, RWF_NOWAIT);
    if (got < 0 && (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS)) {
        store->unsupported = true;
        snprintf(store->pread.file.base.note, sizeof store->pread.file.base.note,
                 "RWF_NOWAIT is not supported here (%s): all rows go to the pool", strerror(errno));
    }
    return got == (ssize_t)part->span;
}

static EngStatus make_room(NowaitStore *store, int64_t n, EngErr *err)
{
    if (n <= store->room) return ENG_OK;
    eng_free(store->refused);
    store->room = 0;
    EngStatus status = eng_alloc_or((void **)&store->refused, (size_t)n, sizeof *store->refused,
                                    "requests of a batch", err);
    if (!status) store->room = n;
    return status;
}

static EngStatus read_rows(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    NowaitStore *store = (NowaitStore *)base;
    EngFileStore *file = &store->pread.file;
    EngPool *pool = store->pread.pool;
    int64_t refused = 0, requests = n * file->parts;
    EngStatus status = make_room(store, requests, err);
    if (status) return status;
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < file->parts; p++) {
            EngRowPart part = eng_file_store_part(file, p, rows[i], slots ? slots[i] : i, out);
            if (eng_file_read_fails()) return eng_file_store_take(file, &part, -EIO, NULL, err);
            if (!try_now(store, &part)) store->refused[refused++] = part;
        }
    if (refused)
        status =
            eng_pool_run(pool, refused, eng_pool_chunk(pool, refused), read_refused, store, err);
    if (status) return status;
    file->stats.ready += requests - refused;
    eng_file_store_finish(file, rows, slots, n, out);
    return ENG_OK;
}

static void destroy(EngStore *base)
{
    NowaitStore *store = (NowaitStore *)base;
    eng_pread_store_fini(&store->pread);
    eng_free(store->refused);
    eng_free(store);
}

static const EngStoreOps g_ops = {
    .name = "nowait",
    .read = read_rows,
    .stats = eng_file_store_stats,
    .reset_stats = eng_file_store_reset_stats,
    .destroy = destroy,
};

EngStatus eng_nowait_store_open(const char *path, const EngStoreOptions *options, EngStore **out,
                                EngErr *err)
{
    NowaitStore *store;
    if (options->direct)
        return ENG_FAIL(err, ENG_USAGE, "nowait store: direct reads pass the page cache by");
    EngStatus status = eng_alloc_or((void **)&store, 1, sizeof *store, "nowait store", err);
    if (status) return status;
    status = eng_pread_store_init(&store->pread, &g_ops, path, options, DEFAULT_THREADS, err);
    if (status)
        eng_free(store);
    else
        *out = &store->pread.file.base;
    return status;
}
