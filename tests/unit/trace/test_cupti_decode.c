/* The decoder of CUPTI's buffers on buffers built by hand: every field lands in its column, and
 * every record that makes no row is counted under its cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/trace/cupti_api.h"
#include "bench/trace/cupti_decode.h"
#include "bench/trace/cupti_walk.h"
#include "tests/unit/trace/cupti_records.h"

static void test_clock(void **state)
{
    (void)state;
    /* CUPTI's clock is 1000 ahead at the start, 1600 at the end: slewed evenly. */
    const EngCuptiClock pair[2] = {{11000, 10000, 5}, {71600, 70000, 5}};
    assert_int_equal(eng_cupti_to_monotonic(pair, 11000), 10000);
    assert_int_equal(eng_cupti_to_monotonic(pair, 71600), 70000);
    assert_int_equal(eng_cupti_to_monotonic(pair, 41300), 40000);
    /* Outside the pairs: the nearer offset. */
    assert_int_equal(eng_cupti_to_monotonic(pair, 10000), 9000);
    assert_int_equal(eng_cupti_to_monotonic(pair, 81600), 80000);
    /* A trace without length: one offset. */
    const EngCuptiClock point[2] = {{500, 100, 1}, {500, 100, 1}};
    assert_int_equal(eng_cupti_to_monotonic(point, 700), 300);
    /* Offsets as near as the readings are: nothing is stretched. */
    const EngCuptiClock near[2] = {{11000, 10000, 30}, {71050, 70000, 30}};
    for (int64_t t = 11000; t < 72000; t += 777)
        assert_int_equal(eng_cupti_to_monotonic(near, t), t - 1000);
    for (int i = 0; i < 1000; i++)
        assert_true(eng_cupti_to_monotonic(pair, 11000 + 60 * i) <
                    eng_cupti_to_monotonic(pair, 11000 + 60 * (i + 1)));
}

static void test_names(void **state)
{
    (void)state;
    EngCuptiNames *names = eng_cupti_names_create();
    char text[32] = "gather_fp8";
    assert_int_equal(eng_cupti_names_add(names, text), 1);
    assert_int_equal(eng_cupti_names_add(names, "project"), 2);
    text[0] = 'G'; /* another name in the same memory */
    assert_int_equal(eng_cupti_names_add(names, text), 3);
    assert_int_equal(eng_cupti_names_add(names, "gather_fp8"), 1);
    assert_int_equal(eng_cupti_names_add(names, NULL), 0);
    assert_string_equal(eng_cupti_names_text(names, 1), "gather_fp8");
    assert_string_equal(eng_cupti_names_text(names, 3), "Gather_fp8");
    assert_null(eng_cupti_names_text(names, 0));
    assert_null(eng_cupti_names_text(names, 4));
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "kernel_%d", i);
        assert_int_equal(eng_cupti_names_add(names, text), 4 + i);
    }
    assert_string_equal(eng_cupti_names_text(names, 504), "kernel_500");
    eng_cupti_names_destroy(names);
}

#ifndef ENG_HAVE_CUPTI

static void test_left_out(void **state)
{
    (void)state;
    EngCuptiRows rows;
    uint8_t bytes[64] = {0};
    assert_non_null(eng_cupti_not_built());
    assert_int_equal(eng_cupti_rows_init(&rows, NULL), ENG_OK);
    eng_cupti_decode(&rows, &(EngCuptiSource){0}, bytes, sizeof bytes);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_BYTES], sizeof bytes);
    eng_cupti_rows_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clock), cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static const EngCuptiClock g_same[2] = {{0, 0, 0}, {1000000, 1000000, 0}};
static const EngCuptiSource g_source = {.pid = 77};

static EngCuptiRows rows_of(Buffer *buffer)
{
    EngCuptiRows rows;
    assert_int_equal(eng_cupti_rows_init(&rows, NULL), ENG_OK);
    eng_cupti_keep_names(&rows, &g_source, buffer->bytes, buffer->n);
    eng_cupti_decode(&rows, &g_source, buffer->bytes, buffer->n);
    return rows;
}

/* Nothing is lost in silence. */
static void assert_accounted(const EngCuptiRows *rows)
{
    assert_int_equal(rows->n_records, rows->n_made + eng_cupti_dropped(rows));
}

