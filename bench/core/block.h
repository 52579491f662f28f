/* Measuring one block: worker lifetimes until every point has its pairs or its reason. */
#ifndef ENG_BENCH_BLOCK_H
#define ENG_BENCH_BLOCK_H

#include "bench/core/db.h"
#include "bench/core/resources.h"
#include "bench/core/runner.h"
#include "bench/core/tracer.h"

/* Where a block is measured; shared by all blocks of a run. */
typedef struct EngBlockContext {
    EngDb *db;
    const EngResources *resources;
    const volatile sig_atomic_t *interrupted;
    int64_t deadline_ns;         /* as in EngRunOptions */
    void (*tick)(void *context); /* called after each stored sample, for progress; may be NULL */
    void *tick_context;
    EngRunResult *result;    /* counts of outcomes go here */
    const EngTracer *tracer; /* of points whose sweep asks for traces; NULL: none */
} EngBlockContext;

/* Takes an unfinished block of the ledger to its end. The table arena and weights it needs are
 * mapped already. ENG_INTERRUPTED: stopped by a signal, the block can be resumed. Database errors
 * end the run. */
EngStatus eng_block_run(const EngBlockContext *context, const EngLedgerBlock *block, EngErr *err);

/* The clock that judges the experiment ("cpu" or "wall"): that of its first timed metric. NULL when
 * it is counted. */
const char *eng_judging_clock(const EngExperiment *experiment);

#endif
