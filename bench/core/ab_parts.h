/* Between ab.c (builds, plan, verdicts) and ab_block.c (measuring a point). */
#ifndef ENG_BENCH_AB_PARTS_H
#define ENG_BENCH_AB_PARTS_H

#include <limits.h>

#include "bench/core/ab.h"
#include "bench/core/block.h"

#define ENG_AB_CUT_SHORT "time budget" /* why sampling ended */

typedef struct EngAbBuild {
    char path[PATH_MAX], digest[ENG_KEY_HEX];
    const EngKernel *const *kernels; /* stand-ins */
} EngAbBuild;

typedef struct EngAbTask {
    const char *paths[ENG_AB_ARMS];
    int64_t budget_ns; /* of this block, 0: none */
} EngAbTask;

/* Takes a block of three arms, in the order of EngAbArm, to its end: whole segments that it has
 * already are not taken again. Samples and outcomes are in the ledger. */
EngStatus eng_ab_block(const EngAbTask *task, const EngBlockContext *where,
                       const EngLedgerBlock *block, EngErr *err);

#endif
