/* Every store against the table it was made from, in every row format and with every option that
 * changes how rows are read; counts where they are known. */
#include "stores_test.h"

#include "kernels/ref/gather.h"
#include "kernels/store/pages.h"

typedef struct Case {
    EngStoreKind kind;
    EngStoreOptions options;
} Case;

static const Case g_cases[] = {
    {ENG_STORE_MEMORY, {0}},
    {ENG_STORE_MEMORY, {.page_kind = ENG_PAGES_HUGE, .numa = ENG_NUMA_INTERLEAVE}},
    {ENG_STORE_MMAP, {0}},
    {ENG_STORE_MMAP, {.advice = ENG_ADVICE_RANDOM, .threads = 3, .scales_in_memory = true}},
    {ENG_STORE_MMAP, {.advice = ENG_ADVICE_WILLNEED, .verify = true}},
    {ENG_STORE_PREAD, {.threads = 1}},
    {ENG_STORE_PREAD, {.threads = 5, .scales_in_memory = true}},
    {ENG_STORE_PREAD, {.threads = 3, .direct = true}},
    {ENG_STORE_PREAD, {.direct = true, .block_bytes = 512, .scales_in_memory = true}},
    {ENG_STORE_NOWAIT, {0}},
    {ENG_STORE_NOWAIT, {.threads = 2, .scales_in_memory = true}},
    {ENG_STORE_URING, {0}},
    {ENG_STORE_URING, {.depth = 1}},
    {ENG_STORE_URING, {.depth = 7, .scales_in_memory = true}},
    {ENG_STORE_URING, {.depth = 32, .direct = true}},
    {ENG_STORE_URING, {.depth = 5, .direct = true, .block_bytes = 512, .scales_in_memory = true}},
};

static EngStore *open_store(const StoreTable *t, const Case *c)
{
    EngStore *store;
    EngErr err = {0};
    EngStatus status = eng_store_open(t->path, c->kind, &c->options, &store, &err);
    if (status == ENG_UNSUPPORTED && c->options.direct) {
        print_message("no direct reads here: %s\n", err.text);
        return NULL;
    }
    if (status) fail_msg("%s: %s", eng_store_kind_name(c->kind), err.text);
    return store;
}

static void check_counts(const EngStore *store, const Case *c, int64_t asked)
{
    EngStoreStats s;
    eng_store_stats(store, &s);
    int64_t value = (int64_t)eng_row_value_bytes(store->format, store->row_dims);
    int64_t scale = (int64_t)eng_row_scale_bytes(store->format, store->row_dims);
    int64_t on_disk = value + (c->options.scales_in_memory ? 0 : scale);
    bool reads = c->kind >= ENG_STORE_PREAD;
    int64_t parts = on_disk > value ? 2 : 1;
    assert_int_equal(s.rows, asked);
    assert_int_equal(s.batches, 6);
    assert_int_equal(s.bytes_asked, asked * (value + scale));
    assert_int_equal(s.requests, reads ? asked * parts : 0);
    if (!c->options.direct) {
        assert_int_equal(s.bytes_read, reads ? asked * on_disk : 0);
    } else {
        int64_t block = c->options.block_bytes ? (int64_t)c->options.block_bytes : 4096;
        assert_int_equal(s.bytes_read % block, 0);
        assert_true(s.bytes_read >= asked * parts * block);
        assert_true(s.bytes_read <= asked * parts * (block + value + block));
    }
    assert_true(s.ready >= 0 && s.ready <= s.requests);
    if (c->options.scales_in_memory) assert_true(s.memory_bytes >= scale * store->rows);
    if (c->kind == ENG_STORE_MEMORY) assert_true(s.memory_bytes >= (value + scale) * store->rows);
}

static void test_formats(void **state)
{
    (void)state;
    uint64_t blocks = eng_mem_live_blocks();
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++) {
        StoreTable t;
        store_table_open(&t, (EngRowFormat)f);
        for (int i = 0; i < LENGTH_OF(g_cases); i++) {
            EngStore *store = open_store(&t, &g_cases[i]);
            if (!store) continue;
            assert_int_equal(store->rows, TEST_ROWS);
            assert_int_equal(store->format, f);
            assert_int_equal(store->row_dims, TEST_DIMS);
            int64_t asked = check_batches(store, &t.table, (uint64_t)i);
            check_counts(store, &g_cases[i], asked);
            eng_store_reset_stats(store);
            EngStoreStats s;
            eng_store_stats(store, &s);
            assert_int_equal(s.rows + s.batches + s.requests + s.bytes_read, 0);
            eng_store_destroy(store);
        }
        store_table_close(&t);
    }
    assert_int_equal(eng_mem_live_blocks(), blocks);
}

