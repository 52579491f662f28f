/* The reports tiers and card on invented numbers: sentences that follow them, panels and figures
 * without data that say so. */
#include "tests/unit/reports/fixture.h"

#include "base/file.h"
#include "base/mem.h"
#include "reports/render.h"

static const char g_reports[] = ENG_SOURCE_DIR "/reports";
static char g_dir[64] = "/tmp/test_tiers_XXXXXX";

static const char *in_dir(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", g_dir, name);
    return path;
}

/* The page of a report of the latest run; the caller frees it with eng_free. */
static char *page_of(const char *report, const char *db, int n_drawn, int n_empty)
{
    EngReportDone done;
    EngErr err = {0};
    char *html = NULL;
    EngReportRequest request = {report, db, "latest", in_dir("out"), g_reports};
    if (eng_report_render(&request, &done, &err)) fail_msg("%s", err.text);
    assert_int_equal(done.n_figures, n_drawn);
    assert_int_equal(done.n_empty, n_empty);
    if (eng_file_read(in_dir("out/index.html"), &html, NULL, &err)) fail_msg("%s", err.text);
    return html;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("'%s' is not on the page", part);
}

/* ---- invented points ---- */

static void prefetch(Fixture *f, const char *store, const char *residency, const char *window,
                     const double *hidden, int n)
{
    for (int layer = 0; layer < n; layer++) {
        fixture_block(f, "prefetch");
        fixture_point(f, "prefetch", "", false, 0, NULL,
                      "\"store\":\"%s\",\"residency\":\"%s\",\"window\":\"%s\",\"tokens\":64,"
                      "\"layers\":5,\"placement\":%d",
                      store, residency, window, layer);
        fixture_metric(f, "prefetch", "hidden", "share", "wall", hidden[layer], 0, 0);
        fixture_metric(f, "prefetch", "window_us", "us", "wall", 500 * layer + 10, 0, 0);
        /* In time from layer 2 on; earlier steps cost more than they may, and do not count. */
        fixture_metric(f, "prefetch", "fetch_us", "us", "wall", 900, 0, 0);
        fixture_metric(f, "prefetch", "cost_percent", "%", "wall", layer < 2 ? 70 : 4 - layer, 0,
                       0);
    }
}

static void tier(Fixture *f, const char *store, const char *residency, double us_per_token)
{
    for (int tokens = 1; tokens <= 64; tokens *= 8) {
        fixture_block(f, "tier");
        fixture_point(f, "tier", "", false, 0, NULL,
                      "\"store\":\"%s\",\"residency\":\"%s\",\"row_format\":\"fp8\",\"tokens\":%d",
                      store, residency, tokens);
        fixture_metric(f, "tier", "wall_us", "us", "wall", us_per_token * tokens, 0.1, 0);
    }
}

static void hits(Fixture *f)
{
    for (int rows = 1024; rows <= 16384; rows *= 4) {
        fixture_block(f, "cache");
        fixture_point(f, "cache", "", false, 0, NULL,
                      "\"corpus\":\"prose\",\"policy\":\"lru\",\"stream_tokens\":1000,"
                      "\"cache_rows\":%d",
                      rows);
        fixture_metric(f, "cache", "hit_2", "share", "none", rows / 32768.0, 0, 0);
        fixture_metric(f, "cache", "hit_4", "share", "none", rows / 65536.0, 0, 0);
        fixture_metric(f, "cache", "cold_misses", "share", "none", 0.4, 0, 0);
    }
}

static void interference(Fixture *f)
{
    for (int gatherers = 0; gatherers <= 2; gatherers++) {
        fixture_block(f, "interference");
        fixture_point(f, "interference", "", false, 0, NULL,
                      "\"gatherers\":%d,\"cores\":\"apart\",\"source\":\"table\","
                      "\"victim_tokens\":16,\"store\":\"uring\"",
                      gatherers);
        fixture_metric(f, "interference", "slowdown_percent", "%", "wall", 7.5 * gatherers, 0, 0);
        /* The second gatherer costs and brings nothing. */
        fixture_metric(f, "interference", "gather_gbps", "GB/s", "wall", gatherers ? 4 : 0, 0, 0);
    }
}

/* Batches of growing share of duplicates: costs, pays, pays. */
static void dedup(Fixture *f)
{
    static const double share[] = {0.02, 0.2, 0.6}, ns[] = {1100, 900, 500};
    for (int i = 0, tokens = 16; i < 3; i++, tokens *= 4) {
        fixture_block(f, "tier");
        for (int on = 0; on < 2; on++) {
            fixture_point(f, "tier", "", false, 0, NULL,
                          "\"store\":\"uring\",\"residency\":\"warm\",\"row_format\":\"fp8\","
                          "\"corpus\":\"code\",\"orders\":\"2-4\",\"tokens\":%d,\"dedup\":\"%s\"",
                          tokens, on ? "on" : "off");
            fixture_metric(f, "tier", "wall_us", "us", "wall", (on ? ns[i] : 1000) / 1e3, 0,
                           on ? ns[i] : 1000);
            if (on) fixture_metric(f, "tier", "duplicate_share", "", "none", share[i], 0, 0);
        }
    }
}

static void speculate(Fixture *f)
{
    static const double cost[2][2] = {{30, 12}, {20, 3}}, vain[2][2] = {{0.6, 0.2}, {0.8, 0.3}};
    for (int ahead = 0; ahead < 2; ahead++)
        for (int likely = 0; likely < 2; likely++) {
            fixture_block(f, "speculate");
            fixture_point(f, "speculate", "", false, 0, NULL,
                          "\"store\":\"uring\",\"residency\":\"cold\",\"sequences\":1,\"draft\":5,"
                          "\"acceptance\":%s,\"ahead\":\"%s\",\"layers\":40,"
                          "\"window\":\"paced:500\"",
                          likely ? "0.9" : "0.5", ahead ? "on" : "off");
            fixture_metric(f, "speculate", "cost_percent", "%", "wall", cost[ahead][likely], 0, 0);
            fixture_metric(f, "speculate", "vain_share", "share", "none", vain[ahead][likely], 0,
                           0);
        }
}

