/* The experiments ladder, stream and populate: every kind of access lives and is verified,
 * refusals, what is counted, and memory shared between points. */
#include "points.h"

#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "bench/core/placement.h"
#include "bench/experiments/ladder_memory.h"

#define SMALL "bytes", "1048576", "tokens", "5"

static void live(const EngPoint *point, double *values)
{
    const EngExperiment *experiment = point->experiment;
    EngErr err = {0};
    EngResidual residual = {0};
    EngBench bench = {.seed = 5};
    void *state = NULL;
    if (experiment->check(point, &err)) fail_msg("%s", err.text);
    if (experiment->setup(&bench, point, &state, &err)) fail_msg("%s", err.text);
    for (int round = 0; round < 2; round++) { /* the second one after timed runs */
        if (experiment->verify(state, &residual, &err)) fail_msg("%s", err.text);
        if (!residual.pass) fail_msg("%s", residual.note);
        for (int i = 0; i < 3; i++)
            if (experiment->run(state, &err)) fail_msg("%s", err.text);
    }
    EngTiming timing = {.inner = 2, .wall_ns = 4000, .cpu_ns = 2000};
    for (int i = 0; i < experiment->n_metrics; i++) values[i] = -1;
    experiment->observe(state, &timing, values);
    experiment->teardown(state);
    experiment->teardown(NULL);
}

static EngPoint ladder_point(const char *access, const char *line, const char *chains,
                             const char *threads)
{
    return point_of(&eng_experiment_ladder, SMALL, "access", access, "line", line, "chains", chains,
                    "threads", threads, NULL);
}

static void test_ladder_lives(void **unused)
{
    (void)unused;
    static const char *const lines[] = {"64", "256+8", "264"}, *const threads[] = {"1", "2"};
    static const char *const chains[] = {"1", "2", "8", "64"};
    double values[ENG_MAX_METRICS];
    uint64_t before = eng_mem_live_blocks();
    for (int l = 0; l < 3; l++)
        for (int t = 0; t < 2; t++) {
            for (int c = 0; c < 4; c++) {
                EngPoint point = ladder_point("chains", lines[l], chains[c], threads[t]);
                live(&point, values);
                assert_true(values[0] > 0 && values[4] > 0);
            }
            EngPoint named = ladder_point("chains16", lines[l], "1", threads[t]);
            live(&named, values); /* 16 chains, whatever the axis chains says */
            assert_true(fabs(values[4] / values[0] - 16 * (l ? 5 : 1)) < 1e-9);
            EngPoint point = ladder_point("read24", lines[l], "1", threads[t]);
            live(&point, values);
            assert_true(isnan(values[4])); /* no chain, no hop */
        }
    assert_int_equal(eng_mem_live_blocks(), before);
}

static void test_roofs_live(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    int n, lived = 0;
    const EngKernel *const *kernels = eng_kernels(ENG_OP_GATHER, &n);
    for (int i = 0; i < n; i++) {
        EngErr err = {0};
        if (kernels[i]->backend != ENG_CPU) continue;
        EngPoint point = ladder_point(kernels[i]->name, "256+8", "1", "1");
        if (!kernels[i]->roof) {
            assert_int_equal(eng_experiment_ladder.check(&point, &err), ENG_USAGE);
            assert_non_null(strstr(err.text, kernels[i]->name));
            continue;
        }
        live(&point, values);
        lived++;
        /* 5 tokens of 24 rows of 5 lines in 1000 ns. */
        assert_true(fabs(metric_of(&eng_experiment_ladder, values, "gload_per_s") - 0.6) < 1e-12);
    }
    assert_true(lived > 0);
}

