/* Rows of an Nsight Systems SQLite export, schema 3.25.0, as structs: what the writer
 * (bench/trace/nsys_file.h) takes. Member names are the export's column names. Text members that
 * the export interns (`name`, `demangledName`, ..) are given as text; the writer makes the ids.
 *
 * Times are nanoseconds from the session's start (EngNsysSession.start_ns). A member that may be
 * NULL there is ENG_NSYS_NULL here; text may be NULL. Enumerations hold the export's values, not
 * CUPTI's (harness notes 3.4): launchType is CUPTI's plus one, memory kinds CUPTI's minus one with
 * 7 for unknown.
 */
#ifndef ENG_BENCH_TRACE_NSYS_ROWS_H
#define ENG_BENCH_TRACE_NSYS_ROWS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define ENG_NSYS_NULL INT64_MIN

/* Identifiers: hardware id 0, VM id 1, 24 bits of process, 24 bits of thread. */
static inline int64_t eng_nsys_tid(int64_t pid, int64_t tid)
{
    return (int64_t)1 << 48 | (pid & 0xffffff) << 24 | (tid & 0xffffff);
}

static inline int64_t eng_nsys_pid(int64_t pid)
{
    return eng_nsys_tid(pid, 0);
}

/* Values of NVTX_EVENTS.eventType that we write. */
enum {
    ENG_NSYS_MARK = 34,
    ENG_NSYS_PUSH_POP = 59,
    ENG_NSYS_START_END = 60,
    ENG_NSYS_DOMAIN = 75,
};

/* Values of eventClass. */
enum { ENG_NSYS_RUNTIME = 0, ENG_NSYS_DRIVER = 1, ENG_NSYS_CUDA_OVERHEAD = 103 };

typedef struct EngNsysNvtx {
    int64_t start, end; /* end NULL: still open when the recording ended; and for marks */
    int64_t eventType;
    int64_t rangeId, category, color; /* or NULL */
    const char *text;                 /* not registered, or NULL */
    int64_t globalTid, endGlobalTid;  /* the latter of start/end ranges only */
    const char *registered;           /* -> textId, or NULL */
    int64_t domainId;
    int64_t uint64Value, int64Value;
    double doubleValue; /* NAN: NULL */
    int64_t uint32Value, int32Value;
    double floatValue;    /* NAN: NULL */
    const char *jsonText; /* an extended payload as JSON, or NULL */
} EngNsysNvtx;

typedef struct EngNsysKernel {
    int64_t start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid;
    const char *demangledName, *shortName; /* not NULL */
    const char *mangledName;               /* or NULL */
    int64_t launchType, cacheConfig, registersPerThread;
    int64_t gridX, gridY, gridZ, blockX, blockY, blockZ;
    int64_t staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal;
    int64_t gridId, sharedMemoryExecuted, graphNodeId, sharedMemoryLimitConfig, graphId;
    int64_t clusterX, clusterY, clusterZ, clusterSchedulingPolicy, maxPotentialClusterSize;
    int64_t maxActiveClusters, sharedMemoryRequestedPercentage;
} EngNsysKernel;

typedef struct EngNsysMemcpy {
    int64_t start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid;
    int64_t bytes, copyKind, srcKind, dstKind;
    int64_t srcDeviceId, srcContextId, dstDeviceId, dstContextId;
    int64_t graphNodeId, copyCount;
} EngNsysMemcpy;

typedef struct EngNsysMemset {
    int64_t start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid;
    int64_t value, bytes, graphNodeId, memKind;
} EngNsysMemset;

typedef struct EngNsysApi { /* CUPTI_ACTIVITY_KIND_RUNTIME: runtime and driver calls */
    int64_t start, end, eventClass, globalTid, correlationId;
    const char *name; /* with ABI suffix: cudaLaunchKernel_v7000 */
    int64_t returnValue;
} EngNsysApi;

typedef struct EngNsysSync {
    int64_t start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid;
    int64_t syncType, eventId, eventSyncId;
} EngNsysSync;

typedef struct EngNsysOverhead {
    int64_t start, end, eventClass, globalTid, correlationId;
    const char *name; /* or NULL */
    int64_t overheadType;
} EngNsysOverhead;

/* CUDA_GRAPH_NODE_EVENTS: the call that made a node of a graph. */
typedef struct EngNsysGraphNode {
    int64_t start, end, eventClass, globalTid;
    const char *name;
    int64_t graphNodeId, originalGraphNodeId;
} EngNsysGraphNode;

/* TARGET_INFO_SYSTEM_ENV: a property of the machine, e.g. clocks and throttle reasons at start and
 * stop from ENVIRONMENT records. */
typedef struct EngNsysEnvironment {
    const char *devStateName, *name;
    int64_t nameEnum; /* 0: ours */
    const char *value;
} EngNsysEnvironment;

typedef struct EngNsysGpu {
    int64_t id;
    const char *name, *busLocation, *uuid, *chipName;
    int64_t isDiscrete, l2CacheSize, totalMemory, memoryBandwidth, clockRate, smCount, cuDevice;
    int64_t maxWarpsPerSm, maxThreadsPerBlock, threadsPerWarp, computeMajor, computeMinor;
} EngNsysGpu;

/* TARGET_INFO_CUDA_DEVICE: CUDA ordinal of a process -> TARGET_INFO_GPU.id. */
typedef struct EngNsysCudaDevice {
    int64_t gpuId, cudaId, pid;
    const char *uuid;
    int64_t numMultiprocessors;
} EngNsysCudaDevice;

typedef struct EngNsysCudaContext {
    int64_t nullStreamId, processId, deviceId, contextId, parentContextId, isGreenContext;
} EngNsysCudaContext;

typedef struct EngNsysCudaStream {
    int64_t streamId, processId, contextId, priority, flag;
} EngNsysCudaStream;

/* External ids that were pushed around API calls: our own table ENGRAM_CORRELATION (the export has
 * none). kind: "point" or "sample". */
typedef struct EngNsysExternal {
    int64_t correlationId, globalPid;
    const char *kind;
    int64_t externalId;
} EngNsysExternal;

/* Records that have no row: our own table ENGRAM_DROPS, a row per cause, and a DIAGNOSTIC_EVENT,
 * which is a warning when records were lost: readers refuse the file then. */
typedef struct EngNsysDrops {
    const char *what; /* "nvtx", "cupti", "cupti: zero timestamps", .. */
    int64_t n;
    bool refused; /* not lost: they were there, and lied or told nothing new */
} EngNsysDrops;

#endif
