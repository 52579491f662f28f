/* Experiments with the device's variants, on the host executor: set up, compared with the oracle,
 * run as samples are, compared again, torn down; with the table in each place, launched and as
 * graphs, under schedules that only events constrain. Nothing is stored: these are no measurements.
 */
#include "on_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/experiments/support.h"
#include "kernels/cpu/project.h"

static void verify(const EngPoint *point, void *state)
{
    EngResidual residual = {0};
    ok(point->experiment->verify(state, &residual, &g_err));
    if (!residual.pass)
        fail_msg("%s: %s, max_rel %g of %g", point->experiment->name, residual.note,
                 residual.max_rel, residual.limit);
}

/* A measured window as in a worker. */
static EngTiming sample(const EngPoint *point, void *state, int inner)
{
    EngCudaWindow device;
    if (point->experiment->prepare) ok(point->experiment->prepare(state, &g_err));
    ok(eng_cuda_window_open(&g_err));
    for (int i = 0; i < inner; i++) ok(point->experiment->run(state, &g_err));
    ok(eng_cuda_window_close(&device, &g_err));
    assert_true(device.ns > 0);
    return (EngTiming){.inner = inner,
                       .wall_ns = 1000 * inner,
                       .cpu_ns = (int64_t)device.ns,
                       .launches = device.launches};
}

/* One life; false: the kernel does not take this shape. */
static bool live(EngPoint *point, double *values)
{
    const EngExperiment *experiment = point->experiment;
    void *state = NULL;
    EngStatus status = experiment->check(point, &g_err);
    if (status == ENG_UNSUPPORTED) return false;
    ok(status);
    EngResources *resources = open_for(point);
    EngBench bench = {.resources = resources, .seed = 77};
    long before = simt_launches();
    ok(experiment->setup(&bench, point, &state, &g_err));
    verify(point, state);
    (void)sample(point, state, 2);
    simt_fail_allocation(1); /* a sample makes nothing: buffers and graphs are there */
    EngTiming timing = sample(point, state, 4);
    simt_fail_allocation(0);
    for (int i = 0; i < ENG_MAX_METRICS; i++) values[i] = -12345;
    experiment->observe(state, &timing, values);
    for (int i = 0; i < experiment->n_metrics; i++) assert_true(values[i] != -12345);
    assert_true(values[experiment->n_metrics] == -12345);
    verify(point, state);
    experiment->teardown(state);
    eng_resources_destroy(resources);
    assert_true(simt_launches() > before);
    clean(experiment->name);
    return true;
}

static void set_axis_of(EngPoint *point, const char *axis, const char *text)
{
    if (has_axis(point->experiment, axis)) set_axis(point, axis, text);
}

static int g_case, g_roofs; /* lives, and those of roofs */

/* All variants of the device that take the point's shape; how many of them are no roofs. */
static int live_all(EngPoint *point, double launches)
{
    const EngExperiment *experiment = point->experiment;
    double values[ENG_MAX_METRICS];
    int n, lived = 0;
    uint64_t before = eng_mem_live_blocks();
    const EngKernel *const *kernels = eng_kernels((EngOp)experiment->op, &n);
    for (int i = 0; i < n; i++) {
        if (kernels[i]->backend != ENG_CUDA) continue;
        g_case++;
        fresh_device(g_case % 3, g_case % 4, (unsigned long)g_case);
        set_axis(point, "variant", kernels[i]->name);
        bool supported = live(point, values);
        lived += supported && !kernels[i]->roof;
        g_roofs += supported && kernels[i]->roof;
        if (supported && launches > 0)
            assert_true(metric_of(experiment, values, "launches") == launches);
    }
    eng_project_cache_clear();
    assert_int_equal(eng_mem_live_blocks(), before);
    return lived;
}

/* Experiments whose operation the device has. */
static bool on_device(EngOp op)
{
    int n, found = 0;
    const EngKernel *const *kernels = eng_kernels(op, &n);
    for (int i = 0; i < n; i++) found += kernels[i]->backend == ENG_CUDA;
    return found > 0;
}

