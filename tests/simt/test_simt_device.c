/* The device's parts of experiments, each by itself on the host executor: the measured window,
 * graphs of windows, mirrors, the sets of inputs that a step rotates, and what runs in which phase.
 */
#include "on_points.h"

#include <cuda_runtime_api.h>

#include "base/mem.h"
#include "bench/experiments/device_beside.h"
#include "bench/experiments/oracle.h"
#include "bench/experiments/support.h"
#include "kernels/cpu/project.h"
#include "kernels/ref/hash.h"

/* Kernels and copies from `first` on whose name contains the text. */
static long activities_of(const char *text, long first)
{
    long n = 0;
    for (long i = first; i < simt_activities(); i++)
        n += strstr(simt_activity(i).name, text) != NULL;
    return n;
}

/* ---- the measured window ---- */

/* Without a launch it has no length, however long the host took. */
static void test_empty_window(void **unused)
{
    EngCudaWindow window = {7, 7};
    (void)unused;
    fresh_device(0, 0, 1);
    ok(eng_cuda_window_open(&g_err));
    ok(eng_cuda_window_close(&window, &g_err));
    assert_true(window.ns == 0);
    assert_true(window.launches == 0);
    clean("window");
}

/* The empty kernel's time, whose events are gone also where the second cannot be made. */
static void test_floor(void **unused)
{
    double ns = 7;
    (void)unused;
    fresh_device(0, 0, 1);
    ok(eng_cuda_floor_ns(&ns, &g_err));
    assert_true(ns >= 2000); /* simt::kernel_ns */
    for (long nth = 1; nth <= 2; nth++) {
        simt_fail_allocation(nth);
        assert_int_equal(eng_cuda_floor_ns(&ns, &g_err), ENG_NO_MEMORY);
        assert_true(ns == 0);
    }
    clean("floor");
}

/* ---- graphs ---- */

typedef struct Windows {
    int32_t *from, *to; /* of the device, [4]; [1], which the host reads too */
    int bodies;
} Windows;

static EngStatus copy_window(void *opaque, int64_t window, EngErr *err)
{
    Windows *w = opaque;
    EngCudaStream *stream;
    w->bodies++;
    EngStatus status = eng_cuda_main(&stream, err);
    return status ? status : eng_cuda_copy_async(w->to, w->from + window, 4, stream, err);
}

/* Each window has a graph of its own, whichever order they are replayed in; a run outside a
 * measured window has its result when it returns. */
static void test_windows(void **unused)
{
    static const int64_t order[] = {0, 1, 2, 3, 2, 0, 3, 1};
    const int32_t numbers[] = {70, 71, 72, 73};
    (void)unused;
    for (int i = 0; i < 12; i++) {
        Windows w = {0};
        EngReplay replay;
        EngPoint point = point_of(&eng_experiment_gather, TINY, "graph", "on", NULL);
        fresh_device(i % 3, i % 4, (unsigned long)i);
        ok(eng_cuda_alloc(ENG_CUDA_DEVICE, sizeof numbers, (void **)&w.from, &g_err));
        ok(eng_cuda_alloc(ENG_CUDA_PINNED, sizeof *w.to, (void **)&w.to, &g_err));
        ok(eng_cuda_copy(w.from, numbers, sizeof numbers, &g_err));
        ok(eng_replay_open(&replay, &point, 4, &g_err));
        for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
            ok(eng_replay_run(&replay, copy_window, &w, order[k], &g_err));
            assert_int_equal(*w.to, 70 + order[k]);
            assert_int_equal(w.bodies, 1 + 4); /* launched once, and all captured by the first */
        }
        eng_replay_close(&replay);
        eng_cuda_free(ENG_CUDA_DEVICE, w.from);
        eng_cuda_free(ENG_CUDA_PINNED, w.to);
        clean("windows");
    }
}

