/* Statistics as SQL functions against bench/core/paired.c, the table of training runs, and
 * published numbers. */
#include "tests/unit/reports/fixture.h"

#include "base/file.h"
#include "base/mem.h"
#include "bench/ablation/run.h"
#include "bench/core/paired.h"
#include "reports/printf.h"
#include "reports/study.h"

static sqlite3 *open_memory(void)
{
    sqlite3 *sql;
    assert_int_equal(sqlite3_open(":memory:", &sql), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(sql,
                     "CREATE TABLE points (point_key, experiment, kind, axes_json, stream_digest,"
                     " variant_digest);"
                     "CREATE TABLE block_points (block_id, point_key, outcome, reason);"
                     "CREATE TABLE blocks (block_id, run_id);"
                     "CREATE TABLE runs (run_id, started_utc);"
                     "INSERT INTO blocks VALUES ('b', 'old'), ('new', 'new');"
                     "INSERT INTO runs VALUES ('old', '2026-01-01'), ('new', '2026-01-02');"
                     "CREATE TABLE sample_values (block_id, point_key, metric, value)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    return sql;
}

static void run_sql(sqlite3 *sql, const char *text)
{
    char *message = NULL;
    if (sqlite3_exec(sql, text, NULL, NULL, &message)) fail_msg("%s: %s", text, message);
}

static double ask(sqlite3 *sql, const char *text)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(sql, text, -1, &statement, NULL))
        fail_msg("%s: %s", text, sqlite3_errmsg(sql));
    int rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW) fail_msg("%s: %s", text, sqlite3_errmsg(sql));
    double value = sqlite3_column_type(statement, 0) == SQLITE_NULL
                       ? NAN
                       : sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) < 1e-9)) fail_msg("got %.12g, want %.12g", got, want);
}