static void test_kernels(void **unused)
{
    static const char *const tokens[] = {"1", "7", "33"}, *const graphs[] = {"off", "on"};
    int lived = 0;
    (void)unused;
    for (int e = 0; e < eng_experiments.n; e++) {
        const EngExperiment *experiment = eng_experiments.items[e];
        if (experiment->op < 0 || !on_device((EngOp)experiment->op)) continue;
        lived++;
        for (int t = 0; t < 3; t++)
            for (int g = 0; g <= has_axis(experiment, "graph"); g++) {
                EngPoint point =
                    point_of(experiment, TINY, "tokens", tokens[t], "graph", graphs[g], NULL);
                if (!live_all(&point, g ? 1 : 0)) fail_msg("%s: nothing ran", experiment->name);
            }
    }
    assert_true(lived >= 8);
}

/* Rows of all layers by one launch. */
static void test_layers(void **unused)
{
    (void)unused;
    EngPoint point = point_of(&eng_experiment_hash, "tokens", "33", "layers", "all", "corpus",
                              "synthetic", "rows", "101", NULL);
    assert_int_equal(live_all(&point, 1), 1);
}

static void test_tables(void **unused)
{
    static const char *const formats[] = {"fp8", "bf16", "f32", "fp8_packed", "fp8_pad288", "int4"};
    static const char *const places[] = {"local", "pinned", "staged", "made"};
    (void)unused;
    for (int f = 0; f < 6; f++)
        for (int p = 0; p < 4; p++) {
            EngPoint point = point_of(&eng_experiment_gather, TINY, "tokens", "9", "row_format",
                                      formats[f], "row_dims", "256", "table_at", places[p], NULL);
            g_roofs = 0;
            assert_int_equal(live_all(&point, 1), p == 2 ? 1 : 2);
            assert_int_equal(g_roofs, p == 2 ? 0 : 4);
        }
}

/* A table made on the device: no memory of the host is asked for, one larger than the device's
 * memory is refused, and points of a worker share one. */
static void test_made(void **unused)
{
    EngNeed need;
    void *first, *second;
    uint64_t before = eng_mem_live_blocks();
    const EngExperiment *gather = &eng_experiment_gather;
    EngPoint point = point_of(gather, "rows", "16000000", "tokens", "64", "corpus", "synthetic",
                              "table_at", "made", "variant", "cuda_decode", NULL);
    (void)unused;
    ok(gather->need(&point, &need, &g_err));
    assert_false(need.table);
    assert_true(need.private_bytes < 1u << 30);
    assert_int_equal(gather->check(&point, &g_err), ENG_UNSUPPORTED);
    assert_non_null(strstr(g_err.text, "table of 94.4 GiB, the device has 24.0"));
    set_axis(&point, "variant", "portable");
    assert_int_equal(gather->check(&point, &g_err), ENG_UNSUPPORTED);

    EngPoint a = point_of(gather, TINY, "tokens", "9", "table_at", "made", "variant", "cuda_decode",
                          NULL),
             b = point_of(gather, TINY, "tokens", "9", "table_at", "made", "variant",
                          "cuda_roof_t2", NULL);
    fresh_device(0, 1, 5);
    EngResources *resources = open_for(&a);
    EngBench bench = {.resources = resources, .seed = 77};
    ok(gather->setup(&bench, &a, &first, &g_err));
    long launches = simt_launches();
    ok(gather->setup(&bench, &b, &second, &g_err));
    assert_int_equal(simt_launches(), launches); /* not filled again */
    gather->teardown(first);
    verify(&b, second);
    gather->teardown(second);
    eng_resources_destroy(resources);
    clean("made");
    assert_int_equal(eng_mem_live_blocks(), before);
}

/* ---- histograms ---- */

typedef struct Counts {
    int64_t gates[80], scores[80];
} Counts;

static void add_counts(void *context, const char *name, int layer, int stream, const char *scale,
                       double lo, double hi, const int64_t *counts, int n_bins)
{
    Counts *all = context;
    (void)layer, (void)stream, (void)scale, (void)lo, (void)hi;
    assert_int_equal(n_bins, 80);
    for (int i = 0; i < n_bins; i++)
        (strcmp(name, "gate") ? all->scores : all->gates)[i] += counts[i];
}

