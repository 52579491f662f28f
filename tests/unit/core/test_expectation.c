/* Expectation: the largest term wins, a faster roof bounds it, and what differs is explained; rates
 * are read from the points of ladder, stream and project, those of the same run first. */
#include "db_fixture.h"

#include "bench/core/db_export.h"

#include "bench/core/db_expectation.h"

static EngExpectation expect(EngWork work, EngRates rates, double measured, double roof)
{
    EngExpectation e;
    const EngRoofWork as_much = {roof, work.moved_bytes};
    eng_expect(&work, &rates, measured, &as_much, &e);
    return e;
}

static void test_terms(void **state)
{
    (void)state;
    const EngRates rates = {.gbps = 10, .gflops = 100, .ns_per_load = 5, .ns_per_load_4k = 12};
    /* 6400 bytes of lines: 100 loads; 500 ns on one thread, 250 on two. */
    EngExpectation e = expect((EngWork){0, 1000, 6400, 1, 1}, rates, 510, NAN);
    assert_int_equal(e.term, ENG_TERM_LATENCY);
    assert_true(e.counted && e.expected_ns == 500);
    assert_string_equal(e.why, "latency (counted)");
    e = expect((EngWork){0, 1000, 6400, 1, 2}, rates, 1000, NAN);
    assert_true(e.expected_ns == 250);
    assert_string_equal(e.why, "4 x latency (counted); no term explains it");
    e = expect((EngWork){0, 1000, 6400, 1, 1}, rates, 200, NAN);
    assert_string_equal(e.why, "0.4 x latency (counted); lines overlap, or cached");
    /* 1250 ns are what 4 KiB pages cost (1200). */
    e = expect((EngWork){0, 1000, 6400, NAN, 1}, rates, 1250, NAN);
    assert_int_equal(e.term, ENG_TERM_PAGES);
    assert_string_equal(e.why, "2.5 x latency (counted); page walks (counted)");
    /* ... and what is expected of a table that lies on them. */
    e = expect((EngWork){0, 1000, 6400, 0, 1}, rates, 1250, NAN);
    assert_int_equal(e.term, ENG_TERM_PAGES);
    assert_true(e.expected_ns == 1200);
    assert_string_equal(e.why, "pages (counted)");
    e = expect((EngWork){0, 50000, 6400, 1, 1}, rates, 2500, NAN);
    assert_int_equal(e.term, ENG_TERM_BYTES);
    assert_true(e.expected_ns == 5000 && !e.counted);
    assert_string_equal(e.why, "0.5 x bytes (modelled); cached");
    e = expect((EngWork){1e6, 50000, NAN, 1, 1}, rates, 10000, NAN);
    assert_int_equal(e.term, ENG_TERM_FLOPS);
    assert_string_equal(e.why, "flops (modelled)");
    e = expect((EngWork){1e6, 80000, NAN, 1, 1}, rates, 18000, NAN);
    assert_string_equal(e.why, "1.8 x flops (modelled); terms one after the other");
}

/* What the roof does can be done: no more than its time is expected. */
static void test_roof_bounds(void **state)
{
    (void)state;
    const EngRates rates = {.gbps = 10, .gflops = 100, .ns_per_load = 5, .ns_per_load_4k = 12};
    const EngWork work = {0, 1000, 6400, 1, 1};
    EngExpectation e = expect(work, rates, 210, 200); /* latency 500 */
    assert_int_equal(e.term, ENG_TERM_ROOF);
    assert_true(e.expected_ns == 200 && !e.counted);
    assert_string_equal(e.why, "roof (measured)");
    e = expect(work, rates, 1600, 200);
    assert_int_equal(e.term, ENG_TERM_ROOF);
    assert_string_equal(e.why, "8 x roof (measured); work that its roof leaves out");
    const EngWork product = {1000, 1000, 6400, 1, 1};
    e = expect(product, rates, 1600, 200);
    assert_int_equal(e.term, ENG_TERM_FLOPS);
    assert_string_equal(e.why, "8 x roof (measured); flops (modelled)");
    /* A roof that moves more bytes is no such witness. */
    EngRoofWork more = {200, 2000};
    eng_expect(&work, &rates, 1600, &more, &e);
    assert_string_equal(e.why, "8 x roof (measured); no term explains it");
    /* Slower than the model: the roof leaves the expectation alone and explains the rest. */
    e = expect(work, rates, 960, 900);
    assert_int_equal(e.term, ENG_TERM_LATENCY);
    assert_true(e.expected_ns == 500);
    assert_string_equal(e.why, "1.9 x latency (counted); so is its roof");
    e = expect(work, rates, 1500, 900);
    assert_string_equal(e.why, "3 x latency (counted); roof 1.8 x, work beyond it");
    e = expect(product, rates, 150000, 60000);
    assert_string_equal(e.why, "300 x latency (counted); roof 120 x, flops (modelled)");
    /* A product that beats its roof: the roof explains nothing. */
    e = expect((EngWork){1e5, 10000, NAN, NAN, 1}, rates, 3000, 6000);
    assert_string_equal(e.why, "3 x bytes (modelled); flops (modelled)");
}

