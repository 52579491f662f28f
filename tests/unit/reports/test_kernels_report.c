/* The reports kernels, roofs and required on invented numbers: sentences and verdicts that follow
 * them; and a device's kernels, which no page may take for the CPU's. */
#include "tests/unit/reports/pages.h"

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part)) fail_msg("'%s' is on the page", part);
}

/* What the page says of a figure differs between two databases. */
static void assert_follows(const char *first, const char *second, const char *figure)
{
    const char *pages[] = {first, second};
    char says[2][2000], id[64];
    snprintf(id, sizeof id, "<figure id=\"%s\">", figure);
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(pages[i], id);
        if (at) at = strstr(at, "</strong>");
        const char *end = at ? strstr(at, "</p>") : NULL;
        if (!end) fail_msg("no caption of %s", figure);
        snprintf(says[i], sizeof says[i], "%.*s", (int)(end - at), at);
        assert_true(strlen(says[i]) > 60);
    }
    if (!strcmp(says[0], says[1])) fail_msg("%s says the same of other data: %s", figure, says[0]);
}

/* ---- invented points ---- */

/* A kernel of the chain in the current block; ns: of a call. A roof has its row in `roofs`. */
static void kernel(Fixture *f, const char *experiment, const char *variant, bool roof, int tokens,
                   int rows, double ns, double spread)
{
    bool gather = !strcmp(experiment, "gather"), project = !strcmp(experiment, "project");
    const char *per_token = project ? "us_per_token" : "ns_per_token";
    fixture_point(f, experiment, variant, roof, 0, NULL,
                  "\"preset\":\"invented\",\"rows\":%d,\"tokens\":%d,\"threads\":1%s", rows, tokens,
                  gather ? ",\"heads\":8,\"row_format\":\"fp8\",\"out\":\"bf16\"" : "");
    fixture_metric(f, experiment, per_token, project ? "us" : "ns", "cpu",
                   ns / tokens / (project ? 1e3 : 1), spread, ns);
    fixture_metric(f, experiment, "wall_us", "us", "wall", ns / 1e3, 0, 0);
    if (roof)
        fixture_sql(f, "INSERT INTO roofs VALUES ('%q', '%q', 'cpu', '{}')", f->block, f->key);
    if (!strcmp(experiment, "hash")) return;
    fixture_metric(f, experiment, "cpu_us", "us", "cpu", ns / 1e3, 0, 0);
    fixture_metric(f, experiment, "flops", "flop", "none", 1e3 * tokens * (project ? 50 : 1), 0, 0);
    fixture_metric(f, experiment, "moved_bytes", "B", "none", 1e3 * tokens, 0, 0);
    if (!gather) return;
    fixture_metric(f, experiment, "gather_gbps", "GB/s", "cpu", 6336.0 * tokens / ns, 0, 0);
    fixture_metric(f, experiment, "working_set_bytes", "B", "none", 6336.0 * rows, 0, 0);
}

/* Each operation at a decode step and a chunk, and gathers from a small table; slower: of all but
 * roofs. */
static void kernels(Fixture *f, double slower)
{
    static const char *const operations[] = {"hash", "gather", "project", "gate"};
    for (int o = 0; o < 4; o++)
        for (int tokens = 1; tokens <= 256; tokens *= 16) {
            double ns = tokens * (o == 2 ? 1000.0 : 100.0); /* the product takes longest */
            fixture_block(f, operations[o]);
            kernel(f, operations[o], "roof", true, tokens, 8192, ns, 0);
            kernel(f, operations[o], "portable", false, tokens, 8192, 4 * ns * slower, 0);
            kernel(f, operations[o], "avx2", false, tokens, 8192, 1.1 * ns * slower, 0);
        }
    fixture_block(f, "gather");
    kernel(f, "gather", "roof", true, 256, 512, 50.0 * 256, 0);
    kernel(f, "gather", "avx2", false, 256, 512, 80.0 * 256 * slower, 0);
}

