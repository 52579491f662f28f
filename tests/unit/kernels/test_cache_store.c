/* Caches against a model that is written to be read: lists searched from end to end. Every access
 * of random traces must agree (hit, miss, eviction), and every row a cached store hands out must be
 * the table's. */
#include "stores_test.h"

#include "base/file.h"
#include "kernels/store/cache_index.h"

#define MODEL_ROOM 512

/* Rows of one set (sets) or of all (lists), newest first. */
typedef struct List {
    int64_t rows[MODEL_ROOM];
    bool marked[MODEL_ROOM];
    int n;
    int64_t hand; /* row that sieve looks at next; -1: the oldest */
} List;

typedef struct Model {
    EngCachePolicy policy;
    int capacity; /* of a list */
    int64_t hits, misses, evictions;
    List list;
} Model;

static void list_insert(List *list, int64_t row)
{
    memmove(list->rows + 1, list->rows, sizeof *list->rows * (size_t)list->n);
    memmove(list->marked + 1, list->marked, sizeof *list->marked * (size_t)list->n);
    list->rows[0] = row;
    list->marked[0] = false;
    list->n++;
}

static void list_remove(List *list, int at)
{
    list->n--;
    memmove(list->rows + at, list->rows + at + 1, sizeof *list->rows * (size_t)(list->n - at));
    memmove(list->marked + at, list->marked + at + 1,
            sizeof *list->marked * (size_t)(list->n - at));
}

static int list_find(const List *list, int64_t row)
{
    for (int i = 0; i < list->n; i++)
        if (list->rows[i] == row) return i;
    return -1;
}

static int sieve_victim(List *list)
{
    int at = list->hand < 0 ? list->n - 1 : list_find(list, list->hand);
    while (list->marked[at]) {
        list->marked[at] = false;
        at = at ? at - 1 : list->n - 1;
    }
    list->hand = at ? list->rows[at - 1] : -1;
    return at;
}

/* One access to a list of the model; true: it was there. */
static bool model_access(Model *model, List *list, int64_t row)
{
    int at = list_find(list, row);
    if (at >= 0) {
        model->hits++;
        if (model->policy == ENG_CACHE_SIEVE) {
            list->marked[at] = true;
        } else {
            list_remove(list, at);
            list_insert(list, row);
        }
        return true;
    }
    model->misses++;
    if (list->n == model->capacity) {
        model->evictions++;
        list_remove(list, model->policy == ENG_CACHE_SIEVE ? sieve_victim(list) : list->n - 1);
    }
    list_insert(list, row);
    return false;
}

/* Rows as skewed as text: half the accesses go to a tenth of them. */
static int64_t skewed(EngRng *rng, int64_t rows)
{
    int64_t row = (int64_t)eng_rng_below(rng, (uint64_t)rows);
    return eng_rng_below(rng, 2) ? row : row / 10;
}

static void check_counts(const EngCacheIndex *index, const Model *model)
{
    assert_int_equal(index->hits, model->hits);
    assert_int_equal(index->misses, model->misses);
    assert_int_equal(index->evictions, model->evictions);
}

static void test_lists(void **state)
{
    (void)state;
    static const int capacities[] = {1, 2, 3, 17, 256};
    for (int policy = ENG_CACHE_LRU; policy <= ENG_CACHE_SIEVE; policy++)
        for (int c = 0; c < LENGTH_OF(capacities); c++) {
            EngErr err = {0};
            EngRng rng;
            EngCacheIndex index;
            EngCacheOptions options = {.policy = (EngCachePolicy)policy, .rows = capacities[c]};
            Model model = {.policy = options.policy, .capacity = capacities[c], .list.hand = -1};
            assert_int_equal(eng_cache_index_init(&index, &options, 1000, &err), ENG_OK);
            eng_rng_seed(&rng, (uint64_t)c);
            for (int i = 0; i < 20000; i++) {
                int64_t row = skewed(&rng, 3 * capacities[c] + 2);
                bool hit, want = model_access(&model, &model.list, row);
                int64_t slot = eng_cache_index_access(&index, row, &hit);
                assert_int_equal(hit, want);
                assert_true(slot >= 0 && slot < capacities[c]);
                assert_int_equal(index.nodes[slot].row, row);
            }
            check_counts(&index, &model);
            assert_true(model.hits > 0 && model.evictions > 0);
            eng_cache_index_fini(&index);
        }
}

