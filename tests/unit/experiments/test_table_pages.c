/* Tables on pages of another size: the same content, shared by its users, refused where there are
 * no such pages; and the axis `pages` of the experiment gather. */
#include "points.h"

#include <stdlib.h>

#include "base/mem.h"
#include "bench/core/resources.h"
#include "bench/experiments/table_pages.h"

static void test_copy(void **unused)
{
    enum { ROWS = 70001, DIMS = 256 }; /* more than one part, and not a multiple of it */
    (void)unused;
    EngErr err = {0};
    uint8_t *values = malloc(ROWS * DIMS), *scales = malloc(ROWS * DIMS / 32);
    assert_true(values && scales);
    for (size_t i = 0; i < ROWS * DIMS; i++) values[i] = (uint8_t)(i * 2654435761u >> 24);
    for (size_t i = 0; i < ROWS * DIMS / 32; i++) scales[i] = (uint8_t)(i % 251);
    EngTable table = {ENG_ROW_FP8, DIMS, ROWS, values, scales}, other = table;
    EngTablePages *first, *second, *third;
    uint64_t before = eng_mem_live_blocks();
    assert_int_equal(eng_table_pages_take(&table, ENG_PAGES_SMALL, &first, &err), ENG_OK);
    assert_memory_equal(first->table.values, values, ROWS * DIMS);
    assert_memory_equal(first->table.scales, scales, ROWS * DIMS / 32);
    assert_true(first->huge_share == 0);
    assert_int_equal(eng_table_pages_take(&table, ENG_PAGES_SMALL, &second, &err), ENG_OK);
    assert_ptr_equal(first, second);
    other.rows = 5;
    assert_int_equal(eng_table_pages_take(&other, ENG_PAGES_SMALL, &third, &err), ENG_OK);
    assert_ptr_not_equal(first, third);
    eng_table_pages_drop(first);
    assert_memory_equal(second->table.values, values, ROWS * DIMS);
    eng_table_pages_drop(third);
    eng_table_pages_drop(second);
    eng_table_pages_drop(NULL);
    assert_int_equal(eng_mem_live_blocks(), before);
    eng_mem_fail_at(1);
    assert_int_equal(eng_table_pages_take(&table, ENG_PAGES_SMALL, &first, &err), ENG_NO_MEMORY);
    eng_mem_fail_at(0);
    assert_int_equal(eng_mem_live_blocks(), before);
    free(values), free(scales);
}

/* A life of a gather point on these pages; the share of its table on large ones. -1: there are no
 * such pages here. */
static double huge_share(const char *pages)
{
    const EngExperiment *gather = &eng_experiment_gather;
    EngPoint point =
        point_of(gather, "preset", "tiny", "orders", "2-3", "heads", "2", "rows", "4001",
                 "row_dims", "64", "corpus", "synthetic", "tokens", "33", "pages", pages, NULL);
    EngResources *resources;
    EngNeed need;
    EngErr err = {0};
    EngResidual residual = {0};
    double values[ENG_MAX_METRICS], share = -1;
    void *state = NULL;
    assert_int_equal(eng_resources_create("no-such-folder", 1, &resources, &err), ENG_OK);
    assert_int_equal(gather->need(&point, &need, &err), ENG_OK);
    assert_int_equal(need.shared_bytes > 0, strcmp(pages, "2m") != 0);
    assert_int_equal(need.shared_id != 0, need.shared_bytes > 0);
    assert_int_equal(eng_resources_add(resources, &need, &err), ENG_OK);
    assert_int_equal(eng_resources_map(resources, need.row_format, &err), ENG_OK);
    EngBench bench = {.resources = resources, .seed = 5};
    EngStatus status = gather->setup(&bench, &point, &state, &err);
    if (status == ENG_UNSUPPORTED) {
        assert_non_null(strstr(err.text, "1 GiB"));
        assert_null(state);
    } else if (status) {
        fail_msg("%s", err.text);
    } else {
        assert_int_equal(gather->verify(state, &residual, &err), ENG_OK);
        assert_true(residual.pass);
        EngTiming timing = {.inner = 1, .wall_ns = 1000, .cpu_ns = 1000};
        gather->observe(state, &timing, values);
        share = metric_of(gather, values, "huge_share");
        gather->teardown(state);
    }
    eng_resources_destroy(resources);
    return share;
}

static EngNeed need_of(const char *rows, const char *dims)
{
    EngNeed need;
    EngErr err = {0};
    const EngExperiment *gather = &eng_experiment_gather;
    EngPoint point =
        point_of(gather, "preset", "tiny", "orders", "2-2", "heads", "1", "rows", rows, "row_dims",
                 dims, "row_format", "bf16", "corpus", "synthetic", "pages", "4k", NULL);
    if (gather->need(&point, &need, &err)) fail_msg("%s", err.text);
    return need;
}

/* Copies are shared by points of one table, not by tables of as many bytes. */
static void test_who_shares_a_copy(void **unused)
{
    (void)unused;
    EngNeed one = need_of("101", "103"), same = need_of("101", "103"),
            other = need_of("103", "101");
    assert_true(one.shared_bytes == other.shared_bytes && one.shared_id != other.shared_id);
    assert_true(one.shared_id == same.shared_id);
}

static void test_gather(void **unused)
{
    (void)unused;
    uint64_t before = eng_mem_live_blocks();
    assert_true(huge_share("4k") == 0);
    assert_true(huge_share("2m") >= 0);
    (void)huge_share("1g"); /* seldom there */
    assert_int_equal(eng_mem_live_blocks(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_who_shares_a_copy),
        cmocka_unit_test(test_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
