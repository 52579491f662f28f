/* Reading traces: three schema versions from an independent script, what is refused, a real export
 * compared with plain SQL, and the same with tables and columns taken away. skips: no shared data
 */
#include "tests/unit/trace/trace_fixtures.h"

#include <math.h>
#include <sys/stat.h>

const char fixtures_source[] = ENG_SOURCE_DIR, fixtures_shared[] = ENG_SHARED_DIR;

static EngErr g_err;

static const EngTraceEvent *find(const EngTrace *t, EngTraceWhat what, const char *name, int nth)
{
    for (int64_t i = 0; i < t->n_events; i++)
        if (t->events[i].what == what && !strcmp(t->events[i].name, name) && nth-- == 0)
            return &t->events[i];
    fail_msg("%s: no event %s", t->path, name);
    return NULL;
}

static void test_versions(void **state)
{
    (void)state;
    static const char *const versions[] = {"3.16", "3.22", "3.28"};
    static const char *const lookups[] = {"_engram_lookup_kernel", "_engram_gather_kernel",
                                          "engram_gather_kernel"};
    for (int v = 0; v < 3; v++) {
        char name[64];
        snprintf(name, sizeof name, "engine_%s.sqlite", versions[v]);
        EngTrace *t = opened(fixture_path(name));
        assert_int_equal(t->n_by_what[ENG_TRACE_KERNEL], 20);
        assert_int_equal(t->n_by_what[ENG_TRACE_RANGE], 2);
        assert_int_equal(strncmp(t->schema, versions[v], 4), 0);
        assert_string_equal(t->product, "NVIDIA Nsight Systems invented");
        assert_false(t->ours);
        const EngTraceEvent *e = find(t, ENG_TRACE_KERNEL, lookups[v], 0);
        assert_int_equal(e->start_ns, 1015000);
        assert_int_equal(e->end_ns, 1065000);
        assert_int_equal(e->graph_node, v == 2 ? 102 : 0);
        assert_string_equal(t->tracks[e->track].name, "stream 13 of device 0");
        assert_non_null(strstr(e->full, "(unsigned char const*, int)"));
        assert_int_equal(t->refused.backwards, v == 1);
        assert_int_equal(t->refused.zero, v == 1);
        assert_int_equal(t->refused.repeated, v == 1);
        assert_int_equal(t->refused.above_wall, 0);
        char text[256];
        eng_trace_refusals_text(&t->refused, text, sizeof text);
        assert_string_equal(text, v == 1 ? "3 records refused: 1 ended before they began, 1 had no "
                                           "timestamps, 1 were there twice"
                                         : "");
        EngTrackWork w;
        EngIntervals gaps = {0};
        assert_int_equal(eng_trace_track_work(t, e->track, &w, NULL, &gaps, &g_err), ENG_OK);
        assert_int_equal(w.n, 6);
        assert_int_equal(w.busy_ns, 2 * 115000);
        assert_int_equal(w.sum_ns, w.busy_ns);
        assert_int_equal(gaps.n, 1); /* between the steps */
        assert_int_equal(w.longest_gap_ns, 1000000 - 115000);
        eng_intervals_free(&gaps);
        eng_trace_close(t);
    }
}

static void test_ours(void **state)
{
    (void)state;
    EngTrace *t = opened(fixture_path("steps.sqlite"));
    assert_true(t->ours);
    assert_int_equal(t->n_by_what[ENG_TRACE_RANGE], 120);
    assert_int_equal(t->n_by_what[ENG_TRACE_MARK], 64);
    const EngTraceEvent *e = find(t, ENG_TRACE_RANGE, "fetch", 3);
    assert_string_equal(e->domain, "engram");
    assert_int_equal(e->step, 1);
    assert_int_equal(e->layer, 14);
    assert_int_equal(e->tokens, 16);
    assert_int_equal(e->bytes, 16 * 24 * 264);
    assert_string_equal(t->tracks[e->track].name, "fetch 0 (thread 101)");
    e = find(t, ENG_TRACE_MARK, "saturated", 0);
    assert_true(fabs(e->value - 0.1) < 1e-12);
    assert_string_equal(t->tracks[e->track].name, "compute (thread 100)");
    eng_trace_close(t);
}

