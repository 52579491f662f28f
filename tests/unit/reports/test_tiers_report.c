/* The reports tiers and card on invented numbers: sentences that follow them, panels and figures
 * without data that say so. */
#include "tests/unit/reports/pages.h"

/* ---- invented points ---- */

/* A fetch of layer 2 that is shorter than its window. */
static void cheap(Fixture *f, const char *axes, double cost_percent)
{
    fixture_block(f, "prefetch");
    fixture_point(f, "prefetch", "", false, 0, NULL,
                  "\"store\":\"uring\",\"residency\":\"cold\",\"window\":\"paced:500\","
                  "\"tokens\":64,\"placement\":2,%s",
                  axes);
    fixture_metric(f, "prefetch", "window_us", "us", "wall", 1000, 0, 0);
    fixture_metric(f, "prefetch", "fetch_us", "us", "wall", 900, 0, 0);
    fixture_metric(f, "prefetch", "cost_percent", "%", "wall", cost_percent, 0, 0);
}

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
    for (int tokens = 1; tokens <= 8; tokens *= 2) { /* of another table, too slow for a rate */
        fixture_block(f, "interference");
        fixture_point(f, "interference", "", false, 0, NULL,
                      "\"gatherers\":1,\"cores\":\"apart\",\"source\":\"store\","
                      "\"victim_tokens\":%d,\"store\":\"uring\",\"rows\":4096",
                      tokens);
        fixture_metric(f, "interference", "slowdown_percent", "%", "wall", 1, 0, 0);
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

/* Four times as many under way from point to point: depths from 4, threads from 1. */
static void issue(Fixture *f, const char *store, const char *residency, const char *io, int tokens,
                  const double *rows_per_s, int n)
{
    for (int i = 0; i < n; i++) {
        fixture_block(f, "tier");
        fixture_point(f, "tier", "", false, 0, NULL,
                      "\"store\":\"%s\",\"residency\":\"%s\",\"io\":\"%s\",\"depth\":%d,"
                      "\"readers\":%d,\"row_format\":\"fp8\",\"scales\":\"disk\",\"tokens\":%d",
                      store, residency, io, strcmp(store, "uring") ? 64 : 4 << 2 * i,
                      strcmp(store, "uring") ? 1 << 2 * i : 8, tokens);
        fixture_metric(f, "tier", "rows_per_s", "rows/s", "wall", rows_per_s[i], 0, 0);
    }
}

static void layouts(Fixture *f, double apart_us, double dims)
{
    static const struct {
        const char *format, *scales;
        double bytes;
    } row[] = {{"fp8", "disk", 264},
               {"fp8", "memory", 264},
               {"fp8_packed", "disk", 264},
               {"fp8_pad288", "disk", 288},
               {"int4", "disk", 144}};
    for (int i = 0; i < 5; i++) {
        fixture_block(f, "tier");
        fixture_point(f, "tier", "", false, 0, NULL,
                      "\"store\":\"uring\",\"residency\":\"cold\",\"io\":\"direct\","
                      "\"row_format\":\"%s\",\"scales\":\"%s\",\"tokens\":48",
                      row[i].format, row[i].scales);
        int reads = i ? 1 : 2;
        fixture_metric(f, "tier", "row_ns", "ns", "wall", i ? 9000 - 1000 * i : 1e3 * apart_us, 0,
                       0);
        fixture_metric(f, "tier", "batch_rows", "rows", "none", 100, 0, 0);
        fixture_metric(f, "tier", "asked_bytes", "B", "none", 100 * row[i].bytes * dims / 256, 0,
                       0);
        fixture_metric(f, "tier", "requests", "", "none", 100 * reads, 0, 0);
        fixture_metric(f, "tier", "read_bytes", "B", "none", 409600 * reads, 0, 0);
    }
}

/* A prompt of 64 tokens in chunks; its windows are no steps to break even with or to judge. */
static void prefill(Fixture *f, double hidden)
{
    for (int at = 0; at < 4; at++) {
        int chunk = at % 2 ? 64 : 16, slow = at / 2; /* each chunk beside slower layers too */
        fixture_block(f, "prefetch");
        fixture_point(f, "prefetch", "", false, 0, NULL,
                      "\"store\":\"uring\",\"residency\":\"cold\",\"io\":\"direct\","
                      "\"phase\":\"prefill\",\"tokens\":64,\"chunk\":%d,\"window\":\"paced:%d\","
                      "\"placement\":1",
                      chunk == 64 ? 0 : chunk, slow ? 9999 : 10 * chunk);
        fixture_metric(f, "prefetch", "fetch_us", "us", "wall", 64 * 500, 0, 0);
        fixture_metric(f, "prefetch", "window_us", "us", "wall", 1e6, 0, 0);
        fixture_metric(f, "prefetch", "hidden", "share", "wall", slow ? 1 : hidden * 16 / chunk, 0,
                       0);
        fixture_metric(f, "prefetch", "step_us", "us", "wall", 70000, 0, 0);
        fixture_metric(f, "prefetch", "step_ready_us", "us", "wall", 40000, 0, 0);
        fixture_metric(f, "prefetch", "cost_percent", "%", "wall", chunk, 0, 0);
    }
}

static void modules(Fixture *f, double first)
{
    for (int n = 1; n <= 2; n++)
        for (int tokens = 4; tokens <= 16; tokens *= 4) {
            fixture_block(f, "prefetch");
            fixture_point(f, "prefetch", "", false, 0, NULL,
                          "\"store\":\"uring\",\"residency\":\"warm\",\"io\":\"buffered\","
                          "\"phase\":\"decode\",\"tokens\":%d,\"modules\":%d,\"apart\":13,"
                          "\"placement\":1,\"window\":\"paced:578\"",
                          tokens, n);
            fixture_metric(f, "prefetch", "hidden_first", "share", "wall",
                           (n == 1 ? 0.8 : first) * 4 / tokens, 0, 0);
            if (n == 2) fixture_metric(f, "prefetch", "hidden_second", "share", "wall", 0.99, 0, 0);
        }
}

static void vision(Fixture *f, double behind)
{
    for (int at = 0; at < 4; at++) {
        int on = at % 2, slow = at / 2; /* a second window */
        fixture_block(f, "prefetch");
        fixture_point(f, "prefetch", "", false, 0, NULL,
                      "\"store\":\"memory\",\"residency\":\"warm\",\"phase\":\"prefill\","
                      "\"tokens\":128,\"chunk\":0,\"vision\":\"%s\",\"placement\":1,"
                      "\"window\":\"paced:%d\"",
                      on ? "on" : "off", slow ? 900 : 100);
        fixture_metric(f, "prefetch", "hidden", "share", "wall", on ? behind : 0.25, 0, 0);
        fixture_metric(f, "prefetch", "window_us", "us", "wall", on ? 500 : 100, 0, 0);
        fixture_metric(f, "prefetch", "wanted_window_us", "us", "wall", 400, 0, 0);
    }
}

/* A second policy, and a cache in front. */
static void policies(Fixture *f, double direct)
{
    for (int rows = 1024; rows <= 16384; rows *= 4) {
        fixture_block(f, "cache");
        for (int lru = 0; lru < 2; lru++) {
            fixture_point(f, "cache", "", false, 0, NULL,
                          "\"corpus\":\"code\",\"policy\":\"%s\",\"stream_tokens\":500,"
                          "\"cache_rows\":%d,\"front_rows\":0",
                          lru ? "lru" : "direct", rows);
            fixture_metric(f, "cache", "hit_rate", "share", "none",
                           lru ? rows / 40960.0 : direct * rows / 16384, 0, 0);
            fixture_metric(f, "cache", "cold_misses", "share", "none", 0.6, 0, 0);
        }
    }
    for (int front = 64; front <= 256; front *= 4) {
        fixture_block(f, "cache");
        fixture_point(f, "cache", "", false, 0, NULL,
                      "\"corpus\":\"code\",\"policy\":\"lru\",\"stream_tokens\":500,"
                      "\"cache_rows\":16384,\"front_rows\":%d",
                      front);
        fixture_metric(f, "cache", "hit_rate", "share", "none", 0.402, 0, 0);
        fixture_metric(f, "cache", "hit_front", "share", "none", front / 1024.0, 0, 0);
        fixture_metric(f, "cache", "hit_conditional", "share", "none", direct, 0, 0);
    }
}

static int set_up(void **state)
{
    static const double rising[] = {1e4, 2e4, 6e4}, flat[] = {2e4, 4.7e4, 5e4}, warm[] = {2e6, 3e6},
                        cold[] = {0, 0.69, 0.85, 0.97, 1}, never[] = {0, 0.1, 0.2, 0.3, 0.4},
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
    for (int twice = 0; twice < 2; twice++) { /* rows of another table, read past the page cache */
        char axes[64];
        snprintf(axes, sizeof axes,
                 "\"rows\":4096,\"io\":\"direct\",\"vision\":\"off\",\"apart\":%d", twice);
        cheap(&f, axes, 1);
    }
    cheap(&f, "\"rows\":4096,\"io\":\"direct\",\"vision\":\"on\"", 90);
    for (int other = 0; other < 2; other++) {
        if (other) { /* the same figures of other data, in a database of its own */
            fixture_close(&f);
            fixture_open(&f, in_dir("changed.db"));
            fixture_run(&f, "66660000aaaa", "2026-01-01T00:00:00Z");
        }
        issue(&f, "uring", "cold", "direct", 32, other ? flat : rising, 3);
        if (other) issue(&f, "uring", "warm", "direct", 32, rising, 3);
        issue(&f, "uring", "cold", "buffered", other ? 16 : 32, flat, 3);
        issue(&f, "mmap", "warm", "buffered", 32, warm, 2);
        layouts(&f, other ? 4 : 20, other ? 128 : 256);
        prefill(&f, other ? 0.4 : 0.8);
        modules(&f, other ? 0.2 : 0.6);
        vision(&f, other ? 0.3 : 0.9);
        policies(&f, other ? 0.1 : 0.2);
    }
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
    char *html = page_of("tiers", in_dir("tiers.db"), 14, 2); /* pages and formats are not there */
    assert_has(html,
               "at 64 tokens layer 1 is 31 % exposed from uring (cold), hidden from layer 3 on");
    assert_has(html, "at 64 tokens layer 1 is 0 % exposed from memory, hidden from layer 1 on");
    assert_has(html, "layer 1 is 90 % exposed from uring (cold), never hidden up to layer 4");
    assert_has(html, "memory is within the window of layer 1 up to 64 tokens");
    assert_has(html, "longer than the window of layer 1");
    assert_has(html, "Windows are those of layers that take 500 µs each (emulated)");
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
    assert_has(html, "uring direct cold, 4,096 rows a head, 64 tokens, layers paced (emulated), 1 "
                     "placement</td><td class=\"number\">16</td>");
    assert_has(html, ">1.00 %<");
    assert_has(html, "this run holds no points of gather on two page sizes");
    assert_has(html, "this run holds no points of the experiment format");
    eng_free(html);
}

/* Each sentence follows its numbers: of one run and of the other. */
static void test_changed_data(void **state)
{
    static const char *const said[][2] = {
        {"Past the page cache: uring reaches 60 thousand rows/s with 64 under way, still rising.",
         "Past the page cache, 32 tokens: uring reaches 50 thousand rows/s with 64 under way, nine "
         "tenths of "
         "it from 16 on. Past the page cache, warm, 32 tokens: uring reaches 60 thousand rows/s"},
        {"Warm: mmap reaches 3 million rows/s with 4 under way, still rising.",
         "Cold, 16 tokens: uring reaches"},
        {"A batch is the rows of 32 tokens (fp8, scales apart).",
         "A batch is the rows of 16, 32 tokens (fp8, scales apart)."},
        {"264 B, scales apart takes 20 µs a row, 2 reads and 8192 B; 264 B, scales in memory takes "
         "8 µs a row, 1 read and 4096 B; 144 B, int4 takes 5 µs a row, 1 read and 4096 B.",
         "132 B, scales in memory takes 8 µs a row, 1 read and 4096 B; 132 B, scales apart takes 4 "
         "µs a row, 2 reads and 8192 B."},
        {"Uring direct: a chunk of 16 tokens takes 8 ms beside 10 ms of its layers and hides to "
         "80 %, one of 64 tokens 32 ms beside 40 and 20 %; the prompt of 64 tokens takes 16 and "
         "64 % longer",
         "and hides to 40 %, one of 64 tokens 32 ms beside 40 and 10 %;"},
        {"Before layers 1 and 14: uring warm at 4 tokens 60 and 99 % hidden (the first alone 80); "
         "uring warm at 16 tokens 15 and 99 % hidden (the first alone 20).",
         "uring warm at 4 tokens 20 and 99 % hidden (the first alone 80);"},
        {"Memory: at 128 tokens the window before the module is 0.1 ms, behind the encoder 0.5 ms, "
         "of 0.4 ms wanted, and 25 and 90 % of the fetch hide.",
         "and 25 and 30 % of the fetch hide."},
        {"Code, where they differ most, with 16,384 rows: lru 40 %, direct 20 %; all that have "
         "been asked for before, 40 %, from 16,384 rows on.",
         "with 16,384 rows: lru 40 %, direct 10 %;"},
        {"Code (lru, 16,384 rows): a front of 256 rows answers 25 %, the cache behind it 20 % of "
         "the rest, both 40.2 %; without a front it answers 40.0 %.",
         "the cache behind it 10 % of the rest"},
    };
    (void)state;
    char *html = page_of("tiers", in_dir("tiers.db"), 14, 2);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        assert_has(html, said[i][0]);
        assert_null(strstr(strstr(html, said[i][0]) + 1, said[i][0])); /* and once */
        if (said[i][1]) assert_null(strstr(html, said[i][1]));
    }
    eng_free(html);
    html = page_of("tiers", in_dir("changed.db"), 8, 8);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        assert_has(html, said[i][1] ? said[i][1] : said[i][0]);
    eng_free(html);
}

static void test_nothing_to_draw(void **state)
{
    (void)state;
    char *html = page_of("tiers", in_dir("other.db"), 0, 16);
    assert_has(html, "this run holds no points of the experiment tier");
    assert_has(html, "this run holds no points of the experiment prefetch");
    assert_has(html, "this run holds no points of the experiment cache");
    assert_has(html, "this run holds no points of tier with dedup on and off");
    assert_has(html, "this run holds no points of the experiment speculate");
    assert_has(html, "this run holds no points of the experiment interference");
    assert_has(html, "this run holds no points of tier with two numbers of reads under way");
    assert_has(html, "this run holds no points of tier with two layouts of a row on disk");
    assert_has(html, "this run holds no points of prefetch in the phase prefill");
    assert_has(html, "this run holds no points of prefetch with two modules");
    assert_has(html, "this run holds no points of prefetch with the axis vision on and off");
    assert_has(html, "this run holds no points of the experiment cache with two policies");
    assert_has(html, "this run holds no points of the experiment cache with a front");
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
        cmocka_unit_test(test_changed_data),
        cmocka_unit_test(test_nothing_to_draw),
        cmocka_unit_test(test_card),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