static void test_what_is_counted(void **unused)
{
    (void)unused;
    double values[ENG_MAX_METRICS];
    EngPoint point = ladder_point("read24", "64", "1", "2");
    live(&point, values);
    /* 120 lines in 1000 ns of each of 2 threads, 2000 ns of wall time. */
    assert_true(fabs(values[0] - 2000.0 / 120) < 1e-9);
    assert_true(fabs(values[1] - 0.120) < 1e-12);
    assert_true(fabs(values[2] - 7.68) < 1e-9);
    assert_true(fabs(values[3] - 3.84) < 1e-9);
    assert_true(values[6] == 16384);
    point = ladder_point("chains", "264", "1", "1");
    live(&point, values);
    assert_true(values[6] == 5.0 * (1048576 / 264));
    assert_true(fabs(values[4] / values[0] - 5) < 1e-9); /* a hop of one chain is 5 lines */
}

static void test_refusals(void **unused)
{
    (void)unused;
    static const struct {
        const char *axis, *text;
        EngStatus status;
        const char *says;
    } cases[] = {
        {"chains", "3", ENG_USAGE, "power of two"},
        {"access", "random", ENG_USAGE, "random"},
        {"access", "read0", ENG_USAGE, "groups"},
        {"access", "read257", ENG_USAGE, "groups"},
        {"access", "read", ENG_USAGE, "read"},
        {"access", "chains12", ENG_USAGE, "power of two"},
        {"access", "chains128", ENG_USAGE, "power of two"},
        {"bytes", "128", ENG_UNSUPPORTED, "too few"},
        {"access", "roof_copy_d0", ENG_UNSUPPORTED, "line"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngErr err = {0};
        EngPoint point = ladder_point("chains", "64", "4", "1");
        set_axis(&point, cases[i].axis, cases[i].text);
        assert_int_equal(eng_experiment_ladder.check(&point, &err), cases[i].status);
        if (!strstr(err.text, cases[i].says)) fail_msg("%s", err.text);
    }
    EngErr err = {0};
    EngPoint point = point_of(&eng_experiment_stream, "pass", "read", "store", "nt", NULL);
    assert_int_equal(eng_experiment_stream.check(&point, &err), ENG_UNSUPPORTED);
    point = point_of(&eng_experiment_stream, "bytes", "4096", "threads", "65", NULL);
    assert_int_equal(eng_experiment_stream.check(&point, &err), ENG_UNSUPPORTED);
}

static void test_sets_are_shared(void **unused)
{
    (void)unused;
    EngErr err = {0};
    EngNeed a, b;
    EngLadderMemory *one, *two, *other;
    EngPoint x = ladder_point("chains", "64", "1", "1"), y = ladder_point("read24", "64", "8", "2");
    assert_int_equal(eng_experiment_ladder.need(&x, &a, &err), ENG_OK);
    assert_int_equal(eng_experiment_ladder.need(&y, &b, &err), ENG_OK);
    assert_true(a.shared_id == b.shared_id && a.shared_bytes == 1048576);
    set_axis(&y, "pages", "4k");
    assert_int_equal(eng_experiment_ladder.need(&y, &b, &err), ENG_OK);
    assert_true(a.shared_id != b.shared_id);
    uint64_t before = eng_mem_live_blocks();
    assert_int_equal(eng_ladder_memory_take(65536, ENG_PAGES_SMALL, ENG_LADDER_LINE64, &one, &err),
                     ENG_OK);
    assert_int_equal(eng_ladder_memory_take(65536, ENG_PAGES_SMALL, ENG_LADDER_LINE64, &two, &err),
                     ENG_OK);
    assert_int_equal(
        eng_ladder_memory_take(65536, ENG_PAGES_SMALL, ENG_LADDER_PACKED, &other, &err), ENG_OK);
    assert_ptr_equal(one, two);
    assert_ptr_not_equal(one, other);
    eng_ladder_memory_drop(one);
    assert_int_equal(eng_ladder_slot_at(&two->ladder, 0), eng_ladder_slot_at(&two->ladder, 1024));
    eng_ladder_memory_drop(other);
    eng_ladder_memory_drop(two);
    eng_ladder_memory_drop(NULL);
    assert_int_equal(eng_mem_live_blocks(), before);
}

static void test_streams_live(void **unused)
{
    (void)unused;
    static const char *const passes[] = {"read", "write", "copy", "update"};
    static const char *const stores[] = {"normal", "nt"}, *const threads[] = {"1", "3"};
    static const char *const sizes[] = {"4096", "1000000", "33554432"};
    double values[ENG_MAX_METRICS];
    uint64_t before = eng_mem_live_blocks();
    for (int p = 0; p < 4; p++)
        for (int s = 0; s < 2; s++)
            for (int t = 0; t < 2; t++)
                for (int b = 0; b < 3; b++) {
                    EngPoint point =
                        point_of(&eng_experiment_stream, "pass", passes[p], "store", stores[s],
                                 "threads", threads[t], "bytes", sizes[b], NULL);
                    EngErr err = {0};
                    if (eng_experiment_stream.check(&point, &err)) continue;
                    live(&point, values);
                    assert_true(values[0] > 0 && fabs(values[0] / values[1] - 2) < 1e-9);
                }
    assert_int_equal(eng_mem_live_blocks(), before);
    EngPoint point = point_of(&eng_experiment_stream, "pass", "copy", "bytes", "8192", NULL);
    live(&point, values);
    /* 4096 bytes loaded and as many stored in 1000 ns. */
    assert_true(fabs(values[0] - 8.192) < 1e-9);
}

static void test_populates(void **unused)
{
    (void)unused;
    static const char *const pages[] = {"4k", "2m"}, *const threads[] = {"1", "3"};
    static const char *const sizes[] = {"4096", "1000001", "9437184"};
    const EngExperiment *populate = &eng_experiment_populate;
    double values[ENG_MAX_METRICS];
    EngErr err = {0};
    uint64_t before = eng_mem_live_blocks();
    for (int p = 0; p < 2; p++)
        for (int t = 0; t < 2; t++)
            for (int b = 0; b < 3; b++) {
                EngPoint point = point_of(populate, "pages", pages[p], "threads", threads[t],
                                          "bytes", sizes[b], NULL);
                live(&point, values); /* pages that are there already fail its check */
                /* All of them in the window of 4000 ns, of whose iterations one found nothing. */
                assert_true(fabs(values[0] - strtod(sizes[b], NULL) / 4000) < 1e-9);
                if (!p) assert_true(values[1] == 0);
            }
    assert_int_equal(eng_mem_live_blocks(), before);
    EngNeed need;
    EngPoint point = point_of(populate, NULL);
    assert_int_equal(populate->need(&point, &need, &err), ENG_OK);
    assert_int_equal(need.private_bytes, 1 << 30); /* so that what is too little is told */
}

/* ---- placement ---- */

static void test_placement(void **unused)
{
    (void)unused;
    EngErr err = {0};
    EngPlacement placement = {0};
    static const char *const pins[] = {"none", "compact", "scatter", "none"};
    for (int i = 0; i < 4; i++)
        for (int threads = 1; threads <= 2; threads++) {
            EngPoint point = ladder_point("chains", "64", "1", threads == 1 ? "1" : "2");
            set_axis(&point, "pin", pins[i]);
            EngStatus status = eng_placement_apply(&placement, &point, &err);
            if (status == ENG_UNSUPPORTED && threads > placement.n) continue; /* one processor */
            if (status) fail_msg("%s", err.text);
            assert_true((placement.topology != NULL) == (i > 0)); /* nothing is asked before */
        }
    EngPoint point = ladder_point("chains", "64", "1", "1024");
    set_axis(&point, "pin", "compact");
    if (placement.n < 1024) {
        assert_int_equal(eng_placement_apply(&placement, &point, &err), ENG_UNSUPPORTED);
        assert_non_null(strstr(err.text, "1024 threads"));
    }
    eng_placement_free(&placement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ladder_lives),    cmocka_unit_test(test_roofs_live),
        cmocka_unit_test(test_what_is_counted), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sets_are_shared), cmocka_unit_test(test_streams_live),
        cmocka_unit_test(test_populates),       cmocka_unit_test(test_placement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