static void refuse(const char *path, const char *says)
{
    EngTrace *t = NULL;
    uint64_t live = eng_mem_live_blocks();
    if (eng_trace_open(path, &t, &g_err) != ENG_BAD_DATA) fail_msg("%s: %s", path, g_err.text);
    if (!strstr(g_err.text, says)) fail_msg("%s", g_err.text);
    if (strchr(g_err.text, '\n') || !strstr(g_err.text, path)) fail_msg("%s", g_err.text);
    assert_null(t);
    assert_int_equal(eng_mem_live_blocks(), live);
}

static void test_refused_files(void **state)
{
    (void)state;
    refuse(fixture_path("graphs.sqlite"), "hides the kernels of 1 graph launches");
    refuse(fixture_path("graph_calls.sqlite"), "--cuda-graph-trace=node");
    refuse(fixture_path("lost.sqlite"), "17 events were dropped");
    refuse(fixture_path("old_major.sqlite"), "schema version 2.9.0");
    refuse(fixture_path("empty_export.sqlite"), "without kernels");
    refuse(fixture_path("not_an_export.sqlite"), "no export of Nsight Systems");
    assert_int_equal(eng_file_write(fixture_path("text"), "start,end\n1,2\n", 14, &g_err), ENG_OK);
    refuse(fixture_path("text"), "no SQLite database");
    assert_int_equal(eng_file_write(fixture_path("empty"), "", 0, &g_err), ENG_OK);
    refuse(fixture_path("empty"), "no export");
    EngMapping map;
    assert_int_equal(eng_file_map(fixture_path("engine_3.16.sqlite"), &map, &g_err), ENG_OK);
    assert_int_equal(eng_file_write(fixture_path("cut"), map.data, map.bytes * 6 / 10, &g_err),
                     ENG_OK);
    eng_file_unmap(&map);
    refuse(fixture_path("cut"), "cut off");
    refuse(changed(fixture_path("steps.sqlite"), "drops",
                   "CREATE TABLE ENGRAM_DROPS (what TEXT, n INTEGER);"
                   "INSERT INTO ENGRAM_DROPS VALUES ('events', 0), ('CUPTI records', 12)"),
           "12 CUPTI records");
    refuse(changed(fixture_path("engine_3.28.sqlite"), "major",
                   "DELETE FROM META_DATA_EXPORT WHERE name LIKE 'EXPORT_SCHEMA_VERSION%';"
                   "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION_MAJOR', '4')"),
           "schema version 4");
    const char *pipe = fixture_path("pipe"); /* nobody writes to it, and nobody waits for that */
    assert_int_equal(mkfifo(pipe, 0600), 0);
    refuse(pipe, "not a regular file");
    EngTrace *t;
    assert_int_equal(eng_trace_open(fixture_path("nowhere"), &t, &g_err), ENG_BAD_DATA);
}

/* Kernel times that sum to more than the stream's wall time are no sum. */
static void test_above_wall(void **state)
{
    (void)state;
    EngTrace *t = opened(changed(fixture_path("engine_3.16.sqlite"), "above",
                                 "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE streamId = 13;"
                                 "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 1000000,"
                                 " end = 1300000 + rowid WHERE streamId = 7"));
    EngTrackWork w;
    assert_int_equal(t->refused.above_wall, 1);
    assert_int_equal(eng_trace_track_work(t, 0, &w, NULL, NULL, &g_err), ENG_OK);
    assert_int_equal(w.kernel_ns, -1);
    assert_true(w.busy_ns <= w.last_ns - w.first_ns && w.busy_ns > 0);
    eng_trace_close(t);
}

