/* The columns of the export that we fill, by table; those left out are NULL. Schema:
 * nsys_schema.sql. */
#include "bench/trace/nsys_tables.h"

#include "bench/trace/nsys_rows.h"

#define INT(type, member)                                                                          \
    {                                                                                              \
#member, ENG_NSYS_INT, offsetof(type, member), NULL                                        \
    }
#define TEXT(type, member)                                                                         \
    {                                                                                              \
#member, ENG_NSYS_TEXT, offsetof(type, member), NULL                                       \
    }
#define REAL(type, member)                                                                         \
    {                                                                                              \
#member, ENG_NSYS_REAL, offsetof(type, member), NULL                                       \
    }
#define NAME(type, column, member)                                                                 \
    {                                                                                              \
#column, ENG_NSYS_NAME, offsetof(type, member), NULL                                       \
    }
#define FIXED(column, literal)                                                                     \
    {                                                                                              \
#column, ENG_NSYS_FIXED, 0, literal                                                        \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, ENG_NSYS_INT, 0, NULL                                                                \
    }
#define VID "281474976710656" /* hardware id 0, VM id 1 */

static const EngNsysColumn g_nvtx[] = {
    INT(EngNsysNvtx, start),
    INT(EngNsysNvtx, end),
    INT(EngNsysNvtx, eventType),
    INT(EngNsysNvtx, rangeId),
    INT(EngNsysNvtx, category),
    INT(EngNsysNvtx, color),
    TEXT(EngNsysNvtx, text),
    INT(EngNsysNvtx, globalTid),
    INT(EngNsysNvtx, endGlobalTid),
    NAME(EngNsysNvtx, textId, registered),
    INT(EngNsysNvtx, domainId),
    INT(EngNsysNvtx, uint64Value),
    INT(EngNsysNvtx, int64Value),
    REAL(EngNsysNvtx, doubleValue),
    INT(EngNsysNvtx, uint32Value),
    INT(EngNsysNvtx, int32Value),
    REAL(EngNsysNvtx, floatValue),
    TEXT(EngNsysNvtx, jsonText),
    END,
};

static const EngNsysColumn g_kernel[] = {
    INT(EngNsysKernel, start),
    INT(EngNsysKernel, end),
    INT(EngNsysKernel, deviceId),
    INT(EngNsysKernel, contextId),
    INT(EngNsysKernel, greenContextId),
    INT(EngNsysKernel, streamId),
    INT(EngNsysKernel, correlationId),
    INT(EngNsysKernel, globalPid),
    NAME(EngNsysKernel, demangledName, demangledName),
    NAME(EngNsysKernel, shortName, shortName),
    NAME(EngNsysKernel, mangledName, mangledName),
    INT(EngNsysKernel, launchType),
    INT(EngNsysKernel, cacheConfig),
    INT(EngNsysKernel, registersPerThread),
    INT(EngNsysKernel, gridX),
    INT(EngNsysKernel, gridY),
    INT(EngNsysKernel, gridZ),
    INT(EngNsysKernel, blockX),
    INT(EngNsysKernel, blockY),
    INT(EngNsysKernel, blockZ),
    INT(EngNsysKernel, staticSharedMemory),
    INT(EngNsysKernel, dynamicSharedMemory),
    INT(EngNsysKernel, localMemoryPerThread),
    INT(EngNsysKernel, localMemoryTotal),
    INT(EngNsysKernel, gridId),
    INT(EngNsysKernel, sharedMemoryExecuted),
    INT(EngNsysKernel, graphNodeId),
    INT(EngNsysKernel, sharedMemoryLimitConfig),
    INT(EngNsysKernel, graphId),
    INT(EngNsysKernel, clusterX),
    INT(EngNsysKernel, clusterY),
    INT(EngNsysKernel, clusterZ),
    INT(EngNsysKernel, clusterSchedulingPolicy),
    INT(EngNsysKernel, maxPotentialClusterSize),
    INT(EngNsysKernel, maxActiveClusters),
    INT(EngNsysKernel, sharedMemoryRequestedPercentage),
    FIXED(tensorSizeMinusOneElements, "'[]'"),
    END,
};