static void test_kernel(void **state)
{
    (void)state;
    Buffer buffer = {.n = 0};
    CUpti_ActivityKernel10 k = {
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        .cacheConfig = {.config = {.requested = 2, .executed = 1}},
        .registersPerThread = 40,
        .start = 1000,
        .end = 2500,
        .deviceId = 3,
        .contextId = 4,
        .streamId = 5,
        .gridX = 6,
        .gridY = 7,
        .gridZ = 8,
        .blockX = 9,
        .blockY = 10,
        .blockZ = 11,
        .staticSharedMemory = 12,
        .dynamicSharedMemory = 13,
        .localMemoryPerThread = 14,
        .localMemoryTotal = 15,
        .correlationId = 0xfffffff0u,
        .gridId = 17,
        .name = "engram_gather",
        .launchType = CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR,
        .isSharedMemoryCarveoutRequested = 1,
        .sharedMemoryCarveoutRequested = 50,
        .sharedMemoryExecuted = 18,
        .graphNodeId = 19,
        .shmemLimitConfig = CUPTI_FUNC_SHMEM_LIMIT_OPTIN,
        .graphId = 20,
        .clusterX = 21,
        .clusterY = 22,
        .clusterZ = 23,
        .clusterSchedulingPolicy = 1,
        .localMemoryTotal_v2 = (uint64_t)1 << 33,
        .maxPotentialClusterSize = 24,
        .maxActiveClusters = 25,
    };
    PUT(&buffer, k);
    k.launchType = CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE;
    k.graphNodeId = k.graphId = 0;
    k.isSharedMemoryCarveoutRequested = 0;
    k.localMemoryTotal_v2 = 0;
    k.name = NULL;
    PUT(&buffer, k);
    EngCuptiRows rows = rows_of(&buffer);
    assert_int_equal(rows.kernels.n, 2);
    const EngNsysKernel *row = &rows.kernels.items[0];
    assert_int_equal(row->start, 1000);
    assert_int_equal(row->end, 2500);
    assert_int_equal(row->deviceId, 3);
    assert_int_equal(row->contextId, 4);
    assert_int_equal(row->greenContextId, ENG_NSYS_NULL);
    assert_int_equal(row->streamId, 5);
    assert_int_equal(row->gridX + 100 * row->gridY + 10000 * row->gridZ, 80706);
    assert_int_equal(row->blockX + 100 * row->blockY + 10000 * row->blockZ, 111009);
    assert_int_equal(row->staticSharedMemory, 12);
    assert_int_equal(row->dynamicSharedMemory, 13);
    assert_int_equal(row->localMemoryPerThread, 14);
    assert_int_equal(row->localMemoryTotal, (int64_t)1 << 33);
    assert_int_equal(row->correlationId, 0xfffffff0u);
    assert_int_equal(row->globalPid, (int64_t)1 << 48 | (int64_t)77 << 24);
    assert_int_equal(row->gridId, 17);
    assert_string_equal(row->demangledName, "engram_gather");
    assert_string_equal(row->shortName, "engram_gather");
    assert_int_equal(row->launchType, 1);
    assert_int_equal(row->cacheConfig, 1);
    assert_int_equal(row->registersPerThread, 40);
    assert_int_equal(row->sharedMemoryExecuted, 18);
    assert_int_equal(row->sharedMemoryRequestedPercentage, 50);
    assert_int_equal(row->sharedMemoryLimitConfig, 1);
    assert_int_equal(row->graphNodeId, 19);
    assert_int_equal(row->graphId, 20);
    assert_int_equal(row->clusterX + 100 * row->clusterY + 10000 * row->clusterZ, 232221);
    assert_int_equal(row->clusterSchedulingPolicy, 1);
    assert_int_equal(row->maxPotentialClusterSize, 24);
    assert_int_equal(row->maxActiveClusters, 25);
    row++;
    assert_int_equal(row->launchType, 2);
    assert_int_equal(row->graphNodeId, ENG_NSYS_NULL);
    assert_int_equal(row->graphId, ENG_NSYS_NULL);
    assert_int_equal(row->sharedMemoryRequestedPercentage, ENG_NSYS_NULL);
    assert_int_equal(row->localMemoryTotal, 15);
    assert_string_equal(row->demangledName, "(name lost)");
    assert_int_equal(rows.n_nameless, 1);
    assert_accounted(&rows);
    eng_cupti_rows_free(&rows);
}

