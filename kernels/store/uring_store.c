/* uring: io_uring with up to `depth` requests in flight, one per row (two where scales lie apart).
 *
 * The file is registered. Direct requests land in registered buffers, one per place in the queue,
 * and rows are copied out of them; buffered ones land where the row is due. Before a batch returns,
 * for better or worse, nothing of it is in flight.
 */
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/file.h"
#include "base/mem.h"
#include "kernels/store/file_store.h"
#include "kernels/store/stores.h"

#define DEFAULT_DEPTH         64
#define MOST_FALLBACK_THREADS 32

typedef struct UringStore {
    EngFileStore file;
    struct io_uring ring;
    bool ring_open, buffers_registered;
    bool broken; /* it took no more requests: what was in flight is unknown */
    int depth;
    EngPages bounce;      /* [depth] buffers, direct only */
    struct iovec *iovecs; /* [depth], of the buffers */
    EngRowPart *parts;    /* [depth]: what is in flight; `skip`, `span` of what is left to read */
    size_t *done;         /* [depth]: bytes of the part that are there */
    int *free;            /* [depth]: stack of places not in flight */
    int n_free;
} UringStore;

typedef struct Batch {
    const int64_t *rows, *slots;
    const EngRowsOut *out;
    int64_t n_requests, next; /* request r is part r % parts of row r / parts */
    EngStatus status;
    EngErr *err;
} Batch;

static uint8_t *buffer_of(const UringStore *store, int place)
{
    return store->bounce.n ? store->bounce.bytes + (size_t)place * store->file.span_bytes : NULL;
}

/* Asks for what is left of a place's part. There is an entry free for each place. */
static void queue_place(UringStore *store, int place)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&store->ring);
    const EngRowPart *part = &store->parts[place];
    size_t done = store->done[place];
    uint8_t *buffer = buffer_of(store, place), *to = (buffer ? buffer : part->to) + done;
    unsigned left = (unsigned)(part->span - done);
    if (buffer && store->buffers_registered)
        io_uring_prep_read_fixed(sqe, 0, to, left, part->from + done, place);
    else
        io_uring_prep_read(sqe, 0, to, left, part->from + done);
    io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(sqe, (unsigned)place);
}

static void queue_more(UringStore *store, Batch *batch)
{
    int parts = store->file.parts;
    while (!batch->status && store->n_free && batch->next < batch->n_requests) {
        int64_t i = batch->next / parts;
        EngRowPart part =
            eng_file_store_part(&store->file, (int)(batch->next % parts), batch->rows[i],
                                batch->slots ? batch->slots[i] : i, batch->out);
        if (eng_file_read_fails()) {
            batch->status = eng_file_store_take(&store->file, &part, -EIO, NULL, batch->err);
            return;
        }
        int place = store->free[--store->n_free];
        store->parts[place] = part;
        store->done[place] = 0;
        queue_place(store, place);
        batch->next++;
    }
}

/* One completion: the place is free again, or asks for the rest of a short read. */
static void take_completion(UringStore *store, Batch *batch, int place, int got)
{
    const EngRowPart *part = &store->parts[place];
    bool again = got == -EINTR || got == -EAGAIN;
    if (got > 0) {
        store->done[place] += (size_t)got;
        again = store->done[place] < part->span && (size_t)got % store->file.block == 0;
    }
    if (again && !batch->status) {
        queue_place(store, place);
        return;
    }
    store->free[store->n_free++] = place;
    if (batch->status) return;
    batch->status =
        eng_file_store_take(&store->file, part, got < 0 ? got : (int64_t)store->done[place],
                            buffer_of(store, place), batch->err);
}

static EngStatus read_rows(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    UringStore *store = (UringStore *)base;
    Batch batch = {
        .rows = rows, .slots = slots, .out = out, .n_requests = n * store->file.parts, .err = err};
    if (store->broken)
        return ENG_FAIL(err, ENG_IO, "%s: io_uring failed before, open the store again",
                        store->file.file.path);
    for (;;) {
        queue_more(store, &batch);
        if (store->n_free == store->depth) break;
        int code = io_uring_submit_and_wait(&store->ring, 1);
        if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY) {
            store->broken = true;
            return ENG_FAIL(err, ENG_IO, "%s: io_uring does not take requests: %s",
                            store->file.file.path, strerror(-code));
        }
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0;
        io_uring_for_each_cqe(&store->ring, head, cqe)
        {
            take_completion(store, &batch, (int)cqe->user_data, cqe->res);
            seen++;
        }
        io_uring_cq_advance(&store->ring, seen);
    }
    if (!batch.status) eng_file_store_finish(&store->file, rows, slots, n, out);
    return batch.status;
}

