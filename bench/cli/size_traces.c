/* Points that token streams give: hits over capacity, concurrency and length; distinct shares. */
#include <math.h>
#include <string.h>

#include "bench/cli/size_points.h"

#define LONG_TOKENS 1e9  /* of a text that is extrapolated to */
#define FIRST_BYTES 16e6 /* of the smallest cache */
#define LOOK_BYTES  4e9  /* at which concurrency and length are looked at, unless --cache says */

static void name_corpus(EngSizePoints *p, const EngSizeCorpus *c)
{
    eng_size_word(p, "corpus", c->name);
    eng_size_rests(p, "corpus %s (%s, %lld tokens, %.12s), exact counts", c->name, c->kind,
                   (long long)c->n_tokens, c->digest);
}

static EngStatus capacity_points(const EngSizeCorpus *c, EngSizePoints *p, EngErr *err)
{
    static const char *const policies[] = {"lru", "ways", "admission"};
    double cold = NAN;
    for (int k = 0; k < 3; k++) {
        EngSizeCaches caches = {.n = 11};
        for (int i = 0; i < caches.n; i++)
            caches.capacities[i] = (int64_t)(FIRST_BYTES * exp2(i) / c->key_bytes) + 1;
        EngStatus status =
            eng_size_hits(c, policies[k], &(EngSizeStep){1, 1, 1}, c->n_tokens, &caches, err);
        if (status) return status;
        if (!k) cold = caches.cold;
        for (int i = 0; i < caches.n; i++) {
            eng_size_point(p, "hits");
            name_corpus(p, c);
            eng_size_word(p, "policy", policies[k]);
            eng_size_number(p, "cache_bytes", FIRST_BYTES * exp2(i));
            eng_size_value(p, ENG_SIZE_SHARE, caches.rates[i]);
            eng_size_value(p, ENG_SIZE_SHARE_LOW, fmax(0, caches.rates[i] - caches.bands[i]));
            eng_size_value(p, ENG_SIZE_SHARE_HIGH, fmin(1, caches.rates[i] + caches.bands[i]));
            eng_size_value(p, ENG_SIZE_COLD, cold);
        }
    }
    return ENG_OK;
}

static EngStatus one_rate(const EngSizeCorpus *c, const char *what, double bytes, int64_t streams,
                          int64_t tokens, EngSizePoints *p, double *cold, EngErr *err)
{
    EngSizeCaches cache = {.n = 1, .capacities = {(int64_t)(bytes / c->key_bytes) + 1}};
    EngStatus status = eng_size_hits(c, "lru", &(EngSizeStep){streams, 1, 1}, tokens, &cache, err);
    if (status) return status;
    *cold = cache.cold;
    eng_size_point(p, what);
    name_corpus(p, c);
    eng_size_number(p, "streams", (double)streams);
    eng_size_number(p, "stream_tokens", (double)tokens);
    eng_size_number(p, "cache_bytes", bytes);
    eng_size_value(p, ENG_SIZE_SHARE, cache.rates[0]);
    eng_size_value(p, ENG_SIZE_COLD, cache.cold);
    return ENG_OK;
}

/* Distinct n-grams grow as c T^beta (Heaps): both by least squares of logarithms. What was counted
 * are rows of the first heads, which n-grams share; so is what a longer text touches. */
static EngStatus length_points(const EngSizeCorpus *c, double bytes, EngSizePoints *p, EngErr *err)
{
    EngAddress address;
    double sx = 0, sy = 0, sxx = 0, sxy = 0, cold = NAN;
    int n = 0;
    EngStatus status = eng_address_build(&c->preset->address, &address, err);
    double rows = status ? 0 : (double)address.rows[0] / address.n_columns; /* of a head */
    for (int64_t tokens = c->n_tokens >> 5; tokens <= c->n_tokens && !status; tokens *= 2, n++) {
        status = one_rate(c, "length", bytes, 1, tokens, p, &cold, err);
        double x = log((double)tokens), y = log(eng_ngrams_behind(rows, cold * (double)tokens));
        if (!isfinite(y)) break; /* all rows were touched: nothing tells by how many */
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    if (status || n < 2) return status;
    double beta = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    double ngrams = exp((sy - beta * sx) / n + beta * log(LONG_TOKENS));
    eng_size_point(p, "heaps");
    name_corpus(p, c);
    eng_size_value(p, ENG_SIZE_VALUE, beta);
    eng_size_value(p, ENG_SIZE_SHARE, eng_rows_touched(rows, ngrams) / rows);
    return ENG_OK;
}

static EngStatus unique_points(const EngSizeCorpus *c, EngSizePoints *p, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int64_t tokens = 16; tokens <= 16384 && !status; tokens *= 4)
        for (int decode = 0; decode < 2 && !status; decode++) {
            const EngSizeStep step = {decode ? tokens : 1, decode ? 1 : tokens, 1};
            double share = 0;
            if (tokens > c->n_tokens) break;
            status = eng_size_unique(c, &step, &share, err);
            eng_size_point(p, "unique");
            name_corpus(p, c);
            eng_size_word(p, "batch", decode ? "a token of each stream" : "tokens in a row");
            eng_size_number(p, "tokens", (double)tokens);
            eng_size_value(p, ENG_SIZE_SHARE, share);
        }
    return status;
}

EngStatus eng_size_trace_points(const EngSize *s, EngSizePoints *p, EngErr *err)
{
    EngStatus status = ENG_OK;
    double bytes = s->cache_bytes ? s->cache_bytes : LOOK_BYTES, cold;
    for (int i = 0; i < s->n_corpora && !status; i++) {
        const EngSizeCorpus *c = &s->corpora[i];
        if (c->n_tokens < 4096) continue;
        status = capacity_points(c, p, err);
        for (int64_t streams = 1; streams <= 1024 && !status; streams *= 4)
            status = one_rate(c, "streams", bytes, streams, c->n_tokens, p, &cold, err);
        if (!status) status = length_points(c, bytes, p, err);
        if (!status) status = unique_points(c, p, err);
    }
    return status;
}
