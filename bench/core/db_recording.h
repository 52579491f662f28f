/* Runs as recordings (sim/planner/recording.h), and what models say of their points: kind
 * `simulated`, in the same tables as the measured ones and joined to them by config key. */
#ifndef ENG_BENCH_DB_RECORDING_H
#define ENG_BENCH_DB_RECORDING_H

#include "bench/core/db.h"
#include "sim/planner/recording.h"

/* Medians of the measured points of some runs, roofs left out; of a point in several runs the first
 * counts. ENG_NOT_FOUND: none was measured. Free with eng_recording_free. */
EngStatus eng_db_recording(EngDb *db, const char *const *run_ids, int n_runs,
                           EngRecording *recording, EngErr *err);

/* A model's value for one metric of a measured point. */
typedef struct EngSimulated {
    const char *point_key; /* of the measured point, or its first characters as in recordings */
    const char *metric;
    double value;
    const char *provenance; /* the points and corpus it rests on; begins with "extrapolated: " where
                               the model is outside what it was calibrated for */
} EngSimulated;

/* Stores values beside a run's measured points, as a run of its own called `name` with the model's
 * key (any text that changes when models or calibration do) in place of the variant's digest, in
 * one transaction. Those that the database has under the same key are replaced. run_id: of the new
 * run. ENG_INTERNAL: a point that the run has not measured. */
EngStatus eng_db_put_simulated(EngDb *db, const char *of_run, const char *name, const char *model,
                               const EngSimulated *values, int n, char run_id[ENG_KEY_HEX],
                               EngErr *err);

/* Makes the temporary view v_predictions of this connection (predictions.sql says what it holds); a
 * second call does nothing. */
EngStatus eng_db_make_predictions_view(EngDb *db, EngErr *err);

#endif