/* The table of `engram run` has 100 columns: whatever the work and the times, this much is left. */
static void test_why_is_short(void **state)
{
    (void)state;
    const EngRates rates = {.gbps = 10, .gflops = 100, .ns_per_load = 5, .ns_per_load_4k = 12};
    const double flops[] = {NAN, 1e4, 1e6}, bytes[] = {100, 5000, 80000}, huge[] = {0, 1, NAN};
    size_t longest = 0;
    for (int i = 0; i < 27; i++)
        for (double ns = 1; ns < 1e6; ns *= 1.3)
            for (double roof = 1; roof < 1e6; roof *= 1.3) {
                const EngWork work = {flops[i % 3], bytes[i / 3 % 3], 6400, huge[i / 9], 1};
                size_t length = strlen(expect(work, rates, ns, roof).why);
                if (length > longest) longest = length;
            }
    assert_in_range(longest, 30, ENG_WHY_COLUMNS);
}

static void test_unknown(void **state)
{
    (void)state;
    const EngRates none = {NAN, NAN, NAN, NAN};
    EngExpectation e = expect((EngWork){1e6, 50000, 6400, 1, 1}, none, 800, 400);
    assert_true(e.expected_ns == 400 && e.ratio == 2);
    assert_string_equal(e.why, "2 x roof (measured); work that its roof leaves out");
    e = expect((EngWork){NAN, NAN, NAN, NAN, 1}, none, 800, 400);
    assert_int_equal(e.term, ENG_TERM_ROOF);
    assert_string_equal(e.why, "2 x roof (measured); work that its roof leaves out");
    /* Flops are known, bytes are not: these may be what takes the time. */
    const EngRates products = {NAN, 100, NAN, NAN};
    e = expect((EngWork){1e4, NAN, NAN, NAN, 1}, products, 800, 100);
    assert_string_equal(e.why, "8 x roof (measured); work that its roof leaves out");
    e = expect((EngWork){NAN, NAN, NAN, NAN, 1}, none, 800, NAN);
    assert_int_equal(e.term, ENG_TERM_NONE);
    assert_true(isnan(e.expected_ns));
    assert_string_equal(e.why, "");
}

/* A measured point of an experiment by hand: one metric, one value. */
static void put_point(EngDb *db, const char *experiment, const char *key, const char *axes,
                      const char *metric, double value)
{
    char *sql = sqlite3_mprintf(
        "INSERT OR IGNORE INTO metrics VALUES ('%q', '%q', '', 1, 'cpu', '');"
        "INSERT INTO points VALUES ('%q', '%q', '%q', '', 'cpu', 'measured', 0, 'v', 'machine-1',"
        " NULL, NULL, NULL, '%q', 'test');"
        "INSERT INTO block_points (block_id, point_key, ordinal, state, outcome) SELECT block_id,"
        " '%q', 99, 'done', 'measured' FROM blocks LIMIT 1;"
        "INSERT INTO run_points SELECT run_id, '%q', block_id FROM blocks LIMIT 1;"
        "INSERT INTO samples SELECT block_id, '%q', 0, 0, 0, 1, 1, 1, 0 FROM blocks LIMIT 1;"
        "INSERT INTO sample_values SELECT block_id, '%q', 0, 0, '%q', %f FROM blocks LIMIT 1",
        experiment, metric, key, key, experiment, axes, key, key, key, key, metric, value);
    char *error = NULL;
    if (sqlite3_exec(eng_db_handle(db), sql, NULL, NULL, &error)) fail_msg("%s", error);
    sqlite3_free(sql);
}

static void put_metric(EngDb *db, const char *experiment, const char *key, const char *metric,
                       double value)
{
    char *sql = sqlite3_mprintf(
        "INSERT OR IGNORE INTO metrics VALUES ('%q', '%q', '', 1, 'cpu', '');"
        "INSERT INTO sample_values SELECT block_id, '%q', 0, 0, '%q', %f FROM blocks LIMIT 1",
        experiment, metric, key, metric, value);
    if (sqlite3_exec(eng_db_handle(db), sql, NULL, NULL, NULL)) fail_msg("%s", sql);
    sqlite3_free(sql);
}

static EngStatus keep(void *context, const char *text, size_t n, EngErr *failed)
{
    eng_str_add_n(context, text, n);
    return eng_str_status(context, failed);
}

static bool export_has(EngDb *db, const char *run, const char *text)
{
    EngStr out = {0};
    int64_t n;
    const EngExportOptions options = {run, "gather", ENG_ROWS_CSV, false};
    OK(eng_db_export(db, &options, keep, &out, &n, err));
    bool has = strstr(out.text, text) != NULL;
    eng_str_free(&out);
    return has;
}

#define LADDER(pages, bytes, chains)                                                               \
    "{\"access\":\"chains\",\"bytes\":" bytes ",\"chains\":" chains                                \
    ",\"line\":\"64\",\"pages\":\"" pages "\",\"threads\":1}"

