/* The contract of trace files: tables, columns and types are those of the documented schema, and of
 * a real export where one lies beside; the queries behind nsys's reports give what was put in; a
 * full disk or a failing allocation leaves no file. skips: no shared data */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace_fixture.h"

#define NUL ENG_NSYS_NULL

/* Documented columns of schema 3.25.0; '!' is NOT NULL, '#' the primary key, REAL and TEXT are
 * named, all others are INTEGER. */
static const char *const g_documented[][2] = {
    {"StringIds", "id!# value:TEXT!"},
    {"META_DATA_EXPORT", "name:TEXT! value:TEXT"},
    {"META_DATA_CAPTURE", "name:TEXT! value:TEXT"},
    {"TARGET_INFO_SESSION_START_TIME", "utcEpochNs utcTime:TEXT localTime:TEXT systemClockNs"},
    {"TARGET_INFO_SYSTEM_ENV", "globalVid devStateName:TEXT! name:TEXT! nameEnum! value:TEXT!"},
    {"ANALYSIS_DETAILS", "globalVid! duration! startTime! stopTime!"},
    {"PROCESSES", "globalPid pid name:TEXT"},
    {"ThreadNames", "nameId! priority globalTid"},
    {"NVTX_EVENTS", "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid"
                    " textId domainId uint64Value int64Value doubleValue:REAL uint32Value"
                    " int32Value floatValue:REAL jsonTextId jsonText:TEXT binaryData:TEXT"},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid"
     " demangledName! shortName! mangledName launchType cacheConfig registersPerThread! gridX!"
     " gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory!"
     " localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId"
     " sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX"
     " clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters"
     " sharedMemoryRequestedPercentage tensorSizeMinusOneElements:TEXT!"},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid bytes!"
     " copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId"
     " migrationCause graphNodeId virtualAddress copyCount"},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid value!"
     " bytes! graphNodeId memKind"},
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId"},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid"
     " deprecatedSyncType syncType! eventId! eventSyncId"},
    {"CUPTI_ACTIVITY_KIND_OVERHEAD",
     "start! end! eventClass! globalTid correlationId nameId overheadType!"},
    {"TARGET_INFO_CUDA_STREAM", "streamId! hwId! vmId! processId! contextId! priority! flag!"},
    {"TARGET_INFO_CUDA_DEVICE", "gpuId cudaId! pid! uuid:TEXT numMultiprocessors"},
    {"TARGET_INFO_CUDA_CONTEXT_INFO",
     "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext"},
    {"ENUM_CUDA_MEMCPY_OPER", "id!# name:TEXT label:TEXT"},
    {"ENUM_NSYS_EVENT_TYPE", "id!# name:TEXT label:TEXT"},
};

/* ---- a small session with a GPU ----------------------------------------------------------------
 */

static EngNsysKernel a_kernel(int64_t start, int64_t end, int64_t correlation, const char *name)
{
    return (EngNsysKernel){.start = start,
                           .end = end,
                           .contextId = 1,
                           .greenContextId = NUL,
                           .streamId = 7,
                           .correlationId = correlation,
                           .globalPid = eng_nsys_pid(42),
                           .demangledName = name,
                           .shortName = name,
                           .mangledName = name,
                           .launchType = 1,
                           .cacheConfig = 0,
                           .registersPerThread = 32,
                           .gridX = 8,
                           .gridY = 1,
                           .gridZ = 1,
                           .blockX = 128,
                           .blockY = 1,
                           .blockZ = 1,
                           .gridId = correlation,
                           .sharedMemoryExecuted = NUL,
                           .graphNodeId = NUL,
                           .sharedMemoryLimitConfig = NUL,
                           .graphId = NUL,
                           .clusterX = NUL,
                           .clusterY = NUL,
                           .clusterZ = NUL,
                           .clusterSchedulingPolicy = NUL,
                           .maxPotentialClusterSize = NUL,
                           .maxActiveClusters = NUL,
                           .sharedMemoryRequestedPercentage = NUL};
}