static Counts histograms_of(const char *variant, long *launches)
{
    void *state;
    Counts counts = {0};
    EngPoint point = point_of(&eng_experiment_gate, "preset", "tiny", "hidden", "64", "tokens",
                              "33", "variant", variant, NULL);
    fresh_device(2, 1, 9);
    EngResources *resources = open_for(&point);
    EngBench bench = {.resources = resources, .seed = 77};
    ok(eng_experiment_gate.setup(&bench, &point, &state, &g_err));
    *launches = simt_launches();
    ok(eng_experiment_gate.histograms(state, add_counts, &counts, &g_err));
    *launches = simt_launches() - *launches;
    eng_experiment_gate.teardown(state);
    eng_resources_destroy(resources);
    clean(variant);
    return counts;
}

/* By a kernel, of what the gate's kernel left on the device; the host's gates differ from those by
 * a rounding, which moves few into the next bin. */
static void test_histograms(void **unused)
{
    long by_device, by_host;
    Counts device = histograms_of("cuda_onepass", &by_device);
    Counts host = histograms_of("portable", &by_host);
    int64_t gates = 0, scores = 0, moved = 0;
    (void)unused;
    assert_int_equal(by_device, 2);
    assert_int_equal(by_host, 0);
    for (int i = 0; i < 80; i++) {
        gates += device.gates[i], scores += device.scores[i];
        moved += llabs(device.gates[i] - host.gates[i]) + llabs(device.scores[i] - host.scores[i]);
    }
    assert_int_equal(gates, 4 * 16 * 33); /* streams, windows, tokens */
    assert_int_equal(scores, gates);
    assert_true(moved <= gates / 100);
}

/* The whole forward: kernels hand results on without the host. */
static void test_chain(void **unused)
{
    static const char *const tokens[] = {"5", "40"}, *const graphs[] = {"off", "on"},
                             *const places[] = {"local", "pinned", "staged"};
    double values[ENG_MAX_METRICS];
    (void)unused;
    for (int t = 0; t < 2; t++)
        for (int g = 0; g < 2; g++)
            for (int p = 0; p < 3; p++) {
                fresh_device(p, (t + 2 * g + p) % 4, (unsigned long)(t + 2 * g + 4 * p));
                EngPoint point =
                    point_of(&eng_experiment_chain, TINY, "tokens", tokens[t], "variant", "cuda",
                             "graph", graphs[g], "table_at", places[p], NULL);
                assert_int_equal(live(&point, values), !(g && p == 2));
                if (!(g && p == 2))
                    assert_true(metric_of(point.experiment, values, "launches") >= (g ? 1 : 4));
            }
}

/* A step beside its fetch. On the simulated clock layers take what their threads do: rows that are
 * needed at once are waited for, and behind eight layers they are there. */
static void test_prefetch(void **unused)
{
    static const char *const graphs[] = {"off", "on"}, *const modules[] = {"1", "2"},
                             *const places[] = {"local", "pinned", "staged"};
    const EngExperiment *prefetch = &eng_experiment_prefetch;
    (void)unused;
    for (int i = 0; i < 12; i++) {
        int g = i % 2, m = i / 2 % 2, p = i / 4;
        double late[ENG_MAX_METRICS], early[ENG_MAX_METRICS];
        EngPoint point = point_of(prefetch, TINY, "backend", "cuda", "tokens", "9", "layers", "10",
                                  "placement", "0", "apart", "8", "modules", modules[m], "graph",
                                  graphs[g], "table_at", places[p], "blocks", "1", NULL);
        fresh_device(i % 3, i % 4, (unsigned long)i);
        bool lived = live(&point, early);
        assert_int_equal(lived, !(g && p == 2));
        if (!lived) continue;
        set_axis(&point, "placement", "1");
        set_axis(&point, "apart", "7");
        assert_true(live(&point, late));
        assert_true(metric_of(prefetch, early, "fetch_us") > 0);
        assert_true(metric_of(prefetch, early, "stall_us") > 0);
        double first = metric_of(prefetch, early, "hidden_first");
        assert_true(first >= 0 && first < 1);
        assert_true(metric_of(prefetch, late, "window_us") >
                    metric_of(prefetch, early, "window_us"));
        if (m) assert_true(metric_of(prefetch, early, "hidden_second") == 1);
        assert_true(metric_of(prefetch, early, "step_us") >=
                    metric_of(prefetch, early, "step_ready_us"));
    }
}

