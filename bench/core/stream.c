/* Opening, checking and generating token streams; see stream.h. Everything a later stage relies on
 * (digest, range of ids, document order) is checked here once, so that kernels need no checks. */
#include "bench/core/stream.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stream files are mapped as they lie");

/* The first N_FETCHED are made by scripts/fetch_data, the others by eng_stream_synthetic. */
enum { N_FETCHED = 5, N_RESERVED = 7 };
static const char *const g_reserved[N_RESERVED] = {
    "prose", "docs", "code", "multilingual", "filler", "uniform", "synthetic",
};

static bool is_reserved(const char *name, int first, int end)
{
    for (int i = first; i < end; i++)
        if (!strcmp(name, g_reserved[i])) return true;
    return false;
}

bool eng_stream_name_fetched(const char *name)
{
    return is_reserved(name, 0, N_FETCHED);
}

static bool is_generated(const char *name)
{
    return is_reserved(name, N_FETCHED, N_RESERVED);
}

bool eng_stream_name_reserved(const char *name)
{
    return is_reserved(name, 0, N_RESERVED);
}

bool eng_stream_name_valid(const char *name)
{
    size_t n = strlen(name);
    const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return n > 0 && n < ENG_STREAM_NAME && name[0] != '.' && name[0] != '-' &&
           strspn(name, allowed) == n;
}

/* --- The header ------------------------------------------------------------------------------ */

typedef struct Header {
    const char *path;
    json_t *root; /* owner of all strings below */
    const char *ids_file, *sha256;
} Header;

static EngStatus text_field(const Header *header, const char *key, const char **text, EngErr *err)
{
    const json_t *value = json_object_get(header->root, key);
    if (!json_is_string(value))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: key '%s' is %s", header->path, key,
                        value ? "not a string" : "missing");
    *text = json_string_value(value);
    return ENG_OK;
}

static EngStatus count_field(const Header *header, const char *key, int64_t max, int64_t *count,
                             EngErr *err)
{
    const json_t *value = json_object_get(header->root, key);
    if (!json_is_integer(value))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: key '%s' is %s", header->path, key,
                        value ? "not an integer" : "missing");
    *count = json_integer_value(value);
    if (*count < 1 || *count > max)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: key '%s' is %lld, not in 1..%lld", header->path,
                        key, (long long)*count, (long long)max);
    return ENG_OK;
}

static EngStatus load_header(const char *path, Header *header, EngErr *err)
{
    char *text = NULL;
    size_t n = 0;
    json_error_t where;
    *header = (Header){.path = path};
    EngStatus status = eng_file_read(path, &text, &n, err);
    if (status) return status;
    header->root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    eng_free(text);
    if (!header->root)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: line %d: not JSON: %s", path, where.line,
                        where.text);
    if (!json_is_object(header->root))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a JSON object", path);
    return ENG_OK;
}

static EngStatus read_fields(Header *header, EngStream *stream, EngErr *err)
{
    const char *format = NULL, *corpus = NULL, *kind = NULL;
    EngStatus status = text_field(header, "format", &format, err);
    if (status) return status;
    if (strcmp(format, ENG_STREAM_FORMAT))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: key 'format' is '%s', expected '%s'", header->path,
                        format, ENG_STREAM_FORMAT);
    if ((status = text_field(header, "corpus", &corpus, err))) return status;
    if ((status = text_field(header, "kind", &kind, err))) return status;
    if ((status = text_field(header, "ids_file", &header->ids_file, err))) return status;
    if ((status = text_field(header, "sha256", &header->sha256, err))) return status;
    /* Ids are uint32 and must fit the int32 of compressed ids as well. */
    if ((status = count_field(header, "vocab_ids", INT32_MAX, &stream->vocab_ids, err)))
        return status;
    if ((status = count_field(header, "n_tokens", INT64_MAX / 8, &stream->n_tokens, err)))
        return status;
    if (!eng_stream_name_valid(corpus))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: key 'corpus' is '%s', not a stream name",
                        header->path, corpus);
    if (strcmp(kind, "real") && strcmp(kind, "filler") && strcmp(kind, "imported"))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: key 'kind' is '%s', not real, filler or imported",
                        header->path, kind);
    /* The ids lie beside their header; a path would let a header point anywhere. */
    if (!*header->ids_file || strchr(header->ids_file, '/'))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: key 'ids_file' is '%s', not a plain file name",
                        header->path, header->ids_file);
    snprintf(stream->corpus, sizeof stream->corpus, "%s", corpus);
    snprintf(stream->kind, sizeof stream->kind, "%s", kind);
    return ENG_OK;
}

