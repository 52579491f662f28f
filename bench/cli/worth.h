/* What kernel ratios in a table are worth for the chain (Amdahl), where the database has a chain
 * point of the same machine, preset and tokens. */
#ifndef ENG_BENCH_CLI_WORTH_H
#define ENG_BENCH_CLI_WORTH_H

#include "bench/core/amdahl.h"

typedef struct EngWorth {
    EngAmdahl amdahl; /* found is false for rows that are no stage of a measured chain */
    double speedup;   /* left to the row's roof, NAN: no roof */
} EngWorth;

/* One per row, in `arena`; *worth NULL when no row has one. */
EngStatus eng_worth_of_rows(EngDb *db, const char *machine_id, const EngSummaryRow *rows, int n,
                            EngArena *arena, EngWorth **worth, EngErr *err);
/* "+0.3 %", with "(nd)" when the chain's own noise hides it; "" when there is nothing to say. */
void eng_worth_text(const EngWorth *worth, char *out, size_t size);
/* The legend of that column, and a line per shape for its fastest variant over `portable`. */
void eng_worth_print(const EngSummaryRow *rows, int n, const EngWorth *worth);

#endif
