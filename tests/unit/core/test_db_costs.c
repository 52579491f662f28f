/* Costs and stopping, both read from a ledger's samples: what a lifetime costs beside its samples,
 * and whether a point of a block has enough of them. */
#include "db_fixture.h"

#include "bench/core/db_costs.h"
#include "bench/core/db_stopping.h"

static void run_sql(EngDb *db, const char *sql)
{
    if (sqlite3_exec(eng_db_handle(db), sql, NULL, NULL, NULL))
        fail_msg("%s", sqlite3_errmsg(eng_db_handle(db)));
}

static double overhead(EngDb *db, const char *experiment)
{
    EngOverheads fresh = {0};
    double ns, again;
    OK(eng_db_overhead_ns(&fresh, db, experiment, &ns, err));
    OK(eng_db_overhead_ns(&fresh, NULL, experiment, &again, err)); /* kept, not read again */
    assert_true(ns == again);
    return ns;
}

static void test_overhead(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    EngRunStatus status;
    put_common(db);
    Run run = begin_run(db, "[gather]\nvariant = fast, portable\ntokens = 1, 2\n", false);
    assert_true(overhead(NULL, "gather") == ENG_DEFAULT_OVERHEAD_NS);
    assert_true(overhead(db, "gather") == ENG_DEFAULT_OVERHEAD_NS);
    /* Before anything is measured the time left has the set-up of 2 blocks of 4 points 3 times. */
    OK(eng_db_status(db, run.run_id, run.arena, &status, err));
    assert_true((double)status.remaining_estimate_ns >= 2 * 4 * 3 * ENG_DEFAULT_OVERHEAD_NS);
    measure_block(db, &run.blocks[0], 3);
    run_sql(db, "UPDATE segments SET started_utc = '2026-01-01T00:00:00.000Z',"
                " ended_utc = '2026-01-01T00:00:02.000Z'");
    run_sql(db, "UPDATE samples SET wall_ns = 100000000"); /* 12 samples: 1.2 s of the 2 s */
    assert_true(fabs(overhead(db, "gather") - 0.8e9 / 4) < 1e6);
    /* Another experiment has none of its own. */
    assert_true(fabs(overhead(db, "reuse") - 0.8e9 / 4) < 1e6);
    run_sql(db, "UPDATE segments SET state = 'broken'");
    assert_true(overhead(db, "gather") == ENG_DEFAULT_OVERHEAD_NS);
    free_run(&run);
    eng_db_close(db);
}

/* Two lifetimes of 20 rounds: steady times, and a roof that is steady or not. */
static EngStop stop_of(EngDb *db, const Run *run, double roof_spread, bool wall)
{
    const EngLedgerBlock *block = &run->blocks[0];
    EngStop stop;
    run_sql(db, "DELETE FROM sample_values; DELETE FROM samples; DELETE FROM segments");
    for (int s = 0; s < 2; s++) {
        int segment;
        OK(eng_db_segment_start(db, block->block_id, 1, &segment, err));
        for (int i = 0; i < block->n_points; i++)
            for (int pair = 0; pair < 20; pair++) {
                double spread = block->points[i].plan->is_roof ? roof_spread * (pair % 5) : 0;
                put_sample(db, block->block_id, block->points[i].plan, segment, pair,
                           (int64_t)(1e6 * (1 + spread)), 1);
            }
    }
    OK(eng_db_stop(db, block, block->points[0].plan, wall ? "wall" : "cpu", &stop, err));
    return stop;
}

static void test_stop(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    Run run = begin_run(db, "[gather]\nvariant = fast\nsegments = 9\nprecision = 1%\n", false);
    const EngLedgerBlock *block = &run.blocks[0];
    EngStop stop;
    OK(eng_db_stop(db, block, block->points[0].plan, "cpu", &stop, err));
    assert_int_equal(stop, ENG_STOP_NOT); /* no sample yet */
    assert_int_equal(stop_of(db, &run, 0, false), ENG_STOP_PRECISE);
    assert_int_equal(stop_of(db, &run, 0, true), ENG_STOP_PRECISE);
    assert_int_equal(stop_of(db, &run, 0.1, false), ENG_STOP_NOT); /* its ratio is not known */
    /* Traced samples are no times. */
    stop_of(db, &run, 0, false);
    run_sql(db, "UPDATE samples SET traced = 1 WHERE pair >= 10");
    OK(eng_db_stop(db, block, block->points[0].plan, "cpu", &stop, err));
    assert_int_equal(stop, ENG_STOP_NOT);
    free_run(&run);
    eng_db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_overhead, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_stop, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
