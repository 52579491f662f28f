/* Every experiment with every variant at tiny shapes: set up, checked against the oracle, run,
 * observed, torn down; and the same with every allocation failing in turn. */
#include "points.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "bench/core/resources.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/project.h"

#define TINY                                                                                       \
    "preset", "tiny", "orders", "2-3", "heads", "2", "rows", "101", "row_dims", "32", "corpus",    \
        "synthetic", "hidden", "64", "order", "3", "bytes", "65536", "order_dims", "64", "total",  \
        "3000000", "active", "400000"

static EngResources *open_for(const EngPoint *point, EngNeed *need)
{
    EngResources *resources;
    EngErr err = {0};
    if (eng_resources_create("no-such-folder", 1, &resources, &err)) fail_msg("%s", err.text);
    if (point->experiment->need(point, need, &err)) fail_msg("%s", err.text);
    if (eng_resources_add(resources, need, &err)) fail_msg("%s", err.text);
    if (need->table && eng_resources_map(resources, need->row_format, &err))
        fail_msg("%s", err.text);
    if (eng_resources_map_weights(resources, &err)) fail_msg("%s", err.text);
    return resources;
}

typedef struct Bins {
    int64_t gate[16][80], total;
    double lo, hi;
    int rows, layer;
} Bins;

static void keep_bins(void *context, const char *name, int layer, int stream, const char *scale,
                      double lo, double hi, const int64_t *counts, int n_bins)
{
    Bins *bins = context;
    bins->rows++;
    bins->layer = layer;
    if (strcmp(name, "gate")) {
        assert_string_equal(scale, "signed_log");
        assert_true(lo == -hi);
        return;
    }
    assert_string_equal(scale, "linear");
    assert_int_equal(n_bins, 80);
    for (int i = 0; i < n_bins; i++) {
        bins->gate[stream][i] = counts[i];
        bins->total += counts[i];
    }
}

