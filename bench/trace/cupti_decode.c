/* See cupti_decode.h. Each record is copied out before it is read: a buffer is bytes, not structs.
 */
#include "bench/trace/cupti_decode.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#ifndef ENG_HAVE_CUPTI

#ifndef ENG_NO_CUPTI
#define ENG_NO_CUPTI "no CUPTI headers"
#endif

const char *eng_cupti_not_built(void)
{
    return ENG_NO_CUPTI;
}

/* Without a decoder there is no collector: nobody has a buffer to hand in. */
void eng_cupti_keep_names(EngCuptiRows *rows, const EngCuptiSource *source, uint8_t *bytes,
                          size_t n_bytes)
{
    (void)rows, (void)source, (void)bytes, (void)n_bytes;
}

void eng_cupti_decode(EngCuptiRows *rows, const EngCuptiSource *source, uint8_t *bytes,
                      size_t n_bytes)
{
    (void)source, (void)bytes;
    rows->drops[ENG_CUPTI_DROP_BYTES] += (int64_t)n_bytes;
}

#else

#include "bench/trace/cupti_api.h"
#include "bench/trace/cupti_walk.h"

const char *eng_cupti_not_built(void)
{
    return NULL;
}

typedef struct Decoder {
    EngCuptiRows *rows;
    const EngCuptiSource *source;
} Decoder;

static bool grow(void **items, int64_t n, int64_t *room, size_t size)
{
    int64_t more = *room ? 2 * *room : 256;
    size_t bytes;
    if (!eng_mul_size((size_t)more, size, &bytes)) return false;
    void *grown = eng_realloc(*items, (size_t)n * size, bytes);
    if (!grown) return false;
    *items = grown;
    *room = more;
    return true;
}

/* Adds a row to a table, or counts it as lost. */
#define ADD(decoder, table, ...)                                                                   \
    do {                                                                                           \
        EngCuptiRows *r = (decoder)->rows;                                                         \
        if (r->table.n == r->table.room &&                                                         \
            !grow((void **)&r->table.items, r->table.n, &r->table.room, sizeof *r->table.items)) { \
            r->drops[ENG_CUPTI_DROP_MEMORY]++;                                                     \
            break;                                                                                 \
        }                                                                                          \
        r->table.items[r->table.n++] = (__typeof__(*r->table.items)){__VA_ARGS__};                 \
        r->n_made++;                                                                               \
    } while (0)

#define COPY(type, name, record)                                                                   \
    type name;                                                                                     \
    memcpy(&name, (record), sizeof name)

static bool lost_time(Decoder *decoder, uint64_t start, uint64_t end)
{
    /* Not above what 63 bits hold: rows are signed. */
    bool zero = !start || !end, backwards = end < start || end > INT64_MAX;
    if (zero)
        decoder->rows->drops[ENG_CUPTI_DROP_ZERO]++;
    else if (backwards)
        decoder->rows->drops[ENG_CUPTI_DROP_BACKWARDS]++;
    return zero || backwards;
}

static int64_t or_null(uint64_t value)
{
    return value ? (int64_t)value : ENG_NSYS_NULL;
}

static int64_t memory_kind(unsigned kind)
{
    return kind >= 1 && kind <= 7 ? (int64_t)kind - 1 : 7;
}

static const char *text_of(Decoder *decoder, const void *address)
{
    return eng_cupti_names_text(decoder->rows->names, (uint64_t)(uintptr_t)address);
}

/* A number of the table of names in place of an address, and text of our own likewise. */
static const char *keep(Decoder *decoder, const char *text)
{
    EngCuptiNames *names = decoder->rows->names;
    return eng_cupti_names_text(names, eng_cupti_names_add(names, text));
}

