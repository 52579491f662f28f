/* The database (engram.db): results and ledger in one SQLite file, schema in schema.sql and
 * schema_<version>.sql, the view for people in views.sql. SQLite is used in db_*.c only.
 *
 * Crash promise: what a call has returned ENG_OK for survives kill -9 of the process, except
 * between eng_db_begin and eng_db_commit, where all or nothing does. One run at a time owns a
 * database (a lock file beside it); readers are never blocked.
 *
 * Statuses, beside what each prototype names: ENG_BAD_DATA (no database, damaged, cannot be read),
 * ENG_DB (busy, foreign, newer, another run), ENG_IO (cannot be written, disk full; the database
 * stays usable), ENG_NO_MEMORY. Every message names the database. Not thread-safe: one EngDb per
 * thread.
 */
#ifndef ENG_BENCH_DB_H
#define ENG_BENCH_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"
#include "bench/core/experiment.h"
#include "bench/core/plan.h"

#define ENG_DB_APPLICATION_ID 0x456e6772 /* "Engr" */
#define ENG_DB_VERSION        2

typedef struct EngDb EngDb;
struct sqlite3;

typedef enum EngDbMode {
    ENG_DB_READ = 0, /* must exist; nothing is written, not even a migration: older ones are read */
    ENG_DB_WRITE,    /* created or migrated when needed */
    ENG_DB_RUN       /* as write, and holds the exclusive run lock until closed */
} EngDbMode;

/* ENG_BAD_DATA too: ENG_DB_READ and no file. */
EngStatus eng_db_open(const char *path, EngDbMode mode, EngDb **db, EngErr *err);
void eng_db_close(EngDb *db); /* accepts NULL; an open transaction is rolled back */
/* In a forked worker, first thing: drops the run lock's descriptor, so that a worker that outlives
 * the run does not hold the database. The EngDb must not be used (nor closed) there afterwards. */
void eng_db_forget_in_child(EngDb *db);
/* Whether the run lock was last taken for this run (its whole id) by a process that still lives: a
 * run whose row says `running` and that is not alive was killed. */
bool eng_db_run_is_alive(const EngDb *db, const char *run_id);
const char *eng_db_path(const EngDb *db);
/* For readers of floors above that hold their own SQL (reports); owned by db. */
struct sqlite3 *eng_db_handle(EngDb *db);

/* A transaction over several of the calls below; without one each is its own. Do not nest. */
EngStatus eng_db_begin(EngDb *db, EngErr *err);
EngStatus eng_db_commit(EngDb *db, EngErr *err);
void eng_db_rollback(EngDb *db);

/* ---- what points refer to: put before the plan; a row that is there already stays -------------
 */

typedef struct EngMachineRow {
    const char *machine_id, *cpu_model;
    int cores;
    int64_t memory_bytes, cache_bytes; /* cache_bytes 0: unknown */
    const char *gpu;                   /* NULL: none */
    const char *description_json;
} EngMachineRow;
EngStatus eng_db_put_machine(EngDb *db, const EngMachineRow *row, EngErr *err);

typedef struct EngBuildRow {
    const char *build_id, *version, *commit_id /* or NULL */, *compiler, *flags, *libraries_json;
} EngBuildRow;
EngStatus eng_db_put_build(EngDb *db, const EngBuildRow *row, EngErr *err);

EngStatus eng_db_put_stream(EngDb *db, const char *stream_digest, const char *corpus,
                            const char *kind, int64_t n_tokens, const char *header_json,
                            EngErr *err);
EngStatus eng_db_put_preset(EngDb *db, const char *preset_digest, const char *name,
                            const char *preset_json, EngErr *err);
EngStatus eng_db_put_store(EngDb *db, const char *store_digest, const char *kind,
                           const char *row_format, const char *description_json, EngErr *err);
/* All metrics of an experiment; unit, direction, clock and help follow the program. */
EngStatus eng_db_put_metrics(EngDb *db, const EngExperiment *experiment, EngErr *err);

/* ---- runs -------------------------------------------------------------------------------------*/

typedef struct EngRunSpec {
    const char *machine_id, *build_id;
    uint64_t seed;
    const char *command_json, *sweep_name, *sweep_text, *plan_key, *environment_json;
} EngRunSpec;

/* Takes up the newest unfinished run of the same plan_key, machine and build, whose commit may
 * differ where that left the code of kernels as it was (state back to running, its leftover running
 * segments broken, running points pending again), else starts a new one; fresh: always a new one.
 * *resumed says which. */
EngStatus eng_db_run_begin(EngDb *db, const EngRunSpec *spec, bool fresh, char run_id[ENG_KEY_HEX],
                           bool *resumed, EngErr *err);

typedef enum EngRunState {
    ENG_RUN_RUNNING = 0,
    ENG_RUN_DONE,
    ENG_RUN_INTERRUPTED, /* resumable */
    ENG_RUN_FAILED       /* the run itself broke off; resumable */
} EngRunState;
EngStatus eng_db_run_finish(EngDb *db, const char *run_id, EngRunState state, EngErr *err);

