/* Import of token logs; see stream_import.h. Each format's reader appends to one list of ids and
 * one of document starts; only a complete, checked list is written. */
#include "bench/core/stream_import.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* What has been read so far. */
typedef struct Log {
    const char *file; /* for messages */
    int64_t vocab_ids;
    uint32_t *ids;
    size_t n_ids, ids_size;
    int64_t *starts;
    size_t n_starts, starts_size;
} Log;

/* Room for one more element of `bytes` each; doubles, so that appending stays linear. */
static EngStatus reserve(void **block, size_t n, size_t *size, size_t bytes, EngErr *err)
{
    if (n < *size) return ENG_OK;
    size_t grown = *size ? *size * 2 : 4096, new_bytes;
    if (!eng_mul_size(grown, bytes, &new_bytes))
        return ENG_FAIL(err, ENG_NO_MEMORY, "token log too large for memory");
    void *moved = eng_realloc(*block, n * bytes, new_bytes);
    if (!moved)
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for %zu bytes of tokens", new_bytes);
    *block = moved;
    *size = grown;
    return ENG_OK;
}

static EngStatus append_id(Log *log, uint32_t id, EngErr *err)
{
    EngStatus status =
        reserve((void **)&log->ids, log->n_ids, &log->ids_size, sizeof *log->ids, err);
    if (!status) log->ids[log->n_ids++] = id;
    return status;
}

static EngStatus append_start(Log *log, EngErr *err)
{
    EngStatus status =
        reserve((void **)&log->starts, log->n_starts, &log->starts_size, sizeof *log->starts, err);
    if (!status) log->starts[log->n_starts++] = (int64_t)log->n_ids;
    return status;
}

/* --- Arrays of fixed-width integers ----------------------------------------------------------- */

/* Appends n little-endian integers as one document. */
static EngStatus append_array(Log *log, const uint8_t *data, size_t n, size_t width, bool is_signed,
                              EngErr *err)
{
    EngStatus status = append_start(log, err);
    for (size_t i = 0; !status && i < n; i++) {
        uint64_t value = 0;
        memcpy(&value, data + i * width, width);
        /* Sign extension from the array's width, so that -1 of any width is reported as -1. */
        unsigned unused_bits = 64 - 8 * (unsigned)width;
        if (is_signed) value = (uint64_t)((int64_t)(value << unused_bits) >> unused_bits);
        if (value < (uint64_t)log->vocab_ids) {
            status = append_id(log, (uint32_t)value, err);
            continue;
        }
        if (is_signed)
            status = ENG_FAIL(err, ENG_BAD_DATA, "%s: index %zu: id %lld is not in [0, %lld)",
                              log->file, i, (long long)value, (long long)log->vocab_ids);
        else
            status = ENG_FAIL(err, ENG_BAD_DATA, "%s: index %zu: id %llu is not in [0, %lld)",
                              log->file, i, (unsigned long long)value, (long long)log->vocab_ids);
    }
    return status;
}

static EngStatus read_raw(Log *log, const EngMapping *file, EngErr *err)
{
    if (file->bytes % sizeof(uint32_t))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: %zu bytes are no whole number of uint32 ids",
                        log->file, file->bytes);
    return append_array(log, file->data, file->bytes / sizeof(uint32_t), sizeof(uint32_t), false,
                        err);
}

/* --- numpy ------------------------------------------------------------------------------------ */

#define NPY_MAGIC       "\x93NUMPY"
#define NPY_MAGIC_BYTES 6

/* The text after `'key':` in a numpy header, or NULL. The header is a Python dictionary of three
 * keys in a fixed style, so no parser is needed. */
static const char *npy_value(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    return at + strspn(at, " ");
}

static EngStatus npy_element(const Log *log, const char *header, size_t *width, bool *is_signed,
                             EngErr *err)
{
    const char *descr = npy_value(header, "descr");
    int n = descr ? (int)strcspn(descr, ",}") : 0;
    /* '<u4' with its quotes; |u1 has no byte order. */
    if (n == 5 && (descr[1] == '<' || descr[1] == '|') && (descr[2] == 'u' || descr[2] == 'i') &&
        strchr("1248", descr[3])) {
        *width = (size_t)(descr[3] - '0');
        *is_signed = descr[2] == 'i';
        return ENG_OK;
    }
    return ENG_FAIL(err, ENG_BAD_DATA,
                    "%s: key 'descr' is %.*s, not a little-endian integer type such as '<u4'",
                    log->file, n, descr ? descr : "");
}

