/* Reports: the quickstart report from an invented database, sentences that follow the data, figures
 * without data, and every error a user can meet. */
#include "tests/unit/reports/fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/mem.h"
#include "reports/catalog.h"
#include "reports/page.h"
#include "reports/render.h"

static const char g_reports[] = ENG_SOURCE_DIR "/reports";
static const char *const g_figures[] = {"gather_rows", "latency", "chain_share",
                                        "reuse",       "collide", "gate"};
static char g_dir[64]; /* temporary; removed at the end */

static char *in_dir(const char *fmt, ...)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    int n = snprintf(path, 512, "%s/", g_dir);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path + n, 512 - (size_t)n, fmt, ap);
    va_end(ap);
    return path;
}

/* Whole file as text of the caller (eng_free); fails the test when it is missing. */
static char *slurp(const char *path)
{
    char *text = NULL;
    EngErr err = {0};
    if (eng_file_read(path, &text, NULL, &err)) fail_msg("%s", err.text);
    return text;
}

static void spit(const char *path, const char *text)
{
    EngErr err = {0};
    if (eng_file_write(path, text, strlen(text), &err)) fail_msg("%s", err.text);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("'%s' is not in '%.300s...'", part, text);
}

static EngStatus render(const char *name, const char *db, const char *run, const char *out,
                        const char *reports, EngReportDone *done, EngErr *err)
{
    EngReportRequest request = {name, db, run, out, reports};
    *err = (EngErr){0};
    return eng_report_render(&request, done, err);
}

static void render_ok(const char *db, const char *run, const char *out, EngReportDone *done)
{
    EngErr err;
    if (render("quickstart", db, run, out, g_reports, done, &err)) fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(g_dir, sizeof g_dir, "/tmp/test_render_XXXXXX");
    if (!mkdtemp(g_dir)) return -1;
    Fixture f;
    fixture_open(&f, in_dir("full.db"));
    fixture_quickstart(&f, "11110000aaaa", "2026-01-01T00:00:00Z", 1, 0);
    fixture_close(&f);
    fixture_open(&f, in_dir("synthetic.db"));
    fixture_run(&f, "22220000aaaa", "2026-01-02T00:00:00Z");
    fixture_gather(&f, 3, 9);
    fixture_close(&f);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    const char *keep = getenv("ENG_TEST_KEEP");
    char *argv[] = {"rm", "-rf", g_dir, NULL};
    if (keep) return 0;
    pid_t pid = fork();
    if (!pid) execvp(argv[0], argv);
    return pid < 0;
}

/* Elements opened and closed in order; void elements aside. Good enough to catch a broken template.
 */
static void assert_well_formed(const char *html)
{
    static const char *const empty[] = {"meta", "img", "br", "!DOCTYPE", "hr"};
    char stack[64][16];
    int depth = 0;
    for (const char *at = html; (at = strchr(at, '<')); at++) {
        char name[16] = "";
        bool closing = at[1] == '/';
        sscanf(at + 1 + closing, "%15[A-Za-z0-9!]", name);
        assert_true(name[0] != 0);
        bool is_empty = false;
        for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
            is_empty = is_empty || !strcmp(name, empty[i]);
        if (is_empty) continue;
        if (!closing) {
            assert_true(depth < 64);
            strcpy(stack[depth++], name);
            continue;
        }
        if (!depth || strcmp(stack[depth - 1], name))
            fail_msg("</%s> closes <%s>", name, depth ? stack[depth - 1] : "");
        depth--;
    }
    assert_int_equal(depth, 0);
}