/* ---- opening -----------------------------------------------------------------------------------
 */

static void destroy(EngStore *base)
{
    UringStore *store = (UringStore *)base;
    if (store->ring_open) io_uring_queue_exit(&store->ring);
    eng_pages_unmap(&store->bounce);
    eng_free(store->iovecs);
    eng_free(store->parts);
    eng_free(store->done);
    eng_free(store->free);
    eng_file_store_close(&store->file);
    eng_free(store);
}

static const EngStoreOps g_ops = {
    .name = "uring",
    .read = read_rows,
    .stats = eng_file_store_stats,
    .reset_stats = eng_file_store_reset_stats,
    .destroy = destroy,
};

static EngStatus allocate_places(UringStore *store, EngErr *err)
{
    size_t n = (size_t)store->depth;
    EngStatus status =
        eng_alloc_or((void **)&store->iovecs, n, sizeof *store->iovecs, "read buffers", err);
    if (!status)
        status = eng_alloc_or((void **)&store->parts, n, sizeof *store->parts, "requests", err);
    if (!status)
        status = eng_alloc_or((void **)&store->done, n, sizeof *store->done, "requests", err);
    if (!status)
        status = eng_alloc_or((void **)&store->free, n, sizeof *store->free, "requests", err);
    if (!status) status = eng_file_store_bounce(&store->file, store->depth, &store->bounce, err);
    if (status) return status;
    for (int i = 0; i < store->depth; i++) store->free[store->n_free++] = i;
    store->file.stats.memory_bytes = (int64_t)store->bounce.n;
    return ENG_OK;
}

/* 0, or a negative errno. Older kernels do not know the flags. */
static int open_ring(UringStore *store)
{
    unsigned flags = IORING_SETUP_COOP_TASKRUN;
    int code = io_uring_queue_init((unsigned)store->depth, &store->ring, flags);
    if (code == -EINVAL) code = io_uring_queue_init((unsigned)store->depth, &store->ring, 0);
    store->ring_open = !code;
    return code;
}

/* Registration of buffers counts as locked memory; where that is short, ordinary reads do. */
static EngStatus register_all(UringStore *store, EngErr *err)
{
    int code = io_uring_register_files(&store->ring, &store->file.fd, 1);
    if (code)
        return ENG_FAIL(err, ENG_IO, "%s: io_uring does not register it: %s", store->file.file.path,
                        strerror(-code));
    if (!store->bounce.n) return ENG_OK;
    for (int i = 0; i < store->depth; i++)
        store->iovecs[i] = (struct iovec){buffer_of(store, i), store->file.span_bytes};
    code = io_uring_register_buffers(&store->ring, store->iovecs, (unsigned)store->depth);
    store->buffers_registered = !code;
    if (code)
        snprintf(store->file.base.note, sizeof store->file.base.note,
                 "io_uring buffers are not registered: %s", strerror(-code));
    return ENG_OK;
}

static EngStatus fall_back(const char *path, const EngStoreOptions *options, int depth, int code,
                           EngStore **out, EngErr *err)
{
    EngStoreOptions instead = *options;
    instead.threads = depth < MOST_FALLBACK_THREADS ? depth : MOST_FALLBACK_THREADS;
    EngStatus status = eng_pread_store_open(path, &instead, out, err);
    if (!status)
        snprintf((*out)->note, sizeof(*out)->note,
                 "io_uring is %s here (%s): pread with %d threads instead",
                 code == -ENOSYS ? "absent" : "forbidden", strerror(-code), instead.threads);
    return status;
}

EngStatus eng_uring_store_open(const char *path, const EngStoreOptions *options, EngStore **out,
                               EngErr *err)
{
    UringStore *store;
    EngStatus status = eng_alloc_or((void **)&store, 1, sizeof *store, "uring store", err);
    if (status) return status;
    store->depth = options->depth ? options->depth : DEFAULT_DEPTH;
    int code = open_ring(store);
    if (code == -EPERM || code == -ENOSYS || code == -EACCES) {
        int depth = store->depth;
        eng_free(store);
        return fall_back(path, options, depth, code, out, err);
    }
    store->file.fd = -1;
    if (code)
        status = ENG_FAIL(err, code == -ENOMEM ? ENG_NO_MEMORY : ENG_IO,
                          "%s: cannot open an io_uring of depth %d: %s", path, store->depth,
                          strerror(-code));
    if (!status) status = eng_file_store_open(&store->file, &g_ops, path, options, err);
    if (!status) status = allocate_places(store, err);
    if (!status) status = register_all(store, err);
    if (status)
        destroy(&store->file.base);
    else
        *out = &store->file.base;
    return status;
}