/* Every run is of the next window, for which there is a graph. */
static void test_runs_rotate(void **unused)
{
    static const struct {
        const EngExperiment *experiment;
        const char *variant;
    } all[] = {{&eng_experiment_hash, "cuda_reciprocal"}, {&eng_experiment_gather, "cuda_decode"},
               {&eng_experiment_project, "cuda_mma"},     {&eng_experiment_gate, "cuda_onepass"},
               {&eng_experiment_conv, "cuda_taps"},       {&eng_experiment_chain, "cuda"}};
    (void)unused;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const EngExperiment *experiment = all[i].experiment;
        void *state;
        EngPoint point = point_of(experiment, TINY, "tokens", "5", "variant", all[i].variant,
                                  "graph", "on", NULL);
        fresh_device(0, 0, 1);
        EngResources *resources = open_for(&point);
        EngBench bench = {.resources = resources, .seed = 7};
        ok(experiment->setup(&bench, &point, &state, &g_err));
        long before = simt_graphs();
        for (int run = 1; run <= 3; run++) {
            if (experiment->prepare) ok(experiment->prepare(state, &g_err));
            ok(experiment->run(state, &g_err));
            if (simt_graphs() != before + run)
                fail_msg("%s: %ld graphs in %d runs", experiment->name, simt_graphs() - before,
                         run);
        }
        experiment->teardown(state);
        eng_project_cache_clear();
        eng_resources_destroy(resources);
        clean(experiment->name);
    }
}

/* ---- grids ---- */

/* Of 60 tiles, on two multiprocessors that hold 20 blocks each: told by the clock, which counts
 * threads. */
static void test_grids(void **unused)
{
    static const struct {
        EngCudaGrid grid;
        unsigned long blocks;
    } all[] = {
        {{0, 0}, 40}, {{0, ENG_CUDA_HALF_GRID}, 20}, {{2, 5}, 5}, {{2, 100}, 60}, {{16, 0}, 8}};
    enum { TOKENS = 60, DIMS = 64, ROWS = 16 };
    uint16_t values[ROWS * DIMS] = {0};
    int64_t rows[TOKENS * 2] = {0};
    void *table, *ids, *out;
    EngCudaStream *stream;
    (void)unused;
    fresh_device(0, 0, 1);
    ok(eng_cuda_main(&stream, &g_err));
    ok(eng_cuda_alloc(ENG_CUDA_DEVICE, sizeof values, &table, &g_err));
    ok(eng_cuda_alloc(ENG_CUDA_DEVICE, sizeof rows, &ids, &g_err));
    ok(eng_cuda_alloc(ENG_CUDA_DEVICE, TOKENS * 2 * DIMS * 2, &out, &g_err));
    ok(eng_cuda_copy(table, values, sizeof values, &g_err));
    ok(eng_cuda_copy(ids, rows, sizeof rows, &g_err));
    EngGatherProblem problem = {{ENG_ROW_BF16, DIMS, ROWS, table, NULL}, 2, TOKENS, ENG_BF16};
    EngGatherArgs args = {.rows = ids, .row_stride = 2, .out = out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ok(eng_cuda_gather(&problem, &args, all[i].grid, stream, &g_err));
        ok(eng_cuda_wait(stream, &g_err));
        SimtActivity last = simt_activity(simt_activities() - 1);
        assert_int_equal(last.end_ns - last.start_ns, 2000 + 128 * all[i].blocks);
    }
    eng_cuda_free(ENG_CUDA_DEVICE, table);
    eng_cuda_free(ENG_CUDA_DEVICE, ids);
    eng_cuda_free(ENG_CUDA_DEVICE, out);
    clean("grids");
}

/* ---- mirrors ---- */

static enum cudaMemoryType memory_of(const void *at)
{
    struct cudaPointerAttributes attributes;
    assert_int_equal(cudaPointerGetAttributes(&attributes, at), cudaSuccess);
    return attributes.type;
}