static void test_quickstart_is_whole(void **state)
{
    (void)state;
    EngReportDone done;
    const char *out = in_dir("a/b/report");
    render_ok(in_dir("full.db"), "latest", out, &done);
    assert_int_equal(done.n_figures, 6);
    assert_int_equal(done.n_empty, 0);
    assert_string_equal(done.run_id, "11110000aaaa");
    char *html = slurp(in_dir("a/b/report/index.html"));
    assert_well_formed(html);
    assert_null(strstr(html, "{{"));
    /* Text of the database stays text. */
    assert_has(html, "Invented CPU &lt;3 GHz&gt; &amp; co");
    assert_null(strstr(html, "<3 GHz>"));
    assert_has(html, "no avx512f");
    assert_has(html, "1 skipped");
    for (size_t i = 0; i < sizeof g_figures / sizeof *g_figures; i++) {
        const char *suffixes[] = {".dat", ".csv", ".gp", ".sql", ".svg", ".png"};
        char image[64];
        for (int s = 0; s < 6; s++) {
            struct stat st;
            assert_int_equal(stat(in_dir("a/b/report/%s%s", g_figures[i], suffixes[s]), &st), 0);
            assert_true(st.st_size > 100);
        }
        snprintf(image, sizeof image, "src=\"%s.svg\"", g_figures[i]);
        assert_has(html, image);
    }
    /* A stream digest and the run stand under a figure. */
    assert_has(html, "0000000000000000000000000000000000000000000000000000000000000003");
    assert_has(html, "--run=11110000aaaa");
    /* sqlite3 is named where it can run the query: the knee is a view of reports alone. */
    assert_null(strstr(html, "/gather_rows.sql&quot;"));
    assert_has(html, "&#39;.read &quot;");
    assert_has(html, "/reuse.sql&quot;");
    eng_free(html);
}

static void test_axes_have_units(void **state)
{
    (void)state;
    static const char *const labels[][3] = {
        {"gather_rows", "rows per head (rows)", "gather bandwidth (GB/s"},
        {"latency", "tokens in the batch (tokens)", "time per token (µs)"},
        {"chain_share", "tokens in the batch (tokens)", "wall time (%)"},
        {"reuse", "tokens in the batch (tokens)", "distinct rows (% of rows looked up)"},
        {"collide", "heads per order K (heads)", "n-grams per used row (n-grams)"},
        {"gate", "gate (no unit)", "share of gates in a bin (%)"},
    };
    EngReportDone done;
    render_ok(in_dir("full.db"), "1111", in_dir("axes"), &done);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char *svg = slurp(in_dir("axes/%s.svg", labels[i][0]));
        for (int k = 1; k < 3; k++) {
            /* The terminal writes apostrophes and the like as entities; these labels have none. */
            if (!strstr(svg, labels[i][k])) fail_msg("%s.svg: no '%s'", labels[i][0], labels[i][k]);
        }
        assert_has(svg, "run 11110000");
        eng_free(svg);
    }
    char *gate = slurp(in_dir("axes/gate.svg"));
    assert_has(gate, "synthetic hidden states, alignment a");
    eng_free(gate);
}

/* The data file is what the figure is drawn from: it must be redrawable without the database. */
static void test_redraws_without_database(void **state)
{
    (void)state;
    EngReportDone done;
    render_ok(in_dir("full.db"), "latest", in_dir("redraw"), &done);
    char *before = slurp(in_dir("redraw/collide.svg"));
    assert_int_equal(unlink(in_dir("redraw/collide.svg")), 0);
    pid_t pid = fork();
    if (!pid) {
        if (chdir(in_dir("redraw"))) _exit(9);
        execlp("gnuplot", "gnuplot", "collide.gp", NULL);
        _exit(9);
    }
    char *after = slurp(in_dir("redraw/collide.gp"));
    assert_has(after, "load 'style.gp'");
    eng_free(after);
    int code = -1;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
    after = slurp(in_dir("redraw/collide.svg"));
    assert_string_equal(before, after);
    eng_free(before);
    eng_free(after);
}

/* The caption's sentence of a figure on a page. */
static void copy_sentence(const char *html, const char *figure, char *sentence, size_t size)
{
    char id[64];
    snprintf(id, sizeof id, "<figure id=\"%s\">", figure);
    const char *at = strstr(html, id);
    if (at) at = strstr(at, "</strong>");
    const char *end = at ? strstr(at, "</p>") : NULL;
    if (!end) fail_msg("no caption of %s", figure);
    snprintf(sentence, size, "%.*s", (int)(end - at), at);
}