static void test_copies_and_sets(void **state)
{
    (void)state;
    Buffer buffer = {.n = 0};
    CUpti_ActivityMemcpy6 m = copy_of(10, 30, 7, 2, (uint64_t)1 << 34);
    m.graphNodeId = 9;
    CUpti_ActivityMemcpyPtoP4 p = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
                                   .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
                                   .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                                   .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN,
                                   .bytes = 64,
                                   .start = 40,
                                   .end = 50,
                                   .deviceId = 1,
                                   .contextId = 2,
                                   .streamId = 3,
                                   .srcDeviceId = 4,
                                   .srcContextId = 5,
                                   .dstDeviceId = 6,
                                   .dstContextId = 8,
                                   .correlationId = 9};
    CUpti_ActivityMemset4 s = {.kind = CUPTI_ACTIVITY_KIND_MEMSET,
                               .value = 255,
                               .bytes = 4096,
                               .start = 60,
                               .end = 61,
                               .streamId = 2,
                               .correlationId = 10,
                               .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED};
    PUT(&buffer, m);
    PUT(&buffer, p);
    PUT(&buffer, s);
    EngCuptiRows rows = rows_of(&buffer);
    assert_int_equal(rows.memcpys.n, 2);
    const EngNsysMemcpy *row = rows.memcpys.items;
    assert_int_equal(row->bytes, (int64_t)1 << 34);
    assert_int_equal(row->copyKind, 1);
    assert_int_equal(row->srcKind, 1); /* pinned in the export */
    assert_int_equal(row->dstKind, 2); /* device */
    assert_int_equal(row->srcDeviceId, ENG_NSYS_NULL);
    assert_int_equal(row->graphNodeId, 9);
    assert_int_equal(row->copyCount, 1);
    row++;
    assert_int_equal(row->copyKind, 10);
    assert_int_equal(row->dstKind, 7); /* unknown */
    assert_int_equal(row->srcDeviceId + 10 * row->srcContextId, 54);
    assert_int_equal(row->dstDeviceId + 10 * row->dstContextId, 86);
    assert_int_equal(rows.memsets.n, 1);
    assert_int_equal(rows.memsets.items[0].value, 255);
    assert_int_equal(rows.memsets.items[0].bytes, 4096);
    assert_int_equal(rows.memsets.items[0].memKind, 4); /* managed */
    assert_accounted(&rows);
    eng_cupti_rows_free(&rows);
}

static void test_host_side(void **state)
{
    (void)state;
    Buffer buffer = {.n = 0};
    CUpti_ActivityAPI runtime = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 211, 5, 9, 7);
    CUpti_ActivityAPI driver = call_of(CUPTI_ACTIVITY_KIND_DRIVER, 307, 6, 8, 7);
    driver.returnValue = 700;
    CUpti_ActivitySynchronization2 sync = {
        .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        .type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
        .start = 10,
        .end = 20,
        .correlationId = 8,
        .contextId = 1,
        .streamId = CUPTI_INVALID_STREAM_ID,
        .cudaEventId = 3,
        .cudaEventSyncId = 4};
    CUpti_ActivityOverhead3 overhead = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
                                        .overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH,
                                        .objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
                                        .objectId = {.pt = {77, 79}},
                                        .start = 30,
                                        .end = 31};
    CUpti_ActivityExternalCorrelation point = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                               .externalKind =
                                                   CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                               .externalId = 0xfeedfacecafebeefu,
                                               .correlationId = 7};
    CUpti_ActivityExternalCorrelation sample = point;
    sample.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
    sample.externalId = 12;
    PUT(&buffer, point);
    PUT(&buffer, sample);
    PUT(&buffer, runtime);
    PUT(&buffer, driver);
    PUT(&buffer, sync);
    PUT(&buffer, overhead);
    EngCuptiRows rows = rows_of(&buffer);
    assert_int_equal(rows.apis.n, 2);
    assert_int_equal(rows.apis.items[0].eventClass, 0);
    assert_string_equal(rows.apis.items[0].name, "runtime_211");
    assert_int_equal(rows.apis.items[0].globalTid, eng_nsys_tid(77, 78));
    assert_int_equal(rows.apis.items[1].eventClass, 1);
    assert_int_equal(rows.apis.items[1].returnValue, 700);
    assert_int_equal(rows.syncs.items[0].syncType, 3);
    assert_int_equal(rows.syncs.items[0].streamId, 4294967295);
    assert_int_equal(rows.syncs.items[0].eventId + 10 * rows.syncs.items[0].eventSyncId, 43);
    assert_int_equal(rows.syncs.items[0].deviceId, -1); /* no context record */
    assert_int_equal(rows.overheads.items[0].overheadType, 3);
    assert_int_equal(rows.overheads.items[0].globalTid, eng_nsys_tid(77, 79));
    assert_string_equal(rows.externals.items[0].kind, "point");
    assert_int_equal((uint64_t)rows.externals.items[0].externalId, 0xfeedfacecafebeefu);
    assert_string_equal(rows.externals.items[1].kind, "sample");
    assert_int_equal(rows.externals.items[1].externalId, 12);
    assert_accounted(&rows);
    eng_cupti_rows_free(&rows);
}

