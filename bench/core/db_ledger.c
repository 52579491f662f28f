/* The ledger while a run goes on: unfinished blocks, and the states of blocks, points and segments;
 * see db.h. */
#include "bench/core/db_sql.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static const char *const outcomes[] = {"", "measured", "skipped", "failed", "wrong"};

const char *eng_outcome_name(EngOutcome outcome)
{
    return outcomes[outcome];
}

static EngOutcome outcome_of(const char *name)
{
    for (int i = 1; name && i <= ENG_OUTCOME_WRONG; i++)
        if (!strcmp(outcomes[i], name)) return (EngOutcome)i;
    return ENG_OUTCOME_NONE;
}

static EngPointState state_of(const char *name)
{
    return !strcmp(name, "done")      ? ENG_POINT_DONE
           : !strcmp(name, "running") ? ENG_POINT_RUNNING
                                      : ENG_POINT_PENDING;
}

/* ---- unfinished blocks -------------------------------------------------------------------------
 */

static EngStatus no_memory(EngDb *db, EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for the ledger", eng_db_path(db));
}

static EngStatus read_block(EngDb *db, sqlite3_stmt *statement, EngArena *arena,
                            EngLedgerBlock *block, EngErr *err)
{
    *block = (EngLedgerBlock){.ordinal = sqlite3_column_int(statement, 1),
                              .seed = (uint64_t)sqlite3_column_int64(statement, 3),
                              .estimate_ns = sqlite3_column_int64(statement, 4),
                              .segments_wanted = sqlite3_column_int(statement, 5),
                              .pairs_wanted = sqlite3_column_int(statement, 6),
                              .segments_done = sqlite3_column_int(statement, 7),
                              .segments_broken = sqlite3_column_int(statement, 8)};
    snprintf(block->block_id, sizeof block->block_id, "%s",
             (const char *)sqlite3_column_text(statement, 0));
    block->compare_axis = eng_db_text(arena, statement, 2);
    return block->compare_axis ? ENG_OK : no_memory(db, err);
}

static EngStatus read_points(EngDb *db, const EngPlan *plan, EngArena *arena, EngLedgerBlock *block,
                             EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    int64_t n;
    EngStatus status = eng_db_number(
        db, &n, err, "SELECT count(*) FROM block_points WHERE block_id = ?", "s", block->block_id);
    if (status) return status;
    block->points = eng_arena_alloc(arena, (size_t)n * sizeof *block->points);
    if (!block->points) return no_memory(db, err);
    status = eng_db_query(db, &statement, err,
                          "SELECT point_key, state, outcome, (SELECT count(*) FROM samples s WHERE"
                          " s.block_id = b.block_id AND s.point_key = b.point_key AND s.traced = 0)"
                          " FROM block_points b WHERE block_id = ? ORDER BY ordinal",
                          "s", block->block_id);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row) {
        EngLedgerPoint *point = &block->points[block->n_points++];
        const char *key = (const char *)sqlite3_column_text(statement, 0);
        *point =
            (EngLedgerPoint){.plan = eng_plan_find(plan, key),
                             .state = state_of((const char *)sqlite3_column_text(statement, 1)),
                             .outcome = outcome_of((const char *)sqlite3_column_text(statement, 2)),
                             .n_samples = sqlite3_column_int64(statement, 3)};
        if (!point->plan) {
            status = ENG_FAIL(err, ENG_INTERNAL, "%s: point %s of block %s is not in the plan",
                              eng_db_path(db), key, block->block_id);
            sqlite3_reset(statement);
            break;
        }
        block->experiment = point->plan->point.experiment;
        block->n_pending += point->state != ENG_POINT_DONE && !point->plan->is_roof;
    }
    return status;
}

/* From named point to the plan's block, for settings that the database does not keep. */
static bool index_plan(const EngPlan *plan, EngKeyTable *table)
{
    for (int i = 0; i < plan->n_blocks; i++)
        for (int k = 0; k < plan->blocks[i].n_points; k++) {
            EngPlanPoint *point = plan->blocks[i].points[k];
            if (!point->is_roof && !eng_key_table_put(table, point->point_key, &plan->blocks[i]))
                return false;
        }
    return true;
}