static void stream(Fixture *f, const char *pass, int threads, double gbps)
{
    fixture_block(f, "stream");
    fixture_point(f, "stream", "", false, -1, NULL,
                  "\"pass\":\"%s\",\"store\":\"plain\",\"threads\":%d,\"pages\":\"2m\","
                  "\"pin\":\"none\",\"bytes\":1073741824",
                  pass, threads);
    fixture_metric(f, "stream", "gbps", "GB/s", "cpu", gbps, 0, 0);
    fixture_metric(f, "stream", "wall_gbps", "GB/s", "wall", gbps, 0, 0);
}

/* A point of the ladder in the current block; reason: skipped. */
static void ladder(Fixture *f, const char *access, int chains, const char *line, const char *pages,
                   long long bytes, double ns, const char *reason)
{
    fixture_point(f, "ladder", "", false, -1, reason,
                  "\"access\":\"%s\",\"chains\":%d,\"line\":\"%s\",\"pages\":\"%s\","
                  "\"bytes\":%lld,\"threads\":1,\"tokens\":256,\"out\":\"bf16\",\"pin\":\"none\"",
                  access, chains, line, pages, bytes);
    if (reason) return;
    fixture_metric(f, "ladder", "ns_per_load", "ns", "cpu", ns, 0, 0);
    fixture_metric(f, "ladder", "gload_per_s", "1e9/s", "cpu", 1 / ns, 0, 0);
    fixture_metric(f, "ladder", "huge_share", "", "none", !strcmp(pages, "2m"), 0, 0);
}

/* Rows read, and read and stored, from tables on pages of three sizes, of which one is not there.
 */
static void pages(Fixture *f, double small_ns)
{
    static const char *const access[] = {"read24", "roof_copy"};
    for (long long bytes = 1 << 21; bytes <= 1LL << 27; bytes *= 4)
        for (int a = 0; a < 2; a++) {
            fixture_block(f, "ladder");
            ladder(f, access[a], 16, "256+8", "2m", bytes, 2 + a, NULL);
            ladder(f, access[a], 16, "256+8", "4k", bytes, small_ns, NULL);
            ladder(f, access[a], 16, "256+8", "1g", bytes, 0, "no pages of 1 GiB");
        }
}

/* Latency over sets of 1 to 256 MiB with a knee, and chains beside the gather's roofs. */
static void ladders(Fixture *f, double far_ns, const char *pages)
{
    for (long long bytes = 1 << 14; bytes <= 1 << 28; bytes *= 4) {
        fixture_block(f, "ladder");
        ladder(f, "chains", 1, "64", pages, bytes, bytes < 1 << 22 ? 2 : far_ns, NULL);
        ladder(f, "chains", 2, "64", pages, bytes, bytes < 1 << 22 ? 1 : far_ns / 2, NULL);
        ladder(f, "chains", 64, "64", pages, bytes, bytes < 1 << 22 ? 0.5 : far_ns / 20, NULL);
    }
    fixture_block(f, "ladder");
    ladder(f, "chains64", 16, "256+8", pages, 1 << 28, far_ns / 20, NULL);
    ladder(f, "read24", 16, "256+8", pages, 1 << 28, far_ns / 25, NULL);
    ladder(f, "roof_copy", 16, "256+8", pages, 1 << 28, far_ns / 16, NULL);
}

static void chain(Fixture *f, const char *variant, double share, double us)
{
    fixture_block(f, "chain");
    fixture_point(f, "chain", variant, false, 0, NULL,
                  "\"preset\":\"invented\",\"tokens\":256,\"threads\":1");
    fixture_metric(f, "chain", "share_hash", "share", "none", share, 0, 0);
    fixture_metric(f, "chain", "share_gather", "share", "none", share / 100, 0, 0);
    fixture_metric(f, "chain", "share_project", "share", "none", 0.9 - share, 0, 0);
    fixture_metric(f, "chain", "share_gate", "share", "none", 0.1 - share / 100, 0, 0);
    fixture_metric(f, "chain", "wall_us", "us", "wall", us, 0.05, 1e3 * us);
}