static EngNsysNvtx a_range(int64_t start, int64_t end, const char *name)
{
    return (EngNsysNvtx){.start = start,
                         .end = end,
                         .eventType = ENG_NSYS_PUSH_POP,
                         .rangeId = NUL,
                         .category = NUL,
                         .color = NUL,
                         .globalTid = eng_nsys_tid(42, 43),
                         .endGlobalTid = NUL,
                         .registered = name,
                         .domainId = 1,
                         .uint64Value = NUL,
                         .int64Value = NUL,
                         .doubleValue = NAN,
                         .uint32Value = NUL,
                         .int32Value = NUL,
                         .floatValue = NAN};
}

static EngStatus put_gpu_rows(EngNsys *nsys, EngErr *err)
{
    const int64_t pid = eng_nsys_pid(42), tid = eng_nsys_tid(42, 43);
    const EngNsysKernel k1 = a_kernel(200, 300, 1, "gather"), k2 = a_kernel(400, 450, 2, "gate");
    const EngNsysMemcpy copy = {300, 380, 0, 1, NUL, 7,   3,   pid, 4096,
                                1,   0,   2, 0, 1,   NUL, NUL, NUL, NUL};
    const EngNsysMemset set = {380, 390, 0, 1, NUL, 7, 4, pid, 0, 512, NUL, 2};
    const EngNsysSync sync = {450, 460, 0, 1, NUL, 7, 5, pid, 3, 0, NUL};
    const EngNsysOverhead overhead = {10, 20, ENG_NSYS_CUDA_OVERHEAD, tid, NUL, NULL, 3};
    const EngNsysApi calls[] = {{110, 120, 0, tid, 1, "cudaLaunchKernel_v7000", 0},
                                {130, 140, 0, tid, 2, "cudaLaunchKernel_v7000", 0},
                                {145, 147, 0, tid, 3, "cudaMemcpyAsync_v3020", 0}};
    const EngNsysCudaStream stream = {7, 42, 1, 0, 1};
    const EngNsysCudaDevice device = {0, 0, 42, "uuid", 132};
    const EngNsysCudaContext context = {7, 42, 0, 1, NUL, 0};
    const EngNsysGpu gpu = {.name = "a GPU", .smCount = 132};
    const EngNsysExternal external = {1, pid, "point", 9};
    EngStatus status = eng_nsys_put_kernel(nsys, &k1, err);
    if (!status) status = eng_nsys_put_kernel(nsys, &k2, err);
    if (!status) status = eng_nsys_put_memcpy(nsys, &copy, err);
    if (!status) status = eng_nsys_put_memset(nsys, &set, err);
    if (!status) status = eng_nsys_put_sync(nsys, &sync, err);
    if (!status) status = eng_nsys_put_overhead(nsys, &overhead, err);
    for (int i = 0; i < 3 && !status; i++) status = eng_nsys_put_api(nsys, &calls[i], err);
    if (!status) status = eng_nsys_put_cuda_stream(nsys, &stream, err);
    if (!status) status = eng_nsys_put_cuda_device(nsys, &device, err);
    if (!status) status = eng_nsys_put_cuda_context(nsys, &context, err);
    if (!status) status = eng_nsys_put_gpu(nsys, &gpu, err);
    return status ? status : eng_nsys_put_external(nsys, &external, err);
}