static EngStatus read_documents(const Header *header, EngStream *stream, EngErr *err)
{
    const json_t *starts = json_object_get(header->root, "document_starts");
    if (!json_is_array(starts) || json_array_size(starts) == 0)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: key 'document_starts' is %s", header->path,
                        starts ? "not a list of token indices" : "missing");
    size_t n = json_array_size(starts);
    EngStatus status =
        eng_alloc_or((void **)&stream->owned_starts, n, sizeof(int64_t), "document starts", err);
    if (status) return status;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(starts, i);
        int64_t at = json_is_integer(item) ? json_integer_value(item) : -1;
        int64_t least = i ? stream->owned_starts[i - 1] + 1 : 0;
        if (at < least || at >= stream->n_tokens || (i == 0 && at != 0))
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "%s: key 'document_starts': entry %zu is %lld; starts must ascend from "
                            "0 and stay below n_tokens = %lld",
                            header->path, i, (long long)at, (long long)stream->n_tokens);
        stream->owned_starts[i] = at;
    }
    stream->document_starts = stream->owned_starts;
    stream->n_documents = (int64_t)n;
    return ENG_OK;
}

static void describe(const Header *header, EngStream *stream)
{
    const json_t *tokenizer = json_object_get(header->root, "tokenizer");
    const char *name = json_string_value(json_object_get(tokenizer, "name"));
    const char *sha256 = json_string_value(json_object_get(tokenizer, "sha256"));
    snprintf(stream->tokenizer_sha256, sizeof stream->tokenizer_sha256, "%s", sha256 ? sha256 : "");
    int n = snprintf(stream->label, sizeof stream->label, "%s (%s", stream->corpus, stream->kind);
    size_t index;
    const json_t *source;
    json_array_foreach(json_object_get(header->root, "sources"), index, source)
    {
        const char *package = json_string_value(json_object_get(source, "package"));
        if (package && n > 0 && (size_t)n < sizeof stream->label)
            n += snprintf(stream->label + n, sizeof stream->label - (size_t)n, "%s %s",
                          index ? "," : ":", package);
    }
    if (name && n > 0 && (size_t)n < sizeof stream->label)
        n += snprintf(stream->label + n, sizeof stream->label - (size_t)n, "; %s", name);
    if (n > 0 && (size_t)n < sizeof stream->label)
        snprintf(stream->label + n, sizeof stream->label - (size_t)n, ")");
}

/* --- The ids ---------------------------------------------------------------------------------- */

static EngStatus check_ids(const char *path, const EngStream *stream, EngErr *err)
{
    for (int64_t i = 0; i < stream->n_tokens; i++)
        if (stream->ids[i] >= stream->vocab_ids)
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "%s: index %lld: id %u is not below vocab_ids = %lld", path,
                            (long long)i, stream->ids[i], (long long)stream->vocab_ids);
    return ENG_OK;
}

static EngStatus map_ids(const Header *header, EngStream *stream, EngErr *err)
{
    const char *slash = strrchr(header->path, '/');
    int folder = slash ? (int)(slash - header->path) + 1 : 0;
    EngStr path = {0};
    eng_str_printf(&path, "%.*s%s", folder, header->path, header->ids_file);
    EngStatus status = eng_str_status(&path, err);
    if (status) goto out;
    status = eng_file_map(path.text, &stream->mapping, err);
    /* A header without its ids is damage, not an absent stream. */
    if (status == ENG_NOT_FOUND)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: key 'ids_file': %s does not exist", header->path,
                          path.text);
    if (status) goto out;
    if (stream->mapping.bytes != (size_t)stream->n_tokens * sizeof(uint32_t)) {
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: %zu bytes, but n_tokens = %lld in %s needs %lld",
                          path.text, stream->mapping.bytes, (long long)stream->n_tokens,
                          header->path, (long long)stream->n_tokens * 4);
        goto out;
    }
    status = eng_digest(stream->mapping.data, stream->mapping.bytes, stream->digest, err);
    if (status) goto out;
    if (strcmp(stream->digest, header->sha256)) {
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: sha256 is %s, but key 'sha256' in %s says %s",
                          path.text, stream->digest, header->path, header->sha256);
        goto out;
    }
    stream->ids = stream->mapping.data;
    status = check_ids(path.text, stream, err);
