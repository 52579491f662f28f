/* The report roofs on invented numbers: what its tables say of them. */
#include "tests/unit/reports/fixture.h"

#include "base/file.h"
#include "base/mem.h"

static char g_dir[64] = "/tmp/test_roofs_XXXXXX", g_db[96];

/* Text of a column of the first row that a figure of the report has of a run. */
static void ask_figure(const char *name, const char *run, const char *column, char out[64])
{
    char path[512], *text = NULL;
    sqlite3 *sql;
    sqlite3_stmt *statement;
    EngErr err = {0};
    snprintf(path, sizeof path, "%s/reports/roofs/%s.sql", ENG_SOURCE_DIR, name);
    if (eng_file_read(path, &text, NULL, &err)) fail_msg("%s", err.text);
    assert_int_equal(sqlite3_open(g_db, &sql), SQLITE_OK);
    if (sqlite3_prepare_v2(sql, text, -1, &statement, NULL)) fail_msg("%s", sqlite3_errmsg(sql));
    sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, ":run"), run, -1, NULL);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    out[0] = 0;
    for (int i = 0; i < sqlite3_column_count(statement); i++)
        if (!strcmp(sqlite3_column_name(statement, i), column))
            snprintf(out, 64, "%s", (const char *)sqlite3_column_text(statement, i));
    sqlite3_finalize(statement);
    sqlite3_close(sql);
    eng_free(text);
}

static void ladder(Fixture *f, const char *access, double ns, double traced_ns)
{
    fixture_point(f, "ladder", "", false, -1, NULL,
                  "\"access\":\"%s\",\"bytes\":1073741824,\"line\":\"row\",\"pages\":\"2m\","
                  "\"threads\":1,\"tokens\":0,\"out\":\"\"",
                  access);
    fixture_metric(f, "ladder", "ns_per_load", "ns", "cpu", ns, 0, 0);
    for (int i = 0; i < 20; i++)
        fixture_sql(f,
                    "INSERT INTO samples VALUES ('%q', '%q', 0, %d, 0, 1, 1000, 1000, 1);"
                    "INSERT INTO sample_values VALUES ('%q', '%q', 0, %d, 'ns_per_load', %f)",
                    f->block, f->key, 100 + i, f->block, f->key, 100 + i, traced_ns);
}

/* A traced pass is no timing: its samples are not among the pairs. */
static void test_honesty(void **state)
{
    (void)state;
    Fixture f;
    char text[64];
    assert_non_null(mkdtemp(g_dir));
    snprintf(g_db, sizeof g_db, "%s/roofs.db", g_dir);
    fixture_open(&f, g_db);
    fixture_run(&f, "run1", "2026-01-01T00:00:00Z");
    fixture_block(&f, "ladder");
    ladder(&f, "chains8", 9, 3);
    ladder(&f, "read", 10, 30);
    fixture_close(&f);
    ask_figure("honesty", "run1", "read, % of chains", text);
    assert_string_equal(text, "90");
    ask_figure("honesty", "run1", "read, ns/line", text);
    assert_string_equal(text, "10.00");
    unlink(g_db);
    rmdir(g_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_honesty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
