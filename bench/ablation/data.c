/* Opening training text; see data.h. */
#include "bench/ablation/data.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"

#define SYNTHETIC_BYTES_PER_TOKEN 3.0
#define SYNTHETIC_HELDOUT         4096
#define SYNTHETIC_DOCUMENT        512

const char *eng_token_class_name(EngTokenClass class_of)
{
    static const char *const names[ENG_TOKEN_CLASS_COUNT] = {"word",  "part",  "digits",
                                                             "space", "signs", "end"};
    return names[class_of];
}

/* ---- classes ---- */

static bool is_letter(unsigned char byte)
{
    return isalpha(byte) || byte >= 0x80;
}

static EngTokenClass class_of(const unsigned char *bytes, size_t n)
{
    bool letters = false, digits = false, space = n > 0;
    for (size_t i = 0; i < n; i++) {
        letters |= is_letter(bytes[i]);
        digits |= isdigit(bytes[i]) != 0;
        space &= isspace(bytes[i]) != 0;
    }
    if (n > 2 && !memcmp(bytes, "<|", 2)) return ENG_TOKEN_END;
    if (space) return ENG_TOKEN_SPACE;
    if (digits) return ENG_TOKEN_DIGITS;
    if (!letters) return ENG_TOKEN_SIGNS;
    return isspace(bytes[0]) || isupper(bytes[0]) ? ENG_TOKEN_WORD : ENG_TOKEN_PART;
}

static EngStatus read_classes(const char *tokenizer, int64_t vocab, EngTrainData *data, EngErr *err)
{
    EngStr bytes = {0};
    EngStatus status = eng_tokenizer_read(tokenizer, &data->names, err);
    if (status) return status;
    status = eng_alloc_or((void **)&data->classes, (size_t)vocab, 1, "token classes", err);
    for (int64_t id = 0; id < vocab && id < data->names.n_ids && !status; id++) {
        bytes.n = 0;
        eng_token_decode(&data->names.tokens[id], &bytes);
        status = eng_str_status(&bytes, err);
        if (!status)
            data->classes[id] = (uint8_t)class_of((const unsigned char *)bytes.text, bytes.n);
    }
    eng_str_free(&bytes);
    return status;
}

/* ---- real text ---- */

static EngStatus bad_key(const char *path, const char *key, EngErr *err)
{
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: key '%s' is missing or of the wrong shape", path, key);
}

/* Fills text->source from document_sources. */
static EngStatus read_owners(const char *path, const json_t *root, int n_sources,
                             EngTrainText *text, EngErr *err)
{
    const json_t *owners = json_object_get(root, "document_sources");
    const EngStream *stream = &text->stream;
    if ((int64_t)json_array_size(owners) != stream->n_documents)
        return bad_key(path, "document_sources", err);
    EngStatus status =
        eng_alloc_or((void **)&text->source, (size_t)text->n, 1, "sources of tokens", err);
    for (int64_t i = 0; i < stream->n_documents && !status; i++) {
        int64_t begin = stream->document_starts[i];
        int64_t end = i + 1 < stream->n_documents ? stream->document_starts[i + 1] : text->n;
        const json_t *owner = json_array_get(owners, (size_t)i);
        int64_t source = json_is_integer(owner) ? json_integer_value(owner) : -1;
        if (source < 0 || source >= n_sources) return bad_key(path, "document_sources", err);
        memset(text->source + begin, (int)source, (size_t)(end - begin));
    }
    return status;
}

static EngStatus read_sources(const char *path, const json_t *root, EngTrainData *data, EngErr *err)
{
    const json_t *sources = json_object_get(root, "sources");
    double bytes_of_all = 0, tokens_of_all = 0;
    data->n_sources = (int)json_array_size(sources);
    if (data->n_sources < 1 || data->n_sources > ENG_TRAIN_SOURCES)
        return bad_key(path, "sources", err);
    for (int i = 0; i < data->n_sources; i++) {
        const json_t *source = json_array_get(sources, (size_t)i);
        const char *name = json_string_value(json_object_get(source, "package"));
        double tokens = json_number_value(json_object_get(source, "tokens"));
        double bytes = json_number_value(json_object_get(source, "bytes"));
        if (!name || tokens < 0 || bytes < 0) return bad_key(path, "sources", err);
        snprintf(data->sources[i].name, sizeof data->sources[i].name, "%s", name);
        data->sources[i].bytes_per_token = tokens > 0 ? bytes / tokens : 0;
        bytes_of_all += bytes;
        tokens_of_all += tokens;
    }
    if (!(tokens_of_all > 0 && bytes_of_all > 0)) return bad_key(path, "sources", err);
    data->bytes_per_token = bytes_of_all / tokens_of_all;
    return ENG_OK;
}

