/* See recording.h. Two passes over the chunks of a region: definitions, then events. A record that
 * does not fit its chunk ends the chunk: what a killed or foreign process left is never trusted. */
#include "bench/trace/recording.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct Named {
    uint32_t id, domain;
    const char *text;
} Named;

typedef struct Schema {
    uint64_t id;
    uint32_t domain, n_fields, names_bytes;
    const EngRecordField *fields;
    const char *names;
} Schema;

typedef struct Open {
    EngNsysNvtx row;
    uint64_t range; /* of a start; 0: a push */
    uint32_t domain;
} Open;

typedef struct Thread {
    uint32_t tid;
    const char *name;
    Open *open; /* pushes, innermost last */
    int n_open, room;
} Thread;

typedef struct Reader {
    EngNsys *nsys;
    EngArena *arena;
    const EngRecordHead *head;
    int64_t start_ns;
    uint32_t domain_base; /* ids of one region must not meet those of another */
    Named *names;
    size_t n_names, names_room;
    Schema *schemas;
    size_t n_schemas, schemas_room;
    Thread *threads;
    size_t n_threads, threads_room;
    Open *starts; /* start/end ranges that are open */
    size_t n_starts, starts_room;
    EngRecordingCounts *counts;
} Reader;

static EngStatus no_memory(EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a recording");
}

/* Room for one more item of an array; false: out of memory. */
static bool grow(void **items, size_t n, size_t *room, size_t size)
{
    if (n < *room) return true;
    size_t more = *room ? 2 * *room : 32;
    void *grown = eng_realloc(*items, *room * size, more * size);
    if (!grown) return false;
    *items = grown;
    *room = more;
    return true;
}

/* ---- records -----------------------------------------------------------------------------------
 */

static uint32_t chunks_of(const EngRecordHead *head)
{
    uint32_t claimed = atomic_load(&((EngRecordHead *)(uintptr_t)head)->claimed);
    return claimed < head->n_chunks ? claimed : head->n_chunks;
}

bool eng_recording_valid(const void *bytes, size_t n)
{
    const EngRecordHead *head = bytes;
    return n >= 4096 && !memcmp(head->magic, ENG_RECORD_MAGIC, sizeof head->magic) &&
           head->chunk_bytes == ENG_RECORD_CHUNK_BYTES &&
           n >= eng_record_region_bytes(head->n_chunks);
}

/* The record at *at of a chunk, which it moves on; NULL: no more. */
static const EngRecord *next_record(const EngRecordHead *head, EngRecordChunk *chunk, size_t *at)
{
    size_t used = atomic_load_explicit(&chunk->used, memory_order_acquire);
    size_t room = head->chunk_bytes - sizeof *chunk;
    const EngRecord *record = (const EngRecord *)((const char *)(chunk + 1) + *at);
    if (used > room) used = room;
    if (*at + ENG_RECORD_SHORT_BYTES > used) return NULL;
    size_t bytes = record->bytes;
    if (bytes < ENG_RECORD_SHORT_BYTES || bytes % 8 || *at + bytes > used) return NULL;
    if (record->kind != ENG_RECORD_POP &&
        (bytes < sizeof *record || bytes != sizeof *record + eng_record_pad(record->text_bytes) +
                                                eng_record_pad(record->blob_bytes)))
        return NULL;
    *at += bytes;
    return record;
}

static const char *text_of(Reader *r, const EngRecord *record)
{
    char *copy = eng_arena_alloc(r->arena, (size_t)record->text_bytes + 1);
    return copy ? memcpy(copy, record + 1, record->text_bytes) : NULL;
}

static const void *blob_of(const EngRecord *record)
{
    return (const char *)(record + 1) + eng_record_pad(record->text_bytes);
}

/* ---- definitions -------------------------------------------------------------------------------
 */

