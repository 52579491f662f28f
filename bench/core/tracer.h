/* How a point is traced: callbacks handed down like the list of experiments, since the core may not
 * know the trace folder above it. The pass is one of its own, after the timed samples: a worker
 * takes samples that are marked and never used for timing, and the parent writes the trace file
 * while the worker waits. */
#ifndef ENG_BENCH_TRACER_H
#define ENG_BENCH_TRACER_H

#include <stdint.h>
#include "bench/core/db.h"

/* A point of a traced pass: where its file goes, and the first 64 bits of its key, by which GPU
 * work is known to be its. */
typedef struct EngTracePoint {
    char *path;
    uint64_t id;
} EngTracePoint;

typedef struct EngTraceSaved {
    int64_t ranges, dropped;
} EngTraceSaved;

typedef struct EngTracer {
    void *context;
    /* Why nothing can be recorded here, NULL: it can. */
    const char *(*refusal)(void *context);
    /* In the parent, before the worker is forked: memory that both share. May be called again. */
    EngStatus (*prepare)(void *context, EngErr *err);
    /* In the worker, before anything speaks to a device: whoever listens to it comes first. */
    void (*open)(void *context);
    /* In the worker, around the samples of one point, and around each of them. */
    void (*start)(void *context);
    void (*sample)(void *context, const EngTracePoint *point, int sample);
    void (*sample_over)(void *context);
    /* GPU work is known to the worker alone, which then writes the file here. */
    EngStatus (*stop)(void *context, const EngTracePoint *point, EngErr *err);
    /* In the parent: what was recorded since start becomes a file, whole or not at all, unless stop
     * has written it. */
    EngStatus (*save)(void *context, const EngTracePoint *point, EngTraceSaved *saved, EngErr *err);
} EngTracer;

struct EngBlockContext;

/* Traces the measured points of a block that have no trace yet, settings.trace samples each, into
 * traces/<point key>-<block>.sqlite beside the database, with rows in artifacts (paths are from the
 * database's folder) and drops. Does nothing when the block wants no traces. A point that cannot be
 * traced is told and left; errors of the database and of writing the file end the run. */
EngStatus eng_block_trace(const struct EngBlockContext *context, const EngLedgerBlock *block,
                          EngErr *err);

#endif