static void decode_kernel(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityKernel10, k, record);
    if (lost_time(decoder, k.start, k.end)) return;
    const char *name = text_of(decoder, k.name);
    if (!name) {
        decoder->rows->n_nameless++;
        name = "(name lost)";
    }
    int64_t local = k.localMemoryTotal_v2 ? (int64_t)k.localMemoryTotal_v2 : k.localMemoryTotal;
    bool carveout = k.isSharedMemoryCarveoutRequested;
    ADD(decoder, kernels, .start = (int64_t)k.start, .end = (int64_t)k.end, .deviceId = k.deviceId,
        .contextId = k.contextId, .greenContextId = ENG_NSYS_NULL, .streamId = k.streamId,
        .correlationId = k.correlationId, .globalPid = eng_nsys_pid(decoder->source->pid),
        .demangledName = name, .shortName = name, .mangledName = name,
        .launchType = k.launchType <= CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE
                          ? k.launchType + 1
                          : 0,
        .cacheConfig = k.cacheConfig.config.executed, .registersPerThread = k.registersPerThread,
        .gridX = k.gridX, .gridY = k.gridY, .gridZ = k.gridZ, .blockX = k.blockX,
        .blockY = k.blockY, .blockZ = k.blockZ, .staticSharedMemory = k.staticSharedMemory,
        .dynamicSharedMemory = k.dynamicSharedMemory,
        .localMemoryPerThread = k.localMemoryPerThread, .localMemoryTotal = local,
        .gridId = k.gridId, .sharedMemoryExecuted = k.sharedMemoryExecuted,
        .graphNodeId = or_null(k.graphNodeId), .sharedMemoryLimitConfig = k.shmemLimitConfig,
        .graphId = or_null(k.graphId), .clusterX = k.clusterX, .clusterY = k.clusterY,
        .clusterZ = k.clusterZ, .clusterSchedulingPolicy = k.clusterSchedulingPolicy,
        .maxPotentialClusterSize = k.maxPotentialClusterSize,
        .maxActiveClusters = k.maxActiveClusters,
        .sharedMemoryRequestedPercentage =
            carveout ? k.sharedMemoryCarveoutRequested : ENG_NSYS_NULL);
}

static void decode_memcpy(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityMemcpy6, m, record);
    if (lost_time(decoder, m.start, m.end)) return;
    ADD(decoder, memcpys, .start = (int64_t)m.start, .end = (int64_t)m.end, .deviceId = m.deviceId,
        .contextId = m.contextId, .greenContextId = ENG_NSYS_NULL, .streamId = m.streamId,
        .correlationId = m.correlationId, .globalPid = eng_nsys_pid(decoder->source->pid),
        .bytes = (int64_t)m.bytes, .copyKind = m.copyKind <= 10 ? m.copyKind : 0,
        .srcKind = memory_kind(m.srcKind), .dstKind = memory_kind(m.dstKind),
        .srcDeviceId = ENG_NSYS_NULL, .srcContextId = ENG_NSYS_NULL, .dstDeviceId = ENG_NSYS_NULL,
        .dstContextId = ENG_NSYS_NULL, .graphNodeId = or_null(m.graphNodeId),
        .copyCount = or_null(m.copyCount));
}

/* Between devices: kind MEMCPY2. */
static void decode_peer_copy(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityMemcpyPtoP4, m, record);
    if (lost_time(decoder, m.start, m.end)) return;
    ADD(decoder, memcpys, .start = (int64_t)m.start, .end = (int64_t)m.end, .deviceId = m.deviceId,
        .contextId = m.contextId, .greenContextId = ENG_NSYS_NULL, .streamId = m.streamId,
        .correlationId = m.correlationId, .globalPid = eng_nsys_pid(decoder->source->pid),
        .bytes = (int64_t)m.bytes, .copyKind = m.copyKind <= 10 ? m.copyKind : 0,
        .srcKind = memory_kind(m.srcKind), .dstKind = memory_kind(m.dstKind),
        .srcDeviceId = m.srcDeviceId, .srcContextId = m.srcContextId, .dstDeviceId = m.dstDeviceId,
        .dstContextId = m.dstContextId, .graphNodeId = or_null(m.graphNodeId), .copyCount = 1);
}

