/* The ledger: plans written once, points found again, runs that go on after a kill, and the summary
 * against medians computed here. */
#include "db_fixture.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "bench/core/stats.h"

static const char small_sweep[] = "[sweep]\npairs = 6\nsegments = 2\n"
                                  "[gather]\ntokens = 1, 2\nheads = 8, 5\n[reuse]\n";

static void test_first_run(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    Run run = begin_run(db, small_sweep, false);
    assert_false(run.resumed);
    /* 2 tokens x 2 variants pending, as many skipped (heads 5), and the counted one. */
    assert_int_equal(run.counts.planned, 5);
    assert_int_equal(run.counts.skipped, 4);
    assert_int_equal(run.counts.found, 0);
    assert_int_equal(run.counts.blocks, 3);
    assert_int_equal(run.n_blocks, 3);
    assert_int_equal(number(db, "SELECT count(*) FROM blocks"), 5);
    assert_int_equal(number(db, "SELECT count(*) FROM block_points WHERE outcome = 'skipped' AND "
                                "reason = 'heads 5 does not divide 24'"),
                     4);
    assert_int_equal(number(db, "SELECT count(*) FROM points WHERE is_roof = 1"), 4);
    assert_int_equal(number(db, "SELECT count(*) FROM axis_values WHERE axis = 'tokens' AND"
                                " number = 2 AND is_default = 0"),
                     2 + 2 + 2); /* heads 8 and 5, roofs of heads 8 */
    for (int i = 0; i < run.n_blocks; i++) {
        const EngLedgerBlock *block = &run.blocks[i];
        bool counted = block->experiment == &reuse;
        assert_int_equal(block->segments_wanted, counted ? 1 : 2);
        assert_int_equal(block->pairs_wanted, counted ? 1 : 6);
        assert_int_equal(block->n_points, counted ? 1 : 4);
        assert_int_equal(block->n_pending, counted ? 1 : 2);
        assert_int_equal(block->settings.pairs, 6);
        assert_string_equal(block->compare_axis, counted ? "" : "variant");
        for (int k = 0; k < block->n_points; k++)
            assert_int_equal(block->points[k].plan->is_roof, k >= 2);
    }
    measure_all(db, &run, 6);
    assert_int_equal(number(db, "SELECT count(*) FROM blocks WHERE state <> 'done'"), 0);
    assert_int_equal(number(db, "SELECT count(*) FROM block_points WHERE state <> 'done'"), 0);
    free_run(&run);
    eng_db_close(db);
}

static int64_t foreign_key_errors(EngDb *db)
{
    return number(db, "SELECT count(*) FROM pragma_foreign_key_check");
}

static void test_found_again(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    Run first = begin_run(db, small_sweep, false);
    measure_all(db, &first, 6);
    int64_t samples = number(db, "SELECT count(*) FROM samples");
    /* The same sweep: nothing to do, but the new run owns everything, roofs too. */
    Run second = begin_run(db, small_sweep, false);
    assert_false(second.resumed);
    assert_string_not_equal(second.run_id, first.run_id);
    assert_int_equal(second.counts.found, 9);
    assert_int_equal(second.counts.planned + second.counts.skipped, 0);
    assert_int_equal(second.n_blocks, 0);
    assert_int_equal(number(db, "SELECT count(*) FROM run_points"), 2 * (9 + 4));
    OK(eng_db_run_finish(db, second.run_id, ENG_RUN_DONE, err));
    /* A superset plans what is missing, with its roofs. */
    Run third = begin_run(db, "[gather]\ntokens = 1, 2, 4\n", false);
    assert_int_equal(third.counts.found, 4);
    assert_int_equal(third.counts.planned, 2);
    assert_int_equal(third.n_blocks, 1);
    assert_int_equal(third.blocks[0].n_points, 4);
    measure_all(db, &third, 6);
    /* --fresh plans it all. */
    Run fourth = begin_run(db, small_sweep, true);
    assert_int_equal(fourth.counts.found, 0);
    assert_int_equal(fourth.counts.planned, 5);
    assert_int_equal(fourth.counts.skipped, 4);
    assert_int_equal(number(db, "SELECT count(*) FROM samples"), samples + 4 * 6);
    assert_int_equal(foreign_key_errors(db), 0);
    free_run(&first);
    free_run(&second);
    free_run(&third);
    free_run(&fourth);
    eng_db_close(db);
}

