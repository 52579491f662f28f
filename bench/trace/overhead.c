/* See overhead.h. */
#include "bench/trace/overhead.h"

#include "base/clock.h"
#include "base/nvtx.h"
#include "bench/core/stats.h"
#include "bench/trace/hook.h"

/* A round nearly fills one chunk, so that making its pages is in the number as it is in use. */
enum { ROUNDS = 101, RANGES = 2600, CHUNKS = 2 };

static double range_ns(void)
{
    const EngRangeInfo info = {.tokens = 64, .layer = 1, .bytes = 4096, .step = 7};
    int64_t from = eng_now_ns();
    for (int i = 0; i < RANGES; i++) {
        eng_nvtx_push(ENG_RANGE_GATHER, info);
        eng_nvtx_pop();
        __asm__ volatile("" ::: "memory"); /* neither loop nor branch may be folded */
    }
    return (double)(eng_now_ns() - from) / RANGES;
}

static double clock_ns(void)
{
    int64_t from = eng_now_ns(), last = from;
    for (int i = 0; i < RANGES; i++) last = eng_now_ns();
    return (double)(last - from) / RANGES;
}

EngStatus eng_trace_overhead(EngTraceOverhead *out, EngErr *err)
{
    double off[ROUNDS], on[ROUNDS], clock[ROUNDS];
    const char *refusal = eng_hook_refusal();
    if (refusal) return ENG_FAIL(err, ENG_UNSUPPORTED, "ranges cannot be recorded: %s", refusal);
    for (int i = 0; i < ROUNDS; i++) {
        EngRecordHead *head = eng_record_map(CHUNKS);
        if (!head) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a recording");
        off[i] = range_ns();
        clock[i] = clock_ns();
        eng_hook_start(head);
        on[i] = range_ns();
        eng_hook_stop(head);
        eng_record_unmap(head);
    }
    *out = (EngTraceOverhead){.off_ns = eng_median_in_place(off, ROUNDS).median,
                              .hook_ns = eng_median_in_place(on, ROUNDS).median,
                              .clock_ns = eng_median_in_place(clock, ROUNDS).median,
                              .rounds = ROUNDS,
                              .ranges = RANGES};
    return ENG_OK;
}
