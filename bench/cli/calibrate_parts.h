/* Parts of engram calibrate. */
#ifndef ENG_BENCH_CLI_CALIBRATE_PARTS_H
#define ENG_BENCH_CLI_CALIBRATE_PARTS_H

#include "bench/core/db.h"
#include "sim/planner/recording.h"

/* Holds the models of caches and batches against the run's counts: exact ones must be equal, SHARDS
 * and AET within 0.01 on the mean over caches of a corpus. Stores their values as simulated points
 * and prints a table; *beyond counts those that are off. */
EngStatus eng_calibrate_counts(EngDb *db, const EngSweep *sweep, const char *data_dir,
                               const char *run_id, const EngRecording *measured, int *beyond,
                               EngErr *err);

#endif