/* A newer exporter's table names, and everything that a file may lack. */
static void test_absent(void **state)
{
    (void)state;
    EngTrace *t = opened(changed(fixture_path("engine_3.28.sqlite"), "renamed",
                                 "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO"
                                 " CUPTI_ACTIVITY_KIND_KERNEL_V3;"
                                 "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME TO"
                                 " CUPTI_ACTIVITY_KIND_RUNTIME_V2"));
    assert_int_equal(t->n_by_what[ENG_TRACE_KERNEL], 20);
    eng_trace_close(t);
    static const char *const tables[] = {"META_DATA_EXPORT", "CUPTI_ACTIVITY_KIND_RUNTIME",
                                         "NVTX_EVENTS", "TARGET_INFO_SESSION_START_TIME"};
    for (int i = 0; i < 4; i++) {
        char sql[96];
        snprintf(sql, sizeof sql, "DROP TABLE %s", tables[i]);
        t = opened(changed(fixture_path("engine_3.28.sqlite"), "dropped", sql));
        assert_int_equal(t->n_by_what[ENG_TRACE_KERNEL], 20);
        eng_trace_close(t);
    }
    t = opened(changed(fixture_path("engine_3.28.sqlite"), "nameless", "DROP TABLE StringIds"));
    assert_int_equal(t->events[0].name[0], '#');
    eng_trace_close(t);
    refuse(changed(fixture_path("engine_3.28.sqlite"), "endless",
                   "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN end"),
           "no start or no end");
}

/* Every column of every table away in turn: the kernels are read as before, or, without their
 * times, the file is refused. */
static void test_columns_away(void **state)
{
    (void)state;
    char path[256]; /* fixture_path() lends the last four */
    sqlite3 *db;
    sqlite3_stmt *column;
    int n = 0;
    snprintf(path, sizeof path, "%s", fixture_path("engine_3.28.sqlite"));
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
                           " WHERE m.type = 'table' AND m.name NOT GLOB 'ENUM*'",
                           -1, &column, NULL),
        SQLITE_OK);
    for (; sqlite3_step(column) == SQLITE_ROW; n++) {
        char sql[256];
        const char *table = (const char *)sqlite3_column_text(column, 0),
                   *name = (const char *)sqlite3_column_text(column, 1);
        bool kernel = !strcmp(table, "CUPTI_ACTIVITY_KIND_KERNEL");
        snprintf(sql, sizeof sql, "ALTER TABLE %s RENAME COLUMN %s TO notKnown", table, name);
        const char *without = changed(path, "without", sql);
        if (kernel && (!strcmp(name, "start") || !strcmp(name, "end"))) {
            refuse(without, "no start or no end");
        } else if (kernel && !strcmp(name, "graphNodeId")) {
            refuse(without, "hides the kernels"); /* or so it seems */
        } else {
            EngTrace *t = opened(without);
            assert_int_equal(t->n_by_what[ENG_TRACE_KERNEL], 20);
            eng_trace_close(t);
        }
    }
    assert_true(n > 40);
    sqlite3_finalize(column);
    sqlite3_close(db);
}

/* Times that no clock has, among them differences beyond 63 bits; times before the origin count. */
static void test_times(void **state)
{
    (void)state;
    const char *path = fixture_path("engine_3.16.sqlite");
    EngTrace *t = opened(changed(path, "far",
                                 "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 9223372036854775807"
                                 " WHERE rowid = 1;"
                                 "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start ="
                                 " -9223372036854775807 WHERE rowid = 2"));
    assert_int_equal(t->refused.zero, 2);
    assert_int_equal(t->n_by_what[ENG_TRACE_KERNEL], 18);
    assert_true(t->last_ns < 1000000000);
    eng_trace_close(t);
    t = opened(changed(path, "before",
                       "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start - 1000000000,"
                       " end = end - 1000000000"));
    assert_int_equal(t->refused.zero, 0);
    assert_int_equal(t->n_by_what[ENG_TRACE_KERNEL], 20);
    eng_trace_close(t);
}