static void decode_memset(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityMemset4, m, record);
    if (lost_time(decoder, m.start, m.end)) return;
    ADD(decoder, memsets, .start = (int64_t)m.start, .end = (int64_t)m.end, .deviceId = m.deviceId,
        .contextId = m.contextId, .greenContextId = ENG_NSYS_NULL, .streamId = m.streamId,
        .correlationId = m.correlationId, .globalPid = eng_nsys_pid(decoder->source->pid),
        .value = m.value, .bytes = (int64_t)m.bytes, .graphNodeId = or_null(m.graphNodeId),
        .memKind = memory_kind(m.memoryKind));
}

static const char *call_name(Decoder *decoder, bool runtime, uint32_t cbid)
{
    const EngCuptiApi *library = decoder->source->library;
    const char *name = NULL;
    char text[48];
    if (library &&
        !library->GetCallbackName(
            runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name) &&
        name)
        return name; /* a constant of the library, which stays loaded */
    snprintf(text, sizeof text, "%s_%u", runtime ? "runtime" : "driver", cbid);
    return keep(decoder, text);
}

static void decode_call(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityAPI, a, record);
    if (lost_time(decoder, a.start, a.end)) return;
    bool runtime = a.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
    const char *name = call_name(decoder, runtime, a.cbid);
    if (!name) {
        decoder->rows->drops[ENG_CUPTI_DROP_MEMORY]++;
        return;
    }
    ADD(decoder, apis, .start = (int64_t)a.start, .end = (int64_t)a.end,
        .eventClass = runtime ? ENG_NSYS_RUNTIME : ENG_NSYS_DRIVER,
        .globalTid = eng_nsys_tid(a.processId, a.threadId), .correlationId = a.correlationId,
        .name = name, .returnValue = a.returnValue);
}

static void decode_sync(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivitySynchronization2, s, record);
    if (lost_time(decoder, s.start, s.end)) return;
    ADD(decoder, syncs, .start = (int64_t)s.start, .end = (int64_t)s.end, .deviceId = -1,
        .contextId = s.contextId, .greenContextId = ENG_NSYS_NULL, .streamId = s.streamId,
        .correlationId = s.correlationId, .globalPid = eng_nsys_pid(decoder->source->pid),
        .syncType = s.type <= CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE ? s.type : 0,
        .eventId = s.cudaEventId, .eventSyncId = (int64_t)s.cudaEventSyncId);
}

static int64_t overhead_type(CUpti_ActivityOverheadKind kind)
{
    switch ((unsigned)kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
        return 2;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
        return 3;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
        return 4;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
        return 5;
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
        return 6;
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
        return 7;
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
        return 8;
    default:
        return 1; /* unknown to the export: buffer request, managed memory set-up */
    }
}

static void decode_overhead(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityOverhead3, o, record);
    if (lost_time(decoder, o.start, o.end)) return;
    bool thread = o.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD ||
                  o.objectKind == CUPTI_ACTIVITY_OBJECT_PROCESS;
    ADD(decoder, overheads, .start = (int64_t)o.start, .end = (int64_t)o.end,
        .eventClass = ENG_NSYS_CUDA_OVERHEAD,
        .globalTid = thread ? eng_nsys_tid(o.objectId.pt.processId, o.objectId.pt.threadId)
                            : eng_nsys_pid(decoder->source->pid),
        .correlationId = or_null(o.correlationId), .overheadType = overhead_type(o.overheadKind));
}

