/* A trace as Chrome trace JSON, which Perfetto and chrome://tracing open.
 *
 * Processes are the GPUs and the traced processes, threads their streams and threads. Slices are
 * complete events ("X"); those that overlap without nesting on one track (kernels with programmatic
 * dependent launch, start/end ranges) go to an overflow track of their own, since slices of one
 * track must nest. Flows ("s", "f") lead from each fetch to the end of its wait. Marks with a
 * number become counters. Times are microseconds from the first event, with three decimals.
 */
#ifndef ENG_BENCH_TRACE_PERFETTO_H
#define ENG_BENCH_TRACE_PERFETTO_H

#include "bench/core/rows_text.h"
#include "bench/trace/overlap.h"

/* overlap: the flows, may be NULL. */
EngStatus eng_perfetto_write(const EngTrace *trace, const EngOverlap *overlap, EngRowsSink sink,
                             void *context, EngErr *err);

#endif
