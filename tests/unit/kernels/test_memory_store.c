/* Memory row store: content is a function of format, seed and position; views are prefixes; what
 * does not fit is refused with the numbers.
 */
#include "kernels_test.h"

#include "kernels/ref/gather.h"
#include "kernels/store/memory.h"

#include <math.h>

static EngTableArena make(EngRowFormat format, size_t bytes, uint64_t seed)
{
    EngTableArena arena;
    EngErr err = {0};
    if (eng_table_arena_create(&arena, format, bytes, seed, &err)) fail_msg("%s", err.text);
    return arena;
}

static void test_prefix(void **state)
{
    (void)state;
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++) {
        /* Sizes that end inside a chunk. */
        EngTableArena small = make((EngRowFormat)f, 200032, 3),
                      large = make((EngRowFormat)f, 3000064, 3);
        EngTableArena other = make((EngRowFormat)f, 200032, 4);
        assert_memory_equal(small.values, large.values, small.value_bytes);
        assert_true(memcmp(small.values, other.values, small.value_bytes) != 0);
        if (f == ENG_ROW_FP8) {
            assert_int_equal(small.scale_bytes, 200032 / 32);
            assert_memory_equal(small.scales, large.scales, small.scale_bytes);
        } else {
            assert_null(small.scales);
        }
        /* Chunks are not copies of each other. */
        assert_true(memcmp(large.values, large.values + 65536, 65536) != 0);
        eng_table_arena_destroy(&small);
        eng_table_arena_destroy(&large);
        eng_table_arena_destroy(&other);
        assert_null(small.values);
    }
}

static void test_fp8_content(void **state)
{
    EngTableArena arena = make(ENG_ROW_FP8, 1 << 20, 1);
    int64_t codes[256] = {0}, scales[256] = {0};
    (void)state;
    for (size_t i = 0; i < arena.value_bytes; i++) codes[arena.values[i]]++;
    for (size_t i = 0; i < arena.scale_bytes; i++) scales[arena.scales[i]]++;
    assert_int_equal(codes[0x7f] + codes[0xff], 0);
    for (int i = 0; i < 256; i++) {
        /* 4096 of each expected, deviation 64; 0x7e and 0xfe get the NaN codes' share. */
        if ((i & 0x7f) < 0x7e) assert_in_range(codes[i], 4096 - 6 * 64, 4096 + 6 * 64);
        if (i < 0x70 || i > 0x7b) assert_int_equal(scales[i], 0);
    }
    for (int i = 0x70; i <= 0x7b; i++) assert_in_range(scales[i], 2300, 3200); /* 2731 of each */
    eng_table_arena_destroy(&arena);
}

static void test_normal_content(void **state)
{
    (void)state;
    for (int f = ENG_ROW_BF16; f <= ENG_ROW_F32; f++) {
        enum { N = 1 << 18 };
        EngTableArena arena = make((EngRowFormat)f, N * (f == ENG_ROW_F32 ? 4 : 2), 1);
        EngTable table;
        double sum = 0, squares = 0, beyond_two = 0;
        assert_int_equal(eng_table_arena_view(&arena, 256, N / 256, &table, NULL), ENG_OK);
        for (int i = 0; i < N; i++) {
            double x = eng_ref_table_value(&table, i / 256, i % 256);
            assert_true(isfinite(x));
            sum += x;
            squares += x * x;
            beyond_two += fabs(x) > 0.2;
        }
        assert_true(fabs(sum / N) < 6 * 0.1 / sqrt(N));
        assert_true(fabs(sqrt(squares / N) / 0.1 - 1) < 6 / sqrt(2.0 * N));
        assert_true(fabs(beyond_two / N - 0.0455) < 0.003); /* P(|z| > 2) */
        eng_table_arena_destroy(&arena);
    }
}

static void test_views(void **state)
{
    EngTableArena arena = make(ENG_ROW_FP8, 64 * 1000, 1);
    EngTable table;
    EngErr err = {0};
    (void)state;
    assert_int_equal(eng_table_arena_view(&arena, 64, 1000, &table, &err), ENG_OK);
    assert_ptr_equal(table.values, arena.values);
    assert_ptr_equal(table.scales, arena.scales);
    assert_int_equal(table.rows, 1000);
    assert_int_equal(eng_table_arena_view(&arena, 64, 1001, &table, &err), ENG_NO_MEMORY);
    assert_non_null(strstr(err.text, "64064"));
    assert_int_equal(eng_table_arena_view(&arena, 80, 10, &table, &err), ENG_USAGE);
    eng_table_arena_destroy(&arena);
}