/* Names are kept by id, which counts up: position id - 1, holes where records were dropped. */
static EngStatus keep_name(Reader *r, const EngRecord *record, EngErr *err)
{
    if (!record->string || record->string > 1u << 24) return ENG_OK;
    while (r->n_names < record->string) {
        if (!grow((void **)&r->names, r->n_names, &r->names_room, sizeof *r->names))
            return no_memory(err);
        r->names[r->n_names++] = (Named){0};
    }
    const char *text = text_of(r, record);
    if (!text) return no_memory(err);
    r->names[record->string - 1] = (Named){record->string, record->domain, text};
    return ENG_OK;
}

static const char *name_of(const Reader *r, uint32_t id)
{
    return id && id <= r->n_names ? r->names[id - 1].text : NULL;
}

static int64_t domain_id(const Reader *r, uint32_t domain)
{
    return domain ? (int64_t)(r->domain_base + domain) : 0;
}

/* A domain is a row of its own, whose text is the domain's name. */
static EngStatus put_domain(Reader *r, const EngRecord *record, EngErr *err)
{
    const EngNsysNvtx row = {.start = 0,
                             .end = ENG_NSYS_NULL,
                             .eventType = ENG_NSYS_DOMAIN,
                             .rangeId = ENG_NSYS_NULL,
                             .category = ENG_NSYS_NULL,
                             .color = ENG_NSYS_NULL,
                             .registered = name_of(r, record->string),
                             .globalTid = eng_nsys_tid(r->head->pid, r->head->pid),
                             .endGlobalTid = ENG_NSYS_NULL,
                             .domainId = domain_id(r, record->string),
                             .uint64Value = ENG_NSYS_NULL,
                             .int64Value = ENG_NSYS_NULL,
                             .doubleValue = NAN,
                             .uint32Value = ENG_NSYS_NULL,
                             .int32Value = ENG_NSYS_NULL,
                             .floatValue = NAN};
    return eng_nsys_put_nvtx(r->nsys, &row, err);
}

static EngStatus keep_schema(Reader *r, const EngRecord *record, EngErr *err)
{
    size_t fields_bytes = (size_t)record->range * sizeof(EngRecordField);
    const char *blob = blob_of(record);
    if (record->range > 64 || fields_bytes > record->blob_bytes ||
        (record->blob_bytes > fields_bytes && blob[record->blob_bytes - 1]))
        return ENG_OK;
    if (!grow((void **)&r->schemas, r->n_schemas, &r->schemas_room, sizeof *r->schemas))
        return no_memory(err);
    r->schemas[r->n_schemas++] =
        (Schema){.id = record->value,
                 .domain = record->domain,
                 .n_fields = (uint32_t)record->range,
                 .names_bytes = (uint32_t)(record->blob_bytes - fields_bytes),
                 .fields = (const EngRecordField *)blob,
                 .names = blob + fields_bytes};
    return ENG_OK;
}

static Thread *thread_of(Reader *r, uint32_t tid)
{
    for (size_t i = 0; i < r->n_threads; i++)
        if (r->threads[i].tid == tid) return &r->threads[i];
    if (!grow((void **)&r->threads, r->n_threads, &r->threads_room, sizeof *r->threads))
        return NULL;
    r->threads[r->n_threads] = (Thread){.tid = tid};
    return &r->threads[r->n_threads++];
}

static EngStatus read_definition(Reader *r, const EngRecord *record, EngErr *err)
{
    Thread *thread;
    EngStatus status = ENG_OK;
    switch (record->kind) {
    case ENG_RECORD_DOMAIN:
    case ENG_RECORD_STRING:
        status = keep_name(r, record, err);
        if (!status && record->kind == ENG_RECORD_DOMAIN) status = put_domain(r, record, err);
        return status;
    case ENG_RECORD_SCHEMA:
        return keep_schema(r, record, err);
    case ENG_RECORD_THREAD:
        thread = thread_of(r, (uint32_t)record->value);
        if (!thread) return no_memory(err);
        thread->name = text_of(r, record);
        return thread->name ? ENG_OK : no_memory(err);
    default:
        return ENG_OK;
    }
}

/* ---- payloads ----------------------------------------------------------------------------------
 */

