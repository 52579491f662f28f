/* What a range costs the program that makes it, measured on this machine. */
#ifndef ENG_BENCH_TRACE_OVERHEAD_H
#define ENG_BENCH_TRACE_OVERHEAD_H

#include <engram/status.h>

typedef struct EngTraceOverhead {
    double off_ns;      /* a push and its pop while nobody listens */
    double hook_ns;     /* while our hook records: payload, two clock reads, two records */
    double clock_ns;    /* of which one clock read */
    int rounds, ranges; /* medians over rounds of so many ranges */
} EngTraceOverhead;

/* ENG_UNSUPPORTED where the hook cannot record (built without NVTX, another tool). */
EngStatus eng_trace_overhead(EngTraceOverhead *out, EngErr *err);

#endif
