/* Merging databases: everything comes in, twice is once, what went on comes up to date, what
 * disagrees is told, and a failure leaves nothing half-merged. */
#include "db_fixture.h"

#include <stdlib.h>

#include "bench/core/db_merge.h"

typedef struct Two {
    Folder folder;
    char other[96];
} Two;

static int make_two(void **state)
{
    void *folder;
    if (make_folder(&folder)) return -1;
    Two *two = calloc(1, sizeof *two);
    two->folder = *(Folder *)folder;
    snprintf(two->other, sizeof two->other, "%.80s/other.db", two->folder.path);
    free(folder);
    *state = two;
    return 0;
}

static EngDb *open_other(const Two *two, EngDbMode mode)
{
    EngDb *db = NULL;
    OK(eng_db_open(two->other, mode, &db, err));
    return db;
}

static EngMergeCounts merge(const Two *two, EngDb *db)
{
    EngMergeCounts counts;
    EngDb *other = open_other(two, ENG_DB_READ);
    OK(eng_db_merge(db, other, &counts, err));
    eng_db_close(other);
    return counts;
}

static int64_t rows_of(EngDb *db)
{
    return number(db, "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM samples) +"
                      " (SELECT count(*) FROM sample_values) + (SELECT count(*) FROM points) +"
                      " (SELECT count(*) FROM segments) + (SELECT count(*) FROM block_points)");
}

static void measure_other(const Two *two, const char *text)
{
    EngDb *db = open_other(two, ENG_DB_RUN);
    put_common(db);
    Run run = begin_run(db, text, false);
    measure_all(db, &run, 6);
    const EngLedgerBlock *block = &run.blocks[0];
    const EngSampleId id = {block->block_id, block->points[0].plan->point_key, 0, 0};
    const int64_t bins[] = {1, 2};
    const EngResidual residual = {.of = "rel", .limit = 1, .pass = true};
    OK(eng_db_put_residual(db, &id, &residual, err));
    OK(eng_db_put_histogram(db, &id, "gate", 0, 0, "linear", 0, 1, bins, 2, err));
    OK(eng_db_put_drops(db, &id, "samples", 3, err));
    OK(eng_db_put_roof(db, block->block_id, block->points[block->n_points - 1].plan->point_key,
                       "cpu", "{}", err));
    sqlite3_exec(eng_db_handle(db),
                 "INSERT INTO artifacts SELECT 'a1', block_id, point_key, 'trace', 't', 1, 'x'"
                 " FROM block_points LIMIT 1;"
                 "INSERT INTO series SELECT block_id, point_key, 'loss', 1, 0.5 FROM block_points"
                 " LIMIT 1",
                 NULL, NULL, NULL);
    free_run(&run);
    eng_db_close(db);
}