static EngStatus npy_length(const Log *log, const char *header, size_t *n, EngErr *err)
{
    const char *shape = npy_value(header, "shape");
    unsigned long long count = 0;
    int used = 0;
    if (shape && sscanf(shape, "(%llu,)%n", &count, &used) == 1 && used > 0) {
        *n = (size_t)count;
        return ENG_OK;
    }
    int shown = shape ? (int)strcspn(shape, ")}") + 1 : 0;
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: key 'shape' is %.*s, not one dimension", log->file,
                    shown, shape ? shape : "");
}

/* The dictionary and where the data starts. Format 1 has a 16-bit header length, 2 and 3 have
 * 32 bits. */
static EngStatus npy_header(const Log *log, const EngMapping *file, char **header, size_t *data_at,
                            EngErr *err)
{
    const uint8_t *bytes = file->data;
    size_t length = 0, at = 0;
    if (file->bytes < 12 || memcmp(bytes, NPY_MAGIC, NPY_MAGIC_BYTES))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a .npy file", log->file);
    unsigned version = bytes[NPY_MAGIC_BYTES];
    if (version < 1 || version > 3)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: .npy format version %u is not known", log->file,
                        version);
    size_t length_bytes = version == 1 ? 2 : 4;
    for (size_t i = 0; i < length_bytes; i++)
        length |= (size_t)bytes[NPY_MAGIC_BYTES + 2 + i] << (8 * i);
    at = NPY_MAGIC_BYTES + 2 + length_bytes;
    if (length > file->bytes - at)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: truncated: header of %zu bytes in a file of %zu",
                        log->file, length, file->bytes);
    *header = eng_alloc(length + 1);
    if (!*header) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", log->file);
    memcpy(*header, bytes + at, length);
    *data_at = at + length;
    return ENG_OK;
}

static EngStatus read_npy(Log *log, const EngMapping *file, EngErr *err)
{
    char *header = NULL;
    size_t data_at = 0, width = 0, n = 0, needed;
    bool is_signed = false;
    EngStatus status = npy_header(log, file, &header, &data_at, err);
    if (!status) status = npy_element(log, header, &width, &is_signed, err);
    if (!status) status = npy_length(log, header, &n, err);
    if (status) goto out;
    if (!eng_mul_size(n, width, &needed) || needed != file->bytes - data_at) {
        status =
            ENG_FAIL(err, ENG_BAD_DATA,
                     "%s: key 'shape' promises %zu integers of %zu bytes, but %zu bytes follow",
                     log->file, n, width, file->bytes - data_at);
        goto out;
    }
    status = append_array(log, (const uint8_t *)file->data + data_at, n, width, is_signed, err);
out:
    eng_free(header);
    return status;
}

/* --- JSON lines ------------------------------------------------------------------------------- */

static EngStatus append_document(Log *log, const json_t *ids, size_t line, EngErr *err)
{
    size_t n = json_array_size(ids);
    if (n == 0) return ENG_OK; /* an empty document would share its start with the next one */
    EngStatus status = append_start(log, err);
    for (size_t i = 0; !status && i < n; i++) {
        const json_t *item = json_array_get(ids, i);
        if (!json_is_integer(item))
            return ENG_FAIL(err, ENG_BAD_DATA, "%s: line %zu, element %zu: not an integer",
                            log->file, line, i);
        json_int_t id = json_integer_value(item);
        if (id < 0 || id >= log->vocab_ids)
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "%s: line %zu, element %zu: id %lld is not in [0, %lld)", log->file,
                            line, i, (long long)id, (long long)log->vocab_ids);
        status = append_id(log, (uint32_t)id, err);
    }
    return status;
}

static EngStatus read_json_line(Log *log, const char *text, size_t n, size_t line, EngErr *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, n, 0, &where);
    if (!root)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: line %zu: not JSON: %s", log->file, line,
                        where.text);
    const json_t *ids = root;
    if (json_is_object(root)) {
        ids = json_object_get(root, "ids");
        if (!ids) ids = json_object_get(root, "tokens");
    }
    EngStatus status;
    if (json_is_array(ids))
        status = append_document(log, ids, line, err);
    else
        status = ENG_FAIL(err, ENG_BAD_DATA,
                          "%s: line %zu: neither a list of ids nor an object with 'ids' or "
                          "'tokens'",
                          log->file, line);
    json_decref(root);
    return status;
}

static EngStatus read_jsonl(Log *log, const EngMapping *file, EngErr *err)
{
    const char *text = file->data;
    size_t line = 0;
    EngStatus status = ENG_OK;
    for (size_t at = 0; !status && at < file->bytes;) {
        const char *end = memchr(text + at, '\n', file->bytes - at);
        size_t n = end ? (size_t)(end - (text + at)) : file->bytes - at;
        line++;
        size_t blank = 0;
        while (blank < n && memchr(" \t\r", text[at + blank], 3)) blank++;
        if (blank < n) status = read_json_line(log, text + at, n, line, err);
        at += n + 1;
    }
    return status;
}

