/* NVTX ranges of the whole product: domain "engram", registered names, one payload schema. The one
 * place that includes the NVTX headers besides the hook (bench/trace).
 *
 * Who listens: a tool that sets NVTX_INJECTION64_PATH (Nsight Systems does), or our own hook while
 * it records. Nobody: a call costs one load and one branch. Built without the NVTX headers every
 * call does nothing (eng_nvtx_built says so).
 *
 * In a trace file a range carries jsonText {"tokens":..,"layer":..,"bytes":..,"step":..}; a tool
 * without the payload extension sees the tokens as an integer.
 */
#ifndef ENG_BASE_NVTX_H
#define ENG_BASE_NVTX_H

#include <stdbool.h>
#include <stdint.h>

/* The first ones are the operations of the registry, in its order (EngOp can be cast). */
typedef enum EngRange {
    ENG_RANGE_HASH = 0,
    ENG_RANGE_GATHER,
    ENG_RANGE_PROJECT,
    ENG_RANGE_GATE,
    ENG_RANGE_CONV,
    ENG_RANGE_LOOKUP,
    ENG_RANGE_TRAIN_GATE,
    ENG_RANGE_TRAIN_CONV,
    ENG_RANGE_BACK_GATE,
    ENG_RANGE_BACK_PROJECT,
    ENG_RANGE_BACK_GATHER,
    ENG_RANGE_BACK_CONV,
    ENG_RANGE_SGD,
    ENG_RANGE_ADAMW,
    ENG_RANGE_MUON,
    ENG_RANGE_SPARSE_ADAM,
    ENG_RANGE_SINKHORN,
    ENG_RANGE_FETCH,  /* rows of one layer and step are being read */
    ENG_RANGE_WAIT,   /* the consumer waits for rows, from needed to ready */
    ENG_RANGE_STEP,   /* one whole step */
    ENG_RANGE_WINDOW, /* compute that runs before rows are needed */
    ENG_RANGE_LAYER,  /* compute of one layer */
    ENG_RANGE_COUNT
} EngRange;

/* Registered name: "hash", .. */
const char *eng_range_name(EngRange range);

/* What a range says of itself; layers count from 0, -1: none. */
typedef struct EngRangeInfo {
    int64_t tokens, layer, bytes, step;
} EngRangeInfo;

/* Whether anybody listens. Set once at start from the environment, then by the hook. */
extern bool eng_nvtx_on;

/* The step that is traced, for ranges that do not know it; -1: none. */
extern int64_t eng_nvtx_step;

/* Whether this is a traced sample. An outside tool listens to samples that are measured. */
static inline bool eng_nvtx_traced(void)
{
    return eng_nvtx_on && eng_nvtx_step >= 0;
}

void eng_nvtx_push_on(EngRange range, const EngRangeInfo *info);
void eng_nvtx_pop_on(void);
void eng_nvtx_mark_on(const char *name, double value);

/* Opens a range on this thread; ranges nest. */
static inline void eng_nvtx_push(EngRange range, EngRangeInfo info)
{
    if (__builtin_expect(eng_nvtx_on, 0)) eng_nvtx_push_on(range, &info);
}

/* Closes the innermost range of this thread. */
static inline void eng_nvtx_pop(void)
{
    if (__builtin_expect(eng_nvtx_on, 0)) eng_nvtx_pop_on();
}

/* A moment with a number, e.g. ("saturated", share): a mark whose payload is a double. */
static inline void eng_nvtx_mark_value(const char *name, double value)
{
    if (__builtin_expect(eng_nvtx_on, 0)) eng_nvtx_mark_on(name, value);
}

/* Names the calling thread in traces and in the system (at most 15 characters there). */
void eng_nvtx_name_thread(const char *name);

/* Whether the program was built with the NVTX headers. */
bool eng_nvtx_built(void);
/* Whether an outside tool asked to be injected: then our hook steps aside. */
bool eng_nvtx_outside_tool(void);

#endif
