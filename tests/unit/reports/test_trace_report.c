/* The report `trace`: from a trace file attached to an invented database, and what happens when the
 * file is gone or is none. */
#include "tests/unit/reports/fixture.h"

#include "base/digest.h"
#include "base/file.h"
#include "base/mem.h"
#include "reports/render.h"

static char g_dir[64];

static char *in_dir(const char *name)
{
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 256, "%s/%s", g_dir, name);
    return path;
}

/* Of a file, "x" without one. */
static const char *digest_of(const char *path)
{
    static char hex[ENG_DIGEST_HEX];
    EngMapping map;
    EngErr err;
    snprintf(hex, sizeof hex, "x");
    if (eng_file_map(path, &map, &err)) return hex;
    if (eng_digest(map.data, map.bytes, hex, &err)) fail_msg("%s", err.text);
    eng_file_unmap(&map);
    return hex;
}

/* A run with one traced point; its trace is the script's steps.sqlite under the given name. */
static void make_database(const char *db, const char *trace)
{
    Fixture f;
    fixture_open(&f, db);
    f.samples = 8;
    fixture_run(&f, "33330000aaaa", "2026-01-03T00:00:00Z");
    fixture_gate(&f);
    fixture_block(&f, "step");
    fixture_point(&f, "step", "portable", false, 0, NULL, "\"tokens\":16");
    if (trace)
        fixture_sql(&f, "INSERT INTO artifacts VALUES ('a', '%q', '%q', 'trace', '%q', 1, '%q')",
                    f.block, f.key, trace, digest_of(in_dir(trace)));
    fixture_close(&f);
}

/* Runs SQL on a database of a test. */
static void change(const char *db, const char *sql)
{
    sqlite3 *handle;
    char *why = NULL;
    assert_int_equal(sqlite3_open(db, &handle), SQLITE_OK);
    if (sqlite3_exec(handle, sql, NULL, NULL, &why)) fail_msg("%s: %s", sql, why);
    sqlite3_close(handle);
}

static int set_up(void **state)
{
    (void)state;
    char command[256];
    snprintf(g_dir, sizeof g_dir, "/tmp/test_trace_report_XXXXXX");
    if (!mkdtemp(g_dir)) return -1;
    snprintf(command, sizeof command,
             "python3 " ENG_SOURCE_DIR "/tests/oracle/nsys_fixtures.py %s/traces", g_dir);
    return system(command);
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", g_dir);
    return system(command);
}

static char *render(const char *db, const char *out, int drawn, int empty)
{
    EngReportRequest request = {"trace", db, "latest", out, ENG_SOURCE_DIR "/reports"};
    EngReportDone done;
    EngErr err = {0};
    char page[256], *text = NULL;
    if (eng_report_render(&request, &done, &err)) fail_msg("%s", err.text);
    assert_int_equal(done.n_figures, drawn);
    assert_int_equal(done.n_empty, empty);
    snprintf(page, sizeof page, "%s/index.html", out);
    if (eng_file_read(page, &text, NULL, &err)) fail_msg("%s", err.text);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("the page does not say '%s'", part);
}

static void test_traced(void **state)
{
    (void)state;
    make_database(in_dir("full.db"), "traces/steps.sqlite"); /* paths start at the database */
    char *page = render(in_dir("full.db"), in_dir("full page"), 7, 0);
    assert_has(page,
               "Step 3 takes 500 us. Layer 1: rows are read for 100 us, the consumer waits 20 us");
    assert_has(page, "compute: 47 gaps, 6 ms in all, the longest 0.592 ms");
    assert_has(page, "layer 14: 44.8 % on average, 40.0 to 49.5 %; 64 marks in 8 steps");
    assert_has(page, "<td class=\"number\">0.750</td>"); /* hidden, layer 1 */
    assert_has(page, "holds no imported trace");
    assert_has(page, "full page/traces.sql&quot;&#39; &#39;.read &quot;");
    eng_free(page);
    /* What the page says to type gives the rows that were drawn; sqlite3 prints reals longer. */
    char command[1024];
    snprintf(command, sizeof command,
             "command -v sqlite3 >/dev/null || exit 0; sqlite3 -readonly %s '.param set :run "
             "\"'\"'33330000aaaa'\"'\"' '.mode tabs' '.headers on' '.read \"%s/traces.sql\"' "
             "'.read \"%s/gaps.sql\"' | cut -f1,2 | bash -c 'diff - <(cut -f1,2 \"%s/gaps.dat\")'",
             in_dir("full.db"), in_dir("full page"), in_dir("full page"), in_dir("full page"));
    assert_int_equal(system(command), 0);
}

static void test_without(void **state)
{
    (void)state;
    static const char *const traces[] = {NULL, "traces/nowhere.sqlite",
                                         "traces/not_an_export.sqlite"};
    for (int i = 0; i < 3; i++) {
        char db[32], out[32];
        snprintf(db, sizeof db, "without%d.db", i);
        snprintf(out, sizeof out, "without%d", i);
        make_database(in_dir(db), traces[i]);
        char *page = render(in_dir(db), in_dir(out), 2, 5); /* gates are in the database */
        assert_has(page, "No point of this run was traced");
        assert_null(strstr(page, "traces.sql"));
        eng_free(page);
    }
}

/* A file that lies where a recorded one should, as after a merge. */
static void test_other_file(void **state)
{
    (void)state;
    make_database(in_dir("other.db"), "traces/steps.sqlite");
    change(in_dir("other.db"), "UPDATE artifacts SET sha256 = '00'");
    char *page = render(in_dir("other.db"), in_dir("other"), 2, 5);
    assert_has(page, "No point of this run was traced");
    eng_free(page);
}

/* Every gate in the last bin, of two layers that are two points: both are drawn. */
static void test_saturated(void **state)
{
    (void)state;
    make_database(in_dir("saturated.db"), NULL);
    change(
        in_dir("saturated.db"),
        "DELETE FROM histograms WHERE point_key <> (SELECT min(point_key) FROM histograms) AND"
        " point_key <> (SELECT max(point_key) FROM histograms);"
        "UPDATE points SET axes_json = json_set((SELECT axes_json FROM points JOIN histograms"
        " USING (point_key) LIMIT 1), '$.layer', rowid) WHERE point_key IN (SELECT point_key FROM"
        " histograms);"
        "UPDATE histograms SET counts_json = json_array(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,"
        " 0, 0, 0, 0, 0, 9), layer = iif(point_key = (SELECT min(point_key) FROM histograms), 1,"
        " 14)");
    char *page = render(in_dir("saturated.db"), in_dir("saturated"), 2, 5);
    assert_has(page, "layer 1 100.0 to 100.0 % (100.0 to 100.0 %); layer 14 100.0 to 100.0 %");
    assert_has(page, "Mean gate: layer 1 0.975, layer 14 0.975");
    eng_free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traced), cmocka_unit_test(test_without),
        cmocka_unit_test(test_other_file), cmocka_unit_test(test_saturated)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