/* heldout: sizes of sources are read as well. */
static EngStatus open_text(const char *path, bool heldout, EngTrainText *text, EngTrainData *data,
                           EngErr *err)
{
    char *header = NULL;
    size_t n = 0;
    json_error_t where;
    json_t *root = NULL;
    EngStatus status = eng_stream_open(path, &text->stream, err);
    if (status == ENG_NOT_FOUND)
        return ENG_FAIL(err, ENG_NOT_FOUND,
                        "%s: no such text; scripts/fetch_data --training makes it", path);
    if (!status) status = eng_file_read(path, &header, &n, err);
    if (status) return status;
    text->ids = (const int32_t *)text->stream.ids; /* checked to be below vocab_ids */
    text->n = text->stream.n_tokens;
    root = json_loadb(header, n, 0, &where);
    eng_free(header);
    if (!root) return ENG_FAIL(err, ENG_BAD_DATA, "%s: %s", path, where.text);
    if (heldout) status = read_sources(path, root, data, err);
    if (!status) status = read_owners(path, root, ENG_TRAIN_SOURCES, text, err);
    json_decref(root);
    return status;
}

static EngStatus check_sources(const char *path, const EngTrainData *data, EngErr *err)
{
    for (int64_t i = 0; i < data->heldout.n; i++)
        if (data->heldout.source[i] >= data->n_sources)
            return bad_key(path, "document_sources", err);
    return ENG_OK;
}

static EngStatus open_real(const char *data_dir, int64_t vocab, EngTrainData *data, EngErr *err)
{
    EngArena *arena = eng_arena_create();
    const char *form = "%s/training/bpe%lld%s.json";
    char *train =
        arena ? eng_arena_printf(arena, form, data_dir, (long long)vocab, "-train") : NULL;
    char *heldout =
        arena ? eng_arena_printf(arena, form, data_dir, (long long)vocab, "-heldout") : NULL;
    char *tokenizer = arena ? eng_arena_printf(arena, form, data_dir, (long long)vocab, "") : NULL;
    EngStatus status = train && heldout && tokenizer
                           ? ENG_OK
                           : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for training text");
    if (!status) status = open_text(train, false, &data->train, data, err);
    if (!status) status = open_text(heldout, true, &data->heldout, data, err);
    if (!status) status = check_sources(heldout, data, err);
    if (!status) status = eng_tokmap_load(tokenizer, &data->map, err);
    if (!status && (data->map.n_ids != vocab || data->train.stream.vocab_ids > vocab))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: %lld ids, expected %lld", tokenizer,
                          (long long)data->map.n_ids, (long long)vocab);
    if (!status) status = read_classes(tokenizer, vocab, data, err);
    eng_arena_destroy(arena);
    return status;
}

/* ---- generated text ---- */

/* Half of the tokens are drawn, the others follow from the two before: n-grams tell them. */
static void generate(uint32_t *ids, int64_t n, int64_t vocab, uint64_t seed)
{
    EngRng rng;
    eng_rng_seed(&rng, seed);
    for (int64_t i = 0; i < n; i++) {
        bool follows = i >= 2 && eng_rng_below(&rng, 2);
        uint64_t drawn = eng_rng_below(&rng, (uint64_t)vocab);
        if (follows) drawn = (ids[i - 1] * 7u + ids[i - 2] * 3u + 1u) % (uint64_t)vocab;
        ids[i] = (uint32_t)(drawn * drawn / (uint64_t)vocab);
        if (i % SYNTHETIC_DOCUMENT == 0) ids[i] = 0;
    }
}

