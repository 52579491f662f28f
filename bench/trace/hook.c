/* See hook.h. Everything that happens per event is store_event(): a clock read, a few stores into
 * memory that only this thread writes, one release store. Definitions are rare and kept under a
 * lock, for recordings that begin later. malloc instead of eng_alloc: they live as long as the
 * process, in programs that are not ours. */
#include "bench/trace/hook.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#if ENG_HAVE_NVTX

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#define FIELDS_MAX 32

typedef struct Definition {
    EngRecord record;
    char *text;
    void *blob;
} Definition;

static struct {
    EngRecordHead *_Atomic head; /* NULL: not recording */
    _Atomic uint32_t generation; /* of recordings: chunks of an older one are not ours any more */
    _Atomic uint64_t ranges;
    pthread_mutex_t lock; /* of the definitions */
    Definition *definitions;
    size_t n, room;
    uint32_t next_id;
    bool is_tool;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
    EngRecordChunk *chunk;
    uint32_t generation, used;
    int depth;
} t;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- storing -----------------------------------------------------------------------------------
 */

/* The chunk's pages are made now: a full disk must not become a signal later, nor a page fault part
 * of an event. Kernels before 5.14 do not know the call. */
static bool has_space(EngRecordHead *head, uint32_t i)
{
    return madvise(eng_record_chunk(head, i), head->chunk_bytes, MADV_POPULATE_WRITE) == 0 ||
           errno == EINVAL;
}

static bool claim_chunk(EngRecordHead *head)
{
    t.chunk = NULL;
    if (atomic_load_explicit(&head->claimed, memory_order_relaxed) >= head->n_chunks) return false;
    uint32_t i = atomic_fetch_add_explicit(&head->claimed, 1, memory_order_relaxed);
    if (i >= head->n_chunks || !has_space(head, i)) return false;
    t.chunk = eng_record_chunk(head, i);
    t.chunk->tid = (uint32_t)syscall(SYS_gettid);
    prctl(PR_GET_NAME, t.chunk->name);
    atomic_store_explicit(&t.chunk->used, 0, memory_order_relaxed);
    t.used = 0;
    return true;
}

/* Room for a record of this thread, NULL: dropped. */
static void *reserve(EngRecordHead *head, size_t bytes)
{
    uint32_t generation = atomic_load_explicit(&g.generation, memory_order_relaxed);
    if (t.generation != generation) {
        t.generation = generation;
        t.chunk = NULL;
    }
    if ((!t.chunk || t.used + bytes > head->chunk_bytes - sizeof *t.chunk) && !claim_chunk(head)) {
        atomic_fetch_add_explicit(&head->dropped, 1, memory_order_relaxed);
        return NULL;
    }
    return (char *)(t.chunk + 1) + t.used;
}

static void publish(size_t bytes)
{
    t.used += (uint32_t)bytes;
    atomic_store_explicit(&t.chunk->used, t.used, memory_order_release);
}

static void store(EngRecordHead *head, EngRecord *record, const char *text, const void *blob)
{
    size_t text_bytes = eng_record_pad(record->text_bytes);
    size_t bytes = sizeof *record + text_bytes + eng_record_pad(record->blob_bytes);
    char *to = reserve(head, bytes);
    if (!to) return;
    record->bytes = (uint16_t)bytes;
    memcpy(to, record, sizeof *record);
    if (record->text_bytes) memcpy(to + sizeof *record, text, record->text_bytes);
    if (record->blob_bytes) memcpy(to + sizeof *record + text_bytes, blob, record->blob_bytes);
    publish(bytes);
}

/* A wide string as UTF-8 into `out`; returns its bytes. */
static uint16_t narrow(const wchar_t *wide, char *out)
{
    size_t n = 0;
    for (; *wide && n + 4 <= ENG_RECORD_TEXT_MAX; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c < 0x80) {
            out[n++] = (char)c;
        } else if (c < 0x800) {
            out[n++] = (char)(0xc0 | c >> 6);
            out[n++] = (char)(0x80 | (c & 63));
        } else if (c < 0x10000) {
            out[n++] = (char)(0xe0 | c >> 12);
            out[n++] = (char)(0x80 | (c >> 6 & 63));
            out[n++] = (char)(0x80 | (c & 63));
        } else {
            out[n++] = (char)(0xf0 | (c >> 18 & 7));
            out[n++] = (char)(0x80 | (c >> 12 & 63));
            out[n++] = (char)(0x80 | (c >> 6 & 63));
            out[n++] = (char)(0x80 | (c & 63));
        }
    }
    return (uint16_t)n;
}

