/* The stopping rule on the samples of the ledger: those of this call and of killed ones before it.
 */
#ifndef ENG_BENCH_DB_STOPPING_H
#define ENG_BENCH_DB_STOPPING_H

#include "bench/core/db.h"
#include "bench/core/stopping.h"

/* For one named point of a block, by its judging clock ("cpu" or "wall") and the block's settings;
 * paired with the fastest roof of its shape, where there is one. */
EngStatus eng_db_stop(EngDb *db, const EngLedgerBlock *block, const EngPlanPoint *point,
                      const char *clock, EngStop *stop, EngErr *err);

#endif