static void decode_environment(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityEnvironment, e, record);
    if (lost_time(decoder, e.timestamp, e.timestamp)) return;
    EngCuptiEnvironment row = {.start = (int64_t)e.timestamp, .deviceId = e.deviceId};
    switch ((unsigned)e.environmentKind) {
    case CUPTI_ACTIVITY_ENVIRONMENT_SPEED:
        row.state = ENG_CUPTI_SPEED;
        row.values[0] = e.data.speed.smClock;
        row.values[1] = e.data.speed.memoryClock;
        row.values[2] = e.data.speed.clocksThrottleReasons;
        break;
    case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE:
        row.state = ENG_CUPTI_TEMPERATURE;
        row.values[0] = e.data.temperature.gpuTemperature;
        break;
    case CUPTI_ACTIVITY_ENVIRONMENT_POWER:
        row.state = ENG_CUPTI_POWER;
        row.values[0] = e.data.power.power;
        row.values[1] = e.data.power.powerLimit;
        break;
    case CUPTI_ACTIVITY_ENVIRONMENT_COOLING:
        row.state = ENG_CUPTI_FAN;
        row.values[0] = e.data.cooling.fanSpeed;
        break;
    default:
        decoder->rows->drops[ENG_CUPTI_DROP_KIND]++;
        return;
    }
    ADD(decoder, environments, .start = row.start, .deviceId = row.deviceId, .state = row.state,
        .values = {row.values[0], row.values[1], row.values[2]});
}

static void decode_external(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityExternalCorrelation, e, record);
    const char *kind = "unknown";
    if (e.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) kind = "point";
    if (e.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1) kind = "sample";
    if (e.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2) kind = "custom2";
    if (e.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC) kind = "openacc";
    ADD(decoder, externals, .correlationId = e.correlationId,
        .globalPid = eng_nsys_pid(decoder->source->pid), .kind = kind,
        .externalId = (int64_t)e.externalId);
}

static void decode_graph(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityGraphTrace2, g, record);
    if (lost_time(decoder, g.start, g.end)) return;
    ADD(decoder, graphs, .start = (int64_t)g.start, .end = (int64_t)g.end, .deviceId = g.deviceId,
        .contextId = g.contextId, .streamId = g.streamId, .correlationId = g.correlationId,
        .graphId = g.graphId);
}

/* "GPU-01020304-0506-..." as nvidia-smi prints it. */
static void uuid_text(const CUuuid *uuid, char *out, size_t size)
{
    int n = snprintf(out, size, "GPU");
    for (int i = 0; i < 16; i++)
        n += snprintf(out + n, size - (size_t)n, "%s%02x",
                      i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      (unsigned char)uuid->bytes[i]);
}

static void decode_device(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityDevice5, d, record);
    char uuid[64];
    uuid_text(&d.uuid, uuid, sizeof uuid);
    const char *kept = keep(decoder, uuid);
    ADD(decoder, gpus, .id = d.id, .name = text_of(decoder, d.name), .uuid = kept,
        .isDiscrete = ENG_NSYS_NULL, .l2CacheSize = d.l2CacheSize,
        .totalMemory = (int64_t)d.globalMemorySize,
        .memoryBandwidth = (int64_t)(d.globalMemoryBandwidth * 1000), /* from kB/s */
        .clockRate = (int64_t)d.coreClockRate * 1000,                 /* from kHz */
        .smCount = d.numMultiprocessors, .cuDevice = d.id,
        .maxWarpsPerSm = d.maxWarpsPerMultiprocessor, .maxThreadsPerBlock = d.maxThreadsPerBlock,
        .threadsPerWarp = d.numThreadsPerWarp, .computeMajor = d.computeCapabilityMajor,
        .computeMinor = d.computeCapabilityMinor);
    EngNsysCudaDevice row = {.gpuId = d.id,
                             .cudaId = d.id,
                             .pid = decoder->source->pid,
                             .uuid = kept,
                             .numMultiprocessors = d.numMultiprocessors};
    /* A second row from one record: not counted as made. */
    if (decoder->rows->devices.n == decoder->rows->devices.room &&
        !grow((void **)&decoder->rows->devices.items, decoder->rows->devices.n,
              &decoder->rows->devices.room, sizeof row))
        return;
    decoder->rows->devices.items[decoder->rows->devices.n++] = row;
}

static void decode_context(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityContext3, c, record);
    ADD(decoder, contexts, .nullStreamId = c.nullStreamId, .processId = decoder->source->pid,
        .deviceId = c.deviceId, .contextId = c.contextId,
        .parentContextId = c.isGreenContext ? c.parentContextId : ENG_NSYS_NULL,
        .isGreenContext = c.isGreenContext != 0);
}

