/* From CUPTI's buffers to a trace file to SQL, and to the intervals that overlap is told from: one
 * small step with known answers, given out of order, with records that lie among the true ones.
 * skips: no CUPTI headers */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <sqlite3.h>

#include "bench/trace/cupti_decode.h"
#include "bench/trace/interval.h"
#include "bench/trace/reader.h"
#include "tests/unit/trace/cupti_records.h"

#ifndef ENG_HAVE_CUPTI

int main(void)
{
    printf("skipped: no CUPTI headers (%s)\n", eng_cupti_not_built());
    return 77;
}

#else

/* CUPTI's clock is 5e9 ahead of CLOCK_MONOTONIC; the session starts at 1e9 on the latter. */
#define ORIGIN     1000000000
#define AHEAD      5000000000
static const EngCuptiClock g_clocks[2] = {{ORIGIN + AHEAD, ORIGIN, 20},
                                          {ORIGIN + AHEAD + 10000, ORIGIN + 10000, 20}};
static uint64_t at(uint64_t time)
{
    return ORIGIN + AHEAD + time;
}

enum { COMPUTE = 1, FETCH = 2 };

static void launch(Buffer *buffer, const char *name, uint64_t start, uint64_t end, uint32_t stream,
                   uint32_t correlation, uint64_t node)
{
    CUpti_ActivityKernel10 k = kernel_of(at(start), at(end), correlation, stream, name);
    k.graphNodeId = node;
    PUT(buffer, k);
}

static void call(Buffer *buffer, uint64_t start, uint64_t end, uint32_t correlation,
                 uint64_t sample)
{
    CUpti_ActivityExternalCorrelation e = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                           .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                           .externalId = sample,
                                           .correlationId = correlation};
    PUT(buffer, e);
    CUpti_ActivityAPI a =
        call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 211, at(start), at(end), correlation);
    PUT(buffer, a);
}

/* Sample 0: rows of a layer are gathered and copied on one stream while three computations run on
 * another; the consumer waits 70 ns for them. Sample 1: a graph of three nodes, launched once. */
static EngCuptiRows known_rows(void)
{
    static Buffer first, second;
    first.n = second.n = 0;
    launch(&second, "node_a", 700, 800, COMPUTE, 9, 1);
    launch(&second, "node_b", 750, 850, COMPUTE, 9, 2);
    launch(&second, "node_c", 900, 950, COMPUTE, 9, 3);
    launch(&second, "node_b", 750, 850, COMPUTE, 9, 2); /* the same again */
    call(&second, 650, 690, 9, 1);
    launch(&second, "layer", 450, 600, COMPUTE, 3, 0);
    launch(&first, "engram_gather", 200, 400, FETCH, 4, 0);
    launch(&first, "layer", 100, 300, COMPUTE, 1, 0);
    launch(&first, "layer", 300, 500, COMPUTE, 2, 0); /* overlaps the third */
    for (uint32_t i = 1; i <= 3; i++) call(&first, 10 * i, 10 * i + 8, i, 0);
    call(&first, 40, 49, 4, 0);
    call(&first, 50, 55, 5, 0);
    CUpti_ActivityMemcpy6 copy = copy_of(at(380), at(480), 5, FETCH, 4096);
    CUpti_ActivitySynchronization2 wait = {
        .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        .type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
        .start = at(410),
        .end = at(480),
        .contextId = 1,
        .streamId = COMPUTE,
        .correlationId = 6};
    CUpti_ActivityKernel10 lost = kernel_of(0, 0, 7, COMPUTE, "lost");
    CUpti_ActivityKernel10 backwards = kernel_of(at(990), at(980), 8, COMPUTE, "backwards");
    CUpti_ActivityDevice5 device = {.kind = CUPTI_ACTIVITY_KIND_DEVICE, .name = "NVIDIA H200"};
    CUpti_ActivityContext3 context = {.kind = CUPTI_ACTIVITY_KIND_CONTEXT, .contextId = 1};
    CUpti_ActivityEnvironment speed = {.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT,
                                       .timestamp = at(5),
                                       .environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_SPEED,
                                       .data = {.speed = {.smClock = 1980}}};
    PUT(&first, copy);
    PUT(&first, wait);
    PUT(&first, lost);
    PUT(&first, backwards);
    PUT(&first, device);
    PUT(&first, context);
    PUT(&first, speed);
    EngCuptiRows rows;
    const EngCuptiSource source = {.pid = 77};
    assert_int_equal(eng_cupti_rows_init(&rows, NULL), ENG_OK);
    Buffer *buffers[] = {&second, &first};
    for (int i = 0; i < 2; i++) {
        eng_cupti_keep_names(&rows, &source, buffers[i]->bytes, buffers[i]->n);
        eng_cupti_decode(&rows, &source, buffers[i]->bytes, buffers[i]->n);
    }
    eng_cupti_rows_finish(&rows, g_clocks, ORIGIN);
    assert_int_equal(rows.n_records, rows.n_made + eng_cupti_dropped(&rows));
    return rows;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) || sqlite3_step(statement) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void write_file(const char *path, EngCuptiRows *rows)
{
    const char *argv[] = {"engram", NULL};
    const EngNsysSession session = {.start_ns = ORIGIN,
                                    .utc_ns = AHEAD,
                                    .duration_ns = 1000,
                                    .version = "test",
                                    .argv = argv,
                                    .pid = 77,
                                    .cuda = true};
    EngNsys *nsys;
    EngErr err = {0};
    assert_int_equal(eng_nsys_create(path, &session, &nsys, &err), ENG_OK);
    assert_int_equal(eng_cupti_rows_write(rows, nsys, &err), ENG_OK);
    assert_int_equal(eng_nsys_commit(nsys, &err), ENG_OK);
    eng_cupti_rows_free(rows);
}

