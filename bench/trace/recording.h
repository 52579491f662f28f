/* Recordings into a trace file: pairs pushes with pops per thread and domain and starts with ends,
 * resolves names, and turns payloads into numbers and JSON. */
#ifndef ENG_BENCH_TRACE_RECORDING_H
#define ENG_BENCH_TRACE_RECORDING_H

#include "bench/trace/nsys_file.h"
#include "bench/trace/record.h"

/* The state of a recording, told from its head: also of a process that was killed. */
typedef struct EngRecordingCounts {
    int64_t ranges, marks; /* ranges that are open at the end included */
    int64_t threads;
    int64_t dropped;
} EngRecordingCounts;

/* Writes the events of n regions (of one session: several processes of a command) into an open
 * file, with PROCESSES, ThreadNames and drops. Times count from session_start_ns. Regions are read
 * only as far as they are whole: a torn one ends early. ENG_NO_MEMORY, errors of the file. */
EngStatus eng_recording_put(EngNsys *nsys, EngRecordHead *const *heads, int n,
                            int64_t session_start_ns, EngRecordingCounts *counts, EngErr *err);

/* Whether these bytes are a recording that can be read; a file mapped read-only. */
bool eng_recording_valid(const void *bytes, size_t n);

#endif
