/* Pool of reading threads; see pool.h.
 *
 * A batch has a number. Workers sleep until it changes, take chunks of items until none are left,
 * and the last one out wakes the caller. A worker that wakes up late finds no item and leaves.
 */
#include "kernels/store/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"

#define MOST_CHUNK 64

typedef struct Worker {
    EngPool *pool;
    pthread_t id;
    int thread;
} Worker;

struct EngPool {
    int threads, started;
    Worker *workers; /* [threads - 1] */
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    uint64_t batch; /* what follows is guarded by lock, and read by workers of the batch */
    int busy;
    bool stop;
    int64_t n, chunk;
    EngPoolBody body;
    void *context;
    EngStatus status; /* the first error */
    EngErr err;
    _Atomic int64_t next;
};

static void take_items(EngPool *pool, int thread)
{
    EngErr err = {0};
    for (;;) {
        int64_t from = atomic_fetch_add(&pool->next, pool->chunk);
        if (from >= pool->n) return;
        int64_t to = from + pool->chunk < pool->n ? from + pool->chunk : pool->n;
        for (int64_t i = from; i < to; i++) {
            EngStatus status = pool->body(pool->context, thread, i, &err);
            if (!status) continue;
            pthread_mutex_lock(&pool->lock);
            if (!pool->status) {
                pool->status = status;
                pool->err = err;
            }
            pthread_mutex_unlock(&pool->lock);
            atomic_store(&pool->next, pool->n);
            return;
        }
    }
}

static void *work(void *arg)
{
    Worker *worker = arg;
    EngPool *pool = worker->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->batch == seen && !pool->stop) pthread_cond_wait(&pool->begin, &pool->lock);
        if (pool->stop) break;
        seen = pool->batch;
        pthread_mutex_unlock(&pool->lock);
        take_items(pool, worker->thread);
        pthread_mutex_lock(&pool->lock);
        if (!--pool->busy) pthread_cond_signal(&pool->end);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int eng_pool_start_thread(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(id, attr, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

EngStatus eng_pool_create(int threads, EngPool **out, EngErr *err)
{
    EngPool *pool = NULL;
    EngStatus status = eng_alloc_or((void **)&pool, 1, sizeof *pool, "reading threads", err);
    if (status) return status;
    pool->threads = threads;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->begin, NULL);
    pthread_cond_init(&pool->end, NULL);
    if (threads > 1)
        status = eng_alloc_or((void **)&pool->workers, (size_t)threads - 1, sizeof *pool->workers,
                              "reading threads", err);
    for (int i = 0; i < threads - 1 && !status; i++) {
        pool->workers[i] = (Worker){.pool = pool, .thread = i + 1};
        int failed = eng_pool_start_thread(&pool->workers[i].id, NULL, work, &pool->workers[i]);
        if (failed)
            status = ENG_FAIL(err, ENG_NO_MEMORY, "cannot start reading thread %d of %d: %s", i + 2,
                              threads, strerror(failed));
        else
            pool->started++;
    }
    if (status) {
        eng_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return ENG_OK;
}

void eng_pool_destroy(EngPool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->begin);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++) pthread_join(pool->workers[i].id, NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->begin);
    pthread_cond_destroy(&pool->end);
    eng_free(pool->workers);
    eng_free(pool);
}

EngStatus eng_pool_run(EngPool *pool, int64_t n, int64_t chunk, EngPoolBody body, void *context,
                       EngErr *err)
{
    pthread_mutex_lock(&pool->lock);
    pool->n = n;
    pool->chunk = chunk;
    pool->body = body;
    pool->context = context;
    pool->status = ENG_OK;
    atomic_store(&pool->next, 0);
    bool share = pool->started && n > chunk;
    if (share) {
        pool->busy = pool->started;
        pool->batch++;
        pthread_cond_broadcast(&pool->begin);
    }
    pthread_mutex_unlock(&pool->lock);
    take_items(pool, 0);
    pthread_mutex_lock(&pool->lock);
    while (share && pool->busy) pthread_cond_wait(&pool->end, &pool->lock);
    EngStatus status = pool->status;
    if (status && err) *err = pool->err;
    pthread_mutex_unlock(&pool->lock);
    return status;
}

int64_t eng_pool_chunk(const EngPool *pool, int64_t n)
{
    int64_t chunk = n / (4 * (int64_t)pool->threads);
    return chunk < 1 ? 1 : chunk > MOST_CHUNK ? MOST_CHUNK : chunk;
}

int eng_pool_threads(const EngPool *pool)
{
    return pool->threads;
}
