/* The memory store: a table file's rows loaded once, block by block with their checksums, into
 * pages of a chosen size and NUMA placement; or a table that is in memory already.
 */
#include <numa.h>
#include <sched.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/store/copy.h"
#include "kernels/store/file_store.h"
#include "kernels/store/memory.h"
#include "kernels/store/stores.h"

#include <pthread.h>

typedef struct MemoryStore {
    EngStore base;
    EngTable table;
    EngPages values, scales; /* empty when the table is another's */
    EngStoreStats stats;
} MemoryStore;

static EngStatus read_rows(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                           const EngRowsOut *out, EngErr *err)
{
    MemoryStore *store = (MemoryStore *)base;
    const EngTable *table = &store->table;
    const EngRowSizes sizes = eng_row_sizes(table->format, table->row_dims);
    (void)err;
    for (int64_t i = 0; i < ENG_COPY_AHEAD && i < n; i++)
        eng_prefetch_row(&sizes, table->values, table->scales, rows[i]);
    for (int64_t i = 0; i < n; i++) {
        if (i + ENG_COPY_AHEAD < n)
            eng_prefetch_row(&sizes, table->values, table->scales, rows[i + ENG_COPY_AHEAD]);
        eng_copy_row(&sizes, out->values, out->scales, slots ? slots[i] : i, table->values,
                     table->scales, rows[i]);
    }
    store->stats.batches++;
    store->stats.rows += n;
    store->stats.bytes_asked += n * (int64_t)(sizes.value + sizes.scale);
    return ENG_OK;
}

static void stats(const EngStore *base, EngStoreStats *out)
{
    const MemoryStore *store = (const MemoryStore *)base;
    *out = store->stats;
    out->memory_bytes = (int64_t)(store->values.n + store->scales.n);
}

static void reset_stats(EngStore *base)
{
    ((MemoryStore *)base)->stats = (EngStoreStats){0};
}

static const EngTable *table_of(const EngStore *base)
{
    return &((const MemoryStore *)base)->table;
}

static void destroy(EngStore *base)
{
    MemoryStore *store = (MemoryStore *)base;
    eng_pages_unmap(&store->values);
    eng_pages_unmap(&store->scales);
    eng_free(store);
}

static const EngStoreOps g_ops = {
    .name = "memory",
    .read = read_rows,
    .stats = stats,
    .reset_stats = reset_stats,
    .table = table_of,
    .destroy = destroy,
};

EngStatus eng_store_of_table(const EngTable *table, EngStore **out, EngErr *err)
{
    MemoryStore *store;
    EngStatus status = eng_alloc_or((void **)&store, 1, sizeof *store, "memory store", err);
    if (status) return status;
    store->base = (EngStore){
        .ops = &g_ops, .format = table->format, .row_dims = table->row_dims, .rows = table->rows};
    store->table = *table;
    *out = &store->base;
    return ENG_OK;
}

/* ---- loading -----------------------------------------------------------------------------------
 */

typedef struct Load {
    const EngFileStore *from;
    uint8_t *values, *scales;
    pthread_mutex_t lock; /* of what follows: the first error */
    EngStatus status;
    EngErr err;
} Load;

static void load_block(void *context, int64_t block)
{
    Load *load = context;
    const EngTableFile *file = &load->from->file;
    EngErr err = {0};
    uint64_t offset;
    size_t bytes;
    int64_t first, last;
    eng_table_file_block(file, block, &offset, &bytes, &first, &last);
    uint8_t *to = block < file->value_blocks ? load->values + (offset - file->values_offset)
                                             : load->scales + (offset - file->scales_offset);
    EngRowPart part = {.row = first, .from = offset, .span = bytes, .bytes = bytes, .to = to};
    EngStatus status = eng_file_store_fetch(load->from, &part, NULL, &err);
    if (!status) status = eng_table_file_check(file, block, to, &err);
    if (!status) return;
    pthread_mutex_lock(&load->lock);
    if (!load->status) {
        load->status = status;
        load->err = err;
    }
    pthread_mutex_unlock(&load->lock);
}

/* Before the first touch, which is when pages get their node. */
static void place(const EngPages *pages, EngNumaPolicy policy, char *note, size_t size)
{
    if (policy == ENG_NUMA_DEFAULT || !pages->n) return;
    if (numa_available() < 0 || numa_max_node() == 0)
        snprintf(note, size, "one NUMA node: %s has no choice", eng_numa_policy_name(policy));
    else if (policy == ENG_NUMA_INTERLEAVE)
        numa_interleave_memory(pages->bytes, pages->n, numa_all_nodes_ptr);
    else
        numa_tonode_memory(pages->bytes, pages->n, numa_node_of_cpu(sched_getcpu()));
}

static EngStatus load_file(MemoryStore *store, const EngFileStore *from,
                           const EngStoreOptions *options, EngErr *err)
{
    const EngTableFile *file = &from->file;
    EngPageKind pages = (EngPageKind)options->page_kind;
    EngStatus status = eng_memory_check(file->values_bytes + file->scales_bytes, file->path, err);
    if (!status && file->values_bytes)
        status = eng_pages_map(&store->values, file->values_bytes, pages, err);
    if (!status && file->scales_bytes)
        status = eng_pages_map(&store->scales, file->scales_bytes, pages, err);
    if (status) return status;
    place(&store->values, options->numa, store->base.note, sizeof store->base.note);
    place(&store->scales, options->numa, store->base.note, sizeof store->base.note);
    Load load = {.from = from,
                 .values = store->values.bytes,
                 .scales = store->scales.bytes,
                 .lock = PTHREAD_MUTEX_INITIALIZER};
    eng_parallel_for(file->value_blocks + file->scale_blocks, 0, load_block, &load);
    if (load.status && err) *err = load.err;
    store->table.values = store->values.bytes;
    store->table.scales = store->scales.bytes;
    return load.status;
}

EngStatus eng_memory_store_open(const char *path, const EngStoreOptions *options, EngStore **out,
                                EngErr *err)
{
    EngFileStore from = {0};
    MemoryStore *store = NULL;
    const EngStoreOptions plain = {0};
    if ((unsigned)options->page_kind >= ENG_PAGE_KIND_COUNT)
        return ENG_FAIL(err, ENG_USAGE, "memory store: no page kind %d", options->page_kind);
    EngStatus status = eng_file_store_open(&from, &g_ops, path, &plain, err);
    if (status) return status;
    EngTable table = {
        .format = from.base.format, .row_dims = from.base.row_dims, .rows = from.base.rows};
    status = eng_store_of_table(&table, out, err);
    if (!status) {
        store = (MemoryStore *)*out;
        status = load_file(store, &from, options, err);
    }
    if (status && store) {
        destroy(&store->base);
        *out = NULL;
    }
    eng_file_store_close(&from);
    return status;
}
