/* Reading a run: where it stands, and its summary; see db.h. */
#include "bench/core/db_sql.h"

#include <sqlite3.h>
#include <math.h>
#include <string.h>

#include "bench/core/db_costs.h"
#include "bench/core/db_runs.h"

static EngStatus no_memory(EngDb *db, EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", eng_db_path(db));
}

/* Gathers rows of unknown number: an arena array that doubles. */
static void *next_row(EngArena *arena, void **rows, int *n, size_t size)
{
    bool full = *n == 0 || (*n >= 16 && (*n & (*n - 1)) == 0);
    if (full) {
        void *grown = eng_arena_alloc(arena, (size_t)(*n ? 2 * *n : 16) * size);
        if (!grown) return NULL;
        if (*n) memcpy(grown, *rows, (size_t)*n * size);
        *rows = grown;
    }
    return (char *)*rows + (size_t)(*n)++ * size;
}

/* ---- the run -----------------------------------------------------------------------------------
 */

static EngStatus find_run(EngDb *db, const char *name, EngArena *arena, EngRunStatus *out,
                          EngErr *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    char run_id[ENG_KEY_HEX];
    EngStatus status = eng_db_run_named(db, name, run_id, err);
    if (!status)
        status = eng_db_query(
            db, &statement, err,
            "SELECT run_id, state, sweep_name, started_utc, ended_utc, machine_id, build_id,"
            " plan_key FROM runs WHERE run_id = ?",
            "s", run_id);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status) return status;
    if (!row) return ENG_FAIL(err, ENG_NOT_FOUND, "%s: no run '%s'", eng_db_path(db), run_id);
    out->run_id = eng_db_text(arena, statement, 0);
    out->state = eng_db_text(arena, statement, 1);
    out->sweep_name = eng_db_text(arena, statement, 2);
    out->started_utc = eng_db_text(arena, statement, 3);
    out->ended_utc = eng_db_text(arena, statement, 4);
    out->machine_id = eng_db_text(arena, statement, 5);
    out->build_id = eng_db_text(arena, statement, 6);
    out->plan_key = eng_db_text(arena, statement, 7);
    sqlite3_reset(statement);
    bool all = out->run_id && out->state && out->sweep_name && out->started_utc && out->ended_utc &&
               out->machine_id && out->build_id && out->plan_key;
    return all ? ENG_OK : no_memory(db, err);
}

static void add_counts(EngStatusCounts *counts, const char *state, const char *outcome, bool found,
                       int n)
{
    bool done = !strcmp(state, "done");
    counts->points += n;
    if (!strcmp(state, "pending")) counts->pending += n;
    if (!strcmp(state, "running")) counts->running += n;
    if (done && !strcmp(outcome, "measured")) counts->measured += n;
    if (done && !strcmp(outcome, "skipped")) counts->skipped += n;
    if (done && !strcmp(outcome, "failed")) counts->failed += n;
    if (done && !strcmp(outcome, "wrong")) counts->wrong += n;
    if (found) counts->found += n;
}

static EngStatus read_counts(EngDb *db, EngArena *arena, EngRunStatus *out, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT p.experiment, bp.state, coalesce(bp.outcome, ''), b.run_id <> l.run_id, count(*)"
        " FROM run_points l JOIN points p USING (point_key) JOIN blocks b USING (block_id)"
        " JOIN block_points bp USING (block_id, point_key)"
        " WHERE l.run_id = ? AND p.is_roof = 0 GROUP BY 1, 2, 3, 4 ORDER BY 1",
        "s", out->run_id);
    out->total.experiment = "";
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row) {
        const char *experiment = (const char *)sqlite3_column_text(statement, 0);
        const char *state = (const char *)sqlite3_column_text(statement, 1);
        const char *outcome = (const char *)sqlite3_column_text(statement, 2);
        bool found = sqlite3_column_int(statement, 3) != 0;
        int n = sqlite3_column_int(statement, 4);
        EngStatusCounts *counts =
            out->n_experiments ? &out->experiments[out->n_experiments - 1] : NULL;
        if (!counts || strcmp(counts->experiment, experiment)) {
            void *rows = out->experiments;
            counts = next_row(arena, &rows, &out->n_experiments, sizeof *counts);
            out->experiments = rows;
            if (counts) counts->experiment = eng_arena_strdup(arena, experiment);
            if (!counts || !counts->experiment) {
                sqlite3_reset(statement);
                return no_memory(db, err);
            }
        }
        add_counts(counts, state, outcome, found, n);
        add_counts(&out->total, state, outcome, found, n);
    }
    return status;
}