static void test_machine(void **state)
{
    (void)state;
    Buffer buffer = {.n = 0};
    CUpti_ActivityDevice5 device = {.kind = CUPTI_ACTIVITY_KIND_DEVICE,
                                    .globalMemoryBandwidth = 4800000000u,
                                    .globalMemorySize = (uint64_t)141 << 30,
                                    .coreClockRate = 1980000,
                                    .numMultiprocessors = 132,
                                    .computeCapabilityMajor = 9,
                                    .id = 2,
                                    .name = "NVIDIA H200"};
    for (int i = 0; i < 16; i++) device.uuid.bytes[i] = (char)(i + 0xf0);
    CUpti_ActivityContext3 context = {
        .kind = CUPTI_ACTIVITY_KIND_CONTEXT, .contextId = 1, .deviceId = 2, .nullStreamId = 7};
    CUpti_ActivityContext3 green = {.kind = CUPTI_ACTIVITY_KIND_CONTEXT,
                                    .contextId = 5,
                                    .deviceId = 2,
                                    .parentContextId = 1,
                                    .isGreenContext = 1};
    CUpti_ActivityStream stream = {.kind = CUPTI_ACTIVITY_KIND_STREAM,
                                   .contextId = 1,
                                   .streamId = 13,
                                   .priority = 0xfffffffbu,
                                   .flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING};
    CUpti_ActivityEnvironment speed = {
        .kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT,
        .deviceId = 2,
        .timestamp = 100,
        .environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_SPEED,
        .data = {.speed = {.smClock = 1980, .memoryClock = 3201, .clocksThrottleReasons = 4}}};
    CUpti_ActivityEnvironment power = speed;
    power.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_POWER;
    power.data.power.power = 450000;
    power.data.power.powerLimit = 700000;
    CUpti_ActivityKernel10 k = kernel_of(10, 20, 1, 3, "k");
    k.contextId = 5;
    CUpti_ActivitySynchronization2 sync = {
        .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, .start = 10, .end = 20, .contextId = 1};
    CUpti_ActivityGraphTrace2 graph = {.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
                                       .correlationId = 6,
                                       .start = 200,
                                       .end = 300,
                                       .deviceId = 2,
                                       .graphId = 44,
                                       .streamId = 13};
    CUpti_ActivityMemcpy6 old = copy_of(30, 40, 2, 3, 64);
    old.contextId = 8;
    old.deviceId = 3;
    PUT(&buffer, k);
    PUT(&buffer, sync);
    sync.start = 11;
    sync.contextId = 8;
    PUT(&buffer, sync);
    sync.start = 12;
    sync.contextId = 9;
    PUT(&buffer, sync);
    PUT(&buffer, old);
    PUT(&buffer, device);
    PUT(&buffer, context);
    PUT(&buffer, green);
    PUT(&buffer, stream);
    PUT(&buffer, speed);
    PUT(&buffer, power);
    PUT(&buffer, graph);
    EngCuptiRows rows = rows_of(&buffer);
    assert_accounted(&rows);
    eng_cupti_rows_finish(&rows, g_same, 0);
    assert_int_equal(rows.gpus.n, 1);
    assert_string_equal(rows.gpus.items[0].name, "NVIDIA H200");
    assert_string_equal(rows.gpus.items[0].uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    assert_int_equal(rows.gpus.items[0].memoryBandwidth, 4800000000000);
    assert_int_equal(rows.gpus.items[0].clockRate, 1980000000);
    assert_int_equal(rows.gpus.items[0].totalMemory, (int64_t)141 << 30);
    assert_int_equal(rows.devices.items[0].gpuId, 2);
    assert_int_equal(rows.devices.items[0].numMultiprocessors, 132);
    assert_int_equal(rows.contexts.n, 2);
    assert_int_equal(rows.contexts.items[0].nullStreamId, 7);
    assert_int_equal(rows.streams.items[0].flag, 2);
    assert_int_equal(rows.environments.n, 2);
    assert_int_equal(rows.environments.items[0].values[2], 4);
    assert_int_equal(rows.environments.items[1].values[1], 700000);
    assert_int_equal(rows.graphs.items[0].graphId, 44);
    /* What only contexts tell. */
    assert_int_equal(rows.syncs.items[0].deviceId, 2);
    assert_int_equal(rows.syncs.items[0].greenContextId, ENG_NSYS_NULL);
    assert_int_equal(rows.kernels.items[0].greenContextId, 5);
    /* A context older than the trace: what ran in it tells; where nothing ran, nobody does. */
    assert_int_equal(rows.syncs.items[1].deviceId, 3);
    assert_int_equal(rows.syncs.items[2].deviceId, -1);
    assert_accounted(&rows);
    eng_cupti_rows_free(&rows);
}

static void test_order_and_repeats(void **state)
{
    (void)state;
    Buffer buffer = {.n = 0};
    CUpti_ActivityKernel10 late = kernel_of(900, 1000, 3, 1, "late");
    CUpti_ActivityKernel10 early = kernel_of(100, 200, 1, 1, "early");
    CUpti_ActivityKernel10 node = kernel_of(100, 150, 1, 1, "node"); /* same launch, another node */
    node.graphNodeId = 5;
    CUpti_ActivityKernel10 other = kernel_of(100, 200, 1, 2, "stream"); /* another stream */
    CUpti_ActivityAPI call = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 211, 90, 95, 1);
    PUT(&buffer, late);
    PUT(&buffer, early);
    PUT(&buffer, node);
    PUT(&buffer, call);
    PUT(&buffer, late);
    PUT(&buffer, other);
    PUT(&buffer, early);
    PUT(&buffer, call);
    EngCuptiRows rows = rows_of(&buffer);
    assert_int_equal(rows.kernels.n, 6);
    assert_accounted(&rows);
    eng_cupti_rows_finish(&rows, g_same, 50);
    assert_int_equal(rows.kernels.n, 4);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_REPEATED], 3);
    assert_int_equal(rows.apis.n, 1);
    assert_int_equal(rows.kernels.items[3].start, 850);
    assert_int_equal(rows.kernels.items[3].end, 950);
    for (int i = 1; i < 4; i++)
        assert_true(rows.kernels.items[i - 1].start <= rows.kernels.items[i].start);
    assert_accounted(&rows);
    eng_cupti_rows_free(&rows);
}

