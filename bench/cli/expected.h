/* The second table of `engram run`: what each point should take on this machine, and where it does
 * not, why (bench/core/expectation.h). */
#ifndef ENG_BENCH_CLI_EXPECTED_H
#define ENG_BENCH_CLI_EXPECTED_H

#include "bench/core/db.h"

bool eng_row_is_roof(const EngSummaryRow *row); /* its variant is a roof of its operation */

/* rows: of eng_db_summary, all metrics. Prints nothing when nothing is expected of any point; roofs
 * are left out. */
EngStatus eng_expected_print(EngDb *db, const char *run_id, const char *machine_id,
                             const EngSummaryRow *rows, int n, EngErr *err);

#endif