static void decode_stream(Decoder *decoder, const void *record)
{
    COPY(CUpti_ActivityStream, s, record);
    ADD(decoder, streams, .streamId = s.streamId, .processId = decoder->source->pid,
        .contextId = s.contextId, .priority = s.priority,
        .flag = s.flag <= CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL ? s.flag : 0);
}

static void decode_record(Decoder *decoder, const CUpti_Activity *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    decoder->rows->n_records++;
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        decode_kernel(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        decode_memcpy(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        decode_peer_copy(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        decode_memset(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        decode_call(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        decode_sync(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        decode_overhead(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
        decode_environment(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        decode_external(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        decode_graph(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_DEVICE:
        decode_device(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_CONTEXT:
        decode_context(decoder, record);
        break;
    case CUPTI_ACTIVITY_KIND_STREAM:
        decode_stream(decoder, record);
        break;
    default:
        if (eng_cupti_record_bytes(kind)) {
            decoder->rows->drops[ENG_CUPTI_DROP_KIND]++;
            break;
        }
        decoder->rows->drops[ENG_CUPTI_DROP_UNKNOWN]++;
        if (!decoder->rows->unknown_kind) decoder->rows->unknown_kind = kind;
    }
}

/* What the walk could not give. */
static void account_for_end(EngCuptiRows *rows, const EngCuptiWalk *walk)
{
    static const EngCuptiDrop drops[] = {[ENG_CUPTI_END_UNFINISHED] = ENG_CUPTI_DROP_UNFINISHED,
                                         [ENG_CUPTI_END_UNKNOWN] = ENG_CUPTI_DROP_UNKNOWN,
                                         [ENG_CUPTI_END_CUT] = ENG_CUPTI_DROP_CUT};
    if (walk->end == ENG_CUPTI_END_WHOLE) return;
    rows->n_records++;
    rows->drops[drops[walk->end]]++;
    rows->drops[ENG_CUPTI_DROP_BYTES] += (int64_t)walk->left_bytes;
    if (walk->end == ENG_CUPTI_END_UNKNOWN && !rows->unknown_kind)
        memcpy(&rows->unknown_kind, walk->bytes + walk->n_bytes, sizeof rows->unknown_kind);
}

static void start_walk(EngCuptiWalk *walk, const EngCuptiSource *source, uint8_t *bytes,
                       size_t n_bytes)
{
    const EngCuptiApi *library = source->library;
    eng_cupti_walk_start(walk, bytes, n_bytes, library ? library->ActivityGetNextRecord : NULL,
                         library ? library->version : 0);
}

void eng_cupti_decode(EngCuptiRows *rows, const EngCuptiSource *source, uint8_t *bytes,
                      size_t n_bytes)
{
    Decoder decoder = {rows, source};
    EngCuptiWalk walk;
    start_walk(&walk, source, bytes, n_bytes);
    for (CUpti_Activity *record; (record = eng_cupti_walk_next(&walk));)
        decode_record(&decoder, record);
    account_for_end(rows, &walk);
}

static void keep_name(EngCuptiNames *names, CUpti_Activity *record, size_t offset)
{
    const char *text;
    memcpy(&text, (char *)record + offset, sizeof text);
    uintptr_t number = (uintptr_t)eng_cupti_names_add(names, text);
    memcpy((char *)record + offset, &number, sizeof number);
}

void eng_cupti_keep_names(EngCuptiRows *rows, const EngCuptiSource *source, uint8_t *bytes,
                          size_t n_bytes)
{
    EngCuptiWalk walk;
    start_walk(&walk, source, bytes, n_bytes);
    for (CUpti_Activity *record; (record = eng_cupti_walk_next(&walk));) {
        uint32_t kind;
        memcpy(&kind, record, sizeof kind);
        if (kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            keep_name(rows->names, record, offsetof(CUpti_ActivityKernel10, name));
        if (kind == CUPTI_ACTIVITY_KIND_DEVICE)
            keep_name(rows->names, record, offsetof(CUpti_ActivityDevice5, name));
    }
}

#endif
