/* The collector: with a libcupti of ours that a test drives through success, loss, refusal and
 * exhaustion, and with what really is on this machine, where each refusal has a reason. */
#include <pthread.h>
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

#include "base/clock.h"
#include "base/mem.h"
#include "bench/trace/cupti.h"
#include "bench/trace/cupti_decode.h"
#include "tests/unit/trace/cupti_records.h"

/* The property "CUPTI" of a trace file. */
static void read_property(const EngCupti *cupti, const char *why_not, const char *name, char *out,
                          size_t size)
{
    char path[] = "/tmp/engram_cupti_XXXXXX";
    const char *argv[] = {"engram", NULL};
    const EngNsysSession session = {.version = "test", .argv = argv};
    EngNsys *nsys;
    sqlite3 *db;
    sqlite3_stmt *statement;
    close(mkstemp(path));
    assert_int_equal(eng_nsys_create(path, &session, &nsys, NULL), ENG_OK);
    assert_int_equal(eng_cupti_write(cupti, why_not, nsys, NULL), ENG_OK);
    assert_int_equal(eng_nsys_commit(nsys, NULL), ENG_OK);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = ? "
                                        "AND devStateName = 'CUPTI'",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    *out = 0;
    if (sqlite3_step(statement) == SQLITE_ROW)
        snprintf(out, size, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    unlink(path);
}

/* Whatever this machine has, starting gives a collector or one clear reason. */
static void test_this_machine(void **state)
{
    (void)state;
    EngCupti *cupti;
    EngErr err = {0};
    char text[600];
    EngStatus status = eng_cupti_start(NULL, &cupti, &err);
    if (!access("/dev/nvidia0", R_OK)) {
        print_message("this machine has a GPU: %s\n", status ? err.text : "collecting");
        eng_cupti_free(cupti);
        return;
    }
    assert_null(cupti);
    assert_true(strlen(err.text) > 20);
    print_message("%s\n", err.text);
    if (eng_cupti_not_built()) {
        assert_int_equal(status, ENG_UNSUPPORTED);
        assert_non_null(strstr(err.text, eng_cupti_not_built()));
    } else if (status == ENG_NO_DEVICE) {
        assert_non_null(strstr(err.text, "CUPTI_ERROR_"));
        assert_non_null(strstr(err.text, "no NVIDIA driver"));
    } else {
        assert_int_equal(status, ENG_UNSUPPORTED);
        assert_non_null(strstr(err.text, "libcupti"));
    }
    read_property(NULL, err.text, "NotCollected", text, sizeof text);
    assert_string_equal(text, err.text);
    assert_int_equal(eng_cupti_probe(text, sizeof text, &err), status);
    assert_string_equal(text, "");
}

#ifndef ENG_HAVE_CUPTI

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_this_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include <dlfcn.h>
#include "tests/unit/trace/fake_cupti.h"

static FakeCupti *g_fake;
/* More than all tests emit: how far the writer got decides nothing. */
static const EngCuptiOptions g_options = {ENG_FAKE_CUPTI, 16384, 128};

static int open_fake(void **state)
{
    (void)state;
    void *handle = dlopen(ENG_FAKE_CUPTI, RTLD_NOW);
    FakeCuptiGet *get = handle ? (FakeCuptiGet *)dlsym(handle, "fake_cupti") : NULL;
    if (!get) return 1;
    g_fake = get();
    return 0;
}

/* Every test begins with a library that agrees to everything. */
static int renew(void **state)
{
    (void)state;
    FakeCupti fresh = {.version = CUPTI_API_VERSION, .emit = g_fake->emit};
    *g_fake = fresh;
    return 0;
}

static EngCupti *started(const EngCuptiOptions *options)
{
    EngCupti *cupti;
    EngErr err = {0};
    EngStatus status = eng_cupti_start(options, &cupti, &err);
    if (status) print_message("%s\n", err.text);
    assert_int_equal(status, ENG_OK);
    return cupti;
}

static void assert_refused(const EngCuptiOptions *options, EngStatus expected, const char *reason)
{
    EngCupti *cupti;
    EngErr err = {0};
    assert_int_equal(eng_cupti_start(options, &cupti, &err), expected);
    assert_null(cupti);
    if (!strstr(err.text, reason)) print_message("reason given: %s\n", err.text);
    assert_non_null(strstr(err.text, reason));
    assert_int_equal(g_fake->enabled & (uint64_t)1 << CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0);
}

static uint64_t fake_now(void)
{
    return (uint64_t)(eng_now_ns() + g_fake->ahead_ns);
}

/* 5 ns of the present. */
static CUpti_ActivityKernel10 brief(uint32_t correlation)
{
    uint64_t now = fake_now();
    return kernel_of(now, now + 5, correlation, 1, NULL);
}

static void assert_accounted(const EngCuptiRows *rows)
{
    int64_t outside = rows->drops[ENG_CUPTI_DROP_LIBRARY] + rows->drops[ENG_CUPTI_DROP_REQUEST] +
                      rows->drops[ENG_CUPTI_DROP_LATE];
    assert_int_equal(rows->n_records, rows->n_made + eng_cupti_dropped(rows) - outside);
}

static void test_libraries(void **state)
{
    (void)state;
    assert_refused(&(EngCuptiOptions){.library = "/nowhere/libcupti.so"}, ENG_UNSUPPORTED,
                   "no libcupti: /nowhere/libcupti.so");
    assert_refused(&(EngCuptiOptions){.library = "libm.so.6"}, ENG_UNSUPPORTED,
                   "libm.so.6: no function cuptiGetVersion");
    setenv("ENG_CUPTI_LIBRARY", "/elsewhere/libcupti.so", 1);
    assert_refused(NULL, ENG_UNSUPPORTED, "/elsewhere/libcupti.so");
    setenv("ENG_CUPTI_LIBRARY", ENG_FAKE_CUPTI, 1);
    char text[600];
    assert_int_equal(eng_cupti_probe(text, sizeof text, NULL), ENG_OK);
    assert_non_null(strstr(text, "fake_cupti.so"));
    assert_int_equal(g_fake->enabled, 0);
    unsetenv("ENG_CUPTI_LIBRARY");
}

static void test_versions(void **state)
{
    (void)state;
    g_fake->version = CUPTI_API_VERSION - 1;
    assert_refused(&g_options, ENG_UNSUPPORTED, "is older than the headers");
    g_fake->version = 28; /* CUDA 12.9 */
    assert_refused(&g_options, ENG_UNSUPPORTED, "version 28 is older");
    g_fake->version = CUPTI_API_VERSION / 10000 * 10000 + 10000;
    assert_refused(&g_options, ENG_UNSUPPORTED, "of another CUDA");
}

static void test_refusals(void **state)
{
    (void)state;
    g_fake->refused_kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    g_fake->refusal = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_refused(&g_options, ENG_NO_DEVICE,
                   "refuses CONCURRENT_KERNEL: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    renew(NULL);
    g_fake->refuse_callbacks = true;
    assert_refused(&g_options, ENG_NO_DEVICE, "refuses buffers");
    renew(NULL);
    g_fake->refuse_time = true;
    assert_refused(&g_options, ENG_NO_DEVICE, "refuses the time");
    renew(NULL);
    setenv("NSYS_PROFILING_SESSION_ID", "3", 1);
    assert_refused(&g_options, ENG_UNSUPPORTED, "another profiler is at work (NSYS_PROFILING");
    unsetenv("NSYS_PROFILING_SESSION_ID");
    /* What it can do without is a note. */
    g_fake->refused_kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    g_fake->refusal = CUPTI_ERROR_UNKNOWN;
    EngCupti *cupti = started(&g_options);
    assert_string_equal(eng_cupti_notes(cupti), "OVERHEAD: CUPTI_ERROR_UNKNOWN");
    /* One collector a process. */
    EngCupti *second;
    EngErr err = {0};
    assert_int_equal(eng_cupti_start(&g_options, &second, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "collecting already"));
    eng_cupti_stop(cupti, 0);
    char text[600], clock[200];
    read_property(cupti, NULL, "NotRecorded", text, sizeof text);
    assert_string_equal(text, "OVERHEAD: CUPTI_ERROR_UNKNOWN");
    read_property(cupti, NULL, "Library", text, sizeof text);
    assert_non_null(strstr(text, "fake_cupti.so"));
    const EngCuptiClock *last = &eng_cupti_clocks(cupti)[1];
    snprintf(clock, sizeof clock, "%lld ns is %lld ns monotonic, within %lld ns",
             (long long)last->cupti_ns, (long long)last->monotonic_ns,
             (long long)last->uncertainty_ns);
    read_property(cupti, NULL, "ClockAtStop", text, sizeof text);
    assert_string_equal(text, clock);
    eng_cupti_free(cupti);
}

#define THREADS  4
#define LAUNCHES 700

/* What a thread with launches does: call, kernel, external ids; stamps are of its own clock. */
static void *launch(void *argument)
{
    int slot = (int)(intptr_t)argument;
    for (int i = 0; i < LAUNCHES; i++) {
        uint32_t correlation = (uint32_t)(slot * LAUNCHES + i + 1);
        uint64_t now = fake_now();
        char name[32];
        snprintf(name, sizeof name, "kernel_%d", i % 5);
        CUpti_ActivityExternalCorrelation tag = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                 .externalKind =
                                                     CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                 .externalId = (uint64_t)i,
                                                 .correlationId = correlation};
        CUpti_ActivityAPI call =
            call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 211, now, now + 10, correlation);
        CUpti_ActivityKernel10 kernel =
            kernel_of(now + 20, now + 120, correlation, (uint32_t)slot, NULL);
        g_fake->emit(slot, &tag, sizeof tag, NULL);
        g_fake->emit(slot, &call, sizeof call, NULL);
        g_fake->emit(slot, &kernel, sizeof kernel, name);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, launch, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void check_launches(const EngCuptiRows *rows, int64_t from_ns, int64_t to_ns)
{
    static bool seen[THREADS * LAUNCHES + 1];
    memset(seen, 0, sizeof seen);
    assert_int_equal(rows->kernels.n, THREADS * LAUNCHES);
    assert_int_equal(rows->apis.n, THREADS * LAUNCHES);
    assert_int_equal(rows->externals.n, THREADS * LAUNCHES);
    assert_int_equal(eng_cupti_dropped(rows), 0);
    assert_int_equal(rows->n_nameless, 0);
    assert_accounted(rows);
    for (int64_t i = 0; i < rows->kernels.n; i++) {
        const EngNsysKernel *row = &rows->kernels.items[i];
        char name[32];
        assert_in_range(row->correlationId, 1, THREADS * LAUNCHES);
        assert_false(seen[row->correlationId]);
        seen[row->correlationId] = true;
        snprintf(name, sizeof name, "kernel_%d", (int)((row->correlationId - 1) % LAUNCHES % 5));
        assert_string_equal(row->demangledName, name);
        assert_int_equal(row->globalPid, eng_nsys_pid(getpid()));
        assert_in_range(row->end - row->start, 99, 101); /* a clock that drifts rounds */
        assert_true(row->start >= from_ns && row->end <= to_ns);
        if (i) assert_true(row[-1].start <= row->start);
    }
    assert_string_equal(rows->apis.items[0].name, "cudaLaunchKernel_v7000");
}

static void test_success(void **state)
{
    (void)state;
    g_fake->ahead_ns = 1700000000000000000; /* as CLOCK_REALTIME is */
    int64_t origin = eng_now_ns();
    EngCupti *cupti = started(&g_options);
    assert_string_equal(eng_cupti_notes(cupti), "");
    assert_int_equal(g_fake->thread_id_type, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    assert_true(g_fake->enabled & (uint64_t)1 << CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    assert_false(g_fake->enabled & (uint64_t)1 << CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    eng_cupti_push(cupti, 0xabcdef0123456789u, 7);
    assert_int_equal(g_fake->ids[0], 0xabcdef0123456789u);
    assert_int_equal(g_fake->ids[1], 7);
    assert_int_equal(g_fake->depth[0] + g_fake->depth[1], 2);
    run_threads();
    eng_cupti_pop(cupti);
    assert_int_equal(g_fake->depth[0] + g_fake->depth[1], 0);
    eng_cupti_stop(cupti, origin);
    eng_cupti_stop(cupti, origin); /* once only */
    assert_int_equal(g_fake->enabled, 0);
    assert_int_equal(g_fake->n_requests - g_fake->n_refused, g_fake->n_completed);
    const EngCuptiClock *clocks = eng_cupti_clocks(cupti);
    assert_true(clocks[0].monotonic_ns >= origin &&
                clocks[1].monotonic_ns > clocks[0].monotonic_ns);
    int64_t most = clocks[0].uncertainty_ns + clocks[1].uncertainty_ns;
    check_launches(eng_cupti_rows(cupti), -most, eng_now_ns() - origin + most);
    eng_cupti_free(cupti);
}

/* A newer library: longer records and kinds that the headers do not know. */
static void test_newer_library(void **state)
{
    (void)state;
    const uint32_t future[6] = {60};
    g_fake->version = CUPTI_API_VERSION + 101;
    g_fake->extra_bytes = 16;
    int64_t origin = eng_now_ns();
    EngCupti *cupti = started(&g_options);
    run_threads();
    eng_cupti_stop(cupti, origin);
    check_launches(eng_cupti_rows(cupti), -1000000, eng_now_ns() - origin + 1000000);
    eng_cupti_free(cupti);
    cupti = started(&g_options);
    CUpti_ActivityKernel10 kernel = brief(1);
    g_fake->emit(0, future, sizeof future, NULL);
    g_fake->emit(0, &kernel, sizeof kernel, "k");
    eng_cupti_stop(cupti, 0);
    const EngCuptiRows *rows = eng_cupti_rows(cupti);
    assert_int_equal(rows->kernels.n, 1);
    assert_int_equal(rows->drops[ENG_CUPTI_DROP_UNKNOWN], 1);
    assert_int_equal(rows->unknown_kind, 60);
    assert_int_equal(rows->drops[ENG_CUPTI_DROP_BYTES], 0);
    assert_accounted(rows);
    eng_cupti_free(cupti);
}

static void test_slewed_clock(void **state)
{
    (void)state;
    g_fake->ahead_ns = 1000000000;
    EngCupti *cupti = started(&g_options);
    int64_t middle = eng_now_ns();
    CUpti_ActivityKernel10 kernel = brief(1);
    g_fake->emit(0, &kernel, sizeof kernel, "k");
    g_fake->ahead_ns += 100000000; /* a step of 0.1 s before the end */
    eng_cupti_stop(cupti, 0);
    const EngCuptiClock *clocks = eng_cupti_clocks(cupti);
    int64_t moved = (clocks[1].cupti_ns - clocks[1].monotonic_ns) -
                    (clocks[0].cupti_ns - clocks[0].monotonic_ns);
    assert_in_range(moved, 99000000, 101000000);
    /* Between the pairs, in their order. */
    const EngNsysKernel *row = &eng_cupti_rows(cupti)->kernels.items[0];
    assert_true(row->start >= clocks[0].monotonic_ns - 1000000);
    assert_true(row->start <= middle + 1000000);
    eng_cupti_free(cupti);
}

static void test_drops(void **state)
{
    (void)state;
    EngCupti *cupti = started(&g_options);
    CUpti_ActivityKernel10 kernel = brief(1);
    CUpti_ActivityKernel10 lost = kernel_of(0, 0, 2, 1, NULL);
    g_fake->emit(0, &kernel, sizeof kernel, "k");
    g_fake->emit(0, &lost, sizeof lost, "k");
    g_fake->dropped = 5;
    eng_cupti_stop(cupti, 0);
    const EngCuptiRows *rows = eng_cupti_rows(cupti);
    assert_int_equal(rows->kernels.n, 1);
    assert_int_equal(rows->drops[ENG_CUPTI_DROP_LIBRARY], 5);
    assert_int_equal(rows->drops[ENG_CUPTI_DROP_ZERO], 1);
    assert_accounted(rows);
    eng_cupti_free(cupti);
}

/* Two buffers, both filling: a third thread gets none, and its records are counted. */
static void test_exhaustion(void **state)
{
    (void)state;
    EngCupti *cupti = started(&(EngCuptiOptions){ENG_FAKE_CUPTI, 4096, 2});
    for (uint32_t slot = 0; slot < 3; slot++) {
        CUpti_ActivityKernel10 kernel = brief(slot + 1);
        g_fake->emit((int)slot, &kernel, sizeof kernel, "k");
    }
    assert_int_equal(g_fake->n_refused, 1);
    eng_cupti_stop(cupti, 0);
    const EngCuptiRows *rows = eng_cupti_rows(cupti);
    assert_int_equal(rows->kernels.n, 2);
    assert_int_equal(rows->drops[ENG_CUPTI_DROP_REQUEST], 1);
    assert_int_equal(rows->drops[ENG_CUPTI_DROP_LIBRARY], 1);
    assert_int_equal(eng_cupti_dropped(rows), 2);
    eng_cupti_free(cupti);
}

/* Buffers that CUPTI keeps over the stop come back in the next trace: its rows are not mixed up. */
static void test_late_buffers(void **state)
{
    (void)state;
    EngCupti *cupti = started(&g_options);
    CUpti_ActivityKernel10 kernel = brief(1);
    g_fake->emit(0, &kernel, sizeof kernel, "early");
    g_fake->hold_buffers = true;
    eng_cupti_stop(cupti, 0);
    assert_int_equal(eng_cupti_rows(cupti)->kernels.n, 0);
    eng_cupti_free(cupti);
    g_fake->hold_buffers = false;
    cupti = started(&g_options);
    kernel.correlationId = 2;
    g_fake->emit(0, &kernel, sizeof kernel, "second");
    eng_cupti_stop(cupti, 0);
    const EngCuptiRows *rows = eng_cupti_rows(cupti);
    assert_int_equal(rows->kernels.n, 1);
    assert_string_equal(rows->kernels.items[0].shortName, "second");
    assert_int_equal(rows->drops[ENG_CUPTI_DROP_LATE], 1);
    eng_cupti_free(cupti);
}

static void test_no_memory(void **state)
{
    (void)state;
    int failed = 0;
    eng_cupti_free(started(&(EngCuptiOptions){ENG_FAKE_CUPTI, 8192, 4}));
    uint64_t live = eng_mem_live_blocks();
    for (uint64_t n = 1; n < 40; n++) {
        EngCupti *cupti;
        eng_mem_fail_at(n);
        EngStatus status =
            eng_cupti_start(&(EngCuptiOptions){ENG_FAKE_CUPTI, 8192, 4}, &cupti, NULL);
        if (!status) {
            CUpti_ActivityKernel10 kernel = brief(1);
            g_fake->emit(0, &kernel, sizeof kernel, "k");
            eng_cupti_stop(cupti, 0);
            assert_accounted(eng_cupti_rows(cupti));
            assert_int_equal(eng_cupti_rows(cupti)->n_records, 1);
        } else {
            assert_int_equal(status, ENG_NO_MEMORY);
            failed++;
        }
        eng_mem_fail_at(0);
        eng_cupti_free(cupti);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    assert_true(failed >= 2);
    /* A pool that cannot be made whole is an error, not a smaller pool. */
    for (uint64_t n = 1; n < 20; n++) {
        EngCupti *cupti;
        eng_mem_fail_at(n);
        EngStatus status =
            eng_cupti_start(&(EngCuptiOptions){ENG_FAKE_CUPTI, 4096 + 8 * n, 4}, &cupti, NULL);
        eng_mem_fail_at(0);
        assert_true(status == ENG_OK || status == ENG_NO_MEMORY);
        eng_cupti_free(cupti);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_this_machine, renew),
        cmocka_unit_test_setup(test_libraries, renew),
        cmocka_unit_test_setup(test_versions, renew),
        cmocka_unit_test_setup(test_refusals, renew),
        cmocka_unit_test_setup(test_success, renew),
        cmocka_unit_test_setup(test_newer_library, renew),
        cmocka_unit_test_setup(test_slewed_clock, renew),
        cmocka_unit_test_setup(test_drops, renew),
        cmocka_unit_test_setup(test_exhaustion, renew),
        cmocka_unit_test_setup(test_late_buffers, renew),
        cmocka_unit_test_setup(test_no_memory, renew),
    };
    return cmocka_run_group_tests(tests, open_fake, NULL);
}

#endif
