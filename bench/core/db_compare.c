/* Runs for comparison; see db_compare.h. */
#include "bench/core/db_compare.h"

#include <sqlite3.h>
#include <math.h>

#include "bench/core/db_sql.h"
#include "bench/core/stats.h"
#include "bench/core/verdict.h"

static EngStatus no_memory(EngDb *db, EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for a comparison", eng_db_path(db));
}

/* Pairs of a point (?1 block, ?2 point) with the roof of its shape. */
#define RATIOS                                                                                     \
    " FROM roofs f JOIN points fp ON fp.point_key = f.roof_point_key"                              \
    " JOIN points p ON p.point_key = ?2"                                                           \
    " JOIN samples s ON s.block_id = f.block_id AND s.point_key = ?2 AND s.traced = 0"             \
    " JOIN samples q ON q.block_id = f.block_id AND q.point_key = f.roof_point_key"                \
    "  AND q.segment = s.segment AND q.pair = s.pair AND q.traced = 0"                             \
    " WHERE f.block_id = ?1 AND fp.backend = p.backend"                                            \
    " AND json_remove(fp.axes_json, '$.variant') = json_remove(p.axes_json, '$.variant')"          \
    " AND iif(f.clock = 'cpu', s.cpu_ns, s.wall_ns) > 0"                                           \
    " AND iif(f.clock = 'cpu', q.cpu_ns, q.wall_ns) > 0"

static EngStatus read_ratios(EngDb *db, EngArena *arena, EngComparedPoint *point, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    int64_t n = 0;
    int room;
    EngStatus status = eng_db_number(db, &n, err, "SELECT count(*)" RATIOS, "ss", point->block_id,
                                     point->point_key);
    if (status) return status;
    room = (int)n;
    point->log_ratios = eng_arena_alloc(arena, (size_t)n * sizeof(double));
    double *roof_times = eng_arena_alloc(arena, (size_t)n * sizeof(double));
    int *segments = eng_arena_alloc(arena, (size_t)n * sizeof(int));
    if (!point->log_ratios || !roof_times || !segments) return no_memory(db, err);
    status = eng_db_query(db, &statement, err,
                          "SELECT 1.0 * iif(f.clock = 'cpu', s.cpu_ns, s.wall_ns)"
                          " / s.inner_iterations,"
                          " 1.0 * iif(f.clock = 'cpu', q.cpu_ns, q.wall_ns)"
                          " / q.inner_iterations, s.segment" RATIOS " ORDER BY s.segment, s.pair",
                          "ss", point->block_id, point->point_key);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row && point->n < room) {
        roof_times[point->n] = sqlite3_column_double(statement, 1);
        point->log_ratios[point->n] =
            log(sqlite3_column_double(statement, 0) / roof_times[point->n]);
        segments[point->n++] = sqlite3_column_int(statement, 2);
    }
    if (!status && row) sqlite3_reset(statement);
    if (status) return status;
    point->roof_ns = eng_median_in_place(roof_times, (size_t)point->n).median;
    point->segment_range = eng_segment_range(point->log_ratios, segments, point->n);
    return ENG_OK;
}

#define TIMES " FROM samples WHERE block_id = ?1 AND point_key = ?2 AND traced = 0"

static EngStatus read_medians(EngDb *db, EngArena *arena, EngComparedPoint *point, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    int64_t room = 0, n = 0;
    EngStatus status = eng_db_number(db, &room, err, "SELECT count(*)" TIMES, "ss", point->block_id,
                                     point->point_key);
    if (status) return status;
    double *cpu = eng_arena_alloc(arena, (size_t)room * sizeof *cpu);
    double *wall = eng_arena_alloc(arena, (size_t)room * sizeof *wall);
    if (!cpu || !wall) return no_memory(db, err);
    status = eng_db_query(
        db, &statement, err,
        "SELECT 1.0 * cpu_ns / inner_iterations, 1.0 * wall_ns / inner_iterations" TIMES, "ss",
        point->block_id, point->point_key);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row && n < room) {
        cpu[n] = sqlite3_column_double(statement, 0);
        wall[n++] = sqlite3_column_double(statement, 1);
    }
    if (!status && row) sqlite3_reset(statement);
    if (status) return status;
    point->cpu_ns = eng_median_in_place(cpu, (size_t)n).median;
    point->wall_ns = eng_median_in_place(wall, (size_t)n).median;
    return ENG_OK;
}

#define POINTS                                                                                     \
    " FROM run_points l JOIN points p USING (point_key)"                                           \
    " JOIN block_points b USING (block_id, point_key)"                                             \
    " WHERE l.run_id = ?1 AND p.is_roof = 0 AND b.outcome IS NOT NULL"

static EngStatus read_points(EngDb *db, EngArena *arena, EngComparedRun *run, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    int64_t n = 0;
    EngStatus status = eng_db_number(db, &n, err, "SELECT count(*)" POINTS, "s", run->run_id);
    if (status) return status;
    run->points = eng_arena_alloc(arena, (size_t)n * sizeof *run->points);
    if (!run->points) return no_memory(db, err);
    status = eng_db_query(db, &statement, err,
                          "SELECT p.config_key, p.point_key, l.block_id, p.experiment, p.variant,"
                          " p.backend, p.axes_json, b.reason, b.outcome" POINTS
                          " ORDER BY p.config_key, p.point_key",
                          "s", run->run_id);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row &&
           run->n_points < n) {
        EngComparedPoint *p = &run->points[run->n_points++];
        const char **texts[] = {&p->config_key, &p->point_key, &p->block_id,  &p->experiment,
                                &p->variant,    &p->backend,   &p->axes_json, &p->reason};
        bool whole = true;
        p->cpu_ns = p->wall_ns = p->roof_ns = NAN;
        for (int i = 0; i < 8; i++) whole &= (*texts[i] = eng_db_text(arena, statement, i)) != NULL;
        p->outcome = eng_db_outcome(statement, 8);
        if (whole) continue;
        sqlite3_reset(statement);
        return no_memory(db, err);
    }
    if (!status && row) sqlite3_reset(statement);
    for (int i = 0; i < run->n_points && !status; i++) {
        if (run->points[i].outcome != ENG_OUTCOME_MEASURED) continue;
        status = read_medians(db, arena, &run->points[i], err);
        if (!status) status = read_ratios(db, arena, &run->points[i], err);
    }
    return status;
}

EngStatus eng_db_compared_run(EngDb *db, const char *name, EngArena *arena, EngComparedRun *run,
                              EngErr *err)
{
    EngRunStatus *found = eng_arena_alloc(arena, sizeof *found);
    *run = (EngComparedRun){0};
    if (!found) return no_memory(db, err);
    EngStatus status = eng_db_status(db, name, arena, found, err);
    if (status) return status;
    run->run_id = found->run_id;
    run->machine_id = found->machine_id;
    run->state = found->state;
    return read_points(db, arena, run, err);
}