/* A set is a little LRU list; which rows share one is the index's business, so the model asks it.
 */
static void test_sets(void **state)
{
    (void)state;
    static const int ways[] = {1, 2, 4, 8, 16};
    for (int w = 0; w < LENGTH_OF(ways); w++) {
        EngErr err = {0};
        EngRng rng;
        EngCacheIndex index;
        EngCacheOptions options = {.policy = ways[w] == 1 ? ENG_CACHE_DIRECT : ENG_CACHE_WAYS,
                                   .rows = 250,
                                   .ways = ways[w]};
        assert_int_equal(eng_cache_index_init(&index, &options, INT32_MAX - 1, &err), ENG_OK);
        int sets = (250 + ways[w] - 1) / ways[w];
        assert_int_equal(index.capacity, sets * ways[w]);
        List *lists = calloc((size_t)sets, sizeof *lists);
        int64_t *slot_rows = malloc((size_t)index.capacity * sizeof *slot_rows);
        memset(slot_rows, 0xff, (size_t)index.capacity * sizeof *slot_rows);
        int used[MODEL_ROOM] = {0};
        Model model = {.policy = options.policy, .capacity = ways[w]};
        eng_rng_seed(&rng, (uint64_t)w);
        for (int i = 0; i < 30000; i++) {
            int64_t row = skewed(&rng, 1000) << (i % 2 ? 20 : 0);
            bool hit;
            int64_t slot = eng_cache_index_access(&index, row, &hit);
            bool want = model_access(&model, &lists[slot / ways[w]], row);
            assert_int_equal(hit, want);
            if (hit) assert_int_equal(slot_rows[slot], row);
            slot_rows[slot] = row;
            used[slot / ways[w]] = 1;
        }
        check_counts(&index, &model);
        int sets_used = 0;
        for (int s = 0; s < sets; s++) sets_used += used[s];
        assert_true(sets_used > sets * 9 / 10);
        eng_cache_index_fini(&index);
        free(lists);
        free(slot_rows);
    }
}

/* The set of a row is its remainder, for all sizes and the largest rows. */
static void test_remainders(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 7, 250, 65536, 3149866};
    for (int c = 0; c < LENGTH_OF(sizes); c++) {
        EngErr err = {0};
        EngRng rng;
        EngCacheIndex index;
        EngCacheOptions options = {.policy = ENG_CACHE_DIRECT, .rows = sizes[c]};
        assert_int_equal(eng_cache_index_init(&index, &options, INT32_MAX - 1, &err), ENG_OK);
        eng_rng_seed(&rng, 7);
        for (int i = 0; i < 2000; i++) {
            bool hit;
            int64_t row =
                i < 10 ? (int64_t)INT32_MAX - 2 - i : (int64_t)eng_rng_below(&rng, INT32_MAX - 1);
            assert_int_equal(eng_cache_index_access(&index, row, &hit), row % sizes[c]);
        }
        eng_cache_index_fini(&index);
    }
}

static const EngCacheOptions g_options[] = {
    {ENG_CACHE_LRU, 300, 0},   {ENG_CACHE_SIEVE, 300, 0},   {ENG_CACHE_DIRECT, 300, 0},
    {ENG_CACHE_WAYS, 300, 16}, {ENG_CACHE_WAYS, 301, 2},    {ENG_CACHE_LRU, 1, 0},
    {ENG_CACHE_SIEVE, 1, 0},   {ENG_CACHE_WAYS, 100000, 8}, {ENG_CACHE_SIEVE, TEST_ROWS, 0},
};

/* Rows and counts of a cached store: those of the same accesses one by one, however they are cut
 * into batches, of more rows than fit and with repeats inside a batch. */