static void test_value_bytes(void **state)
{
    size_t bytes;
    EngErr err = {0};
    (void)state;
    assert_int_equal(eng_table_value_bytes(ENG_ROW_FP8, 256, 384006168, &bytes, &err), ENG_OK);
    assert_true(bytes == 98305579008u); /* a full layer: 98.3 GB and 3.1 GB of scales */
    assert_int_equal(eng_table_value_bytes(ENG_ROW_F32, 256, INT64_MAX, &bytes, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "overflows"));
    assert_int_equal(eng_table_value_bytes(ENG_ROW_F32, 256, -1, &bytes, &err), ENG_USAGE);
    assert_int_equal(eng_table_value_bytes(ENG_ROW_FP8, 33, 1, &bytes, &err), ENG_USAGE);
}

static EngStatus try_bytes(EngRowFormat format, size_t bytes, EngErr *err)
{
    EngTableArena arena;
    EngStatus status = eng_table_arena_create(&arena, format, bytes, 1, err);
    if (status)
        assert_null(arena.values);
    else
        eng_table_arena_destroy(&arena);
    return status;
}

static void test_refusal(void **state)
{
    EngErr err = {0};
    char number[64];
    size_t available = eng_memory_available_bytes();
    (void)state;
    assert_true(available > (size_t)64 << 20);
    snprintf(number, sizeof number, "needs %zu bytes", available * 2);
    assert_int_equal(try_bytes(ENG_ROW_F32, available * 2, &err), ENG_NO_MEMORY);
    assert_non_null(strstr(err.text, number));
    assert_non_null(strstr(err.text, "available"));
    assert_int_equal(try_bytes(ENG_ROW_FP8, SIZE_MAX - 63, &err), ENG_NO_MEMORY);

    /* A tenth stays free, and scales count. */
    assert_int_equal(setenv("ENG_MEMORY_BYTES", "1000000", 1), 0);
    assert_int_equal(eng_memory_available_bytes(), 1000000);
    assert_int_equal(try_bytes(ENG_ROW_F32, 900000, &err), ENG_OK);
    assert_int_equal(try_bytes(ENG_ROW_F32, 900004, &err), ENG_NO_MEMORY);
    assert_int_equal(try_bytes(ENG_ROW_FP8, 872704, &err), ENG_OK); /* + 27,272 = 899,976 */
    assert_int_equal(try_bytes(ENG_ROW_FP8, 872736, &err), ENG_NO_MEMORY);
    unsetenv("ENG_MEMORY_BYTES");
}

static void test_empty_and_huge_pages(void **state)
{
    EngTableArena arena = make(ENG_ROW_BF16, 0, 1);
    (void)state;
    assert_null(arena.values);
    eng_table_arena_destroy(&arena);
    arena = make(ENG_ROW_FP8, (size_t)8 << 20, 1);
    assert_true((uintptr_t)arena.values % ((size_t)2 << 20) == 0);
    assert_true(arena.huge_bytes <= arena.value_bytes && arena.huge_bytes % 4096 == 0);
    print_message("8 MiB arena: %zu bytes on huge pages\n", arena.huge_bytes);
    eng_table_arena_destroy(&arena);
}

/* Filling needs one allocation for normal content: its failure is an error without a leak. */
static void test_no_memory(void **state)
{
    EngTableArena arena;
    EngErr err = {0};
    uint64_t blocks = eng_mem_live_blocks();
    (void)state;
    eng_mem_fail_at(1);
    assert_int_equal(eng_table_arena_create(&arena, ENG_ROW_BF16, 4096, 1, &err), ENG_NO_MEMORY);
    eng_mem_fail_at(0);
    assert_null(arena.values);
    assert_int_equal(eng_mem_live_blocks(), blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_fp8_content),
        cmocka_unit_test(test_normal_content),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_value_bytes),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_empty_and_huge_pages),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
