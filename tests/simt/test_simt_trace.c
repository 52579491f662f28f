/* From the device's own account of a step to the hidden fraction: the executor's schedule becomes
 * records of CUPTI, these a trace file, and what is read from it has to agree with the events of
 * the step and with the rules of the simulated clock. skips: no CUPTI headers
 */
#include "on_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/experiments/device_step.h"
#include "bench/trace/cupti_decode.h"
#include "bench/trace/engine.h"
#include "tests/unit/trace/cupti_records.h"

#ifndef ENG_HAVE_CUPTI

int main(void)
{
    printf("skipped: no CUPTI headers (%s)\n", eng_cupti_not_built());
    return 77;
}

#else

#define ORIGIN    1000000000
#define SAMPLE    41
#define KERNEL_NS 2000 /* simt::kernel_ns; and one for each thread */
#define THREADS   128  /* of a block of the gather */

/* Kernels and copies from `first` on, each with its call and the sample that the call belongs to.
 * All of a graph's have one correlation and are told apart by their node. */
static void put_records(Buffer *buffer, long first)
{
    unsigned last = 0;
    for (long i = first; i < simt_activities(); i++) {
        SimtActivity a = simt_activity(i);
        uint64_t start = ORIGIN + a.start_ns, end = ORIGIN + a.end_ns;
        if (a.correlation != last) {
            CUpti_ActivityExternalCorrelation sample = {
                .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                .externalId = SAMPLE,
                .correlationId = a.correlation};
            CUpti_ActivityAPI call =
                call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 211, start - 1, start, a.correlation);
            PUT(buffer, sample);
            PUT(buffer, call);
        }
        last = a.correlation;
        if (a.kind == 1) {
            CUpti_ActivityKernel10 kernel = kernel_of(start, end, a.correlation, a.stream, a.name);
            kernel.graphNodeId = (uint64_t)(i + 1);
            PUT(buffer, kernel);
        } else {
            CUpti_ActivityMemcpy6 copy = copy_of(start, end, a.correlation, a.stream, a.bytes);
            copy.graphNodeId = (uint64_t)(i + 1);
            PUT(buffer, copy);
        }
        assert_true(buffer->n < BUFFER_BYTES - 1024);
    }
}

static void write_file(const char *path, Buffer *buffer)
{
    const EngCuptiSource source = {.pid = 77};
    const EngCuptiClock clocks[2] = {{ORIGIN, ORIGIN, 20}, {ORIGIN + 1000, ORIGIN + 1000, 20}};
    const char *argv[] = {"engram", NULL};
    const EngNsysSession session = {
        .start_ns = ORIGIN, .version = "test", .argv = argv, .pid = 77, .cuda = true};
    EngCuptiRows rows;
    EngNsys *nsys;
    ok(eng_cupti_rows_init(&rows, &g_err));
    eng_cupti_keep_names(&rows, &source, buffer->bytes, buffer->n);
    eng_cupti_decode(&rows, &source, buffer->bytes, buffer->n);
    eng_cupti_rows_finish(&rows, clocks, ORIGIN);
    assert_int_equal(eng_cupti_dropped(&rows), 0);
    ok(eng_nsys_create(path, &session, &nsys, &g_err));
    ok(eng_cupti_rows_write(&rows, nsys, &g_err));
    ok(eng_nsys_commit(nsys, &g_err));
    eng_cupti_rows_free(&rows);
}

/* Fetch and wait of the one step in the file. */
static EngFetch read_file(const char *path)
{
    const EngEngineOptions options = {.patterns = {[ENG_CLASS_HASH] = "hash",
                                                   [ENG_CLASS_LOOKUP] = "gather",
                                                   [ENG_CLASS_PROJECTION] = "cublasLt"},
                                      .tokens = -1};
    EngTrace *trace;
    EngEngine engine;
    ok(eng_trace_open(path, &trace, &g_err));
    ok(eng_engine_read(trace, &options, &engine, &g_err));
    assert_int_equal(engine.overlap.n, 1);
    EngFetch fetch = engine.overlap.fetches[0];
    assert_non_null(fetch.consumer);
    assert_non_null(strstr(fetch.consumer->name, "cublasLt"));
    eng_engine_free(&engine);
    eng_trace_close(trace);
    return fetch;
}

/* A step whose rows are needed before layer `placement`, captured and replayed: `tokens` of
 * `columns` rows each, whose fetch has as many blocks. */
static void check_step(const char *placement, const char *tokens, const char *heads, int order,
                       int blocks, double hidden)
{
    static Buffer buffer;
    char path[] = "/tmp/engram_simt_XXXXXX";
    EngDeviceStep step = {0};
    EngStepSums sums = {0}, unused = {0};
    EngPoint point = point_of(&eng_experiment_prefetch, "preset", "tiny", "orders", "2-3", "heads",
                              heads, "rows", "101", "row_dims", "32", "corpus", "synthetic",
                              "hidden", "64", "backend", "cuda", "tokens", tokens, "layers", "4",
                              "placement", placement, "graph", "on", "table_at", "pinned", NULL);
    fresh_device(order % 3, order % 4, (unsigned long)order);
    EngResources *resources = open_for(&point);
    EngBench bench = {.resources = resources, .seed = 7};
    ok(eng_device_step_create(&step, &bench, &point, &g_err));
    ok(eng_device_step_fetch(&step, &unused, &g_err));
    long first = simt_activities();
    ok(eng_device_step_fetch(&step, &sums, &g_err));
    buffer.n = 0;
    put_records(&buffer, first);
    close(mkstemp(path));
    write_file(path, &buffer);
    EngFetch fetch = read_file(path);
    assert_int_equal(fetch.fetch_ns, KERNEL_NS + blocks * THREADS);
    assert_true(llabs(fetch.fetch_ns - sums.fetch_ns[0]) <= 1); /* events tell ms as float */
    assert_true(llabs(fetch.wait_ns[ENG_WAIT_READ] - sums.stall_ns[0]) <= 1);
    assert_true(fabs(eng_hidden_fraction(fetch.fetch_ns, fetch.wait_ns[ENG_WAIT_READ]) - hidden) <
                1e-12);
    unlink(path);
    eng_device_step_destroy(&step);
    eng_resources_destroy(resources);
    clean("trace");
}

/* What a layer of `tokens` takes: two products, 4 times as wide and back, one ns an output. */
static double layer_ns(int tokens)
{
    return 2 * KERNEL_NS + tokens * (4 + 1) * 64;
}

static void test_hidden(void **unused)
{
    (void)unused;
    for (int order = 0; order < 12; order++) {
        /* 36 rows in tiles of 2. Needed at once: the whole fetch is waited for; one layer takes
         * longer than the fetch. */
        check_step("0", "9", "2", order, 18, 0);
        check_step("1", "9", "2", order, 18, 1);
        /* 4 tokens of 16 rows: the fetch goes on behind the layer, and that is waited for. */
        double fetch = KERNEL_NS + 32 * THREADS, hidden = layer_ns(4) / fetch;
        assert_true(hidden > 0.5 && hidden < 1);
        check_step("1", "4", "8", order, 32, hidden);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hidden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
