/* Runs by name, and the list of them. */
#ifndef ENG_BENCH_DB_RUNS_H
#define ENG_BENCH_DB_RUNS_H

#include "bench/core/db.h"

/* The run that `name` means: "latest" (or NULL), "latest~N" (the N-th before it, by start), a run
 * id, or the first characters of one. ENG_NOT_FOUND: no such run; ENG_USAGE: several begin so. */
EngStatus eng_db_run_named(EngDb *db, const char *name, char run_id[ENG_KEY_HEX], EngErr *err);

/* The newest run with points of `experiment`, of any when none has; statuses as for "latest". */
EngStatus eng_db_run_of(EngDb *db, const char *experiment, char run_id[ENG_KEY_HEX], EngErr *err);

typedef struct EngRunRow {
    const char *run_id, *sweep_name, *state, *started_utc, *ended_utc /* "" without */;
    const char *machine_id, *command_json;
    int points, measured, verdicts; /* named points, measured ones, stored verdicts */
} EngRunRow;

/* Newest first: row i is "latest~i". Allocated in `arena`. */
EngStatus eng_db_runs(EngDb *db, EngArena *arena, EngRunRow **rows, int *n_rows, EngErr *err);

#endif