/* The point made last is of a device, and simulated or measured there. */
static void on_device(Fixture *f, const char *kind)
{
    fixture_sql(f, "UPDATE points SET backend = 'cuda', kind = '%q' WHERE point_key = '%q'", kind,
                f->key);
}

/* ---- databases ---- */

static void make_kernels(Fixture *f, const char *name, double slower, double small_ns, double gbps)
{
    fixture_open(f, in_dir(name));
    fixture_run(f, "11110000bbbb", "2026-01-01T00:00:00Z");
    kernels(f, slower);
    stream(f, "read", 1, gbps);
    pages(f, small_ns);
}

static void make_roofs(Fixture *f, const char *name, double far_ns, const char *pages, double gbps)
{
    fixture_open(f, in_dir(name));
    fixture_run(f, "22220000bbbb", "2026-01-01T00:00:00Z");
    ladders(f, far_ns, pages);
    stream(f, "read", 1, gbps);
    stream(f, "write", 1, gbps / 2);
}

/* The point made last stores f32. */
static void to_f32(Fixture *f)
{
    fixture_sql(f,
                "UPDATE points SET axes_json = json_set(axes_json, '$.out', 'f32') WHERE "
                "point_key = '%q'",
                f->key);
}

static void make_required(Fixture *f, const char *name, double naive_ns)
{
    fixture_open(f, in_dir(name));
    fixture_run(f, "33330000bbbb", "2026-01-01T00:00:00Z");
    fixture_block(f, "hash");
    kernel(f, "hash", "naive", false, 256, 8192, naive_ns, 0);
    kernel(f, "hash", "portable", false, 256, 8192, 20000, 0);
    kernel(f, "hash", "avx2", false, 256, 8192, 20000, 0);
    kernel(f, "hash", "avx512", false, 256, 8192, 4000, 0);
    fixture_block(f, "gather");
    kernel(f, "gather", "roof", true, 256, 8192, 7500, 0);
    kernel(f, "gather", "avx2", false, 256, 8192, 10000, 0.2);
    fixture_block(f, "gather"); /* of rows decoded to another format than the chain's */
    kernel(f, "gather", "roof", true, 256, 8192, 9000, 0);
    to_f32(f);
    kernel(f, "gather", "avx2", false, 256, 8192, 9000, 0);
    to_f32(f);
    f->samples = 40; /* enough to know its noise */
    chain(f, "best", 0.1, 1000);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(g_dir)) return -1;
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", g_dir);
    return getenv("ENG_TEST_KEEP") ? 0 : system(command);
}

/* ---- tests ---- */

static void test_kernels(void **state)
{
    (void)state;
    Fixture f;
    make_kernels(&f, "kernels.db", 1, 8, 20);
    fixture_close(&f);
    char *html = page_of("kernels", in_dir("kernels.db"), 5, 0);
    assert_has(html, "gather at 256 tokens: 1 flop/byte, 9.09 GFLOP/s, 9.09 GB/s (avx2)");
    assert_has(html, "The slope is the CPU&#39;s read stream of 20 GB/s, the ceiling its fastest "
                     "product, 50 GFLOP/s. One thread. Hashing");
    assert_has(html, "hash avx2 with 91 % of its roof; gather avx2 with 91 % of its roof; project");
    assert_has(html, "hash 0.11 and 0.11 us (avx2, 8 samples of one call)");
    assert_has(html, "In the largest table (49.5 MiB of rows looked up) avx2 reads 57.6 GB/s, 91 % "
                     "of its roof; in the smallest (3.09 MiB) avx2 reads 79.2 GB/s.");
    assert_has(html, "In a table of 128 MiB on 4 KiB pages reading reaches 25 % of what it reaches "
                     "on 2m pages");
    assert_has(html, "larger pages lies on them. Pages of 1 GiB: no pages of 1 GiB.</p>");
    /* Every point has its expected time and why. */
    assert_has(html, "<td>portable</td><td class=\"number\">400</td><td class=\"number\">400 to "
                     "400</td><td class=\"number\">25</td><td class=\"number\">100</td>"
                     "<td>4 x roof (measured); work that its roof leaves out</td>");
    assert_has(html, ">0.05</td><td>2.2 x bytes (modelled); so is its roof</td>");
    make_kernels(&f, "slower.db", 1.5, 4, 10);
    fixture_close(&f);
    char *slower = page_of("kernels", in_dir("slower.db"), 5, 0);
    static const char *const figures[] = {"roofline", "variants", "percentiles", "table_size",
                                          "page_size"};
    for (int i = 0; i < 5; i++) assert_follows(html, slower, figures[i]);
    eng_free(html);
    eng_free(slower);
}

