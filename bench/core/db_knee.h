/* The last-level cache as the latency ladder measured it; knee.sql says how it is computed. */
#ifndef ENG_BENCH_DB_KNEE_H
#define ENG_BENCH_DB_KNEE_H

#include "bench/core/db.h"

typedef struct EngCacheKnee {
    int64_t bytes;          /* working set where latency leaves the plateau of the cache */
    double near_ns, far_ns; /* a dependent load below it, and far beyond */
    int points;             /* working sets measured */
    char pages[8];          /* "2m" where measured, else the other kind */
} EngCacheKnee;

/* Makes the temporary view v_cache_knee of this connection; a second call does nothing. */
EngStatus eng_db_make_knee_view(EngDb *db, EngErr *err);

/* ENG_NOT_FOUND: the database has no ladder of this machine that reaches memory. */
EngStatus eng_db_cache_knee(EngDb *db, const char *machine_id, EngCacheKnee *knee, EngErr *err);

#endif