/* NVTX_PAYLOAD_ENTRY_TYPE_* by what they hold. */
static json_t *number_json(const EngRecordField *field, const unsigned char *at)
{
    int64_t i = 0;
    uint64_t u = 0;
    float f;
    double d;
    bool is_signed = false;
    switch (field->type) {
    case 19: /* FLOAT */
    case 43: /* FLOAT32 */
        memcpy(&f, at, sizeof f);
        return isfinite(f) ? json_real((double)f) : json_null();
    case 20: /* DOUBLE */
    case 44: /* FLOAT64 */
        memcpy(&d, at, sizeof d);
        return isfinite(d) ? json_real(d) : json_null();
    case 3:
    case 5:
    case 7:
    case 9:
    case 11:
    case 13:
    case 15:
    case 17: /* SHORT .. INT64 */
        is_signed = true;
        break;
    case 1:
    case 2:
    case 4:
    case 6:
    case 8:
    case 10:
    case 12:
    case 14:
    case 16:
    case 18:
    case 22:
    case 23: /* CHAR, UCHAR .. UINT64, SIZE, ADDRESS */
        break;
    default:
        return json_null();
    }
    memcpy(&u, at, field->bytes);
    if (is_signed && field->bytes < 8) {
        int shift = 64 - 8 * (int)field->bytes;
        i = (int64_t)(u << shift) >> shift;
    } else {
        i = (int64_t)u;
    }
    return json_integer(i);
}

static json_t *field_json(const EngRecordField *field, const EngRecord *record)
{
    const unsigned char *blob = blob_of(record);
    uint64_t bytes = (uint64_t)field->bytes * field->count;
    if (!field->bytes || field->bytes > 16 || field->offset + bytes > record->blob_bytes)
        return json_null();
    if (field->type == 1 && field->count > 1) { /* text in place */
        const char *text = (const char *)blob + field->offset;
        json_t *json = json_stringn(text, strnlen(text, field->count));
        return json ? json : json_null();
    }
    if (field->count == 1) return number_json(field, blob + field->offset);
    json_t *array = json_array();
    for (uint32_t i = 0; i < field->count; i++)
        json_array_append_new(array, number_json(field, blob + field->offset + i * field->bytes));
    return array;
}

/* NULL: no schema, or out of memory: then the event is told without. */
static const char *blob_json(Reader *r, const EngRecord *record)
{
    const Schema *schema = NULL;
    for (size_t i = 0; i < r->n_schemas && !schema; i++)
        if (r->schemas[i].id == record->value && r->schemas[i].domain == record->domain)
            schema = &r->schemas[i];
    json_t *json = schema ? json_object() : NULL;
    if (!json) return NULL;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        const EngRecordField *field = &schema->fields[i];
        if (field->name_at < schema->names_bytes)
            json_object_set_new(json, schema->names + field->name_at, field_json(field, record));
    }
    char *text = json_dumps(json, JSON_COMPACT);
    const char *copy = text ? eng_arena_strdup(r->arena, text) : NULL;
    free(text);
    json_decref(json);
    return copy;
}

static void set_payload(Reader *r, const EngRecord *record, EngNsysNvtx *row)
{
    uint32_t low = (uint32_t)record->value;
    float f;
    switch (record->payload) {
    case ENG_PAYLOAD_UINT64:
        row->uint64Value = (int64_t)record->value;
        break;
    case ENG_PAYLOAD_INT64:
        row->int64Value = (int64_t)record->value;
        break;
    case ENG_PAYLOAD_DOUBLE:
        memcpy(&row->doubleValue, &record->value, sizeof row->doubleValue);
        break;
    case ENG_PAYLOAD_UINT32:
        row->uint32Value = low;
        break;
    case ENG_PAYLOAD_INT32:
        row->int32Value = (int32_t)low;
        break;
    case ENG_PAYLOAD_FLOAT:
        memcpy(&f, &low, sizeof f);
        row->floatValue = (double)f;
        break;
    case ENG_PAYLOAD_BLOB:
        row->jsonText = blob_json(r, record);
        break;
    default:
        break;
    }
}

/* ---- events ------------------------------------------------------------------------------------
 */