/* One life of a point; returns false when the kernel does not support it. */
static bool live_on(EngResources *resources, const EngPoint *point, double *values, Bins *bins)
{
    const EngExperiment *experiment = point->experiment;
    void *state = NULL;
    EngErr err = {0};
    EngResidual residual = {0};
    EngStatus status = experiment->check(point, &err);
    if (status == ENG_UNSUPPORTED) return false;
    if (status) fail_msg("%s", err.text);
    EngBench bench = {.resources = resources, .seed = 77};
    if (experiment->setup(&bench, point, &state, &err)) fail_msg("%s", err.text);
    if (experiment->verify(state, &residual, &err)) fail_msg("%s", err.text);
    if (!residual.pass)
        fail_msg("%s: %s, max_rel %g of %g", experiment->name, residual.note, residual.max_rel,
                 residual.limit);
    EngTiming timing = {.inner = 5, .wall_ns = 5000, .cpu_ns = 4000};
    for (int i = 0; i < timing.inner; i++)
        if (experiment->run(state, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < ENG_MAX_METRICS; i++) values[i] = -12345;
    experiment->observe(state, &timing, values);
    for (int i = 0; i < experiment->n_metrics; i++) assert_true(values[i] != -12345);
    assert_true(values[experiment->n_metrics] == -12345);
    if (experiment->histograms && bins)
        assert_int_equal(experiment->histograms(state, keep_bins, bins, &err), ENG_OK);
    /* Still right after timed runs: buffers that runs reuse were not left broken. */
    if (experiment->verify(state, &residual, &err)) fail_msg("%s", err.text);
    assert_true(residual.pass);
    experiment->teardown(state);
    experiment->teardown(NULL);
    return true;
}

static bool live(const EngPoint *point, double *values, Bins *bins)
{
    EngNeed need;
    EngResources *resources = open_for(point, &need);
    bool lived = live_on(resources, point, values, bins);
    eng_resources_destroy(resources);
    return lived;
}

static int live_with_variants(EngPoint *point)
{
    const EngExperiment *experiment = point->experiment;
    double values[ENG_MAX_METRICS];
    int n = 1, lived = 0;
    if (experiment->op < 0) return live(point, values, NULL);
    EngNeed need;
    EngResources *resources = open_for(point, &need);
    const EngKernel *const *kernels = eng_kernels((EngOp)experiment->op, &n);
    for (int i = 0; i < n; i++) {
        set_axis(point, "variant", kernels[i]->name);
        bool supported = live_on(resources, point, values, NULL);
        lived += supported;
        for (int m = 0; supported && m < experiment->n_metrics; m++)
            assert_true(isfinite(values[m]) || experiment->metrics[m].clock[0] == 'n');
    }
    eng_resources_destroy(resources);
    return lived;
}

static void test_all_variants(void **unused)
{
    (void)unused;
    static const char *const tokens[] = {"1", "7", "33"};
    uint64_t before = eng_mem_live_blocks();
    for (int e = 0; e < eng_experiments.n; e++)
        for (int t = 0; t < 3; t++) {
            const EngExperiment *experiment = eng_experiments.items[e];
            EngPoint point = point_of(experiment, TINY, "tokens", tokens[t], NULL);
            if (!strcmp(experiment->name, "collide") && t == 0) continue; /* no 3-gram in 1 token */
            if (!live_with_variants(&point)) fail_msg("%s: nothing ran", experiment->name);
        }
    eng_project_cache_clear(); /* packed weights outlive the states that use them */
    assert_int_equal(eng_mem_live_blocks(), before);
}

static void test_formats_and_outputs(void **unused)
{
    (void)unused;
    static const char *const formats[] = {"fp8", "bf16", "f32"}, *const outs[] = {"bf16", "f32",
                                                                                  "fp8"};
    for (int f = 0; f < 3; f++)
        for (int o = 0; o < 3; o++) {
            EngPoint point = point_of(&eng_experiment_gather, TINY, "tokens", "9", "row_format",
                                      formats[f], "out", outs[o], NULL);
            int lived = live_with_variants(&point);
            assert_int_equal(lived > 0, o < 2 || f == 0);
        }
    for (int f = 0; f < 3; f++) {
        EngPoint point = point_of(&eng_experiment_project, TINY, "tokens", "5", "row_format",
                                  formats[f], "weights", "bf16", NULL);
        assert_true(live_with_variants(&point) > 0);
    }
    static const char *const all[] = {"fp8", "bf16", "f32", "fp8_packed", "int4"};
    for (int f = 0; f < 5; f++) {
        EngPoint point =
            point_of(&eng_experiment_lookup, TINY, "tokens", "13", "row_format", all[f], NULL);
        EngNeed need;
        EngErr err;
        EngResources *resources = open_for(&point, &need);
        double values[ENG_MAX_METRICS];
        assert_int_equal(eng_resources_layout(resources, need.row_dims, &err), ENG_OK);
        assert_true(live_on(resources, &point, values, NULL));
        set_axis(&point, "variant", "onednn_f32");
        assert_true(live_on(resources, &point, values, NULL));
        eng_resources_destroy(resources);
    }
}

/* A table that holds its scales inside its rows is laid out for the rows that are asked for. */
static void test_tables_are_laid_out(void **unused)
{
    (void)unused;
    int n = 0;
    for (int e = 0; e < eng_experiments.n; e++) {
        EngPoint point = point_of(eng_experiments.items[e], TINY, "row_format", "fp8_packed",
                                  "tokens", "5", NULL);
        EngNeed need = {0};
        EngErr err = {0};
        if (point.experiment->need(&point, &need, &err) || !need.table) continue;
        EngResources *resources = open_for(&point, &need);
        if (eng_resources_layout(resources, need.row_dims, &err))
            fail_msg("%s: %s", point.experiment->name, err.text);
        eng_resources_destroy(resources);
        n++;
    }
    assert_true(n >= 6); /* chain, gather, interference, lookup, project, step */
}

static void test_two_threads(void **unused)
{
    (void)unused;
    for (int e = 0; e < 6; e++) { /* the timed ones */
        EngPoint point =
            point_of(eng_experiments.items[e], TINY, "tokens", "33", "threads", "2", NULL);
        assert_true(live_with_variants(&point) > 0);
    }
}

/* Shares are of the variant's own stages, and add to 1; false where it cannot run. */
static bool chain_shares(const char *variant, const char *const *stages, int n)
{
    static const char *const names[] = {"share_hash", "share_gather", "share_project", "share_gate",
                                        "share_lookup"};
    double values[ENG_MAX_METRICS], sum = 0;
    int found = 0;
    EngPoint point =
        point_of(&eng_experiment_chain, TINY, "tokens", "40", "variant", variant, NULL);
    if (!live(&point, values, NULL)) return false;
    for (int i = 0; i < 5; i++) {
        double share = metric_of(&eng_experiment_chain, values, names[i]);
        bool has = false;
        for (int k = 0; k < n; k++) has |= !strcmp(names[i] + strlen("share_"), stages[k]);
        assert_int_equal(has, isfinite(share));
        if (!has) continue;
        assert_true(share > 0 && share < 1);
        sum += share;
        found++;
    }
    assert_int_equal(found, n);
    assert_true(fabs(sum - 1) < 1e-12);
    return true;
}

static void test_chain_variants(void **unused)
{
    static const char *const apart[] = {"hash", "gather", "project", "gate"};
    static const char *const fused[] = {"hash", "lookup", "gate"};
    (void)unused;
    assert_true(chain_shares("best", apart, 4));
    assert_true(chain_shares("portable", apart, 4));
    const unsigned needed = ENG_ISA_AVX512 | ENG_ISA_VBMI | ENG_ISA_BF16;
    bool present = (eng_isa_present() & needed) == needed;
    assert_int_equal(chain_shares("fused", fused, 3), present);
}

/* ---- what the gate reports ---- */

static double gate_metric(const double *values, const char *name)
{
    return metric_of(&eng_experiment_gate, values, name);
}

static void test_saturation_is_the_histograms(void **unused)
{
    (void)unused;
    static const char *const formulas[] = {"copysign", "sign", "plain"};
    for (int f = 0; f < 3; f++) {
        double values[ENG_MAX_METRICS];
        Bins bins = {0};
        EngPoint point = point_of(&eng_experiment_gate, TINY, "tokens", "100", "alignment", "0.25",
                                  "formula", formulas[f], NULL);
        assert_true(live(&point, values, &bins));
        assert_int_equal(bins.rows, 8); /* gate and score of 4 streams */
        assert_int_equal(bins.layer, 1);
        assert_int_equal(bins.total, 600 * 4); /* whole windows that cover 512 tokens */
        int64_t sat_05 = 0, sat_10 = 0;
        for (int s = 0; s < 4; s++)
            for (int i = 0; i < 80; i++) { /* bins of 1/80: 0.05 is 4 of them, 0.1 is 8 */
                sat_05 += i < 4 || i >= 76 ? bins.gate[s][i] : 0;
                sat_10 += i < 8 || i >= 72 ? bins.gate[s][i] : 0;
            }
        assert_true(fabs(gate_metric(values, "sat_05") - (double)sat_05 / 2400) < 1e-12);
        assert_true(fabs(gate_metric(values, "sat_10") - (double)sat_10 / 2400) < 1e-12);
        assert_true(sat_10 > sat_05);
    }
}

/* Perfectly aligned states of width 64: scores near 8, so gates near sigmoid(sqrt 8) = 0.944, and
 * near 1 without the root. */
static void test_known_alignment(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    EngPoint point = point_of(&eng_experiment_gate, TINY, "tokens", "64", "alignment", "1", NULL);
    assert_true(live(&point, values, NULL));
    assert_true(gate_metric(values, "sat_10") > 0.99);
    assert_true(gate_metric(values, "divergence_plain") > 0.05);
    assert_true(gate_metric(values, "divergence_plain") < 0.1);
    assert_true(gate_metric(values, "divergence_sign") < 1e-6); /* no score is 0 */
    set_axis(&point, "formula", "plain");
    assert_true(live(&point, values, NULL));
    assert_true(gate_metric(values, "sat_05") == 1);
    assert_true(gate_metric(values, "mean_dgate") < 0.005);
    assert_true(gate_metric(values, "divergence_plain") < 1e-6);
    /* Unrelated states: hardly any gate is near its ends. */
    set_axis(&point, "alignment", "0");
    set_axis(&point, "formula", "copysign");
    assert_true(live(&point, values, NULL));
    assert_true(gate_metric(values, "sat_10") < 0.01);
    assert_true(gate_metric(values, "mean_dgate") > 0.05);
}

static void test_signed_log(void **unused)
{
    (void)unused;
    assert_true(eng_signed_log(0) == 0);
    assert_true(fabs(eng_signed_log(0.09) - 1) < 1e-12);
    assert_true(fabs(eng_signed_log(-9.99) + 3) < 1e-12);
}

/* ---- failures ---- */

static void fail_each_allocation(const EngPoint *point)
{
    const EngExperiment *experiment = point->experiment;
    EngNeed need;
    EngResources *resources = open_for(point, &need);
    EngBench bench = {.resources = resources, .seed = 77};
    eng_project_cache_clear();
    uint64_t before = eng_mem_live_blocks();
    for (uint64_t n = 1;; n++) {
        void *state = NULL;
        EngErr err = {0};
        EngResidual residual = {0};
        assert_true(n < 300);
        eng_mem_fail_at(n);
        EngStatus status = experiment->setup(&bench, point, &state, &err);
        if (status) assert_null(state);
        if (!status) status = experiment->verify(state, &residual, &err);
        if (!status) status = experiment->run(state, &err);
        bool all_seen = eng_mem_fail_at(0) < n;
        experiment->teardown(state);
        eng_project_cache_clear(); /* packed weights outlive a projection on purpose */
        assert_int_equal(eng_mem_live_blocks(), before);
        if (all_seen) {
            assert_int_equal(status, ENG_OK);
            break;
        }
        if (status != ENG_NO_MEMORY)
            fail_msg("%s, allocation %d: %s", experiment->name, (int)n, err.text);
    }
    eng_resources_destroy(resources);
}

static void test_failing_allocations(void **unused)
{
    (void)unused;
    for (int e = 0; e < eng_experiments.n; e++) {
        EngPoint point = point_of(eng_experiments.items[e], TINY, "tokens", "256", NULL);
        fail_each_allocation(&point);
    }
    static const char *const variants[] = {"avx512_fused", "avx512", "onednn_f32"};
    EngPoint point = point_of(&eng_experiment_lookup, TINY, "tokens", "300", NULL);
    for (int v = 0; v < 3; v++) {
        EngErr why;
        set_axis(&point, "variant", variants[v]);
        if (eng_kernel_find(ENG_OP_LOOKUP, variants[v]) &&
            !eng_experiment_lookup.check(&point, &why))
            fail_each_allocation(&point);
    }
}

static void test_stream_too_short(void **unused)
{
    (void)unused;
    EngTokens tokens;
    EngNeed need;
    EngErr err = {0};
    void *state = NULL;
    EngPoint point = point_of(&eng_experiment_hash, TINY, "tokens", "8", NULL);
    EngResources *resources = open_for(&point, &need);
    assert_int_equal(eng_resources_tokens(resources, "tiny", "synthetic", &tokens, &err), ENG_OK);
    EngBench bench = {.resources = resources, .seed = 1};
    set_axis(&point, "corpus", "prose"); /* not opened */
    assert_int_equal(eng_experiment_hash.setup(&bench, &point, &state, &err), ENG_NOT_FOUND);
    assert_null(state);
    eng_resources_destroy(resources);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_variants),
        cmocka_unit_test(test_formats_and_outputs),
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_tables_are_laid_out),
        cmocka_unit_test(test_chain_variants),
        cmocka_unit_test(test_saturation_is_the_histograms),
        cmocka_unit_test(test_known_alignment),
        cmocka_unit_test(test_signed_log),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_stream_too_short),
    };
    return cmocka_run_group_tests(tests, make_tables, remove_tables);
}
