/* See cupti_rows.h. */
#include "bench/trace/cupti_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *const g_drop_names[ENG_CUPTI_DROP_COUNT] = {
    [ENG_CUPTI_DROP_KIND] = "cupti: kinds without a table",
    [ENG_CUPTI_DROP_UNKNOWN] = "cupti: unknown kinds",
    [ENG_CUPTI_DROP_CUT] = "cupti: records cut off",
    [ENG_CUPTI_DROP_UNFINISHED] = "cupti: unfinished records",
    [ENG_CUPTI_DROP_ZERO] = "cupti: zero timestamps",
    [ENG_CUPTI_DROP_BACKWARDS] = "cupti: end before start",
    [ENG_CUPTI_DROP_REPEATED] = "cupti: repeated",
    [ENG_CUPTI_DROP_MEMORY] = "cupti: no memory",
    [ENG_CUPTI_DROP_LIBRARY] = "cupti: dropped by libcupti",
    [ENG_CUPTI_DROP_REQUEST] = "cupti: buffers refused, all in use",
    [ENG_CUPTI_DROP_LATE] = "cupti: buffers outside the trace",
    [ENG_CUPTI_DROP_BYTES] = "cupti: bytes not walked",
};

const char *eng_cupti_drop_name(EngCuptiDrop drop)
{
    return (unsigned)drop < ENG_CUPTI_DROP_COUNT ? g_drop_names[drop] : "cupti: unknown cause";
}

EngStatus eng_cupti_rows_init(EngCuptiRows *rows, EngErr *err)
{
    *rows = (EngCuptiRows){.names = eng_cupti_names_create()};
    return rows->names ? ENG_OK : ENG_FAIL(err, ENG_NO_MEMORY, "no memory for names of a trace");
}

void eng_cupti_rows_free(EngCuptiRows *rows)
{
#define FREE(name, type) eng_free(rows->name.items);
    ENG_CUPTI_TABLES(FREE)
#undef FREE
    eng_cupti_names_destroy(rows->names);
    *rows = (EngCuptiRows){0};
}

int64_t eng_cupti_dropped(const EngCuptiRows *rows)
{
    int64_t n = 0;
    for (int i = 0; i < ENG_CUPTI_DROP_COUNT; i++)
        if (i != ENG_CUPTI_DROP_BYTES) n += rows->drops[i];
    return n;
}

int64_t eng_cupti_to_monotonic(const EngCuptiClock pair[2], int64_t cupti_ns)
{
    int64_t first = pair[0].monotonic_ns - pair[0].cupti_ns;
    int64_t last = pair[1].monotonic_ns - pair[1].cupti_ns;
    int64_t span = pair[1].cupti_ns - pair[0].cupti_ns;
    /* Less than the readings can tell: no drift, and durations stay what they are. */
    if (llabs(last - first) <= pair[0].uncertainty_ns + pair[1].uncertainty_ns) last = first;
    int64_t from = cupti_ns - pair[0].cupti_ns;
    if (from < 0) from = 0;
    if (from > span) from = span;
    /* 128 bits: a step of the clock times a long trace. A time that no clock shows stays in range.
     */
    const __int128 most = INT64_MAX / 4;
    __int128 moved = span > 0 ? (__int128)(last - first) * from / span : 0;
    __int128 time = (__int128)cupti_ns + first + moved;
    return (int64_t)(time > most ? most : time < -most ? -most : time);
}