static void test_rates(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    EngArena *arena = eng_arena_create();
    EngRateTable *table;
    EngExpectation e;
    int segment;
    put_common(db);
    Run run = begin_run(db, "[gather]\n", false);
    OK(eng_db_segment_start(db, run.blocks[0].block_id, 1, &segment, err));
    EngPointFacts facts = eng_no_facts;
    eng_point_facts_add(&facts, "line_bytes", 6400, 50);
    eng_point_facts_add(&facts, "working_set_bytes", 4096, NAN);
    eng_point_facts_add(&facts, "cpu_us", 1, NAN);
    OK(eng_db_rates(db, "machine-1", arena, &table, err));
    eng_expect_point(table, run.run_id, &facts, &e);
    assert_int_equal(e.term, ENG_TERM_ROOF);
    assert_true(e.expected_ns == 500);

    facts.percent_of_roof = 1000;
    put_point(db, "ladder", "l1", LADDER("2m", "1024", "8"), "ns_per_load", 1);
    put_point(db, "ladder", "l2", LADDER("2m", "4096", "1"), "ns_per_load", 90);
    put_point(db, "ladder", "l3", LADDER("2m", "4096", "8"), "ns_per_load", 8);
    put_point(db, "ladder", "l4", LADDER("2m", "9999", "8"), "ns_per_load", 30);
    put_point(db, "ladder", "l5", LADDER("4k", "4096", "8"), "ns_per_load", 20);
    put_point(db, "stream", "s1", "{\"bytes\":4096,\"threads\":1}", "gbps", 5);
    OK(eng_db_rates(db, "machine-1", arena, &table, err));
    eng_expect_point(table, run.run_id, &facts, &e);
    assert_int_equal(e.term, ENG_TERM_LATENCY); /* 100 lines x 8 ns */
    assert_true(e.expected_ns == 800 && e.terms_ns[ENG_TERM_PAGES] == 2000);
    facts.working_set_bytes = 2048; /* half-way between 1024 and 4096, by ratio */
    eng_expect_point(table, run.run_id, &facts, &e);
    assert_float_equal(e.expected_ns, 450, 1e-6);
    facts.working_set_bytes = 1e9; /* beyond the ladder: its largest */
    eng_expect_point(table, run.run_id, &facts, &e);
    assert_true(e.expected_ns == 3000);
    eng_point_facts_add(&facts, "moved_bytes", 20000, NAN);
    eng_expect_point(table, run.run_id, &facts, &e);
    assert_int_equal(e.term, ENG_TERM_BYTES);
    assert_true(e.expected_ns == 4000);
    /* A run's own rates come first; one that measured none takes the best of all. */
    put_point(db, "stream", "s3", "{\"bytes\":4096,\"threads\":1}", "gbps", 1000);
    sqlite3_exec(eng_db_handle(db), "UPDATE points SET backend = 'cuda' WHERE point_key = 's3'",
                 NULL, NULL, NULL); /* no rate of this processor */
    put_point(db, "stream", "s2", "{\"bytes\":4096,\"threads\":1}", "gbps", 10);
    if (sqlite3_exec(eng_db_handle(db),
                     "INSERT INTO runs SELECT 'other', started_utc, ended_utc, state, machine_id,"
                     " build_id, seed, command_json, sweep_name, sweep_text, plan_key,"
                     " environment_json FROM runs LIMIT 1;"
                     "UPDATE run_points SET run_id = 'other' WHERE point_key = 's2'",
                     NULL, NULL, NULL))
        fail_msg("%s", sqlite3_errmsg(eng_db_handle(db)));
    OK(eng_db_rates(db, "machine-1", arena, &table, err));
    facts.line_bytes = NAN;
    eng_expect_point(table, run.run_id, &facts, &e);
    assert_true(e.expected_ns == 4000);
    eng_expect_point(table, "other", &facts, &e);
    assert_true(e.expected_ns == 2000);
    eng_expect_point(table, "third", &facts, &e);
    assert_true(e.expected_ns == 2000);
    /* An export has them for kernels of the processor alone. */
    put_point(db, "gather", "g", "{\"threads\":1}", "cpu_us", 1);
    put_metric(db, "gather", "g", "moved_bytes", 20000);
    assert_true(export_has(db, run.run_id, ",4,0.25 x bytes (modelled)"));
    sqlite3_exec(eng_db_handle(db), "UPDATE points SET backend = 'cuda' WHERE point_key = 'g'",
                 NULL, NULL, NULL);
    assert_false(export_has(db, run.run_id, "bytes (modelled)"));
    /* Another machine's rates are not ours. */
    OK(eng_db_rates(db, "machine-2", arena, &table, err));
    eng_expect_point(table, run.run_id, &facts, &e);
    assert_int_equal(e.term, ENG_TERM_ROOF);
    assert_int_equal(eng_threads_of("{\"threads\":4}"), 4);
    assert_int_equal(eng_threads_of("{}"), 1);
    eng_arena_destroy(arena);
    free_run(&run);
    eng_db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_roof_bounds),
        cmocka_unit_test(test_why_is_short),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test_setup_teardown(test_rates, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
