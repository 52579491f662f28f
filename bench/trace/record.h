/* A recording: what NVTX events become while a program runs. One shared region per process, either
 * anonymous memory that a worker shares with its parent, or a file that survives the process being
 * killed, since what was stored lies in the page cache.
 *
 * The region is a head and equal chunks. A thread claims a chunk with one atomic addition and is
 * then its only writer: storing an event takes no lock and waits for nobody. When no chunk is left,
 * events are dropped and counted.
 *
 * Included by the hook library too: C library only.
 */
#ifndef ENG_BENCH_TRACE_RECORD_H
#define ENG_BENCH_TRACE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENG_RECORD_MAGIC       "engnvtx1"
#define ENG_RECORD_CHUNK_BYTES (256 * 1024)
#define ENG_RECORD_TEXT_MAX    2040 /* longer names are cut */
#define ENG_RECORD_BLOB_MAX    1024 /* larger payloads are left out */

typedef struct EngRecordHead {
    char magic[8];
    uint32_t chunk_bytes, n_chunks;
    int32_t pid, parent;
    int64_t start_ns, utc_ns; /* CLOCK_MONOTONIC and CLOCK_REALTIME of the same moment */
    int64_t stop_ns;          /* 0: still recording, or killed */
    _Atomic uint32_t claimed; /* may exceed n_chunks */
    _Atomic uint64_t dropped;
    char name[64]; /* of the program */
} EngRecordHead;

typedef struct EngRecordChunk {
    uint32_t tid;
    _Atomic uint32_t used; /* bytes behind this struct */
    char name[16];         /* of the thread when it claimed the chunk */
} EngRecordChunk;

typedef enum EngRecordKind {
    ENG_RECORD_PUSH = 1, /* events */
    ENG_RECORD_POP,
    ENG_RECORD_MARK,
    ENG_RECORD_START,
    ENG_RECORD_END,
    ENG_RECORD_DOMAIN, /* definitions; `string` is the new id */
    ENG_RECORD_STRING,
    ENG_RECORD_SCHEMA,
    ENG_RECORD_THREAD /* `value` is the thread's id */
} EngRecordKind;

enum { ENG_RECORD_SHORT_BYTES = 16 }; /* of a POP: it ends behind time_ns */

/* Followed by text, then the blob, each padded to 8 bytes. */
typedef struct EngRecord {
    uint16_t bytes; /* of the whole record */
    uint8_t kind;
    uint8_t payload; /* NVTX payload type; EngRecordPayload */
    uint32_t domain;
    int64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t value;  /* bits of a scalar payload, or the schema's id when there is a blob */
    uint64_t range;  /* START, END */
    uint32_t string; /* registered name, 0: text follows */
    uint32_t category, color;
    uint16_t text_bytes, blob_bytes;
} EngRecord;

/* As NVTX numbers them. */
typedef enum EngRecordPayload {
    ENG_PAYLOAD_NONE = 0,
    ENG_PAYLOAD_UINT64,
    ENG_PAYLOAD_INT64,
    ENG_PAYLOAD_DOUBLE,
    ENG_PAYLOAD_UINT32,
    ENG_PAYLOAD_INT32,
    ENG_PAYLOAD_FLOAT,
    ENG_PAYLOAD_BLOB = 255
} EngRecordPayload;

/* A payload schema's blob: fields, then their names, zero-terminated. */
typedef struct EngRecordField {
    uint32_t type; /* NVTX_PAYLOAD_ENTRY_TYPE_* */
    uint32_t offset, bytes, count;
    uint32_t name_at; /* from the end of the fields */
} EngRecordField;

static inline size_t eng_record_pad(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

static inline EngRecordChunk *eng_record_chunk(const EngRecordHead *head, uint32_t i)
{
    return (EngRecordChunk *)((char *)head + 4096 + (size_t)i * head->chunk_bytes);
}

static inline size_t eng_record_region_bytes(uint32_t n_chunks)
{
    return 4096 + (size_t)n_chunks * ENG_RECORD_CHUNK_BYTES;
}

/* Prepares a region of eng_record_region_bytes(n_chunks) for events from now on. */
void eng_record_init(EngRecordHead *head, uint32_t n_chunks);

/* Notes when it ended. */
void eng_record_stop(EngRecordHead *head);

/* Zeroed anonymous memory shared with processes forked later; NULL: none. */
EngRecordHead *eng_record_map(uint32_t n_chunks);
void eng_record_unmap(EngRecordHead *head); /* accepts NULL */

#endif