static uint16_t text_bytes(const char *text)
{
    return (uint16_t)strnlen(text, ENG_RECORD_TEXT_MAX);
}

/* ---- events ------------------------------------------------------------------------------------
 */

static void fill_payload(EngRecord *record, const nvtxEventAttributes_t *event, const void **blob)
{
    if (event->payloadType == NVTX_PAYLOAD_TYPE_EXT) {
        const nvtxPayloadData_t *data =
            (const nvtxPayloadData_t *)(uintptr_t)event->payload.ullValue; /* the first counts */
        if (!data || event->reserved0 < 1 || data->size > ENG_RECORD_BLOB_MAX) return;
        record->payload = ENG_PAYLOAD_BLOB;
        record->value = data->schemaId;
        record->blob_bytes = (uint16_t)data->size;
        *blob = data->payload;
    } else if (event->payloadType >= ENG_PAYLOAD_UINT64 &&
               event->payloadType <= ENG_PAYLOAD_FLOAT) {
        record->payload = (uint8_t)event->payloadType;
        record->value = event->payload.ullValue;
    }
}

static void store_event(EngRecordKind kind, nvtxDomainHandle_t domain, uint64_t range,
                        const nvtxEventAttributes_t *event)
{
    EngRecordHead *head = atomic_load_explicit(&g.head, memory_order_acquire);
    char wide[ENG_RECORD_TEXT_MAX];
    const char *text = NULL;
    const void *blob = NULL;
    if (!head || !event) return;
    EngRecord record = {.kind = (uint8_t)kind,
                        .domain = (uint32_t)(uintptr_t)domain,
                        .time_ns = now_ns(),
                        .range = range,
                        .category = event->category,
                        .color = event->colorType == NVTX_COLOR_ARGB ? event->color : 0};
    if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED) {
        record.string = (uint32_t)(uintptr_t)event->message.registered;
    } else if (event->messageType == NVTX_MESSAGE_TYPE_ASCII && event->message.ascii) {
        text = event->message.ascii;
        record.text_bytes = text_bytes(text);
    } else if (event->messageType == NVTX_MESSAGE_TYPE_UNICODE && event->message.unicode) {
        text = wide;
        record.text_bytes = narrow(event->message.unicode, wide);
    }
    fill_payload(&record, event, &blob);
    store(head, &record, text, blob);
}

static void store_text(EngRecordKind kind, uint64_t range, const char *message)
{
    const nvtxEventAttributes_t event = {.messageType = NVTX_MESSAGE_TYPE_ASCII,
                                         .message.ascii = message};
    store_event(kind, NULL, range, &event);
}

static void store_wide(EngRecordKind kind, uint64_t range, const wchar_t *message)
{
    const nvtxEventAttributes_t event = {.messageType = NVTX_MESSAGE_TYPE_UNICODE,
                                         .message.unicode = message};
    store_event(kind, NULL, range, &event);
}

static int on_domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    store_event(ENG_RECORD_PUSH, domain, 0, event);
    return t.depth++;
}

static int on_domain_pop(nvtxDomainHandle_t domain)
{
    EngRecordHead *head = atomic_load_explicit(&g.head, memory_order_acquire);
    int64_t time_ns = head ? now_ns() : 0;
    EngRecord *to = head ? reserve(head, ENG_RECORD_SHORT_BYTES) : NULL;
    if (to) {
        to->bytes = ENG_RECORD_SHORT_BYTES;
        to->kind = ENG_RECORD_POP;
        to->payload = ENG_PAYLOAD_NONE;
        to->domain = (uint32_t)(uintptr_t)domain;
        to->time_ns = time_ns;
        publish(ENG_RECORD_SHORT_BYTES);
    }
    if (t.depth) t.depth--;
    return t.depth;
}

static void on_domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    store_event(ENG_RECORD_MARK, domain, 0, event);
}

static uint64_t new_range(void)
{
    return atomic_fetch_add_explicit(&g.ranges, 1, memory_order_relaxed) + 1;
}

