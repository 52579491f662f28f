/* One run: an arm trained from first to last token, judged on held-out text, written down.
 *
 * In `folder` a run with manifest key K has
 *   K.ckpt     the newest checkpoint, while it trains
 *   K.steps    a record per step: what the loss curve is drawn from
 *   K.gates    what was seen of gates so far, while it trains
 *   K.states   residual streams of some held-out tokens, for comparisons of representations
 *   K.json     the result, last of all: when it is there, the run is over
 * and all runs share `lock`, so that no two processes train the same one at once: the second is
 * told ENG_INTERRUPTED.
 * A run that was stopped or killed goes on from its checkpoint and gives the same result to the
 * last bit.
 */
#ifndef ENG_ABLATION_RUN_H
#define ENG_ABLATION_RUN_H

#include <signal.h>

#include "bench/ablation/arm.h"
#include "bench/core/experiment.h"

/* The metrics of experiment `train`, in this order. */
typedef enum EngTrainMetric {
    ENG_TM_LOSS = 0,
    ENG_TM_BITS_PER_BYTE,
    ENG_TM_SUPPRESSED_LOSS,
    ENG_TM_TRAIN_LOSS,
    ENG_TM_LOAD_MAX,
    ENG_TM_DEAD_SHARE,
    ENG_TM_COLLAPSED,
    ENG_TM_EXPERTS,
    ENG_TM_TABLE_ROWS,
    ENG_TM_TABLE_PARAMETERS,
    ENG_TM_P_TOTAL,
    ENG_TM_P_ACTIVE,
    ENG_TM_RESIDUAL,
    ENG_TM_RHO,
    ENG_TM_TOKENS,
    ENG_TM_FLOPS_PER_TOKEN,
    ENG_TM_CPU_S,
    ENG_TM_TOKENS_PER_CPU_S,
    ENG_TM_THREADS,
    ENG_TM_OTHER_THREADS,
    ENG_TM_COUNT
} EngTrainMetric;
extern const EngMetricDef eng_train_metrics[ENG_TM_COUNT];

/* A router has collapsed when, over the last quarter of training, some layer's busiest expert has
 * this many times the mean load, or this share of its experts gets under a tenth of it. Such runs
 * are results like others, with metric `collapsed` 1. */
#define ENG_TRAIN_COLLAPSED_LOAD 4.0
#define ENG_TRAIN_COLLAPSED_DEAD 0.25

/* Where a run is, for whoever waits; written by the run, may lie in shared memory. */
typedef struct EngTrainProgress {
    _Atomic int64_t tokens;
    _Atomic double loss;
} EngTrainProgress;

typedef struct EngTrainRun {
    const EngArm *arm;
    const EngTrainData *data;
    const char *folder, *key;
    const char *who;                   /* "rho=0.8 seed=1", for messages */
    int64_t checkpoint_ns;             /* between checkpoints */
    const volatile sig_atomic_t *stop; /* NULL: never */
    EngTrainProgress *progress;        /* NULL: not wanted */
} EngTrainRun;

/* ENG_OK: K.json is written, also when the model failed (its loss is no number any more).
 * ENG_INTERRUPTED: stopped, resumable. ENG_USAGE: text too short for a single pass, with the tokens
 * that are needed and there. ENG_MISMATCH: the checkpoint is of another arm. */
EngStatus eng_train_run(const EngTrainRun *run, EngErr *err);

#endif