static EngStatus synthetic_text(int64_t n, int64_t vocab, uint64_t seed, EngTrainText *text,
                                EngErr *err)
{
    EngStream *stream = &text->stream;
    int64_t documents = (n + SYNTHETIC_DOCUMENT - 1) / SYNTHETIC_DOCUMENT;
    EngStatus status =
        eng_alloc_or((void **)&stream->owned_ids, (size_t)n, sizeof(uint32_t), "ids", err);
    if (!status)
        status = eng_alloc_or((void **)&stream->owned_starts, (size_t)documents, sizeof(int64_t),
                              "documents", err);
    if (!status) status = eng_alloc_or((void **)&text->source, (size_t)n, 1, "sources", err);
    if (status) return status;
    generate(stream->owned_ids, n, vocab, seed);
    for (int64_t i = 0; i < documents; i++) stream->owned_starts[i] = i * SYNTHETIC_DOCUMENT;
    for (int64_t i = 0; i < n; i++) text->source[i] = (uint8_t)(i / SYNTHETIC_DOCUMENT % 2);
    stream->ids = stream->owned_ids;
    stream->document_starts = stream->owned_starts;
    stream->n_documents = documents;
    stream->n_tokens = text->n = n;
    stream->vocab_ids = vocab;
    snprintf(stream->kind, sizeof stream->kind, "synthetic");
    text->ids = (const int32_t *)stream->ids;
    return eng_digest(stream->ids, (size_t)n * sizeof *stream->ids, stream->digest, err);
}

static EngStatus open_synthetic(int64_t vocab, int64_t n_tokens, EngTrainData *data, EngErr *err)
{
    EngTokmap *map = &data->map;
    EngStatus status = synthetic_text(n_tokens, vocab, 1, &data->train, err);
    if (!status) status = synthetic_text(SYNTHETIC_HELDOUT, vocab, 2, &data->heldout, err);
    if (!status)
        status = eng_alloc_or((void **)&map->map, (size_t)vocab, sizeof *map->map, "a map", err);
    if (!status)
        status = eng_alloc_or((void **)&data->classes, (size_t)vocab, 1, "token classes", err);
    if (status) return status;
    map->n_ids = vocab;
    map->n_compressed = (vocab + 1) / 2 + vocab / 4;
    for (int64_t i = 0; i < vocab; i++) {
        map->map[i] = (int32_t)(i % map->n_compressed);
        data->classes[i] = (uint8_t)(i ? i % ENG_TOKEN_END : ENG_TOKEN_END);
    }
    status = eng_digest(map->map, (size_t)vocab * sizeof *map->map, map->sha256_i32le, err);
    data->n_sources = 2;
    for (int i = 0; i < 2; i++) {
        snprintf(data->sources[i].name, sizeof data->sources[i].name, "synthetic-%d", i + 1);
        data->sources[i].bytes_per_token = SYNTHETIC_BYTES_PER_TOKEN;
    }
    data->bytes_per_token = SYNTHETIC_BYTES_PER_TOKEN;
    return status;
}

EngStatus eng_train_data_open(const char *data_dir, const char *text, int64_t vocab,
                              int64_t n_tokens, EngTrainData *data, EngErr *err)
{
    char identity[3 * ENG_DIGEST_HEX + 8];
    *data = (EngTrainData){0};
    EngStatus status = !strcmp(text, "synthetic") ? open_synthetic(vocab, n_tokens, data, err)
                                                  : open_real(data_dir, vocab, data, err);
    if (!status) {
        snprintf(identity, sizeof identity, "%s\n%s\n%s\n", data->train.stream.digest,
                 data->heldout.stream.digest, data->map.sha256_i32le);
        status = eng_key_of(identity, data->digest, err);
    }
    if (status) eng_train_data_close(data);
    return status;
}

static void close_text(EngTrainText *text)
{
    eng_stream_close(&text->stream);
    eng_free(text->source);
}

void eng_train_data_close(EngTrainData *data)
{
    close_text(&data->train);
    close_text(&data->heldout);
    if (data->map.map) eng_tokmap_free(&data->map);
    eng_free(data->classes);
    eng_tokenizer_free(&data->names);
    *data = (EngTrainData){0};
}
