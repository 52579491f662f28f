/* A/B: the same points measured with two builds of the kernels, in one run.
 *
 * Each point is a block of three arms: old, control (old again, for the A/A floor) and new. In each
 * of many segments three workers are forked from one parent, so that they share table and weights;
 * each loads its own shared object, sets up the same inputs, and takes samples when told to, one
 * arm after the other in random order within a pair. Layout, windows and moment differ from segment
 * to segment, never within a pair. All samples go into the ledger, under point keys made of the
 * object's digest and the arm; the verdicts (verdict.h) are computed from what the ledger holds,
 * and stored. So a killed run goes on with the same command and ends with the verdicts of an
 * unbroken one; what other runs measured does not count.
 */
#ifndef ENG_BENCH_AB_H
#define ENG_BENCH_AB_H

#include "bench/core/db.h"
#include "bench/core/runner.h"
#include "bench/core/verdict.h"

typedef enum EngAbArm { ENG_AB_OLD = 0, ENG_AB_CONTROL, ENG_AB_NEW, ENG_AB_ARMS } EngAbArm;

typedef struct EngAbOptions {
    int segments, pairs; /* worker lifetimes, and pairs in each */
    int64_t budget_ms;   /* of all points together, 0: none; what is cut short says so */
    EngVerdictRules rules;
} EngAbOptions;

/* One compared point. Strings live as long as the EngAb. */
typedef struct EngAbPoint {
    const char *experiment, *axes_json, *variant;
    EngOutcome outcome; /* measured, or what kept it from that, with the reason */
    const char *reason;
    EngEffect effect; /* of measured ones, with the verdict */
    EngVerdict verdict;
    bool cut_short; /* by the budget */
} EngAbPoint;

typedef struct EngAb EngAb;

/* Finds out what both objects (files or build folders) have in common, and lets the registry know
 * those names. Once a process. ENG_NOT_FOUND: nothing in common. */
EngStatus eng_ab_open(const char *old_path, const char *new_path, EngAb **ab, EngErr *err);
void eng_ab_free(EngAb *ab); /* accepts NULL */
/* For EngCatalog.kernels: the variants, no roofs, that both have. */
const EngKernel *const *eng_ab_kernels(EngOp op, int *n);
/* Both objects hold the same code. */
bool eng_ab_identical(const EngAb *ab);
/* What only one of the two has: "gather/mine hash/fast", "" for nothing. */
const char *eng_ab_not_compared(const EngAb *ab);

/* Measures a sweep read with eng_ab_kernels and judges it. Settings of its sections give way to the
 * options'. ENG_USAGE: an experiment that is counted or runs no kernel. */
EngStatus eng_ab_run(EngAb *ab, EngSweep *sweep, const EngAbOptions *options,
                     const EngRunOptions *run, EngRunResult *result, EngErr *err);
const EngAbPoint *eng_ab_points(const EngAb *ab, int *n);

/* All pairs of a point that have times, for recordings of noise; in the order taken. */
const EngAbSample *eng_ab_samples(const EngAb *ab, int point, int *n);

#endif
