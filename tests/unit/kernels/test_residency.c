/* Cold and warm, as the page cache says: dropping, warming, shares of parts of a file, and what
 * reading through the stores costs the device. */
#include "stores_test.h"

#include "kernels/store/residency.h"

/* Some file systems (memory ones) keep all pages: then there is no cold file to test with. */
static bool can_drop(const char *path)
{
    EngErr err = {0};
    double share;
    EngStatus status = eng_residency_drop(path, 0, &share, &err);
    if (status) assert_int_equal(status, ENG_UNSUPPORTED);
    return !status;
}

static void test_cold_and_warm(void **state)
{
    (void)state;
    StoreTable t;
    EngErr err = {0};
    double share = -1;
    store_table_open(&t, ENG_ROW_F32);
    if (can_drop(t.path)) {
        assert_int_equal(eng_residency_share(t.path, 0, 0, &share, &err), ENG_OK);
        assert_true(share == 0);
        assert_int_equal(eng_residency_warm(t.path, &share, &err), ENG_OK);
        assert_true(share == 1);
        assert_int_equal(eng_residency_drop(t.path, 0, &share, &err), ENG_OK);
        assert_true(share == 0);
        /* One page, read past read-ahead. */
        char byte;
        int fd = open(t.path, O_RDONLY);
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        assert_int_equal(pread(fd, &byte, 1, 1 << 20), 1);
        close(fd);
        assert_int_equal(eng_residency_share(t.path, 1 << 20, 4096, &share, &err), ENG_OK);
        assert_true(share == 1);
        assert_int_equal(eng_residency_share(t.path, 8 << 20, 1 << 20, &share, &err), ENG_OK);
        assert_true(share == 0);
    } else {
        print_message("files stay in memory here\n");
    }
    assert_int_equal(eng_residency_share(t.path, 0, (uint64_t)1 << 40, &share, &err), ENG_USAGE);
    assert_int_equal(eng_residency_share("no-such-file", 0, 0, &share, &err), ENG_NOT_FOUND);
    assert_int_equal(eng_residency_drop("no-such-file", 0, NULL, &err), ENG_NOT_FOUND);
    assert_int_equal(eng_residency_warm("no-such-file", NULL, &err), ENG_NOT_FOUND);
    store_table_close(&t);
}

/* A page that a process has touched through a mapping stays, and the error says how much. */
static void test_mapped_stays(void **state)
{
    (void)state;
    StoreTable t;
    EngErr err = {0};
    EngStore *store;
    double share = -1;
    store_table_open(&t, ENG_ROW_F32);
    if (can_drop(t.path)) {
        const int64_t row = 17;
        assert_int_equal(eng_store_open(t.path, ENG_STORE_MMAP, NULL, &store, &err), ENG_OK);
        check_batch(store, &t.table, &row, 1, "one row");
        assert_int_equal(eng_residency_drop(t.path, 0, &share, &err), ENG_UNSUPPORTED);
        assert_true(share > 0 && share < 1);
        assert_non_null(strstr(err.text, "not cold"));
        eng_store_release(store);
        assert_int_equal(eng_residency_drop(t.path, 0, &share, &err), ENG_OK);
        check_batch(store, &t.table, &row, 1, "again");
        eng_store_destroy(store);
    }
    store_table_close(&t);
}

/* Direct reads leave the page cache as it was, and the process's account of device bytes agrees
 * with the store's. */
static void test_device_bytes(void **state)
{
    (void)state;
    StoreTable t;
    EngErr err = {0};
    EngStore *store;
    store_table_open(&t, ENG_ROW_FP8);
    const EngStoreOptions options = {.direct = true, .depth = 16};
    EngStatus status = eng_store_open(t.path, ENG_STORE_URING, &options, &store, &err);
    if (!status && !strcmp(store->ops->name, "uring") && can_drop(t.path)) {
        static int64_t rows[2000];
        EngRng rng;
        EngIoReading before, after;
        EngStoreStats s;
        double share;
        eng_rng_seed(&rng, 3);
        random_rows(&rng, rows, 2000, TEST_ROWS);
        eng_io_read(&before);
        check_batch(store, &t.table, rows, 2000, "direct");
        eng_io_read(&after);
        eng_store_stats(store, &s);
        assert_int_equal(eng_residency_share(t.path, 0, 0, &share, &err), ENG_OK);
        assert_true(share == 0);
        assert_true(before.rss_bytes > 0 && before.cached_bytes > 0);
        if (after.device_bytes > before.device_bytes) /* some containers account none */
            assert_int_equal(after.device_bytes - before.device_bytes, s.bytes_read);
    } else {
        print_message("no direct io_uring reads here\n");
    }
    if (!status) eng_store_destroy(store);
    store_table_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cold_and_warm),
        cmocka_unit_test(test_mapped_stays),
        cmocka_unit_test(test_device_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
