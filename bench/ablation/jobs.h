/* Inside of a sweep of training runs: what its plan (sweep.c) and its processes
 * (jobs.c) share. */
#ifndef ENG_ABLATION_JOBS_H
#define ENG_ABLATION_JOBS_H

#include "bench/ablation/sweep.h"

#define ENG_TRAIN_TEXTS            8
#define ENG_TRAIN_MAX_JOBS         64
#define ENG_TRAIN_SYNTHETIC_TOKENS 65536

/* A point of the plan that can be trained. Its stream is the text, its variant digest the key. */
typedef struct EngTrainItem {
    EngPlanPoint *point;
    EngArm arm;
    const EngTrainData *data;
    const char *key, *who, *manifest; /* manifest on one line */
    bool recorded;                    /* the ledger had it when the plan was made */
    int order;                        /* in the sweep */
} EngTrainItem;

typedef struct EngTrainOpenText {
    int vocab;
    const char *name;
    EngTrainData data;
} EngTrainOpenText;

struct EngTrainSweep {
    EngTrainSweepOptions options;
    EngArena *arena;
    EngTrainLedger ledger;
    bool ledger_is_open;
    const EngSession *session; /* of the plan: machine and build */
    EngTrainOpenText texts[ENG_TRAIN_TEXTS];
    int n_texts;
    EngTrainItem *items; /* seed by seed */
    int n_items;
    EngRunHooks hooks;
};

/* Likeness of item i to its reference as series (JSON), from the ledger or worked out and added to
 * it. *series NULL: there is no reference in the sweep, or the streams of one of the two are not
 * here. */
EngStatus eng_train_likeness(EngTrainSweep *sweep, int i, const char **series, EngErr *err);
/* Whether the folder has a run's result; where from, if the ledger file alone has it (NULL: no
 * memory). */
bool eng_train_has_result(const EngTrainSweep *sweep, const EngTrainItem *item);
const char *eng_train_origin(EngTrainSweep *sweep, const EngTrainItem *item, EngErr *err);
EngStatus eng_train_planned(void *context, EngSession *session, EngErr *err);
/* Texts of the plan as streams. */
EngStatus eng_train_references(void *context, EngDb *db, EngErr *err);
/* After the last block: compares what was not compared yet, whichever run stored it, an
 * interrupted or an earlier one. */
EngStatus eng_train_liken(void *context, EngDb *db, const char *run_id, EngErr *err);
EngStatus eng_train_block(void *context, const EngBlockContext *where, const EngLedgerBlock *block,
                          EngErr *err);

#endif
