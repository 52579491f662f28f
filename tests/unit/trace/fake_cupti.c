/* See fake_cupti.h. */
#include "tests/unit/trace/fake_cupti.h"

#include <cupti.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void emit(int slot, const void *record, size_t bytes, const char *name);

static FakeCupti g_fake = {.version = CUPTI_API_VERSION, .emit = emit};
static CUpti_BuffersCallbackRequestFunc g_request;
static CUpti_BuffersCallbackCompleteFunc g_complete;
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

static struct Slot {
    uint8_t *bytes;
    size_t size, used;
    char names[64][64]; /* of the records in the buffer */
    int n_names;
} g_slots[FAKE_SLOTS];

__attribute__((visibility("default"))) FakeCupti *fake_cupti(void);
FakeCupti *fake_cupti(void)
{
    return &g_fake;
}

static void complete(struct Slot *slot)
{
    if (!slot->bytes) return;
    g_complete(NULL, 0, slot->bytes, slot->size, slot->used);
    memset(slot->names, '?', sizeof slot->names);
    slot->n_names = 0;
    slot->bytes = NULL;
    __atomic_add_fetch(&g_fake.n_completed, 1, __ATOMIC_RELAXED);
}

static bool request(struct Slot *slot)
{
    size_t most;
    g_request(&slot->bytes, &slot->size, &most);
    slot->used = 0;
    __atomic_add_fetch(&g_fake.n_requests, 1, __ATOMIC_RELAXED);
    if (slot->bytes) memset(slot->bytes, 0, slot->size);
    if (!slot->bytes) __atomic_add_fetch(&g_fake.n_refused, 1, __ATOMIC_RELAXED);
    return slot->bytes != NULL;
}

static size_t name_offset(uint32_t kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_DEVICE) return offsetof(CUpti_ActivityDevice5, name);
    return offsetof(CUpti_ActivityKernel10, name);
}

static void emit(int number, const void *record, size_t bytes, const char *name)
{
    struct Slot *slot = &g_slots[number];
    size_t whole = bytes + g_fake.extra_bytes;
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    if (slot->bytes && (slot->used + whole > slot->size || (name && slot->n_names == 64)))
        complete(slot);
    if (!slot->bytes && !request(slot)) {
        __atomic_add_fetch(&g_fake.dropped, 1, __ATOMIC_RELAXED);
        return;
    }
    uint8_t *out = slot->bytes + slot->used;
    memcpy(out, record, bytes);
    /* Values that look like the begin of a record. */
    for (size_t i = 0; i + 4 <= g_fake.extra_bytes; i += 4) out[bytes + i] = (uint8_t)(i / 4 + 1);
    if (name) {
        const char *kept = slot->names[slot->n_names];
        snprintf(slot->names[slot->n_names++], 64, "%s", name);
        memcpy(out + name_offset(kind), &kept, sizeof kept);
    }
    slot->used += whole;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = g_fake.version;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                          : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    struct timespec now;
    if (g_fake.refuse_time) return CUPTI_ERROR_UNKNOWN;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *timestamp = (uint64_t)(now.tv_sec * 1000000000LL + now.tv_nsec + g_fake.ahead_ns);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
    *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cudaLaunchKernel_v7000" : "cuLaunchKernel";
    return cbid == 211 || cbid == 307 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    g_fake.thread_id_type = type;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed)
{
    if (g_fake.refuse_callbacks) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    g_request = requested;
    g_complete = completed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if ((int)kind == g_fake.refused_kind) return (CUptiResult)g_fake.refusal;
    g_fake.enabled |= (uint64_t)1 << kind;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    g_fake.enabled &= ~((uint64_t)1 << kind);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    g_fake.n_flushes++;
    if (g_fake.hold_buffers) return CUPTI_SUCCESS;
    for (int i = 0; i < FAKE_SLOTS; i++) complete(&g_slots[i]);
    return CUPTI_SUCCESS;
}

static size_t record_bytes(uint32_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_DEVICE:
        return sizeof(CUpti_ActivityDevice5);
    case 60:
        return 24; /* a kind of the future */
    default:
        return 0;
    }
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    size_t at = 0;
    uint32_t kind;
    if (*record) {
        memcpy(&kind, *record, sizeof kind);
        at = (size_t)((uint8_t *)*record - buffer) + record_bytes(kind) + g_fake.extra_bytes;
    }
    if (at + sizeof kind > valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    memcpy(&kind, buffer + at, sizeof kind);
    if (!record_bytes(kind)) return CUPTI_ERROR_INVALID_KIND;
    *record = (CUpti_Activity *)(void *)(buffer + at);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = __atomic_exchange_n(&g_fake.dropped, 0, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    pthread_mutex_lock(&g_lock);
    g_fake.ids[kind - CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0] = id;
    g_fake.depth[kind - CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0]++;
    pthread_mutex_unlock(&g_lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t *last)
{
    pthread_mutex_lock(&g_lock);
    *last = g_fake.ids[kind - CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0];
    g_fake.depth[kind - CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0]--;
    pthread_mutex_unlock(&g_lock);
    return CUPTI_SUCCESS;
}
