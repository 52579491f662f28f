/* Samples as pairs, for searches and floors: what v_summary's medians are made of. */
#ifndef ENG_BENCH_DB_PAIRS_H
#define ENG_BENCH_DB_PAIRS_H

#include "bench/core/db.h"

/* One untraced sample, per inner iteration. Samples are a pair when block, segment and pair agree.
 */
typedef struct EngPairSample {
    int block; /* the run's blocks numbered from 1 */
    int segment, pair;
    int64_t inner; /* iterations of the sample */
    double wall_ns, cpu_ns;
} EngPairSample;

typedef struct EngPairPoint {
    const char *point_key, *variant;
    bool is_roof;
    EngOutcome outcome;           /* NONE: its block is not finished */
    const EngPairSample *samples; /* by segment, then pair */
    int n;
} EngPairPoint;

/* Points of a run that have samples, finished or not, in the blocks that measured them for it;
 * point_key NULL: all. Allocated in `arena`. */
EngStatus eng_db_pairs(EngDb *db, const char *run_id, const char *point_key, EngArena *arena,
                       EngPairPoint **points, int *n_points, EngErr *err);

/* The newest run of a plan on a machine: finished by any build (the plan's key covers the code of
 * its points), else unfinished and resumable by this build. run_id "" when there is none. */
EngStatus eng_db_find_run(EngDb *db, const char *plan_key, const char *machine_id,
                          const char *build_id, char run_id[ENG_KEY_HEX], bool *finished,
                          EngErr *err);

/* The newest measured point of the chain of CPU kernels for a machine, preset and tokens; of
 * equals, `best` variants, then the same number of threads come first. */
typedef struct EngChainRow {
    char run_id[ENG_KEY_HEX], point_key[ENG_KEY_HEX];
    int64_t threads;
} EngChainRow;
EngStatus eng_db_find_chain(EngDb *db, const char *machine_id, const char *preset, int64_t tokens,
                            int64_t threads, EngChainRow *row, bool *found, EngErr *err);

/* Median of one metric of a run's point; NAN when it has none. */
EngStatus eng_db_median(EngDb *db, const char *run_id, const char *point_key, const char *metric,
                        double *median, EngErr *err);

#endif