static void test_sentences_follow_data(void **state)
{
    (void)state;
    EngReportDone done;
    EngErr err;
    Fixture f;
    render_ok(in_dir("full.db"), "latest", in_dir("first"), &done);
    fixture_open(&f, in_dir("twice.db"));
    fixture_quickstart(&f, "33330000aaaa", "2026-01-01T00:00:00Z", 2, 0);
    fixture_sql(
        &f, "UPDATE sample_values SET value = 5 WHERE metric = 'heads_shared_max' AND value > 2");
    fixture_sql(&f, "UPDATE sample_values SET value = 0.9 WHERE metric = 'distinct_4'");
    fixture_sql(&f, "UPDATE sample_values SET value = value * 3 WHERE metric IN ('ns_per_token', "
                    "'us_per_token')");
    fixture_sql(&f, "UPDATE sample_values SET value = value * 4 WHERE metric = 'share_hash'");
    fixture_sql(&f, "UPDATE sample_values SET value = 0.123 WHERE metric = 'sat_05'");
    fixture_close(&f);
    if (render("quickstart", in_dir("twice.db"), "latest", in_dir("second"), g_reports, &done,
               &err))
        fail_msg("%s", err.text);
    char *first = slurp(in_dir("first/index.html")), *second = slurp(in_dir("second/index.html"));
    assert_has(first, "no point breaks the bound");
    assert_null(strstr(second, "no point breaks the bound"));
    assert_has(second, "points break the bound");
    assert_has(second, "12.3 %");
    for (size_t i = 0; i < sizeof g_figures / sizeof *g_figures; i++) {
        char a[2000], b[2000];
        copy_sentence(first, g_figures[i], a, sizeof a);
        copy_sentence(second, g_figures[i], b, sizeof b);
        assert_true(strlen(a) > 60);
        assert_string_not_equal(a, b);
    }
    eng_free(first);
    eng_free(second);
}

static void test_sentence_numbers_are_the_data(void **state)
{
    (void)state;
    EngReportDone done;
    Fixture f;
    fixture_open(&f, in_dir("tiny.db"));
    f.samples = 1;
    fixture_run(&f, "44440000aaaa", "2026-01-01T00:00:00Z");
    for (int i = 0; i < 2; i++) {
        fixture_block(&f, "chain");
        fixture_point(&f, "chain", "", false, 0, NULL, "\"tokens\":%d,\"corpus\":\"prose\"",
                      i ? 64 : 1);
        fixture_metric(&f, "chain", "share_hash", "share", "none", 0.125, 0, 0);
        fixture_metric(&f, "chain", "share_gather", "share", "none", i ? 0.5 : 0.125, 0, 0);
        fixture_metric(&f, "chain", "share_project", "share", "none", i ? 0.25 : 0.625, 0, 0);
        fixture_metric(&f, "chain", "share_gate", "share", "none", 0.125, 0, 0);
        fixture_metric(&f, "chain", "wall_us", "us", "wall", 8000, 0, 0);
    }
    fixture_close(&f);
    render_ok(in_dir("tiny.db"), "latest", in_dir("tiny"), &done);
    assert_int_equal(done.n_figures, 1);
    assert_int_equal(done.n_empty, 5);
    char *html = slurp(in_dir("tiny/index.html")), *dat = slurp(in_dir("tiny/chain_share.dat"));
    assert_has(
        html,
        "At 1 token project takes 62.5 % of the chain&#39;s wall time, at 64 tokens "
        "gather takes 50 % (8.00 ms and 8.00 ms "
        "for the whole chain, variant none); hashing and gathering together take 25 to 62.5 %.");
    assert_has(
        dat,
        "tokens\thash\tgather\tproject\tgate\twall_us\tvariant\tcorpus\tpoint_key\n1\t12.5\t12."
        "5\t62.5\t12.5\t8000\t\tprose\t");
    eng_free(html);
    eng_free(dat);
}