static void test_functions(void **state)
{
    (void)state;
    sqlite3 *sql = open_memory();
    EngErr err = {0};
    if (eng_study_register(sql, "memory", &err)) fail_msg("%s", err.text);
    run_sql(sql, "CREATE TABLE d (v); INSERT INTO d VALUES (.1), (.2), (NULL), (.3), (.1)");
    const double values[] = {.1, .2, .3, .1};
    EngPaired want = eng_arm_mean(values, 4);
    near(ask(sql, "SELECT paired_test(v) ->> '$.mean' FROM d"), want.mean);
    near(ask(sql, "SELECT paired_test(v) ->> '$.lo' FROM d"), want.lo);
    near(ask(sql, "SELECT paired_test(v) ->> '$.p_two' FROM d"), want.p_two);
    near(ask(sql, "SELECT paired_test(v) ->> '$.n' FROM d"), 4);
    assert_true(isnan(ask(sql, "SELECT paired_test(v) ->> '$.lo' FROM d WHERE v = .2")));
    near(ask(sql, "SELECT paired_test(v) ->> '$.n' FROM d WHERE v > 9"), 0);

    run_sql(sql,
            "CREATE TABLE c (x, s, y); INSERT INTO c SELECT x.value, s.value, abs(x.value - .6)"
            " + s.value * .3 + ((x.value * 100 + s.value * 7) % 3) * .001"
            " FROM json_each('[0.4,0.6,0.8,1]') x, json_each('[1,2,3,4]') s");
    near(ask(sql, "SELECT lowest(x, s, y) ->> '$.best' FROM c"), 0.6);
    near(ask(sql, "SELECT json_array_length(lowest(x, s, y), '$.tied') FROM c"), 1);
    near(ask(sql, "SELECT valley_fixed(x, s, y, .4, .6, 1) ->> '$.claimed' FROM c"), 1);
    near(ask(sql, "SELECT valley_fixed(x, s, y, .4, .8, 1) ->> '$.claimed' FROM c"), 0);
    near(ask(sql, "SELECT valley_split(x, s, y) ->> '$.valley' FROM c"), 0.6);
    assert_true(isnan(ask(sql, "SELECT valley_fixed(x, s, y, .4, .7, 1) FROM c")));
    assert_true(isnan(ask(sql, "SELECT valley_split(x, s, y) FROM c WHERE s < 3")));
    assert_true(isnan(ask(sql, "SELECT lowest(x, s, y) FROM c WHERE s < 2")));
    near(ask(sql, "SELECT spread(x, s, y) ->> '$.df' FROM c"), 9);
    assert_true(ask(sql, "SELECT spread(x, s, y) ->> '$.sigma' FROM c") < 0.002);
    near(ask(sql, "SELECT holm(n, p) ->> '$.b' FROM (SELECT 'a' n, .01 p UNION SELECT 'b', .02"
                  " UNION SELECT 'c', .5)"),
         0.04);
    /* Any number of them, under names of any length that differ at their ends. */
    run_sql(sql, "CREATE TABLE many AS WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1"
                 " FROM k WHERE i < 299) SELECT printf('%.*c%d', 250, 'n', i) AS name,"
                 " iif(i = 299, .0001, .9) AS p FROM k");
    near(ask(sql, "SELECT count(*) FROM (SELECT holm(name, p) AS h FROM many), json_each(h)"), 300);
    near(ask(sql, "SELECT value FROM (SELECT holm(name, p) AS h FROM many), json_each(h)"
                  " WHERE key = printf('%.*c%d', 250, 'n', 299)"),
         0.03);
    near(ask(sql, "SELECT holm(name, p) = '{}' FROM many WHERE name = ''"), 1);
    EngClaimP p = eng_claim_p(&want, .2, 0);
    near(ask(sql, "SELECT claim_p(paired_test(v), .2, 0) ->> '$.agrees' FROM d"), p.agrees);
    near(ask(sql, "SELECT claim_p(paired_test(v), .2, 0) ->> '$.disagrees' FROM d"), p.disagrees);
    assert_true(isnan(ask(sql, "SELECT claim_p(paired_test(v), .2, 0) ->> '$.agrees' FROM d"
                               " WHERE v = .2")));
    near(ask(sql, "SELECT claim(.01, 1) = 'confirmed' AND claim(.2, .01) = 'contradicted'"
                  " AND claim(NULL, NULL) LIKE 'not detectable%'"),
         1);
    near(ask(sql, "SELECT interval(.1, -.2, .3) = '+0.1000 (-0.2000 to +0.3000)'"
                  " AND interval(.1, NULL, NULL) = '+0.1000' AND interval(NULL, NULL, NULL) = ''"),
         1);
    sqlite3_close(sql);
}

/* One row per model and seed, whichever machine trained it, with however many threads; the family
 * most runs share is the main one. */
static void test_runs(void **state)
{
    (void)state;
    sqlite3 *sql = open_memory();
    EngErr err = {0};
    run_sql(sql, "INSERT INTO points (point_key, experiment, kind, axes_json) VALUES"
                 " ('p1', 'train', 'imported', "
                 "'{\"rho\":1,\"model_seed\":1,\"lr\":-1,\"threads\":1}'),"
                 " ('p2', 'train', 'measured', "
                 "'{\"rho\":1,\"model_seed\":1,\"lr\":-1,\"threads\":2}'),"
                 " ('p3', 'train', 'measured', "
                 "'{\"rho\":1,\"model_seed\":2,\"lr\":-1,\"threads\":1}'),"
                 " ('p4', 'train', 'measured', "
                 "'{\"rho\":1,\"model_seed\":1,\"lr\":0.5,\"threads\":1}'),"
                 " ('p5', 'hash', 'measured', '{}');"
                 "INSERT INTO block_points VALUES ('b', 'p1', 'measured', NULL), ('b', 'p2', "
                 "'measured', NULL),"
                 " ('b', 'p3', 'failed', 'loss is nan'), ('b', 'p4', 'measured', NULL), ('b', "
                 "'p5', 'measured', NULL);"
                 "INSERT INTO sample_values VALUES ('b', 'p1', 'loss', 3), ('b', 'p2', 'loss', 4)");
    if (eng_study_register(sql, "memory", &err)) fail_msg("%s", err.text);
    near(ask(sql, "SELECT count(*) FROM v_train"), 3);
    near(ask(sql, "SELECT loss FROM v_train WHERE seed = 1 AND lr = -1"), 4);
    near(ask(sql, "SELECT count(*) FROM v_train WHERE main"), 2);
    near(ask(sql, "SELECT count(*) FROM v_train WHERE outcome = 'failed' AND loss IS NULL"), 1);
    near(ask(sql, "SELECT count(DISTINCT arm) FROM v_train"), 2);
    sqlite3_close(sql);
}