static void take_settings(const EngKeyTable *index, EngLedgerBlock *block)
{
    for (int i = 0; i < block->n_points; i++) {
        const EngPlanBlock *found = eng_key_table_get(index, block->points[i].plan->point_key);
        if (!found) continue;
        block->settings = found->settings;
        return;
    }
}

static EngStatus read_blocks(EngDb *db, const char *run_id, EngArena *arena, EngLedgerBlock *blocks,
                             int *n_blocks, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT block_id, ordinal, compare_axis, seed, estimate_ns, segments_wanted, pairs_wanted,"
        " (SELECT count(*) FROM segments s WHERE s.block_id = b.block_id AND s.state = 'done'),"
        " (SELECT count(*) FROM segments s WHERE s.block_id = b.block_id AND s.state = 'broken')"
        " FROM blocks b WHERE run_id = ? AND state <> 'done' ORDER BY ordinal, block_id",
        "s", run_id);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row) {
        status = read_block(db, statement, arena, &blocks[*n_blocks], err);
        if (status) sqlite3_reset(statement);
        ++*n_blocks;
    }
    return status;
}

EngStatus eng_db_blocks(EngDb *db, const char *run_id, const EngPlan *plan, EngArena *arena,
                        EngLedgerBlock **blocks, int *n_blocks, EngErr *err)
{
    EngKeyTable index = {0};
    int64_t n;
    *blocks = NULL;
    *n_blocks = 0;
    EngStatus status = eng_db_number(
        db, &n, err, "SELECT count(*) FROM blocks WHERE run_id = ? AND state <> 'done'", "s",
        run_id);
    if (status) return status;
    *blocks = eng_arena_alloc(arena, (size_t)n * sizeof **blocks);
    if (!*blocks || !index_plan(plan, &index)) status = no_memory(db, err);
    if (!status) status = read_blocks(db, run_id, arena, *blocks, n_blocks, err);
    for (int i = 0; !status && i < *n_blocks; i++) {
        status = read_points(db, plan, arena, &(*blocks)[i], err);
        if (!status) take_settings(&index, &(*blocks)[i]);
    }
    eng_key_table_free(&index);
    return status;
}

/* ---- states ------------------------------------------------------------------------------------
 */

/* For updates of one row: nothing changed means that the row is not there. */
static EngStatus expect_change(EngDb *db, EngStatus status, const char *what, const char *id,
                               EngErr *err)
{
    if (status || sqlite3_changes(db->sql) == 1) return status;
    return ENG_FAIL(err, ENG_INTERNAL, "%s: no %s %s in the ledger", eng_db_path(db), what, id);
}

EngStatus eng_db_block_start(EngDb *db, const char *block_id, EngErr *err)
{
    EngStatus status = eng_db_exec(
        db, err, "UPDATE blocks SET state = 'running' WHERE block_id = ?", "s", block_id);
    return expect_change(db, status, "block", block_id, err);
}

EngStatus eng_db_block_done(EngDb *db, const char *block_id, EngErr *err)
{
    bool own;
    int64_t open = 0;
    EngStatus status = eng_db_own(db, &own, err);
    if (status) return status;
    status = eng_db_number(db, &open, err,
                           "SELECT count(*) FROM block_points b JOIN points p USING (point_key)"
                           " WHERE b.block_id = ? AND b.state <> 'done' AND p.is_roof = 0",
                           "s", block_id);
    if (!status && open)
        status = ENG_FAIL(err, ENG_INTERNAL, "%s: block %s has %lld points that are not done",
                          eng_db_path(db), block_id, (long long)open);
    if (!status)
        status = eng_db_exec(
            db, err,
            "UPDATE block_points SET state = 'done',"
            " outcome = iif(sampled, 'measured', 'skipped'),"
            " reason = iif(sampled, NULL, 'no pair taken')"
            " FROM (SELECT block_id AS b, point_key AS k, EXISTS (SELECT 1 FROM samples s WHERE"
            "  s.block_id = bp.block_id AND s.point_key = bp.point_key) AS sampled"
            "  FROM block_points bp WHERE bp.block_id = ?1)"
            " WHERE block_id = ?1 AND block_id = b AND point_key = k AND state <> 'done'",
            "s", block_id);
    if (!status) {
        status = eng_db_exec(db, err, "UPDATE blocks SET state = 'done' WHERE block_id = ?", "s",
                             block_id);
        status = expect_change(db, status, "block", block_id, err);
    }
    return eng_db_end(db, own, status, err);
}

