/* Steps beside their fetch: points whose fetch is hidden and points whose fetch is not, rows that
 * are right in every phase, modules and chunks, and a table that is cut short while it is read. */
#include "points.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/nvtx.h"
#include "bench/experiments/fetched_step.h"
#include "bench/experiments/gatherers.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/table_files.h"
#include "kernels/ref/hash.h"

#define STEPS 24

#define SMALL                                                                                      \
    "preset", "tiny", "orders", "2-3", "heads", "2", "rows", "101", "row_dims", "32", "corpus",    \
        "synthetic", "hidden", "64"

static EngResources *resources_for(const EngPoint *point)
{
    EngResources *resources;
    EngNeed need;
    EngErr err = {0};
    if (eng_resources_create("no-such-folder", 1, &resources, &err)) fail_msg("%s", err.text);
    if (point->experiment->need(point, &need, &err)) fail_msg("%s", err.text);
    if (eng_resources_add(resources, &need, &err)) fail_msg("%s", err.text);
    if (need.table && eng_resources_map(resources, need.row_format, &err)) fail_msg("%s", err.text);
    if (eng_resources_map_weights(resources, &err)) fail_msg("%s", err.text);
    return resources;
}

/* One sample of `runs`, verified before. */
static void sample(const EngPoint *point, int runs, double values[ENG_MAX_METRICS])
{
    const EngExperiment *e = point->experiment;
    void *state;
    EngErr err = {0};
    EngResidual residual;
    EngTiming timing = {.inner = runs};
    EngResources *resources = resources_for(point);
    EngBench bench = {.resources = resources, .seed = 3};
    if (e->check(point, &err)) fail_msg("%s", err.text);
    if (e->setup(&bench, point, &state, &err)) fail_msg("%s", err.text);
    if (e->verify(state, &residual, &err)) fail_msg("%s", err.text);
    if (!residual.pass) fail_msg("%s", residual.note);
    assert_true(residual.n_checked > 0);
    if (e->prepare(state, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < runs; i++)
        if (e->run(state, &err)) fail_msg("%s", err.text);
    e->observe(state, &timing, values);
    e->teardown(state);
    eng_resources_destroy(resources);
}

static double value_of(const EngPoint *point, const double *values, const char *name)
{
    return metric_of(point->experiment, values, name);
}

/* Reads delayed by 3 ms: needed at once, nearly all is waited for; needed after a long window,
 * nothing. The fetch that is needed at once may only get longer on a busy machine; where the late
 * one was kept from a processor for all of its window, a longer one follows. */
static void test_hidden_and_exposed(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    EngPoint point = point_of(&eng_experiment_prefetch, SMALL, "tokens", "4", "delay", "3000",
                              "placement", "0", "window", "paced:1", "layers", "2", NULL);
    sample(&point, STEPS, values);
    assert_true(value_of(&point, values, "hidden") < 0.2);
    assert_true(value_of(&point, values, "hidden_steps") < 0.5);
    assert_true(value_of(&point, values, "fetch_us") >= 3000);
    assert_true(value_of(&point, values, "interval_steps") == STEPS);
    assert_true(value_of(&point, values, "emulated") == 1);
    assert_true(isnan(value_of(&point, values, "hidden_second")));
    set_axis(&point, "placement", "1");
    static const char *const windows[] = {"paced:20000", "paced:80000", "paced:320000"};
    double hidden = 0;
    for (int w = 0; w < 3 && !(hidden > 0.8); w++) {
        set_axis(&point, "window", windows[w]);
        sample(&point, w ? 4 : STEPS, values);
        hidden = value_of(&point, values, "hidden");
        assert_true(value_of(&point, values, "window_us") >= 20000);
    }
    assert_true(hidden > 0.8);
}

/* Rows and bytes of a step are those of its shape, whatever its phase. */
static void test_phases(void **unused)
{
    (void)unused;
    static const char *const stores[] = {"memory", "mmap", "pread", "nowait", "uring"};
    double values[ENG_MAX_METRICS];
    for (int s = 0; s < 5; s++) {
        EngPoint point = point_of(&eng_experiment_prefetch, SMALL, "tokens", "50", "store",
                                  stores[s], "modules", "2", "phase", "prefill", "chunk", "16",
                                  "vision", "on", "window", "paced:1", NULL);
        sample(&point, 3, values);
        /* 2 orders of 2 heads in 2 modules; a row is 32 values and a scale. */
        assert_true(value_of(&point, values, "rows") == 50 * 4 * 2);
        assert_true(value_of(&point, values, "asked_bytes") == 50 * 4 * 2 * 33);
        assert_true(isfinite(value_of(&point, values, "hidden_second")));
        set_axis(&point, "window", "backbone");
        set_axis(&point, "cores", "shared");
        sample(&point, 1, values);
        assert_true(value_of(&point, values, "emulated") == 0);
    }
}

static void refused(const EngPoint *point, EngStatus want, const char *text)
{
    EngErr err = {0};
    assert_int_equal(point->experiment->check(point, &err), want);
    if (!strstr(err.text, text)) fail_msg("\"%s\" without \"%s\"", err.text, text);
}

static void test_refusals(void **unused)
{
    (void)unused;
    EngPoint point = point_of(&eng_experiment_prefetch, SMALL, "window", "paced", NULL);
    refused(&point, ENG_USAGE, "window: \"paced\" is not backbone or paced:US");
    set_axis(&point, "window", "paced:0");
    refused(&point, ENG_USAGE, "from 0.001");
    set_axis(&point, "window", "paced:1x");
    refused(&point, ENG_USAGE, "paced:1x");
    set_axis(&point, "window", "backbone");
    set_axis(&point, "placement", "4");
    refused(&point, ENG_UNSUPPORTED, "rows needed before layer 4 of 4");
    set_axis(&point, "placement", "3");
    set_axis(&point, "chunk", "4");
    refused(&point, ENG_UNSUPPORTED, "a decode step has no chunks");
    set_axis(&point, "phase", "prefill");
    set_axis(&point, "chunk", "17");
    refused(&point, ENG_UNSUPPORTED, "chunk: 17 tokens of 16");
    set_axis(&point, "chunk", "0");
    set_axis(&point, "store", "memory");
    set_axis(&point, "residency", "cold");
    refused(&point, ENG_UNSUPPORTED, "never cold");
    set_axis(&point, "store", "uring");
    set_axis(&point, "hidden", "65");
    refused(&point, ENG_UNSUPPORTED, "hidden: 65");
}

/* The step that needed the rows gets the error, with the file's name; no step gets other rows. */
static void test_truncated_table(void **unused)
{
    (void)unused;
    static const char *const stores[] = {"pread", "nowait", "uring", "mmap"};
    char path[ENG_TABLE_PATH_BYTES];
    for (int s = 0; s < 4; s++) {
        EngPoint point = point_of(&eng_experiment_prefetch, SMALL, "rows", "5003", "store",
                                  stores[s], "window", "paced:1", NULL);
        EngErr err = {0};
        void *state;
        EngShape shape;
        EngResources *resources = resources_for(&point);
        EngBench bench = {.resources = resources, .seed = 3};
        assert_int_equal(eng_shape_resolve(&point, &shape, &err), ENG_OK);
        assert_int_equal(eng_table_file_ready(resources, shape.row_format, shape.row_dims,
                                              shape.address.rows[0], path, &err),
                         ENG_OK);
        if (point.experiment->setup(&bench, &point, &state, &err)) fail_msg("%s", err.text);
        assert_int_equal(point.experiment->run(state, &err), ENG_OK);
        assert_int_equal(truncate(path, 4096), 0);
        EngStatus status = point.experiment->run(state, &err);
        if (status != ENG_BAD_DATA || !strstr(err.text, path))
            fail_msg("%s: %d: %s", stores[s], (int)status, err.text);
        point.experiment->teardown(state);
        eng_resources_destroy(resources);
        unlink(path);
    }
}

/* With everything accepted the rows of all steps but the first are asked for in the step before;
 * with nothing accepted all of it is cancelled. What is asked for ahead, in 7 of 8 steps, is
 * kept, cancelled or read in vain. */
static void test_speculation(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    const double window = 3 * 6 * 4;
    EngPoint point = point_of(&eng_experiment_speculate, SMALL, "sequences", "3", "draft", "5",
                              "acceptance", "1", "window", "paced:100", NULL);
    sample(&point, 2, values);
    assert_true(value_of(&point, values, "gained_tokens") == 6);
    assert_true(value_of(&point, values, "rejected_rows") == 0);
    assert_true(value_of(&point, values, "ahead_share") == 7.0 / 8);
    assert_true(value_of(&point, values, "kept_rows") == 7.0 / 8 * window);
    assert_true(value_of(&point, values, "cancelled_rows") == 0);
    assert_true(value_of(&point, values, "vain_rows") == 0);
    assert_true(value_of(&point, values, "window_rows") == window);
    set_axis(&point, "acceptance", "0");
    sample(&point, 2, values);
    assert_true(value_of(&point, values, "gained_tokens") == 1);
    assert_true(value_of(&point, values, "rejected_rows") == 3 * 5 * 4);
    assert_true(value_of(&point, values, "ahead_share") == 0);
    assert_true(value_of(&point, values, "cancelled_rows") +
                    value_of(&point, values, "vain_rows") ==
                7.0 / 8 * window);
    set_axis(&point, "ahead", "off");
    sample(&point, 2, values);
    assert_true(value_of(&point, values, "cancelled_rows") == 0);
    assert_true(value_of(&point, values, "vain_rows") == 0);
    assert_true(value_of(&point, values, "vain_share") == 5.0 / 6);
}

/* A traced run has no steps whose rows are there: its ranges are of steps beside their fetch. */
static void test_traced_speculation(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    EngPoint point =
        point_of(&eng_experiment_speculate, SMALL, "acceptance", "1", "window", "paced:100", NULL);
    eng_nvtx_on = true;
    eng_nvtx_step = 0;
    sample(&point, 2, values);
    eng_nvtx_step = -1;
    eng_nvtx_on = false;
    assert_true(isnan(value_of(&point, values, "step_ready_us")));
    assert_true(value_of(&point, values, "step_us") >= 100);
    assert_true(value_of(&point, values, "fetch_us") > 0);
    assert_true(value_of(&point, values, "ahead_share") == 7.0 / 8);
}

/* An outside tool may listen: what is measured stays the same. */
static void test_outside_tool(void **unused)
{
    (void)unused;
    static const EngExperiment *const experiments[] = {&eng_experiment_speculate,
                                                       &eng_experiment_prefetch};
    double values[ENG_MAX_METRICS];
    for (int i = 0; i < 2; i++) {
        EngPoint point = point_of(experiments[i], SMALL, "window", "paced:100", NULL);
        eng_nvtx_on = true;
        sample(&point, 3, values);
        eng_nvtx_on = false;
        assert_true(value_of(&point, values, "step_us") >= 100);
        assert_true(value_of(&point, values, "step_ready_us") >= 100);
    }
}

/* Sequences before the first that was guessed wrong keep their rows, and every row
 * of such mixed steps is compared; whether reads are quick or still in flight when some are dropped
 * moves none of these counts. */
static void test_kept_in_part(void **unused)
{
    (void)unused;
    static const char *const delays[] = {"0", "300"};
    double values[ENG_MAX_METRICS], kept = 0;
    for (int d = 0; d < 2; d++) {
        EngPoint point =
            point_of(&eng_experiment_speculate, SMALL, "sequences", "4", "draft", "1", "acceptance",
                     "0.8", "window", "paced:50", "delay", delays[d], NULL);
        sample(&point, 4, values);
        const double window = 4 * 2 * 4;
        double share = value_of(&point, values, "ahead_share");
        assert_true(share > 0.05 && share < 0.9);
        assert_true(value_of(&point, values, "kept_rows") == share * window);
        assert_true(fabs(value_of(&point, values, "kept_rows") +
                         value_of(&point, values, "cancelled_rows") +
                         value_of(&point, values, "vain_rows") - 7.0 / 8 * window) < 1e-9);
        if (d) assert_true(value_of(&point, values, "kept_rows") == kept); /* drawn, not timed */
        kept = value_of(&point, values, "kept_rows");
    }
}

/* A prompt that starts a text: its passes, shorter than n-grams reach, give the rows of the whole.
 */
static void test_passes_from_a_start(void **unused)
{
    (void)unused;
    enum { TOKENS = 5 };
    EngErr err = {0};
    static EngStep step; /* may not move */
    EngPoint point =
        point_of(&eng_experiment_prefetch, SMALL, "orders", "2-4", "tokens", "5", "modules", "2",
                 "phase", "prefill", "chunk", "1", "window", "paced:1", NULL);
    EngResources *resources = resources_for(&point);
    EngBench bench = {.resources = resources, .seed = 3};
    if (eng_step_create(&step, &bench, &point, &err)) fail_msg("%s", err.text);
    int64_t each = step.address.n_layers * step.address.n_columns;
    int64_t *whole = calloc((size_t)(TOKENS * each), sizeof *whole);
    EngHashArgs args = {.tokens = step.windows.stream + step.windows.at[step.window],
                        .n_tokens = TOKENS,
                        .n_live = TOKENS,
                        .n_seqs = 1,
                        .rows = whole};
    step.windows.history = false;
    eng_ref_hash(&step.address, &args);
    for (int64_t pass = 0; pass < TOKENS; pass++) {
        if (eng_step_hash(&step, pass, &err)) fail_msg("%s", err.text);
        assert_memory_equal(step.rows[pass & 1], whole + pass * each, (size_t)each * sizeof *whole);
    }
    free(whole);
    eng_step_destroy(&step);
    eng_resources_destroy(resources);
}

/* A kernel that a build lacks is refused where it would be opened. */
static void test_no_kernel(void **unused)
{
    (void)unused;
    EngErr err = {0};
    EngRunner runner = {0};
    EngProblem problem = {.op = ENG_OP_PROJECT};
    assert_int_equal(eng_runner_open(&runner, NULL, &problem, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "project"));
    eng_runner_close(&runner);
}

static void test_gatherers(void **unused)
{
    (void)unused;
    static const char *const sources[] = {"table", "store"}, *const counts[] = {"0", "1", "3"};
    double values[ENG_MAX_METRICS];
    for (int s = 0; s < 2; s++)
        for (int n = 0; n < 3; n++) {
            EngPoint point =
                point_of(&eng_experiment_interference, SMALL, "source", sources[s], "gatherers",
                         counts[n], "victim_width", "64", "tokens", "5", NULL);
            sample(&point, 2, values);
            assert_true(value_of(&point, values, "victim_us") > 0);
            if (n) continue; /* how much they get is the machine's; here, nothing */
            assert_true(value_of(&point, values, "gather_rows_per_s") == 0);
            assert_true(isnan(value_of(&point, values, "gather_alone_gbps")));
        }
}

/* The gatherers alone have as long as the products took alone: here longer than a phase must be. */
static void test_quiet_phase(void **unused)
{
    (void)unused;
    void *state;
    EngErr err = {0};
    double values[ENG_MAX_METRICS];
    const EngExperiment *e = &eng_experiment_interference;
    EngPoint point = point_of(e, SMALL, "victim_width", "2048", "victim_tokens", "1024", NULL);
    EngResources *resources = resources_for(&point);
    EngBench bench = {.resources = resources, .seed = 3};
    EngTiming timing = {.inner = 1};
    if (e->setup(&bench, &point, &state, &err)) fail_msg("%s", err.text);
    if (e->prepare(state, &err)) fail_msg("%s", err.text);
    int64_t from = eng_now_ns();
    if (e->run(state, &err)) fail_msg("%s", err.text); /* in order: alone, beside, quiet */
    double us = (double)(eng_now_ns() - from) * 1e-3;
    e->observe(state, &timing, values);
    double products = value_of(&point, values, "products");
    assert_true(us > products * (2 * value_of(&point, values, "victim_alone_us") +
                                 value_of(&point, values, "victim_us")));
    e->teardown(state);
    eng_resources_destroy(resources);
}

/* One time that counts, in which each gatherer ends at least so many batches after its first. */
static void count_time(EngGatherers *g, EngGathered *sum, int64_t batches)
{
    EngErr err = {0};
    eng_gatherers_start(g);
    for (int i = 0; i < g->n && batches; i++)
        while (g->each[i].batches < batches) usleep(50);
    eng_gatherers_end(g);
    if (eng_gatherers_stop(g, sum, &err)) fail_msg("%s", err.text);
}

/* Time counts between ends of batches: a time without whole batches says nothing, not zero. */
static void test_gathered_rate(void **unused)
{
    (void)unused;
    EngErr err = {0};
    EngShape shape;
    EngCores cores;
    EngGatherers g = {0};
    EngGathered none = {0}, some = {0};
    EngPoint point = point_of(&eng_experiment_interference, SMALL, "tokens", "5", NULL);
    EngResources *resources = resources_for(&point);
    EngBench bench = {.resources = resources, .seed = 3};
    if (eng_shape_resolve(&point, &shape, &err)) fail_msg("%s", err.text);
    if (eng_cores_read("any", 1, &cores, &err)) fail_msg("%s", err.text);
    if (eng_gatherers_create(&g, 2, &shape, false, &cores, &bench, &point, &err))
        fail_msg("%s", err.text);
    count_time(&g, &none, 0);
    none.batches[0] = 1; /* whatever the machine did meanwhile */
    assert_true(isnan(eng_gathered_rate(&g, &none)));
    count_time(&g, &some, 8);
    count_time(&g, &some, 8);
    double rate = 0, rows = (double)(shape.tokens * shape.columns);
    for (int i = 0; i < 2; i++) {
        assert_true(some.batches[i] >= 16 && some.ns[i] > 0);
        rate += rows * (double)some.batches[i] / (double)some.ns[i];
    }
    assert_true(fabs(eng_gathered_rate(&g, &some) / rate - 1) < 1e-12);
    some.times = 9; /* 16 batches in 9 times */
    some.batches[1] = 16;
    assert_true(isnan(eng_gathered_rate(&g, &some)));
    eng_gatherers_destroy(&g);
    eng_resources_destroy(resources);
}

int main(void)
{
    /* First the one that needs our handler of SIGBUS: it is installed once, and the test library
     * puts its own in place at the start of every test. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated_table), cmocka_unit_test(test_hidden_and_exposed),
        cmocka_unit_test(test_phases),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_speculation),     cmocka_unit_test(test_traced_speculation),
        cmocka_unit_test(test_outside_tool),    cmocka_unit_test(test_kept_in_part),
        cmocka_unit_test(test_gatherers),       cmocka_unit_test(test_quiet_phase),
        cmocka_unit_test(test_gathered_rate),   cmocka_unit_test(test_passes_from_a_start),
        cmocka_unit_test(test_no_kernel),
    };
    return cmocka_run_group_tests(tests, make_tables, remove_tables);
}
