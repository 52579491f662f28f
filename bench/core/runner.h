/* The runner: takes a sweep through plan, ledger, workers and samples. It is the only writer of its
 * database. */
#ifndef ENG_BENCH_RUNNER_H
#define ENG_BENCH_RUNNER_H

#include <signal.h>
#include <stdbool.h>
#include "bench/core/db.h"
#include "bench/core/sweep.h"

struct EngSession;
struct EngBlockContext;

/* Seed of tables, weights and generated streams: part of the store's identity, the same for all
 * runs, so that a point measured under one sampling seed is the same point under another. */
#define ENG_DATA_SEED 1

/* Another way to measure the points of a sweep (bench/core/ab.h), between the same plan, ledger and
 * progress. `planned` may change the session's plan before it is written. */
typedef struct EngRunHooks {
    void *context;
    EngStatus (*planned)(void *context, struct EngSession *session, EngErr *err);
    /* Rows that its points refer to beside those of a plain run; NULL: none. */
    EngStatus (*references)(void *context, EngDb *db, EngErr *err);
    EngStatus (*block)(void *context, const struct EngBlockContext *where,
                       const EngLedgerBlock *block, EngErr *err);
    /* After the last block, before the run counts as done; NULL: nothing. */
    EngStatus (*judge)(void *context, EngDb *db, const char *run_id, EngErr *err);
} EngRunHooks;

typedef struct EngRunOptions {
    const char *db_path;
    EngDb *db; /* open as ENG_DB_RUN, for several runs under one lock; NULL: opened by its path */
    const char *data_dir;
    bool fresh;
    bool own_points;         /* what other runs measured does not count */
    bool progress_line;      /* one line redrawn in place (a terminal), else a line a minute */
    const char *const *argv; /* recorded with the run */
    int argc;
    const volatile sig_atomic_t *interrupted; /* set by the caller's signal handler */
    const EngRunHooks *hooks;                 /* NULL: blocks of a plain run */
    const struct EngTracer *tracer; /* of sweeps that ask for traces, NULL: they get none */
    int64_t deadline_ns; /* eng_now_ns() from which on it stops as if interrupted, 0: none */
} EngRunOptions;

typedef struct EngRunResult {
    char run_id[ENG_KEY_HEX];
    bool resumed;
    EngPlanCounts counts;
    int measured, skipped, failed, wrong; /* of this call */
} EngRunResult;

/* Expands and measures. ENG_INTERRUPTED when asked to stop: the run can be resumed by the same
 * call. Points that fail do not fail the run: see result. */
EngStatus eng_run_sweep(const EngSweep *sweep, const EngRunOptions *options, EngRunResult *result,
                        EngErr *err);

/* The plan alone, for `--dry-run`: opens streams for their digests, allocates nothing large,
 * touches no database. The session owns plan and resources; free with eng_session_free. */
typedef struct EngSession EngSession;
EngStatus eng_session_open(const EngSweep *sweep, const char *data_dir, EngSession **session,
                           EngErr *err);
void eng_session_free(EngSession *session);
const EngPlan *eng_session_plan(const EngSession *session);
/* Wall time of a block's samples: what surrounds them is told by history (db_costs.h). */
double eng_block_estimate_ns(const EngPlanBlock *block);
/* How often a point of the block is set up. */
int64_t eng_block_setups(const EngPlanBlock *block);

/* Length that inner iterations are sized for (design section 4: short and many). */
#define ENG_SAMPLE_TARGET_NS ((int64_t)1000000)

#endif