static EngNsysNvtx row_of(Reader *r, const EngRecord *record, uint32_t tid, int64_t type)
{
    EngNsysNvtx row = {.start = record->time_ns - r->start_ns,
                       .end = ENG_NSYS_NULL,
                       .eventType = type,
                       .rangeId = record->range ? (int64_t)record->range : ENG_NSYS_NULL,
                       .category = record->category ? record->category : ENG_NSYS_NULL,
                       .color = record->color ? record->color : ENG_NSYS_NULL,
                       .text = record->string || !record->text_bytes ? NULL : text_of(r, record),
                       .globalTid = eng_nsys_tid(r->head->pid, tid),
                       .endGlobalTid = ENG_NSYS_NULL,
                       .registered = name_of(r, record->string),
                       .domainId = domain_id(r, record->domain),
                       .uint64Value = ENG_NSYS_NULL,
                       .int64Value = ENG_NSYS_NULL,
                       .doubleValue = NAN,
                       .uint32Value = ENG_NSYS_NULL,
                       .int32Value = ENG_NSYS_NULL,
                       .floatValue = NAN};
    set_payload(r, record, &row);
    return row;
}

static EngStatus push(Reader *r, Thread *thread, const EngRecord *record, EngErr *err)
{
    size_t room = (size_t)thread->room;
    if (!grow((void **)&thread->open, (size_t)thread->n_open, &room, sizeof *thread->open))
        return no_memory(err);
    thread->room = (int)room;
    thread->open[thread->n_open++] =
        (Open){.row = row_of(r, record, thread->tid, ENG_NSYS_PUSH_POP), .domain = record->domain};
    return ENG_OK;
}

/* The innermost open push of the domain: those of other domains nest apart from it. */
static EngStatus pop(Reader *r, Thread *thread, const EngRecord *record, EngErr *err)
{
    int i = thread->n_open - 1;
    while (i >= 0 && thread->open[i].domain != record->domain) i--;
    if (i < 0) return ENG_OK; /* pushed before the recording began, or dropped */
    thread->open[i].row.end = record->time_ns - r->start_ns;
    EngStatus status = eng_nsys_put_nvtx(r->nsys, &thread->open[i].row, err);
    memmove(&thread->open[i], &thread->open[i + 1],
            (size_t)(thread->n_open - 1 - i) * sizeof *thread->open);
    thread->n_open--;
    r->counts->ranges++;
    return status;
}

static EngStatus start_range(Reader *r, uint32_t tid, const EngRecord *record, EngErr *err)
{
    if (!grow((void **)&r->starts, r->n_starts, &r->starts_room, sizeof *r->starts))
        return no_memory(err);
    r->starts[r->n_starts++] =
        (Open){.row = row_of(r, record, tid, ENG_NSYS_START_END), .range = record->range};
    return ENG_OK;
}

static EngStatus read_event(Reader *r, Thread *thread, const EngRecord *record, EngErr *err)
{
    EngNsysNvtx row;
    switch (record->kind) {
    case ENG_RECORD_PUSH:
        return push(r, thread, record, err);
    case ENG_RECORD_POP:
        return pop(r, thread, record, err);
    case ENG_RECORD_MARK:
        row = row_of(r, record, thread->tid, ENG_NSYS_MARK);
        r->counts->marks++;
        return eng_nsys_put_nvtx(r->nsys, &row, err);
    case ENG_RECORD_START:
        return start_range(r, thread->tid, record, err);
    default:
        return ENG_OK;
    }
}

static int by_range(const void *a, const void *b)
{
    uint64_t x = ((const Open *)a)->range, y = ((const Open *)b)->range;
    return x < y ? -1 : x > y;
}

/* Ends may lie in chunks of other threads, before or behind their starts: a pass of their own. */
static void end_range(Reader *r, uint32_t tid, const EngRecord *record)
{
    Open key = {.range = record->range}, *found = NULL;
    if (r->n_starts) found = bsearch(&key, r->starts, r->n_starts, sizeof *r->starts, by_range);
    if (!found) return;
    found->row.end = record->time_ns - r->start_ns;
    found->row.endGlobalTid = eng_nsys_tid(r->head->pid, tid);
}

