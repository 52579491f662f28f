/* Helpers of the store tests: a small table in every row format as a file and in memory, batches of
 * rows, and comparing what a store fetched with the table. */
#ifndef ENG_TESTS_STORES_TEST_H
#define ENG_TESTS_STORES_TEST_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels_test.h"

#include <engram/store.h>

#include "kernels/store/memory.h"
#include "kernels/store/table_file.h"

#define TEST_ROWS 50021 /* more than one block of checksums in every format */
#define TEST_DIMS 96    /* rows of 99 and 144 bytes, scales of 3: nothing is aligned */
#define TEST_SEED 5

typedef struct StoreTable {
    char folder[64], path[96];
    EngTableArena arena;
    EngTable table; /* the truth */
} StoreTable;

static inline void store_table_open(StoreTable *t, EngRowFormat format)
{
    EngErr err = {0};
    size_t bytes;
    snprintf(t->folder, sizeof t->folder, "/tmp/engram_store_XXXXXX");
    assert_non_null(mkdtemp(t->folder));
    snprintf(t->path, sizeof t->path, "%s/t.table", t->folder);
    if (eng_table_file_create_seeded(t->path, format, TEST_DIMS, TEST_ROWS, TEST_SEED, 2, NULL,
                                     &err))
        fail_msg("%s", err.text);
    assert_int_equal(eng_table_value_bytes(format, TEST_DIMS, TEST_ROWS, &bytes, &err), ENG_OK);
    assert_int_equal(eng_table_arena_create(&t->arena, format, bytes, TEST_SEED, &err), ENG_OK);
    assert_int_equal(eng_table_arena_layout(&t->arena, TEST_DIMS, &err), ENG_OK);
    assert_int_equal(eng_table_arena_view(&t->arena, TEST_DIMS, TEST_ROWS, &t->table, &err),
                     ENG_OK);
}

static inline void store_table_close(StoreTable *t)
{
    eng_table_arena_destroy(&t->arena);
    unlink(t->path);
    rmdir(t->folder);
}

/* A destination filled with bytes that no row is made of by chance. */
static inline EngRowsOut rows_out(const EngTable *table, int64_t n)
{
    size_t values = eng_rows_value_bytes(table->format, table->row_dims, n);
    size_t scales = eng_rows_scale_bytes(table->format, table->row_dims, n);
    EngRowsOut out = {eng_alloc(values), scales ? eng_alloc(scales) : NULL};
    memset(out.values, 0xee, values);
    if (scales) memset(out.scales, 0xee, scales);
    return out;
}

static inline void rows_out_free(EngRowsOut *out)
{
    eng_free(out->values);
    eng_free(out->scales);
}

/* Slot `slot` holds row `row`, padding aside. */
static inline bool slot_is_row(const EngTable *table, const EngRowsOut *out, int64_t slot,
                               int64_t row)
{
    size_t stride = eng_row_stride_bytes(table->format, table->row_dims);
    size_t bytes = eng_row_value_bytes(table->format, table->row_dims);
    size_t scale = eng_row_scale_bytes(table->format, table->row_dims);
    return !memcmp(out->values + (size_t)slot * stride, table->values + (size_t)row * stride,
                   bytes) &&
           (!scale || !memcmp(out->scales + (size_t)slot * scale,
                              table->scales + (size_t)row * scale, scale));
}

/* Fetches a batch and compares every row. */
static inline void check_batch(EngStore *store, const EngTable *table, const int64_t *rows,
                               int64_t n, const char *what)
{
    EngErr err = {0};
    EngRowsOut out = rows_out(table, n);
    if (eng_store_read(store, rows, n, &out, &err))
        fail_msg("%s, %s: %s", store->ops->name, what, err.text);
    for (int64_t i = 0; i < n; i++)
        if (!slot_is_row(table, &out, i, rows[i]))
            fail_msg("%s, %s, %s: place %d is not row %d", store->ops->name,
                     eng_row_format_name(table->format), what, (int)i, (int)rows[i]);
    rows_out_free(&out);
}

static inline void random_rows(EngRng *rng, int64_t *rows, int64_t n, int64_t below)
{
    for (int64_t i = 0; i < n; i++) rows[i] = (int64_t)eng_rng_below(rng, (uint64_t)below);
}

/* The batches that any store must get right. Returns the rows asked for. */
static inline int64_t check_batches(EngStore *store, const EngTable *table, uint64_t seed)
{
    static int64_t rows[10000];
    int64_t last = table->rows - 1, asked = 0;
    EngRng rng;
    eng_rng_seed(&rng, seed);
    check_batch(store, table, rows, 0, "empty batch");
    const int64_t ends[] = {last, 0, last, last, 0, 1, last - 1};
    check_batch(store, table, ends, 1, "last row");
    check_batch(store, table, ends + 1, 1, "first row");
    check_batch(store, table, ends, 7, "ends and repeats");
    random_rows(&rng, rows, 24, table->rows);
    check_batch(store, table, rows, 24, "a token");
    random_rows(&rng, rows, 10000, table->rows);
    check_batch(store, table, rows, 10000, "10000 random rows");
    for (int i = 0; i < 10000; i++) rows[i] %= 50;
    check_batch(store, table, rows, 1001, "few rows many times");
    asked = 1 + 1 + 7 + 24 + 10000 + 1001;
    return asked;
}

#endif