/* Nothing slows anything on the simulated clock, which knows no shares of a device. */
static void test_interference(void **unused)
{
    static const char *const graphs[] = {"off", "on"}, *const places[] = {"local", "pinned",
                                                                          "staged"};
    const EngExperiment *experiment = &eng_experiment_interference;
    (void)unused;
    for (int i = 0; i < 6; i++) {
        int g = i % 2, p = i / 2;
        double values[ENG_MAX_METRICS];
        EngPoint point = point_of(experiment, TINY, "backend", "cuda", "tokens", "9",
                                  "victim_tokens", "3", "victim_width", "32", "graph", graphs[g],
                                  "table_at", places[p], "blocks", "1", NULL);
        fresh_device(i % 3, i % 4, (unsigned long)i);
        assert_int_equal(live(&point, values), !(g && p == 2));
        if (g && p == 2) continue;
        assert_true(fabs(metric_of(experiment, values, "slowdown_percent")) < 5);
        assert_true(metric_of(experiment, values, "gather_gbps") > 0);
        assert_true(metric_of(experiment, values, "gather_alone_gbps") > 0);
    }
}

/* ---- graphs that lack something ---- */

/* Whether the point is found right, twice, when graphs leave the nth of their work out. */
static bool verified_without(int nth, const EngPoint *point)
{
    EngResidual first = {0}, second = {0};
    void *state;
    simt_leave_out(nth);
    fresh_device(0, nth & 3, (unsigned long)nth);
    EngResources *resources = open_for(point);
    EngBench bench = {.resources = resources, .seed = 77};
    ok(point->experiment->setup(&bench, point, &state, &g_err));
    ok(point->experiment->verify(state, &first, &g_err));
    ok(point->experiment->verify(state, &second, &g_err));
    point->experiment->teardown(state);
    eng_project_cache_clear();
    eng_resources_destroy(resources);
    simt_leave_out(0);
    clean(point->experiment->name);
    assert_int_equal(first.pass, second.pass);
    return first.pass;
}

/* What is verified is a replay: launched work, which a graph is captured from, is right in any
 * case. Of a convolution's work the last is not looked at (its state), of a step's neither are its
 * products, of products beside gathers the last of each is. */
static void test_left_out(void **unused)
{
    static const struct {
        const EngExperiment *experiment;
        const char *variant;
        int looked_at; /* 0: all, -1: together */
    } all[] = {
        {&eng_experiment_hash, "cuda_reciprocal", 0}, {&eng_experiment_gather, "cuda_decode", 0},
        {&eng_experiment_project, "cuda_mma", 0},     {&eng_experiment_project, "cuda_cublaslt", 0},
        {&eng_experiment_gate, "cuda_onepass", 0},    {&eng_experiment_conv, "cuda_taps", 2},
        {&eng_experiment_chain, "cuda", 0},           {&eng_experiment_prefetch, "", 2},
        {&eng_experiment_interference, "", -1}};
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        EngPoint point = point_of(all[i].experiment, TINY, "tokens", "5", "variant", all[i].variant,
                                  "backend", "cuda", "graph", "on", "layers", "2", "victim_tokens",
                                  "3", "victim_width", "32", "blocks", "1", NULL);
        int most = all[i].looked_at > 0 ? all[i].looked_at : all[i].looked_at < 0 ? 0 : 99;
        assert_true(verified_without(0, &point));
        if (verified_without(-1, &point))
            fail_msg("%s: right without any work", all[i].experiment->name);
        for (int nth = 1; nth <= most; nth++) {
            long before = simt_left_out();
            bool right = verified_without(nth, &point);
            if (simt_left_out() == before) break; /* a graph has no more */
            if (right) fail_msg("%s: right without work %d", all[i].experiment->name, nth);
        }
    }
}