static void test_figures_without_data(void **state)
{
    (void)state;
    EngReportDone done;
    const char *out = in_dir("partial");
    render_ok(in_dir("full.db"), "latest", out, &done);
    assert_true(eng_file_exists(in_dir("partial/reuse.png")));
    render_ok(in_dir("synthetic.db"), "latest", out, &done);
    assert_int_equal(done.n_figures, 1);
    assert_int_equal(done.n_empty, 5);
    char *html = slurp(in_dir("partial/index.html"));
    assert_well_formed(html);
    assert_has(html, "Collisions against heads K:</strong> no data in this run.");
    /* One number of tokens makes no line over them. */
    assert_has(html, "</strong> no operation of this run was measured at two numbers of tokens.");
    /* No picture of the other run stays behind. */
    assert_false(eng_file_exists(in_dir("partial/reuse.png")));
    assert_false(eng_file_exists(in_dir("partial/reuse.dat")));
    eng_free(html);
}

/* One point of each experiment, one sample, no roof, no cache size: axes of one value, no
 * intervals. */
static void test_sparse_data(void **state)
{
    (void)state;
    EngReportDone done;
    Fixture f;
    fixture_open(&f, in_dir("sparse.db"));
    f.samples = 1;
    fixture_sql(&f, "UPDATE machines SET cache_bytes = NULL");
    fixture_quickstart(&f, "55550000aaaa", "2026-01-01T00:00:00Z", 1, 0);
    fixture_sql(&f, "DELETE FROM roofs");
    fixture_sql(&f,
                "DELETE FROM run_points WHERE point_key NOT IN (SELECT min(point_key) FROM points "
                "WHERE NOT is_roof AND (experiment <> 'gate' OR axes_json LIKE '%%formula%%') "
                "GROUP BY experiment)");
    fixture_close(&f);
    render_ok(in_dir("sparse.db"), "latest", in_dir("sparse"), &done);
    assert_int_equal(done.n_figures, 5); /* no line over tokens from one number of them */
    char *html = slurp(in_dir("sparse/index.html")), *dat = slurp(in_dir("sparse/gather_rows.dat"));
    assert_well_formed(html);
    assert_null(strstr(html, "last-level cache is"));
    assert_null(strstr(html, "of the roof"));
    assert_has(dat, "NaN");
    eng_free(html);
    eng_free(dat);
}

static void test_synthetic_is_labelled(void **state)
{
    (void)state;
    EngReportDone done;
    render_ok(in_dir("synthetic.db"), "latest", in_dir("synthetic"), &done);
    char *html = slurp(in_dir("synthetic/index.html")),
         *svg = slurp(in_dir("synthetic/gather_rows.svg"));
    assert_has(html, "synthetic token stream");
    assert_has(svg, "synthetic token stream");
    eng_free(html);
    eng_free(svg);
    render_ok(in_dir("full.db"), "latest", in_dir("real"), &done);
    svg = slurp(in_dir("real/gather_rows.svg"));
    assert_null(strstr(svg, "synthetic token stream"));
    eng_free(svg);
}

static void test_bad_requests(void **state)
{
    (void)state;
    EngReportDone done;
    EngErr err;
    char *db = in_dir("full.db");
    assert_int_equal(render("quickstrat", db, "latest", in_dir("x"), g_reports, &done, &err),
                     ENG_USAGE);
    assert_has(err.text, "did you mean quickstart?");
    assert_int_equal(render("../reports", db, "latest", in_dir("x"), g_reports, &done, &err),
                     ENG_USAGE);
    assert_int_equal(render("quickstart", db, "ffff", in_dir("x"), g_reports, &done, &err),
                     ENG_NOT_FOUND);
    assert_has(err.text, "ffff");
    assert_int_equal(
        render("quickstart", in_dir("none.db"), "latest", in_dir("x"), g_reports, &done, &err),
        ENG_BAD_DATA);
    assert_has(err.text, "none.db");
    assert_false(eng_file_exists(in_dir("none.db")));
    spit(in_dir("text.db"), "this is no database, whatever its name says; it is long enough to be "
                            "read as a header of one.....");
    assert_int_equal(
        render("quickstart", in_dir("text.db"), "latest", in_dir("x"), g_reports, &done, &err),
        ENG_BAD_DATA);
    assert_has(err.text, "text.db");
    Fixture f;
    fixture_open(&f, in_dir("norun.db"));
    fixture_close(&f);
    assert_int_equal(
        render("quickstart", in_dir("norun.db"), "latest", in_dir("x"), g_reports, &done, &err),
        ENG_NOT_FOUND);
    assert_has(err.text, "no run");
    assert_int_equal(
        render("quickstart", db, "latest", in_dir("x"), in_dir("nowhere"), &done, &err), ENG_IO);
    assert_has(err.text, "ENG_REPORTS_DIR");
    assert_false(eng_file_exists(in_dir("x/index.html")));
}

