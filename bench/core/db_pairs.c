/* Samples as pairs, and looking up runs and chain points; see db_pairs.h. */
#include "bench/core/db_pairs.h"

#include <sqlite3.h>
#include <math.h>
#include <string.h>

#include "bench/core/db_sql.h"

static EngStatus no_memory(EngDb *db, EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for samples", eng_db_path(db));
}

#define PAIRS_OF_RUN                                                                               \
    " FROM run_points l JOIN points p USING (point_key)"                                           \
    " JOIN samples s USING (block_id, point_key) JOIN block_points b USING (block_id, point_key)"  \
    " WHERE l.run_id = ?1 AND (?2 IS NULL OR l.point_key = ?2) AND s.traced = 0"

EngStatus eng_db_pairs(EngDb *db, const char *run_id, const char *point_key, EngArena *arena,
                       EngPairPoint **points_out, int *n_points, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    int64_t n_samples = 0, n_keys = 0, at = 0;
    *points_out = NULL;
    *n_points = 0;
    EngStatus status =
        eng_db_number(db, &n_samples, err, "SELECT count(*)" PAIRS_OF_RUN, "ss", run_id, point_key);
    if (!status)
        status = eng_db_number(db, &n_keys, err, "SELECT count(DISTINCT l.point_key)" PAIRS_OF_RUN,
                               "ss", run_id, point_key);
    if (status || !n_samples) return status;
    EngPairSample *samples = eng_arena_alloc(arena, (size_t)n_samples * sizeof *samples);
    EngPairPoint *points = eng_arena_alloc(arena, (size_t)n_keys * sizeof *points);
    if (!samples || !points) return no_memory(db, err);
    status = eng_db_query(
        db, &statement, err,
        "SELECT l.point_key, p.variant, p.is_roof, s.segment, s.pair,"
        " 1.0 * s.wall_ns / s.inner_iterations, 1.0 * s.cpu_ns / s.inner_iterations,"
        " b.outcome, dense_rank() OVER (ORDER BY l.block_id), s.inner_iterations" PAIRS_OF_RUN
        " ORDER BY l.point_key, s.segment, s.pair",
        "ss", run_id, point_key);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row && at < n_samples) {
        const char *key = (const char *)sqlite3_column_text(statement, 0);
        EngPairPoint *point = *n_points ? &points[*n_points - 1] : NULL;
        if (!point || strcmp(point->point_key, key)) {
            if (*n_points == n_keys) break; /* another program is writing: what was counted */
            point = &points[(*n_points)++];
            *point = (EngPairPoint){.point_key = eng_db_text(arena, statement, 0),
                                    .variant = eng_db_text(arena, statement, 1),
                                    .is_roof = sqlite3_column_int(statement, 2) != 0,
                                    .outcome = eng_db_outcome(statement, 7),
                                    .samples = &samples[at]};
            if (!point->point_key || !point->variant) {
                sqlite3_reset(statement);
                return no_memory(db, err);
            }
        }
        samples[at++] = (EngPairSample){.block = sqlite3_column_int(statement, 8),
                                        .segment = sqlite3_column_int(statement, 3),
                                        .pair = sqlite3_column_int(statement, 4),
                                        .inner = sqlite3_column_int64(statement, 9),
                                        .wall_ns = sqlite3_column_double(statement, 5),
                                        .cpu_ns = sqlite3_column_double(statement, 6)};
        point->n++;
    }
    if (!status && row) sqlite3_reset(statement);
    *points_out = points;
    return status;
}

EngStatus eng_db_find_run(EngDb *db, const char *plan_key, const char *machine_id,
                          const char *build_id, char run_id[ENG_KEY_HEX], bool *finished,
                          EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    run_id[0] = 0;
    *finished = false;
    EngStatus status =
        eng_db_query(db, &statement, err,
                     "SELECT run_id, state = 'done' FROM runs WHERE plan_key = ? AND machine_id = ?"
                     " AND (state = 'done' OR build_id = ?)"
                     " ORDER BY state = 'done' DESC, started_utc DESC, rowid DESC LIMIT 1",
                     "sss", plan_key, machine_id, build_id);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status || !row) return status;
    sqlite3_snprintf(ENG_KEY_HEX, run_id, "%s", sqlite3_column_text(statement, 0));
    *finished = sqlite3_column_int(statement, 1) != 0;
    sqlite3_reset(statement);
    return ENG_OK;
}

EngStatus eng_db_find_chain(EngDb *db, const char *machine_id, const char *preset, int64_t tokens,
                            int64_t threads, EngChainRow *chain, bool *found, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    *found = false;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT l.run_id, p.point_key, json_extract(p.axes_json, '$.threads')"
        " FROM points p JOIN run_points l USING (point_key) JOIN runs r USING (run_id)"
        " JOIN block_points b USING (block_id, point_key)"
        " WHERE p.experiment = 'chain' AND p.backend = 'cpu' AND p.kind = 'measured'"
        " AND b.outcome = 'measured'"
        " AND p.machine_id = ?1 AND json_extract(p.axes_json, '$.preset') = ?2"
        " AND json_extract(p.axes_json, '$.tokens') = ?3"
        " ORDER BY p.variant = 'best' DESC, json_extract(p.axes_json, '$.threads') = ?4 DESC,"
        " r.started_utc DESC, p.point_key LIMIT 1",
        "ssii", machine_id, preset, tokens, threads);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status || !row) return status;
    sqlite3_snprintf(ENG_KEY_HEX, chain->run_id, "%s", sqlite3_column_text(statement, 0));
    sqlite3_snprintf(ENG_KEY_HEX, chain->point_key, "%s", sqlite3_column_text(statement, 1));
    chain->threads = sqlite3_column_int64(statement, 2);
    *found = true;
    sqlite3_reset(statement);
    return ENG_OK;
}

EngStatus eng_db_median(EngDb *db, const char *run_id, const char *point_key, const char *metric,
                        double *median, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    *median = NAN;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT median FROM v_summary WHERE run_id = ? AND point_key = ? AND metric = ?", "sss",
        run_id, point_key, metric);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status || !row) return status;
    if (sqlite3_column_type(statement, 0) != SQLITE_NULL)
        *median = sqlite3_column_double(statement, 0);
    sqlite3_reset(statement);
    return ENG_OK;
}
