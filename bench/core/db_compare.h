/* What the comparison of two finished runs reads: times of points as shares of their block's roof.
 */
#ifndef ENG_BENCH_DB_COMPARE_H
#define ENG_BENCH_DB_COMPARE_H

#include "bench/core/db.h"

typedef struct EngComparedPoint {
    const char *config_key, *point_key, *block_id; /* of the block that measured it for the run */
    const char *experiment, *variant, *backend, *axes_json;
    double *log_ratios; /* [n] log of point time / roof time, of one pair each */
    int n;
    double median_ns, roof_median_ns; /* of one run(), on the roof's clock; NAN without samples */
} EngComparedPoint;

typedef struct EngComparedRun {
    const char *run_id, *machine_id, *state;
    EngComparedPoint *points; /* measured ones, no roofs; by config key */
    int n_points;
} EngComparedRun;

/* name: as eng_db_run_named takes it (db_runs.h). ENG_NOT_FOUND, or ENG_USAGE when several begin
 * so. */
EngStatus eng_db_compared_run(EngDb *db, const char *name, EngArena *arena, EngComparedRun *run,
                              EngErr *err);

#endif