/* Nothing is said of 1 GiB pages that nobody asked for. */
static void test_pages_not_asked_for(void **state)
{
    (void)state;
    Fixture f;
    make_kernels(&f, "pages.db", 1, 8, 20);
    fixture_sql(&f, "DELETE FROM run_points WHERE point_key IN (SELECT point_key FROM points WHERE "
                    "axes_json ->> '$.pages' = '1g')");
    fixture_close(&f);
    char *html = page_of("kernels", in_dir("pages.db"), 5, 0);
    assert_lacks(html, "Pages of 1 GiB:");
    eng_free(html);
}

static void test_roofs(void **state)
{
    (void)state;
    Fixture f;
    make_roofs(&f, "roofs.db", 100, "2m", 20);
    fixture_close(&f);
    char *html = page_of("roofs", in_dir("roofs.db"), 4, 0);
    assert_has(html, "takes 2 ns in a set of 16 KiB and 100 ns in one of 256 MiB (2m pages)");
    assert_has(html, "Latency leaves the plateau of the last-level cache at ");
    assert_has(html, "At least 100 % of every set above 2 MiB that asked for larger pages lies on");
    assert_has(html, "In 256 MiB: 10 million lines a second with one chain, 200 with 64");
    assert_has(html, "reaches 125 to 125 % of the rate of the best chains; the roof of the gather, "
                     "which stores bf16 output besides, 80 to 80 % (fastest of its family: ");
    assert_has(html, "1 thread: read up to 20 GB/s");
    make_roofs(&f, "slow.db", 300, "2m", 10);
    fixture_close(&f);
    char *slow = page_of("roofs", in_dir("slow.db"), 4, 0);
    static const char *const figures[] = {"latency", "rate", "streams"};
    for (int i = 0; i < 3; i++) assert_follows(html, slow, figures[i]);
    eng_free(html);
    eng_free(slow);
    /* No share of large pages is made up where nobody asked for them. */
    make_roofs(&f, "small.db", 100, "4k", 20);
    fixture_close(&f);
    html = page_of("roofs", in_dir("small.db"), 3, 1); /* chains are counted on large pages */
    assert_lacks(html, "larger pages");
    assert_has(html, "the operating system says 32 MiB.</p>");
    eng_free(html);
}

static void test_required(void **state)
{
    (void)state;
    Fixture f;
    make_required(&f, "required.db", 100000);
    fixture_close(&f);
    char *html = page_of("required", in_dir("required.db"), 0, 0);
    /* portable: 5 of 4; AVX2: 5 of 10; AVX-512: 25 of 15; the gather about as much as it must.
     * The chain's shares are those of the fastest kernel and of bf16. */
    assert_has(html, ">4</td><td>-</td><td>yes</td><td>-</td>");
    assert_has(html, ">10</td><td>-</td><td>no</td><td>-</td>");
    assert_has(html, ">20</td><td>yes, and the goal</td><td>+240 %</td>");
    assert_has(html, ">0.9</td><td>yes, and the goal</td><td>-</td>"); /* f32 */
    assert_has(html, ">0.9</td><td>undecided</td><td>-0.029 % (nd)</td>");
    eng_free(html);
    /* Another reference, other verdicts; and no chain, no worth. */
    make_required(&f, "slow.req.db", 300000);
    fixture_sql(&f, "UPDATE points SET experiment = 'step' WHERE experiment = 'chain'");
    fixture_close(&f);
    html = page_of("required", in_dir("slow.req.db"), 0, 0);
    assert_has(html, ">10</td><td>-</td><td>yes</td><td>-</td>");
    assert_lacks(html, ">no<");
    eng_free(html);
}