/* Ranges that were never closed have no end, as in an export. */
static EngStatus put_open(Reader *r, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (size_t i = 0; i < r->n_threads && !status; i++) {
        Thread *thread = &r->threads[i];
        for (int k = 0; k < thread->n_open && !status; k++)
            status = eng_nsys_put_nvtx(r->nsys, &thread->open[k].row, err);
        r->counts->ranges += thread->n_open;
    }
    for (size_t i = 0; i < r->n_starts && !status; i++)
        status = eng_nsys_put_nvtx(r->nsys, &r->starts[i].row, err);
    r->counts->ranges += (int64_t)r->n_starts;
    return status;
}

/* ---- regions -----------------------------------------------------------------------------------
 */

typedef enum Pass { DEFINITIONS, EVENTS, ENDS } Pass;

static EngStatus read_chunk(Reader *r, EngRecordChunk *chunk, Pass pass, EngErr *err)
{
    EngStatus status = ENG_OK;
    size_t at = 0;
    Thread *thread = thread_of(r, chunk->tid);
    if (!thread) return no_memory(err);
    if (pass == DEFINITIONS && !thread->name) {
        char name[sizeof chunk->name + 1] = "";
        memcpy(name, chunk->name, sizeof chunk->name);
        thread->name = eng_arena_strdup(r->arena, name);
    }
    for (const EngRecord *record; !status && (record = next_record(r->head, chunk, &at));) {
        thread = thread_of(r, chunk->tid); /* definitions may move the array */
        if (pass == DEFINITIONS)
            status = read_definition(r, record, err);
        else if (pass == EVENTS)
            status = read_event(r, thread, record, err);
        else if (record->kind == ENG_RECORD_END)
            end_range(r, chunk->tid, record);
    }
    return status;
}

static EngStatus read_region(Reader *r, EngErr *err)
{
    uint32_t n = chunks_of(r->head);
    EngStatus status = eng_nsys_put_process(r->nsys, r->head->pid, r->head->name, err);
    for (Pass pass = DEFINITIONS; pass <= ENDS && !status; pass++) {
        if (pass == ENDS && r->n_starts) qsort(r->starts, r->n_starts, sizeof *r->starts, by_range);
        for (uint32_t i = 0; i < n && !status; i++)
            status = read_chunk(r, eng_record_chunk(r->head, i), pass, err);
    }
    if (!status) status = put_open(r, err);
    for (size_t i = 0; i < r->n_threads && !status; i++)
        if (r->threads[i].name)
            status = eng_nsys_put_thread(r->nsys, r->head->pid, r->threads[i].tid,
                                         r->threads[i].name, err);
    r->counts->threads += (int64_t)r->n_threads;
    return status;
}

EngStatus eng_recording_put(EngNsys *nsys, EngRecordHead *const *heads, int n,
                            int64_t session_start_ns, EngRecordingCounts *counts, EngErr *err)
{
    EngStatus status = ENG_OK;
    uint32_t domain_base = 0;
    *counts = (EngRecordingCounts){0};
    for (int i = 0; i < n && !status; i++) {
        Reader r = {.nsys = nsys,
                    .head = heads[i],
                    .start_ns = session_start_ns,
                    .domain_base = domain_base,
                    .counts = counts,
                    .arena = eng_arena_create()};
        status = r.arena ? read_region(&r, err) : no_memory(err);
        counts->dropped += (int64_t)atomic_load(&heads[i]->dropped);
        domain_base += (uint32_t)r.n_names;
        for (size_t k = 0; k < r.n_threads; k++) eng_free(r.threads[k].open);
        eng_free(r.threads);
        eng_free(r.names);
        eng_free(r.schemas);
        eng_free(r.starts);
        if (r.arena) eng_arena_destroy(r.arena);
    }
    const EngNsysDrops drops = {.what = "nvtx", .n = counts->dropped};
    return status ? status : eng_nsys_put_drops(nsys, &drops, err);
}
