/* A pool of threads that answers one batch after another: the caller is one of them, and comes back
 * when the last has finished. OpenMP will not do: these threads block in reads, and a handle's pool
 * belongs to that handle. */
#ifndef ENG_KERNELS_STORE_POOL_H
#define ENG_KERNELS_STORE_POOL_H

#include <pthread.h>
#include <stdint.h>
#include <engram/status.h>

typedef struct EngPool EngPool;

/* Item i of a batch, by thread `thread` of the pool (the caller is 0). */
typedef EngStatus (*EngPoolBody)(void *context, int thread, int64_t i, EngErr *err);

/* threads >= 1, the caller included. ENG_NO_MEMORY where threads cannot be started. */
EngStatus eng_pool_create(int threads, EngPool **pool, EngErr *err);
void eng_pool_destroy(EngPool *pool); /* accepts NULL */
/* body for each i in [0, n), `chunk` of them at a time. The first error ends the batch: what was
 * not begun is left out, and the error is returned. */
EngStatus eng_pool_run(EngPool *pool, int64_t n, int64_t chunk, EngPoolBody body, void *context,
                       EngErr *err);
/* A chunk that gives every thread several, and is worth fetching: n / (4 threads), 1 to 64. */
int64_t eng_pool_chunk(const EngPool *pool, int64_t n);
int eng_pool_threads(const EngPool *pool);

/* pthread_create() for threads that read: signals are left to the program's own threads, but for
 * those that a fault raises. */
int eng_pool_start_thread(pthread_t *id, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);

#endif
