/* Dynamic parallel loop over pthreads; see parallel.h. */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct Loop {
    atomic_int_fast64_t next;
    int64_t n;
    void (*body)(void *context, int64_t i);
    void *context;
} Loop;

static void *work(void *arg)
{
    Loop *loop = arg;
    for (int64_t i; (i = atomic_fetch_add(&loop->next, 1)) < loop->n;) loop->body(loop->context, i);
    return NULL;
}

int eng_processor_count(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

void eng_parallel_for(int64_t n, int threads, void (*body)(void *context, int64_t i), void *context)
{
    enum { MAX_THREADS = 256 };
    Loop loop = {.n = n, .body = body, .context = context};
    pthread_t ids[MAX_THREADS];
    int started = 0;
    if (threads <= 0) threads = eng_processor_count();
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    /* A thread that cannot be started is no error: the others, at least this one, take its share.
     */
    while (started < threads - 1 && started < n - 1 &&
           !pthread_create(&ids[started], NULL, work, &loop))
        started++;
    work(&loop);
    for (int i = 0; i < started; i++) pthread_join(ids[i], NULL);
}