/* Records that libcupti dropped: the file says so, and is no answer for a reader. */
static void test_lost(void **state)
{
    (void)state;
    char path[] = "/tmp/engram_cupti_XXXXXX";
    EngErr err = {0};
    EngTrace *trace;
    EngCuptiRows rows = known_rows();
    rows.drops[ENG_CUPTI_DROP_LIBRARY] = 12;
    close(mkstemp(path));
    write_file(path, &rows);
    assert_int_equal(eng_trace_open(path, &trace, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "12 records were lost (cupti: dropped by libcupti)"));
    unlink(path);
}

/* The same step as whoever opens the file sees it. */
static void check_as_read(const char *path)
{
    EngTrace *trace;
    EngErr err = {0};
    EngStatus status = eng_trace_open(path, &trace, &err);
    if (status) print_message("%s\n", err.text);
    assert_int_equal(status, ENG_OK);
    assert_int_equal(trace->n_by_what[ENG_TRACE_KERNEL], 7);
    assert_int_equal(trace->n_by_what[ENG_TRACE_COPY], 1);
    assert_string_equal(trace->gpu, "NVIDIA H200");
    int streams = 0;
    for (int i = 0; i < trace->n_tracks; i++) {
        EngTrackWork work;
        if (!trace->tracks[i].gpu) continue;
        assert_int_equal(eng_trace_track_work(trace, i, &work, NULL, NULL, &err), ENG_OK);
        if (trace->tracks[i].stream == FETCH) assert_int_equal(work.busy_ns, 280);
        if (trace->tracks[i].stream != COMPUTE) continue;
        assert_int_equal(work.busy_ns, 700);
        assert_int_equal(work.n_gaps, 2);
        assert_int_equal(work.gap_ns, 150);
        streams++;
    }
    assert_int_equal(streams, 1);
    eng_trace_close(trace);
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/engram_cupti_XXXXXX";
    EngCuptiRows rows = known_rows();
    close(mkstemp(path));
    write_file(path, &rows);

    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    /* cuda_gpu_kern_sum */
#define OF_KERNELS "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName "
    assert_int_equal(ask(db, "SELECT count(*) " OF_KERNELS), 7);
    assert_int_equal(ask(db, "SELECT sum(end - start) " OF_KERNELS "WHERE value = 'layer'"), 550);
    assert_int_equal(ask(db, "SELECT start " OF_KERNELS "WHERE value = 'engram_gather'"), 200);
    /* cuda_gpu_mem_time_sum: vanishes without the enumeration */
    assert_int_equal(ask(db, "SELECT sum(end - start) FROM CUPTI_ACTIVITY_KIND_MEMCPY m "
                             "JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = m.copyKind "
                             "WHERE o.label LIKE 'Host-to-Device'"),
                     100);
    /* A kernel and its call, by process and correlation; a graph's launch is one call. */
#define WITH_CALLS                                                                                 \
    "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "                        \
    "ON r.correlationId = k.correlationId AND k.globalPid = (r.globalTid & 0xFFFFFFFFFF000000) "
    assert_int_equal(ask(db, "SELECT count(*) " WITH_CALLS), 7);
    assert_int_equal(ask(db, "SELECT count(DISTINCT r.correlationId) " WITH_CALLS), 5);
    assert_int_equal(ask(db, "SELECT count(DISTINCT r.correlationId) " WITH_CALLS
                             "WHERE k.graphNodeId IS NOT NULL"),
                     1);
    assert_int_equal(ask(db, "SELECT k.start - r.end " WITH_CALLS "WHERE k.correlationId = 4"),
                     151);
    /* Work of a sample, without names. */
#define OF_SAMPLE "JOIN ENGRAM_CORRELATION e USING (correlationId, globalPid) "
    assert_int_equal(ask(db, "SELECT sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL " OF_SAMPLE
                             "WHERE kind = 'sample' AND externalId = 1"),
                     250);
    assert_int_equal(ask(db, "SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY " OF_SAMPLE
                             "WHERE kind = 'sample' AND externalId = 0"),
                     4096);
    /* Waits know their device through the context. */
    assert_int_equal(ask(db, "SELECT deviceId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"), 0);
    assert_int_equal(ask(db, "SELECT count(*) FROM TARGET_INFO_GPU WHERE name = 'NVIDIA H200'"), 1);
    assert_int_equal(ask(db, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'SmClockMhz'"),
                     1980);
    /* What lied is told, not stored. */
    assert_int_equal(ask(db, "SELECT sum(n) FROM ENGRAM_DROPS"), 3);
    assert_int_equal(ask(db, "SELECT n FROM ENGRAM_DROPS WHERE what = 'cupti: zero timestamps'"),
                     1);
    assert_int_equal(ask(db, "SELECT n FROM ENGRAM_DROPS WHERE what = 'cupti: repeated'"), 1);
    sqlite3_close(db);
    check_as_read(path);
    unlink(path);
}

static void add(EngIntervals *set, int64_t start, int64_t end)
{
    assert_int_equal(eng_intervals_add(set, start, end, NULL), ENG_OK);
}

static void test_intervals(void **state)
{
    (void)state;
    EngCuptiRows rows = known_rows();
    EngIntervals busy = {0}, fetch = {0}, stall = {0}, gaps = {0};
    for (int64_t i = 0; i < rows.kernels.n; i++) {
        const EngNsysKernel *row = &rows.kernels.items[i];
        add(row->streamId == FETCH ? &fetch : &busy, row->start, row->end);
    }
    for (int64_t i = 0; i < rows.memcpys.n; i++)
        add(&fetch, rows.memcpys.items[i].start, rows.memcpys.items[i].end);
    for (int64_t i = 0; i < rows.syncs.n; i++)
        add(&stall, rows.syncs.items[i].start, rows.syncs.items[i].end);
    eng_intervals_close(&busy);
    eng_intervals_close(&fetch);
    eng_intervals_close(&stall);
    /* [100,600) + [700,850) + [900,950): overlapping kernels and nodes count once. */
    assert_int_equal(eng_intervals_total(&busy), 500 + 150 + 50);
    assert_int_equal(eng_intervals_gaps(&busy, 100, 950, &gaps, NULL), ENG_OK);
    assert_int_equal(eng_intervals_total(&gaps), 150);
    assert_int_equal(gaps.n, 2);
    assert_int_equal(eng_intervals_total(&fetch), 280); /* [200,480) */
    assert_int_equal(eng_intervals_common(&busy, &fetch), 280);
    double hidden = eng_hidden_fraction(eng_intervals_total(&fetch), eng_intervals_total(&stall));
    assert_true(fabs(hidden - 0.75) < 1e-12);
    eng_intervals_free(&busy);
    eng_intervals_free(&fetch);
    eng_intervals_free(&stall);
    eng_intervals_free(&gaps);
    eng_cupti_rows_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_file), cmocka_unit_test(test_lost),
                                       cmocka_unit_test(test_intervals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
