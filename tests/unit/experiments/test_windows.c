/* Windows of a stream, their rows, and the bytes those touch. */
#include "points.h"

#include "base/mem.h"
#include "base/rng.h"
#include "bench/experiments/idset.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/windows.h"
#include "kernels/ref/hash.h"

static void test_idset(void **unused)
{
    (void)unused;
    EngIdSet set;
    assert_int_equal(eng_idset_create(&set, 100, NULL), ENG_OK);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 100; i++) assert_true(eng_idset_add(&set, i << 40));
        for (uint64_t i = 0; i < 100; i++) assert_false(eng_idset_add(&set, i << 40));
        assert_int_equal(set.n, 100);
        assert_true(eng_idset_has(&set, 0));
        assert_false(eng_idset_has(&set, 1));
        eng_idset_clear(&set);
        assert_int_equal(set.n, 0);
        assert_false(eng_idset_has(&set, 0));
    }
    set.stamp = UINT32_MAX; /* the clear after this one must not bring old numbers back */
    eng_idset_add(&set, 7);
    eng_idset_clear(&set);
    assert_false(eng_idset_has(&set, 7));
    assert_true(eng_idset_add(&set, 7));
    eng_idset_destroy(&set);
}

static void test_counts(void **unused)
{
    (void)unused;
    assert_int_equal(eng_windows_count(1), 131072);
    assert_int_equal(eng_windows_count(64), 2048);
    assert_int_equal(eng_windows_count(1024), 128);
    assert_int_equal(eng_windows_count(16384), 8);
    assert_int_equal(eng_windows_count(16385), 4);
}

enum { N = 3000 };

static EngTokens random_tokens(int32_t ids[N], uint64_t vocab)
{
    EngRng rng;
    eng_rng_seed(&rng, 3);
    for (int i = 0; i < N; i++) ids[i] = (int32_t)eng_rng_below(&rng, vocab);
    return (EngTokens){.corpus = "test", .n_tokens = N, .compressed = ids};
}

/* Rows of a window are those of the whole stream hashed in one piece. */
static void test_rows_are_the_streams(void **unused)
{
    (void)unused;
    static int32_t ids[N];
    static int64_t whole[N * 24];
    EngTokens tokens = random_tokens(ids, 99092);
    EngShape shape;
    EngWindows windows;
    int64_t *rows;
    EngPoint point = point_of(&eng_experiment_gather, NULL);
    assert_int_equal(eng_shape_resolve(&point, &shape, NULL), ENG_OK);
    EngHashArgs args = {.tokens = ids, .n_tokens = N, .n_live = N, .n_seqs = 1, .rows = whole};
    eng_ref_hash(&shape.address, &args);
    assert_int_equal(eng_windows_create(&windows, &tokens, 50, 40, 3, 9, "a", NULL), ENG_OK);
    assert_int_equal(eng_windows_rows(&windows, &shape.address, &rows, NULL), ENG_OK);
    for (int64_t w = 0; w < windows.n; w++) {
        assert_true(windows.at[w] >= 3 && windows.at[w] + 50 <= N);
        assert_memory_equal(rows + w * 50 * 24, whole + windows.at[w] * 24, 50 * 24 * 8);
    }
    eng_free(rows);
    eng_windows_destroy(&windows);
}

static void test_rotation(void **unused)
{
    (void)unused;
    static int32_t ids[N];
    EngTokens tokens = random_tokens(ids, 100);
    EngWindows a, b, again;
    assert_int_equal(eng_windows_create(&a, &tokens, 10, 64, 3, 9, "portable", NULL), ENG_OK);
    assert_int_equal(eng_windows_create(&b, &tokens, 10, 64, 3, 9, "avx2", NULL), ENG_OK);
    assert_int_equal(eng_windows_create(&again, &tokens, 10, 64, 3, 9, "avx2", NULL), ENG_OK);
    /* The same windows, reproducibly, entered at different places. */
    assert_memory_equal(a.at, b.at, 64 * sizeof *a.at);
    assert_int_equal(b.next, again.next);
    assert_true(a.next != b.next);
    int seen[64] = {0};
    for (int i = 0; i < 64; i++) seen[eng_windows_next(&a)]++;
    for (int i = 0; i < 64; i++) assert_int_equal(seen[i], 1);
    eng_windows_destroy(&a);
    eng_windows_destroy(&b);
    eng_windows_destroy(&again);
}

static void test_stream_as_long_as_a_window(void **unused)
{
    (void)unused;
    static int32_t ids[N];
    EngTokens tokens = random_tokens(ids, 100);
    EngWindows windows;
    EngErr err = {0};
    assert_int_equal(eng_windows_create(&windows, &tokens, N, 4, 3, 9, "a", NULL), ENG_OK);
    assert_int_equal(windows.at[3], 0);
    assert_null(eng_windows_hash_args(&windows, 0, 3, NULL).history); /* a text starts there */
    eng_windows_destroy(&windows);
    assert_int_equal(eng_windows_create(&windows, &tokens, N + 1, 4, 3, 9, "a", &err),
                     ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "corpus test has 3000 tokens"));
}

/* fp8 rows of 64 values: a line each, and 2 scale bytes, of which a line holds 32 rows. */
static void test_row_bytes_by_hand(void **unused)
{
    (void)unused;
    uint8_t *values = eng_alloc(64 * 200), *scales = eng_alloc(2 * 200);
    EngTable table = {ENG_ROW_FP8, 64, 200, values, scales};
    /* Window 0: rows 0 1 0 31; window 1: rows 32 33 99 100. */
    const int64_t rows[] = {0, 1, 0, 31, 32, 33, 99, 100};
    EngRowBytes bytes;
    assert_int_equal(eng_windows_row_bytes(&table, rows, 4, 2, &bytes, NULL), ENG_OK);
    assert_true(bytes.logical == 4 * 66);
    assert_true(bytes.distinct == (3 + 4) * 66 / 2.0);
    /* 3 value lines and 1 scale line; 4 value lines and scale lines 1 and 3. */
    assert_true(bytes.lines == ((3 + 1) + (4 + 2)) * 64 / 2.0);
    assert_true(bytes.working_set == 7 * 66);
    eng_free(values);
    eng_free(scales);
}

/* Rows of 80 bf16 values start in the middle of lines. */
static void test_row_bytes_unaligned(void **unused)
{
    (void)unused;
    uint8_t *values = eng_alloc(160 * 100);
    EngTable table = {ENG_ROW_BF16, 80, 100, values, NULL};
    const int64_t rows[] = {0, 1, 3}; /* bytes 0-159, 160-319, 480-639: lines 0-4 and 7-9 */
    EngRowBytes bytes;
    assert_int_equal(eng_windows_row_bytes(&table, rows, 3, 1, &bytes, NULL), ENG_OK);
    assert_true(bytes.lines == 8 * 64);
    assert_true(bytes.distinct == 480);
    eng_free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idset),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_rows_are_the_streams),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_stream_as_long_as_a_window),
        cmocka_unit_test(test_row_bytes_by_hand),
        cmocka_unit_test(test_row_bytes_unaligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
