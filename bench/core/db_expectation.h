/* What a database knows of a machine's rates, and the expectation of points from it. */
#ifndef ENG_BENCH_DB_EXPECTATION_H
#define ENG_BENCH_DB_EXPECTATION_H

#include "bench/core/db.h"
#include "bench/core/expectation.h"

/* Rates of one machine: its points of `ladder`, `stream` and `project`, by run. */
typedef struct EngRateTable EngRateTable;
EngStatus eng_db_rates(EngDb *db, const char *machine_id, EngArena *arena, EngRateTable **table,
                       EngErr *err);

/* What of a point's summary the expectation uses; NAN: not there. */
typedef struct EngPointFacts {
    double flops, moved_bytes, line_bytes, working_set_bytes, huge_share, cpu_us, wall_us;
    double percent_of_roof, roof_moved_bytes;
    int threads;
} EngPointFacts;
extern const EngPointFacts eng_no_facts;
/* Takes a metric's median when it is one of those. */
void eng_point_facts_add(EngPointFacts *facts, const char *metric, double median,
                         double percent_of_roof);
int eng_threads_of(const char *axes_json); /* 1 without that axis */

/* Bytes that the roof of a point's shape moves, NAN without one. */
EngStatus eng_db_roof_moved_bytes(EngDb *db, const char *run_id, const char *point_key,
                                  double *bytes, EngErr *err);

/* Rates come from the point's own run where it measured some (machines drift), else from any. */
void eng_expect_point(const EngRateTable *table, const char *run_id, const EngPointFacts *facts,
                      EngExpectation *out);

#endif