static void test_unwritable_and_full(void **state)
{
    (void)state;
    EngReportDone done;
    EngErr err;
    char *db = in_dir("full.db");
    spit(in_dir("file"), "x");
    EngStatus status =
        render("quickstart", db, "latest", in_dir("file/out"), g_reports, &done, &err);
    assert_int_equal(status, ENG_IO);
    assert_int_equal(eng_status_exit_code(status), 7);
    assert_has(err.text, "/file");
    eng_file_fail_after(20000);
    status = render("quickstart", db, "latest", in_dir("full"), g_reports, &done, &err);
    eng_file_fail_after(-1);
    assert_int_equal(status, ENG_IO);
    assert_has(err.text, "No space left");
    assert_false(eng_file_exists(in_dir("full/index.html")));
}

static void test_gnuplot_missing_or_failing(void **state)
{
    (void)state;
    EngReportDone done;
    EngErr err;
    char *db = in_dir("synthetic.db");
    setenv("ENG_GNUPLOT", "gnuplot-that-is-not-there", 1);
    assert_int_equal(render("quickstart", db, "latest", in_dir("g"), g_reports, &done, &err),
                     ENG_IO);
    assert_has(err.text, "gnuplot-that-is-not-there: not found");
    assert_has(err.text, "gnuplot-nox");
    setenv("ENG_GNUPLOT", "true", 1); /* ends well and draws nothing, as on a full disk */
    assert_int_equal(render("quickstart", db, "latest", in_dir("g"), g_reports, &done, &err),
                     ENG_IO);
    assert_has(err.text, "gnuplot failed");
    unsetenv("ENG_GNUPLOT");
    assert_false(eng_file_exists(in_dir("g/index.html")));
}

/* A report of the user's own, with one mistake at a time. */
static void own_report(const char *page, const char *sql, const char *say, const char *gp)
{
    EngErr err;
    char *run = slurp(ENG_SOURCE_DIR "/reports/run.sql"),
         *style = slurp(ENG_SOURCE_DIR "/reports/style.gp");
    assert_int_equal(eng_make_dirs(in_dir("own/mine"), &err), ENG_OK);
    spit(in_dir("own/run.sql"), run);
    spit(in_dir("own/style.gp"), style);
    spit(in_dir("own/frame.html.in"), "<html>{{body}}</html>");
    spit(in_dir("own/mine/page.md.in"), page);
    spit(in_dir("own/mine/fig.sql"), sql);
    spit(in_dir("own/mine/fig.say.sql"), say);
    spit(in_dir("own/mine/fig.gp"), gp);
    eng_free(run);
    eng_free(style);
}

static const char g_good_sql[] =
    "-- title: Keys\nSELECT point_key, 1 AS x FROM run_points WHERE run_id = :run LIMIT 3";
static const char g_good_say[] = "SELECT count(*) || ' <rows>' FROM figure";
static const char g_good_gp[] = "plot data using 'x' with points";

