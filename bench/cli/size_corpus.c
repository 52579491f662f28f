/* Rates that a token stream gives: distinct keys of a step, hits of caches; see size_parts.h. One
 * key stands for the rows that an n-gram has in all heads and layers: they are looked up together,
 * so caches and deduplication see them alike, but for collisions, which the first head stands for.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/cli/size_parts.h"
#include "bench/core/stream.h"
#include "bench/experiments/idset.h"
#include "kernels/address/tokmap.h"
#include "kernels/ref/hash.h"
#include "sim/cache/admission.h"
#include "sim/cache/curve.h"

#define CHUNK     4096
#define STEPS     64 /* that a mean of distinct shares is over */
#define CURVE_MAX ENG_SIZE_MAX_CACHES
#define WAYS      16
#define T_95      2.365 /* Student, 7 degrees of freedom: eighths */

typedef struct Hasher {
    EngAddress address; /* of the first layer */
    int64_t *rows;      /* [CHUNK, n_columns] */
} Hasher;

static void hash_all(const Hasher *h, const int32_t *ids, EngSizeCorpus *corpus)
{
    int reach = h->address.max_order - 1;
    int64_t *key = corpus->keys;
    for (int64_t at = 0; at < corpus->n_tokens; at += CHUNK) {
        int64_t n = corpus->n_tokens - at < CHUNK ? corpus->n_tokens - at : CHUNK;
        int32_t history[ENG_MAX_ORDER];
        for (int i = 0; i < reach; i++) history[i] = at ? ids[at - reach + i] : ENG_TOKEN_DEAD;
        EngHashArgs args = {.tokens = ids + at,
                            .n_tokens = n,
                            .n_live = n,
                            .n_seqs = 1,
                            .history = history,
                            .rows = h->rows};
        eng_ref_hash(&h->address, &args);
        for (int64_t t = 0; t < n; t++)
            for (int o = 0; o < corpus->orders; o++)
                *key++ = h->rows[t * h->address.n_columns + o * h->address.heads];
    }
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

EngStatus eng_size_corpus_open(const char *data, const char *name, const EngPreset *preset,
                               EngSizeCorpus *corpus, EngErr *err)
{
    Hasher hasher = {0};
    EngAddressSpec spec = preset->address;
    EngStream stream = {0};
    int32_t *ids = NULL;
    *corpus = (EngSizeCorpus){0};
    spec.n_layers = 1;
    EngStatus status = eng_stream_find(data, name, &stream, err);
    if (status == ENG_NOT_FOUND) status = err ? err->status = ENG_BAD_DATA : ENG_BAD_DATA;
    if (!status) status = eng_address_build(&spec, &hasher.address, err);
    if (status) goto out;
    snprintf(corpus->name, sizeof corpus->name, "%s", stream.corpus);
    snprintf(corpus->kind, sizeof corpus->kind, "%s", stream.kind);
    snprintf(corpus->digest, sizeof corpus->digest, "%s", stream.digest);
    corpus->n_tokens = stream.n_tokens;
    corpus->orders = hasher.address.max_order - hasher.address.min_order + 1;
    corpus->key_bytes = (double)(eng_row_value_bytes(preset->row_format, preset->row_dims) +
                                 eng_row_scale_bytes(preset->row_format, preset->row_dims)) *
                        hasher.address.heads * preset->address.n_layers;
    status = eng_alloc_or((void **)&ids, (size_t)stream.n_tokens, sizeof *ids, "token ids", err);
    if (!status)
        status = eng_alloc_or((void **)&corpus->keys, (size_t)(stream.n_tokens * corpus->orders),
                              sizeof *corpus->keys, "keys of a stream", err);
    if (!status)
        status = eng_alloc_or((void **)&hasher.rows, (size_t)(CHUNK * hasher.address.n_columns),
                              sizeof *hasher.rows, "rows of tokens", err);
    if (!status) status = compress(data, preset, &stream, ids, err);
    if (!status) status = eng_address_check_ids(&hasher.address, ids, stream.n_tokens, err);
    if (!status) hash_all(&hasher, ids, corpus);
out:
    if (status) eng_size_corpus_close(corpus);
    eng_free(hasher.rows);
    eng_free(ids);
    eng_stream_close(&stream);
    return status;
}

void eng_size_corpus_close(EngSizeCorpus *corpus)
{
    eng_free(corpus->keys);
    *corpus = (EngSizeCorpus){0};
}

EngStatus eng_size_unique(const EngSizeCorpus *corpus, int64_t streams, int64_t each, double *share,
                          EngErr *err)
{
    EngIdSet set = {0};
    EngRng rng;
    double distinct = 0;
    if (streams < 1 || each < 1 || each > corpus->n_tokens)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "corpus %s has %" PRId64 " tokens, a step takes %" PRId64 " in a row",
                        corpus->name, corpus->n_tokens, each);
    EngStatus status = eng_idset_create(&set, streams * each * corpus->orders, err);
    if (status) return status;
    eng_rng_seed(&rng, 1);
    for (int s = 0; s < STEPS; s++) {
        eng_idset_clear(&set);
        for (int64_t i = 0; i < streams; i++) {
            int64_t at = (int64_t)eng_rng_below(&rng, (uint64_t)(corpus->n_tokens - each + 1));
            const int64_t *key = corpus->keys + at * corpus->orders;
            for (int64_t k = 0; k < each * corpus->orders; k++)
                eng_idset_add(&set, (uint64_t)key[k]);
        }
        distinct += (double)set.n;
    }
    *share = distinct / STEPS / (double)(streams * each * corpus->orders);
    eng_idset_destroy(&set);
    return ENG_OK;
}

