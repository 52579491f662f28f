/* What a worker lifetime costs beside its samples: fork, set-up, comparison with the oracle,
 * warm-up, storing. For small points that is most of a run's time, so every estimate of time left
 * has it. */
#ifndef ENG_BENCH_DB_COSTS_H
#define ENG_BENCH_DB_COSTS_H

#include "bench/core/db.h"

/* Where nothing was measured yet: nanoseconds per point and lifetime. */
#define ENG_DEFAULT_OVERHEAD_NS 6e7

/* Looked up once per experiment; zeros to begin with. */
typedef struct EngOverheads {
    int n;
    struct {
        char experiment[32];
        double ns;
    } known[64];
} EngOverheads;

/* Per point and lifetime, mean over the last whole lifetimes of the experiment in this database;
 * of all experiments when it has none, else the default. db NULL: the default. */
EngStatus eng_db_overhead_ns(EngOverheads *overheads, EngDb *db, const char *experiment, double *ns,
                             EngErr *err);

#endif