static const EngNsysColumn g_memcpy[] = {
    INT(EngNsysMemcpy, start),
    INT(EngNsysMemcpy, end),
    INT(EngNsysMemcpy, deviceId),
    INT(EngNsysMemcpy, contextId),
    INT(EngNsysMemcpy, greenContextId),
    INT(EngNsysMemcpy, streamId),
    INT(EngNsysMemcpy, correlationId),
    INT(EngNsysMemcpy, globalPid),
    INT(EngNsysMemcpy, bytes),
    INT(EngNsysMemcpy, copyKind),
    INT(EngNsysMemcpy, srcKind),
    INT(EngNsysMemcpy, dstKind),
    INT(EngNsysMemcpy, srcDeviceId),
    INT(EngNsysMemcpy, srcContextId),
    INT(EngNsysMemcpy, dstDeviceId),
    INT(EngNsysMemcpy, dstContextId),
    INT(EngNsysMemcpy, graphNodeId),
    INT(EngNsysMemcpy, copyCount),
    END,
};

static const EngNsysColumn g_memset[] = {
    INT(EngNsysMemset, start),
    INT(EngNsysMemset, end),
    INT(EngNsysMemset, deviceId),
    INT(EngNsysMemset, contextId),
    INT(EngNsysMemset, greenContextId),
    INT(EngNsysMemset, streamId),
    INT(EngNsysMemset, correlationId),
    INT(EngNsysMemset, globalPid),
    INT(EngNsysMemset, value),
    INT(EngNsysMemset, bytes),
    INT(EngNsysMemset, graphNodeId),
    INT(EngNsysMemset, memKind),
    END,
};

static const EngNsysColumn g_api[] = {
    INT(EngNsysApi, start),         INT(EngNsysApi, end),
    INT(EngNsysApi, eventClass),    INT(EngNsysApi, globalTid),
    INT(EngNsysApi, correlationId), NAME(EngNsysApi, nameId, name),
    INT(EngNsysApi, returnValue),   END,
};

static const EngNsysColumn g_sync[] = {
    INT(EngNsysSync, start),          INT(EngNsysSync, end),
    INT(EngNsysSync, deviceId),       INT(EngNsysSync, contextId),
    INT(EngNsysSync, greenContextId), INT(EngNsysSync, streamId),
    INT(EngNsysSync, correlationId),  INT(EngNsysSync, globalPid),
    INT(EngNsysSync, syncType),       INT(EngNsysSync, eventId),
    INT(EngNsysSync, eventSyncId),    END,
};

static const EngNsysColumn g_overhead[] = {
    INT(EngNsysOverhead, start),         INT(EngNsysOverhead, end),
    INT(EngNsysOverhead, eventClass),    INT(EngNsysOverhead, globalTid),
    INT(EngNsysOverhead, correlationId), NAME(EngNsysOverhead, nameId, name),
    INT(EngNsysOverhead, overheadType),  END,
};

static const EngNsysColumn g_graph_node[] = {
    INT(EngNsysGraphNode, start),
    INT(EngNsysGraphNode, end),
    INT(EngNsysGraphNode, eventClass),
    INT(EngNsysGraphNode, globalTid),
    NAME(EngNsysGraphNode, nameId, name),
    INT(EngNsysGraphNode, graphNodeId),
    INT(EngNsysGraphNode, originalGraphNodeId),
    END,
};

static const EngNsysColumn g_environment[] = {
    FIXED(globalVid, VID),           TEXT(EngNsysEnvironment, devStateName),
    TEXT(EngNsysEnvironment, name),  INT(EngNsysEnvironment, nameEnum),
    TEXT(EngNsysEnvironment, value), END,
};

static const EngNsysColumn g_gpu[] = {
    FIXED(vmId, VID),
    INT(EngNsysGpu, id),
    TEXT(EngNsysGpu, name),
    TEXT(EngNsysGpu, busLocation),
    TEXT(EngNsysGpu, uuid),
    TEXT(EngNsysGpu, chipName),
    INT(EngNsysGpu, isDiscrete),
    INT(EngNsysGpu, l2CacheSize),
    INT(EngNsysGpu, totalMemory),
    INT(EngNsysGpu, memoryBandwidth),
    INT(EngNsysGpu, clockRate),
    INT(EngNsysGpu, smCount),
    INT(EngNsysGpu, cuDevice),
    INT(EngNsysGpu, maxWarpsPerSm),
    INT(EngNsysGpu, maxThreadsPerBlock),
    INT(EngNsysGpu, threadsPerWarp),
    INT(EngNsysGpu, computeMajor),
    INT(EngNsysGpu, computeMinor),
    END,
};

