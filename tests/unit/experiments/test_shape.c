/* Shapes: published numbers, what hold keeps, and every refusal with its reason. */
#include "points.h"

#include "bench/experiments/shape.h"

static EngShape resolved(const EngPoint *point)
{
    EngShape shape;
    EngErr err = {0};
    if (eng_shape_resolve(point, &shape, &err)) fail_msg("%s", err.text);
    return shape;
}

static void refused(const EngPoint *point, EngStatus status, const char *words)
{
    EngShape shape;
    EngErr err = {0};
    assert_int_equal(eng_shape_resolve(point, &shape, &err), status);
    if (!strstr(err.text, words)) fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void test_v41_defaults(void **unused)
{
    (void)unused;
    EngPoint point = point_of(&eng_experiment_project, NULL);
    EngShape shape = resolved(&point);
    assert_int_equal(shape.columns, 24);
    assert_int_equal(shape.k, 6144);
    assert_int_equal(shape.n, 25600);
    assert_int_equal(shape.layer, 1);
    assert_int_equal(shape.row_bytes, 264);
    assert_int_equal(shape.address.n_layers, 1);
    assert_int_equal(shape.address.primes[0][0], 131101); /* first prime after 131072 */
    assert_int_equal(shape.table_value_bytes, shape.address.rows[0] * 256);
}

/* Full size: the published sums of both layers. */
static void test_published_rows(void **unused)
{
    (void)unused;
    EngPoint point = point_of(&eng_experiment_gather, "rows", "16000000", NULL);
    assert_int_equal(resolved(&point).address.rows[0], 384006168);
    set_axis(&point, "layer", "14");
    EngShape shape = resolved(&point);
    assert_int_equal(shape.address.rows[0], 384016682);
    assert_int_equal(shape.layer, 14);
    assert_true(shape.address.multipliers[0][0] == 67716810739261);
    assert_int_equal(shape.address.offsets[0][1], 16000477);
}

static void test_hold_row_dims(void **unused)
{
    (void)unused;
    EngPoint point = point_of(&eng_experiment_gather, "heads", "4", NULL);
    EngShape shape = resolved(&point);
    assert_int_equal(shape.row_dims, 256);
    assert_int_equal(shape.rows_per_head, 131072);
    assert_int_equal(shape.k, 3072);
}

static void test_hold_embed_dims(void **unused)
{
    (void)unused;
    static const struct {
        const char *heads;
        int row_dims;
    } cases[] = {{"1", 2048}, {"2", 1024}, {"4", 512}, {"8", 256}, {"16", 128}, {"64", 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngPoint point =
            point_of(&eng_experiment_project, "hold", "embed_dims", "heads", cases[i].heads, NULL);
        EngShape shape = resolved(&point);
        assert_int_equal(shape.row_dims, cases[i].row_dims);
        assert_int_equal(shape.k, 6144);
        assert_int_equal(shape.rows_per_head, 131072);
    }
}

static void test_hold_total_bytes(void **unused)
{
    (void)unused;
    /* Twice the columns, half the rows; half the columns, twice the rows. */
    EngPoint point = point_of(&eng_experiment_gather, "hold", "total_bytes", "heads", "16", NULL);
    assert_int_equal(resolved(&point).rows_per_head, 65536);
    set_axis(&point, "heads", "4");
    assert_int_equal(resolved(&point).rows_per_head, 262144);
    set_axis(&point, "heads", "8");
    set_axis(&point, "orders", "2");
    assert_int_equal(resolved(&point).rows_per_head, 3 * 131072);
    /* Rows of 264 bytes become rows of 512. */
    set_axis(&point, "orders", "2-4");
    set_axis(&point, "row_format", "bf16");
    EngShape shape = resolved(&point);
    assert_int_equal(shape.rows_per_head, 131072 * 264 / 512);
    double total = (double)shape.rows_per_head * shape.columns * (double)shape.row_bytes;
    assert_true(total <= 131072.0 * 24 * 264 && total > 131072.0 * 24 * 264 - 24 * 512);
}

static void test_reasons(void **unused)
{
    (void)unused;
    EngPoint point = point_of(&eng_experiment_gather, "hold", "embed_dims", "heads", "5", NULL);
    refused(&point, ENG_UNSUPPORTED, "K = 5 does not divide the 2048 dims");
    point = point_of(&eng_experiment_gather, "row_dims", "40", NULL);
    refused(&point, ENG_UNSUPPORTED, "multiples of 32, not 40");
    set_axis(&point, "row_format", "bf16"); /* has no scale groups */
    assert_int_equal(resolved(&point).row_bytes, 80);
    point =
        point_of(&eng_experiment_gather, "rows", "2", "hold", "total_bytes", "heads", "64", NULL);
    refused(&point, ENG_UNSUPPORTED, "leaves 0 rows per head");
}

static void test_absurd_values(void **unused)
{
    (void)unused;
    static const struct {
        const char *axis, *text, *words;
    } cases[] = {
        {"heads", "0", "heads: 0 must be 1 to 64"},
        {"heads", "65", "heads: 65"},
        {"orders", "0", "\"0\""},
        {"orders", "2-9", "within 1 to 8"},
        {"orders", "4-2", "\"4-2\""},
        {"orders", "two", "is not like"},
        {"orders", "2-", "is not like"},
        {"orders", "2-3x", "is not like"},
        {"orders", "-2", "is not like"},
        {"rows", "1", "2 to 2^40"},
        {"rows", "2^41", "2 to 2^40"},
        {"row_dims", "0", "row_dims: 0"},
        {"tokens", "0", "tokens: 0"},
        {"layer", "2", "not a layer of preset v41-flash (1, 14)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngPoint point = point_of(&eng_experiment_gather, cases[i].axis, cases[i].text, NULL);
        refused(&point, ENG_USAGE, cases[i].words);
        EngErr err = {0};
        assert_int_equal(eng_experiment_gather.check(&point, &err), ENG_USAGE);
    }
    /* 8 orders x 64 heads are more columns than an address holds. */
    EngPoint point = point_of(&eng_experiment_gather, "orders", "1-8", "heads", "64", NULL);
    refused(&point, ENG_USAGE, "columns");
    point = point_of(&eng_experiment_gather, "preset", "v41-flsh", NULL);
    refused(&point, ENG_USAGE, "v41-flash");
}

/* An order outside the preset's widens the addressing; its primes stay where they were. */
static void test_order_axis(void **unused)
{
    (void)unused;
    EngPoint point = point_of(&eng_experiment_collide, "order", "4", NULL);
    EngShape shape = resolved(&point);
    assert_int_equal(shape.min_order, 2);
    assert_int_equal(shape.max_order, 4);
    set_axis(&point, "order", "5");
    EngShape wider = resolved(&point);
    assert_int_equal(wider.max_order, 5);
    assert_int_equal(wider.columns, 32);
    assert_true(wider.address.multipliers[0][3] == shape.address.multipliers[0][3]);
    assert_int_equal(wider.address.primes[0][0], shape.address.primes[0][0]);
}

static void test_kernel_names(void **unused)
{
    (void)unused;
    EngPoint point = point_of(&eng_experiment_hash, "variant", "portabel", NULL);
    EngErr err = {0};
    assert_int_equal(eng_experiment_hash.check(&point, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "did you mean \"portable\"?"));
}

static void test_combinations(void **unused)
{
    (void)unused;
    EngErr err = {0};
    EngPoint point = point_of(&eng_experiment_gather, "out", "fp8", "row_format", "bf16", NULL);
    assert_int_equal(eng_experiment_gather.check(&point, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "not of bf16 rows"));
    point = point_of(&eng_experiment_project, "row_format", "f32", NULL);
    assert_int_equal(eng_experiment_project.check(&point, &err), ENG_UNSUPPORTED);
    point = point_of(&eng_experiment_chain, "row_format", "bf16", NULL);
    assert_int_equal(eng_experiment_chain.check(&point, &err), ENG_UNSUPPORTED);
    point = point_of(&eng_experiment_chain, "preset", "engram-demo", NULL);
    assert_int_equal(eng_experiment_chain.check(&point, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "short convolution"));
    point = point_of(&eng_experiment_reuse, "preset", "tiny", "compress", "off", NULL);
    assert_int_equal(eng_experiment_reuse.check(&point, &err), ENG_UNSUPPORTED);
    point = point_of(&eng_experiment_collide, "rows", "11", NULL);
    assert_int_equal(eng_experiment_collide.check(&point, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "take fewer tokens"));
    point = point_of(&eng_experiment_gate, "alignment", "1.5", NULL);
    assert_int_equal(eng_experiment_gate.check(&point, &err), ENG_USAGE);
}

/* A full-size layer: the bytes are asked for before anything is allocated. */
static void test_need_of_full_table(void **unused)
{
    (void)unused;
    EngNeed need;
    EngErr err = {0};
    EngPoint point = point_of(&eng_experiment_gather, "rows", "16000000", NULL);
    assert_int_equal(eng_experiment_gather.need(&point, &need, &err), ENG_OK);
    assert_true(need.table && need.row_format == ENG_ROW_FP8);
    assert_true(need.table_value_bytes == 384006168u * (size_t)256);
    point = point_of(&eng_experiment_project, NULL);
    assert_int_equal(eng_experiment_project.need(&point, &need, &err), ENG_OK);
    assert_int_equal(need.weight_bytes, 25600 * 6144);
}

static void test_tables_are_sound(void **unused)
{
    (void)unused;
    for (int e = 0; e < eng_experiments.n; e++) {
        const EngExperiment *experiment = eng_experiments.items[e];
        assert_true(experiment->n_axes <= ENG_MAX_AXES);
        assert_true(experiment->n_metrics <= ENG_MAX_METRICS);
        EngPoint point = point_of(experiment, NULL);
        EngErr err = {0};
        if (experiment->check(&point, &err)) fail_msg("%s: %s", experiment->name, err.text);
        assert_true(experiment->estimate_ns(&point) > 0);
        for (int i = 0; i < experiment->n_metrics; i++)
            assert_true(strlen(experiment->metrics[i].help) > 0);
        for (int i = 0; i < experiment->n_axes; i++)
            for (int j = 0; j < i; j++)
                assert_string_not_equal(experiment->axes[i].name, experiment->axes[j].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v41_defaults),       cmocka_unit_test(test_published_rows),
        cmocka_unit_test(test_hold_row_dims),      cmocka_unit_test(test_hold_embed_dims),
        cmocka_unit_test(test_hold_total_bytes),   cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_absurd_values),      cmocka_unit_test(test_order_axis),
        cmocka_unit_test(test_kernel_names),       cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_need_of_full_table), cmocka_unit_test(test_tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
