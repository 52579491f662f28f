/* Stored verdicts of comparisons, and what judging an A/B run reads back from the ledger. */
#ifndef ENG_BENCH_DB_VERDICTS_H
#define ENG_BENCH_DB_VERDICTS_H

#include "bench/core/db.h"
#include "bench/core/verdict.h"

/* One verdict. kind: "ab" or "compare"; a run compared with itself (ab) is its own base. */
typedef struct EngVerdictRow {
    const char *kind, *run_id, *base_run_id, *point_key, *base_point_key;
    const EngEffect *effect; /* control.ratio NAN: none measured */
    const EngVerdict *verdict;
} EngVerdictRow;

/* Stores the verdicts of one comparison, all or none; those of the same points make way. */
EngStatus eng_db_put_verdicts(EngDb *db, const EngVerdictRules *rules, const EngVerdictRow *rows,
                              int n, EngErr *err);

/* How a point of a run ended, in the block that measured it for the run. Texts are the arena's, ""
 * for none. ENG_NOT_FOUND: the run has no such point. */
typedef struct EngPointEnd {
    EngOutcome outcome; /* NONE: not yet */
    const char *reason, *stop_reason;
} EngPointEnd;
EngStatus eng_db_point_end(EngDb *db, const char *run_id, const char *point_key, EngArena *arena,
                           EngPointEnd *end, EngErr *err);

/* Segments of a block that have samples of every of its points, whole: what a resumed A/B block
 * need not take again. */
EngStatus eng_db_whole_segments(EngDb *db, const char *block_id, int pairs, int *segments,
                                EngErr *err);

#endif
