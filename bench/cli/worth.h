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

/* The chain that a point is part of. *is_stage false: of none, and *amdahl is not set; found false:
 * none was measured at its shape. */
EngStatus eng_worth_find(EngDb *db, const char *machine_id, const char *experiment,
                         const char *axes_json, EngAmdahl *amdahl, bool *is_stage, EngErr *err);
/* "chain: WHAT, x1.8 on gather = +0.3 % of the chain ..."; where none was found: what to run. */
void eng_worth_print_line(const EngAmdahl *amdahl, const char *experiment, const char *axes_json,
                          const char *what, double speedup);

/* A ratio that two builds or two runs have at one point. */
typedef struct EngChange {
    const char *experiment, *axes_json, *variant;
    double ratio; /* of times, new / old */
    bool called;  /* slower or faster */
} EngChange;
/* One line: the change that is worth most, or costs most; called ones go before others. what: "new
 * over old". */
EngStatus eng_worth_print_changes(EngDb *db, const char *machine_id, const EngChange *changes,
                                  int n, const char *what, EngErr *err);

#endif
