/* The report ablation on invented runs with planted effects: what is pooled and what is not,
 * verdicts of claims, and cells that stay empty where one seed says nothing. */
#include "tests/unit/reports/pages.h"

#include "base/str.h"
#include "bench/ablation/run.h"

/* ---- invented runs ---- */

/* The value of an axis in "rho=0.8 gate=off", else its default. */
static void value_of(const EngAxisDef *axis, const char *arm, char value[64])
{
    char key[64];
    snprintf(value, 64, "%s", axis->def);
    snprintf(key, sizeof key, "%s=", axis->name);
    for (const char *at = arm; at && *at; at = strchr(at, ' '), at += at != NULL)
        if (!strncmp(at, key, strlen(key))) sscanf(at + strlen(key), "%63s", value);
}

static void run(Fixture *f, const char *arm, int seed, double loss)
{
    EngStr axes = {0};
    for (int i = 0; i < ENG_ARM_AXES; i++) {
        char value[64];
        value_of(&eng_arm_axes[i], arm, value);
        if (!strcmp(eng_arm_axes[i].name, ENG_ARM_AXIS_SEED)) snprintf(value, 64, "%d", seed);
        const char *quote = eng_arm_axes[i].type == ENG_AXIS_WORD ? "\"" : "";
        eng_str_printf(&axes, "%s\"%s\":%s%s%s", i ? "," : "", eng_arm_axes[i].name, quote, value,
                       quote);
    }
    snprintf(f->key, sizeof f->key, "%032d", ++f->n_points);
    fixture_sql(f,
                "INSERT INTO points VALUES ('%q', 'c%d', 'train', '', 'cpu', 'measured', 0, 'v',"
                " 'machine', NULL, NULL, NULL, json('{%s}'), '')",
                f->key, f->n_points, axes.text);
    eng_str_free(&axes);
    for (int i = 0; i < ENG_ARM_AXES; i++) {
        char value[64];
        value_of(&eng_arm_axes[i], arm, value);
        bool word = eng_arm_axes[i].type == ENG_AXIS_WORD;
        fixture_sql(f, "INSERT INTO axis_values VALUES ('%q', '%q', '%q', %s, %d)", f->key,
                    eng_arm_axes[i].name, value, word ? "NULL" : value,
                    (int)!strcmp(value, eng_arm_axes[i].def));
    }
    fixture_sql(f,
                "INSERT INTO block_points VALUES ('%q', '%q', %d, 'done', 'measured', NULL, NULL)",
                f->block, f->key, f->n_points);
    fixture_sql(f, "INSERT INTO run_points VALUES ('%q', '%q', '%q')", f->run, f->key, f->block);
    fixture_sql(f, "INSERT INTO samples VALUES ('%q', '%q', 0, 0, 0, 1, 1000, 1000, 0)", f->block,
                f->key);
    f->samples = 1;
    fixture_metric(f, "train", "loss", "nats", "none", loss, 0, 0);
    fixture_metric(f, "train", "rho_actual", "share", "none",
                   strstr(arm, "rho=") ? atof(strstr(arm, "rho=") + 4) : 1, 0, 0);
    fixture_metric(f, "train", "cpu_s", "s", "none", 100 + f->n_points, 0, 0);
    fixture_metric(f, "train", "load_max", "times", "none", 1.1 + 0.01 * seed, 0, 0);
    fixture_metric(f, "train", "collapsed", "", "none", strstr(arm, "rho=0.4") && seed == 2, 0, 0);
    const char *memory = strstr(arm, "memory=");
    if (memory) fixture_metric(f, "train", "table_parameters", "", "none", atof(memory + 7), 0, 0);
    for (int step = 0; step < 2; step++)
        fixture_sql(f,
                    "INSERT INTO series VALUES ('%q', '%q', 'train_loss', %d, %g),"
                    " ('%q', '%q', 'load_max', %d, 1.1)",
                    f->block, f->key, 100 * step, loss + 1 - step, f->block, f->key, 100 * step);
    for (int layer = 0; layer < 3; layer++)
        fixture_sql(f, "INSERT INTO series VALUES ('%q', '%q', 'lens', %d, %g)", f->block, f->key,
                    layer, 2 - layer + 0.01 * seed);
    /* Pure MoE has learnt to copy, the others have not. */
    fixture_sql(f, "INSERT INTO series VALUES ('%q', '%q', 'loss_copied', 0, %g)", f->block, f->key,
                loss + 0.2);
    fixture_sql(f, "INSERT INTO series VALUES ('%q', '%q', 'loss_copied', 1, %g)", f->block, f->key,
                loss - (strstr(arm, "rho=") ? 0.5 : 0.8));
}

