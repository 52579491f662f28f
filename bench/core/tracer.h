/* How a point is traced: callbacks handed down like the list of experiments, since the core may not
 * know the trace folder above it. The pass is one of its own, after the timed samples: a worker
 * takes samples that are marked and never used for timing, and the parent writes the trace file
 * while the worker waits. */
#ifndef ENG_BENCH_TRACER_H
#define ENG_BENCH_TRACER_H

#include <stdint.h>
#include "bench/core/db.h"

typedef struct EngTraceSaved {
    int64_t ranges, dropped;
} EngTraceSaved;

typedef struct EngTracer {
    void *context;
    /* Why nothing can be recorded here, NULL: it can. */
    const char *(*refusal)(void *context);
    /* In the parent, before the worker is forked: memory that both share. May be called again. */
    EngStatus (*prepare)(void *context, EngErr *err);
    /* In the worker, around the samples of one point. */
    void (*start)(void *context);
    void (*stop)(void *context);
    /* In the parent: what was recorded since start becomes a file, whole or not at all. */
    EngStatus (*save)(void *context, const char *path, EngTraceSaved *saved, EngErr *err);
} EngTracer;

struct EngBlockContext;

/* Traces the measured points of a block that have no trace yet, settings.trace samples each, into
 * traces/<point key>.sqlite beside the database, with rows in artifacts (paths are from the
 * database's folder) and drops. Does nothing when the block wants no traces. A point that cannot be
 * traced is told and left; errors of the database and of writing the file end the run. */
EngStatus eng_block_trace(const struct EngBlockContext *context, const EngLedgerBlock *block,
                          EngErr *err);

#endif
