/* See delay_store.h. */
#include "bench/experiments/delay_store.h"

#include <errno.h>
#include <time.h>

static EngStatus read_late(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    const EngDelayStore *store = (const EngDelayStore *)base;
    struct timespec left = {.tv_sec = store->delay_ns / 1000000000,
                            .tv_nsec = store->delay_ns % 1000000000};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
    return store->inner->ops->read(store->inner, rows, slots, n, out, err);
}

static void stats(const EngStore *base, EngStoreStats *s)
{
    eng_store_stats(((const EngDelayStore *)base)->inner, s);
}

static const EngStoreOps g_ops = {.name = "delay", .read = read_late, .stats = stats};

void eng_delay_store_init(EngDelayStore *store, EngStore *inner, int64_t delay_ns)
{
    *store = (EngDelayStore){.base = *inner, .inner = inner, .delay_ns = delay_ns};
    store->base.ops = &g_ops;
}