/* From set-up to tear-down; a failure leaves nothing behind. */
static EngStatus whole_life(const EngPoint *point, EngResources *resources)
{
    const EngExperiment *experiment = point->experiment;
    EngBench bench = {.resources = resources, .seed = 77};
    EngResidual residual = {0};
    void *state = NULL;
    EngStatus status = experiment->setup(&bench, point, &state, &g_err);
    if (status) return status;
    status = experiment->verify(state, &residual, &g_err);
    if (!status && experiment->prepare) status = experiment->prepare(state, &g_err);
    if (!status) status = experiment->run(state, &g_err);
    experiment->teardown(state);
    return status;
}

/* Each allocation of the device fails once, up to the life that needs none more. */
static void check_allocations(const EngPoint *point)
{
    EngStatus status = ENG_NO_MEMORY;
    int failed = -1;
    EngResources *resources = open_for(point);
    uint64_t before = eng_mem_live_blocks();
    for (long nth = 1; status; nth++, failed++) {
        fresh_device(0, 1, 1); /* which forgets the operations of the life before */
        simt_fail_allocation(nth);
        status = whole_life(point, resources);
        simt_fail_allocation(0);
        if (status && status != ENG_NO_MEMORY)
            fail_msg("%s, allocation %ld: %s", point->experiment->name, nth, g_err.text);
        eng_project_cache_clear();
        assert_int_equal(eng_mem_live_blocks(), before);
        clean(point->experiment->name);
    }
    eng_resources_destroy(resources);
    assert_true(failed > 0);
}

static void test_allocations(void **unused)
{
    bool seen[ENG_OP_COUNT] = {false}; /* one experiment for an operation */
    (void)unused;
    for (int e = 0; e < eng_experiments.n; e++) {
        const EngExperiment *experiment = eng_experiments.items[e];
        if (experiment->op >= 0 && (seen[experiment->op] || !on_device((EngOp)experiment->op)))
            continue;
        if (experiment->op >= 0) seen[experiment->op] = true;
        EngPoint point = point_of(experiment, TINY, "tokens", "5", "backend", "cuda", "layers", "2",
                                  "victim_tokens", "3", "victim_width", "32", "blocks", "1", NULL);
        bool has_backend = has_axis(experiment, "backend");
        if (experiment->op < 0 && experiment != &eng_experiment_chain && !has_backend) continue;
        int n = 1;
        const EngKernel *const *kernels =
            experiment->op < 0 ? NULL : eng_kernels((EngOp)experiment->op, &n);
        /* Each window has a graph: with few of them. */
        bool few = experiment == &eng_experiment_gather || experiment == &eng_experiment_project ||
                   experiment == &eng_experiment_chain ||
                   experiment == &eng_experiment_interference;
        set_axis_of(&point, "cache", "warm");
        set_axis_of(&point, "graph", few ? "on" : "off");
        for (int i = 0; i < n; i++) {
            if (kernels && kernels[i]->backend != ENG_CUDA) continue;
            set_axis_of(&point, "variant", kernels ? kernels[i]->name : "cuda");
            if (experiment->check(&point, &g_err)) set_axis_of(&point, "graph", "off");
            if (kernels && !strcmp(kernels[i]->name, "cuda_staged"))
                set_axis_of(&point, "table_at", "staged");
            if (experiment->check(&point, &g_err) == ENG_OK) check_allocations(&point);
            set_axis_of(&point, "table_at", "local");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),    cmocka_unit_test(test_tables),
        cmocka_unit_test(test_layers),     cmocka_unit_test(test_made),
        cmocka_unit_test(test_histograms), cmocka_unit_test(test_chain),
        cmocka_unit_test(test_prefetch),   cmocka_unit_test(test_interference),
        cmocka_unit_test(test_left_out),   cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
