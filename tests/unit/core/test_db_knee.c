/* The knee of the latency ladder: read off curves of known caches, and refused where a ladder does
 * not reach memory or lies on small pages. */
#include "db_fixture.h"

#include "bench/core/db_knee.h"

#define NEAR_NS 14.0
#define FAR_NS  150.0
#define KIB     1024.0

static void exec(EngDb *db, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(eng_db_handle(db), sql, NULL, NULL, &text)) fail_msg("%s: %s", text, sql);
}

static void put_run(EngDb *db, const char *run, const char *started)
{
    char *sql =
        sqlite3_mprintf("PRAGMA foreign_keys = OFF;"
                        "INSERT INTO runs VALUES (%Q, %Q, NULL, 'done', 'machine-1', 'b', 1, '[]', "
                        "'s', '', 'p', '{}');"
                        "INSERT INTO blocks VALUES (%Q, %Q, 0, 'ladder', '', 1, 1, 1, 3, 'done')",
                        run, started, run, run);
    exec(db, sql);
    sqlite3_free(sql);
}

/* Three samples of one working set; their median is ns. As many more of a traced pass are no times.
 */
static void put_point(EngDb *db, const char *run, double bytes, const char *pages, double ns,
                      double huge_share)
{
    char key[96];
    snprintf(key, sizeof key, "%s %.0f %s", run, bytes, pages);
    char *sql = sqlite3_mprintf(
        "INSERT INTO points VALUES (%Q, 'c', 'ladder', '', 'cpu', 'measured', 0, 'v', 'machine-1', "
        "NULL, NULL, NULL, json_object('access', 'chains', 'bytes', %lld, 'chains', 1, 'line', "
        "'64', 'pages', %Q, 'pin', 'none', 'threads', 1), '');"
        "INSERT INTO block_points VALUES (%Q, %Q, 0, 'done', 'measured', NULL, NULL)",
        key, (long long)bytes, pages, run, key);
    exec(db, sql);
    sqlite3_free(sql);
    static const double factors[] = {0.5, 1, 9, 40, 50, 60};
    for (int pair = 0; pair < 6; pair++) {
        sql = sqlite3_mprintf("INSERT INTO samples VALUES (%Q, %Q, 0, %d, 0, 1, 1, 1, %d);"
                              "INSERT INTO sample_values VALUES (%Q, %Q, 0, %d, 'ns_per_load', %f),"
                              "(%Q, %Q, 0, %d, 'huge_share', %f)",
                              run, key, pair, pair >= 3, run, key, pair, ns * factors[pair], run,
                              key, pair, huge_share);
        exec(db, sql);
        sqlite3_free(sql);
    }
}

/* What a cache of `cache` bytes would show. */
static double latency(double bytes, double cache)
{
    if (bytes <= 32 * KIB) return 1;
    if (bytes <= cache) return NEAR_NS;
    return NEAR_NS + (FAR_NS - NEAR_NS) * (1 - cache / bytes);
}

static void put_ladder(EngDb *db, const char *run, const char *pages, double cache, double largest,
                       double huge_share)
{
    for (double bytes = 16 * KIB; bytes <= largest; bytes *= 2)
        put_point(db, run, bytes, pages, latency(bytes, cache), huge_share);
}

static void test_known_caches(void **state)
{
    static const double caches[] = {4 * KIB * KIB, 9 * KIB * KIB, 32 * KIB * KIB, 45 * KIB * KIB};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        Folder *folder = NULL;
        EngCacheKnee knee;
        assert_int_equal(make_folder((void **)&folder), 0);
        EngDb *db = open_db(folder, ENG_DB_WRITE);
        put_run(db, "r1", "2026-01-01");
        put_ladder(db, "r1", "2m", caches[i], 1024 * KIB * KIB, 1);
        put_ladder(db, "r1", "4k", caches[i] / 2, 1024 * KIB * KIB, 0); /* left out */
        OK(eng_db_cache_knee(db, "machine-1", &knee, err));
        /* Sets come in powers of two, and the far latency is not quite reached. */
        assert_true((double)knee.bytes > 0.75 * caches[i] && (double)knee.bytes < 1.1 * caches[i]);
        assert_int_equal(knee.points, 17);
        assert_string_equal(knee.pages, "2m");
        assert_true(fabs(knee.near_ns - NEAR_NS) < 10);
        EngErr err = {0};
        assert_int_equal(eng_db_cache_knee(db, "machine-2", &knee, &err), ENG_NOT_FOUND);
        eng_db_close(db);
        remove_folder((void **)&folder);
    }
    (void)state;
}

static void test_latest_counts(void **state)
{
    EngCacheKnee knee;
    EngDb *db = open_db(*state, ENG_DB_WRITE);
    put_run(db, "r1", "2026-01-01");
    put_ladder(db, "r1", "2m", 4 * KIB * KIB, 1024 * KIB * KIB, 1);
    put_run(db, "r2", "2026-01-02");
    put_ladder(db, "r2", "2m", 32 * KIB * KIB, 1024 * KIB * KIB, 1);
    OK(eng_db_cache_knee(db, "machine-1", &knee, err));
    assert_true(knee.bytes > (int64_t)24 << 20);
    eng_db_close(db);
}

static void test_refusals(void **state)
{
    EngCacheKnee knee;
    EngErr err = {0};
    EngDb *db = open_db(*state, ENG_DB_WRITE);
    assert_int_equal(eng_db_cache_knee(db, "machine-1", &knee, &err), ENG_NOT_FOUND);
    put_run(db, "r1", "2026-01-01");
    put_ladder(db, "r1", "2m", 32 * KIB * KIB, 64 * KIB * KIB, 1); /* not four times the cache */
    assert_int_equal(eng_db_cache_knee(db, "machine-1", &knee, &err), ENG_NOT_FOUND);
    put_run(db, "r2", "2026-01-02"); /* asked for large pages and got none */
    put_ladder(db, "r2", "1g", 4 * KIB * KIB, 1024 * KIB * KIB, 0);
    assert_int_equal(eng_db_cache_knee(db, "machine-1", &knee, &err), ENG_NOT_FOUND);
    eng_db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_caches),
        cmocka_unit_test_setup_teardown(test_latest_counts, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_refusals, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
