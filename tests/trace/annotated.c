/* A program with NVTX annotations that knows nothing of the workbench: what `engram trace record`
 * is tested with. Two threads, a domain of its own, registered and plain names, marks, payloads, a
 * range that starts on one thread and ends on the other.
 *
 *   annotated           2 x 50 steps and the rest
 *   annotated fork      the same in a forked child too
 *   annotated killed    kills itself inside the 20th step
 *   annotated many N    N steps on one thread
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Batch {
    int32_t size;
    double share;
    char tag[8];
} Batch;

static nvtxDomainHandle_t g_domain;
static nvtxStringHandle_t g_step;
static uint64_t g_schema;
static int g_killed;

static void define(void)
{
    const nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "size", .offset = offsetof(Batch, size)},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, .name = "share", .offset = offsetof(Batch, share)},
        {.flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE,
         .type = NVTX_PAYLOAD_ENTRY_TYPE_CHAR,
         .name = "tag",
         .arrayOrUnionDetail = 8,
         .offset = offsetof(Batch, tag)}};
    const nvtxPayloadSchemaAttr_t schema = {.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                                                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                                                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES,
                                            .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
                                            .entries = entries,
                                            .numEntries = 3,
                                            .payloadStaticSize = sizeof(Batch)};
    g_domain = nvtxDomainCreateA("annotated");
    g_step = nvtxDomainRegisterStringA(g_domain, "step");
    g_schema = nvtxPayloadSchemaRegister(g_domain, &schema);
}

static void push_step(int i)
{
    const Batch batch = {.size = -i, .share = 0.25, .tag = "ab\"c"};
    nvtxPayloadData_t data = {g_schema, sizeof batch, &batch};
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                   .message.registered = g_step,
                                   .payloadType = NVTX_PAYLOAD_TYPE_EXT,
                                   .reserved0 = 1,
                                   .payload.ullValue = (uint64_t)(uintptr_t)&data};
    nvtxDomainRangePushEx(g_domain, &event);
}

static void steps(int n)
{
    for (int i = 0; i < n; i++) {
        push_step(i);
        nvtxRangePushA("inner");
        if (g_killed && i == 19) kill(getpid(), SIGKILL);
        nvtxRangePop();
        nvtxDomainRangePop(g_domain);
    }
}

static void *second(void *argument)
{
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "second");
    steps(50);
    nvtxRangePushW(L"wide \u00fc");
    nvtxRangePop();
    nvtxDomainRangeEnd(g_domain, *(nvtxRangeId_t *)argument);
    return NULL;
}

static void everything(void)
{
    pthread_t thread;
    nvtxEventAttributes_t across = {.version = NVTX_VERSION,
                                    .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                    .category = 7,
                                    .colorType = NVTX_COLOR_ARGB,
                                    .color = 0xff00ff00,
                                    .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                    .message.ascii = "across",
                                    .payloadType = NVTX_PAYLOAD_TYPE_DOUBLE,
                                    .payload.dValue = 0.5};
    nvtxRangeId_t range = nvtxDomainRangeStartEx(g_domain, &across);
    pthread_create(&thread, NULL, second, &range);
    steps(50);
    pthread_join(thread, NULL);
    nvtxMarkA("done");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    g_killed = !strcmp(how, "killed");
    define();
    if (!strcmp(how, "many")) {
        steps(argc > 2 ? atoi(argv[2]) : 1000);
        return 0;
    }
    pid_t pid = strcmp(how, "fork") ? -1 : fork();
    everything();
    if (pid > 0) waitpid(pid, NULL, 0);
    return 3 * !strcmp(how, "three");
}
