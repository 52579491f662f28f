/* See cupti_walk.h. */
#include "bench/trace/cupti_walk.h"

#ifdef ENG_HAVE_CUPTI

#include <string.h>

/* The newest struct of each kind in the headers of CUDA 13.0; the library of that version agrees
 * (a test asks it). */
static const uint16_t g_bytes[] = {
    [CUPTI_ACTIVITY_KIND_MEMCPY] = sizeof(CUpti_ActivityMemcpy6),
    [CUPTI_ACTIVITY_KIND_MEMSET] = sizeof(CUpti_ActivityMemset4),
    [CUPTI_ACTIVITY_KIND_KERNEL] = sizeof(CUpti_ActivityKernel10),
    [CUPTI_ACTIVITY_KIND_DRIVER] = sizeof(CUpti_ActivityAPI),
    [CUPTI_ACTIVITY_KIND_RUNTIME] = sizeof(CUpti_ActivityAPI),
    [CUPTI_ACTIVITY_KIND_DEVICE] = sizeof(CUpti_ActivityDevice5),
    [CUPTI_ACTIVITY_KIND_CONTEXT] = sizeof(CUpti_ActivityContext3),
    [CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = sizeof(CUpti_ActivityKernel10),
    [CUPTI_ACTIVITY_KIND_NAME] = sizeof(CUpti_ActivityName),
    [CUPTI_ACTIVITY_KIND_MARKER] = sizeof(CUpti_ActivityMarker2),
    [CUPTI_ACTIVITY_KIND_MARKER_DATA] = sizeof(CUpti_ActivityMarkerData2),
    [CUPTI_ACTIVITY_KIND_OVERHEAD] = sizeof(CUpti_ActivityOverhead3),
    [CUPTI_ACTIVITY_KIND_CDP_KERNEL] = sizeof(CUpti_ActivityCdpKernel),
    [CUPTI_ACTIVITY_KIND_PREEMPTION] = sizeof(CUpti_ActivityPreemption),
    [CUPTI_ACTIVITY_KIND_ENVIRONMENT] = sizeof(CUpti_ActivityEnvironment),
    [CUPTI_ACTIVITY_KIND_MEMCPY2] = sizeof(CUpti_ActivityMemcpyPtoP4),
    [CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER] = sizeof(CUpti_ActivityUnifiedMemoryCounter3),
    [CUPTI_ACTIVITY_KIND_FUNCTION] = sizeof(CUpti_ActivityFunction),
    [CUPTI_ACTIVITY_KIND_MODULE] = sizeof(CUpti_ActivityModule),
    [CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE] = sizeof(CUpti_ActivityDeviceAttribute),
    [CUPTI_ACTIVITY_KIND_OPENACC_DATA] = sizeof(CUpti_ActivityOpenAccData),
    [CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH] = sizeof(CUpti_ActivityOpenAccLaunch),
    [CUPTI_ACTIVITY_KIND_OPENACC_OTHER] = sizeof(CUpti_ActivityOpenAccOther),
    [CUPTI_ACTIVITY_KIND_CUDA_EVENT] = sizeof(CUpti_ActivityCudaEvent2),
    [CUPTI_ACTIVITY_KIND_STREAM] = sizeof(CUpti_ActivityStream),
    [CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] = sizeof(CUpti_ActivitySynchronization2),
    [CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] = sizeof(CUpti_ActivityExternalCorrelation),
    [CUPTI_ACTIVITY_KIND_NVLINK] = sizeof(CUpti_ActivityNvLink4),
    [CUPTI_ACTIVITY_KIND_MEMORY] = sizeof(CUpti_ActivityMemory),
    [CUPTI_ACTIVITY_KIND_PCIE] = sizeof(CUpti_ActivityPcie),
    [CUPTI_ACTIVITY_KIND_OPENMP] = sizeof(CUpti_ActivityOpenMp),
    [CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API] = sizeof(CUpti_ActivityAPI),
    [CUPTI_ACTIVITY_KIND_MEMORY2] = sizeof(CUpti_ActivityMemory4),
    [CUPTI_ACTIVITY_KIND_MEMORY_POOL] = sizeof(CUpti_ActivityMemoryPool3),
    [CUPTI_ACTIVITY_KIND_GRAPH_TRACE] = sizeof(CUpti_ActivityGraphTrace2),
    [CUPTI_ACTIVITY_KIND_JIT] = sizeof(CUpti_ActivityJit2),
    [CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE] = sizeof(CUpti_ActivityDeviceGraphTrace),
    [CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS] = sizeof(CUpti_ActivityMemDecompress),
    [CUPTI_ACTIVITY_KIND_CONFIDENTIAL_COMPUTE_ROTATION] =
        sizeof(CUpti_ActivityConfidentialComputeRotation),
};

size_t eng_cupti_record_bytes(uint32_t kind)
{
    return kind < sizeof g_bytes / sizeof *g_bytes ? g_bytes[kind] : 0;
}

void eng_cupti_walk_start(EngCuptiWalk *walk, uint8_t *bytes, size_t n_bytes, EngCuptiNext next,
                          uint32_t version)
{
    *walk = (EngCuptiWalk){.bytes = bytes,
                           .n_bytes = n_bytes,
                           .next = next,
                           .newer = next && version != CUPTI_API_VERSION};
}

static CUpti_Activity *ended(EngCuptiWalk *walk, EngCuptiEnd end, size_t from)
{
    walk->end = end;
    walk->left_bytes = walk->n_bytes - from;
    walk->n_bytes = from; /* a further call ends at once */
    return NULL;
}

static uint32_t kind_at(const EngCuptiWalk *walk, size_t at)
{
    uint32_t kind;
    memcpy(&kind, walk->bytes + at, sizeof kind);
    return kind;
}

/* Whether a record begins at `at`, and if not, why not. */
static EngCuptiEnd look(const EngCuptiWalk *walk, size_t at)
{
    if (walk->n_bytes - at < sizeof(uint32_t)) return ENG_CUPTI_END_CUT;
    uint32_t kind = kind_at(walk, at);
    if (kind == CUPTI_ACTIVITY_KIND_INVALID) return ENG_CUPTI_END_UNFINISHED;
    size_t bytes = eng_cupti_record_bytes(kind);
    if (!bytes) return ENG_CUPTI_END_UNKNOWN;
    return bytes > walk->n_bytes - at ? ENG_CUPTI_END_CUT : ENG_CUPTI_END_WHOLE;
}

static CUpti_Activity *next_by_library(EngCuptiWalk *walk)
{
    CUptiResult result = walk->next(walk->bytes, walk->n_bytes, &walk->record);
    size_t begin = (size_t)((uint8_t *)walk->record - walk->bytes);
    if (result || begin >= walk->n_bytes) {
        bool whole = result == CUPTI_ERROR_MAX_LIMIT_REACHED;
        EngCuptiEnd why = walk->at < walk->n_bytes ? look(walk, walk->at) : ENG_CUPTI_END_WHOLE;
        /* It calls a cut record the end. Behind the last record of a newer one lie its own fields.
         */
        if (whole && (walk->newer || why != ENG_CUPTI_END_CUT)) why = ENG_CUPTI_END_WHOLE;
        if (!whole && why == ENG_CUPTI_END_WHOLE) why = ENG_CUPTI_END_UNFINISHED;
        return ended(walk, why, why == ENG_CUPTI_END_WHOLE ? walk->n_bytes : walk->at);
    }
    EngCuptiEnd why = look(walk, begin);
    if (why == ENG_CUPTI_END_CUT) return ended(walk, why, begin);
    size_t bytes = eng_cupti_record_bytes(kind_at(walk, begin));
    walk->at = begin + (bytes ? bytes : sizeof(CUpti_Activity));
    return walk->record;
}

CUpti_Activity *eng_cupti_walk_next(EngCuptiWalk *walk)
{
    if (walk->at >= walk->n_bytes) return NULL;
    if (walk->next) return next_by_library(walk);
    EngCuptiEnd why = look(walk, walk->at);
    if (why) return ended(walk, why, walk->at);
    walk->record = (CUpti_Activity *)(void *)(walk->bytes + walk->at);
    walk->at += eng_cupti_record_bytes(kind_at(walk, walk->at));
    return walk->record;
}

#endif