static EngStatus write_session(const char *path, bool gpu, EngErr *err)
{
    EngNsys *nsys = NULL;
    EngNsysSession session = a_session();
    const char *const argv[] = {"engram", "run", NULL};
    const EngNsysNvtx ranges[] = {a_range(100, 500, "step"), a_range(105, 142, "launch"),
                                  a_range(143, 150, "copy"), a_range(600, NUL, "open")};
    EngNsysNvtx domain = a_range(0, NUL, "engram");
    domain.eventType = ENG_NSYS_DOMAIN;
    session.argv = argv;
    session.cuda = gpu;
    EngStatus status = eng_nsys_create(path, &session, &nsys, err);
    if (!status) status = eng_nsys_put_nvtx(nsys, &domain, err);
    for (int i = 0; i < 4 && !status; i++) status = eng_nsys_put_nvtx(nsys, &ranges[i], err);
    if (!status) status = eng_nsys_put_process(nsys, 42, "engram", err);
    if (!status) status = eng_nsys_put_thread(nsys, 42, 43, "main", err);
    if (!status && gpu) status = put_gpu_rows(nsys, err);
    if (!status) return eng_nsys_commit(nsys, err);
    eng_nsys_abort(nsys);
    return status;
}

/* ---- shape -------------------------------------------------------------------------------------
 */

static void columns_of(sqlite3 *db, const char *table, char *out, size_t size)
{
    sqlite3_stmt *statement = NULL;
    size_t used = 0;
    out[0] = 0;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT name, type, \"notnull\", pk FROM"
                                        " pragma_table_info(?)",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(statement, 1);
        bool integer = !strcmp(type, "INTEGER");
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s%s%s%s%s", used ? " " : "",
                             (const char *)sqlite3_column_text(statement, 0), integer ? "" : ":",
                             integer ? "" : type, sqlite3_column_int(statement, 2) ? "!" : "",
                             sqlite3_column_int(statement, 3) ? "#" : "");
    }
    sqlite3_finalize(statement);
}

static void documented_shape(void **state)
{
    char path[256], columns[2048];
    file_in(*state, "gpu.sqlite", path);
    OK(write_session(path, true, err));
    sqlite3 *db = open_trace(path);
    for (size_t i = 0; i < sizeof g_documented / sizeof *g_documented; i++) {
        columns_of(db, g_documented[i][0], columns, sizeof columns);
        assert_string_equal(columns, g_documented[i][1]);
    }
    assert_int_equal(number(db, "SELECT count(*) FROM ENUM_NSYS_EVENT_TYPE WHERE id = 59 AND name ="
                                " 'NvtxPushPopRange'"),
                     1);
    assert_int_equal(number(db, "SELECT count(*) FROM META_DATA_EXPORT WHERE name ="
                                " 'EXPORT_SCHEMA_VERSION' AND value = '3.25.0'"),
                     1);
    assert_int_equal(
        number(db, "SELECT count(*) FROM META_DATA_EXPORT WHERE value LIKE '%NVIDIA%'"), 0);
    sqlite3_close(db);
}

/* Every table of ours that the real export has as well has the same columns there, and every
 * enumeration the same values. */
static void real_export_shape(void **state)
{
    static const char real[] = ENG_SHARED_DIR "/data/nsys/h100_2gpu_train.sqlite";
    char path[256], ours[2048], theirs[2048];
    int n = 0;
    if (access(real, R_OK)) {
        printf("skipped: no shared data\n");
        skip();
    }
    file_in(*state, "gpu.sqlite", path);
    OK(write_session(path, true, err));
    sqlite3 *db = open_trace(path);
    char attach[512];
    snprintf(attach, sizeof attach, "ATTACH 'file:%s?immutable=1' AS other", real);
    sqlite3_close(db);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL), 0);
    assert_int_equal(sqlite3_exec(db, attach, NULL, NULL, NULL), SQLITE_OK);
    sqlite3 *other = NULL;
    snprintf(attach, sizeof attach, "file:%s?immutable=1", real);
    assert_int_equal(sqlite3_open_v2(attach, &other, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL),
                     0);
    sqlite3_stmt *tables = NULL;
    sqlite3_prepare_v2(db,
                       "SELECT m.name FROM main.sqlite_master m JOIN other.sqlite_master o ON"
                       " o.name = m.name WHERE m.type = 'table'",
                       -1, &tables, NULL);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(tables, 0);
        columns_of(db, table, ours, sizeof ours);
        columns_of(other, table, theirs, sizeof theirs);
        if (strcmp(ours, theirs)) fail_msg("%s: %s, the export has %s", table, ours, theirs);
        n++;
        if (strncmp(table, "ENUM_", 5)) continue;
        char sql[512];
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM (SELECT id, name FROM other.%s EXCEPT SELECT id, name FROM"
                 " main.%s)",
                 table, table);
        assert_int_equal(number(db, sql), 0);
    }
    assert_true(n >= 30);
    sqlite3_finalize(tables);
    sqlite3_close(db);
    sqlite3_close(other);
}