/* Another text under the same name is another study, and one of its own; without a digest it is
 * that of most runs. Of one model that changed with the program the newest counts. */
static void test_texts_and_programs(void **state)
{
    (void)state;
    sqlite3 *sql = open_memory();
    EngErr err = {0};
    run_sql(sql,
            "INSERT INTO points SELECT 'p' || s.value || t.value, 'train', 'measured',"
            " json_object('budget', 20, 'model_seed', s.value, 'rho', 1, 'rung', 'R0c', 'text',"
            " 'training', 'threads', 1), nullif(t.value, 'none'), 'v'"
            " FROM json_each('[1,2,3]') s, json_each('[\"first\",\"second\",\"none\"]') t"
            " WHERE CASE t.value WHEN 'first' THEN 1 WHEN 'second' THEN s.value < 3 ELSE s.value = "
            "3 END;"
            "INSERT INTO points SELECT 'newer', experiment, 'imported', axes_json, stream_digest,"
            " 'newer' FROM points WHERE point_key = 'p1first';"
            "INSERT INTO block_points SELECT iif(point_key = 'newer', 'new', 'b'), point_key,"
            " 'measured', NULL FROM points;"
            "INSERT INTO sample_values SELECT block_id, point_key, 'loss',"
            " iif(point_key = 'newer', 5, 4) FROM block_points");
    if (eng_study_register(sql, "memory", &err)) fail_msg("%s", err.text);
    near(ask(sql, "SELECT count(*) FROM v_train"), 5);
    near(ask(sql, "SELECT count(*) FROM v_train WHERE study = 'R0c, 20 tokens per parameter'"), 3);
    near(ask(sql, "SELECT count(*) FROM v_train WHERE study ="
                  " 'R0c, 20 tokens per parameter, other text second'"),
         2);
    near(ask(sql, "SELECT count(*) FROM v_train WHERE main"), 5);
    near(ask(sql, "SELECT loss FROM v_train WHERE seed = 1 AND study NOT LIKE '%other%'"), 5);
    sqlite3_close(sql);
}

/* A number that is not there is no 0. */
static void test_printf(void **state)
{
    (void)state;
    sqlite3 *sql = open_memory();
    EngErr err = {0};
    near(ask(sql, "SELECT printf('%g', NULL) = '0'"), 1); /* what SQLite does */
    if (eng_printf_register(sql, "memory", &err)) fail_msg("%s", err.text);
    near(ask(sql, "SELECT printf('%g', NULL) IS NULL AND printf('%s %,d', 'a', NULL) IS NULL"
                  " AND printf('%.*f', 2, NULL) IS NULL AND printf('%d') IS NULL"),
         1);
    near(ask(sql, "SELECT printf('%s|%5.1f %%|%+.4f', NULL, 2.25, 1) = '|  2.3 %|+1.0000'"
                  " AND printf('%,d', 1234567) = '1,234,567' AND printf('100 %') = '100 %'"
                  " AND printf('%.*f', 2, 1.5) = '1.50' AND printf(NULL) IS NULL"),
         1);
    near(ask(sql, "SELECT coalesce(printf('%g', NULL), 'frozen') = 'frozen'"), 1);
    sqlite3_close(sql);
}

