/* Reading a trace: any SQLite file in the shape of an Nsight Systems export, ours or a real one, of
 * any minor version of schema 3 and with any of its tables absent (nsys leaves out empty ones).
 *
 * Everything on a time line becomes an event on a track: a stream of a GPU, or a thread. What is
 * known to lie is refused and counted by name, not read. A file that cannot answer at all is
 * refused whole, with one line that says why: no export, another major version, records lost while
 * it was recorded, kernels hidden inside graphs.
 *
 * Facts about the schema: NVIDIA's SQLite schema reference, versions 3.16 to 3.28.
 */
#ifndef ENG_BENCH_TRACE_READER_H
#define ENG_BENCH_TRACE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "bench/trace/interval.h"

typedef enum EngTraceWhat {
    ENG_TRACE_KERNEL = 0,
    ENG_TRACE_COPY,
    ENG_TRACE_SET,
    ENG_TRACE_RANGE, /* NVTX, push/pop or start/end */
    ENG_TRACE_MARK,  /* NVTX */
    ENG_TRACE_API    /* runtime and driver calls */
} EngTraceWhat;

typedef struct EngTraceTrack {
    bool gpu;                        /* a stream; else a thread */
    int64_t global;                  /* globalPid of a stream, globalTid of a thread */
    int64_t device, context, stream; /* of a stream */
    const char *name; /* "stream 7 of device 0", "compute (thread 12)", "thread 12" */
    int64_t n_events;
} EngTraceTrack;

typedef struct EngTraceEvent {
    int64_t start_ns, end_ns; /* from the file's origin; a mark ends where it starts */
    EngTraceWhat what;
    int track;
    const char *name;            /* of a kernel the short one; "" when the file does not tell */
    const char *full;            /* of a kernel with its template arguments, else as `name` */
    const char *domain;          /* NVTX domain, "" for the default one and for GPU work */
    int64_t correlation;         /* ties GPU work to its API call, -1: none */
    int64_t graph_node;          /* 0: launched by itself */
    int64_t tokens, layer, step; /* from a payload, -1: not told */
    int64_t bytes;               /* of a copy or a payload, -1: not told */
    double value;                /* of a mark, NAN: none */
} EngTraceEvent;

/* Why records were not read. */
typedef struct EngTraceRefusals {
    int64_t backwards;  /* end before start */
    int64_t zero;       /* both timestamps lost */
    int64_t repeated;   /* the same (process, correlation, graph node, stream, start) again */
    int64_t open;       /* ranges without end, taken to the last timestamp: told, not refused */
    int64_t above_wall; /* streams whose kernel times sum to more than their wall time: no sum */
} EngTraceRefusals;

typedef struct EngTrace {
    EngArena *arena;
    const char *path;
    char sha256[65];
    const char *product; /* "NVIDIA Nsight Systems 2026.2.1.210", "" when not told */
    const char *schema;  /* "3.25.0", "" when not told */
    const char *gpu;     /* name of the first GPU, "" */
    const char *host_os; /* "", or what TARGET_INFO_SYSTEM_ENV tells */
    int64_t cpu_cores;   /* 0: not told */
    const char *utc;     /* when it was captured, "2026-05-26T07:58:50"; "" */
    bool ours;           /* written by this workbench */
    EngTraceTrack *tracks;
    int n_tracks;
    EngTraceEvent *events; /* by track, start, longest first: parents before children */
    int64_t n_events, room;
    int64_t first_ns, last_ns; /* of all events */
    EngTraceRefusals refused;
    int64_t n_by_what[ENG_TRACE_API + 1];
} EngTrace;

/* ENG_BAD_DATA (one of the refusals above, a damaged file or none), ENG_NO_MEMORY. */
EngStatus eng_trace_open(const char *path, EngTrace **trace, EngErr *err);
void eng_trace_close(EngTrace *trace); /* accepts NULL */

/* "2 refused: 1 end before start, 1 repeated; ..." or "" when there is nothing to tell. */
void eng_trace_refusals_text(const EngTraceRefusals *refused, char *out, size_t size);

/* Work of one stream or thread: what the busy time and the gaps are made of. */
typedef struct EngTrackWork {
    int64_t n;                 /* kernels, copies and sets; ranges of a thread */
    int64_t sum_ns, kernel_ns; /* kernel_ns: -1 when it was above the wall time */
    int64_t busy_ns;           /* union */
    int64_t first_ns, last_ns;
    int64_t n_gaps, gap_ns, longest_gap_ns; /* between first and last */
} EngTrackWork;
/* The union itself goes to *busy (zeros, or a set to reuse), the idle times between to *gaps;
 * either may be NULL. */
EngStatus eng_trace_track_work(const EngTrace *trace, int track, EngTrackWork *work,
                               EngIntervals *busy, EngIntervals *gaps, EngErr *err);

#endif