/* One table in both places at a time, held by two kernels and by one; it alone is elsewhere. */
static void test_places(void **unused)
{
    EngMirrors mirrors = {0}, others = {0};
    EngProblem local, pinned, again, staged, made, there;
    uint8_t values[16 * 64], scales[16 * 2];
    EngProblem problem = {.op = ENG_OP_GATHER,
                          .u.gather = {{ENG_ROW_FP8, 64, 16, values, scales}, 2, 1, ENG_BF16}};
    EngProblem lookup = {
        .op = ENG_OP_LOOKUP,
        .u.lookup = {.table = problem.u.gather.table, .columns = 2, .n = 32, .weights = ENG_FP8}};
    uint8_t weights[32 * 128], weight_scales[4];
    (void)unused;
    lookup.u.lookup.w = memset(weights, 1, sizeof weights);
    lookup.u.lookup.w_scales = memset(weight_scales, 1, sizeof weight_scales);
    memset(values, 1, sizeof values), memset(scales, 1, sizeof scales);
    fresh_device(0, 0, 1);
    ok(eng_mirror_problem(&mirrors, &problem, ENG_TABLE_LOCAL, &local, &g_err));
    ok(eng_mirror_problem(&mirrors, &problem, ENG_TABLE_PINNED, &pinned, &g_err));
    ok(eng_mirror_problem(&others, &problem, ENG_TABLE_PINNED, &again, &g_err));
    ok(eng_mirror_problem(&others, &problem, ENG_TABLE_STAGED, &staged, &g_err));
    assert_int_equal(memory_of(local.u.gather.table.values), cudaMemoryTypeDevice);
    assert_int_equal(memory_of(local.u.gather.table.scales), cudaMemoryTypeDevice);
    assert_int_equal(memory_of(pinned.u.gather.table.values), cudaMemoryTypeHost);
    assert_int_equal(memory_of(pinned.u.gather.table.scales), cudaMemoryTypeHost);
    assert_ptr_equal(again.u.gather.table.values, pinned.u.gather.table.values);
    ok(eng_mirror_problem(&others, &problem, ENG_TABLE_MADE, &made, &g_err));
    ok(eng_mirror_problem(&others, &lookup, ENG_TABLE_PINNED, &there, &g_err));
    assert_ptr_equal(staged.u.gather.table.values, values);
    assert_ptr_equal(made.u.gather.table.values, values);
    assert_ptr_equal(there.u.lookup.table.values, pinned.u.gather.table.values);
    assert_int_equal(memory_of(there.u.lookup.w), cudaMemoryTypeDevice);
    assert_int_equal(memory_of(there.u.lookup.w_scales), cudaMemoryTypeDevice);
    eng_mirror_drop(&mirrors);
    assert_int_equal(memory_of(again.u.gather.table.values), cudaMemoryTypeHost);
    eng_mirror_drop(&others);
    clean("places");
}

/* On a device that has failed, a mirror whose content cannot be sent is none. */
static void test_failed_copy(void **unused)
{
    EngMirrors mirrors = {0};
    void *there;
    uint8_t host[64] = {0};
    uint64_t before = eng_mem_live_blocks();
    (void)unused;
    fresh_device(0, 0, 1);
    ok(eng_cuda_alloc(ENG_CUDA_DEVICE, 32, &there, &g_err));
    assert_int_equal(eng_cuda_copy(there, host, sizeof host, &g_err), ENG_INTERNAL);
    eng_cuda_free(ENG_CUDA_DEVICE, there);
    assert_int_equal(eng_mirror_cover(&mirrors, host, sizeof host, &g_err), ENG_INTERNAL);
    assert_int_equal(mirrors.n, 0);
    assert_null(simt_left_over());
    assert_int_equal(eng_mem_live_blocks(), before);
}

/* Row numbers of which a token has more than the kernel reads, up to the very last one and no
 * further; of every operation that has such. */
