/* Export: a run's points, or its raw samples, as tidy rows for other programs.
 *
 * One row per point, which is one tuple of axis values. Columns, in this order: run_id, machine_id,
 * experiment, kind, backend; one per axis of any experiment exported, by name; variant, is_roof,
 * outcome, reason, percent_of_roof,
 * expected_us (time of one call, see expectation.h) and why; per metric of any experiment exported,
 * by name, its median as <metric>, then <metric>_ci_lo, _ci_hi (95 % interval of the median) and
 * _n; stop_reason, config_key, point_key. A field that a row does not have (another experiment's
 * axis) is empty.
 *
 * Samples: one row per stored sample, with block_id, segment, pair, position, inner_iterations,
 * wall_ns, cpu_ns and traced in place of the summary, one column per metric, and one counter_<name>
 * per counter recorded.
 *
 * Verdicts: one row per stored verdict of the run as the new side, with variant, comparison (ab or
 * compare) and the columns of the table `verdicts` after the axes.
 *
 * A name that two columns would share gets "axis_" or "metric_" before it. Rows are ordered by run,
 * experiment, axes and keys: the same results give the same bytes. */
#ifndef ENG_BENCH_DB_EXPORT_H
#define ENG_BENCH_DB_EXPORT_H

#include "bench/core/counters.h"
#include "bench/core/db.h"
#include "bench/core/rows_text.h"

typedef enum EngExportWhat {
    ENG_EXPORT_POINTS = 0,
    ENG_EXPORT_SAMPLES,
    ENG_EXPORT_VERDICTS
} EngExportWhat;

typedef struct EngExportOptions {
    const char *run;        /* "all", or a name as eng_db_run_named takes it (db_runs.h) */
    const char *experiment; /* NULL: all */
    EngRowsFormat format;
    EngExportWhat what;
} EngExportOptions;

/* ENG_NOT_FOUND: no such run, or nothing of the experiment (no verdicts) in it. The database may be
 * open for reading only; all rows are of one moment, also while a run goes on. */
EngStatus eng_db_export(EngDb *db, const EngExportOptions *options, EngRowsSink sink, void *context,
                        int64_t *n_rows, EngErr *err);

/* Whether any run has points of it, ours or imported. */
EngStatus eng_db_has_experiment(EngDb *db, const char *experiment, bool *has, EngErr *err);

#endif
