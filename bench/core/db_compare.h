/* What the comparison of two finished runs reads: how each point ended, its times, and these as
 * shares of its block's roof. */
#ifndef ENG_BENCH_DB_COMPARE_H
#define ENG_BENCH_DB_COMPARE_H

#include "bench/core/db.h"

typedef struct EngComparedPoint {
    const char *config_key, *point_key, *block_id; /* of the block that measured it for the run */
    const char *experiment, *variant, *backend, *axes_json;
    EngOutcome outcome;
    const char *reason; /* why it was not measured; "" where it was */
    /* Of measured points; medians are of one run(), NAN without samples. */
    double *log_ratios; /* [n] log of point time / roof time, of one pair each, on roof's clock */
    int n;
    double segment_range; /* between the medians of segments (verdict.h) */
    double cpu_ns, wall_ns, roof_ns;
} EngComparedPoint;

typedef struct EngComparedRun {
    const char *run_id, *machine_id, *state;
    EngComparedPoint *points; /* finished ones, no roofs; by config key */
    int n_points;
} EngComparedRun;

/* name: as eng_db_run_named takes it (db_runs.h). ENG_NOT_FOUND, or ENG_USAGE when several begin
 * so. */
EngStatus eng_db_compared_run(EngDb *db, const char *name, EngArena *arena, EngComparedRun *run,
                              EngErr *err);

#endif
