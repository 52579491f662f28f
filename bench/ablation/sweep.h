/* Sweeps of training runs: the experiment `train`, and the hooks with which eng_run_sweep takes its
 * points, several runs side by side, from text to finished models.
 *
 * Every run is a forked process. A run that the folder (run.h) or the ledger file (ledger.h) has is
 * not trained again. What the file alone has is stored as `imported`, with file, machine and build
 * as provenance. The others are trained seed by seed, so that comparisons are paired from the
 * start, and appended to the file as they end.
 */
#ifndef ENG_ABLATION_SWEEP_H
#define ENG_ABLATION_SWEEP_H

#include "bench/ablation/ledger.h"
#include "bench/core/block.h"
#include "bench/core/session.h"

extern const EngExperiment eng_experiment_train;
extern const EngExperimentList eng_train_experiments; /* that one alone */

typedef struct EngTrainSweep EngTrainSweep;

typedef struct EngTrainSweepOptions {
    const char *data_dir;
    const char *folder; /* of checkpoints and results: run.h */
    const char *ledger; /* CSV file */
    int jobs;           /* runs side by side */
    bool recorded;      /* trains nothing: points that the ledger lacks are left out */
    bool progress_line;
    int64_t checkpoint_ns;
    const volatile sig_atomic_t *interrupted;
} EngTrainSweepOptions;

EngStatus eng_train_sweep_create(const EngTrainSweepOptions *options, EngTrainSweep **out,
                                 EngErr *err);
void eng_train_sweep_destroy(EngTrainSweep *sweep); /* accepts NULL */
/* For EngRunOptions.hooks; valid while the sweep lives. Statuses of a plan beside the usual:
 * ENG_USAGE (a section changes two variables; text too short for a single pass), ENG_NOT_FOUND
 * (no text; with `recorded`: the ledger has none of the points). */
const EngRunHooks *eng_train_sweep_hooks(EngTrainSweep *sweep);
/* One line per arm of the plan: experts, rows, parameters and what is left over, or why it is
 * skipped; *n_runs: of those that are not. For --dry-run. */
EngStatus eng_train_sweep_describe(EngTrainSweep *sweep, EngSession *session, FILE *out,
                                   int *n_runs, EngErr *err);

#endif
