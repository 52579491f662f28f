/* Products on a device beside gathers in a second stream: what `interference` times for
 * backend=cuda. Phases last about equally long alone; events of the device time both streams. */
#ifndef ENG_EXPERIMENTS_DEVICE_BESIDE_H
#define ENG_EXPERIMENTS_DEVICE_BESIDE_H

#include "bench/experiments/device_step.h"

typedef enum EngBesidePhase {
    ENG_PHASE_ALONE = 0, /* the products */
    ENG_PHASE_BESIDE,    /* both */
    ENG_PHASE_QUIET,     /* the gathers */
    ENG_PHASES
} EngBesidePhase;

/* Sums over the runs of a phase. */
typedef struct EngBesideSums {
    int64_t products_ns, gathers_ns;
    int64_t rows;
} EngBesideSums;

typedef struct EngDeviceBeside {
    EngRunner product; /* as the experiment's own */
    const EngArgs *args;
    EngShape shape;
    bool any; /* false: no gathers */
    EngWindows windows;
    int64_t *rows; /* [windows, tokens, columns] */
    uint16_t *gathered;
    EngMirrors mirrors;
    EngProblem gather, there;
    EngCudaStaged *staged; /* NULL: the device reads the table itself */
    EngCudaGrid grid;
    EngCudaStream *main, *side;
    EngCudaEvent *forked, *joined, *from[2], *to[2]; /* times of main and side */
    EngReplay replay;                                /* a graph for each phase */
    int64_t products, gathers;                       /* of a phase */
} EngDeviceBeside;

/* product: with addresses of the host, its kernel found here. args stay the caller's. */
EngStatus eng_device_beside_create(EngDeviceBeside *beside, const EngBench *bench,
                                   const EngPoint *point, const EngProblem *product,
                                   const EngArgs *args, EngErr *err);
void eng_device_beside_destroy(EngDeviceBeside *beside); /* accepts zeros, or half created */
EngStatus eng_device_beside_run(EngDeviceBeside *beside, EngBesidePhase phase, EngBesideSums *sums,
                                EngErr *err);
/* One run of both, its last batch against the oracle; outputs of the product are then in args,
 * where it left any. */
EngStatus eng_device_beside_verify(EngDeviceBeside *beside, EngCheck *sum, EngErr *err);

#endif