static EngStatus read_stops(EngDb *db, EngArena *arena, EngRunStatus *out, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    void *rows = NULL;
    EngStatus status =
        eng_db_query(db, &statement, err,
                     "SELECT bp.stop_reason, count(*) FROM run_points l JOIN points p USING"
                     " (point_key) JOIN block_points bp USING (block_id, point_key)"
                     " WHERE l.run_id = ? AND p.is_roof = 0 AND bp.outcome = 'measured'"
                     " AND bp.stop_reason IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1",
                     "s", out->run_id);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row) {
        EngStopCount *stop = next_row(arena, &rows, &out->n_stops, sizeof *stop);
        if (stop)
            *stop =
                (EngStopCount){eng_db_text(arena, statement, 0), sqlite3_column_int(statement, 1)};
        if (!stop || !stop->reason) {
            sqlite3_reset(statement);
            return no_memory(db, err);
        }
    }
    out->stops = rows;
    return status;
}

/* Per block, in the order of experiments: wall time of its ended segments, the estimate of its
 * samples (one lasts about a millisecond at least, as inner iterations fill it), the share of them
 * that are taken, for how long its segment has been open while the run goes on, and how many times
 * a point is set up. */
#define BLOCK_COSTS                                                                                \
    "SELECT b.experiment, b.state = 'done', b.segments_wanted, b.ordinal, b.state = 'running',"    \
    " (SELECT coalesce(sum((julianday(s.ended_utc) - julianday(s.started_utc)) * 86400e9), 0)"     \
    "  FROM segments s WHERE s.block_id = b.block_id AND s.ended_utc IS NOT NULL) AS wall,"        \
    " max(b.estimate_ns, 1e6 * (SELECT count(*) FROM block_points p WHERE p.block_id = b.block_id" \
    "  AND coalesce(p.outcome, '') <> 'skipped')) * b.segments_wanted * b.pairs_wanted AS cost,"   \
    " (SELECT count(*) FROM samples s WHERE s.block_id = b.block_id AND s.traced = 0) * 1.0 / "    \
    "max(1,"                                                                                       \
    "  (SELECT count(*) FROM block_points p WHERE p.block_id = b.block_id"                         \
    "   AND coalesce(p.outcome, '') <> 'skipped') * b.segments_wanted * b.pairs_wanted) AS part,"  \
    " (SELECT count(*) FROM segments s WHERE s.block_id = b.block_id AND s.state = 'done'),"       \
    " (SELECT (julianday('now') - julianday(s.started_utc)) * 86400e9 FROM segments s"             \
    "  JOIN runs r ON r.run_id = b.run_id AND r.state = 'running'"                                 \
    "  WHERE s.block_id = b.block_id AND s.state = 'running' LIMIT 1),"                            \
    " b.segments_wanted * (SELECT count(*) FROM block_points p WHERE p.block_id = b.block_id"      \
    "  AND coalesce(p.outcome, '') <> 'skipped')"                                                  \
    " FROM blocks b WHERE b.run_id = ? ORDER BY b.experiment, b.ordinal"

/* What blocks took is applied, as a factor, to the estimates of those that are missing. */
typedef struct Costs {
    double wall_ns, estimate_ns; /* of finished blocks */
    double left_ns;              /* estimates of the others */
} Costs;

static double factor(const Costs *costs, double otherwise)
{
    return costs->estimate_ns > 0 && costs->wall_ns > 0 ? costs->wall_ns / costs->estimate_ns
                                                        : otherwise;
}

static void add_cost(Costs *costs, bool done, double wall, double cost, double part)
{
    /* A block that had nothing to measure says nothing of costs. */
    if (done && wall > 0) costs->estimate_ns += cost;
    if (done)
        costs->wall_ns += wall;
    else
        costs->left_ns += cost * (part < 1 ? 1 - part : 0);
}

