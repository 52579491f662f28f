/* Distinct rows on streams whose answer is known. The stream comes from this file: it takes the
 * place of the run's resources. */
#include "points.h"

#include <math.h>

#include "base/rng.h"
#include "bench/core/resources.h"

static EngTokens g_tokens;

EngStatus eng_resources_tokens(const EngResources *resources, const char *preset,
                               const char *corpus, EngTokens *tokens, EngErr *err)
{
    (void)resources;
    (void)preset;
    (void)corpus;
    (void)err;
    *tokens = g_tokens;
    return ENG_OK;
}

enum { BATCH = 40, BATCHES = 100, N = BATCH * BATCHES };
static uint32_t g_ids[N];
static int32_t g_compressed[N];

static void counted(EngPoint *point, double *values)
{
    void *state;
    EngErr err = {0};
    EngBench bench = {.seed = 1};
    EngResidual residual = {0};
    g_tokens = (EngTokens){.corpus = "test",
                           .n_tokens = N,
                           .ids = g_ids,
                           .compressed = g_compressed,
                           .vocab_ids = 129280};
    if (eng_experiment_reuse.setup(&bench, point, &state, &err)) fail_msg("%s", err.text);
    assert_int_equal(eng_experiment_reuse.verify(state, &residual, &err), ENG_OK);
    assert_true(residual.pass);
    assert_true(residual.n_checked > 2);
    EngTiming timing = {.inner = 1, .wall_ns = 1, .cpu_ns = 1};
    eng_experiment_reuse.observe(state, &timing, values);
    eng_experiment_reuse.teardown(state);
}

static double value(const double *values, const char *name)
{
    return metric_of(&eng_experiment_reuse, values, name);
}

/* A phrase of L different tokens, repeated: L windows of any length, so L rows a column. */
static void test_filler(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    for (int i = 0; i < N; i++) g_compressed[i] = (int32_t)(g_ids[i] = 1000 + i % 10);
    EngPoint point = point_of(&eng_experiment_reuse, "tokens", "40", "rows", "1000003", NULL);
    counted(&point, values);
    assert_true(fabs(value(values, "distinct_all") - 10.0 / 40) < 1e-12);
    assert_true(fabs(value(values, "distinct_2") - 10.0 / 40) < 1e-12);
    assert_true(fabs(value(values, "distinct_4") - 10.0 / 40) < 1e-12);
    assert_true(isnan(value(values, "distinct_5")));
    assert_true(value(values, "repeat_prev") == 1);
    assert_true(value(values, "batches") == 64);
}

/* Ten words, then the same ten in other spelling: compression halves the phrase. */
static void test_compression(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    for (int i = 0; i < N; i++) {
        g_ids[i] = (uint32_t)(1000 + i % 20);
        g_compressed[i] = 500 + i % 10;
    }
    EngPoint point = point_of(&eng_experiment_reuse, "tokens", "40", "rows", "1000003", NULL);
    counted(&point, values);
    assert_true(fabs(value(values, "distinct_all") - 10.0 / 40) < 1e-12);
    set_axis(&point, "compress", "off");
    counted(&point, values);
    assert_true(fabs(value(values, "distinct_all") - 20.0 / 40) < 1e-12);
}

/* Nothing repeats: every row is distinct but for collisions in a table of a million rows. */
static void test_all_different(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    for (int i = 0; i < N; i++) g_compressed[i] = (int32_t)(g_ids[i] = (uint32_t)(i + 100));
    EngPoint point =
        point_of(&eng_experiment_reuse, "tokens", "40", "rows", "1000003", "orders", "2-5", NULL);
    counted(&point, values);
    assert_true(value(values, "distinct_all") > 0.9995);
    assert_true(value(values, "distinct_5") > 0.999);
    assert_true(value(values, "repeat_prev") < 0.001);
    /* A head of two rows: 2 distinct rows in 40 look-ups. Multipliers are odd, so the row of a
     * triple is the parity of its sum, which alternates here. */
    set_axis(&point, "rows", "2");
    set_axis(&point, "heads", "1");
    set_axis(&point, "orders", "3");
    counted(&point, values);
    assert_true(fabs(value(values, "distinct_3") - 2.0 / 40) < 1e-12);
    assert_true(value(values, "repeat_prev") == 1);
}

/* Orders differ: two words in random order have 4 pairs but 8 triples. */
static void test_orders_differ(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    EngRng rng;
    eng_rng_seed(&rng, 5);
    for (int i = 0; i < N; i++)
        g_compressed[i] = (int32_t)(g_ids[i] = 70 + (uint32_t)eng_rng_below(&rng, 2));
    EngPoint point = point_of(&eng_experiment_reuse, "tokens", "400", "rows", "1000003", NULL);
    counted(&point, values);
    assert_true(fabs(value(values, "distinct_2") - 4.0 / 400) < 1e-3);
    assert_true(fabs(value(values, "distinct_3") - 8.0 / 400) < 1e-3);
    assert_true(fabs(value(values, "distinct_4") - 16.0 / 400) < 1e-3);
    assert_true(value(values, "batches") == 10);
}

static void test_short_stream(void **unused)
{
    (void)unused;
    void *state = NULL;
    EngErr err = {0};
    EngBench bench = {.seed = 1};
    EngPoint point = point_of(&eng_experiment_reuse, "tokens", "5000", NULL);
    assert_int_equal(eng_experiment_reuse.setup(&bench, &point, &state, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "has 4000 tokens"));
    assert_null(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filler),        cmocka_unit_test(test_compression),
        cmocka_unit_test(test_all_different), cmocka_unit_test(test_orders_differ),
        cmocka_unit_test(test_short_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