static nvtxRangeId_t on_domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    uint64_t id = new_range();
    store_event(ENG_RECORD_START, domain, id, event);
    return id;
}

static void on_domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    EngRecordHead *head = atomic_load_explicit(&g.head, memory_order_acquire);
    EngRecord record = {.kind = ENG_RECORD_END,
                        .domain = (uint32_t)(uintptr_t)domain,
                        .time_ns = now_ns(),
                        .range = id};
    if (head) store(head, &record, NULL, NULL);
}

static void on_mark(const nvtxEventAttributes_t *event)
{
    on_domain_mark(NULL, event);
}
static void on_mark_a(const char *text)
{
    store_text(ENG_RECORD_MARK, 0, text);
}
static void on_mark_w(const wchar_t *text)
{
    store_wide(ENG_RECORD_MARK, 0, text);
}
static int on_push(const nvtxEventAttributes_t *event)
{
    return on_domain_push(NULL, event);
}
static int on_pop(void)
{
    return on_domain_pop(NULL);
}
static nvtxRangeId_t on_start(const nvtxEventAttributes_t *event)
{
    return on_domain_start(NULL, event);
}
static void on_end(nvtxRangeId_t id)
{
    on_domain_end(NULL, id);
}

static int on_push_a(const char *text)
{
    store_text(ENG_RECORD_PUSH, 0, text);
    return t.depth++;
}

static int on_push_w(const wchar_t *text)
{
    store_wide(ENG_RECORD_PUSH, 0, text);
    return t.depth++;
}

static nvtxRangeId_t on_start_a(const char *text)
{
    uint64_t id = new_range();
    store_text(ENG_RECORD_START, id, text);
    return id;
}

static nvtxRangeId_t on_start_w(const wchar_t *text)
{
    uint64_t id = new_range();
    store_wide(ENG_RECORD_START, id, text);
    return id;
}

/* ---- definitions -------------------------------------------------------------------------------
 */

static uint32_t find_domain(const char *name, size_t bytes)
{
    for (size_t i = 0; i < g.n; i++) {
        const Definition *d = &g.definitions[i];
        if (d->record.kind == ENG_RECORD_DOMAIN && d->record.text_bytes == bytes &&
            !memcmp(d->text, name, bytes))
            return d->record.string;
    }
    return 0;
}

static void *copy_of(const void *bytes, size_t n)
{
    void *copy = n ? malloc(n) : NULL;
    return copy ? memcpy(copy, bytes, n) : NULL;
}

/* Keeps a definition and tells it to a running recording; returns its id, 0: no memory. */
static uint32_t define(EngRecord *record, const char *text, const void *blob)
{
    uint32_t id = 0;
    pthread_mutex_lock(&g.lock);
    if (record->kind == ENG_RECORD_DOMAIN) id = find_domain(text, record->text_bytes);
    if (!id && g.n == g.room) {
        size_t room = g.room ? 2 * g.room : 64;
        Definition *more = realloc(g.definitions, room * sizeof *more);
        if (more) {
            g.definitions = more;
            g.room = room;
        }
    }
    if (!id && g.n < g.room) {
        EngRecordHead *head = atomic_load(&g.head);
        id = ++g.next_id;
        record->string = id;
        if (record->kind == ENG_RECORD_SCHEMA && !record->value)
            record->value = NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START + id;
        g.definitions[g.n++] = (Definition){*record, copy_of(text, record->text_bytes),
                                            copy_of(blob, record->blob_bytes)};
        if (head) store(head, record, text, blob);
    }
    pthread_mutex_unlock(&g.lock);
    return id;
}

static uint32_t define_text(EngRecordKind kind, uint32_t domain, uint64_t value, const char *text)
{
    if (!text) text = "";
    EngRecord record = {.kind = (uint8_t)kind,
                        .domain = domain,
                        .value = value,
                        .time_ns = now_ns(),
                        .text_bytes = text_bytes(text)};
    return define(&record, text, NULL);
}

static uint32_t define_wide(EngRecordKind kind, uint32_t domain, uint64_t value, const wchar_t *w)
{
    char text[ENG_RECORD_TEXT_MAX + 1];
    text[narrow(w ? w : L"", text)] = 0;
    return define_text(kind, domain, value, text);
}

