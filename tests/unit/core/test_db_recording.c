/* Runs as recordings, and what models say of their points. */
#include "db_fixture.h"

#include "bench/core/db_recording.h"
#include "bench/core/db_runs.h"

#define SWEEP "[reuse]\ntokens = 16, 256, 4096\n"

static int64_t ask(EngDb *db, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(eng_db_handle(db), sql, -1, &statement, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(eng_db_handle(db)));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* A run of three batches; the fixture's metric takes the name that is recorded. */
static void measure(EngDb *db, char run_id[ENG_KEY_HEX])
{
    put_common(db);
    Run run = begin_run(db, SWEEP, false);
    measure_all(db, &run, 1);
    memcpy(run_id, run.run_id, ENG_KEY_HEX);
    free_run(&run);
    assert_int_equal(sqlite3_exec(eng_db_handle(db),
                                  "UPDATE sample_values SET metric = 'distinct_all', value = 0.5"
                                  " WHERE metric = 'distinct';"
                                  "UPDATE metrics SET metric = 'distinct_all'"
                                  " WHERE metric = 'distinct'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
}

static void test_recording(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    EngErr why = {0};
    EngRecording r;
    EngStr text = {0};
    char run_id[ENG_KEY_HEX];
    measure(db, run_id);
    const char *ids[] = {run_id, run_id}; /* a point of two runs counts once */
    if (eng_db_recording(db, ids, 2, &r, &why)) fail_msg("%s", why.text);
    assert_int_equal(r.n, 3);
    assert_string_equal(r.machine, "cpu, 2 processors");
    assert_int_equal(strlen(r.date), 16);
    const EngRecordedValue *v =
        eng_recording_find(&r, "reuse", "corpus=prose tokens=256", "distinct_all");
    assert_non_null(v);
    assert_true(v->median == 0.5 && v->n == 1 && isnan(v->lo));
    assert_int_equal(strlen(v->key), 8);
    /* What is written can be read. */
    assert_int_equal(eng_recording_print(&r, &text, &why), ENG_OK);
    eng_recording_free(&r);
    if (eng_recording_parse("r.csv", text.text, &r, &why)) fail_msg("%s", why.text);
    assert_int_equal(r.n, 3);
    eng_recording_free(&r);
    eng_str_free(&text);
    ids[0] = "nowhere";
    assert_int_equal(eng_db_recording(db, ids, 1, &r, &why), ENG_NOT_FOUND);
    eng_db_close(db);
}

static void test_simulated(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    EngErr why = {0};
    EngRecording r;
    char run_id[ENG_KEY_HEX], first[ENG_KEY_HEX], again[ENG_KEY_HEX], newest[ENG_KEY_HEX];
    measure(db, run_id);
    const char *ids[] = {run_id};
    assert_int_equal(eng_db_recording(db, ids, 1, &r, &why), ENG_OK);
    EngSimulated values[] = {
        {r.values[0].key, "distinct_all", 0.25, "a model, of corpus prose"},
        {r.values[1].key, "distinct_all", 0.75, "extrapolated: a model, of corpus prose"}};
    OK(eng_db_put_simulated(db, run_id, "simulated", "model 1", values, 2, first, err));
    assert_int_equal(ask(db, "SELECT count(*) FROM points WHERE kind = 'simulated'"), 2);
    assert_int_equal(ask(db, "SELECT count(*) FROM points s JOIN points m USING (config_key)"
                             " WHERE s.kind = 'simulated' AND m.kind = 'measured'"),
                     2);
    assert_int_equal(ask(db, "SELECT 100 * median FROM v_summary WHERE kind = 'simulated'"
                             " AND metric = 'distinct_all' ORDER BY median LIMIT 1"),
                     25);
    OK(eng_db_make_predictions_view(db, err));
    assert_int_equal(ask(db, "SELECT count(*) FROM v_predictions WHERE model = 'a model'"
                             " AND measured = 0.5"),
                     2);
    assert_int_equal(ask(db, "SELECT sum(extrapolated) FROM v_predictions"), 1);
    /* The measured run stays the newest; saying it again replaces. */
    OK(eng_db_run_named(db, "latest", newest, err));
    assert_string_equal(newest, run_id);
    values[0].value = 0.3;
    OK(eng_db_put_simulated(db, run_id, "simulated", "model 1", values, 2, again, err));
    assert_string_equal(again, first);
    assert_int_equal(ask(db, "SELECT count(*) FROM points WHERE kind = 'simulated'"), 2);
    assert_int_equal(ask(db, "SELECT round(100 * min(simulated)) FROM v_predictions"), 30);
    /* Another calibration is another run, and the newest word counts. */
    values[0].value = 0.4;
    OK(eng_db_put_simulated(db, run_id, "simulated", "model 2", values, 1, again, err));
    assert_string_not_equal(again, first);
    assert_int_equal(ask(db, "SELECT count(*) FROM v_predictions"), 2);
    assert_int_equal(ask(db, "SELECT round(100 * min(simulated)) FROM v_predictions"), 40);
    /* Words in turn, many within a millisecond: the last counts each time. */
    for (int i = 0; i < 20; i++) {
        values[0].value = 0.01 * (i + 1);
        OK(eng_db_put_simulated(db, run_id, "simulated", i % 2 ? "model 2" : "model 1", values, 1,
                                again, err));
        assert_int_equal(ask(db, "SELECT round(100 * min(simulated)) FROM v_predictions"), i + 1);
    }
    /* A point that was not measured: nothing is stored. */
    values[1].point_key = "nowhere";
    assert_int_equal(
        eng_db_put_simulated(db, run_id, "simulated", "model 3", values, 2, again, &why),
        ENG_INTERNAL);
    assert_int_equal(ask(db, "SELECT count(*) FROM runs"), 3);
    eng_recording_free(&r);
    eng_db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_recording, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_simulated, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
