/* The accounting of the split: budgets hold at every rho, as the paper counts; and what a sample
 * is. */
#include "points.h"

#include <math.h>
#include <stdlib.h>

#include "bench/core/resources.h"
#include "bench/experiments/split_plan.h"

static EngSplit plan_at(const char *rho, const char *preset)
{
    EngErr err = {0};
    EngSplit split;
    EngPoint point = point_of(&eng_experiment_split, "rho", rho, "preset", preset, NULL);
    if (eng_split_plan(&point, &split, &err)) fail_msg("rho %s: %s", rho, err.text);
    return split;
}

/* P_total stays within 0.1 %, P_active within the projections that the paper adds, too. */
static void test_budgets_hold(void **unused)
{
    static const char *const rhos[] = {"0.2", "0.4", "0.6", "0.75", "0.8", "0.9", "1"};
    (void)unused;
    for (size_t i = 0; i < sizeof rhos / sizeof *rhos; i++) {
        EngSplit s = plan_at(rhos[i], "laptop");
        assert_true(fabs((double)s.total / (double)s.total_at_1 - 1) < 1e-3);
        assert_true(fabs((double)(s.active - s.projections) / (double)s.active_at_1 - 1) < 0.02);
        /* Experts are whole, and what they give up pays for the projections, too. */
        double step = 1.0 / (s.experts_at_1 - s.backbone.top_k);
        double sparse = (double)(s.total_at_1 - s.active_at_1);
        assert_true(fabs(eng_split_rho(&s) - atof(rhos[i])) <
                    step + (double)s.projections / sparse);
    }
}

/* Counted from the shapes by hand. */
static void test_sums(void **unused)
{
    (void)unused;
    EngSplit s = plan_at("0.75", "laptop");
    const EngBackboneConfig *c = &s.backbone;
    assert_int_equal(s.modules, 2);
    assert_int_equal(s.row_dims, 32);
    int64_t wide = 3 * 256, outputs = 5 * 1024, norms = 2 * 4 * 1024;
    assert_int_equal(s.projections, 2 * (wide * outputs + norms));
    assert_int_equal(s.expert, (int64_t)c->layers * 3 * 1024 * c->expert_width);
    int given_up = s.experts_at_1 - c->experts;
    /* An expert gives its matrices and its router row. */
    double freed = given_up * ((double)s.expert + c->layers * 1024.0);
    assert_true(fabs((double)(s.tables + s.projections) - freed) < 1e-3 * (double)s.total);
    assert_true(s.rows_per_head * 2 * 24 * 32 <= s.tables);
}

static void test_pure_moe(void **unused)
{
    (void)unused;
    EngSplit s = plan_at("1", "laptop");
    assert_int_equal(s.modules, 0);
    assert_int_equal(s.tables, 0);
    assert_int_equal(s.total, s.total_at_1);
    assert_int_equal(s.active, s.active_at_1);
    assert_true(eng_split_rho(&s) == 1);
    assert_true(fabs((double)s.total / 5e8 - 1) < 0.02);
    assert_true(fabs((double)s.active / 6e7 - 1) < 0.03);
}

/* What cannot be is said, never rounded into something else. */
static void test_refusals(void **unused)
{
    static const char *const bad[][2] = {
        {"active", "1000"}, {"total", "6.1e7"}, {"rho", "0.9999"}, {"heads", "7"}};
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EngErr err = {0};
        EngPoint point = point_of(&eng_experiment_split, bad[i][0], bad[i][1], NULL);
        assert_int_equal(eng_experiment_split.check(&point, &err), ENG_UNSUPPORTED);
        assert_true(err.text[0] != 0);
    }
}

/* A sample is what ran since it was prepared: neither warm-up nor the sample before. */
static void test_sample(void **unused)
{
    (void)unused;
    const EngExperiment *e = &eng_experiment_split;
    EngErr err = {0};
    EngNeed need;
    EngResources *resources;
    void *state;
    double values[ENG_MAX_METRICS];
    EngPoint point =
        point_of(e, "preset", "tiny", "orders", "2-3", "heads", "2", "order_dims", "64", "total",
                 "3000000", "active", "400000", "tokens", "1", "corpus", "synthetic", NULL);
    if (eng_resources_create("no-such-folder", 1, &resources, &err)) fail_msg("%s", err.text);
    if (e->need(&point, &need, &err)) fail_msg("%s", err.text);
    if (eng_resources_add(resources, &need, &err)) fail_msg("%s", err.text);
    if (eng_resources_map(resources, need.row_format, &err)) fail_msg("%s", err.text);
    if (eng_resources_map_weights(resources, &err)) fail_msg("%s", err.text);
    EngBench bench = {.resources = resources, .seed = 3};
    if (e->setup(&bench, &point, &state, &err)) fail_msg("%s", err.text);
    for (int sample = 0; sample < 2; sample++) {
        const EngTiming none = {0}, one = {.inner = 1};
        if (e->run(state, &err)) fail_msg("%s", err.text); /* warm-up */
        if (e->prepare(state, &err)) fail_msg("%s", err.text);
        e->observe(state, &none, values);
        assert_true(isnan(metric_of(e, values, "moe_us")));
        assert_true(isnan(metric_of(e, values, "chain_us")));
        assert_true(isnan(metric_of(e, values, "gather_us")));
        assert_true(isnan(metric_of(e, values, "experts_read")));
        if (e->run(state, &err)) fail_msg("%s", err.text);
        e->observe(state, &one, values);
        assert_true(metric_of(e, values, "experts_read") == 6); /* top_k, of one token */
        assert_true(metric_of(e, values, "gather_us") > 0);
    }
    e->teardown(state);
    eng_resources_destroy(resources);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets_hold), cmocka_unit_test(test_sums),
        cmocka_unit_test(test_pure_moe),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
