/* Finished training runs as a CSV file that is committed: what took hours is not lost with a
 * database, and a sweep goes on from it on a machine that has none of the runs.
 *
 * One row per run: manifest key, axes, outcome, metrics, when and where, data, the manifest itself,
 * series as JSON. A row is written with the whole file, under a lock on its folder and through a
 * temporary name, so that several processes may share it and none leaves half a row.
 */
#ifndef ENG_ABLATION_LEDGER_H
#define ENG_ABLATION_LEDGER_H

#include "base/mem.h"
#include "bench/ablation/run.h"

typedef struct EngTrainRecord {
    const char *key, *axes; /* axes: "rho=0.8 seed=1", those that are not at their default */
    const char *outcome;    /* "measured", "failed", or "likeness" of two models */
    const char *reason;     /* "" when measured */
    const char *finished_utc, *machine /* CPU model */, *build /* commit, or "" */;
    const char *data;             /* digest of streams and token map */
    const char *manifest;         /* name=value, separated by spaces */
    const char *series;           /* JSON: {name: [[step, value], ..]} */
    const char *histograms;       /* JSON, of a K.json alone: too large for the file. Else NULL */
    double metrics[ENG_TM_COUNT]; /* NAN: none */
} EngTrainRecord;

typedef struct EngTrainLedger {
    const char *path;
    EngArena *arena; /* owns all texts */
    EngTrainRecord *records;
    int n;
} EngTrainLedger;

/* A missing file is an empty ledger; ENG_BAD_DATA names file, line and column, also of a second row
 * of a key that has another outcome or loss. path must outlive it. */
EngStatus eng_train_ledger_open(const char *path, EngTrainLedger *ledger, EngErr *err);
void eng_train_ledger_close(EngTrainLedger *ledger); /* accepts an empty one */
/* The record of a manifest key, or NULL. Valid until the next append. */
const EngTrainRecord *eng_train_ledger_find(const EngTrainLedger *ledger, const char *key);
/* Adds a run to the file as it is by now, and reads it again. A key that is there stays as it is.
 */
EngStatus eng_train_ledger_append(EngTrainLedger *ledger, const EngTrainRecord *record,
                                  EngErr *err);

/* Metrics, outcome, reason, series and histograms of a finished run's K.json; texts in `arena`. */
EngStatus eng_train_result_read(const char *path, EngArena *arena, EngTrainRecord *record,
                                EngErr *err);

#endif