/* Without a GPU there are no CUPTI tables, as in a lazy export. */
static void host_only(void **state)
{
    char path[256];
    file_in(*state, "host.sqlite", path);
    OK(write_session(path, false, err));
    sqlite3 *db = open_trace(path);
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_master WHERE name LIKE 'CUPTI%'"), 0);
    assert_int_equal(number(db, "SELECT count(*) FROM NVTX_EVENTS"), 5);
    assert_int_equal(number(db, "SELECT count(*) FROM TARGET_INFO_GPU"), 0);
    sqlite3_close(db);
}

/* ---- the queries behind nsys's reports ---------------------------------------------------------
 */

static void report_queries(void **state)
{
    char path[256];
    file_in(*state, "gpu.sqlite", path);
    OK(write_session(path, true, err));
    sqlite3 *db = open_trace(path);
    /* cuda_gpu_kern_sum: by name, total time */
    assert_int_equal(number(db, "SELECT total(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN"
                                " StringIds s ON s.id = k.demangledName GROUP BY s.value ORDER BY 1"
                                " DESC"),
                     100);
    /* cuda_gpu_mem_time_sum: an empty enumeration would make copies vanish */
    assert_int_equal(
        number(db, "SELECT count(*) FROM (SELECT '[CUDA memcpy ' || o.label || ']' AS name, end -"
                   " start AS d FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN ENUM_CUDA_MEMCPY_OPER o ON"
                   " o.id = m.copyKind UNION ALL SELECT '[CUDA memset]', end - start FROM"
                   " CUPTI_ACTIVITY_KIND_MEMSET) WHERE (name = '[CUDA memcpy Host-to-Device]' AND d"
                   " = 80) OR (name = '[CUDA memset]' AND d = 10)"),
        2);
    /* cuda_api_sum: names lose their ABI suffix */
    assert_int_equal(
        number(db, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id ="
                   " r.nameId WHERE substr(s.value, 1, length(s.value) - 6) = 'cudaLaunchKernel'"
                   " AND substr(s.value, -6, 2) = '_v'"),
        2);
    /* nvtx_sum: domain in front of the name; an open range ends with the last timestamp */
    assert_int_equal(
        number(db, "SELECT total(coalesce(e.end, (SELECT max(coalesce(end, start)) FROM"
                   " NVTX_EVENTS)) - e.start) FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id ="
                   " e.textId LEFT JOIN NVTX_EVENTS d ON d.eventType = 75 AND d.domainId ="
                   " e.domainId AND (d.globalTid & 0xFFFFFFFFFF000000) = (e.globalTid &"
                   " 0xFFFFFFFFFF000000) LEFT JOIN StringIds n ON n.id = d.textId WHERE e.eventType"
                   " IN (59, 60, 70, 71) AND n.value || ':' || coalesce(s.value, e.text) IN"
                   " ('engram:step', 'engram:open')"),
        400);
    /* nvtx_pushpop_sum: the time of children is taken off their parent's */
    assert_int_equal(
        number(db, "SELECT p.end - p.start - (SELECT total(c.end - c.start) FROM NVTX_EVENTS c"
                   " WHERE c.eventType = 59 AND c.globalTid = p.globalTid AND c.start > p.start AND"
                   " c.end < p.end) FROM NVTX_EVENTS p JOIN StringIds s ON s.id = p.textId WHERE"
                   " s.value = 'step'"),
        400 - 37 - 7);
    /* nvtx_gpu_proj_sum: from the first to the last operation whose call lies in the range */
    assert_int_equal(
        number(db, "SELECT max(k.end) - min(k.start) FROM NVTX_EVENTS e JOIN StringIds s ON s.id ="
                   " e.textId JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.globalTid = e.globalTid AND"
                   " r.start >= e.start AND r.end <= e.end JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON"
                   " k.correlationId = r.correlationId AND k.globalPid = (r.globalTid &"
                   " 0xFFFFFFFFFF000000) WHERE s.value = 'launch' AND e.endGlobalTid IS NULL"),
        250);
    sqlite3_close(db);
}