static void test_failures_are_tried_again(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    Run run = begin_run(db, "[gather]\n", false);
    const EngLedgerBlock *block = &run.blocks[0];
    EngErr e = {0};
    /* A block with an open point cannot be closed, and a failure needs a reason. */
    assert_int_equal(eng_db_block_done(db, block->block_id, &e), ENG_INTERNAL);
    assert_int_equal(eng_db_point_done(db, block->block_id, block->points[0].plan->point_key,
                                       ENG_OUTCOME_FAILED, NULL, NULL, &e),
                     ENG_INTERNAL);
    OK(eng_db_point_done(db, block->block_id, block->points[0].plan->point_key, ENG_OUTCOME_FAILED,
                         "signal 11", NULL, err));
    OK(eng_db_point_done(db, block->block_id, block->points[1].plan->point_key, ENG_OUTCOME_WRONG,
                         "residual 1 > 0", NULL, err));
    OK(eng_db_block_done(db, block->block_id, err));
    OK(eng_db_run_finish(db, run.run_id, ENG_RUN_DONE, err));
    assert_int_equal(number(db, "SELECT count(*) FROM block_points WHERE reason = 'no pair taken'"),
                     2); /* the roofs */
    EngRunStatus status;
    OK(eng_db_status(db, NULL, run.arena, &status, err));
    assert_int_equal(status.total.failed, 1);
    assert_int_equal(status.total.wrong, 1);
    assert_int_equal(status.n_failures, 2);
    assert_int_equal(number(db, "SELECT count(*) FROM v_summary WHERE metric IS NULL"), 4);
    Run again = begin_run(db, "[gather]\n", false);
    assert_int_equal(again.counts.planned, 2);
    assert_int_equal(again.counts.found, 0);
    free_run(&run);
    free_run(&again);
    eng_db_close(db);
}

/* Every point of a run is skipped by its worker, as for a device that is not there. */
static void skip_all(EngDb *db, const Run *run)
{
    for (int i = 0; i < run->n_blocks; i++) {
        const EngLedgerBlock *block = &run->blocks[i];
        for (int k = 0; k < block->n_points; k++)
            if (!block->points[k].plan->is_roof)
                OK(eng_db_point_done(db, block->block_id, block->points[k].plan->point_key,
                                     ENG_OUTCOME_SKIPPED, "no device", NULL, err));
        OK(eng_db_block_done(db, block->block_id, err));
    }
    OK(eng_db_run_finish(db, run->run_id, ENG_RUN_DONE, err));
}

/* What a point lacked once may be there today: a skip is found only where the plan skips, too
 * (test_found_again), and a run that goes on takes over what was measured meanwhile alone. */
static void test_skips_are_tried_again(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    const char *text = "[gather]\nvariant = fast\n";
    put_common(db);
    Run first = begin_run(db, text, false);
    OK(eng_db_run_finish(db, first.run_id, ENG_RUN_INTERRUPTED, err));
    Run later[4]; /* skipped, measured, skipped; what they left is found */
    for (int i = 0; i < 3; i++) {
        usleep(2000); /* runs are told apart by their start */
        later[i] = begin_run(db, text, true);
        if (i == 1)
            measure_all(db, &later[i], 6);
        else
            skip_all(db, &later[i]);
        if (i) continue;
        Run again = begin_run(db, text, false);
        assert_true(again.resumed);
        assert_int_equal(again.counts.planned, 1);
        OK(eng_db_run_finish(db, again.run_id, ENG_RUN_INTERRUPTED, err));
        free_run(&again);
        again = begin_run(db, "[gather]\nvariant = fast\ntokens = 64, 2\n", false);
        assert_int_equal(again.counts.planned, 2);
        OK(eng_db_run_finish(db, again.run_id, ENG_RUN_DONE, err));
        free_run(&again);
    }
    Run again = begin_run(db, text, false);
    assert_true(again.resumed);
    assert_int_equal(again.counts.found, 1);
    OK(eng_db_run_finish(db, again.run_id, ENG_RUN_DONE, err));
    later[3] = begin_run(db, text, false);
    assert_false(later[3].resumed);
    assert_int_equal(later[3].counts.found, 1);
    assert_int_equal(number(db, "SELECT count(*) FROM run_points l JOIN block_points USING"
                                " (block_id, point_key) JOIN points p USING (point_key)"
                                " WHERE p.is_roof = 0 AND p.point_key IN (SELECT point_key FROM"
                                " samples) AND outcome = 'measured'"),
                     3);
    assert_int_equal(foreign_key_errors(db), 0);
    for (int i = 0; i < 4; i++) free_run(&later[i]);
    free_run(&again);
    free_run(&first);
    eng_db_close(db);
}