/* What writing a plan did, in named points (roofs are not counted). */
typedef struct EngPlanCounts {
    int found;   /* measured before, or skipped before and now: linked, not planned again */
    int planned; /* pending */
    int skipped; /* planned as skipped, with their reason */
    int blocks;  /* with something to measure */
} EngPlanCounts;

/* Writes points, axis values, blocks, ledger and links in one transaction. A run that has its plan
 * already (resumed) keeps it, but points measured by another run meanwhile are linked. Failed and
 * wrong points of earlier runs are tried again, and skipped ones that nothing forbids now. A block
 * keeps only what is missing, and its roofs. fresh: nothing found counts. */
EngStatus eng_db_plan_write(EngDb *db, const char *run_id, const EngPlan *plan, bool fresh,
                            EngPlanCounts *counts, EngErr *err);

/* ---- the ledger -------------------------------------------------------------------------------*/

typedef enum EngPointState {
    ENG_POINT_PENDING = 0,
    ENG_POINT_RUNNING,
    ENG_POINT_DONE
} EngPointState;

typedef enum EngOutcome {
    ENG_OUTCOME_NONE = 0,
    ENG_OUTCOME_MEASURED,
    ENG_OUTCOME_SKIPPED,
    ENG_OUTCOME_FAILED,
    ENG_OUTCOME_WRONG
} EngOutcome;
const char *eng_outcome_name(EngOutcome outcome); /* "measured", ...; "" for none */

typedef struct EngLedgerPoint {
    const EngPlanPoint *plan; /* key, axes, variant; plan->is_roof marks roofs */
    EngPointState state;
    EngOutcome outcome;
    int64_t n_samples; /* stored already, over all segments of the block */
} EngLedgerPoint;

typedef struct EngLedgerBlock {
    char block_id[ENG_KEY_HEX];
    int ordinal;
    const EngExperiment *experiment;
    const char *compare_axis;
    uint64_t seed;
    EngSweepSettings settings; /* of the plan's block */
    int64_t estimate_ns;
    int segments_wanted, pairs_wanted;
    int segments_done; /* finished, broken ones not counted */
    int segments_broken;
    EngLedgerPoint *points;  /* all of the block, done ones too; named points first, then roofs */
    int n_points, n_pending; /* pending: not done, roofs not counted */
} EngLedgerBlock;

/* Unfinished blocks of a run in their order, allocated in `arena`; plan: the one written (or
 * expanded again: same plan_key). ENG_INTERNAL when a point of the run is not in the plan. */
EngStatus eng_db_blocks(EngDb *db, const char *run_id, const EngPlan *plan, EngArena *arena,
                        EngLedgerBlock **blocks, int *n_blocks, EngErr *err);

EngStatus eng_db_block_start(EngDb *db, const char *block_id, EngErr *err);
/* Roofs that are not done yet become measured when they have samples, else skipped
 * ("no pair taken"); a named point that is not done is an ENG_INTERNAL error. */
EngStatus eng_db_block_done(EngDb *db, const char *block_id, EngErr *err);

EngStatus eng_db_point_start(EngDb *db, const char *block_id, const char *point_key, EngErr *err);
/* reason: why skipped, failed or wrong (required then); stop_reason: why sampling ended, or NULL.
 */
EngStatus eng_db_point_done(EngDb *db, const char *block_id, const char *point_key,
                            EngOutcome outcome, const char *reason, const char *stop_reason,
                            EngErr *err);

/* Where the result of a point comes from, when that shows only once it is there. */
EngStatus eng_db_point_origin(EngDb *db, const char *point_key, const char *kind,
                              const char *provenance, EngErr *err);

/* home: the block that holds a point for a run, its own or that of an earlier run which measured
 * it, when no series there has a name like `series` (a GLOB pattern); else "". */
EngStatus eng_db_point_lacks(EngDb *db, const char *run_id, const char *point_key,
                             const char *series, char home[ENG_KEY_HEX], EngErr *err);

/* A worker lifetime: *segment is the next free number of the block. */
EngStatus eng_db_segment_start(EngDb *db, const char *block_id, uint64_t seed, int *segment,
                               EngErr *err);
/* broken: the worker died; its complete samples stay. evidence_json: steal, faults, switches. */
EngStatus eng_db_segment_finish(EngDb *db, const char *block_id, int segment, bool broken,
                                const char *evidence_json, EngErr *err);

/* ---- results ----------------------------------------------------------------------------------*/

/* Which sample: all results carry one. */
typedef struct EngSampleId {
    const char *block_id, *point_key;
    int segment;
    int pair; /* number of the round within the segment, from 0 */
} EngSampleId;

/* One timed repetition with its metric values (in the order of experiment->metrics, NAN: not
 * observed, not stored). Its own transaction unless one is open. */
EngStatus eng_db_put_sample(EngDb *db, const EngSampleId *id, int position, bool traced,
                            const EngTiming *timing, const EngExperiment *experiment,
                            const double *values, EngErr *err);