static void test_strided_rows(void **unused)
{
    enum { TOKENS = 3, COLUMNS = 2, STRIDE = 7, ALL = (TOKENS - 1) * STRIDE + COLUMNS };
    static const EngOp ops[] = {ENG_OP_GATHER, ENG_OP_LOOKUP, ENG_OP_BACK_GATHER};
    (void)unused;
    for (int i = 0; i < 3; i++) {
        EngMirrors mirrors = {0};
        EngProblem problem = {.op = ops[i]};
        EngArgs args = {0}, there = {0};
        int64_t rows[ALL], got[ALL + 1];
        for (int r = 0; r < ALL; r++) rows[r] = 100 + r;
        problem.u.gather.tokens = problem.u.lookup.tokens = TOKENS;
        const int64_t **of_args = &args.u.gather.rows, **of_there = &there.u.gather.rows;
        if (ops[i] == ENG_OP_GATHER) {
            problem.u.gather = (EngGatherProblem){.columns = COLUMNS, .tokens = TOKENS};
            args.u.gather.row_stride = STRIDE;
        } else if (ops[i] == ENG_OP_LOOKUP) {
            problem.u.lookup = (EngLookupProblem){.columns = COLUMNS, .tokens = TOKENS};
            args.u.lookup.row_stride = STRIDE;
            of_args = &args.u.lookup.rows, of_there = &there.u.lookup.rows;
        } else {
            problem.u.back_gather = (EngBackGatherProblem){.columns = COLUMNS, .tokens = TOKENS};
            args.u.back_gather.row_stride = STRIDE;
            of_args = &args.u.back_gather.rows, of_there = &there.u.back_gather.rows;
        }
        *of_args = rows;
        fresh_device(0, 0, 1);
        ok(eng_mirror_args(&mirrors, &problem, &args, &there, &g_err));
        ok(eng_cuda_copy(got, *of_there, sizeof rows, &g_err));
        assert_memory_equal(got, rows, sizeof rows);
        assert_int_equal(simt_faults(), 0);
        assert_int_not_equal(eng_cuda_copy(got, *of_there, sizeof rows + 1, &g_err), ENG_OK);
        assert_non_null(strstr(simt_fault_text(), "1 past the end")); /* nor of the host's */
        eng_mirror_drop(&mirrors);
        assert_null(simt_left_over());
    }
}

/* ---- a step ---- */

/* Row numbers that the last step's module was fetched for, of the device. */
static void fetched_rows(EngDeviceStep *step, int64_t *rows, size_t bytes)
{
    const void *there;
    if (step->modules[0].staged) {
        memcpy(rows, step->modules[0].rows, bytes);
        return;
    }
    ok(eng_mirror_at(&step->modules[0].mirrors, step->modules[0].rows, bytes, &there, &g_err));
    ok(eng_cuda_copy(rows, there, bytes, &g_err));
}

/* Every step has the next set of tokens, with its history, also when it is a graph that is replayed
 * and after the last set; and a step with its rows ready fetches none. */
static void test_sets(void **unused)
{
    static const char *const graphs[] = {"off", "on", "off"}, *const places[] = {"local", "local",
                                                                                 "staged"};
    enum { TOKENS = 5, COLUMNS = 4, ROWS = TOKENS * COLUMNS, STEPS = 70 };
    (void)unused;
    for (int g = 0; g < 3; g++) {
        EngDeviceStep step = {0};
        int64_t last[ROWS] = {0}, changes = 0;
        EngPoint point =
            point_of(&eng_experiment_prefetch, TINY, "backend", "cuda", "tokens", "5", "layers",
                     "2", "placement", "1", "graph", graphs[g], "table_at", places[g], NULL);
        fresh_device(g, g, 3);
        EngResources *resources = open_for(&point);
        EngBench bench = {.resources = resources, .seed = 7};
        ok(eng_device_step_create(&step, &bench, &point, &g_err));
        const EngAddress *address = &step.spec.shapes[0].address;
        int64_t reach = address->max_order - 1;
        assert_int_equal(address->n_columns, COLUMNS);
        for (int s = 0; s < STEPS; s++) {
            int64_t set = s % step.sets, want[ROWS], got[ROWS];
            EngStepSums sums = {0};
            if (s % 3 == 1) {
                long first = simt_activities();
                ok(eng_device_step_ready(&step, &sums, &g_err));
                assert_int_equal(activities_of("gather", first), 0);
                continue;
            }
            long first = simt_activities();
            ok(eng_device_step_fetch(&step, &sums, &g_err));
            assert_true(activities_of("gather", first) > 0);
            eng_ref_hash(address, &(EngHashArgs){.tokens = step.tokens + set * TOKENS,
                                                 .n_tokens = TOKENS,
                                                 .n_live = TOKENS,
                                                 .starts = step.starts,
                                                 .n_seqs = TOKENS,
                                                 .history = step.history + set * TOKENS * reach,
                                                 .rows = want});
            fetched_rows(&step, got, sizeof got);
            assert_memory_equal(got, want, sizeof got);
            changes += memcmp(got, last, sizeof got) != 0;
            memcpy(last, got, sizeof got);
        }
        assert_true(changes > STEPS / 2);
        eng_device_step_destroy(&step);
        eng_resources_destroy(resources);
        clean("sets");
    }
}