static nvtxDomainHandle_t on_domain(const char *name)
{
    return (nvtxDomainHandle_t)(uintptr_t)define_text(ENG_RECORD_DOMAIN, 0, 0, name);
}

static nvtxDomainHandle_t on_domain_w(const wchar_t *name)
{
    return (nvtxDomainHandle_t)(uintptr_t)define_wide(ENG_RECORD_DOMAIN, 0, 0, name);
}

static nvtxStringHandle_t on_string(nvtxDomainHandle_t domain, const char *text)
{
    uint32_t id = define_text(ENG_RECORD_STRING, (uint32_t)(uintptr_t)domain, 0, text);
    return (nvtxStringHandle_t)(uintptr_t)id;
}

static nvtxStringHandle_t on_string_w(nvtxDomainHandle_t domain, const wchar_t *text)
{
    uint32_t id = define_wide(ENG_RECORD_STRING, (uint32_t)(uintptr_t)domain, 0, text);
    return (nvtxStringHandle_t)(uintptr_t)id;
}

static void on_thread(uint32_t tid, const char *name)
{
    define_text(ENG_RECORD_THREAD, 0, tid, name);
}

static void on_thread_w(uint32_t tid, const wchar_t *name)
{
    define_wide(ENG_RECORD_THREAD, 0, tid, name);
}

static uint32_t bytes_of_type(uint64_t type)
{
    static const uint8_t bytes[] = {
        [NVTX_PAYLOAD_ENTRY_TYPE_CHAR] = 1,        [NVTX_PAYLOAD_ENTRY_TYPE_UCHAR] = 1,
        [NVTX_PAYLOAD_ENTRY_TYPE_SHORT] = 2,       [NVTX_PAYLOAD_ENTRY_TYPE_USHORT] = 2,
        [NVTX_PAYLOAD_ENTRY_TYPE_INT] = 4,         [NVTX_PAYLOAD_ENTRY_TYPE_UINT] = 4,
        [NVTX_PAYLOAD_ENTRY_TYPE_LONG] = 8,        [NVTX_PAYLOAD_ENTRY_TYPE_ULONG] = 8,
        [NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG] = 8,    [NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG] = 8,
        [NVTX_PAYLOAD_ENTRY_TYPE_INT8] = 1,        [NVTX_PAYLOAD_ENTRY_TYPE_UINT8] = 1,
        [NVTX_PAYLOAD_ENTRY_TYPE_INT16] = 2,       [NVTX_PAYLOAD_ENTRY_TYPE_UINT16] = 2,
        [NVTX_PAYLOAD_ENTRY_TYPE_INT32] = 4,       [NVTX_PAYLOAD_ENTRY_TYPE_UINT32] = 4,
        [NVTX_PAYLOAD_ENTRY_TYPE_INT64] = 8,       [NVTX_PAYLOAD_ENTRY_TYPE_UINT64] = 8,
        [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT] = 4,       [NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE] = 8,
        [NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE] = 16, [NVTX_PAYLOAD_ENTRY_TYPE_SIZE] = 8,
        [NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS] = 8,     [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32] = 4,
        [NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64] = 8,
    };
    uint32_t known = type < sizeof bytes ? bytes[type] : 0;
    return known ? known : 8; /* a pointer, or something the reader leaves out */
}

/* Offsets that were not given follow from natural alignment. */
static uint64_t on_schema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *schema)
{
    char blob[ENG_RECORD_BLOB_MAX];
    EngRecordField *fields = (EngRecordField *)blob;
    size_t n = schema->numEntries < FIELDS_MAX ? schema->numEntries : FIELDS_MAX;
    size_t names_at = n * sizeof *fields, at = names_at;
    uint32_t end = 0;
    memset(fields, 0xff, names_at); /* fields whose names find no room have none */
    for (size_t i = 0; i < n; i++) {
        const nvtxPayloadSchemaEntry_t *e = &schema->entries[i];
        const char *name = e->name ? e->name : "";
        size_t bytes = strlen(name) + 1;
        uint32_t size = bytes_of_type(e->type);
        bool array = (e->flags & NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX) ==
                     NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE;
        uint32_t count = array ? (uint32_t)e->arrayOrUnionDetail : 1;
        uint32_t offset = i && !e->offset ? (end + size - 1) / size * size : (uint32_t)e->offset;
        if (at + bytes > sizeof blob) break;
        memcpy(blob + at, name, bytes);
        fields[i] =
            (EngRecordField){(uint32_t)e->type, offset, size, count, (uint32_t)(at - names_at)};
        at += bytes;
        end = offset + size * count;
    }
    bool fixed = schema->fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    EngRecord record = {.kind = ENG_RECORD_SCHEMA,
                        .domain = (uint32_t)(uintptr_t)domain,
                        .value = fixed ? schema->schemaId : 0,
                        .range = n,
                        .blob_bytes = (uint16_t)at};
    return define(&record, "", blob) ? record.value : 0;
}