out:
    eng_str_free(&path);
    return status;
}

EngStatus eng_stream_open(const char *header_path, EngStream *stream, EngErr *err)
{
    Header header;
    *stream = (EngStream){0};
    EngStatus status = load_header(header_path, &header, err);
    if (!status) status = read_fields(&header, stream, err);
    if (!status) status = read_documents(&header, stream, err);
    if (!status) status = map_ids(&header, stream, err);
    if (!status)
        describe(&header, stream);
    else
        eng_stream_close(stream);
    json_decref(header.root);
    return status;
}

void eng_stream_close(EngStream *stream)
{
    eng_file_unmap(&stream->mapping);
    eng_free(stream->owned_ids);
    eng_free(stream->owned_starts);
    *stream = (EngStream){0};
}

/* --- Streams of a folder ---------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static EngStatus add_name(EngStreamNames *list, const char *name, size_t n, EngErr *err)
{
    size_t old_bytes = (size_t)list->n * sizeof *list->names;
    char **grown = eng_realloc(list->names, old_bytes, old_bytes + sizeof *list->names);
    if (!grown) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for stream names");
    list->names = grown;
    grown[list->n] = eng_alloc(n + 1);
    if (!grown[list->n]) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for stream names");
    memcpy(grown[list->n++], name, n);
    return ENG_OK;
}

EngStatus eng_stream_names(const char *data_dir, EngStreamNames *list, EngErr *err)
{
    *list = (EngStreamNames){0};
    DIR *dir = opendir(data_dir);
    if (!dir && errno == ENOENT) return ENG_OK;
    if (!dir) return ENG_FAIL(err, ENG_IO, "%s: cannot list: %s", data_dir, strerror(errno));
    EngStatus status = ENG_OK;
    EngStr path = {0};
    for (struct dirent *entry; !status && (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n <= 5 || strcmp(entry->d_name + n - 5, ".json")) continue;
        /* tokenizer.json lies in the same folder: a stream is a header with ids beside it. */
        path.n = 0;
        eng_str_printf(&path, "%s/%.*s.ids", data_dir, (int)(n - 5), entry->d_name);
        status = eng_str_status(&path, err);
        if (!status && eng_file_exists(path.text))
            status = add_name(list, entry->d_name, n - 5, err);
    }
    closedir(dir);
    eng_str_free(&path);
    if (status)
        eng_stream_names_free(list);
    else if (list->n)
        qsort(list->names, (size_t)list->n, sizeof *list->names, by_name);
    return status;
}

void eng_stream_names_free(EngStreamNames *list)
{
    for (int i = 0; i < list->n; i++) eng_free(list->names[i]);
    eng_free(list->names);
    *list = (EngStreamNames){0};
}

static EngStatus not_found(const char *data_dir, const char *corpus, EngErr *err)
{
    if (eng_stream_name_fetched(corpus))
        return ENG_FAIL(err, ENG_NOT_FOUND, "%s: no stream '%s'; scripts/fetch_data makes it",
                        data_dir, corpus);
    EngStreamNames list;
    if (eng_stream_names(data_dir, &list, NULL)) list = (EngStreamNames){0};
    const char *nearest = eng_nearest(corpus, (const char *const *)list.names, (size_t)list.n);
    if (!nearest) nearest = eng_nearest(corpus, g_reserved, N_RESERVED);
    EngStatus status =
        ENG_FAIL(err, ENG_NOT_FOUND, "%s: no stream '%s'%s%s%s", data_dir, corpus,
                 nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    eng_stream_names_free(&list);
    return status;
}

EngStatus eng_stream_find(const char *data_dir, const char *corpus, EngStream *stream, EngErr *err)
{
    *stream = (EngStream){0};
    if (!eng_stream_name_valid(corpus))
        return ENG_FAIL(err, ENG_USAGE, "'%s' is not a stream name (letters, digits, . _ -)",
                        corpus);
    EngStr path = {0};
    eng_str_printf(&path, "%s/%s.json", data_dir, corpus);
    EngStatus status = eng_str_status(&path, err);
    if (!status)
        status = eng_file_exists(path.text) ? eng_stream_open(path.text, stream, err)
                                            : not_found(data_dir, corpus, err);
    if (!status && strcmp(stream->corpus, corpus)) {
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: key 'corpus' is '%s', expected '%s'", path.text,
                          stream->corpus, corpus);
        eng_stream_close(stream);
    }
    eng_str_free(&path);
    return status;
}