EngStatus eng_db_point_start(EngDb *db, const char *block_id, const char *point_key, EngErr *err)
{
    EngStatus status =
        eng_db_exec(db, err,
                    "UPDATE block_points SET state = 'running', outcome = NULL, reason = NULL"
                    " WHERE block_id = ? AND point_key = ?",
                    "ss", block_id, point_key);
    return expect_change(db, status, "point", point_key, err);
}

EngStatus eng_db_point_done(EngDb *db, const char *block_id, const char *point_key,
                            EngOutcome outcome, const char *reason, const char *stop_reason,
                            EngErr *err)
{
    EngStatus status = eng_db_exec(
        db, err,
        "UPDATE block_points SET state = 'done', outcome = ?, reason = ?, stop_reason = ?"
        " WHERE block_id = ? AND point_key = ?",
        "sssss", outcomes[outcome], reason, stop_reason, block_id, point_key);
    return expect_change(db, status, "point", point_key, err);
}

EngStatus eng_db_point_origin(EngDb *db, const char *point_key, const char *kind,
                              const char *provenance, EngErr *err)
{
    EngStatus status =
        eng_db_exec(db, err, "UPDATE points SET kind = ?, provenance = ? WHERE point_key = ?",
                    "sss", kind, provenance, point_key);
    return expect_change(db, status, "point", point_key, err);
}

EngStatus eng_db_point_lacks(EngDb *db, const char *run_id, const char *point_key,
                             const char *series, char home[ENG_KEY_HEX], EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    home[0] = 0;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT block_id FROM run_points l WHERE run_id = ? AND point_key = ? AND NOT EXISTS"
        " (SELECT 1 FROM series s WHERE s.block_id = l.block_id AND s.point_key = l.point_key"
        "  AND s.name GLOB ?)",
        "sss", run_id, point_key, series);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status || !row) return status;
    sqlite3_snprintf(ENG_KEY_HEX, home, "%s", sqlite3_column_text(statement, 0));
    sqlite3_reset(statement);
    return ENG_OK;
}

EngStatus eng_db_segment_start(EngDb *db, const char *block_id, uint64_t seed, int *segment,
                               EngErr *err)
{
    char now[32];
    bool own;
    int64_t next = 0;
    *segment = 0;
    EngStatus status = eng_db_own(db, &own, err);
    if (status) return status;
    eng_utc_now(now, sizeof now);
    status = eng_db_number(db, &next, err,
                           "SELECT coalesce(max(segment) + 1, 0) FROM segments WHERE block_id = ?",
                           "s", block_id);
    if (!status)
        status = eng_db_exec(db, err,
                             "INSERT INTO segments (block_id, segment, started_utc, state, seed,"
                             " evidence_json) VALUES (?, ?, ?, 'running', ?, '{}')",
                             "sisi", block_id, next, now, (int64_t)seed);
    *segment = (int)next;
    return eng_db_end(db, own, status, err);
}

EngStatus eng_db_segment_finish(EngDb *db, const char *block_id, int segment, bool broken,
                                const char *evidence_json, EngErr *err)
{
    char now[32];
    eng_utc_now(now, sizeof now);
    EngStatus status =
        eng_db_exec(db, err,
                    "UPDATE segments SET state = ?, ended_utc = ?, evidence_json = ?"
                    " WHERE block_id = ? AND segment = ?",
                    "ssssi", broken ? "broken" : "done", now, evidence_json ? evidence_json : "{}",
                    block_id, (int64_t)segment);
    return expect_change(db, status, "segment of block", block_id, err);
}