/* --- Choosing and writing --------------------------------------------------------------------- */

static const char *const g_format_names[] = {"auto", "raw", "npy", "jsonl"};

int eng_stream_format_parse(const char *name)
{
    for (int i = 0; name && i < (int)(sizeof g_format_names / sizeof *g_format_names); i++)
        if (!strcmp(name, g_format_names[i])) return i;
    return -1;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static EngStatus detect(const EngStreamImport *import, const EngMapping *file,
                        EngStreamFormat *format, EngErr *err)
{
    static const struct {
        const char *end;
        EngStreamFormat format;
    } known[] = {{".npy", ENG_STREAM_NPY},      {".jsonl", ENG_STREAM_JSONL},
                 {".ndjson", ENG_STREAM_JSONL}, {".json", ENG_STREAM_JSONL},
                 {".ids", ENG_STREAM_RAW},      {".bin", ENG_STREAM_RAW},
                 {".raw", ENG_STREAM_RAW},      {".u32", ENG_STREAM_RAW}};
    if (file->bytes >= NPY_MAGIC_BYTES && !memcmp(file->data, NPY_MAGIC, NPY_MAGIC_BYTES)) {
        *format = ENG_STREAM_NPY;
        return ENG_OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ends_with(import->file, known[i].end)) {
            *format = known[i].format;
            return ENG_OK;
        }
    return ENG_FAIL(err, ENG_USAGE,
                    "%s: the name does not tell the format; give %s=raw, npy or jsonl (token ids)",
                    import->file, import->option ? import->option : "--format");
}

static EngStatus read_log(const EngStreamImport *import, Log *log, EngErr *err)
{
    EngMapping file;
    EngStreamFormat format = import->format;
    EngStatus status = eng_file_map(import->file, &file, err);
    if (status == ENG_NOT_FOUND)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file", import->file);
    if (status) return status;
    if (format == ENG_STREAM_AUTO) status = detect(import, &file, &format, err);
    if (!status && file.bytes == 0)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: empty file", import->file);
    if (!status && format == ENG_STREAM_RAW) status = read_raw(log, &file, err);
    if (!status && format == ENG_STREAM_NPY) status = read_npy(log, &file, err);
    if (!status && format == ENG_STREAM_JSONL) status = read_jsonl(log, &file, err);
    if (!status && log->n_ids == 0)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: holds no token", import->file);
    eng_file_unmap(&file);
    return status;
}

static EngStatus choose_name(const EngStreamImport *import, char name[ENG_STREAM_NAME], EngErr *err)
{
    const char *chosen = import->name;
    char stem[ENG_STREAM_NAME + 1];
    if (!chosen) {
        const char *slash = strrchr(import->file, '/');
        const char *base = slash ? slash + 1 : import->file;
        const char *dot = strrchr(base, '.');
        size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);
        snprintf(stem, sizeof stem, "%.*s", (int)(n < sizeof stem ? n : sizeof stem - 1), base);
        chosen = stem;
    }
    if (!eng_stream_name_valid(chosen))
        return ENG_FAIL(err, ENG_USAGE,
                        "'%s' cannot name a stream (letters, digits, . _ -, at most %d); give "
                        "--name",
                        chosen, ENG_STREAM_NAME - 1);
    if (eng_stream_name_reserved(chosen) || !strcmp(chosen, "tokenizer"))
        return ENG_FAIL(err, ENG_USAGE, "the name '%s' is reserved; give another with --name",
                        chosen);
    memcpy(name, chosen, strlen(chosen) + 1);
    return ENG_OK;
}

static json_t *header_of(const EngStreamImport *import, const Log *log, const char *name,
                         const char *digest)
{
    const char *slash = strrchr(import->file, '/');
    json_t *starts = json_array();
    for (size_t i = 0; i < log->n_starts; i++)
        json_array_append_new(starts, json_integer((json_int_t)log->starts[i]));
    char ids_file[ENG_STREAM_NAME + 8];
    snprintf(ids_file, sizeof ids_file, "%s.ids", name);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:[{s:s}], s:s, s:o}", "format",
                     ENG_STREAM_FORMAT, "corpus", name, "kind", "imported", "ids_file", ids_file,
                     "n_tokens", (json_int_t)log->n_ids, "vocab_ids", (json_int_t)log->vocab_ids,
                     "sources", "file", slash ? slash + 1 : import->file, "sha256", digest,
                     "document_starts", starts);
}