/* --- Generated streams ------------------------------------------------------------------------ */

/* Index of the first cumulative weight above x. */
static int64_t rank_of(const double *cumulative, int64_t n, double x)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (cumulative[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static EngStatus draw_zipf(uint32_t *ids, int64_t n_tokens, int64_t vocab, uint64_t seed,
                           EngErr *err)
{
    double *cumulative = NULL;
    uint32_t *id_of_rank = NULL;
    EngRng rng;
    EngStatus status = eng_alloc_or((void **)&cumulative, (size_t)vocab, sizeof *cumulative,
                                    "word frequencies", err);
    if (!status)
        status = eng_alloc_or((void **)&id_of_rank, (size_t)vocab, sizeof *id_of_rank, "word ranks",
                              err);
    if (status) goto out;
    /* Only sums of 1/r: no library function whose last bit could differ between machines. */
    double sum = 0;
    for (int64_t r = 0; r < vocab; r++) cumulative[r] = sum += 1.0 / (double)(r + 1);
    eng_rng_seed_at(&rng, seed, 0);
    for (int64_t r = 0; r < vocab; r++) {
        int64_t j = (int64_t)eng_rng_below(&rng, (uint64_t)r + 1);
        id_of_rank[r] = id_of_rank[j];
        id_of_rank[j] = (uint32_t)r;
    }
    eng_rng_seed_at(&rng, seed, 1);
    for (int64_t i = 0; i < n_tokens; i++)
        ids[i] = id_of_rank[rank_of(cumulative, vocab, eng_rng_unit(&rng) * sum)];
out:
    eng_free(cumulative);
    eng_free(id_of_rank);
    return status;
}

static EngStatus cut_documents(EngStream *stream, EngErr *err)
{
    stream->n_documents = (stream->n_tokens + ENG_SYNTHETIC_DOCUMENT - 1) / ENG_SYNTHETIC_DOCUMENT;
    EngStatus status = eng_alloc_or((void **)&stream->owned_starts, (size_t)stream->n_documents,
                                    sizeof(int64_t), "document starts", err);
    if (status) return status;
    for (int64_t i = 0; i < stream->n_documents; i++)
        stream->owned_starts[i] = i * ENG_SYNTHETIC_DOCUMENT;
    stream->document_starts = stream->owned_starts;
    return ENG_OK;
}

EngStatus eng_stream_synthetic(const char *kind, int64_t n_tokens, int64_t vocab, uint64_t seed,
                               EngStream *stream, EngErr *err)
{
    *stream = (EngStream){0};
    if (!is_generated(kind))
        return ENG_FAIL(err, ENG_USAGE, "stream kind '%s' is not synthetic or uniform", kind);
    if (n_tokens < 1 || vocab < 1 || vocab > INT32_MAX)
        return ENG_FAIL(err, ENG_USAGE, "%s stream: %lld tokens over %lld ids cannot be made", kind,
                        (long long)n_tokens, (long long)vocab);
    EngStatus status = eng_alloc_or((void **)&stream->owned_ids, (size_t)n_tokens, sizeof(uint32_t),
                                    "generated token ids", err);
    if (status) return status;
    bool zipf = !strcmp(kind, "synthetic");
    if (zipf) {
        status = draw_zipf(stream->owned_ids, n_tokens, vocab, seed, err);
        if (status) goto out;
    } else {
        EngRng rng;
        eng_rng_seed_at(&rng, seed, 2);
        for (int64_t i = 0; i < n_tokens; i++)
            stream->owned_ids[i] = (uint32_t)eng_rng_below(&rng, (uint64_t)vocab);
    }
    stream->ids = stream->owned_ids;
    stream->n_tokens = n_tokens;
    stream->vocab_ids = vocab;
    status = cut_documents(stream, err);
    if (status) goto out;
    status = eng_digest(stream->ids, (size_t)n_tokens * sizeof(uint32_t), stream->digest, err);
    snprintf(stream->corpus, sizeof stream->corpus, "%s", kind);
    snprintf(stream->kind, sizeof stream->kind, "%s", kind);
    snprintf(stream->label, sizeof stream->label, "%s (%s, seed %llu)", kind,
             zipf ? "Zipf draws, exponent 1" : "random ids", (unsigned long long)seed);
out:
    if (status) eng_stream_close(stream);
    return status;
}