/* What is not pooled has different names; -1 and the number it stands for stay apart. */
static void test_labels(void **state)
{
    (void)state;
    sqlite3 *sql = open_memory();
    EngErr err = {0};
    if (eng_study_register(sql, "memory", &err)) fail_msg("%s", err.text);
    static const struct {
        const char *arm, *label;
    } list[] = {{"{\"rung\":\"R0c\",\"budget\":20,\"text\":\"training\",\"streams\":-1,\"lr\":-1}",
                 "R0c, 20 tokens per parameter"},
                {"{\"rung\":\"tiny\",\"budget\":0.001,\"text\":\"synthetic\",\"streams\":4}",
                 "tiny, synthetic text, 0.001 tokens per parameter, 4 streams"},
                {"{\"lr\":0.008,\"bias_step\":-1}", "lr = 0.008"},
                {"{\"engram_at\":\"0+2\",\"gate\":\"off\"}", "engram_at = 0+2, gate = off"},
                {"{}", ""}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char text[512];
        snprintf(text, sizeof text, "SELECT arm_label('%s') = '%s'", list[i].arm, list[i].label);
        if (ask(sql, text) != 1) fail_msg("%s", text);
    }
    sqlite3_close(sql);
}

/* The rung's bias step as -1 and as its number: one run, two arms. */
static void test_spellings(void **state)
{
    (void)state;
    sqlite3 *sql = open_memory();
    EngErr err = {0};
    run_sql(sql, "INSERT INTO points (point_key, experiment, kind, axes_json)"
                 " SELECT 'p' || value, 'train', 'measured',"
                 " json_object('model_seed', 1, 'bias_step', iif(value = 2, 0.01, -1), 'rho',"
                 " value) FROM json_each('[1,2,3]');"
                 "INSERT INTO block_points SELECT 'b', point_key, 'measured', NULL FROM points;"
                 "INSERT INTO sample_values SELECT 'b', 'p' || p.value, m.value,"
                 " iif(p.value = 3 AND m.value = 'cpu_s', 160.5, 160) FROM json_each('[1,2,3]') p,"
                 " json_each('[\"loss\",\"cpu_s\",\"p_total\"]') m");
    if (eng_study_register(sql, "memory", &err)) fail_msg("%s", err.text);
    near(ask(sql, "SELECT count(*) FROM v_train"), 3);
    near(ask(sql, "SELECT count(*) FROM v_train WHERE again"), 1);
    near(ask(sql, "SELECT sum(again) FROM v_train WHERE point_key <> 'p2'"), 0);
    near(ask(sql, "SELECT count(*) FROM v_train WHERE note = ''"), 3);
    sqlite3_close(sql);
}

static void test_published(void **state)
{
    (void)state;
    sqlite3 *sql = open_memory();
    EngErr err = {0};
    char folder[] = "/tmp/test_study_XXXXXX", path[64];
    if (eng_study_published(sql, ENG_SOURCE_DIR "/reports/ablation", &err))
        fail_msg("%s", err.text);
    near(ask(sql, "SELECT count(*) FROM published WHERE figure = 'fig3_left'"), 20);
    near(
        ask(sql,
            "SELECT y FROM published WHERE figure = 'fig3_left' AND series = 'C=6e20' AND x = 100"),
        1.7248);
    near(ask(sql, "SELECT y FROM published WHERE figure = 'fig5' AND x = 'w/o gating'"), 1.7724);
    assert_non_null(mkdtemp(folder));
    if (eng_study_published(sql, folder, &err)) fail_msg("%s", err.text);
    near(ask(sql, "SELECT count(*) FROM published"), 0);
    snprintf(path, sizeof path, "%s/published.csv", folder);
    const char *text = "# a comment\nfig,a,1,2,x, y\nfig,a,1,two,\n";
    assert_int_equal(eng_file_write(path, text, strlen(text), &err), ENG_OK);
    assert_int_equal(eng_study_published(sql, folder, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "published.csv: line 3"));
    near(ask(sql, "SELECT count(*) FROM published WHERE note = 'x, y'"), 1);
    unlink(path);
    rmdir(folder);
    sqlite3_close(sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_texts_and_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
