/* Collecting what CUPTI tells of GPU work, from start to stop: kernels, copies, sets, API calls,
 * synchronizations, overhead, clocks and throttling, and which point and sample each belongs to.
 *
 * libcupti is looked for at start and never needed: without it, without a GPU, under another
 * profiler or when CUPTI refuses, start says why and the run goes on without these rows. One
 * collector a process. Tracing costs time: a traced pass is never timed.
 *
 * CUPTI's callbacks only hand buffers over; a thread of ours decodes them. Buffers are made at
 * start, and never more: when all are in use CUPTI drops records, and both counts are kept.
 *
 *   EngCupti *cupti;
 *   if (!eng_cupti_start(NULL, &cupti, &err)) {
 *       eng_cupti_push(cupti, point, sample); ... launch ... eng_cupti_pop(cupti);
 *       ... synchronize the device: CUPTI does not wait for it ...
 *       eng_cupti_stop(cupti, origin_ns);
 *   }
 *   eng_cupti_write(cupti, err.text, nsys, &err); rows, or why there are none
 *   eng_cupti_free(cupti);
 */
#ifndef ENG_TRACE_CUPTI_H
#define ENG_TRACE_CUPTI_H

#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>
#include "bench/trace/cupti_rows.h"

typedef struct EngCupti EngCupti;

typedef struct EngCuptiOptions {
    const char *library; /* NULL: ENG_CUPTI_LIBRARY of the environment, else where it usually is */
    size_t buffer_bytes; /* 0: 2 MiB */
    int n_buffers;       /* 0: 32 */
} EngCuptiOptions;

/* options may be NULL. Before the first CUDA call of the process, so that nothing is missed.
 * ENG_UNSUPPORTED with a reason: no decoder in this build, no libcupti, another version, another
 * profiler at work. ENG_NO_DEVICE with a reason: CUPTI refuses, as it does without a GPU.
 * ENG_NO_MEMORY. */
EngStatus eng_cupti_start(const EngCuptiOptions *options, EngCupti **cupti, EngErr *err);

/* Work that this thread launches from here to the pop belongs to a sample of a point. Nests. */
void eng_cupti_push(EngCupti *cupti, uint64_t point, uint64_t sample);
void eng_cupti_pop(EngCupti *cupti);

/* Flushes, ends collection and finishes the rows: times in ns after origin_ns (CLOCK_MONOTONIC).
 * Idle device wanted. Once. */
void eng_cupti_stop(EngCupti *cupti, int64_t origin_ns);
/* After stop; owned by cupti. */
const EngCuptiRows *eng_cupti_rows(const EngCupti *cupti);
const EngCuptiClock *eng_cupti_clocks(const EngCupti *cupti); /* [2]: at start and stop */
/* What CUPTI refused to record and does without, "OVERHEAD: CUPTI_ERROR_..; ..", or "". */
const char *eng_cupti_notes(const EngCupti *cupti);
/* Path and version of the libcupti that was used. */
void eng_cupti_library(const EngCupti *cupti, char *out, size_t size);
/* After stop: rows, drops and, as properties "CUPTI" of the system, library, clock pairs and notes.
 * cupti NULL: the property that says why nothing was collected. */
EngStatus eng_cupti_write(const EngCupti *cupti, const char *why_not, EngNsys *nsys, EngErr *err);
/* Stops if need be. Buffers that CUPTI has not given back stay in the process.
 * Accepts NULL. */
void eng_cupti_free(EngCupti *cupti);

/* For people: "version 130001 (libcupti.so.13)" and ENG_OK when a collector could be started now,
 * else the reason in err. Starts one and stops it. */
EngStatus eng_cupti_probe(char *out, size_t size, EngErr *err);

#endif
