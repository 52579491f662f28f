/* Between ab.c (builds, plan, verdicts) and ab_block.c (measuring a point). */
#ifndef ENG_BENCH_AB_PARTS_H
#define ENG_BENCH_AB_PARTS_H

#include <limits.h>

#include "bench/core/ab.h"
#include "bench/core/block.h"

typedef struct EngAbBuild {
    char path[PATH_MAX], digest[ENG_KEY_HEX];
    const EngKernel *const *kernels; /* stand-ins */
} EngAbBuild;

typedef struct EngAbTask {
    const char *paths[ENG_AB_ARMS];
    int64_t budget_ns; /* of this block, 0: none */
} EngAbTask;

/* What measuring a block gave; samples are freed by the caller (eng_free). */
typedef struct EngAbMeasured {
    EngAbSample *samples;
    int n;
    double sample_ns; /* median length of the old build's samples, on the judging clock */
    EngOutcome outcome;
    char reason[256];
    bool cut_short;
} EngAbMeasured;

/* Takes a block of three arms, in the order of EngAbArm, to its end. */
EngStatus eng_ab_block(const EngAbTask *task, const EngBlockContext *where,
                       const EngLedgerBlock *block, EngAbMeasured *measured, EngErr *err);

#endif