static void expect_own(EngStatus wanted, const char *words)
{
    EngReportDone done;
    EngErr err;
    EngStatus status = render("mine", in_dir("synthetic.db"), "latest", in_dir("mine"),
                              in_dir("own"), &done, &err);
    if (status != wanted) fail_msg("status %d, not %d: %s", (int)status, (int)wanted, err.text);
    if (words) assert_has(err.text, words);
    assert_null(strchr(err.text, '\n'));
}

static void test_own_report(void **state)
{
    (void)state;
    own_report("# Mine\n\n*{{sentence fig}}* in `{{value run_id}}`\n\n{{figure fig}}\n", g_good_sql,
               g_good_say, g_good_gp);
    expect_own(ENG_OK, NULL);
    char *html = slurp(in_dir("mine/index.html"));
    assert_has(html, "<em>3 &lt;rows&gt;</em> in <code>22220000aaaa</code>");
    assert_null(strstr(html, "<p><figure"));
    eng_free(html);
    EngReportNames names;
    EngErr err;
    assert_int_equal(eng_reports_list(in_dir("own"), &names, &err), ENG_OK);
    assert_int_equal(names.n, 1);
    assert_string_equal(names.items[0].title, "Mine");

    /* Views that its queries share. */
    spit(in_dir("own/mine/views.sql"), "CREATE TEMP VIEW two AS SELECT 2 AS x;");
    own_report("{{figure fig}} {{sentence fig}}",
               "-- title: T\nSELECT point_key, x FROM run_points, two WHERE run_id = :run",
               "SELECT 'x is ' || max(x) FROM figure", g_good_gp);
    expect_own(ENG_OK, NULL);
    html = slurp(in_dir("mine/index.html"));
    assert_has(html, "x is 2");
    eng_free(html);
    spit(in_dir("own/mine/views.sql"), "CREATE TEMP VIEW two AS SELECT 2 AS x FRM;");
    expect_own(ENG_BAD_DATA, "mine/views.sql: ");
    remove(in_dir("own/mine/views.sql"));

    own_report("{{figure fgi}}", g_good_sql, g_good_say, g_good_gp);
    expect_own(ENG_BAD_DATA, "{{figure fgi}}");
    own_report("{{value run_ids}}", g_good_sql, g_good_say, g_good_gp);
    expect_own(ENG_BAD_DATA, "did you mean run_id?");
    own_report("{{figure}", g_good_sql, g_good_say, g_good_gp);
    expect_own(ENG_BAD_DATA, "page.md.in: not a placeholder");
    own_report("{{figure fig}}", "SELECT point_key FROM run_points", g_good_say, g_good_gp);
    expect_own(ENG_BAD_DATA, "-- title:");
    own_report("{{figure fig}}", "-- title: T\nSELECT 1 AS x", g_good_say, g_good_gp);
    expect_own(ENG_BAD_DATA, "point_key");
    own_report("{{figure fig}}", "-- title: T\nSELECT point_keys FROM run_points", g_good_say,
               g_good_gp);
    expect_own(ENG_BAD_DATA, "fig.sql: no such column: point_keys");
    own_report("{{figure fig}}", "-- title: T\nSELECT point_key FROM run_points; SELECT 1",
               g_good_say, g_good_gp);
    expect_own(ENG_BAD_DATA, "more than one statement");
    own_report("{{figure fig}}", g_good_sql, "SELECT 1, 2", g_good_gp);
    expect_own(ENG_BAD_DATA, "fig.say.sql");
    own_report("{{figure fig}}", g_good_sql, "DELETE FROM main.samples", g_good_gp);
    expect_own(ENG_BAD_DATA, "readonly");
    own_report("{{figure fig}}", g_good_sql, g_good_say, "plot data using 'y' with nonsense");
    expect_own(ENG_IO, "nonsense");
    own_report("{{figure fig}}", g_good_sql, g_good_say, "# size: 9 9\nplot 1");
    expect_own(ENG_BAD_DATA, "size '9 9'");
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    EngReportDone done;
    EngErr err;
    own_report("# Mine\n\n{{figure fig}}\n", g_good_sql, g_good_say, g_good_gp);
    /* Its pictures are only their last bytes: quick enough to be run for every allocation. */
    spit(in_dir("quick_gnuplot"), "#!/bin/sh\neval \"$3\"\n"
                                  "[ $target = svg ] && printf '</svg>' >$out\n"
                                  "[ $target = svg ] || printf 'IEND\\256\\102\\140\\202' >$out\n");
    assert_int_equal(chmod(in_dir("quick_gnuplot"), 0755), 0);
    setenv("ENG_GNUPLOT", in_dir("quick_gnuplot"), 1);
    expect_own(ENG_OK, NULL);
    uint64_t live = eng_mem_live_blocks();
    eng_mem_fail_at(0);
    expect_own(ENG_OK, NULL);
    uint64_t total = eng_mem_fail_at(0);
    assert_true(total > 20);
    for (uint64_t n = 1; n <= total; n++) {
        eng_mem_fail_at(n);
        EngStatus status = render("mine", in_dir("synthetic.db"), "latest", in_dir("mine"),
                                  in_dir("own"), &done, &err);
        eng_mem_fail_at(0);
        if (!status) fail_msg("allocation %d of %d may fail unnoticed", (int)n, (int)total);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    unsetenv("ENG_GNUPLOT");
}

static void test_page_parts(void **state)
{
    (void)state;
    EngStr out = {0};
    eng_page_escape(&out, "a<b>&\"c'");
    assert_string_equal(out.text, "a&lt;b&gt;&amp;&quot;c&#39;");
    eng_str_free(&out);
    char value[16];
    assert_true(eng_page_directive("x\n-- title: A  B\r\n", "--", "title", value, sizeof value));
    assert_string_equal(value, "A  B");
    assert_false(eng_page_directive("-- titles: A", "--", "title", value, sizeof value));
    const char *names[] = {"n", "word"}, *cells[] = {"1", "x", NULL, "<"};
    eng_page_table(&out, &(EngCells){2, 2, names, cells});
    assert_has(out.text, "<th class=\"number\">n</th><th>word</th>");
    assert_has(out.text, "<td class=\"number\">-</td><td>&lt;</td>");
    eng_str_free(&out);
    eng_page_data_uri(&out, "text/csv", "a b\n<\"#\xc3\xa9%");
    assert_string_equal(out.text, "data:text/csv;charset=utf-8,a b%0A%3C%22%23%C3%A9%25");
    eng_str_free(&out);
    cells[1] = "x,\"y\"";
    eng_cells_csv(&(EngCells){2, 2, names, cells}, &out);
    assert_string_equal(out.text, "n,word\r\n1,\"x,\"\"y\"\"\"\r\n,<\r\n");
    eng_str_free(&out);
}

/* A page that holds its pictures and CSV refers to no file beside it. */
static void test_inline_files(void **state)
{
    (void)state;
    own_report("# Mine\n\n[files]: inline\n\n{{figure fig}}\n", g_good_sql, g_good_say, g_good_gp);
    expect_own(ENG_OK, NULL);
    char *html = slurp(in_dir("mine/index.html"));
    assert_has(html, "<img src=\"data:image/svg+xml;charset=utf-8,");
    assert_has(html, "download=\"fig.csv\" href=\"data:text/csv");
    assert_null(strstr(html, "fig.svg\""));
    assert_null(strstr(html, "fig.png\""));
    assert_null(strstr(html, "[files]"));
    eng_free(html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_parts),
        cmocka_unit_test(test_quickstart_is_whole),
        cmocka_unit_test(test_axes_have_units),
        cmocka_unit_test(test_redraws_without_database),
        cmocka_unit_test(test_sentences_follow_data),
        cmocka_unit_test(test_sentence_numbers_are_the_data),
        cmocka_unit_test(test_figures_without_data),
        cmocka_unit_test(test_sparse_data),
        cmocka_unit_test(test_synthetic_is_labelled),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_unwritable_and_full),
        cmocka_unit_test(test_gnuplot_missing_or_failing),
        cmocka_unit_test(test_own_report),
        cmocka_unit_test(test_inline_files),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