static const EngNsysColumn g_cuda_device[] = {
    INT(EngNsysCudaDevice, gpuId),
    INT(EngNsysCudaDevice, cudaId),
    INT(EngNsysCudaDevice, pid),
    TEXT(EngNsysCudaDevice, uuid),
    INT(EngNsysCudaDevice, numMultiprocessors),
    END,
};

static const EngNsysColumn g_cuda_context[] = {
    INT(EngNsysCudaContext, nullStreamId),
    FIXED(hwId, "0"),
    FIXED(vmId, "1"),
    INT(EngNsysCudaContext, processId),
    INT(EngNsysCudaContext, deviceId),
    INT(EngNsysCudaContext, contextId),
    INT(EngNsysCudaContext, parentContextId),
    INT(EngNsysCudaContext, isGreenContext),
    END,
};

static const EngNsysColumn g_cuda_stream[] = {
    INT(EngNsysCudaStream, streamId),
    FIXED(hwId, "0"),
    FIXED(vmId, "1"),
    INT(EngNsysCudaStream, processId),
    INT(EngNsysCudaStream, contextId),
    INT(EngNsysCudaStream, priority),
    INT(EngNsysCudaStream, flag),
    END,
};

static const EngNsysColumn g_external[] = {
    INT(EngNsysExternal, correlationId),
    INT(EngNsysExternal, globalPid),
    TEXT(EngNsysExternal, kind),
    INT(EngNsysExternal, externalId),
    END,
};

static const EngNsysColumn g_drops[] = {
    TEXT(EngNsysDrops, what),
    INT(EngNsysDrops, n),
    END,
};

const EngNsysTable eng_nsys_tables[ENG_NSYS_TABLE_COUNT] = {
    [ENG_NSYS_TABLE_NVTX] = {"NVTX_EVENTS", g_nvtx},
    [ENG_NSYS_TABLE_KERNEL] = {"CUPTI_ACTIVITY_KIND_KERNEL", g_kernel},
    [ENG_NSYS_TABLE_MEMCPY] = {"CUPTI_ACTIVITY_KIND_MEMCPY", g_memcpy},
    [ENG_NSYS_TABLE_MEMSET] = {"CUPTI_ACTIVITY_KIND_MEMSET", g_memset},
    [ENG_NSYS_TABLE_API] = {"CUPTI_ACTIVITY_KIND_RUNTIME", g_api},
    [ENG_NSYS_TABLE_SYNC] = {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", g_sync},
    [ENG_NSYS_TABLE_OVERHEAD] = {"CUPTI_ACTIVITY_KIND_OVERHEAD", g_overhead},
    [ENG_NSYS_TABLE_GRAPH_NODE] = {"CUDA_GRAPH_NODE_EVENTS", g_graph_node},
    [ENG_NSYS_TABLE_ENVIRONMENT] = {"TARGET_INFO_SYSTEM_ENV", g_environment},
    [ENG_NSYS_TABLE_GPU] = {"TARGET_INFO_GPU", g_gpu},
    [ENG_NSYS_TABLE_CUDA_DEVICE] = {"TARGET_INFO_CUDA_DEVICE", g_cuda_device},
    [ENG_NSYS_TABLE_CUDA_CONTEXT] = {"TARGET_INFO_CUDA_CONTEXT_INFO", g_cuda_context},
    [ENG_NSYS_TABLE_CUDA_STREAM] = {"TARGET_INFO_CUDA_STREAM", g_cuda_stream},
    [ENG_NSYS_TABLE_EXTERNAL] = {"ENGRAM_CORRELATION", g_external},
    [ENG_NSYS_TABLE_DROPS] = {"ENGRAM_DROPS", g_drops},
};
