/* What a database knows of a machine's rates, and the expectation of points from it. */
#ifndef ENG_BENCH_DB_EXPECTATION_H
#define ENG_BENCH_DB_EXPECTATION_H

#include "bench/core/db.h"
#include "bench/core/expectation.h"

/* Rates of one machine: its points of `ladder`, `stream` and `project`, over all runs. */
typedef struct EngRateTable EngRateTable;
EngStatus eng_db_rates(EngDb *db, const char *machine_id, EngArena *arena, EngRateTable **table,
                       EngErr *err);

/* What of a point's summary the expectation uses; NAN: not there. */
typedef struct EngPointFacts {
    double flops, moved_bytes, line_bytes, working_set_bytes, cpu_us, wall_us, percent_of_roof;
    int threads;
} EngPointFacts;
extern const EngPointFacts eng_no_facts;
/* Takes a metric's median when it is one of those. */
void eng_point_facts_add(EngPointFacts *facts, const char *metric, double median,
                         double percent_of_roof);
int eng_threads_of(const char *axes_json); /* 1 without that axis */

void eng_expect_point(const EngRateTable *table, const EngPointFacts *facts, EngExpectation *out);

#endif
