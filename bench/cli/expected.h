/* The second table of `engram run`: what each point should take on this machine, and where it does
 * not, why (bench/core/expectation.h). */
#ifndef ENG_BENCH_CLI_EXPECTED_H
#define ENG_BENCH_CLI_EXPECTED_H

#include "bench/core/db.h"

/* The kernel of a row's point, NULL when this build has none of that name or it is of no operation.
 */
const EngKernel *eng_row_kernel(const EngSummaryRow *row);
bool eng_row_is_roof(const EngSummaryRow *row); /* its variant is a roof of its operation */
bool eng_row_is_device(
    const EngSummaryRow *row); /* ... is a device's: CPU rates say nothing of it */

/* rows: of eng_db_summary, all metrics. Prints nothing when nothing is expected of any point; roofs
 * and kernels of a device are left out. */
EngStatus eng_expected_print(EngDb *db, const char *run_id, const char *machine_id,
                             const EngSummaryRow *rows, int n, EngErr *err);

#endif