/* One row of BLOCK_COSTS; gives the time left of a block that tells its own pace. */
static double add_block(sqlite3_stmt *row, const char *experiment, double overhead_ns, Costs *all,
                        Costs *own, EngRunStatus *out)
{
    bool done = sqlite3_column_int(row, 1) != 0;
    double wall = sqlite3_column_double(row, 5);
    double cost = sqlite3_column_double(row, 6) + overhead_ns * sqlite3_column_double(row, 10);
    double part = sqlite3_column_double(row, 7), since = sqlite3_column_double(row, 9);
    bool paced = !done && since > 0 && part >= 0.1;
    out->blocks++;
    out->blocks_done += done;
    out->spent_ns += (int64_t)wall;
    if (!paced) {
        add_cost(all, done, wall, cost, part);
        add_cost(own, done, wall, cost, part);
    }
    if (sqlite3_column_int(row, 4)) {
        out->current_block = sqlite3_column_int(row, 3);
        out->current_segments = sqlite3_column_int(row, 2);
        out->current_segment = sqlite3_column_int(row, 8);
        out->current_experiment = experiment;
    }
    return paced && part < 1 ? (wall + since) * (1 - part) / part : 0;
}

static EngStatus read_blocks(EngDb *db, EngArena *arena, EngRunStatus *out, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    Costs all = {0}, own[64] = {{0}};
    EngOverheads overheads = {0};
    int n_own = -1;
    double left = 0, overhead_ns = 0;
    const char *experiment = "";
    out->current_block = -1;
    out->current_experiment = "";
    EngStatus status = eng_db_query(db, &statement, err, BLOCK_COSTS, "s", out->run_id);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row) {
        if (n_own < 0 || strcmp(experiment, (const char *)sqlite3_column_text(statement, 0))) {
            experiment = eng_db_text(arena, statement, 0);
            if (n_own < 63) n_own++;
            status = experiment ? eng_db_overhead_ns(&overheads, db, experiment, &overhead_ns, err)
                                : no_memory(db, err);
        }
        if (status) {
            sqlite3_reset(statement);
            return status;
        }
        left += add_block(statement, experiment, overhead_ns, &all, &own[n_own], out);
    }
    if (status) return status;
    for (int i = 0; i <= n_own; i++) left += own[i].left_ns * factor(&own[i], factor(&all, 1));
    out->remaining_estimate_ns = left < 9e18 ? (int64_t)left : INT64_MAX;
    out->cost_factor = factor(&all, NAN);
    return eng_db_number(db, &out->n_samples, err,
                         "SELECT count(*) FROM run_points l JOIN samples s"
                         " USING (block_id, point_key) WHERE l.run_id = ?",
                         "s", out->run_id);
}

/* Points of the run that a query selects: key, experiment, variant, axes, outcome, reason, samples,
 * wall time. */
static EngStatus read_points(EngDb *db, sqlite3_stmt *statement, EngArena *arena,
                             EngStatusPoint **points, int *n, EngErr *err)
{
    bool row;
    EngStatus status = ENG_OK;
    void *rows = NULL;
    while (!(status = eng_db_step(db, statement, &row, err)) && row) {
        EngStatusPoint *point = next_row(arena, &rows, n, sizeof *point);
        if (point) {
            *point = (EngStatusPoint){.point_key = eng_db_text(arena, statement, 0),
                                      .experiment = eng_db_text(arena, statement, 1),
                                      .variant = eng_db_text(arena, statement, 2),
                                      .axes_json = eng_db_text(arena, statement, 3),
                                      .outcome = eng_db_outcome(statement, 4),
                                      .reason = eng_db_text(arena, statement, 5),
                                      .n_samples = sqlite3_column_int64(statement, 6),
                                      .wall_ns = sqlite3_column_int64(statement, 7)};
        }
        if (!point || !point->point_key || !point->experiment || !point->variant ||
            !point->axes_json || !point->reason) {
            sqlite3_reset(statement);
            return no_memory(db, err);
        }
    }
    *points = rows;
    return status;
}