/* Two processes that each call their only GPU device 0. */
static void test_devices(void **state)
{
    (void)state;
    EngTrace *t = opened(
        changed(fixture_path("engine_3.16.sqlite"), "devices",
                "DROP TABLE IF EXISTS TARGET_INFO_CUDA_DEVICE;"
                "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
                "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (4, 0, 11), (6, 0, 12);"
                "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0, globalPid = iif(rowid = 1, 13,"
                " 11 + rowid % 2) << 24"));
    int64_t n[8] = {0};
    for (int i = 0; i < t->n_tracks; i++)
        if (t->tracks[i].gpu) n[t->tracks[i].device & 7] += t->tracks[i].n_events;
    assert_int_equal(n[4], 10);
    assert_int_equal(n[6], 9);
    assert_int_equal(n[0], 1); /* its process is not told */
    eng_trace_close(t);
}

/* A file in WAL mode, named as if it had options: nothing is made beside it. */
static void test_wal(void **state)
{
    (void)state;
    const char *path =
        changed(fixture_path("engine_3.16.sqlite"), "w?mode=rw#%41", "PRAGMA journal_mode = wal");
    char beside[300];
    eng_trace_close(opened(path));
    snprintf(beside, sizeof beside, "%s-shm", path);
    assert_false(eng_file_exists(beside));
    snprintf(beside, sizeof beside, "%s-wal", path);
    assert_false(eng_file_exists(beside));
}

static void test_open_ranges(void **state)
{
    (void)state;
    EngTrace *t = opened(changed(fixture_path("steps.sqlite"), "open",
                                 "UPDATE NVTX_EVENTS SET end = NULL WHERE rowid = 2;"
                                 "UPDATE NVTX_EVENTS SET jsonText = '{\"layer\":' WHERE rowid = 3;"
                                 "UPDATE NVTX_EVENTS SET jsonText = '{\"layer\":\"x\"}' WHERE"
                                 " rowid = 4"));
    assert_int_equal(t->refused.open, 1);
    int64_t latest = 0;
    for (int64_t i = 0; i < t->n_events; i++)
        if (t->events[i].end_ns > latest) latest = t->events[i].end_ns;
    assert_int_equal(latest, t->last_ns);
    eng_trace_close(t);
}

/* ---- the real export ---------------------------------------------------------------------------
 */

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL)) fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Gaps and islands: an interval begins an island when all before it have ended. */
#define WORK                                                                                       \
    "WITH w AS (SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = %lld AND"       \
    " streamId = %lld UNION ALL SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE deviceId"  \
    " = %lld AND streamId = %lld UNION ALL SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMSET"      \
    " WHERE deviceId = %lld AND streamId = %lld), m AS (SELECT start, end, max(end) OVER (ORDER"   \
    " BY start, end ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM w)"

static int64_t work_sql(sqlite3 *db, const EngTraceTrack *k, const char *select)
{
    char sql[1024];
    long long d = k->device, s = k->stream;
    int n = snprintf(sql, sizeof sql, WORK, d, s, d, s, d, s);
    snprintf(sql + n, sizeof sql - (size_t)n, " %s", select);
    return ask(db, sql);
}