/* Chosen slots, in any order, and nothing beside them. */
static void test_slots(void **state)
{
    (void)state;
    StoreTable t;
    store_table_open(&t, ENG_ROW_FP8);
    for (int i = 0; i < LENGTH_OF(g_cases); i++) {
        EngStore *store = open_store(&t, &g_cases[i]);
        if (!store) continue;
        EngErr err = {0};
        const int64_t rows[] = {7, TEST_ROWS - 1, 7, 0, 31}, slots[] = {9, 3, 0, 7, 5};
        EngRowsOut out = rows_out(&t.table, 10);
        assert_int_equal(eng_store_read_slots(store, rows, slots, 5, &out, &err), ENG_OK);
        for (int k = 0; k < 5; k++) assert_true(slot_is_row(&t.table, &out, slots[k], rows[k]));
        for (int s = 1; s < 9; s++) {
            if (s == 3 || s == 5 || s == 7) continue;
            assert_int_equal(out.values[s * TEST_DIMS], 0xee);
            assert_int_equal(out.values[s * TEST_DIMS + TEST_DIMS - 1], 0xee);
            assert_int_equal(out.scales[3 * s + 2], 0xee);
        }
        rows_out_free(&out);
        eng_store_destroy(store);
    }
    store_table_close(&t);
}

/* Row numbers are checked before anything is read: beyond the values lie the scales. */
static void test_foreign_rows(void **state)
{
    (void)state;
    StoreTable t;
    store_table_open(&t, ENG_ROW_FP8);
    for (int i = 0; i < LENGTH_OF(g_cases); i++) {
        EngStore *store = open_store(&t, &g_cases[i]);
        if (!store) continue;
        const int64_t bad[] = {-1, TEST_ROWS, INT64_MIN, INT64_MAX};
        for (int b = 0; b < 4; b++) {
            EngErr err = {0};
            const int64_t rows[] = {3, bad[b]};
            EngRowsOut out = rows_out(&t.table, 2);
            assert_int_equal(eng_store_read(store, rows, 2, &out, &err), ENG_USAGE);
            assert_non_null(strstr(err.text, store->ops->name));
            assert_int_equal(out.values[0], 0xee);
            rows_out_free(&out);
        }
        eng_store_destroy(store);
    }
    store_table_close(&t);
}

/* What memory hands out is the table; a gather from fetched rows is the gather from the table. */
static void test_tables(void **state)
{
    (void)state;
    StoreTable t;
    EngErr err = {0};
    EngStore *memory, *lent, *pread;
    store_table_open(&t, ENG_ROW_FP8);
    assert_int_equal(eng_store_open(t.path, ENG_STORE_MEMORY, NULL, &memory, &err), ENG_OK);
    assert_int_equal(eng_store_of_table(&t.table, &lent, &err), ENG_OK);
    assert_int_equal(eng_store_open(t.path, ENG_STORE_PREAD, NULL, &pread, &err), ENG_OK);
    const EngTable *table = eng_store_table(memory);
    assert_non_null(table);
    assert_memory_equal(table->values, t.table.values, (size_t)TEST_ROWS * TEST_DIMS);
    assert_memory_equal(table->scales, t.table.scales, (size_t)TEST_ROWS * TEST_DIMS / 32);
    assert_ptr_equal(eng_store_table(lent)->values, t.table.values);
    check_batches(lent, &t.table, 1);
    assert_null(eng_store_table(pread));

    int64_t rows[] = {5, 50000, 5, 17}, order[] = {0, 1, 2, 3};
    EngRowsOut out = rows_out(&t.table, 4);
    assert_int_equal(eng_store_read(pread, rows, 4, &out, &err), ENG_OK);
    float want[4 * TEST_DIMS], got[4 * TEST_DIMS];
    EngGatherProblem problem = {.table = t.table, .columns = 2, .tokens = 2, .out = ENG_F32};
    EngGatherArgs args = {.rows = rows, .row_stride = 2, .out = want};
    eng_ref_gather(&problem,
                   &args); /* not through the registry: its kernels cannot run under TSan */
    problem.table = eng_rows_table(pread, &out, 4);
    args.rows = order;
    args.out = got;
    eng_ref_gather(&problem, &args);
    assert_memory_equal(got, want, sizeof want);
    rows_out_free(&out);
    eng_store_destroy(memory);
    eng_store_destroy(lent);
    eng_store_destroy(pread);
    store_table_close(&t);
}