/* ---- faults ------------------------------------------------------------------------------------
 */

static int files_in(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void full_disk(void **state)
{
    char path[256];
    EngErr err = {0};
    file_in(*state, "full.sqlite", path);
    setenv("ENG_DB_MAX_PAGES", "20", 1);
    assert_int_equal(write_session(path, true, &err), ENG_IO);
    unsetenv("ENG_DB_MAX_PAGES");
    assert_non_null(strstr(err.text, "full.sqlite"));
    assert_int_equal(files_in(*state), 0);
    file_in(*state, "no/such/folder.sqlite", path);
    assert_int_equal(write_session(path, true, &err), ENG_IO);
    assert_int_equal(write_session(*state, true, &err), ENG_IO);
}

/* Another process writes the file, or is killed while it does. */
static void written_elsewhere(const char *path, bool killed)
{
    EngErr err = {0};
    EngNsys *nsys;
    EngNsysSession session = a_session();
    int ended = 0;
    pid_t other = fork();
    if (!other)
        _exit(killed ? (int)eng_nsys_create(path, &session, &nsys, &err)
                     : (int)write_session(path, true, &err));
    assert_int_equal(waitpid(other, &ended, 0), other);
    assert_int_equal(ended, 0);
}

/* Of two writers to one name the last one's file stays, whole, and nothing of a killed one. */
static void two_writers(void **state)
{
    char path[256];
    EngErr err = {0};
    EngNsys *nsys = NULL;
    EngNsysSession session = a_session();
    const EngNsysNvtx range = a_range(1, 2, "ours");
    sqlite3_stmt *statement = NULL;
    file_in(*state, "shared.sqlite", path);
    written_elsewhere(path, true);
    assert_int_equal(files_in(*state), 1);
    assert_int_equal(eng_nsys_create(path, &session, &nsys, &err), ENG_OK);
    assert_int_equal(files_in(*state), 1);
    written_elsewhere(path, false);
    assert_int_equal(eng_nsys_put_nvtx(nsys, &range, &err), ENG_OK);
    assert_int_equal(eng_nsys_commit(nsys, &err), ENG_OK);
    assert_int_equal(files_in(*state), 1);
    sqlite3 *db = open_trace(path);
    sqlite3_prepare_v2(db, "SELECT count(*) FROM NVTX_EVENTS", -1, &statement, NULL);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(statement, 0), 1);
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

static void failing_allocations(void **state)
{
    char path[256];
    EngErr err = {0};
    uint64_t live = eng_mem_live_blocks();
    EngStatus status = ENG_NO_MEMORY;
    file_in(*state, "memory.sqlite", path);
    for (uint64_t n = 1; status; n++) {
        eng_mem_fail_at(n);
        status = write_session(path, true, &err);
        eng_mem_fail_at(0);
        assert_true(!status || status == ENG_NO_MEMORY);
        assert_int_equal(eng_mem_live_blocks(), live);
        assert_int_equal(files_in(*state), status ? 0 : 1);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(documented_shape, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(real_export_shape, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(host_only, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(report_queries, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(full_disk, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(two_writers, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(failing_allocations, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
