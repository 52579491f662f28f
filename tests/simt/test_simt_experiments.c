/* Experiments with the device's variants, on the host executor: set up, compared with the oracle,
 * run as samples are, compared again, torn down; with the table in each place, launched and as
 * graphs, under schedules that only events constrain. Nothing is stored: these are no measurements.
 */
#include "tests/unit/experiments/points.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "bench/core/resources.h"
#include "bench/experiments/support.h"
#include "kernels/cpu/project.h"
#include "kernels/cuda/queue.h"
#include "program.h"

#define TINY                                                                                       \
    "preset", "tiny", "orders", "2-3", "heads", "2", "rows", "101", "row_dims", "32", "corpus",    \
        "synthetic", "hidden", "64"

static EngErr g_err;

static void ok(EngStatus status)
{
    if (status) fail_msg("%s", g_err.text);
}

static EngResources *open_for(const EngPoint *point)
{
    EngNeed need;
    EngResources *resources;
    ok(eng_resources_create("no-such-folder", 1, &resources, &g_err));
    ok(point->experiment->need(point, &need, &g_err));
    ok(eng_resources_add(resources, &need, &g_err));
    if (need.table) {
        ok(eng_resources_map(resources, need.row_format, &g_err));
        ok(eng_resources_layout(resources, need.row_dims, &g_err));
    }
    ok(eng_resources_map_weights(resources, &g_err));
    return resources;
}

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
    EngTiming timing = sample(point, state, 4);
    for (int i = 0; i < ENG_MAX_METRICS; i++) values[i] = -12345;
    experiment->observe(state, &timing, values);
    for (int i = 0; i < experiment->n_metrics; i++) assert_true(values[i] != -12345);
    assert_true(values[experiment->n_metrics] == -12345);
    verify(point, state);
    experiment->teardown(state);
    eng_resources_destroy(resources);
    assert_true(simt_launches() > before);
    if (simt_faults()) fail_msg("%s: %s", experiment->name, simt_fault_text());
    return true;
}

static int g_case;

/* All variants of the device that take the point's shape. */
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
        simt_begin(g_case % 3, g_case % 4, (unsigned long)g_case, 0);
        set_axis(point, "variant", kernels[i]->name);
        bool supported = live(point, values);
        lived += supported;
        if (supported && launches > 0)
            assert_true(metric_of(experiment, values, "launches") == launches);
    }
    eng_project_cache_clear();
    assert_int_equal(eng_mem_live_blocks(), before);
    return lived;
}

static const EngExperiment *const g_of_kernels[] = {&eng_experiment_hash, &eng_experiment_gather,
                                                    &eng_experiment_gate, &eng_experiment_project,
                                                    &eng_experiment_conv};

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
    (void)unused;
    for (size_t e = 0; e < sizeof g_of_kernels / sizeof *g_of_kernels; e++)
        for (int t = 0; t < 3 && on_device((EngOp)g_of_kernels[e]->op); t++)
            for (int g = 0; g < 2; g++) {
                EngPoint point =
                    point_of(g_of_kernels[e], TINY, "tokens", tokens[t], "graph", graphs[g], NULL);
                if (!live_all(&point, g ? 1 : 0))
                    fail_msg("%s: nothing ran", g_of_kernels[e]->name);
            }
}

static void test_tables(void **unused)
{
    static const char *const formats[] = {"fp8", "bf16", "f32", "fp8_packed", "fp8_pad288", "int4"};
    static const char *const places[] = {"local", "pinned", "staged"};
    (void)unused;
    for (int f = 0; f < 6; f++)
        for (int p = 0; p < 3; p++) {
            EngPoint point = point_of(&eng_experiment_gather, TINY, "tokens", "9", "row_format",
                                      formats[f], "table_at", places[p], NULL);
            assert_int_equal(live_all(&point, 1), p == 2 ? 1 : 2);
        }
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
                simt_begin(p, (t + 2 * g + p) % 4, (unsigned long)(t + 2 * g + 4 * p), 0);
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
        simt_begin(i % 3, i % 4, (unsigned long)i, 0);
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
        simt_begin(i % 3, i % 4, (unsigned long)i, 0);
        assert_int_equal(live(&point, values), !(g && p == 2));
        if (g && p == 2) continue;
        assert_true(fabs(metric_of(experiment, values, "slowdown_percent")) < 5);
        assert_true(metric_of(experiment, values, "gather_gbps") > 0);
        assert_true(metric_of(experiment, values, "gather_alone_gbps") > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),      cmocka_unit_test(test_tables),
        cmocka_unit_test(test_chain),        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_interference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