static void test_dedup(void **state)
{
    (void)state;
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++) {
        StoreTable t;
        EngErr err = {0};
        EngStore *inner, *store;
        EngStoreStats s;
        store_table_open(&t, (EngRowFormat)f);
        const EngStoreOptions options = {.depth = 16};
        assert_int_equal(eng_store_open(t.path, ENG_STORE_URING, &options, &inner, &err), ENG_OK);
        assert_int_equal(eng_store_dedup(inner, &store, &err), ENG_OK);
        check_batches(store, &t.table, 3);
        eng_store_reset_stats(store);
        int64_t rows[1000];
        for (int i = 0; i < 1000; i++) rows[i] = i * 37 % 8;
        check_batch(store, &t.table, rows, 1000, "8 distinct rows");
        eng_store_stats(store, &s);
        assert_int_equal(s.rows, 1000);
        assert_int_equal(s.duplicates, 992);
        assert_int_equal(s.requests, 8 * (f == ENG_ROW_FP8 ? 2 : 1));
        eng_store_destroy(store);
        store_table_close(&t);
    }
}

/* ---- shards ---- */

static EngStore *open_shards(const EngTable *table, const char *path, const int64_t *starts, int n)
{
    EngStore *shards[8], *store;
    EngErr err = {0};
    for (int s = 0; s < n; s++) {
        EngStatus status = path ? eng_store_open(path, ENG_STORE_PREAD, NULL, &shards[s], &err)
                                : eng_store_of_table(table, &shards[s], &err);
        if (status) fail_msg("%s", err.text);
    }
    if (eng_store_sharded(shards, starts, n, &store, &err)) fail_msg("%s", err.text);
    return store;
}

static void test_sharded(void **state)
{
    (void)state;
    static const int64_t starts[] = {0, 1, 1, 25000, TEST_ROWS - 1, TEST_ROWS};
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++) {
        StoreTable t;
        store_table_open(&t, (EngRowFormat)f);
        for (int on_disk = 0; on_disk < 2; on_disk++) {
            EngStore *store = open_shards(&t.table, on_disk ? t.path : NULL, starts, 5);
            check_batches(store, &t.table, 9);
            const int64_t edges[] = {0, 1, 24999, 25000, TEST_ROWS - 2, TEST_ROWS - 1};
            check_batch(store, &t.table, edges, 6, "edges of shards");
            eng_store_destroy(store);
        }
        store_table_close(&t);
    }
}

/* -0, NaN payloads, subnormals and infinities come through the sum as they are. */
static void test_sharded_bits(void **state)
{
    (void)state;
    static const uint32_t special[] = {0x80000000, 0x00000001, 0x807fffff, 0x7fc12345,
                                       0xff812345, 0x7f800000, 0xff800000, 0x00000000};
    uint32_t values[8][32];
    for (int r = 0; r < 8; r++)
        for (int i = 0; i < 32; i++) values[r][i] = special[(r + i) % 8];
    EngTable table = {
        .format = ENG_ROW_F32, .row_dims = 32, .rows = 8, .values = (const uint8_t *)values};
    static const int64_t starts[] = {0, 3, 5, 8}, rows[] = {0, 1, 2, 3, 4, 5, 6, 7, 4, 0};
    EngStore *store = open_shards(&table, NULL, starts, 3);
    check_batch(store, &table, rows, 10, "special values");
    eng_store_destroy(store);
}

static void test_sharded_ranges(void **state)
{
    (void)state;
    StoreTable t;
    EngErr err = {0};
    EngStore *shards[2], *store = NULL;
    store_table_open(&t, ENG_ROW_BF16);
    for (int s = 0; s < 2; s++) eng_store_of_table(&t.table, &shards[s], &err);
    static const int64_t bad[][3] = {{1, 5, TEST_ROWS},
                                     {0, 5, TEST_ROWS - 1},
                                     {0, 5, TEST_ROWS + 1},
                                     {0, TEST_ROWS + 1, TEST_ROWS}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(eng_store_sharded(shards, bad[i], 2, &store, &err), ENG_USAGE);
        assert_null(store);
    }
    for (int s = 0; s < 2; s++) eng_store_destroy(shards[s]);
    store_table_close(&t);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < ENG_STORE_KIND_COUNT; i++)
        assert_int_equal(eng_store_kind_parse(eng_store_kind_name((EngStoreKind)i)), i);
    for (int i = 0; i < ENG_CACHE_POLICY_COUNT; i++)
        assert_int_equal(eng_cache_policy_parse(eng_cache_policy_name((EngCachePolicy)i)), i);
    for (int i = 0; i < ENG_MAP_ADVICE_COUNT; i++)
        assert_int_equal(eng_map_advice_parse(eng_map_advice_name((EngMapAdvice)i)), i);
    for (int i = 0; i < ENG_NUMA_POLICY_COUNT; i++)
        assert_int_equal(eng_numa_policy_parse(eng_numa_policy_name((EngNumaPolicy)i)), i);
    assert_int_equal(eng_store_kind_parse("tape"), -1);
    assert_null(eng_store_kind_name(ENG_STORE_KIND_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),      cmocka_unit_test(test_slots),
        cmocka_unit_test(test_foreign_rows), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_dedup),        cmocka_unit_test(test_sharded),
        cmocka_unit_test(test_sharded_bits), cmocka_unit_test(test_sharded_ranges),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
