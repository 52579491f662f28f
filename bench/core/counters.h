/* What happened to a process during one sample, beside its time: page faults and context switches
 * (getrusage, always), and where the kernel lets us the processor's own counters
 * (perf_event_open): cycles, instructions, cache misses and TLB misses of all threads that
 * the process makes after eng_counters_open, user mode only. Counts are of the whole sample, all
 * its inner iterations. They are evidence: nothing is judged by them. */
#ifndef ENG_BENCH_COUNTERS_H
#define ENG_BENCH_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

typedef enum EngCounter {
    ENG_COUNTER_PAGE_FAULTS = 0, /* minor and major */
    ENG_COUNTER_SWITCHES,        /* voluntary and not */
    ENG_COUNTER_CYCLES,          /* from here on: perf_event_open */
    ENG_COUNTER_INSTRUCTIONS,
    ENG_COUNTER_CACHE_MISSES,
    ENG_COUNTER_TLB_MISSES, /* data loads */
    ENG_COUNTER_COUNT
} EngCounter;

/* What sample_values calls them begins so; v_summary leaves them out. */
#define ENG_COUNTER_PREFIX "counter_"

const char *eng_counter_name(EngCounter counter); /* "page_faults" */

typedef struct EngCounters {
    int fds[ENG_COUNTER_COUNT];    /* -1: not from perf_event_open, or refused */
    int errors[ENG_COUNTER_COUNT]; /* errno of the refusal, 0: counts */
    double start[ENG_COUNTER_COUNT];
    double away_ns[ENG_COUNTER_COUNT]; /* at start: time that others had the counter */
} EngCounters;

/* Never fails: what is refused is not observed. */
void eng_counters_open(EngCounters *counters);
void eng_counters_close(EngCounters *counters);
void eng_counters_start(EngCounters *counters);
/* Increases since start(); NAN: not observed (refused, or others had the counter for a part of
 * the time: the rest would be a guess). */
void eng_counters_stop(EngCounters *counters, double values[ENG_COUNTER_COUNT]);

/* {"cycles":"counted","tlb_misses":"perf_event_open: ENOENT (no such counter here)"}: for every
 * counter of perf_event_open whether it counts, else why not. */
void eng_counters_json(const EngCounters *counters, char *out, size_t size);

#endif