static void test_bad_times(void **state)
{
    (void)state;
    Buffer buffer = {.n = 0};
    const uint64_t times[][2] = {{0, 0}, {0, 5}, {7, 0}, {9, 8}, {5, UINT64_MAX}, {5, 5}};
    for (size_t i = 0; i < 6; i++) {
        CUpti_ActivityKernel10 k = kernel_of(times[i][0], times[i][1], (uint32_t)i, 1, "k");
        CUpti_ActivityMemcpy6 m = copy_of(times[i][0], times[i][1], (uint32_t)i, 1, 1);
        CUpti_ActivityAPI a = call_of(CUPTI_ACTIVITY_KIND_DRIVER, 1, times[i][0], times[i][1], 1);
        PUT(&buffer, k);
        PUT(&buffer, m);
        PUT(&buffer, a);
    }
    EngCuptiRows rows = rows_of(&buffer);
    assert_int_equal(rows.kernels.n, 1);
    assert_int_equal(rows.memcpys.n, 1);
    assert_int_equal(rows.apis.n, 1);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_ZERO], 9);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_BACKWARDS], 6);
    assert_int_equal(rows.n_records, 18);
    assert_accounted(&rows);
    eng_cupti_rows_free(&rows);
}

static void test_ends(void **state)
{
    (void)state;
    CUpti_ActivityKernel10 k = kernel_of(10, 20, 1, 1, "k");
    CUpti_ActivityModule module = {.kind = CUPTI_ACTIVITY_KIND_MODULE};
    const uint32_t unknown[4] = {60, 1, 2, 3};
    /* Cut at every byte within the second record: the first one stays. */
    for (size_t cut = 1; cut < sizeof k; cut++) {
        Buffer buffer = {.n = 0};
        PUT(&buffer, k);
        PUT(&buffer, k);
        buffer.n -= cut;
        EngCuptiRows rows = rows_of(&buffer);
        assert_int_equal(rows.kernels.n, 1);
        assert_int_equal(rows.drops[ENG_CUPTI_DROP_CUT], 1);
        assert_int_equal(rows.drops[ENG_CUPTI_DROP_BYTES], sizeof k - cut);
        assert_accounted(&rows);
        eng_cupti_rows_free(&rows);
    }
    /* A kind without a table is passed, one without a size ends the buffer. */
    Buffer buffer = {.n = 0};
    PUT(&buffer, module);
    PUT(&buffer, k);
    PUT(&buffer, unknown);
    PUT(&buffer, k);
    EngCuptiRows rows = rows_of(&buffer);
    assert_int_equal(rows.kernels.n, 1);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_KIND], 1);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_UNKNOWN], 1);
    assert_int_equal(rows.unknown_kind, 60);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_BYTES], sizeof unknown + sizeof k);
    assert_accounted(&rows);
    eng_cupti_rows_free(&rows);
    /* A record that CUPTI had not filled. */
    Buffer unfinished = {.n = sizeof k};
    PUT(&unfinished, k);
    rows = rows_of(&unfinished);
    assert_int_equal(rows.n_made, 0);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_UNFINISHED], 1);
    assert_int_equal(rows.drops[ENG_CUPTI_DROP_BYTES], 2 * sizeof k);
    assert_accounted(&rows);
    eng_cupti_rows_free(&rows);
    Buffer empty = {.n = 0};
    rows = rows_of(&empty);
    assert_int_equal(rows.n_records, 0);
    eng_cupti_rows_free(&rows);
}