static void test_store(void **state)
{
    (void)state;
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++) {
        StoreTable t;
        store_table_open(&t, (EngRowFormat)f);
        for (int o = 0; o < LENGTH_OF(g_options); o++) {
            EngErr err = {0};
            EngRng rng;
            EngStore *inner, *store;
            EngCacheIndex index;
            EngStoreStats s;
            static int64_t rows[3000];
            assert_int_equal(eng_store_of_table(&t.table, &inner, &err), ENG_OK);
            assert_int_equal(eng_store_cache(inner, &g_options[o], &store, &err), ENG_OK);
            assert_int_equal(eng_cache_index_init(&index, &g_options[o], TEST_ROWS, &err), ENG_OK);
            eng_rng_seed(&rng, (uint64_t)o);
            int64_t asked = 0;
            for (int b = 0; b < 30; b++) {
                int64_t n = 1 + (int64_t)eng_rng_below(&rng, b % 3 ? 100 : 3000);
                for (int64_t i = 0; i < n; i++) {
                    bool hit;
                    rows[i] = skewed(&rng, b < 15 ? 1000 : TEST_ROWS);
                    eng_cache_index_access(&index, rows[i], &hit);
                }
                check_batch(store, &t.table, rows, n, "cached");
                asked += n;
            }
            eng_store_stats(store, &s);
            assert_int_equal(s.rows, asked);
            assert_int_equal(s.hits, index.hits);
            assert_int_equal(s.misses, index.misses);
            assert_int_equal(s.evictions, index.evictions);
            assert_int_equal(s.hits + s.misses, asked);
            eng_cache_index_fini(&index);
            eng_store_destroy(store);
        }
        store_table_close(&t);
    }
}

/* A read that fails below empties the cache: no slot keeps another row's bytes. */
static void test_failing_reads(void **state)
{
    (void)state;
    StoreTable t;
    store_table_open(&t, ENG_ROW_FP8);
    for (int o = 0; o < LENGTH_OF(g_options); o++) {
        EngErr err = {0};
        EngRng rng;
        EngStore *inner, *store;
        const EngStoreOptions options = {.threads = 2};
        int64_t rows[400], failed = 0;
        assert_int_equal(eng_store_open(t.path, ENG_STORE_PREAD, &options, &inner, &err), ENG_OK);
        assert_int_equal(eng_store_cache(inner, &g_options[o], &store, &err), ENG_OK);
        eng_rng_seed(&rng, (uint64_t)o);
        for (int b = 0; b < 60; b++) {
            EngRowsOut out = rows_out(&t.table, 400);
            for (int i = 0; i < 400; i++) rows[i] = skewed(&rng, 900);
            eng_file_fail_read_at(b % 2 ? 1 + (int64_t)eng_rng_below(&rng, 300) : 0);
            EngStatus status = eng_store_read(store, rows, 400, &out, &err);
            assert_true(status == ENG_OK || status == ENG_IO);
            failed += status == ENG_IO;
            for (int i = 0; !status && i < 400; i++)
                assert_true(slot_is_row(&t.table, &out, i, rows[i]));
            rows_out_free(&out);
        }
        eng_file_fail_read_at(0);
        assert_true(failed > 0);
        check_batches(store, &t.table, 1);
        eng_store_destroy(store);
    }
    store_table_close(&t);
}

static void test_refusals(void **state)
{
    (void)state;
    static const EngCacheOptions bad[] = {
        {ENG_CACHE_LRU, 0, 0},     {ENG_CACHE_LRU, -5, 0},           {ENG_CACHE_WAYS, 100, 3},
        {ENG_CACHE_WAYS, 100, 32}, {ENG_CACHE_DIRECT, INT64_MAX, 0}, {(EngCachePolicy)77, 10, 0}};
    uint32_t values[32] = {0};
    EngTable table = {
        .format = ENG_ROW_F32, .row_dims = 32, .rows = 1, .values = (const uint8_t *)values};
    EngErr err = {0};
    EngStore *inner, *store = NULL;
    assert_int_equal(eng_store_of_table(&table, &inner, &err), ENG_OK);
    for (int i = 0; i < LENGTH_OF(bad); i++) {
        assert_int_equal(eng_store_cache(inner, &bad[i], &store, &err), ENG_USAGE);
        assert_null(store);
    }
    uint64_t before = eng_mem_live_blocks();
    for (uint64_t n = 1; n < 8; n++) {
        const EngCacheOptions options = {ENG_CACHE_LRU, 100, 0};
        eng_mem_fail_at(n);
        EngStatus status = eng_store_cache(inner, &options, &store, &err);
        eng_mem_fail_at(0);
        if (!status) {
            eng_store_destroy(store);
            assert_true(n > 2);
            return;
        }
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_equal(eng_mem_live_blocks(), before);
    }
    fail_msg("never enough memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),         cmocka_unit_test(test_sets),
        cmocka_unit_test(test_remainders),    cmocka_unit_test(test_store),
        cmocka_unit_test(test_failing_reads), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