/* Seeds 1 to n; they differ by far more than the noise, which is drawn anew for every run. */
static void arm(Fixture *f, const char *axes, int n, double loss)
{
    for (int seed = 1; seed <= n; seed++)
        run(f, axes, seed, loss + 0.1 * seed + 0.0005 * fixture_noise(f));
}

static void begin(Fixture *f, const char *db)
{
    fixture_open(f, in_dir(db));
    fixture_run(f, "11110000aaaa", "2026-01-01T00:00:00Z");
    fixture_block(f, "train");
}

/* ---- the page ---- */

static char *page_of_report(const char *report, const char *db)
{
    EngReportDone done;
    char *html = page_of_run(report, in_dir(db), &done);
    if (strstr(html, "</strong> </p>")) fail_msg("a figure without its sentence");
    return html;
}

static char *ablation_of(const char *db)
{
    return page_of_report("ablation", db);
}

/* Whether a row of a table has all of the parts, in order, in its cells ("" ends the list). */
static bool has_row(const char *html, const char *const *parts)
{
    for (const char *row = strstr(html, "<tr>"); row; row = strstr(row + 4, "<tr>")) {
        const char *end = strstr(row, "</tr>"), *at = row;
        for (int i = 0; at && parts[i]; i++) {
            at = strstr(at, parts[i]);
            if (at && at >= end) at = NULL;
            if (at) at += strlen(parts[i]);
        }
        if (at) return true;
    }
    return false;
}

#define assert_row(html, ...)                                                                      \
    do {                                                                                           \
        const char *const parts[] = {__VA_ARGS__, NULL};                                           \
        if (!has_row(html, parts)) fail_msg("no row with '%s', '%s', ..", parts[0], parts[1]);     \
    } while (0)

/* Lines of a figure's CSV that hold all of the parts. */
static int lines_with(const char *figure, const char *a, const char *b)
{
    char name[64], *text = NULL, *rest = NULL;
    EngErr err = {0};
    int n = 0;
    snprintf(name, sizeof name, "out/%s.csv", figure);
    if (eng_file_read(in_dir(name), &text, NULL, &err)) fail_msg("%s", err.text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        n += strstr(line, a) && strstr(line, b);
    eng_free(text);
    return n;
}

/* Values of a word axis are rows of their own; pairs of layers are drawn. */
static void test_words_are_kept_apart(void **state)
{
    (void)state;
    Fixture f;
    begin(&f, "words.db");
    arm(&f, "rho=0.8", 4, 3.9);
    arm(&f, "", 4, 4);
    arm(&f, "rho=0.8 rows=one", 4, 4.01);
    arm(&f, "rho=0.8 rows=shuffled", 4, 4.02);
    arm(&f, "rho=0.8 rows=frozen", 4, 3.95);
    arm(&f, "rho=0.8 gate=off", 4, 3.91);
    arm(&f, "rho=0.8 gate=plain", 4, 3.901);
    arm(&f, "rho=0.8 gate=off streams=4", 4, 3.93);
    arm(&f, "rho=0.8 streams=4", 4, 3.9);
    arm(&f, "rho=0.8 conv=4", 4, 3.85);
    arm(&f, "rho=0.8 engram_at=0", 4, 3.91);
    arm(&f, "rho=0.8 engram_at=2", 4, 3.92);
    arm(&f, "rho=0.8 engram_at=3", 4, 3.94);
    arm(&f, "rho=0.8 engram_at=0+2", 4, 3.88);
    arm(&f, "rho=0.8 engram_at=1+3", 4, 3.89);
    fixture_close(&f);
    char *html = ablation_of("words.db");
    static const char *const names[] = {"rows = one at rho 0.8",
                                        "rows = shuffled at rho 0.8",
                                        "rows = frozen at rho 0.8",
                                        ",gate = off at rho 0.8,gate,",
                                        "\"gate = off at rho 0.8, 4 streams\"",
                                        "gate = plain at rho 0.8",
                                        "conv = 4 at rho 0.8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(lines_with("contrasts", "mean,", names[i]), 1);
        assert_int_equal(lines_with("contrasts", "seed,", names[i]), 4);
    }
    assert_int_equal(lines_with("contrasts", "paper,", "gate = plain"), 0);
    assert_int_equal(lines_with("placement", "mean,", ",0+2,"), 1);
    assert_int_equal(lines_with("placement", "seed,", ",1+3,"), 4);
    assert_row(html, "the short conv hardly matters", "+0.05", "contradicted");
    assert_row(html, "the gate helps", "+0.01", "confirmed");
    eng_free(html);
}

static void test_copied_tokens_are_apart(void **state)
{
    (void)state;
    Fixture f;
    begin(&f, "copied.db");
    arm(&f, "rho=0.4", 4, 3.95);
    arm(&f, "rho=0.8", 4, 3.895);
    arm(&f, "", 4, 4);
    fixture_close(&f);
    char *html = ablation_of("copied.db");
    assert_int_equal(lines_with("copied", "mean,not copied,", ",-0.10"), 1);
    assert_int_equal(lines_with("copied", "mean,copied,", ",0.19"), 1);
    assert_int_equal(lines_with("copied", "seed,", "copied,"), 3 * 2 * 4);
    assert_non_null(strstr(html, "lowest at rho 0.8 where the context has no copy (-0.10"));
    assert_non_null(strstr(html, ", at rho 1 where it has (+0.0000"));
    eng_free(html);
}

/* Another rung, text, budget or number of streams is no further seed. */
static void test_studies_are_kept_apart(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        double at_1, at_04;
    } kinds[] = {{"", 0.0165, 0.015},
                 {" rung=tiny", -0.1, -0.2},
                 {" streams=4", 0.5, 0.5},
                 {" budget=68", 0.3, 0.2},
                 {" text=synthetic", 0.4, 0.1}};
    Fixture f;
    begin(&f, "studies.db");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char axes[3][64];
        snprintf(axes[0], sizeof axes[0], "rho=0.4%s", kinds[i].more);
        snprintf(axes[1], sizeof axes[1], "rho=0.8%s", kinds[i].more);
        snprintf(axes[2], sizeof axes[2], "rho=1%s", kinds[i].more);
        arm(&f, axes[0], 4, 3.9 + kinds[i].at_04);
        arm(&f, axes[1], 4, 3.9);
        arm(&f, axes[2], i ? 4 : 5, 3.9 + kinds[i].at_1);
    }
    fixture_close(&f);
    char *html = ablation_of("studies.db");
    assert_row(html, "Engram lowers the loss", "R0c, 20 tokens per parameter</td>", "+0.016", ">4<",
               ">0<", "confirmed");
    assert_row(html, "Engram lowers the loss", "tiny, 20 tokens", "-0.10", ">4<", "contradicted");
    assert_row(html, "Engram lowers the loss", "20 tokens per parameter, 4 streams", "+0.50");
    assert_row(html, "Engram lowers the loss", "R0c, 68 tokens", "+0.30");
    static const char *const synthetic[] = {"Engram lowers the loss", "synthetic text", NULL};
    assert_false(has_row(html, synthetic));
    /* Collapsed routers are counted. */
    assert_row(html, "too much Engram", "R0c, 20 tokens per parameter<", ">4<", ">1<");
    assert_row(html, "R0c, synthetic text, 20 tokens per parameter", "contrasts", "+0.4");
    assert_int_equal(lines_with("rho", "mean,", "R0c"), 4 * 3);
    assert_int_equal(lines_with("rho", "mean,", ",4,"), 5 * 3 - 1); /* the fifth seed of one */
    eng_free(html);
}

