/* See db_stopping.h. */
#include "bench/core/db_stopping.h"

#include <sqlite3.h>
#include <math.h>
#include <string.h>

#include "bench/core/db_sql.h"
#include "bench/core/stats.h"

/* Of one point in one block, in the order of segments and rounds. */
typedef struct Times {
    int n;
    int *segments, *pairs;
    double *ns; /* per inner iteration */
} Times;

static EngStatus read_times(EngDb *db, const char *block_id, const char *point_key,
                            const char *clock, EngArena *arena, Times *times, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    int64_t n = 0;
    *times = (Times){0};
    EngStatus status = eng_db_number(
        db, &n, err,
        "SELECT count(*) FROM samples WHERE block_id = ? AND point_key = ? AND traced = 0", "ss",
        block_id, point_key);
    if (status || !n) return status;
    times->segments = eng_arena_alloc(arena, (size_t)n * sizeof *times->segments);
    times->pairs = eng_arena_alloc(arena, (size_t)n * sizeof *times->pairs);
    times->ns = eng_arena_alloc(arena, (size_t)n * sizeof *times->ns);
    if (!times->segments || !times->pairs || !times->ns)
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for samples", eng_db_path(db));
    status = eng_db_query(db, &statement, err,
                          "SELECT segment, pair, iif(?3 = 'cpu', cpu_ns, wall_ns) * 1.0"
                          " / inner_iterations FROM samples WHERE block_id = ?1 AND point_key = ?2"
                          " AND traced = 0 ORDER BY segment, pair",
                          "sss", block_id, point_key, clock);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row) {
        if (times->n == n) continue;
        times->segments[times->n] = sqlite3_column_int(statement, 0);
        times->pairs[times->n] = sqlite3_column_int(statement, 1);
        times->ns[times->n++] = sqlite3_column_double(statement, 2);
    }
    return status;
}

/* The fastest roof of the point's shape and backend; n 0: none. */
static EngStatus read_roof(EngDb *db, const EngLedgerBlock *block, const EngPlanPoint *of,
                           const char *clock, EngArena *arena, Times *best, EngErr *err)
{
    double best_ns = INFINITY;
    EngStatus status = ENG_OK;
    *best = (Times){0};
    for (int i = 0; i < block->n_points && !status; i++) {
        const EngPlanPoint *p = block->points[i].plan;
        Times times;
        EngMedian median;
        if (!p->is_roof || p->shape != of->shape || strcmp(p->backend, of->backend)) continue;
        status = read_times(db, block->block_id, p->point_key, clock, arena, &times, err);
        if (!status) status = eng_median(times.ns, (size_t)times.n, &median, err);
        if (status || !(median.median < best_ns)) continue;
        best_ns = median.median;
        *best = times;
    }
    return status;
}

/* Roof time over point time, by round; both ascend. */
static void pair_up(const Times *point, const Times *roof, double *ratios)
{
    int r = 0;
    for (int i = 0; i < point->n; i++) {
        while (r < roof->n &&
               (roof->segments[r] < point->segments[i] ||
                (roof->segments[r] == point->segments[i] && roof->pairs[r] < point->pairs[i])))
            r++;
        bool same = r < roof->n && roof->segments[r] == point->segments[i] &&
                    roof->pairs[r] == point->pairs[i];
        ratios[i] = same && point->ns[i] > 0 ? roof->ns[r] / point->ns[i] : NAN;
    }
}

EngStatus eng_db_stop(EngDb *db, const EngLedgerBlock *block, const EngPlanPoint *point,
                      const char *clock, EngStop *stop, EngErr *err)
{
    const EngStopRule rule = {block->settings.precision * 1e-4, block->settings.settled * 1e-4};
    EngArena *arena = eng_arena_create();
    Times times, roof;
    double *ratios = NULL;
    *stop = ENG_STOP_NOT;
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for samples");
    EngStatus status = read_times(db, block->block_id, point->point_key, clock, arena, &times, err);
    if (!status) status = read_roof(db, block, point, clock, arena, &roof, err);
    if (!status && times.n && roof.n) {
        ratios = eng_arena_alloc(arena, (size_t)times.n * sizeof *ratios);
        if (ratios)
            pair_up(&times, &roof, ratios);
        else
            status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for samples");
    }
    const EngStopSamples samples = {times.n, times.segments, times.ns, ratios};
    if (!status) status = eng_stop_decide(&rule, &samples, stop, err);
    eng_arena_destroy(arena);
    return status;
}