/* A device's hash is no portable one, and its gather is drawn beside the CPU's, by its own time. */
static void test_device(void **state)
{
    (void)state;
    Fixture f;
    make_required(&f, "device.db", 100000);
    fixture_sql(&f, "UPDATE points SET backend = 'cuda', variant = 'cuda_reciprocal', axes_json = "
                    "json_set(axes_json, '$.variant', 'cuda_reciprocal') WHERE variant = "
                    "'portable'");
    /* Its roofs are no reference either. */
    fixture_block(&f, "project");
    kernel(&f, "project", "cuda_roof_read", true, 1, 8192, 10, 0);
    on_device(&f, "measured");
    kernel(&f, "project", "library", true, 1, 8192, 2000, 0);
    kernel(&f, "project", "avx512", false, 1, 8192, 1000, 0);
    fixture_close(&f);
    char *html = page_of("required", in_dir("device.db"), 0, 0);
    assert_lacks(html, "<td>cuda_reciprocal</td>");
    assert_has(html, "<td>avx512</td><td>library product</td><td class=\"number\">2</td>");
    eng_free(html);

    make_kernels(&f, "gpu.db", 1, 8, 20);
    for (int tokens = 16; tokens <= 256; tokens *= 16) {
        fixture_block(&f, "gather");
        kernel(&f, "gather", "cuda_roof_t2", true, tokens, 8192, 1.8 * tokens, 0);
        on_device(&f, "measured");
        kernel(&f, "gather", "cuda_decode", false, tokens, 8192, 2.0 * tokens, 0);
        on_device(&f, "measured");
        fixture_block(&f, "gate");
        kernel(&f, "gate", "cuda_onepass", false, tokens, 8192, 1.0 * tokens, 0);
        on_device(&f, "simulated");
    }
    chain(&f, "best", 0.1, 1000);
    chain(&f, "cuda", 0.5, 10);
    on_device(&f, "measured");
    fixture_close(&f);
    html = page_of("kernels", in_dir("gpu.db"), 5, 0);
    assert_has(html, "gather at 256 tokens: 1 flop/byte, 9.09 GFLOP/s, 9.09 GB/s (avx2)");
    assert_has(html, "gather, cuda at 256 tokens: 1 flop/byte, 500 GFLOP/s, 500 GB/s "
                     "(cuda_decode)");
    assert_has(html, "gate, cuda (simulated) at 256 tokens");
    assert_has(html, "gather avx2 with 91 % of its roof; gather cuda_decode with 90 % of its");
    assert_has(html, "a device&#39;s kernels by device time, and its limits are not drawn");
    assert_has(html, "<td>cuda_onepass (simulated)</td>");
    assert_has(html, "gather, cuda 0.032 and 0.032 us (cuda_decode");
    assert_has(html, "kernels of a device by device time. In the largest table (49.5 MiB of rows "
                     "looked up) avx2 reads");
    assert_has(html, "In the only table (49.5 MiB of rows looked up) cuda_decode reads");
    eng_free(html);
    html = page_of("quickstart", in_dir("gpu.db"), 3, 3);
    assert_has(html, "At 256 tokens project takes 80 % of the chain");
    assert_has(html, "(variant avx2). Bandwidth is logical bytes over CPU time; variants of cuda "
                     "read from 3168.00 to 3168.00 GB/s of device time; bars");
    assert_has(html, "gather on cuda 0.002 (16 tokens) and 0.002 (256)");
    assert_has(html, "in the largest batches is project");
    assert_has(html, "<td>gate, cuda (simulated)</td>");
    eng_free(html);
}

/* Steps of a device are drawn in the card beside the CPU's, which differ in more axes; what stores
 * must reach is not asked of them. */