/* What counters.h observed of a stored sample, [ENG_COUNTER_COUNT], NAN: not observed, not stored:
 * rows of sample_values called "counter_<name>", which v_summary leaves out. */
EngStatus eng_db_put_counters(EngDb *db, const EngSampleId *id, const double *counters,
                              EngErr *err);
/* id->pair is not used. Replaces that of the same segment. */
EngStatus eng_db_put_residual(EngDb *db, const EngSampleId *id, const EngResidual *residual,
                              EngErr *err);
EngStatus eng_db_put_histogram(EngDb *db, const EngSampleId *id, const char *name, int layer,
                               int stream, const char *scale, double lo, double hi,
                               const int64_t *counts, int n_bins, EngErr *err);
/* The roof of one shape of a block (replaces). clock: "cpu" or "wall". */
EngStatus eng_db_put_roof(EngDb *db, const char *block_id, const char *roof_point_key,
                          const char *clock, const char *tuned_json, EngErr *err);
/* A file of a point; path as seen from the database's folder. One of each kind per point and block.
 */
EngStatus eng_db_put_artifact(EngDb *db, const EngSampleId *id, const char *kind, const char *path,
                              int64_t bytes, const char *sha256, EngErr *err);
/* Whether a point of a block was measured (or has its samples) and has no artifact "trace" yet. */
EngStatus eng_db_wants_trace(EngDb *db, const char *block_id, const char *point_key, bool *wanted,
                             EngErr *err);
/* How many points a run found measured by runs before it that did not trace them. */
EngStatus eng_db_count_untraced(EngDb *db, const char *run_id, int64_t *n, EngErr *err);
/* A value of a named series (a loss curve) of a point; id->segment and id->pair are not used. NAN
 * is stored as none. Replaces. */
EngStatus eng_db_put_series(EngDb *db, const EngSampleId *id, const char *name, int64_t step,
                            double value, EngErr *err);
/* Lost records of a kind ("trace records", "samples"); adds up. */
EngStatus eng_db_put_drops(EngDb *db, const EngSampleId *id, const char *what, int64_t count,
                           EngErr *err);

/* ---- reading ----------------------------------------------------------------------------------*/

typedef struct EngStatusCounts {
    const char *experiment; /* "" for the total */
    int points;             /* named ones (not roofs) */
    int pending, running, measured, skipped, failed, wrong;
    int found; /* measured or skipped by an earlier run */
} EngStatusCounts;

typedef struct EngStatusPoint {
    const char *point_key, *experiment, *variant, *axes_json;
    EngOutcome outcome;
    const char *reason;         /* "" when measured */
    int64_t n_samples, wall_ns; /* over all its samples */
} EngStatusPoint;

/* How often sampling ended for a reason ("pairs reached", "time budget", ...). */
typedef struct EngStopCount {
    const char *reason;
    int points;
} EngStopCount;

typedef struct EngRunStatus {
    const char *run_id, *state, *sweep_name, *started_utc, *ended_utc /* "" while running */;
    const char *machine_id, *build_id, *plan_key;
    int blocks, blocks_done;
    /* Wall time left: the estimates of what is missing, scaled by what finished blocks cost. */
    int64_t remaining_estimate_ns;
    double cost_factor; /* wall time over estimate of the run's finished blocks, NAN without any */
    int64_t spent_ns;   /* wall time of its finished segments */
    /* The block in work, -1: none. */
    int current_block, current_segment, current_segments;
    const char *current_experiment; /* "" without */
    int64_t n_samples;
    EngStatusCounts total;
    EngStatusCounts *experiments;
    int n_experiments;
    EngStopCount *stops; /* of measured points, commonest first */
    int n_stops;
    EngStatusPoint *failures; /* failed and wrong */
    int n_failures;
    EngStatusPoint *skips;
    int n_skips;
    EngStatusPoint *slowest; /* up to 5, longest first */
    int n_slowest;
} EngRunStatus;

/* run: a name as eng_db_run_named takes it (db_runs.h); NULL: the newest. Allocated in `arena`.
 * ENG_NOT_FOUND: no (such) run. */
EngStatus eng_db_status(EngDb *db, const char *run, EngArena *arena, EngRunStatus *status,
                        EngErr *err);

/* Rows of v_summary. Numbers that are NULL there are NAN (ci, percent_of_roof, median). */
typedef struct EngSummaryRow {
    const char *config_key, *point_key, *experiment, *backend, *kind, *outcome, *axes_json;
    const char *metric, *unit, *clock; /* "" when the point has no samples */
    int64_t n;
    double median, ci_lo, ci_hi, percent_of_roof;
} EngSummaryRow;

/* Of a run; experiment and metric NULL: all. Ordered by experiment, axes, metric. */
EngStatus eng_db_summary(EngDb *db, const char *run_id, const char *experiment, const char *metric,
                         EngArena *arena, EngSummaryRow **rows, int *n_rows, EngErr *err);

#endif
