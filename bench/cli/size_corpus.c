/* Token streams as keys of rows; see size_parts.h. One key stands for the rows that an n-gram has
 * in all heads and layers: they are looked up together, so caches and deduplication see them alike,
 * but for collisions, which the first head stands for. Keys are made when something must be
 * counted, which kept counts (size_counts.c) may spare. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/cli/size_reuse.h"
#include "bench/core/stream.h"
#include "bench/experiments/drafts.h"
#include "kernels/address/tokmap.h"
#include "kernels/ref/hash.h"

#define CHUNK 4096

struct EngSizeKeys {
    EngAddress address; /* of the first layer */
    int32_t *ids;       /* [n_tokens] compressed */
    int64_t *keys;      /* [n_tokens, orders] */
    int64_t *rows;      /* [CHUNK, n_columns] of a piece that is being hashed */
    int64_t n_tokens;
    int orders;
};

/* Keys of n <= CHUNK ids that follow the first `at` of the text. */
static void hash_piece(EngSizeKeys *k, const int32_t *ids, int64_t n, int64_t at, int64_t *key)
{
    int reach = k->address.max_order - 1;
    int32_t history[ENG_MAX_ORDER];
    for (int i = 0; i < reach; i++)
        history[i] = at - reach + i >= 0 ? k->ids[at - reach + i] : ENG_TOKEN_DEAD;
    EngHashArgs args = {.tokens = ids,
                        .n_tokens = n,
                        .n_live = n,
                        .n_seqs = 1,
                        .history = history,
                        .rows = k->rows};
    eng_ref_hash(&k->address, &args);
    for (int64_t t = 0; t < n; t++)
        for (int o = 0; o < k->orders; o++)
            *key++ = k->rows[t * k->address.n_columns + o * k->address.heads];
}

static EngStatus compress(const char *data, const EngPreset *preset, const EngStream *stream,
                          int32_t *ids, EngErr *err)
{
    EngTokmap map = {0};
    EngStr path = {0};
    eng_str_printf(&path, "%s/tokenizer.json", data);
    EngStatus status = eng_str_status(&path, err);
    if (!status && preset->tokmap_digest[0]) {
        status = eng_tokmap_load_checked(path.text, preset->tokmap_digest, preset->shared_ids,
                                         preset->vocab_ids, &map, err);
        if (status == ENG_NOT_FOUND)
            status = ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file (scripts/fetch_data gets it)",
                              path.text);
        if (!status) status = eng_tokmap_apply(&map, stream->ids, stream->n_tokens, ids, err);
    } else if (!status)
        for (int64_t i = 0; i < stream->n_tokens; i++) ids[i] = (int32_t)stream->ids[i];
    eng_tokmap_free(&map);
    eng_str_free(&path);
    return status;
}

static EngStatus open_stream(const EngSizeCorpus *corpus, const char *name, EngStream *stream,
                             EngErr *err)
{
    EngStatus status = eng_stream_find(corpus->data, name, stream, err);
    if (status == ENG_NOT_FOUND) status = err ? err->status = ENG_BAD_DATA : ENG_BAD_DATA;
    return status;
}

EngStatus eng_size_corpus_open(const char *data, const char *name, const EngPreset *preset,
                               EngSizeCorpus *corpus, EngErr *err)
{
    EngStream stream = {0};
    *corpus = (EngSizeCorpus){.preset = preset, .data = data};
    EngStatus status = open_stream(corpus, name, &stream, err);
    if (status) return status;
    snprintf(corpus->name, sizeof corpus->name, "%s", stream.corpus);
    snprintf(corpus->kind, sizeof corpus->kind, "%s", stream.kind);
    snprintf(corpus->digest, sizeof corpus->digest, "%s", stream.digest);
    corpus->n_tokens = stream.n_tokens;
    corpus->orders = preset->address.max_order - preset->address.min_order + 1;
    corpus->key_bytes = (double)(eng_row_value_bytes(preset->row_format, preset->row_dims) +
                                 eng_row_scale_bytes(preset->row_format, preset->row_dims)) *
                        preset->address.heads * preset->address.n_layers;
    eng_stream_close(&stream);
    status = eng_alloc_or((void **)&corpus->hashed, 1, sizeof *corpus->hashed, "keys", err);
    if (!status) status = eng_size_counts_open(corpus, &corpus->counts, err);
    if (status) eng_size_corpus_close(corpus);
    return status;
}

static EngStatus make_keys(const EngSizeCorpus *corpus, EngSizeKeys *k, EngErr *err)
{
    EngAddressSpec spec = corpus->preset->address;
    EngStream stream = {0};
    spec.n_layers = 1;
    EngStatus status = open_stream(corpus, corpus->name, &stream, err);
    if (!status) status = eng_address_build(&spec, &k->address, err);
    size_t n = (size_t)stream.n_tokens;
    k->n_tokens = stream.n_tokens;
    k->orders = corpus->orders;
    if (!status) status = eng_alloc_or((void **)&k->ids, n, sizeof *k->ids, "token ids", err);
    if (!status)
        status = eng_alloc_or((void **)&k->keys, n * (size_t)k->orders, sizeof *k->keys,
                              "keys of a stream", err);
    if (!status)
        status = eng_alloc_or((void **)&k->rows, (size_t)(CHUNK * k->address.n_columns),
                              sizeof *k->rows, "rows of tokens", err);
    if (!status) status = compress(corpus->data, corpus->preset, &stream, k->ids, err);
    if (!status) status = eng_address_check_ids(&k->address, k->ids, k->n_tokens, err);
    for (int64_t at = 0; at < k->n_tokens && !status; at += CHUNK)
        hash_piece(k, k->ids + at, k->n_tokens - at < CHUNK ? k->n_tokens - at : CHUNK, at,
                   k->keys + at * k->orders);
    eng_stream_close(&stream);
    return status;
}

EngStatus eng_size_keys(const EngSizeCorpus *corpus, EngErr *err)
{
    int64_t from = eng_now_ns();
    if (corpus->hashed->keys) return ENG_OK;
    EngStatus status = make_keys(corpus, corpus->hashed, err);
    if (!status)
        status = eng_size_counts_add(corpus->counts, ENG_SIZE_COUNTS_KEYS, NULL, 0,
                                     (double)(eng_now_ns() - from) * 1e-9, err);
    return status;
}

const int64_t *eng_size_keys_at(const EngSizeCorpus *corpus, int64_t token)
{
    return corpus->hashed->keys + token * corpus->orders;
}

void eng_size_window_keys(const EngSizeCorpus *corpus, int64_t at, int64_t each, int64_t gained,
                          int64_t *keys)
{
    EngSizeKeys *k = corpus->hashed;
    int32_t drafts[ENG_SIZE_MAX_DRAFTED + 1];
    memcpy(keys, k->keys + at * k->orders, (size_t)(gained * k->orders) * sizeof *keys);
    if (gained == each) return;
    for (int64_t j = gained; j < each; j++)
        drafts[j - gained] = eng_drafts_rejected(k->ids, k->n_tokens, at + j);
    hash_piece(k, drafts, each - gained, at + gained, keys + gained * k->orders);
}

void eng_size_corpus_close(EngSizeCorpus *corpus)
{
    if (corpus->hashed) {
        eng_free(corpus->hashed->rows);
        eng_free(corpus->hashed->keys);
        eng_free(corpus->hashed->ids);
    }
    eng_free(corpus->hashed);
    eng_size_counts_close(corpus->counts);
    *corpus = (EngSizeCorpus){0};
}