static void test_device_overlap(void **state)
{
    (void)state;
    static const double hidden[] = {0, 0.5, 0.95};
    Fixture f;
    fixture_open(&f, in_dir("card.db"));
    fixture_run(&f, "44440000bbbb", "2026-01-01T00:00:00Z");
    for (int k = 0; k < 5; k++) {
        bool device = k > 1;
        int layer = device ? k - 2 : k;
        fixture_block(&f, "prefetch");
        fixture_point(&f, "prefetch", "", false, 0, NULL,
                      "\"backend\":\"%s\",\"store\":\"memory\",\"residency\":\"warm\","
                      "\"window\":\"backbone\",\"tokens\":16,\"layers\":9,\"hidden\":%d,"
                      "\"table_at\":\"%s\",\"graph\":\"%s\",\"blocks\":0,\"placement\":%d",
                      device ? "cuda" : "cpu", device ? 5120 : 512, device ? "pinned" : "local",
                      device ? "on" : "off", layer);
        if (device) on_device(&f, "measured");
        fixture_metric(&f, "prefetch", "hidden", "share", "wall", device ? hidden[layer] : layer, 0,
                       0);
        if (!device) continue;
        fixture_metric(&f, "prefetch", "window_us", "us", "wall", 50, 0, 0);
        fixture_metric(&f, "prefetch", "fetch_us", "us", "wall", 1, 0, 0);
        fixture_metric(&f, "prefetch", "cost_percent", "%", "wall", 90, 0, 0);
    }
    fixture_close(&f);
    char *html = page_of("card", in_dir("card.db"), 1, 0); /* three panels are empty */
    assert_has(html, "memory, computed is hidden (90 % and more) from layer 1 on; pinned host "
                     "memory, computed, cuda is hidden (90 % and more) from layer 2 on.");
    eng_free(html);
    html = page_of("tiers", in_dir("card.db"), -1, 0);
    assert_has(html, "layer 1 is 50 % exposed from memory, cuda");
    assert_has(html, "nor a fetch shorter than its window");
    eng_free(html);
}

/* Stores and drafts without paced layers: no pace is told. */
static void test_no_pace(void **state)
{
    (void)state;
    Fixture f;
    fixture_open(&f, in_dir("pace.db"));
    fixture_run(&f, "55550000bbbb", "2026-01-01T00:00:00Z");
    for (int tokens = 1; tokens <= 64; tokens *= 64) {
        fixture_block(&f, "tier");
        fixture_point(&f, "tier", "", false, 0, NULL,
                      "\"store\":\"memory\",\"residency\":\"warm\",\"row_format\":\"fp8\","
                      "\"tokens\":%d",
                      tokens);
        fixture_metric(&f, "tier", "wall_us", "us", "wall", tokens, 0, 0);
    }
    for (int k = 0; k < 4; k++) {
        fixture_block(&f, "speculate");
        fixture_point(&f, "speculate", "", false, 0, NULL,
                      "\"store\":\"uring\",\"residency\":\"cold\",\"sequences\":1,\"draft\":5,"
                      "\"acceptance\":%s,\"ahead\":\"%s\",\"layers\":4,\"window\":\"backbone\"",
                      k % 2 ? "0.9" : "0.5", k > 1 ? "on" : "off");
        fixture_metric(&f, "speculate", "cost_percent", "%", "wall", 10 + k, 0, 0);
        fixture_metric(&f, "speculate", "vain_share", "share", "none", 0.5, 0, 0);
    }
    fixture_close(&f);
    char *html = page_of("tiers", in_dir("pace.db"), -1, 0);
    assert_has(html, "This run measured no window.");
    assert_has(html, "5 drafted tokens and one more are verified in a step. ");
    assert_lacks(html, "µs each");
    eng_free(html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels), cmocka_unit_test(test_pages_not_asked_for),
        cmocka_unit_test(test_roofs),   cmocka_unit_test(test_required),
        cmocka_unit_test(test_device),  cmocka_unit_test(test_device_overlap),
        cmocka_unit_test(test_no_pace),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