static void test_everything_once(void **state)
{
    const Two *two = *state;
    measure_other(two, "[gather]\ntokens = 1, 2\n[reuse]\n");
    EngDb *db = open_db(&two->folder, ENG_DB_RUN);
    put_common(db);
    Run own = begin_run(db, "[gather]\ntokens = 4\n", false);
    measure_all(db, &own, 6);
    EngMergeCounts first = merge(two, db);
    assert_int_equal(first.conflicts, 0);
    assert_int_equal(first.runs, 1);
    assert_true(first.samples > 0);
    int64_t rows = rows_of(db);
    static const char *const full[] = {"residuals", "roofs", "histograms", "series",
                                       "artifacts", "drops", "axis_values"};
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        char sql[96];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", full[i]);
        assert_true(number(db, sql) > 0);
    }
    EngMergeCounts second = merge(two, db);
    assert_int_equal(second.added + second.updated + second.conflicts, 0);
    assert_true(second.same >= first.added); /* and what both had: machine, builds, ... */
    assert_int_equal(rows_of(db), rows);
    assert_int_equal(number(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    /* Points measured there are found by a run here. */
    Run run = begin_run(db, "[gather]\ntokens = 1, 2, 4\n", false);
    assert_int_equal(run.counts.planned, 0);
    assert_int_equal(run.counts.found, 6);
    free_run(&own);
    free_run(&run);
    eng_db_close(db);
}

/* Merged while unfinished, then again when done; and a resumed run here is not set back. */
static void test_going_on(void **state)
{
    const Two *two = *state;
    EngDb *there = open_other(two, ENG_DB_RUN), *db = open_db(&two->folder, ENG_DB_RUN);
    int segment;
    put_common(there);
    Run run = begin_run(there, "[gather]\ntokens = 1, 2\n", false);
    measure_block(there, &run.blocks[0], 6);
    OK(eng_db_block_start(there, run.blocks[1].block_id, err));
    OK(eng_db_segment_start(there, run.blocks[1].block_id, 5, &segment, err));
    put_sample(there, run.blocks[1].block_id, run.blocks[1].points[0].plan, segment, 0, 50, 1);
    EngMergeCounts counts = merge(two, db);
    assert_int_equal(counts.conflicts, 0);
    assert_int_equal(number(db, "SELECT count(*) FROM runs WHERE state = 'interrupted'"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM segments WHERE state = 'running'"), 0);
    assert_int_equal(number(db, "SELECT count(*) FROM blocks WHERE state = 'pending'"), 1);
    OK(eng_db_segment_finish(there, run.blocks[1].block_id, segment, true, NULL, err));
    measure_block(there, &run.blocks[1], 6);
    OK(eng_db_run_finish(there, run.run_id, ENG_RUN_DONE, err));
    counts = merge(two, db);
    assert_int_equal(counts.conflicts, 0);
    assert_true(counts.updated >= 3);
    assert_int_equal(number(db, "SELECT count(*) FROM runs WHERE state = 'done'"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM blocks WHERE state <> 'done'"), 0);
    assert_int_equal(number(db, "SELECT count(*) FROM samples"),
                     number(there, "SELECT count(*) FROM samples"));
    /* The other way round: what is done here stays. */
    sqlite3_exec(eng_db_handle(there), "UPDATE runs SET state = 'interrupted'", NULL, NULL, NULL);
    counts = merge(two, db);
    assert_int_equal(counts.updated + counts.conflicts, 0);
    assert_int_equal(number(db, "SELECT count(*) FROM runs WHERE state = 'done'"), 1);
    free_run(&run);
    eng_db_close(there);
    eng_db_close(db);
}

#define BROKEN                                                                                     \
    "UPDATE segments SET state = 'broken' WHERE block_id = (SELECT min(block_id) FROM segments)"

static void test_conflicts(void **state)
{
    const Two *two = *state;
    measure_other(two, "[gather]\ntokens = 1, 2\n");
    EngDb *db = open_db(&two->folder, ENG_DB_RUN);
    merge(two, db);
    int64_t samples = number(db, "SELECT count(*) FROM samples");
    /* Another lifetime under the same number, with one pair more. */
    EngDb *there = open_other(two, ENG_DB_RUN);
    sqlite3_exec(eng_db_handle(there),
                 "UPDATE segments SET started_utc = 'x' WHERE block_id ="
                 " (SELECT min(block_id) FROM segments);"
                 "INSERT INTO samples SELECT block_id, point_key, segment, 99, position,"
                 " inner_iterations, wall_ns, cpu_ns, traced FROM samples WHERE pair = 0 AND"
                 " block_id = (SELECT min(block_id) FROM segments);"
                 "UPDATE points SET provenance = 'elsewhere' WHERE is_roof = 1",
                 NULL, NULL, NULL);
    int64_t roofs = number(there, "SELECT count(*) FROM points WHERE is_roof = 1");
    int64_t in_segment =
        number(there, "SELECT (SELECT count(*) FROM samples WHERE block_id = m) + (SELECT count(*)"
                      " FROM sample_values WHERE block_id = m) + (SELECT count(*) FROM residuals"
                      " WHERE block_id = m) + (SELECT count(*) FROM histograms WHERE block_id = m)"
                      " + (SELECT count(*) FROM drops WHERE block_id = m)"
                      " FROM (SELECT min(block_id) AS m FROM segments)");
    eng_db_close(there);
    EngMergeCounts counts = merge(two, db);
    assert_int_equal(counts.conflicts, roofs + 1 + in_segment);
    assert_int_equal(counts.added, 0);
    assert_int_equal(counts.n_shown, roofs + 1);
    assert_non_null(strstr(counts.shown[0], "provenance differs"));
    assert_int_equal(number(db, "SELECT count(*) FROM samples"), samples);
    assert_int_equal(number(db, "SELECT count(*) FROM points WHERE provenance = 'elsewhere'"), 0);
    /* The same whichever of the two broke off: samples of two lifetimes never share a segment. */
    for (int ours = 0; ours < 2; ours++) {
        there = open_other(two, ENG_DB_RUN);
        sqlite3_exec(eng_db_handle(there), ours ? "UPDATE segments SET state = 'done'" : BROKEN,
                     NULL, NULL, NULL);
        eng_db_close(there);
        if (ours) sqlite3_exec(eng_db_handle(db), BROKEN, NULL, NULL, NULL);
        counts = merge(two, db);
        assert_int_equal(counts.conflicts, roofs + 1 + in_segment);
        assert_int_equal(number(db, "SELECT count(*) FROM samples"), samples);
        assert_int_equal(number(db, "SELECT count(*) FROM segments WHERE state = 'broken'"), ours);
    }
    eng_db_close(db);
}

/* An experiment gained an axis, and one of two databases that share points knows it: whichever
 * comes into the other, they agree, and the wider row is kept. */
static void test_new_axis(void **state)
{
    const Two *two = *state;
    static const char wide[] = "SELECT count(*) FROM points WHERE axes_json ->> '$.hold' IS NULL";
    measure_other(two, "[gather]\ntokens = 1, 2\n");
    EngDb *db = open_db(&two->folder, ENG_DB_RUN);
    assert_int_equal(merge(two, db).conflicts, 0);
    EngDb *there = open_other(two, ENG_DB_RUN);
    EngSweep *sweep = good_sweep(&wider_catalog, "[gather]\ntokens = 4\n");
    EngPlan *plan = good_plan(sweep, &identity);
    const EngRunSpec spec = {"machine-1", "build-1", 1, "[]", "w", "", plan->plan_key, "{}"};
    char run_id[ENG_KEY_HEX];
    bool resumed;
    EngPlanCounts planned;
    OK(eng_db_run_begin(there, &spec, false, run_id, &resumed, err));
    OK(eng_db_plan_write(there, run_id, plan, false, &planned, err));
    OK(eng_db_run_finish(there, run_id, ENG_RUN_INTERRUPTED, err));
    assert_int_equal(number(there, wide), 0);
    EngMergeCounts counts;
    OK(eng_db_merge(there, db, &counts, err)); /* the older one into the wider */
    assert_int_equal(counts.conflicts + counts.updated + counts.added, 0);
    assert_int_equal(number(there, wide), 0);
    eng_db_close(there);
    assert_true(number(db, wide) >= 8);
    counts = merge(two, db);
    assert_int_equal(counts.conflicts, 0);
    assert_true(counts.updated >= 8);
    assert_int_equal(number(db, wide), 0);
    counts = merge(two, db);
    assert_int_equal(counts.added + counts.updated + counts.conflicts, 0);
    /* Another value of as many axes is none of this. */
    sqlite3_exec(eng_db_handle(db), "UPDATE points SET axes_json = replace(axes_json, '4', '5')",
                 NULL, NULL, NULL);
    assert_true(merge(two, db).conflicts > 0);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
    eng_db_close(db);
}

/* Full disk, and a row that refers to nothing: the database is as before. */
static void test_nothing_half(void **state)
{
    const Two *two = *state;
    EngErr err = {0};
    EngMergeCounts counts;
    measure_other(two, "[gather]\ntokens = 1, 2, 4, 8, 16, 32\n");
    EngDb *db = open_db(&two->folder, ENG_DB_RUN), *other = open_other(two, ENG_DB_READ);
    char pragma[64];
    snprintf(pragma, sizeof pragma, "PRAGMA max_page_count = %d",
             (int)number(db, "PRAGMA page_count") + 3);
    sqlite3_exec(eng_db_handle(db), pragma, NULL, NULL, NULL);
    assert_int_equal(eng_db_merge(db, other, &counts, &err), ENG_IO);
    assert_non_null(strstr(err.text, "disk full"));
    assert_int_equal(rows_of(db), 0);
    eng_db_close(other);
    sqlite3_exec(eng_db_handle(db), "PRAGMA max_page_count = 1000000", NULL, NULL, NULL);
    EngDb *there = open_other(two, ENG_DB_RUN);
    sqlite3_exec(eng_db_handle(there),
                 "PRAGMA foreign_keys = OFF; DELETE FROM points WHERE is_roof = 1", NULL, NULL,
                 NULL);
    eng_db_close(there);
    other = open_other(two, ENG_DB_READ);
    assert_int_equal(eng_db_merge(db, other, &counts, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "other.db"));
    assert_int_equal(rows_of(db), 0);
    eng_db_close(other);
    eng_db_close(db);
}

/* Every allocation fails once; then all of it comes in. */
static void test_no_memory(void **state)
{
    const Two *two = *state;
    measure_other(two, "[gather]\ntokens = 1\n");
    EngDb *db = open_db(&two->folder, ENG_DB_RUN), *other = open_other(two, ENG_DB_READ);
    int failures = 0;
    for (uint64_t at = 1;; at++) {
        EngErr err = {0};
        EngMergeCounts counts;
        uint64_t live = eng_mem_live_blocks();
        eng_mem_fail_at(at);
        EngStatus status = eng_db_merge(db, other, &counts, &err);
        bool reached = eng_mem_fail_at(0) >= at;
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!status) {
            assert_false(reached);
            break;
        }
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_equal(rows_of(db), 0);
        failures++;
    }
    assert_true(failures > 20);
    assert_true(rows_of(db) > 0);
    eng_db_close(other);
    eng_db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_everything_once, make_two, remove_folder),
        cmocka_unit_test_setup_teardown(test_going_on, make_two, remove_folder),
        cmocka_unit_test_setup_teardown(test_conflicts, make_two, remove_folder),
        cmocka_unit_test_setup_teardown(test_new_axis, make_two, remove_folder),
        cmocka_unit_test_setup_teardown(test_nothing_half, make_two, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_memory, make_two, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
