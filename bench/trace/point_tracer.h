/* The tracer of measured points (bench/core/tracer.h): NVTX ranges of all threads of the worker, in
 * memory that it shares with the parent, which writes the trace file; where a GPU is, what CUPTI
 * tells of its work too, and then the worker writes. */
#ifndef ENG_BENCH_TRACE_POINT_TRACER_H
#define ENG_BENCH_TRACE_POINT_TRACER_H

#include "bench/core/tracer.h"

/* argv: of this program, for the files; kept by reference. NULL: out of memory. */
EngTracer *eng_point_tracer_create(const char *const *argv, const char *version);
void eng_point_tracer_destroy(EngTracer *tracer); /* accepts NULL */

#endif
