/* A user's own token log as a stream: raw ids, a numpy array, or JSON lines. */
#ifndef ENG_BENCH_STREAM_IMPORT_H
#define ENG_BENCH_STREAM_IMPORT_H

#include <stdint.h>
#include <engram/status.h>
#include "bench/core/stream.h"

typedef enum EngStreamFormat {
    ENG_STREAM_AUTO = 0, /* by the start of the file (.npy) or the end of its name */
    ENG_STREAM_RAW,      /* little-endian uint32 ids, one document */
    ENG_STREAM_NPY,      /* one dimension of <u4, <i4, <u8, <i8 or |u1, <u2, one document */
    ENG_STREAM_JSONL     /* a line is [ids...] or {"ids": [...]} or {"tokens": [...]}: a document */
} EngStreamFormat;

/* -1 when unknown; NULL likewise. */
int eng_stream_format_parse(const char *name);

typedef struct EngStreamImport {
    const char *file;
    const char *name;     /* NULL: the file's name without folder and extension */
    const char *data_dir; /* made when missing */
    EngStreamFormat format;
    const char *option; /* what the user gives the format by, for messages; NULL: "--format" */
    int64_t vocab_ids;  /* every id must be in [0, vocab_ids) */
} EngStreamImport;

/* Writes data_dir/NAME.ids and NAME.json (kind "imported"), replacing an earlier import of that
 * name, and opens the result into *stream, which the caller closes. ENG_USAGE: a bad or reserved
 * name, an unknown format; ENG_BAD_DATA: the file is malformed or holds an id out of range, named
 * with its position (index, or line and element). An error in the input or a full disk leaves an
 * earlier import as it was. */
EngStatus eng_stream_import(const EngStreamImport *import, EngStream *stream, EngErr *err);

/* Reads and checks a log as import does, and writes nothing: the stream lies in memory, with kind
 * "imported" and the file's name for a corpus. data_dir and name are not used. */
EngStatus eng_stream_read_log(const EngStreamImport *import, EngStream *stream, EngErr *err);

#endif