/* A mean, slope or difference over several places is of the seeds that have all of them: seed 3,
 * which is off, has not come so far. */
static void test_seeds_in_part(void **state)
{
    (void)state;
    static const char *const sizes[] = {"131072", "262144", "524288", "1048576"};
    Fixture f;
    begin(&f, "part.db");
    arm(&f, "", 3, 4);
    for (int i = 0; i < 4; i++) {
        char engram[64], over[64], step[64];
        snprintf(engram, sizeof engram, "memory=%s", sizes[i]);
        snprintf(over, sizeof over, "memory=%s fusion=input", sizes[i]);
        snprintf(step, sizeof step, "bias_step=0.00%d", i + 1);
        arm(&f, engram, 2, 3.9 - 0.01 * i);
        arm(&f, over, 2, 3.925 - 0.01 * i);
        arm(&f, step, 2, 4 + 0.01 * i);
        if (i == 3) continue;
        run(&f, engram, 3, 3.9 - 0.1 * i);
        run(&f, step, 3, 4.5 - 0.1 * i);
        if (i < 2) run(&f, over, 3, 4.9 - 0.1 * i);
    }
    fixture_close(&f);
    char *html = ablation_of("part.db");
    assert_row(html, "falls with the logarithm", "-0.03", ">2<");
    assert_row(html, "better than over-encoding", "+0.02", ">2<");
    assert_int_equal(lines_with("router", "mean,bias_step,", ",2,"), 4);
    assert_int_equal(lines_with("router", "seed,bias_step,", ""), 2 * 4);
    assert_int_equal(lines_with("router", "mean,", ",-0.01"), 1);
    eng_free(html);
}