/* One order for every table whose rows begin with start and end: by start, then by all that makes
 * a row the same as another. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
#define THEN(member)                                                                               \
    if (x->member != y->member) return COMPARE(x->member, y->member)
#define ORDER(name, type, ...)                                                                     \
    static int order_##name(const void *a, const void *b)                                          \
    {                                                                                              \
        const type *x = a, *y = b;                                                                 \
        THEN(start);                                                                               \
        __VA_ARGS__;                                                                               \
        return 0;                                                                                  \
    }
#define WORK                                                                                       \
    THEN(correlationId);                                                                           \
    THEN(graphNodeId);                                                                             \
    THEN(deviceId);                                                                                \
    THEN(contextId);                                                                               \
    THEN(streamId)
ORDER(kernels, EngNsysKernel, WORK)
ORDER(memcpys, EngNsysMemcpy, WORK; THEN(copyKind); THEN(bytes))
ORDER(memsets, EngNsysMemset, WORK; THEN(bytes))
ORDER(apis, EngNsysApi, THEN(correlationId); THEN(eventClass); THEN(globalTid); THEN(end);
      return strcmp(x->name, y->name))
ORDER(syncs, EngNsysSync, THEN(correlationId); THEN(contextId); THEN(streamId); THEN(syncType);
      THEN(eventId); THEN(eventSyncId))
ORDER(overheads, EngNsysOverhead, THEN(end); THEN(overheadType); THEN(globalTid);
      THEN(correlationId))
ORDER(graphs, EngCuptiGraph, THEN(correlationId); THEN(graphId); THEN(deviceId); THEN(streamId))

static int64_t drop_repeated(void *items, int64_t n, size_t size,
                             int (*order)(const void *, const void *))
{
    char *bytes = items;
    int64_t kept = 0;
    if (n) qsort(items, (size_t)n, size, order);
    for (int64_t i = 0; i < n; i++) {
        char *row = bytes + (size_t)i * size, *last = bytes + (size_t)(kept - 1) * size;
        if (kept && !order(row, last)) continue;
        if (i != kept) memcpy(last + size, row, size);
        kept++;
    }
    return kept;
}

/* The device of a context, from work that ran in it: contexts that are older than the trace leave
 * no record of their own. -1: nothing ran. */
static int64_t device_of(const EngCuptiRows *rows, int64_t context)
{
#define LOOK(name)                                                                                 \
    for (int64_t i = 0; i < rows->name.n; i++)                                                     \
        if (rows->name.items[i].contextId == context) return rows->name.items[i].deviceId;
    LOOK(contexts)
    LOOK(kernels)
    LOOK(memcpys)
    LOOK(memsets)
#undef LOOK
    return -1;
}

/* A synchronization tells its context alone. A green context is one by name of its own. */
static void place_in_contexts(EngCuptiRows *rows)
{
    int64_t context_id = -1, device = -1; /* of the row before: they change rarely */
    for (int64_t i = 0; i < rows->syncs.n; i++) {
        EngNsysSync *row = &rows->syncs.items[i];
        if (row->contextId != context_id) device = device_of(rows, row->contextId);
        context_id = row->contextId;
        row->deviceId = device;
    }
    for (int64_t c = 0; c < rows->contexts.n; c++) {
        const EngNsysCudaContext *context = &rows->contexts.items[c];
        if (context->isGreenContext != 1) continue;
#define MARK_GREEN(name)                                                                           \
    for (int64_t i = 0; i < rows->name.n; i++)                                                     \
        if (rows->name.items[i].contextId == context->contextId)                                   \
            rows->name.items[i].greenContextId = context->contextId;
        MARK_GREEN(kernels)
        MARK_GREEN(memcpys)
        MARK_GREEN(memsets)
        MARK_GREEN(syncs)
#undef MARK_GREEN
    }
}

