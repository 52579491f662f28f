/* See nvtx.h. */
#include "base/nvtx.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

static const char *const g_names[ENG_RANGE_COUNT] = {
    [ENG_RANGE_HASH] = "hash",
    [ENG_RANGE_GATHER] = "gather",
    [ENG_RANGE_PROJECT] = "project",
    [ENG_RANGE_GATE] = "gate",
    [ENG_RANGE_CONV] = "conv",
    [ENG_RANGE_LOOKUP] = "lookup",
    [ENG_RANGE_TRAIN_GATE] = "train_gate",
    [ENG_RANGE_TRAIN_CONV] = "train_conv",
    [ENG_RANGE_BACK_GATE] = "back_gate",
    [ENG_RANGE_BACK_PROJECT] = "back_project",
    [ENG_RANGE_BACK_GATHER] = "back_gather",
    [ENG_RANGE_BACK_CONV] = "back_conv",
    [ENG_RANGE_SGD] = "sgd",
    [ENG_RANGE_ADAMW] = "adamw",
    [ENG_RANGE_MUON] = "muon",
    [ENG_RANGE_SPARSE_ADAM] = "sparse_adam",
    [ENG_RANGE_SINKHORN] = "sinkhorn",
    [ENG_RANGE_FETCH] = "fetch",
    [ENG_RANGE_WAIT] = "wait",
    [ENG_RANGE_STEP] = "step",
    [ENG_RANGE_WINDOW] = "window",
    [ENG_RANGE_LAYER] = "layer",
};

bool eng_nvtx_on;
int64_t eng_nvtx_step = -1;

const char *eng_range_name(EngRange range)
{
    return (unsigned)range < ENG_RANGE_COUNT ? g_names[range] : "unknown";
}

bool eng_nvtx_outside_tool(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    return path && *path;
}

#if ENG_HAVE_NVTX

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

static struct {
    pthread_once_t once;
    nvtxDomainHandle_t domain;
    nvtxStringHandle_t names[ENG_RANGE_COUNT];
    uint64_t schema; /* 0: the tool does not take the payload extension */
} g = {.once = PTHREAD_ONCE_INIT};

#define ENTRY(member)                                                                              \
    {                                                                                              \
        .type = NVTX_PAYLOAD_ENTRY_TYPE_INT64, .name = #member,                                    \
        .offset = offsetof(EngRangeInfo, member)                                                   \
    }

/* Handles belong to the process: one tool at most attaches, at the first NVTX call. */
static void open_domain(void)
{
    static const nvtxPayloadSchemaEntry_t entries[] = {ENTRY(tokens), ENTRY(layer), ENTRY(bytes),
                                                       ENTRY(step)};
    const nvtxPayloadSchemaAttr_t schema = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
        .name = "range",
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries = entries,
        .numEntries = sizeof entries / sizeof *entries,
        .payloadStaticSize = sizeof(EngRangeInfo)};
    g.domain = nvtxDomainCreateA("engram");
    if (!g.domain) return;
    for (int i = 0; i < ENG_RANGE_COUNT; i++)
        g.names[i] = nvtxDomainRegisterStringA(g.domain, g_names[i]);
    g.schema = nvtxPayloadSchemaRegister(g.domain, &schema);
}

void eng_nvtx_push_on(EngRange range, const EngRangeInfo *info)
{
    pthread_once(&g.once, open_domain);
    if (!g.domain) return;
    nvtxPayloadData_t payload = {g.schema, sizeof *info, info};
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                   .message.registered = g.names[range]};
    if (g.schema) {
        event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
        event.reserved0 = 1; /* so many payloads */
        event.payload.ullValue = (uint64_t)(uintptr_t)&payload;
    } else {
        event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
        event.payload.llValue = info->tokens;
    }
    nvtxDomainRangePushEx(g.domain, &event);
}

void eng_nvtx_pop_on(void)
{
    pthread_once(&g.once, open_domain);
    if (g.domain) nvtxDomainRangePop(g.domain);
}

void eng_nvtx_mark_on(const char *name, double value)
{
    pthread_once(&g.once, open_domain);
    if (!g.domain) return;
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message.ascii = name,
                                   .payloadType = NVTX_PAYLOAD_TYPE_DOUBLE,
                                   .payload.dValue = value};
    nvtxDomainMarkEx(g.domain, &event);
}

bool eng_nvtx_built(void)
{
    return true;
}

#else /* built without the NVTX headers */

void eng_nvtx_push_on(EngRange range, const EngRangeInfo *info)
{
    (void)range;
    (void)info;
}

void eng_nvtx_pop_on(void) {}

void eng_nvtx_mark_on(const char *name, double value)
{
    (void)name;
    (void)value;
}

bool eng_nvtx_built(void)
{
    return false;
}

#endif

void eng_nvtx_name_thread(const char *name)
{
    pthread_setname_np(pthread_self(), name);
}

__attribute__((constructor)) static void listen_from_start(void)
{
    eng_nvtx_on = eng_nvtx_outside_tool() && eng_nvtx_built();
}
