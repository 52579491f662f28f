/* Traces of serving engines: kernels told apart by name, and overlap from them.
 *
 * The default patterns know the kernel names of vLLM, SGLang, FreeToken and TileKernels as of
 * August 2026. Patterns are POSIX extended regular expressions, found anywhere in a kernel's short
 * or full name (or a copy's, "memcpy host-to-device").
 *
 * Rows of one layer and step are the lookups of one group: a lookup whose name the group already
 * has begins the next one (a gather and its dequantization are one group). Its consumer is the last
 * projection before the group's gate on the gate's stream; without gates the first projection that
 * starts after the lookups have ended; without projections the gate, else the next other kernel of
 * the lookups' stream. It waits while hash and lookups keep its own stream busy, and from the end
 * of its stream's last own work until rows are ready.
 */
#ifndef ENG_BENCH_TRACE_ENGINE_H
#define ENG_BENCH_TRACE_ENGINE_H

#include "bench/trace/overlap.h"

typedef enum EngKernelClass {
    ENG_CLASS_HASH = 0,
    ENG_CLASS_LOOKUP,
    ENG_CLASS_GATE,
    ENG_CLASS_COLLECTIVE,
    ENG_CLASS_PROJECTION,
    ENG_CLASS_OTHER,
    ENG_CLASS_COUNT
} EngKernelClass;
const char *eng_class_name(EngKernelClass kernel_class);
/* Default pattern of a class, "" for other. */
const char *eng_class_pattern(EngKernelClass kernel_class);

typedef struct EngEngineOptions {
    const char *patterns[ENG_CLASS_OTHER]; /* NULL: the default */
    const char *step; /* pattern of NVTX ranges that are steps, by thread; NULL: count lookups */
    const int64_t *layers; /* placement layers in order of lookup, 0-based */
    int n_layers;
    int64_t tokens;          /* of every lookup, -1: not known */
    int64_t bytes_per_token; /* columns x row bytes */
} EngEngineOptions;

/* Time on all streams of all devices by class. */
typedef struct EngClassTime {
    int64_t n, sum_ns;
    int64_t busy_ns; /* union per device, added over devices */
    int64_t
        exposed_ns; /* of it, without any other kernel on the device: a wait when a collective */
} EngClassTime;

typedef struct EngEngine {
    EngClassTime classes[ENG_CLASS_COUNT];
    int64_t n_devices, n_steps; /* steps: NVTX ranges found, 0: counted from lookups */
    EngOverlap overlap;
} EngEngine;

/* ENG_USAGE for a pattern that cannot be read, naming it. */
EngStatus eng_engine_read(const EngTrace *trace, const EngEngineOptions *options, EngEngine *out,
                          EngErr *err);
void eng_engine_free(EngEngine *engine);

#endif
