/* A step on a device beside the fetch of its Engram rows: what `prefetch` times for backend=cuda.
 *
 * The main stream hashes the step's tokens and computes layers, each two products (hidden to four
 * times hidden and back: about the arithmetic of attention and three experts of half width). A
 * second stream gathers the rows of each module into dense bf16: from the device's memory, from
 * pinned host memory, or from rows that the host hashes and packs while the first layers run. The
 * main stream waits for them before the module's layer. Events of the device tell when rows were
 * wanted, fetched, needed and ready; with graph=on all of it is one graph.
 */
#ifndef ENG_EXPERIMENTS_DEVICE_STEP_H
#define ENG_EXPERIMENTS_DEVICE_STEP_H

#include "bench/core/sweep.h"
#include "bench/experiments/fetched_step.h"
#include "bench/experiments/replay.h"

/* Axes of experiments that are not of one operation. */
#define ENG_AXES_DEVICE                                                                            \
    {ENG_AXIS_BACKEND,           ENG_AXIS_WORD, "cpu", "", 0, 0, eng_words_backend,                \
     "what computes and fetches"},                                                                 \
        ENG_AXIS_TABLE_AT_DEF, ENG_AXIS_GRAPH_DEF,                                                 \
    {                                                                                              \
        "blocks", ENG_AXIS_INT, "0", "", 0, 65535, NULL,                                           \
            "cuda: blocks of a gather, the share of the multiprocessors that it may take; 0: as "  \
            "many as run at once"                                                                  \
    }
extern const char *const eng_words_backend[]; /* cpu cuda */
bool eng_point_on_device(const EngPoint *point);

typedef struct EngDeviceModule {
    EngRunner hash; /* on the host for staged rows */
    EngMirrors mirrors;
    EngProblem gather, there; /* of the host's buffers; of the device's */
    EngArgs args, args_there;
    EngCudaStaged *staged;                      /* NULL: the device reads the table itself */
    int64_t *rows;                              /* [tokens, columns] */
    uint16_t *gathered;                         /* [tokens, k] */
    EngCudaEvent *fetched;                      /* an order */
    EngCudaEvent *begin, *end, *needed, *ready; /* times */
} EngDeviceModule;

typedef struct EngDeviceStep {
    EngStepSpec spec;
    EngDeviceModule modules[ENG_STEP_MODULES];
    EngRunner up, down; /* the products of a layer */
    EngArgs up_args, down_args;
    uint16_t *narrow, *wide;
    EngCudaGrid grid;
    EngCudaStream *main, *side;
    EngCudaEvent *forked, *known, *over;
    EngReplay beside, ready;
    EngStepSums *sums;
    /* inputs, rotated: [sets, tokens], [sets, tokens, reach], [tokens + 1] */
    int64_t sets, next;
    int32_t *tokens, *history;
    int64_t *starts;
} EngDeviceStep;

/* ENG_UNSUPPORTED with the reason: an axis of the host's step, a combination that cannot be. */
EngStatus eng_device_step_check(const EngPoint *point, EngErr *why);
EngStatus eng_device_step_need(const EngPoint *point, EngNeed *need, EngErr *err);
/* Of one step, from bytes and arithmetic of its products. */
double eng_device_step_ns(const EngStepSpec *spec);
/* The state may not move. */
EngStatus eng_device_step_create(EngDeviceStep *step, const EngBench *bench, const EngPoint *point,
                                 EngErr *err);
void eng_device_step_destroy(EngDeviceStep *step); /* accepts one of zeros, or half created */
/* One step on the next tokens, beside its fetch; or with all rows there when the clock starts. */
EngStatus eng_device_step_fetch(EngDeviceStep *step, EngStepSums *sums, EngErr *err);
EngStatus eng_device_step_ready(EngDeviceStep *step, EngStepSums *sums, EngErr *err);
EngStatus eng_device_step_verify(EngDeviceStep *step, EngResidual *residual, EngErr *err);

#endif