/* ---- products beside gathers ---- */

static EngProblem product_of(EngResources *resources)
{
    EngProblem product = {
        .op = ENG_OP_PROJECT,
        .threads = 1,
        .u.project = {
            .tokens = 3, .n = 32, .k = 32, .x = ENG_FP8, .weights = ENG_FP8, .out = ENG_BF16}};
    ok(eng_resources_weights(resources, 32, 32, &product.u.project.w, &product.u.project.w_scales,
                             &g_err));
    return product;
}

/* Each phase has its own work and no other, also as a graph, and its gathers go from one index set
 * to the next. */
static void test_phases(void **unused)
{
    static const char *const graphs[] = {"off", "on"};
    (void)unused;
    for (int g = 0; g < 2; g++) {
        EngDeviceBeside beside = {0};
        uint8_t x[3 * 32], scales[3];
        uint16_t out[3 * 32];
        EngCheck sum = {0};
        EngPoint point = point_of(&eng_experiment_interference, TINY, "backend", "cuda", "tokens",
                                  "9", "victim_tokens", "3", "victim_width", "32", "graph",
                                  graphs[g], "blocks", "1", NULL);
        memset(x, 0x38, sizeof x), memset(scales, 127, sizeof scales);
        fresh_device(2, 1, 3);
        EngResources *resources = open_for(&point);
        EngBench bench = {.resources = resources, .seed = 7};
        EngProblem product = product_of(resources);
        EngArgs args = {.u.project = {.x = x, .x_scales = scales, .out = out}};
        ok(eng_device_beside_create(&beside, &bench, &point, &product, &args, &g_err));
        assert_true(beside.gathers > 1 && beside.products > 1 && beside.windows.n > 1);
        for (int run = 0; run < 2 * ENG_PHASES; run++) {
            EngBesidePhase phase = (EngBesidePhase)(run % ENG_PHASES);
            EngBesideSums sums = {0};
            if (run < ENG_PHASES) ok(eng_device_beside_run(&beside, phase, &sums, &g_err));
            long first = simt_activities();
            ok(eng_device_beside_run(&beside, phase, &sums, &g_err));
            assert_int_equal(activities_of("cublasLt", first),
                             phase == ENG_PHASE_QUIET ? 0 : beside.products);
            assert_int_equal(activities_of("gather", first),
                             phase == ENG_PHASE_ALONE ? 0 : beside.gathers);
        }
        int64_t per_window = beside.shape.tokens * beside.shape.columns;
        int64_t window = (beside.gathers - 1) % beside.windows.n;
        const int64_t *rows = beside.rows + window * per_window;
        assert_true(memcmp(rows, beside.rows, (size_t)per_window * sizeof *rows) != 0);
        EngArgs last = {
            .u.gather = {.rows = rows, .row_stride = beside.shape.columns, .out = beside.gathered}};
        ok(eng_mirror_pull(&beside.mirrors, &beside.gather, &last, &g_err));
        ok(eng_check_gather(&beside.gather.u.gather, &last.u.gather, &sum, &g_err));
        EngResidual residual = {0};
        eng_residual_of_check(&sum, "exact", &residual);
        if (!residual.pass) fail_msg("the last gather: %s", residual.note);
        eng_device_beside_destroy(&beside);
        eng_project_cache_clear();
        eng_resources_destroy(resources);
        clean("phases");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_window), cmocka_unit_test(test_floor),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_runs_rotate),
        cmocka_unit_test(test_grids),        cmocka_unit_test(test_places),
        cmocka_unit_test(test_failed_copy),  cmocka_unit_test(test_strided_rows),
        cmocka_unit_test(test_sets),         cmocka_unit_test(test_phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