/* Any bytes: kinds that exist, fields at random. No address is followed: names are numbers by then.
 */
static void test_random_bytes(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 5);
    int64_t made = 0;
    for (int round = 0; round < 3000; round++) {
        size_t n = eng_rng_below(&rng, 2048);
        uint64_t *block =
            eng_alloc(n + 8); /* of its own size, so that the sanitizer sees a step too far */
        uint8_t *bytes = (uint8_t *)block;
        for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)eng_rng_u64(&rng);
        bool likely = round % 3 != 0; /* kinds and times that get far */
        for (size_t at = 0; likely && at + 8 <= n;) {
            uint32_t kind = (uint32_t)eng_rng_below(&rng, 56);
            if (!eng_cupti_record_bytes(kind) && eng_rng_below(&rng, 16)) kind = 10;
            size_t size = eng_cupti_record_bytes(kind);
            memcpy(bytes + at, &kind, sizeof kind);
            for (size_t word = 16; word + 8 <= size && at + word + 8 <= n && word <= 48; word += 8)
                bytes[at + word + 7] = 0;
            if (!size) break;
            at += size;
        }
        EngCuptiRows rows;
        assert_int_equal(eng_cupti_rows_init(&rows, NULL), ENG_OK);
        eng_cupti_decode(&rows, &g_source, bytes, n);
        assert_accounted(&rows);
        made += rows.n_made;
        eng_cupti_rows_finish(&rows, g_same, 0);
        assert_accounted(&rows);
        eng_cupti_rows_free(&rows);
        eng_free(block);
    }
    assert_true(made > 1000);
}

static void test_no_memory(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        for (uint64_t n = 1; n <= 12; n++) {
            Buffer buffer = {.n = 0};
            CUpti_ActivityKernel10 k = kernel_of(10, 20, 1, 1, "k");
            CUpti_ActivityAPI a = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, 3, 10, 20, 1);
            CUpti_ActivityDevice5 d = {.kind = CUPTI_ACTIVITY_KIND_DEVICE, .name = "gpu"};
            EngCuptiRows rows;
            if (kind == 0) PUT(&buffer, k);
            if (kind == 1) PUT(&buffer, a);
            if (kind == 2) PUT(&buffer, d);
            uint64_t live = eng_mem_live_blocks();
            eng_mem_fail_at(n);
            if (!eng_cupti_rows_init(&rows, NULL)) {
                eng_cupti_keep_names(&rows, &g_source, buffer.bytes, buffer.n);
                eng_cupti_decode(&rows, &g_source, buffer.bytes, buffer.n);
                assert_accounted(&rows);
                assert_int_equal(rows.n_records, 1);
                eng_cupti_rows_free(&rows);
            }
            eng_mem_fail_at(0);
            assert_int_equal(eng_mem_live_blocks(), live);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_kernel),
        cmocka_unit_test(test_copies_and_sets),
        cmocka_unit_test(test_host_side),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_order_and_repeats),
        cmocka_unit_test(test_bad_times),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