/* The header as text, free with free(). ENG_BAD_DATA: one that no one could read again. */
static EngStatus header_text(const EngStreamImport *import, const Log *log, const char *name,
                             char **text, EngErr *err)
{
    char digest[ENG_DIGEST_HEX];
    EngStatus status = eng_digest(log->ids, log->n_ids * sizeof *log->ids, digest, err);
    if (status) return status;
    json_t *header = header_of(import, log, name, digest);
    *text = header ? json_dumps(header, 0) : NULL;
    json_decref(header);
    if (!*text) return ENG_FAIL(err, ENG_BAD_DATA, "%s: the file name is not UTF-8", import->file);
    if (strlen(*text) <= ENG_FILE_READ_MAX) return ENG_OK;
    return ENG_FAIL(err, ENG_BAD_DATA,
                    "%s: the starts of %zu documents take %zu bytes as text, at most %zu",
                    import->file, log->n_starts, strlen(*text), ENG_FILE_READ_MAX);
}

/* Leaves the bytes beside `path`, which keeps what it has until the writer is committed. */
static EngStatus stage(EngWriter *writer, const char *path, const void *bytes, size_t n,
                       EngErr *err)
{
    EngStatus status = eng_writer_open(writer, path, err);
    if (!status) status = eng_writer_put(writer, bytes, n, err);
    return status ? status : eng_writer_flush(writer, err);
}

/* Both files are whole before either gets its name. Ids first, header last: a reader never sees a
 * header whose ids are not there yet. (An older header then disagrees with the new ids for a
 * moment, which its digest tells.) */
static EngStatus write_stream(const EngStreamImport *import, const Log *log, const char *name,
                              EngStream *stream, EngErr *err)
{
    EngStr ids_path = {0}, path = {0};
    EngWriter ids = {0}, header = {0};
    char *text = NULL;
    EngStatus status = header_text(import, log, name, &text, err);
    if (!status) status = eng_make_dirs(import->data_dir, err);
    eng_str_printf(&ids_path, "%s/%s.ids", import->data_dir, name);
    eng_str_printf(&path, "%s/%s.json", import->data_dir, name);
    if (!status) status = eng_str_status(&ids_path, err);
    if (!status) status = eng_str_status(&path, err);
    if (!status) status = stage(&ids, ids_path.text, log->ids, log->n_ids * sizeof *log->ids, err);
    if (!status) status = stage(&header, path.text, text, strlen(text), err);
    if (!status) status = eng_writer_commit(&ids, err);
    if (!status) status = eng_writer_commit(&header, err);
    if (!status) status = eng_stream_open(path.text, stream, err);
    eng_writer_close(&ids);
    eng_writer_close(&header);
    free(text);
    eng_str_free(&ids_path);
    eng_str_free(&path);
    return status;
}

EngStatus eng_stream_import(const EngStreamImport *import, EngStream *stream, EngErr *err)
{
    char name[ENG_STREAM_NAME];
    Log log = {.file = import->file, .vocab_ids = import->vocab_ids};
    *stream = (EngStream){0};
    if (import->vocab_ids < 1 || import->vocab_ids > INT32_MAX)
        return ENG_FAIL(err, ENG_USAGE, "vocabulary of %lld ids is not in 1..%d",
                        (long long)import->vocab_ids, INT32_MAX);
    EngStatus status = choose_name(import, name, err);
    if (!status) status = read_log(import, &log, err);
    if (!status) status = write_stream(import, &log, name, stream, err);
    eng_free(log.ids);
    eng_free(log.starts);
    return status;
}

EngStatus eng_stream_read_log(const EngStreamImport *import, EngStream *stream, EngErr *err)
{
    Log log = {.file = import->file, .vocab_ids = import->vocab_ids};
    const char *slash = strrchr(import->file, '/');
    *stream = (EngStream){0};
    EngStatus status = read_log(import, &log, err);
    if (!status) status = eng_digest(log.ids, log.n_ids * sizeof *log.ids, stream->digest, err);
    if (status) {
        eng_free(log.ids);
        eng_free(log.starts);
        return status;
    }
    snprintf(stream->corpus, sizeof stream->corpus, "%s", slash ? slash + 1 : import->file);
    snprintf(stream->label, sizeof stream->label, "%s", stream->corpus);
    snprintf(stream->kind, sizeof stream->kind, "imported");
    stream->n_tokens = (int64_t)log.n_ids;
    stream->vocab_ids = import->vocab_ids;
    stream->ids = stream->owned_ids = log.ids;
    stream->n_documents = (int64_t)log.n_starts;
    stream->document_starts = stream->owned_starts = log.starts;
    return ENG_OK;
}