/* ---- caches ------------------------------------------------------------------------------------
 */

typedef struct Walk {
    const EngSizeCorpus *corpus;
    int64_t streams, length; /* tokens of each part */
} Walk;

/* The i-th key of the parts read side by side. */
static int64_t key_at(const Walk *w, int64_t i)
{
    int64_t orders = w->corpus->orders, token = i / orders;
    int64_t part = token % w->streams, at = token / w->streams;
    return w->corpus->keys[(part * w->length + at) * orders + i % orders];
}

/* Whether the i-th of n is the last of an eighth, whose number goes to *part. */
static bool ends_part(int64_t i, int64_t n, int *part)
{
    *part = (int)((i + 1) * ENG_SIZE_PARTS / n) - 1;
    return (i + 1) * ENG_SIZE_PARTS / n > i * ENG_SIZE_PARTS / n;
}

typedef struct Counts {
    int64_t hits[ENG_SIZE_PARTS][CURVE_MAX]; /* up to the end of each part */
    int64_t distinct;
} Counts;

static EngStatus walk_admission(const Walk *w, int64_t n, const EngSizeCaches *c, Counts *counts,
                                EngErr *err)
{
    EngAdmission admission;
    int part;
    EngStatus status = eng_admission_init(&admission, err);
    for (int64_t i = 0; i < n && !status; i++) {
        status = eng_admission_add(&admission, key_at(w, i), err);
        if (!status && ends_part(i, n, &part))
            eng_admission_hits(&admission, c->capacities, c->n, counts->hits[part]);
    }
    counts->distinct = admission.seen.n;
    eng_admission_fini(&admission);
    return status;
}

static EngStatus walk_curve(const Walk *w, EngCachePolicy policy, int64_t n, const EngSizeCaches *c,
                            Counts *counts, EngErr *err)
{
    EngCurve curve;
    int part;
    EngStatus status = eng_curve_open(&curve, policy, policy == ENG_CACHE_WAYS ? WAYS : 0,
                                      c->capacities, c->n, err);
    if (status) return status;
    for (int64_t i = 0; i < n && !status; i++) {
        int64_t key = key_at(w, i);
        status = eng_curve_add(&curve, &key, 1, err);
        if (!status && ends_part(i, n, &part)) eng_curve_hits(&curve, counts->hits[part]);
    }
    counts->distinct = curve.distinct;
    eng_curve_close(&curve);
    return status;
}

/* Half of the 95 % interval of the mean of the eighths' own rates: how much the rate depends on
 * the text. */
static double band_of(const Counts *counts, int c, double accesses)
{
    double sum = 0, squares = 0;
    for (int p = 0; p < ENG_SIZE_PARTS; p++) {
        int64_t before = p ? counts->hits[p - 1][c] : 0;
        double rate = (double)(counts->hits[p][c] - before) * ENG_SIZE_PARTS / accesses;
        sum += rate;
        squares += rate * rate;
    }
    double variance = (squares - sum * sum / ENG_SIZE_PARTS) / (ENG_SIZE_PARTS - 1);
    return T_95 * sqrt(fmax(0, variance) / ENG_SIZE_PARTS);
}

EngStatus eng_size_hits(const EngSizeCorpus *corpus, const char *policy, int64_t streams,
                        int64_t n_tokens, EngSizeCaches *caches, EngErr *err)
{
    static Counts counts;
    Walk w = {corpus, streams, streams > 0 ? n_tokens / streams : 0};
    int64_t accesses = w.length * streams * corpus->orders;
    if (caches->n > CURVE_MAX || streams < 1 || accesses < ENG_SIZE_PARTS ||
        n_tokens > corpus->n_tokens)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "corpus %s has %" PRId64 " tokens, %" PRId64 " streams need more",
                        corpus->name, corpus->n_tokens, streams);
    EngCachePolicy other = !strcmp(policy, "ways") ? ENG_CACHE_WAYS : ENG_CACHE_LRU;
    EngStatus status = !strcmp(policy, "admission")
                           ? walk_admission(&w, accesses, caches, &counts, err)
                           : walk_curve(&w, other, accesses, caches, &counts, err);
    for (int i = 0; i < caches->n && !status; i++) {
        caches->rates[i] = (double)counts.hits[ENG_SIZE_PARTS - 1][i] / (double)accesses;
        caches->bands[i] = band_of(&counts, i, (double)accesses);
    }
    caches->cold = counts.distinct ? (double)counts.distinct / (double)accesses : NAN;
    return status;
}
