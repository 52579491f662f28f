/* Memory runs out at every allocation in turn, of ours and of SQLite's, while a plan is expanded
 * and written, samples are stored, and results are exported and merged: a clear error each time, an
 * intact database, and the next try works. */
#include "db_fixture.h"

#include "bench/core/db_export.h"
#include "bench/core/db_merge.h"

static sqlite3_mem_methods g_real;
static long g_seen, g_fail_at;

static bool fails(void)
{
    return ++g_seen == g_fail_at;
}

static void *failing_malloc(int n)
{
    return fails() ? NULL : g_real.xMalloc(n);
}

static void *failing_realloc(void *block, int n)
{
    return fails() ? NULL : g_real.xRealloc(block, n);
}

/* Before SQLite is used. No look-aside memory: every allocation is to be seen. */
static int watch_sqlite(void **state)
{
    (void)state;
    sqlite3_mem_methods mine;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &g_real)) return -1;
    mine = g_real;
    mine.xMalloc = failing_malloc;
    mine.xRealloc = failing_realloc;
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
}

static void intact(EngDb *db)
{
    sqlite3_stmt *statement;
    assert_int_equal(
        sqlite3_prepare_v2(eng_db_handle(db), "PRAGMA integrity_check", -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(statement, 0), "ok");
    sqlite3_finalize(statement);
    assert_int_equal(number(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

/* One try of what is tested, on a database opened for it; `expected` counts rows after success. */
typedef EngStatus (*Try)(EngDb *db, void *context, EngErr *err);

/* Fails SQLite's n-th allocation on a connection of its own each time: every one of the first 60
 * (statements are prepared there), then ever fewer of the many that rows take. */
static int fail_each(const Folder *folder, EngDbMode mode, Try try, void *context,
                     const char *untouched)
{
    int failures = 0;
    for (long n = 1;; n += 1 + n / 60) {
        EngErr err = {0};
        EngDb *db = open_db(folder, mode);
        int64_t before = number(db, untouched);
        g_seen = 0;
        g_fail_at = n;
        EngStatus status = try(db, context, &err);
        bool reached = g_seen >= n;
        g_fail_at = 0;
        eng_db_rollback(db);
        if (status) {
            if (status != ENG_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
            assert_non_null(strstr(err.text, "out of memory"));
            assert_int_equal(number(db, untouched), before);
            failures++;
        }
        if (n % 16 == 1) intact(db);
        eng_db_close(db);
        if (!reached) {
            assert_int_equal(status, ENG_OK);
            return failures;
        }
        /* An allocation that may fail unnoticed (a cache page, say) did no harm: start over. */
        if (!status && mode != ENG_DB_READ) return failures;
    }
}

typedef struct Written {
    const EngPlan *plan;
    const char *run_id;
} Written;

static EngStatus write_plan(EngDb *db, void *context, EngErr *err)
{
    const Written *w = context;
    EngPlanCounts counts;
    return eng_db_plan_write(db, w->run_id, w->plan, false, &counts, err);
}

static const char sweep_text[] = "[gather]\ntokens = 1, 2\n[reuse]\n";

static void test_plan_written(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    EngSweep *sweep = good_sweep(&catalog, sweep_text);
    EngPlan *plan = good_plan(sweep, &identity);
    const EngRunSpec spec = {"machine-1", "build-1", 1, "[]", "s", "", plan->plan_key, "{}"};
    char run_id[ENG_KEY_HEX];
    bool resumed;
    OK(eng_db_run_begin(db, &spec, false, run_id, &resumed, err));
    eng_db_close(db);
    Written written = {plan, run_id};
    assert_true(fail_each(*state, ENG_DB_RUN, write_plan, &written,
                          "SELECT (SELECT count(*) FROM points) + (SELECT count(*) FROM blocks) +"
                          " (SELECT count(*) FROM run_points)") > 20);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

static EngStatus store_one(EngDb *db, void *context, EngErr *err)
{
    const EngSampleId *id = context;
    const EngTiming timing = {.inner = 2, .wall_ns = 100, .cpu_ns = 100};
    const double values[] = {1, 2, NAN};
    return eng_db_put_sample(db, id, 0, false, &timing, &gather, values, err);
}

static void test_sample_stored(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    int segment;
    put_common(db);
    Run run = begin_run(db, sweep_text, false);
    int b = run.blocks[0].experiment == &gather ? 0 : 1;
    OK(eng_db_segment_start(db, run.blocks[b].block_id, 1, &segment, err));
    eng_db_close(db);
    EngSampleId id = {run.blocks[b].block_id, run.blocks[b].points[0].plan->point_key, segment, 0};
    assert_true(fail_each(*state, ENG_DB_RUN, store_one, &id,
                          "SELECT (SELECT count(*) FROM samples) +"
                          " (SELECT count(*) FROM sample_values)") > 5);
    free_run(&run);
}

static EngStatus drop(void *context, const char *text, size_t n, EngErr *err)
{
    (void)context, (void)text, (void)n, (void)err;
    return ENG_OK;
}

static EngStatus export_all(EngDb *db, void *context, EngErr *err)
{
    const EngExportOptions options = {"all", NULL, ENG_ROWS_CSV, context != NULL};
    int64_t n;
    return eng_db_export(db, &options, drop, NULL, &n, err);
}

static EngStatus merge_all(EngDb *db, void *context, EngErr *err)
{
    EngMergeCounts counts;
    return eng_db_merge(db, context, &counts, err);
}

static void test_exported_and_merged(void **state)
{
    const Folder *folder = *state;
    EngDb *db = open_db(folder, ENG_DB_RUN);
    put_common(db);
    Run run = begin_run(db, "[gather]\n", false);
    measure_all(db, &run, 2);
    eng_db_close(db);
    free_run(&run);
    assert_true(fail_each(folder, ENG_DB_READ, export_all, NULL, "SELECT count(*) FROM samples") >
                20);
    assert_true(
        fail_each(folder, ENG_DB_READ, export_all, "samples", "SELECT count(*) FROM samples") > 20);
    Folder into = *folder;
    snprintf(into.db, sizeof into.db, "%.70s/into.db", folder->path);
    EngDb *other = open_db(folder, ENG_DB_READ);
    assert_true(fail_each(&into, ENG_DB_RUN, merge_all, other,
                          "SELECT (SELECT count(*) FROM points) + (SELECT count(*) FROM samples)") >
                20);
    eng_db_close(other);
}

/* Ours, while a plan is expanded. */
static void test_plan_expanded(void **state)
{
    (void)state;
    EngSweep *sweep = good_sweep(&catalog, sweep_text);
    uint64_t live = eng_mem_live_blocks();
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        EngPlan *plan = NULL;
        EngErr err = {0};
        eng_mem_fail_at(n);
        EngStatus status = eng_plan_expand(sweep, &identity, &plan, &err);
        bool reached = eng_mem_fail_at(0) >= n;
        eng_plan_free(plan);
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!reached) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        failures++;
    }
    assert_true(failures > 5);
    eng_sweep_free(sweep);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_expanded),
        IN_FOLDER(test_plan_written),
        IN_FOLDER(test_sample_stored),
        IN_FOLDER(test_exported_and_merged),
    };
    return cmocka_run_group_tests(tests, watch_sqlite, NULL);
}