static void test_real(void **state)
{
    (void)state;
    const char *path = real_export();
    if (!path) skip();
    EngTrace *t = opened(path);
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(t->n_by_what[ENG_TRACE_KERNEL],
                     ask(db, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"));
    assert_int_equal(t->n_by_what[ENG_TRACE_API],
                     ask(db, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"));
    assert_int_equal(t->n_by_what[ENG_TRACE_RANGE],
                     ask(db, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59"));
    assert_string_equal(t->schema, "3.25.0");
    int streams = 0;
    for (int i = 0; i < t->n_tracks; i++) {
        EngTrackWork w;
        const EngTraceTrack *k = &t->tracks[i];
        if (!k->gpu) continue;
        streams++;
        assert_int_equal(eng_trace_track_work(t, i, &w, NULL, NULL, &g_err), ENG_OK);
        assert_int_equal(w.n, work_sql(db, k, "SELECT count(*) FROM w"));
        assert_int_equal(w.sum_ns, work_sql(db, k, "SELECT sum(end - start) FROM w"));
        assert_int_equal(w.busy_ns, work_sql(db, k,
                                             "SELECT sum(max(end - max(start, ifnull(reached,"
                                             " start)), 0)) FROM m"));
        assert_int_equal(w.n_gaps, work_sql(db, k, "SELECT count(*) FROM m WHERE start > reached"));
        assert_int_equal(w.gap_ns, work_sql(db, k,
                                            "SELECT sum(start - reached) FROM m WHERE start >"
                                            " reached"));
        assert_int_equal(w.longest_gap_ns, work_sql(db, k, "SELECT max(start - reached) FROM m"));
    }
    assert_int_equal(streams, 2);
    sqlite3_close(db);
    eng_trace_close(t);
}

static void test_real_reduced(void **state)
{
    (void)state;
    const char *path = real_export();
    if (!path) skip();
    static const char *const changes[] = {
        "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME; DROP TABLE NVTX_EVENTS; DROP TABLE ThreadNames",
        "DROP TABLE META_DATA_EXPORT; DROP TABLE META_DATA_CAPTURE; DROP TABLE DIAGNOSTIC_EVENT",
        "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY; DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN graphNodeId;"
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN correlationId;"
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid;"
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN contextId;"
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN mangledName;"
        "ALTER TABLE NVTX_EVENTS DROP COLUMN jsonText; ALTER TABLE NVTX_EVENTS DROP COLUMN "
        "domainId",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN shortName",
        "UPDATE META_DATA_EXPORT SET value = '3.99.7' WHERE name = 'EXPORT_SCHEMA_VERSION';"
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN somethingNew BLOB",
    };
    EngTrackWork whole, w;
    EngTrace *t = opened(path);
    assert_true(t->tracks[0].gpu);
    assert_int_equal(eng_trace_track_work(t, 0, &whole, NULL, NULL, &g_err), ENG_OK);
    eng_trace_close(t);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        t = opened(changed(path, "reduced", changes[i]));
        assert_int_equal(t->n_by_what[ENG_TRACE_KERNEL], 4010);
        assert_int_equal(eng_trace_track_work(t, 0, &w, NULL, NULL, &g_err), ENG_OK);
        if (i < 2) assert_int_equal(w.busy_ns, whole.busy_ns);
        eng_trace_close(t);
    }
}

/* Every failing allocation gives one clear status and leaves nothing. */
static void test_memory(void **state)
{
    (void)state;
    const char *path = fixture_path("engine_3.28.sqlite");
    EngStatus status = ENG_NO_MEMORY;
    uint64_t n = 1;
    for (; status; n++) {
        EngTrace *t = NULL;
        uint64_t live = eng_mem_live_blocks();
        eng_mem_fail_at(n);
        status = eng_trace_open(path, &t, &g_err);
        eng_mem_fail_at(0);
        if (status) assert_int_equal(status, ENG_NO_MEMORY);
        eng_trace_close(t);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),      cmocka_unit_test(test_ours),
        cmocka_unit_test(test_refused_files), cmocka_unit_test(test_above_wall),
        cmocka_unit_test(test_absent),        cmocka_unit_test(test_open_ranges),
        cmocka_unit_test(test_columns_away),  cmocka_unit_test(test_times),
        cmocka_unit_test(test_devices),       cmocka_unit_test(test_wal),
        cmocka_unit_test(test_real),          cmocka_unit_test(test_real_reduced),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, fixtures_make, fixtures_remove);
}
