/* Verdicts: stored, replaced, exported, merged; runs by name. */
#include "db_fixture.h"

#include "bench/core/db_export.h"
#include "bench/core/db_merge.h"
#include "bench/core/db_runs.h"
#include "bench/core/db_verdicts.h"

#define BASE_KEY(run) ((run)->blocks[0].points[0].plan->point_key)
#define KEY(run)      ((run)->blocks[0].points[1].plan->point_key)

static void put_verdict(EngDb *db, const Run *run, double ratio, EngVerdictWord word)
{
    const EngEffect effect = {.ratio = {20, 240, ratio, ratio - 0.01, NAN, 0.001},
                              .control = {20, 240, NAN, NAN, NAN, NAN},
                              .old_ns = 100,
                              .new_ns = 100 * ratio};
    const EngVerdict verdict = {word, 0.002, 0.01, "because"};
    const EngVerdictRow row = {"ab",          run->run_id, run->run_id, KEY(run),
                               BASE_KEY(run), &effect,     &verdict};
    OK(eng_db_put_verdicts(db, &eng_verdict_rules, &row, 1, err));
}

static EngStatus keep_text(void *context, const char *text, size_t n, EngErr *err)
{
    (void)err;
    eng_str_add_n(context, text, n);
    return ENG_OK;
}

static EngStatus export_verdicts(EngDb *db, const char *run, EngStr *out, EngErr *err)
{
    const EngExportOptions options = {run, NULL, ENG_ROWS_CSV, ENG_EXPORT_VERDICTS};
    int64_t n;
    out->n = 0;
    return eng_db_export(db, &options, keep_text, out, &n, err);
}