/* A child measures a block and a half, is killed inside a transaction, and the run goes on. */
static void test_killed_run(void **state)
{
    const Folder *folder = *state;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        EngDb *db = open_db(folder, ENG_DB_RUN);
        int segment;
        put_common(db);
        Run run = begin_run(db, "[gather]\ntokens = 1, 2\n", false);
        measure_block(db, &run.blocks[0], 6);
        const EngLedgerBlock *block = &run.blocks[1];
        OK(eng_db_block_start(db, block->block_id, err));
        OK(eng_db_segment_start(db, block->block_id, 5, &segment, err));
        OK(eng_db_point_start(db, block->block_id, block->points[0].plan->point_key, err));
        for (int pair = 0; pair < 3; pair++)
            put_sample(db, block->block_id, block->points[0].plan, segment, pair, 50, 1);
        OK(eng_db_begin(db, err));
        put_sample(db, block->block_id, block->points[0].plan, segment, 3, 50, 1);
        if (write(ready[1], "x", 1) == 1) pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);

    EngDb *db = open_db(folder, ENG_DB_RUN);
    Run run = begin_run(db, "[gather]\ntokens = 1, 2\n", false);
    assert_true(run.resumed);
    assert_int_equal(number(db, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(run.n_blocks, 1);
    const EngLedgerBlock *block = &run.blocks[0];
    assert_int_equal(block->segments_broken, 1);
    assert_int_equal(block->segments_done, 0);
    assert_int_equal(block->points[0].state, ENG_POINT_PENDING);
    assert_int_equal(block->points[0].n_samples, 3); /* the one in flight is lost, no other */
    assert_int_equal(number(db, "SELECT count(*) FROM segments WHERE state = 'broken'"), 1);
    int segment;
    OK(eng_db_segment_start(db, block->block_id, 6, &segment, err));
    assert_int_equal(segment, 1);
    OK(eng_db_segment_finish(db, block->block_id, segment, true, NULL, err));
    measure_all(db, &run, 6);
    /* Done: the next call starts a new run that finds it all. */
    Run next = begin_run(db, "[gather]\ntokens = 1, 2\n", false);
    assert_false(next.resumed);
    assert_int_equal(next.counts.found, 4);
    free_run(&run);
    free_run(&next);
    eng_db_close(db);
}

/* What another run measured meanwhile is not measured again when the first goes on. */
static void test_resume_adopts(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    Run first = begin_run(db, "[gather]\ntokens = 1, 2, 4\n", false);
    const char *half = NULL; /* a block with a sample of its own keeps its point */
    int segment;
    for (int i = 0; i < 3; i++) {
        const EngLedgerBlock *block = &first.blocks[i];
        if (eng_point_int(&block->points[0].plan->point, "tokens") != 2) continue;
        OK(eng_db_segment_start(db, block->block_id, 5, &segment, err));
        put_sample(db, block->block_id, block->points[0].plan, segment, 0, 50, 1);
        half = block->block_id;
    }
    OK(eng_db_run_finish(db, first.run_id, ENG_RUN_INTERRUPTED, err));
    usleep(2000); /* runs are told apart by their start */
    Run second = begin_run(db, "[gather]\ntokens = 1, 2\n", false);
    assert_int_equal(second.counts.planned, 4);
    measure_all(db, &second, 6);
    Run again = begin_run(db, "[gather]\ntokens = 1, 2, 4\n", false);
    assert_true(again.resumed);
    assert_string_equal(again.run_id, first.run_id);
    /* tokens 1 both, tokens 2 the one without a sample */
    assert_int_equal(again.counts.found, 3);
    assert_int_equal(again.counts.planned, 3);
    assert_int_equal(again.n_blocks, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(again.blocks[i].n_pending, strcmp(again.blocks[i].block_id, half) ? 2 : 1);
    measure_all(db, &again, 6);
    assert_int_equal(foreign_key_errors(db), 0);
    assert_int_equal(number(db, "SELECT count(*) FROM blocks WHERE state <> 'done'"), 0);
    free_run(&first);
    free_run(&second);
    free_run(&again);
    eng_db_close(db);
}

static void test_no_plan_without_all_of_it(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    OK(eng_db_put_stream(db, "s", "c", "real", 1, "{}", err));
    EngIdentity stranger = identity;
    stranger.machine_id = "machine-9"; /* points do not refer to machines ... */
    EngSweep *sweep = good_sweep(&catalog, "[gather]\ntokens = 1:50:+1\nwhere = tokens != 7\n");
    EngPlan *plan = good_plan(sweep, &stranger);
    plan->points[plan->n_named - 1]->stream_digest = "unknown"; /* ... but to streams */
    const EngRunSpec spec = {"machine-1", "build-1", 1, "[]", "s", "", "k", "{}"};
    char run_id[ENG_KEY_HEX];
    bool resumed;
    EngPlanCounts counts;
    EngErr e = {0};
    OK(eng_db_run_begin(db, &spec, false, run_id, &resumed, err));
    assert_int_equal(eng_db_plan_write(db, run_id, plan, false, &counts, &e), ENG_INTERNAL);
    assert_int_equal(number(db, "SELECT count(*) FROM points"), 0);
    assert_int_equal(number(db, "SELECT count(*) FROM blocks"), 0);
    plan->points[plan->n_named - 1]->stream_digest = "stream-prose";
    OK(eng_db_run_begin(db, &spec, false, run_id, &resumed, err));
    assert_true(resumed);
    OK(eng_db_plan_write(db, run_id, plan, false, &counts, err));
    assert_int_equal(counts.planned, 98);
    /* Another commit goes on with it where it left the code as it was, other flags do not. */
    const EngBuildRow moved = {"build-2", "0", "c0ffee", "cc", "-O3", "{}"},
                      slow = {"build-3", "0", NULL, "cc", "-O0", "{}"};
    EngRunSpec later = spec;
    char same[ENG_KEY_HEX];
    OK(eng_db_put_build(db, &moved, err));
    OK(eng_db_put_build(db, &slow, err));
    later.build_id = moved.build_id;
    OK(eng_db_run_begin(db, &later, false, same, &resumed, err));
    assert_true(resumed);
    assert_string_equal(same, run_id);
    later.build_id = slow.build_id;
    OK(eng_db_run_begin(db, &later, false, same, &resumed, err));
    assert_false(resumed);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
    eng_db_close(db);
}

static void test_results(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    Run run = begin_run(db, "[gather]\nvariant = fast\n", false);
    const EngLedgerBlock *block = &run.blocks[0];
    const EngPlanPoint *point = block->points[0].plan;
    int segment;
    OK(eng_db_segment_start(db, block->block_id, UINT64_MAX, &segment, err));
    const EngSampleId id = {block->block_id, point->point_key, segment, 0};
    EngResidual residual = {.max_abs = NAN, .max_rel = 0.5, .of = "rel", .note = "n"};
    const int64_t bins[] = {1, 0, 5};
    put_sample(db, block->block_id, point, segment, 0, 10, 1);
    assert_int_equal(number(db, "SELECT count(*) FROM sample_values"), 2); /* NAN is no value */
    OK(eng_db_put_residual(db, &id, &residual, err));
    OK(eng_db_put_residual(db, &id, &residual, err));
    OK(eng_db_put_histogram(db, &id, "gate", 1, 0, "linear", 0, 1, bins, 3, err));
    assert_int_equal(number(db, "SELECT json_extract(counts_json, '$[2]') FROM histograms"), 5);
    OK(eng_db_put_drops(db, &id, "samples", 2, err));
    OK(eng_db_put_drops(db, &id, "samples", 3, err));
    assert_int_equal(number(db, "SELECT count FROM drops"), 5);
    OK(eng_db_put_roof(db, block->block_id, block->points[1].plan->point_key, "cpu", "{}", err));
    OK(eng_db_put_roof(db, block->block_id, block->points[2].plan->point_key, "cpu", "{}", err));
    assert_int_equal(number(db, "SELECT count(*) FROM roofs"), 1); /* one a shape */
    EngErr e = {0};
    const EngTiming none = {0};
    assert_int_equal(eng_db_put_sample(db, &id, 0, false, &none, &gather, NULL, &e), ENG_INTERNAL);
    assert_int_equal(number(db, "SELECT count(*) FROM samples"), 1);
    free_run(&run);
    eng_db_close(db);
}

static void test_status(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    EngArena *arena = eng_arena_create();
    EngRunStatus status;
    EngErr e = {0};
    put_common(db);
    assert_int_equal(eng_db_status(db, NULL, arena, &status, &e), ENG_NOT_FOUND);
    Run run = begin_run(db, small_sweep, false);
    measure_block(db, &run.blocks[0], 6);
    OK(eng_db_status(db, NULL, arena, &status, err));
    assert_string_equal(status.run_id, run.run_id);
    assert_string_equal(status.state, "running");
    assert_string_equal(status.ended_utc, "");
    assert_int_equal(status.blocks, 5);
    assert_int_equal(status.blocks_done, 3); /* two are skips alone */
    assert_int_equal(status.total.points, 9);
    assert_int_equal(status.total.skipped, 4);
    assert_int_equal(status.total.measured + status.total.pending, 5);
    assert_int_equal(status.n_experiments, 2);
    assert_string_equal(status.experiments[0].experiment, "gather");
    assert_int_equal(status.experiments[1].points, 1);
    assert_int_equal(status.n_skips, 4);
    assert_string_equal(status.skips[0].reason, "heads 5 does not divide 24");
    assert_true(status.n_slowest > 0 && status.slowest[0].wall_ns >= 600);
    char prefix[9];
    snprintf(prefix, sizeof prefix, "%.8s", run.run_id);
    OK(eng_db_status(db, prefix, arena, &status, err));
    assert_string_equal(status.run_id, run.run_id);
    assert_int_equal(eng_db_status(db, "zz", arena, &status, &e), ENG_NOT_FOUND);
    assert_non_null(strstr(e.text, "no run 'zz'"));
    free_run(&run);
    eng_arena_destroy(arena);
    eng_db_close(db);
}

/* ---- summary -----------------------------------------------------------------------------------
 */

enum { SEGMENTS = 3, PAIRS = 11 };
typedef struct Truth {
    double value[SEGMENTS * PAIRS], ns[SEGMENTS * PAIRS];
    int n;
} Truth;

static void fill_random(EngDb *db, const EngLedgerBlock *block, Truth *truth, EngRng *rng)
{
    for (int s = 0; s < SEGMENTS; s++) {
        int segment;
        OK(eng_db_segment_start(db, block->block_id, 1, &segment, err));
        for (int pair = 0; pair < PAIRS; pair++)
            for (int p = 0; p < block->n_points; p++) {
                const EngPlanPoint *point = block->points[p].plan;
                /* Pairs never cross segments, and some are incomplete. */
                bool lost = s == 1 && pair == PAIRS - 1 && p == block->n_points - 1;
                int64_t ns = 1000 + (int64_t)eng_rng_below(rng, 1000);
                if (lost) continue;
                truth[p].ns[truth[p].n] = (double)(ns + 7) / 2;
                truth[p].value[truth[p].n++] = (double)ns;
                put_sample(db, block->block_id, point, segment, pair, ns, (double)ns);
            }
        OK(eng_db_segment_finish(db, block->block_id, segment, false, "{}", err));
    }
}

static void check_row(const EngSummaryRow *row, const Truth *truth, const Truth *roof)
{
    double scaled[SEGMENTS * PAIRS], percent[SEGMENTS * PAIRS];
    double scale = strcmp(row->metric, "gbps") ? 2 : 1;
    int n_pairs = 0;
    for (int i = 0; i < truth->n; i++) scaled[i] = scale * truth->value[i];
    EngMedian m = eng_median_in_place(scaled, (size_t)truth->n);
    assert_int_equal(row->n, truth->n);
    assert_true(row->median == m.median && row->ci_lo == m.ci_lo && row->ci_hi == m.ci_hi);
    /* Sample i of both is the same pair, but for the lost one at 2 * PAIRS - 1. */
    for (int i = 0; i < SEGMENTS * PAIRS; i++) {
        int lost = 2 * PAIRS - 1;
        int a = truth->n < SEGMENTS * PAIRS && i > lost ? i - 1 : i;
        int b = roof->n < SEGMENTS * PAIRS && i > lost ? i - 1 : i;
        bool missing = i == lost && (truth->n < SEGMENTS * PAIRS || roof->n < SEGMENTS * PAIRS);
        if (!missing) percent[n_pairs++] = 100 * roof->ns[b] / truth->ns[a];
    }
    m = eng_median_in_place(percent, (size_t)n_pairs);
    assert_true(fabs(row->percent_of_roof - m.median) < 1e-9 * m.median);
}

static void test_summary(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    EngRng rng;
    eng_rng_seed(&rng, 5);
    put_common(db);
    Run run = begin_run(db, "[gather]\ntokens = 1, 2, 4\ncompare = tokens\nheads = 5, 8\n", false);
    assert_int_equal(run.n_blocks, 2);
    Truth truth[2][16] = {0};
    for (int b = 0; b < 2; b++) {
        const EngLedgerBlock *block = &run.blocks[b];
        fill_random(db, block, truth[b], &rng);
        for (int p = 0; p < block->n_points; p++) {
            const EngPlanPoint *point = block->points[p].plan;
            OK(eng_db_point_done(db, block->block_id, point->point_key, ENG_OUTCOME_MEASURED, NULL,
                                 "pairs", err));
            if (point->is_roof && !strcmp(point->variant, "read"))
                OK(eng_db_put_roof(db, block->block_id, point->point_key, "cpu", "{}", err));
        }
        OK(eng_db_block_done(db, block->block_id, err));
    }
    EngSummaryRow *rows;
    int n_rows, checked = 0;
    OK(eng_db_summary(db, run.run_id, NULL, NULL, run.arena, &rows, &n_rows, err));
    for (int r = 0; r < n_rows; r++) {
        if (!strcmp(rows[r].outcome, "skipped")) {
            assert_string_equal(rows[r].metric, "");
            assert_true(isnan(rows[r].median) && rows[r].n == 0);
            continue;
        }
        for (int b = 0; b < 2; b++)
            for (int p = 0; p < run.blocks[b].n_points; p++) {
                const EngPlanPoint *point = run.blocks[b].points[p].plan;
                if (strcmp(point->point_key, rows[r].point_key) || point->is_roof) continue;
                int roof = 0;
                for (int k = 0; k < run.blocks[b].n_points; k++) {
                    const EngPlanPoint *other = run.blocks[b].points[k].plan;
                    if (other->shape == point->shape && !strcmp(other->variant, "read")) roof = k;
                }
                check_row(&rows[r], &truth[b][p], &truth[b][roof]);
                checked++;
            }
    }
    assert_int_equal(checked, 6 * 2);          /* points x metrics that were observed */
    assert_int_equal(n_rows, (6 + 6) * 2 + 6); /* roofs (3 shapes x 2), skips of heads 5 */
    OK(eng_db_summary(db, run.run_id, "gather", "gbps", run.arena, &rows, &n_rows, err));
    assert_int_equal(n_rows, 12);
    assert_string_equal(rows[0].unit, "GB/s");
    assert_string_equal(rows[0].clock, "cpu");
    /* Another run's query sees nothing of it. */
    assert_int_equal(number(db, "SELECT count(*) FROM v_summary WHERE run_id = 'other'"), 0);
    free_run(&run);
    eng_db_close(db);
}

/* One transaction for a plan, and failing allocations anywhere in it leave nothing behind. */
static void test_allocation_failures(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    put_common(db);
    EngSweep *sweep = good_sweep(&catalog, small_sweep);
    EngPlan *plan = good_plan(sweep, &identity);
    const EngRunSpec spec = {"machine-1", "build-1", 1, "[]", "s", "", plan->plan_key, "{}"};
    char run_id[ENG_KEY_HEX];
    bool resumed;
    OK(eng_db_run_begin(db, &spec, false, run_id, &resumed, err));
    uint64_t live = eng_mem_live_blocks();
    for (uint64_t n = 1;; n++) {
        EngArena *arena = eng_arena_create();
        EngLedgerBlock *blocks;
        EngRunStatus run_status;
        EngPlanCounts counts;
        int n_blocks;
        EngErr e = {0};
        assert_true(n < 1000);
        eng_mem_fail_at(n);
        EngStatus status = eng_db_plan_write(db, run_id, plan, false, &counts, &e);
        if (!status) status = eng_db_blocks(db, run_id, plan, arena, &blocks, &n_blocks, &e);
        if (!status) status = eng_db_status(db, run_id, arena, &run_status, &e);
        eng_mem_fail_at(0);
        eng_arena_destroy(arena);
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
    }
    eng_plan_free(plan);
    eng_sweep_free(sweep);
    eng_db_close(db);
}

/* A program that knows one more axis finds what an older one measured, and the older points read as
 * if they had had it: the text that roofs are matched by is the new one's. */
static void test_new_axis(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    const char *text = "[gather]\ntokens = 4\nmix = 0.3, 1e-05, 1\nvariant = fast\n";
    put_common(db);
    Run run = begin_run(db, text, false);
    measure_all(db, &run, 2);
    EngSweep *sweep = good_sweep(&wider_catalog, text);
    EngPlan *plan = good_plan(sweep, &identity);
    const EngRunSpec spec = {"machine-1", "build-1", 1, "[]", "w", text, plan->plan_key, "{}"};
    char run_id[ENG_KEY_HEX];
    bool resumed;
    EngPlanCounts counts;
    OK(eng_db_run_begin(db, &spec, false, run_id, &resumed, err));
    OK(eng_db_plan_write(db, run_id, plan, false, &counts, err));
    assert_int_equal(counts.found, 3);
    assert_int_equal(counts.planned, 0);
    for (int i = 0; i < plan->n_points; i++) {
        EngStr axes = {0};
        char sql[1024];
        OK(eng_plan_axes_json(plan->points[i], &axes, err));
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM points JOIN axis_values USING (point_key) WHERE point_key ="
                 " '%s' AND axes_json = '%s' AND axis = 'hold' AND value = 'row_dims'"
                 " AND number IS NULL AND is_default = 1",
                 plan->points[i]->point_key, axes.text);
        assert_int_equal(number(db, sql), 1);
        eng_str_free(&axes);
    }
    assert_true(plan->n_points >= 9); /* roofs too */
    eng_plan_free(plan);
    eng_sweep_free(sweep);
    free_run(&run);
    eng_db_close(db);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_first_run),
        IN_FOLDER(test_found_again),
        IN_FOLDER(test_failures_are_tried_again),
        IN_FOLDER(test_skips_are_tried_again),
        IN_FOLDER(test_killed_run),
        IN_FOLDER(test_resume_adopts),
        IN_FOLDER(test_no_plan_without_all_of_it),
        IN_FOLDER(test_new_axis),
        IN_FOLDER(test_results),
        IN_FOLDER(test_status),
        IN_FOLDER(test_summary),
        IN_FOLDER(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
