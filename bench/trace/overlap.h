/* Fetch, stall and hidden fraction per step and layer, from the intervals of a trace.
 *
 * Two sources, one result. A trace with ranges of the domain "engram" says itself when rows were
 * read (`fetch`) and when the consumer waited for them (`wait`). In a trace of a serving engine
 * kernels are told apart by name: what reads rows (lookup) and what uses them (projection, else
 * gate); a consumer waits from the moment its stream has nothing else to do, at the earliest when
 * the step's hash or lookup begins, until rows are ready.
 */
#ifndef ENG_BENCH_TRACE_OVERLAP_H
#define ENG_BENCH_TRACE_OVERLAP_H

#include "bench/trace/reader.h"

/* What a consumer waits for; a wait is divided in this order. */
typedef enum EngWaitCause {
    ENG_WAIT_READ = 0,   /* its own rows being read */
    ENG_WAIT_COLLECTIVE, /* rows or their shards travel between devices */
    ENG_WAIT_HASH,       /* row numbers being computed */
    ENG_WAIT_COPY,       /* copies from the host */
    ENG_WAIT_QUEUE,      /* nothing of these runs: launches, queues, other layers' rows */
    ENG_WAIT_COUNT
} EngWaitCause;
const char *eng_wait_cause_name(EngWaitCause cause);

/* Rows of one layer and step. */
typedef struct EngFetch {
    int64_t device;                       /* -1: on the host */
    int64_t process;                      /* globalPid: steps are counted by process */
    int64_t step, layer;                  /* -1: not told */
    int64_t tokens, bytes;                /* -1: not told */
    int64_t start_ns;                     /* of the first read */
    int64_t fetch_ns;                     /* union of reads; what the lookups took */
    int64_t stall_ns;                     /* union of waits, -1: no consumer in the trace */
    int64_t wait_ns[ENG_WAIT_COUNT];      /* sums to stall_ns */
    double hidden;                        /* NAN without fetch or consumer */
    int64_t step_ns;                      /* of the whole step, -1: not told */
    int64_t ready_ns;                     /* end of the last read or collective */
    int64_t consumer_ns;                  /* when the consumer goes on, -1: none */
    const EngTraceEvent *read, *consumer; /* first read; kernel or last wait, NULL: none */
} EngFetch;

typedef struct EngOverlap {
    EngFetch *fetches; /* by step, process, device, layer; owned */
    int64_t n, room;
    int64_t n_without_consumer;
} EngOverlap;

/* From ranges `fetch`, `wait`, `hash` and `step` of the domain "engram". n is 0 when there are
 * none. */
EngStatus eng_overlap_from_ranges(const EngTrace *trace, EngOverlap *out, EngErr *err);
void eng_overlap_free(EngOverlap *overlap);

EngStatus eng_overlap_add(EngOverlap *overlap, const EngFetch *fetch, EngErr *err);
void eng_overlap_sort(EngOverlap *overlap);
/* Divides [needed, ready) among its causes: sets[c] is where cause c holds, closed; what no set
 * covers is queueing. Fills stall_ns, wait_ns and hidden. */
EngStatus eng_overlap_divide(EngFetch *fetch, const EngIntervals *waits,
                             const EngIntervals sets[ENG_WAIT_QUEUE], EngErr *err);

/* Sums over the steps of a layer; the last one, with layer -1 and all_layers, over everything.
 * Fetches without a consumer are in none of them, unless no fetch has one (stall_ns -1). */
typedef struct EngLayerOverlap {
    bool all_layers;
    int64_t device, layer, n_steps;
    int64_t fetch_ns, stall_ns, bytes, wait_ns[ENG_WAIT_COUNT]; /* bytes -1: not told */
    double hidden;                                              /* of the sums */
} EngLayerOverlap;
/* *layers is the caller's (eng_free). */
EngStatus eng_overlap_by_layer(const EngOverlap *overlap, EngLayerOverlap **layers, int *n,
                               EngErr *err);

/* How a kind of range is slowed down beside fetches. */
typedef struct EngVictim {
    const char *name;
    EngInterference effect;
} EngVictim;
/* Compute ranges of the domain "engram" (layer, project, gate, conv) on threads that do not fetch.
 * victims: room for 4; *n those that occur. */
EngStatus eng_overlap_victims(const EngTrace *trace, EngVictim victims[4], int *n, EngErr *err);

#endif