static void test_stored(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    EngErr e = {0};
    EngStr text = {0}, again = {0};
    put_common(db);
    Run run = begin_run(db, "[gather]\ntokens = 1\n", false);
    measure_all(db, &run, 6);
    assert_int_equal(export_verdicts(db, "latest", &text, &e), ENG_NOT_FOUND);
    assert_non_null(strstr(e.text, "no verdicts"));
    put_verdict(db, &run, 1.5, ENG_VERDICT_SLOWER);
    put_verdict(db, &run, 1.25, ENG_VERDICT_SLOWER);
    assert_int_equal(number(db, "SELECT count(*) FROM verdicts"), 1);
    assert_int_equal(number(db, "SELECT ratio = 1.25 AND ratio_hi IS NULL AND control_ratio IS NULL"
                                " AND threshold = 0.02 AND n_compared = 1 FROM verdicts"),
                     1);
    OK(export_verdicts(db, "latest", &text, err));
    char *line = strchr(text.text, '\n');
    assert_int_equal(strncmp(text.text, "run_id,machine_id,experiment,kind,backend,corpus,", 49),
                     0);
    assert_non_null(strstr(text.text, ",variant,comparison,verdict,ratio,ratio_lo,ratio_hi,p,"));
    assert_non_null(line);
    assert_non_null(strstr(line, ",ab,slower,1.25,1.24,,0.001,0.002,1,,0.01,0.02,0.02,0.05,0,100,"
                                 "125,240,20,because,"));
    OK(export_verdicts(db, "all", &again, err));
    assert_string_equal(again.text, text.text);
    /* A point that is not there is refused, and nothing of the comparison stays. */
    const EngEffect effect = {.ratio.ratio = 1, .control.ratio = 1};
    const EngVerdict verdict = {ENG_VERDICT_SAME, 1, 0, ""};
    const EngVerdictRow rows[] = {
        {"ab", run.run_id, run.run_id, BASE_KEY(&run), KEY(&run), &effect, &verdict},
        {"ab", run.run_id, run.run_id, "none", KEY(&run), &effect, &verdict}};
    assert_int_not_equal(eng_db_put_verdicts(db, &eng_verdict_rules, rows, 2, &e), ENG_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM verdicts"), 1);
    eng_str_free(&text);
    eng_str_free(&again);
    free_run(&run);
    eng_db_close(db);
}

static void test_merged(void **state)
{
    const Folder *folder = *state;
    char path[160];
    EngDb *db = open_db(folder, ENG_DB_RUN), *other = NULL;
    EngMergeCounts counts;
    put_common(db);
    Run run = begin_run(db, "[gather]\ntokens = 1\n", false);
    measure_all(db, &run, 6);
    put_verdict(db, &run, 1.5, ENG_VERDICT_SLOWER);
    snprintf(path, sizeof path, "%s/other.db", folder->path);
    OK(eng_db_open(path, ENG_DB_RUN, &other, err));
    OK(eng_db_merge(other, db, &counts, err));
    assert_int_equal(number(other, "SELECT count(*) FROM verdicts WHERE verdict = 'slower'"), 1);
    OK(eng_db_merge(other, db, &counts, err));
    assert_int_equal(counts.added + counts.conflicts, 0);
    put_verdict(db, &run, 1.25, ENG_VERDICT_SLOWER);
    OK(eng_db_merge(other, db, &counts, err));
    assert_int_equal(counts.conflicts, 1);
    assert_int_equal(number(other, "SELECT ratio = 1.5 FROM verdicts"), 1);
    eng_db_close(other);
    free_run(&run);
    eng_db_close(db);
}

static void expect_run(EngDb *db, const char *name, const char *run_id)
{
    char found[ENG_KEY_HEX];
    OK(eng_db_run_named(db, name, found, err));
    assert_string_equal(found, run_id);
}

static void test_names(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    EngArena *arena = eng_arena_create();
    EngRunRow *rows;
    EngErr e = {0};
    char found[ENG_KEY_HEX];
    int n;
    assert_int_equal(eng_db_run_named(db, "latest", found, &e), ENG_NOT_FOUND);
    assert_non_null(strstr(e.text, "no run yet"));
    put_common(db);
    for (int i = 0; i < 3; i++) {
        Run run = begin_run(db, "[gather]\ntokens = 1\n", true);
        if (i) measure_all(db, &run, 6);
        free_run(&run);
    }
    /* Ids and starts that the test knows; the third began at the second's moment. */
    static const char *const ids[] = {"aa11", "ab22", "ab33"};
    OK(eng_db_runs(db, arena, &rows, &n, err));
    assert_int_equal(n, 3);
    sqlite3_exec(eng_db_handle(db), "PRAGMA foreign_keys = OFF", NULL, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        char sql[512];
        snprintf(sql, sizeof sql,
                 "UPDATE run_points SET run_id = '%s' WHERE run_id = '%s';"
                 "UPDATE blocks SET run_id = '%s' WHERE run_id = '%s';"
                 "UPDATE runs SET started_utc = '2026-01-0%d', run_id = '%s' WHERE run_id = '%s'",
                 ids[i], rows[2 - i].run_id, ids[i], rows[2 - i].run_id, i ? 2 : 1, ids[i],
                 rows[2 - i].run_id);
        assert_int_equal(sqlite3_exec(eng_db_handle(db), sql, NULL, NULL, NULL), SQLITE_OK);
    }
    expect_run(db, NULL, "ab33");
    expect_run(db, "latest", "ab33");
    expect_run(db, "latest~0", "ab33");
    expect_run(db, "latest~1", "ab22");
    expect_run(db, "latest~2", "aa11");
    expect_run(db, "aa", "aa11");
    expect_run(db, "ab2", "ab22");
    assert_int_equal(eng_db_run_named(db, "latest~3", found, &e), ENG_NOT_FOUND);
    assert_non_null(strstr(e.text, "no run 'latest~3', there are 3"));
    assert_int_equal(eng_db_run_named(db, "latest~", found, &e), ENG_USAGE);
    assert_int_equal(eng_db_run_named(db, "latest~-1", found, &e), ENG_USAGE);
    assert_int_equal(eng_db_run_named(db, "ab", found, &e), ENG_USAGE);
    assert_non_null(strstr(e.text, "2 runs begin with 'ab'"));
    assert_int_equal(eng_db_run_named(db, "", found, &e), ENG_NOT_FOUND);
    assert_int_equal(eng_db_run_named(db, "zz", found, &e), ENG_NOT_FOUND);
    assert_int_equal(eng_db_run_named(db, "lates", found, &e), ENG_NOT_FOUND);
    OK(eng_db_runs(db, arena, &rows, &n, err));
    assert_string_equal(rows[0].run_id, "ab33");
    assert_string_equal(rows[2].state, "running");
    OK(eng_db_run_of(db, "gather", found, err));
    assert_string_equal(found, "ab33");
    sqlite3_exec(eng_db_handle(db), "DELETE FROM run_points WHERE run_id = 'ab33'", 0, 0, 0);
    OK(eng_db_run_of(db, "gather", found, err));
    assert_string_equal(found, "ab22");
    OK(eng_db_run_of(db, "hash", found, err)); /* none has any: the newest */
    assert_string_equal(found, "ab33");
    assert_int_equal(rows[0].points, rows[0].measured);
    assert_true(rows[0].points > 0 && rows[2].measured == 0);
    eng_arena_destroy(arena);
    eng_db_close(db);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {IN_FOLDER(test_stored), IN_FOLDER(test_merged),
                                       IN_FOLDER(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