/* A run that diverged is in the table of runs, and no point of a curve. */
static void test_diverged(void **state)
{
    (void)state;
    Fixture f;
    begin(&f, "diverged.db");
    arm(&f, "rho=0.8", 3, 3.9);
    arm(&f, "", 2, 4);
    run(&f, "", 3, 90);
    fixture_sql(&f, "DELETE FROM sample_values WHERE point_key = '%q' AND metric = 'loss'", f.key);
    fixture_sql(&f,
                "UPDATE block_points SET outcome = 'failed', reason = 'loss is 90'"
                " WHERE point_key = '%q'",
                f.key);
    fixture_close(&f);
    char *html = ablation_of("diverged.db");
    assert_row(html, "failed: loss is 90");
    assert_int_equal(lines_with("curves", "rho 0.8", ",3,"), 2);
    assert_int_equal(lines_with("curves", "rho 1", ",2,"), 2);
    eng_free(html);
}

/* One seed has no interval and no p: empty cells, not 0. */
static void test_one_seed(void **state)
{
    (void)state;
    Fixture f;
    begin(&f, "one.db");
    arm(&f, "rho=0.4", 1, 4);
    arm(&f, "rho=0.8", 1, 3.9);
    arm(&f, "rho=1", 1, 4);
    fixture_close(&f);
    char *html = ablation_of("one.db");
    if (strstr(html, "0.0000")) fail_msg("a p or an interval of 0 on the page");
    assert_row(html, "Engram lowers the loss", "+0.", "not detectable");
    assert_row(html, "contrasts", "+0.", "too few seeds");
    assert_int_equal(lines_with("lens", "mean,", ",,,1,"), 2 * 3);
    eng_free(html);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(g_dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", g_dir);
    return system(command) ? -1 : 0;
}

/* Rows behind closed gates are bytes, and time where the database has a gather of this machine from
 * memory, of whatever run. */
static void test_rows_and_bandwidth(void **state)
{
    (void)state;
    for (int measured = 0; measured < 2; measured++) {
        static const char *const names[] = {"gate:mean:1:0",   "gate:saturated05:1:0",
                                            "gate:slope:1:0",  "rows_foreign:1",
                                            "rows_collided:1", "gate_decile:unused:1"};
        Fixture f;
        const char *db = measured ? "joined.db" : "bytes.db";
        begin(&f, db);
        run(&f, "rho=0.8", 1, 3);
        for (int s = 0; s < 6; s++)
            for (int step = 0; step < 10; step++)
                fixture_sql(&f, "INSERT INTO series VALUES ('%q', '%q', '%q', %d, 0.25)", f.block,
                            f.key, names[s], s < 3 && step == 9 ? 100 : step);
        fixture_sql(&f, "INSERT INTO series VALUES ('%q', '%q', 'gathered_bytes:1', 0, 4096)",
                    f.block, f.key);
        fixture_run(&f, "00000000aaaa", "2025-01-01T00:00:00Z");
        fixture_sql(&f,
                    "INSERT INTO machines VALUES ('other', 'Other CPU', 2, 8589934592, 33554432, "
                    "NULL, '{}')");
        for (int warm = 0; warm < 2; warm++) {
            fixture_block(&f, "gather");
            fixture_point(&f, "gather", "avx2", false, 0, NULL,
                          "\"row_format\":\"f32\",\"threads\":4,\"rows\":131072,\"cache\":\"%s\"",
                          warm ? "warm" : "rotate");
            fixture_metric(&f, "gather", "gather_gbps", "GB/s", "cpu", 100, 0, 0);
            if (!warm)
                fixture_sql(&f, "UPDATE points SET machine_id = 'other' WHERE point_key = '%q'",
                            f.key);
        }
        for (int threads = 1; threads < 3 && measured; threads++) {
            fixture_block(&f, "gather");
            fixture_point(&f, "gather", "avx2", false, 0, NULL,
                          "\"row_format\":\"%s\",\"threads\":%d,\"rows\":131072",
                          threads > 1 ? "f32" : "fp8", threads);
            fixture_metric(&f, "gather", "gather_gbps", "GB/s", "cpu", 8 * threads, 0, 0);
        }
        fixture_close(&f);
        char *html = page_of_report("gates", db);
        const char *says =
            measured
                ? "measured on this machine (f32 rows, 2 threads, avx2) reads 16 "
                  "GB/s, so the rows of a token take 256 ns a module, 64 ns of them "
                  "for nothing."
                : "No gather of this machine is in this database: of traffic the bytes alone are "
                  "known.";
        if (!strstr(html, says)) fail_msg("'%s' is not on the page", says);
        assert_int_equal(lines_with("rows", "4096", measured ? ",16," : ",,"), 1);
        eng_free(html);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_kept_apart),
        cmocka_unit_test(test_copied_tokens_are_apart),
        cmocka_unit_test(test_studies_are_kept_apart),
        cmocka_unit_test(test_seeds_in_part),
        cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_one_seed),
        cmocka_unit_test(test_rows_and_bandwidth),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
