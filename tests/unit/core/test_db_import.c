/* Imported points: what is stored, that the same import changes nothing, and that one which fails
 * leaves nothing. */
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "bench/core/db_import.h"

static EngErr g_err;
static char g_path[64];

static const EngMetricDef g_metrics[] = {{"fetch_us", "us", -1, "wall", ""},
                                         {"hidden", "share", 1, "none", ""}};
static const EngExperiment g_experiment = {
    .name = "engine", .metrics = g_metrics, .n_metrics = 2, .op = -1};
static const EngMachineRow g_machine = {
    .machine_id = "m", .cpu_model = "unknown", .cores = 4, .description_json = "{}"};
static const EngBuildRow g_build = {
    .build_id = "b", .version = "1", .compiler = "", .flags = "", .libraries_json = "{}"};
static const EngImportAxis g_axes[] = {{"file", "x.sqlite", NAN}, {"layer", "14", 14}};
static const int64_t g_wall[] = {100, 200, 300};
static const double g_values[] = {1, 0.5, 2, NAN, 3, 0.7};
static const EngImportPoint g_points[] = {{.variant = "",
                                           .axes = g_axes,
                                           .n_axes = 1,
                                           .n_samples = 1,
                                           .wall_ns = g_wall,
                                           .values = g_values},
                                          {.variant = "",
                                           .axes = g_axes,
                                           .n_axes = 2,
                                           .n_samples = 3,
                                           .wall_ns = g_wall,
                                           .values = g_values}};
static const EngImportDrop g_drops[] = {{"backwards", 2}, {"zero", 0}};

static EngImport import_of(const char *key)
{
    return (EngImport){.source_key = key,
                       .experiment = &g_experiment,
                       .machine = &g_machine,
                       .build = &g_build,
                       .backend = "cuda",
                       .started_utc = "2026-05-26T07:58:50Z",
                       .command_json = "[]",
                       .name = "x.sqlite",
                       .text = "lookup = a",
                       .provenance = "from x",
                       .evidence_json = "{}",
                       .drops = g_drops,
                       .n_drops = 2,
                       .points = g_points,
                       .n_points = 2};
}

static EngDb *opened(void)
{
    EngDb *db;
    if (eng_db_open(g_path, ENG_DB_WRITE, &db, &g_err)) fail_msg("%s", g_err.text);
    return db;
}

static int64_t ask(EngDb *db, const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(eng_db_handle(db), sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(g_path, sizeof g_path, "/tmp/test_import_XXXXXX");
    int fd = mkstemp(g_path);
    if (fd < 0) return -1;
    close(fd);
    return unlink(g_path);
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -f %s*", g_path);
    return system(command);
}

static void test_stored_once(void **state)
{
    (void)state;
    EngDb *db = opened();
    EngImport import = import_of("k");
    char run[ENG_KEY_HEX], again[ENG_KEY_HEX];
    bool added;
    assert_int_equal(eng_db_import(db, &import, run, &added, &g_err), ENG_OK);
    assert_true(added);
    int64_t changes = sqlite3_total_changes(eng_db_handle(db));
    assert_int_equal(eng_db_import(db, &import, again, &added, &g_err), ENG_OK);
    assert_false(added);
    assert_string_equal(run, again);
    assert_int_equal(sqlite3_total_changes(eng_db_handle(db)), changes);
    assert_int_equal(ask(db, "SELECT count(*) FROM points WHERE kind = 'imported' AND provenance ="
                             " 'from x'"),
                     2);
    assert_int_equal(ask(db, "SELECT count(*) FROM samples"), 4);
    assert_int_equal(ask(db, "SELECT count(*) FROM sample_values"), 2 + 5);
    assert_int_equal(ask(db, "SELECT count(*) FROM drops WHERE what = 'backwards' AND count = 2"),
                     2);
    assert_int_equal(ask(db, "SELECT count(*) FROM drops"), 2);
    assert_int_equal(ask(db, "SELECT count(*) FROM points WHERE axes_json ="
                             " '{\"file\":\"x.sqlite\",\"layer\":14,\"variant\":\"\"}'"),
                     1);
    assert_int_equal(ask(db, "SELECT 10 * median FROM v_summary WHERE metric = 'hidden' AND n = 2"),
                     6);
    import = import_of("other");
    assert_int_equal(eng_db_import(db, &import, again, &added, &g_err), ENG_OK);
    assert_true(added && strcmp(run, again));
    assert_int_equal(ask(db, "SELECT count(*) FROM points"), 4);
    eng_db_close(db);
}

static void test_all_or_nothing(void **state)
{
    (void)state;
    EngDb *db = opened();
    EngImport import = import_of("k");
    char run[ENG_KEY_HEX];
    bool added;
    EngStatus status = ENG_NO_MEMORY;
    for (uint64_t n = 1; status; n++) {
        assert_true(n < 100);
        eng_mem_fail_at(n);
        status = eng_db_import(db, &import, run, &added, &g_err);
        eng_mem_fail_at(0);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_equal(
            ask(db, "SELECT count(*) FROM runs") + ask(db, "SELECT count(*) FROM points"), 0);
    }
    assert_true(added);
    char sql[64]; /* no room for one page more */
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %d", (int)ask(db, "PRAGMA page_count"));
    sqlite3_exec(eng_db_handle(db), sql, NULL, NULL, NULL);
    for (int i = 0; i < 200 && !status; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        import = import_of(key);
        status = eng_db_import(db, &import, run, &added, &g_err);
    }
    assert_int_equal(status, ENG_IO);
    assert_non_null(strstr(g_err.text, "disk full"));
    assert_int_equal(ask(db, "SELECT count(*) FROM runs") * 2,
                     ask(db, "SELECT count(*) FROM points"));
    eng_db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stored_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_or_nothing, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