void eng_cupti_rows_finish(EngCuptiRows *rows, const EngCuptiClock pair[2], int64_t origin_ns)
{
#define ON_OUR_CLOCK(name)                                                                         \
    for (int64_t i = 0; i < rows->name.n; i++) {                                                   \
        rows->name.items[i].start =                                                                \
            eng_cupti_to_monotonic(pair, rows->name.items[i].start) - origin_ns;                   \
        rows->name.items[i].end =                                                                  \
            eng_cupti_to_monotonic(pair, rows->name.items[i].end) - origin_ns;                     \
    }
#define FINISH(name)                                                                               \
    {                                                                                              \
        int64_t kept =                                                                             \
            drop_repeated(rows->name.items, rows->name.n, sizeof *rows->name.items, order_##name); \
        rows->drops[ENG_CUPTI_DROP_REPEATED] += rows->name.n - kept;                               \
        rows->n_made -= rows->name.n - kept;                                                       \
        rows->name.n = kept;                                                                       \
        ON_OUR_CLOCK(name)                                                                         \
    }
    FINISH(kernels)
    FINISH(memcpys)
    FINISH(memsets)
    FINISH(apis)
    FINISH(syncs)
    FINISH(overheads)
    FINISH(graphs)
#undef FINISH
#undef ON_OUR_CLOCK
    for (int64_t i = 0; i < rows->environments.n; i++)
        rows->environments.items[i].start =
            eng_cupti_to_monotonic(pair, rows->environments.items[i].start) - origin_ns;
    place_in_contexts(rows);
}

static EngStatus write_environment(const EngCuptiEnvironment *row, EngNsys *nsys, EngErr *err)
{
    static const struct {
        const char *name;
        EngCuptiState state;
        int value;
    } properties[] = {{"SmClockMhz", ENG_CUPTI_SPEED, 0},
                      {"MemoryClockMhz", ENG_CUPTI_SPEED, 1},
                      {"ClocksThrottleReasons", ENG_CUPTI_SPEED, 2},
                      {"TemperatureC", ENG_CUPTI_TEMPERATURE, 0},
                      {"PowerMw", ENG_CUPTI_POWER, 0},
                      {"PowerLimitMw", ENG_CUPTI_POWER, 1},
                      {"FanPercent", ENG_CUPTI_FAN, 0}};
    char device[64], value[32];
    EngStatus status = ENG_OK;
    snprintf(device, sizeof device, "GPU %" PRId64 " at %" PRId64 " ns", row->deviceId, row->start);
    for (size_t i = 0; !status && i < sizeof properties / sizeof *properties; i++) {
        if (properties[i].state != row->state) continue;
        snprintf(value, sizeof value, "%" PRId64, row->values[properties[i].value]);
        EngNsysEnvironment out = {device, properties[i].name, 0, value};
        status = eng_nsys_put_environment(nsys, &out, err);
    }
    return status;
}

static EngStatus write_drops(const EngCuptiRows *rows, EngNsys *nsys, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; !status && i < ENG_CUPTI_DROP_COUNT; i++) {
        bool refused = i == ENG_CUPTI_DROP_KIND || i == ENG_CUPTI_DROP_ZERO ||
                       i == ENG_CUPTI_DROP_BACKWARDS || i == ENG_CUPTI_DROP_REPEATED ||
                       i == ENG_CUPTI_DROP_LATE;
        EngNsysDrops drops = {eng_cupti_drop_name((EngCuptiDrop)i), rows->drops[i], refused};
        if (drops.n) status = eng_nsys_put_drops(nsys, &drops, err);
    }
    /* The shape has a table for them that no reader sums: say that their kernels are not there. */
    EngNsysDrops graphs = {"cupti: graphs traced as a whole", rows->graphs.n, false};
    if (!status && graphs.n) status = eng_nsys_put_drops(nsys, &graphs, err);
    return status;
}

EngStatus eng_cupti_rows_write(const EngCuptiRows *rows, EngNsys *nsys, EngErr *err)
{
    EngStatus status = ENG_OK;
#define WRITE(table, put)                                                                          \
    for (int64_t i = 0; !status && i < rows->table.n; i++)                                         \
        status = eng_nsys_put_##put(nsys, &rows->table.items[i], err);
    WRITE(gpus, gpu)
    WRITE(devices, cuda_device)
    WRITE(contexts, cuda_context)
    WRITE(streams, cuda_stream)
    WRITE(kernels, kernel)
    WRITE(memcpys, memcpy)
    WRITE(memsets, memset)
    WRITE(apis, api)
    WRITE(syncs, sync)
    WRITE(overheads, overhead)
    WRITE(externals, external)
#undef WRITE
    for (int64_t i = 0; !status && i < rows->environments.n; i++)
        status = write_environment(&rows->environments.items[i], nsys, err);
    return status ? status : write_drops(rows, nsys, err);
}
