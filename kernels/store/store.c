/* What all row stores share: names, the check of row numbers, opening by kind; see engram/store.h.
 */
#include <engram/store.h>

#include <inttypes.h>
#include <string.h>

#include "kernels/store/stores.h"

static const char *const g_kinds[ENG_STORE_KIND_COUNT] = {
    [ENG_STORE_MEMORY] = "memory", [ENG_STORE_MMAP] = "mmap",   [ENG_STORE_PREAD] = "pread",
    [ENG_STORE_NOWAIT] = "nowait", [ENG_STORE_URING] = "uring",
};
static const char *const g_advices[ENG_MAP_ADVICE_COUNT] = {
    [ENG_ADVICE_NORMAL] = "normal",
    [ENG_ADVICE_RANDOM] = "random",
    [ENG_ADVICE_WILLNEED] = "willneed",
};
static const char *const g_numa[ENG_NUMA_POLICY_COUNT] = {
    [ENG_NUMA_DEFAULT] = "default",
    [ENG_NUMA_BIND] = "bind",
    [ENG_NUMA_INTERLEAVE] = "interleave",
};
static const char *const g_policies[ENG_CACHE_POLICY_COUNT] = {
    [ENG_CACHE_LRU] = "lru",
    [ENG_CACHE_SIEVE] = "sieve",
    [ENG_CACHE_DIRECT] = "direct",
    [ENG_CACHE_WAYS] = "ways",
};

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

const char *eng_store_kind_name(EngStoreKind kind)
{
    return (unsigned)kind < ENG_STORE_KIND_COUNT ? g_kinds[kind] : NULL;
}

int eng_store_kind_parse(const char *name)
{
    return find_name(g_kinds, ENG_STORE_KIND_COUNT, name);
}

const char *eng_map_advice_name(EngMapAdvice advice)
{
    return (unsigned)advice < ENG_MAP_ADVICE_COUNT ? g_advices[advice] : NULL;
}

int eng_map_advice_parse(const char *name)
{
    return find_name(g_advices, ENG_MAP_ADVICE_COUNT, name);
}

const char *eng_numa_policy_name(EngNumaPolicy policy)
{
    return (unsigned)policy < ENG_NUMA_POLICY_COUNT ? g_numa[policy] : NULL;
}

int eng_numa_policy_parse(const char *name)
{
    return find_name(g_numa, ENG_NUMA_POLICY_COUNT, name);
}

const char *eng_cache_policy_name(EngCachePolicy policy)
{
    return (unsigned)policy < ENG_CACHE_POLICY_COUNT ? g_policies[policy] : NULL;
}

int eng_cache_policy_parse(const char *name)
{
    return find_name(g_policies, ENG_CACHE_POLICY_COUNT, name);
}

/* ---- opening -----------------------------------------------------------------------------------
 */

EngStatus eng_store_open(const char *path, EngStoreKind kind, const EngStoreOptions *options,
                         EngStore **store, EngErr *err)
{
    static const EngStoreOptions defaults;
    if (!options) options = &defaults;
    *store = NULL;
    if (options->threads < 0 || options->threads > ENG_STORE_MAX_THREADS)
        return ENG_FAIL(err, ENG_USAGE, "store: %d threads, 1 to %d are possible", options->threads,
                        ENG_STORE_MAX_THREADS);
    if (options->depth < 0 || options->depth > ENG_STORE_MAX_DEPTH)
        return ENG_FAIL(err, ENG_USAGE, "store: queue depth %d, 1 to %d are possible",
                        options->depth, ENG_STORE_MAX_DEPTH);
    switch (kind) {
    case ENG_STORE_MEMORY:
        return eng_memory_store_open(path, options, store, err);
    case ENG_STORE_MMAP:
        return eng_mmap_store_open(path, options, store, err);
    case ENG_STORE_PREAD:
        return eng_pread_store_open(path, options, store, err);
    case ENG_STORE_NOWAIT:
        return eng_nowait_store_open(path, options, store, err);
    case ENG_STORE_URING:
        return eng_uring_store_open(path, options, store, err);
    default:
        return ENG_FAIL(err, ENG_USAGE, "no store of kind %d", (int)kind);
    }
}

/* ---- use ---------------------------------------------------------------------------------------
 */

EngStatus eng_store_read_slots(EngStore *store, const int64_t *rows, const int64_t *slots,
                               int64_t n, const EngRowsOut *out, EngErr *err)
{
    /* Beyond a region of the file lies another one: such a row must not be read. */
    for (int64_t i = 0; i < n; i++)
        if ((uint64_t)rows[i] >= (uint64_t)store->rows)
            return ENG_FAIL(err, ENG_USAGE,
                            "%s store: row %" PRId64 " (place %" PRId64
                            " of a batch) is none of the table's %" PRId64,
                            store->ops->name, rows[i], i, store->rows);
    return n > 0 ? store->ops->read(store, rows, slots, n, out, err) : ENG_OK;
}

EngStatus eng_store_read(EngStore *store, const int64_t *rows, int64_t n, const EngRowsOut *out,
                         EngErr *err)
{
    return eng_store_read_slots(store, rows, NULL, n, out, err);
}

void eng_store_stats(const EngStore *store, EngStoreStats *stats)
{
    store->ops->stats(store, stats);
}

void eng_store_reset_stats(EngStore *store)
{
    store->ops->reset_stats(store);
}

const EngTable *eng_store_table(const EngStore *store)
{
    return store->ops->table ? store->ops->table(store) : NULL;
}

void eng_store_release(EngStore *store)
{
    if (store->ops->release) store->ops->release(store);
}

void eng_store_destroy(EngStore *store)
{
    if (store) store->ops->destroy(store);
}

size_t eng_rows_value_bytes(EngRowFormat format, int row_dims, int64_t n)
{
    return (size_t)n * eng_row_stride_bytes(format, row_dims);
}

size_t eng_rows_scale_bytes(EngRowFormat format, int row_dims, int64_t n)
{
    return (size_t)n * eng_row_scale_bytes(format, row_dims);
}

EngTable eng_rows_table(const EngStore *store, const EngRowsOut *out, int64_t n)
{
    return (EngTable){.format = store->format,
                      .row_dims = store->row_dims,
                      .rows = n,
                      .values = out->values,
                      .scales = out->scales};
}
