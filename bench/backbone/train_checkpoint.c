/* Checkpoints: a text head that says what the run is (all fields, one a line) and where it stands,
 * then the arrays as they lie in memory, then a digest of everything. Written beside the file and
 * renamed; read wholly and checked before anything is taken over. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/mem.h"
#include "bench/backbone/train_parts.h"

#define MAGIC "engram-checkpoint 1\n"

typedef struct Header {
    char magic[sizeof MAGIC];
    _Alignas(int32_t) int16_t threads; /* of the save, and the last other number before it */
    int16_t other_threads;
    int32_t fields_bytes;
    int64_t step;
    EngTrainPoint last;
    int64_t ns[ENG_PART_COUNT];
    char failed[160];
} Header;

typedef struct Piece {
    void *bytes;
    size_t n;
} Piece;

enum { MAX_PIECES = 16, FIELDS_BYTES = 8192 };

/* The arrays of a run's state. */
static int list_pieces(const EngTrainer *t, Piece *pieces)
{
    size_t routed = (size_t)(t->config.model.layers * t->config.model.experts);
    int n = 0;
    pieces[n++] = (Piece){t->values, (size_t)t->tensors.all * sizeof *t->values};
    pieces[n++] = (Piece){t->bias, routed * sizeof *t->bias};
    pieces[n++] = (Piece){t->counts, routed * sizeof *t->counts};
    for (int block = 0; eng_optimizer_block(t->optimizer, block, &pieces[n].bytes, &pieces[n].n);
         block++)
        n++;
    return n;
}

/* "name=value" lines of the fields that count. */
static EngStatus describe(const EngTrainConfig *config, char text[FIELDS_BYTES], EngErr *err)
{
    size_t used = 0;
    EngStatus status = ENG_OK;
    memset(text, 0, FIELDS_BYTES);
    for (int i = 0; i < eng_train_fields() && !status; i++) {
        char value[128];
        const char *name = eng_train_field_name(i);
        if (!eng_train_field_counts(config, i)) continue;
        status = eng_train_field_get(config, i, value, sizeof value, err);
        used += (size_t)snprintf(text + used, FIELDS_BYTES - used, "%s=%s\n", name, value);
        if (used >= FIELDS_BYTES) return ENG_FAIL(err, ENG_INTERNAL, "fields: no room");
    }
    return status;
}

EngStatus eng_trainer_save(const EngTrainer *t, const char *path, EngErr *err)
{
    char fields[FIELDS_BYTES];
    EngWriter writer = {0};
    Piece pieces[MAX_PIECES];
    Header header = {.magic = MAGIC,
                     .threads = (int16_t)t->config.model.threads,
                     .other_threads = (int16_t)t->other_threads,
                     .fields_bytes = FIELDS_BYTES,
                     .step = t->step,
                     .last = t->last};
    eng_trainer_times(t, header.ns);
    memcpy(header.failed, t->failed, sizeof header.failed);
    EngStatus status = describe(&t->config, fields, err);
    if (status) return status;
    int n = list_pieces(t, pieces + 2) + 2;
    pieces[0] = (Piece){&header, sizeof header};
    pieces[1] = (Piece){fields, sizeof fields};
    EngDigest *digest = NULL;
    status = eng_writer_open(&writer, path, err);
    if (!status) status = eng_digest_create(&digest, err);
    for (int i = 0; i < n && !status; i++) {
        status = eng_digest_update(digest, pieces[i].bytes, pieces[i].n, err);
        if (!status) status = eng_writer_put(&writer, pieces[i].bytes, pieces[i].n, err);
    }
    char hex[ENG_DIGEST_HEX] = {0};
    if (digest) {
        EngStatus finished = eng_digest_finish(digest, hex, status ? NULL : err);
        if (!status) status = finished;
    }
    if (!status) status = eng_writer_put(&writer, hex, sizeof hex, err);
    if (!status) status = eng_writer_commit(&writer, err);
    eng_writer_close(&writer);
    return status;
}

/* ---- reading ---- */

/* The first line in which two descriptions differ. */
static EngStatus compare_fields(const char *path, const char *saved, const char *own, EngErr *err)
{
    while (*saved && *own) {
        int a = (int)strcspn(saved, "\n"), b = (int)strcspn(own, "\n");
        if (a != b || strncmp(saved, own, (size_t)a) != 0)
            return ENG_FAIL(err, ENG_MISMATCH, "checkpoint %s: made with %.*s, this run has %.*s",
                            path, a, saved, b, own);
        saved += a + (saved[a] == '\n'), own += b + (own[b] == '\n');
    }
    if (*saved || *own)
        return ENG_FAIL(err, ENG_MISMATCH, "checkpoint %s: made with other fields", path);
    return ENG_OK;
}

static EngStatus check_file(const EngTrainer *t, const char *path, const EngMapping *file,
                            size_t expected, EngErr *err)
{
    char own[FIELDS_BYTES], hex[ENG_DIGEST_HEX];
    const Header *header = file->data;
    if (file->bytes < sizeof *header + FIELDS_BYTES ||
        memcmp(header->magic, MAGIC, sizeof MAGIC) != 0 || header->fields_bytes != FIELDS_BYTES)
        return ENG_FAIL(err, ENG_BAD_DATA, "checkpoint %s: not a checkpoint of this version", path);
    const char *saved = (const char *)(header + 1);
    if (saved[FIELDS_BYTES - 1])
        return ENG_FAIL(err, ENG_BAD_DATA, "checkpoint %s: damaged fields", path);
    EngStatus status = describe(&t->config, own, err);
    if (!status) status = compare_fields(path, saved, own, err);
    if (status) return status;
    if (file->bytes != expected)
        return ENG_FAIL(err, ENG_BAD_DATA, "checkpoint %s: %zu bytes, %zu expected (truncated?)",
                        path, file->bytes, expected);
    size_t body = file->bytes - sizeof hex;
    status = eng_digest(file->data, body, hex, err);
    if (!status && memcmp((const char *)file->data + body, hex, sizeof hex) != 0)
        status = ENG_FAIL(err, ENG_BAD_DATA, "checkpoint %s: its digest is not that of its content",
                          path);
    return status;
}

EngStatus eng_trainer_load(EngTrainer *t, const char *path, int *other_threads, EngErr *err)
{
    EngMapping file = {0};
    Piece pieces[MAX_PIECES];
    int n = list_pieces(t, pieces);
    size_t expected = sizeof(Header) + FIELDS_BYTES + ENG_DIGEST_HEX;
    for (int i = 0; i < n; i++) expected += pieces[i].n;
    EngStatus status = eng_file_map(path, &file, err);
    if (status) return status;
    status = check_file(t, path, &file, expected, err);
    if (!status) {
        const Header *header = file.data;
        const char *from = (const char *)(header + 1) + FIELDS_BYTES;
        for (int i = 0; i < n; from += pieces[i++].n) memcpy(pieces[i].bytes, from, pieces[i].n);
        t->step = header->step, t->last = header->last;
        memcpy(t->ns, header->ns, sizeof t->ns);
        for (int i = 0; i < t->config.model.threads; i++)
            memset(t->lanes[i].ns, 0, sizeof t->lanes[i].ns);
        memcpy(t->failed, header->failed, sizeof t->failed);
        t->other_threads =
            header->threads == t->config.model.threads ? header->other_threads : header->threads;
        *other_threads = t->other_threads;
        eng_trainer_refresh(t);
    }
    eng_file_unmap(&file);
    return status;
}