/* ---- attaching ---------------------------------------------------------------------------------
 */

void eng_hook_attach(EngRecordHead *head)
{
    pthread_mutex_lock(&g.lock);
    atomic_fetch_add(&g.generation, 1);
    for (size_t i = 0; i < g.n; i++)
        store(head, &g.definitions[i].record, g.definitions[i].text, g.definitions[i].blob);
    atomic_store_explicit(&g.head, head, memory_order_release);
    pthread_mutex_unlock(&g.lock);
}

void eng_hook_detach(void)
{
    atomic_store(&g.head, NULL);
    atomic_fetch_add(&g.generation, 1);
}

void eng_hook_forget_in_child(void)
{
    pthread_mutex_init(&g.lock, NULL);
    eng_hook_detach();
}

bool eng_hook_is_tool(void)
{
    return g.is_tool;
}

typedef struct Slot {
    NvtxCallbackModule module;
    unsigned id;
    NvtxFunctionPointer function;
} Slot;

#define CORE(name, function)                                                                       \
    {                                                                                              \
        NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_##name, (NvtxFunctionPointer)(function)                \
    }
#define CORE2(name, function)                                                                      \
    {                                                                                              \
        NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_##name, (NvtxFunctionPointer)(function)              \
    }

static const Slot g_slots[] = {
    CORE(MarkEx, on_mark),
    CORE(MarkA, on_mark_a),
    CORE(MarkW, on_mark_w),
    CORE(RangeStartEx, on_start),
    CORE(RangeStartA, on_start_a),
    CORE(RangeStartW, on_start_w),
    CORE(RangeEnd, on_end),
    CORE(RangePushEx, on_push),
    CORE(RangePushA, on_push_a),
    CORE(RangePushW, on_push_w),
    CORE(RangePop, on_pop),
    CORE(NameOsThreadA, on_thread),
    CORE(NameOsThreadW, on_thread_w),
    CORE2(DomainMarkEx, on_domain_mark),
    CORE2(DomainRangeStartEx, on_domain_start),
    CORE2(DomainRangeEnd, on_domain_end),
    CORE2(DomainRangePushEx, on_domain_push),
    CORE2(DomainRangePop, on_domain_pop),
    CORE2(DomainRegisterStringA, on_string),
    CORE2(DomainRegisterStringW, on_string_w),
    CORE2(DomainCreateA, on_domain),
    CORE2(DomainCreateW, on_domain_w),
};

/* NVTX calls this at its first use, once per binary that holds NVTX calls. */
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table)
{
    const NvtxExportTableCallbacks *callbacks = export_table(NVTX_ETID_CALLBACKS);
    if (!callbacks || callbacks->struct_size < sizeof *callbacks) return 0;
    for (size_t i = 0; i < sizeof g_slots / sizeof *g_slots; i++) {
        NvtxFunctionTable table = NULL;
        unsigned n = 0;
        if (callbacks->GetModuleFunctionTable(g_slots[i].module, &table, &n) && g_slots[i].id < n &&
            table[g_slots[i].id])
            *table[g_slots[i].id] = g_slots[i].function;
    }
    g.is_tool = true;
    return 1;
}

/* The same for the payload extension, of which schemas are enough: payloads come with events. */
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || module->segmentsCount < 1 ||
        module->segments->slotCount <= NVTX3EXT_CBID_nvtxPayloadSchemaRegister)
        return 0;
    module->segments->functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = (intptr_t)on_schema;
    return 1;
}

#else /* built without the NVTX headers */

void eng_hook_attach(EngRecordHead *head)
{
    (void)head;
}

void eng_hook_detach(void) {}

void eng_hook_forget_in_child(void) {}

bool eng_hook_is_tool(void)
{
    return false;
}

#endif