#define STATUS_POINT                                                                               \
    "SELECT p.point_key, p.experiment, p.variant, p.axes_json, bp.outcome, bp.reason,"             \
    " (SELECT count(*) FROM samples s WHERE s.block_id = l.block_id"                               \
    "  AND s.point_key = l.point_key AND s.traced = 0) AS n,"                                      \
    " (SELECT coalesce(sum(wall_ns), 0) FROM samples s WHERE s.block_id = l.block_id"              \
    "  AND s.point_key = l.point_key AND s.traced = 0) AS wall"                                    \
    " FROM run_points l JOIN points p USING (point_key)"                                           \
    " JOIN block_points bp USING (block_id, point_key) WHERE l.run_id = ?"

static EngStatus read_lists(EngDb *db, EngArena *arena, EngRunStatus *out, EngErr *err)
{
    sqlite3_stmt *statement;
    EngStatus status = eng_db_query(db, &statement, err,
                                    STATUS_POINT " AND bp.outcome IN ('failed', 'wrong')"
                                                 " ORDER BY p.experiment, p.axes_json",
                                    "s", out->run_id);
    if (!status) status = read_points(db, statement, arena, &out->failures, &out->n_failures, err);
    if (!status)
        status = eng_db_query(db, &statement, err,
                              STATUS_POINT " AND bp.outcome = 'skipped' AND p.is_roof = 0"
                                           " ORDER BY p.experiment, p.axes_json",
                              "s", out->run_id);
    if (!status) status = read_points(db, statement, arena, &out->skips, &out->n_skips, err);
    if (!status)
        status = eng_db_query(
            db, &statement, err,
            STATUS_POINT " AND p.is_roof = 0 AND wall > 0 ORDER BY wall DESC, p.point_key LIMIT 5",
            "s", out->run_id);
    if (!status) status = read_points(db, statement, arena, &out->slowest, &out->n_slowest, err);
    return status;
}

EngStatus eng_db_status(EngDb *db, const char *run_id, EngArena *arena, EngRunStatus *status_out,
                        EngErr *err)
{
    *status_out = (EngRunStatus){0};
    EngStatus status = find_run(db, run_id, arena, status_out, err);
    if (!status) status = read_counts(db, arena, status_out, err);
    if (!status) status = read_stops(db, arena, status_out, err);
    if (!status) status = read_blocks(db, arena, status_out, err);
    if (!status) status = read_lists(db, arena, status_out, err);
    return status;
}

/* ---- summary -----------------------------------------------------------------------------------
 */

static double number_or_nan(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(statement, column);
}

EngStatus eng_db_summary(EngDb *db, const char *run_id, const char *experiment, const char *metric,
                         EngArena *arena, EngSummaryRow **rows_out, int *n_rows, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    void *rows = NULL;
    *rows_out = NULL;
    *n_rows = 0;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT config_key, point_key, experiment, backend, kind, outcome, axes_json, metric, unit,"
        " clock, n, median, ci_lo, ci_hi, percent_of_roof FROM v_summary WHERE run_id = ?1"
        " AND (?2 IS NULL OR experiment = ?2) AND (?3 IS NULL OR metric = ?3)"
        " ORDER BY experiment, axes_json, metric",
        "sss", run_id, experiment, metric);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row) {
        EngSummaryRow *r = next_row(arena, &rows, n_rows, sizeof *r);
        const char *texts[10];
        bool all = r != NULL;
        for (int i = 0; all && i < 10; i++) all = (texts[i] = eng_db_text(arena, statement, i));
        if (!all) {
            sqlite3_reset(statement);
            return no_memory(db, err);
        }
        *r = (EngSummaryRow){.config_key = texts[0],
                             .point_key = texts[1],
                             .experiment = texts[2],
                             .backend = texts[3],
                             .kind = texts[4],
                             .outcome = texts[5],
                             .axes_json = texts[6],
                             .metric = texts[7],
                             .unit = texts[8],
                             .clock = texts[9],
                             .n = sqlite3_column_int64(statement, 10),
                             .median = number_or_nan(statement, 11),
                             .ci_lo = number_or_nan(statement, 12),
                             .ci_hi = number_or_nan(statement, 13),
                             .percent_of_roof = number_or_nan(statement, 14)};
    }
    *rows_out = rows;
    return status;
}