/* A row cache that hits all, and one that does not and is left out. */
static void cached(Fixture *f)
{
    static const double ns[] = {900, 1000, 500};
    for (int some = 0; some < 2; some++) {
        fixture_block(f, "tier");
        for (int on = 0; on < 2; on++) {
            fixture_point(f, "tier", "", false, 0, NULL,
                          "\"store\":\"memory\",\"policy\":\"%s\",\"cache_rows\":%d,"
                          "\"tokens\":256",
                          on ? "direct" : "none", some ? 64 : 4096);
            double took = ns[on + (on && some)];
            fixture_metric(f, "tier", "wall_us", "us", "wall", took / 1e3, 0, took);
            if (on) fixture_metric(f, "tier", "hit_rate", "", "none", some ? 0.9 : 1, 0, 0);
        }
    }
}

static int set_up(void **state)
{
    static const double cold[] = {0, 0.69, 0.85, 0.97, 1}, never[] = {0, 0.1, 0.2, 0.3, 0.4},
                        memory[] = {0, 1, 1, 1, 1};
    (void)state;
    if (!mkdtemp(g_dir)) return -1;
    Fixture f;
    fixture_open(&f, in_dir("tiers.db"));
    fixture_run(&f, "44440000aaaa", "2026-01-01T00:00:00Z");
    prefetch(&f, "uring", "cold", "paced:500", cold, 5);
    prefetch(&f, "memory", "warm", "paced:500", memory, 5);
    prefetch(&f, "uring", "cold", "backbone", never, 5);
    tier(&f, "memory", "warm", 1);
    tier(&f, "uring", "cold", 1000);
    hits(&f);
    interference(&f);
    dedup(&f);
    speculate(&f);
    cached(&f);
    fixture_close(&f);
    fixture_open(&f, in_dir("other.db"));
    fixture_quickstart(&f, "55550000aaaa", "2026-01-01T00:00:00Z", 1, 0);
    fixture_close(&f);
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", g_dir);
    return system(command);
}

/* ---- tests ---- */

static void test_sentences(void **state)
{
    (void)state;
    char *html = page_of("tiers", in_dir("tiers.db"), 7, 2); /* pages and formats are not there */
    assert_has(html,
               "at 64 tokens layer 1 is 31 % exposed from uring (cold), hidden from layer 3 on");
    assert_has(html, "at 64 tokens layer 1 is 0 % exposed from memory, hidden from layer 1 on");
    assert_has(html, "layer 1 is 90 % exposed from uring (cold), never hidden up to layer 4");
    assert_has(html, "memory is within the window of layer 1 up to 64 tokens");
    assert_has(html, "longer than the window of layer 1");
    assert_has(html, "2-grams with 16,384 rows: prose 50 %");
    assert_has(html, "4-grams with 16,384 rows: prose 25 %");
    assert_has(html, "1 gathering thread gets 4.00 GB/s and costs it 7.5 %");
    assert_null(strstr(html, "2 gathering threads get"));
    assert_has(html,
               "Uring warm: it costs up to 2 % of duplicates and pays from 20 % on (code, 2 to "
               "4-grams: 64 tokens), 2 times as fast at best");
    assert_has(html, "5 drafted tokens and one more are verified in a step of 40 layers that take "
                     "500 µs each (emulated)");
    assert_has(html, "1 sequence from uring cold: with 90 % accepted waiting makes the step 12.0 % "
                     "longer, asked one step ahead 3.0 %, which pays; with 50 % accepted 30.0 and "
                     "20.0 %");
    assert_has(html, "Of all rows read 20 % are for rejected tokens with 90 % accepted, 30 % when "
                     "asked one step ahead");
    assert_has(html, "<td>direct, 4,096 rows, 256 tokens</td>");
    assert_has(html, ">0.9 to 0.9<");
    assert_null(strstr(html, "direct, 64 rows"));
    assert_has(html, "uring cold, 64 tokens, layers paced (emulated), 3 placements");
    assert_has(html, ">1.00 %<");
    assert_has(html, "this run holds no points of gather on two page sizes");
    assert_has(html, "this run holds no points of the experiment format");
    eng_free(html);
}

static void test_nothing_to_draw(void **state)
{
    (void)state;
    char *html = page_of("tiers", in_dir("other.db"), 0, 9);
    assert_has(html, "this run holds no points of the experiment tier");
    assert_has(html, "this run holds no points of the experiment prefetch");
    assert_has(html, "this run holds no points of the experiment cache");
    assert_has(html, "this run holds no points of tier with dedup on and off");
    assert_has(html, "this run holds no points of the experiment speculate");
    assert_has(html, "this run holds no points of the experiment interference");
    eng_free(html);
}

static void test_card(void **state)
{
    (void)state;
    char *html = page_of("card", in_dir("other.db"), 1, 0); /* two panels are empty */
    assert_has(html, "1024 tokens a call the gather reads from");
    assert_has(html, "of the gates are saturated at a cosine of 0");
    assert_has(html, "this run holds no point of the experiment split");
    eng_free(html);
    html = page_of("card", in_dir("tiers.db"), 1, 0); /* three */
    assert_has(html,
               "uring cold, 500 µs a layer (emulated) is hidden (90 % and more) from layer 3 on");
    assert_has(html, "uring cold, computed is hidden to 40 % at most");
    eng_free(html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_nothing_to_draw),
        cmocka_unit_test(test_card),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
