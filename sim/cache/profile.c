/* Profiles of token streams; see profile.h. */
#include "sim/cache/profile.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sim/cache/aet.h"
#include "sim/cache/row_ids.h"
#include "sim/cache/shards.h"
#include "sim/cache/stack.h"

#define FORMAT       "engram-profile-1"
#define SHARDS_RATE  0.01
#define FIRST_SIZE   64
#define FIRST_BATCH  16
#define MOST_BATCH   16384
#define MOST_DRAWS   64        /* batches counted of each size */
#define MOST_COUNTED (1 << 20) /* tokens counted of each size, at least 4 batches */
#define DECODE_SEED  0x70726f66u
#define DEAD_TOKEN   (-1) /* before the stream's start */

/* ---- building ----------------------------------------------------------------------------------
 */

typedef struct Builder {
    EngProfile *profile;
    const int32_t *tokens;
    int orders;
    EngRowIds ids;
    uint32_t *keys; /* [tokens, orders] dense numbers of the n-grams */
    EngStack stack;
    EngShards shards;
    EngAet aet;
    uint32_t *stamps; /* [distinct] batch that a key was last seen in */
    uint32_t stamp;
} Builder;

/* 63 bits of an n-gram: two of a stream of 10^7 keys share one with a probability of 10^-5. */
static int64_t key_of(const int32_t *tokens, int64_t at, int order)
{
    uint64_t x = (uint64_t)order;
    for (int i = order - 1; i >= 0; i--) {
        int32_t token = at < i ? DEAD_TOKEN : tokens[at - i];
        x = (x ^ (uint64_t)(uint32_t)token) * 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
        x ^= x >> 32;
    }
    return (int64_t)(x >> 1);
}

static EngStatus add_key(Builder *b, int64_t at, int order, EngErr *err)
{
    EngProfile *p = b->profile;
    int o = order - p->min_order;
    int64_t key = key_of(b->tokens, at, order);
    uint32_t before = b->ids.n, *id = &b->keys[at * b->orders + o];
    EngStatus status = eng_row_ids_of(&b->ids, key, id, err);
    if (status) return status;
    p->distinct[o] += b->ids.n - before;
    status = eng_stack_add(&b->stack, *id, NULL, err);
    if (!status) status = eng_shards_add(&b->shards, key, err);
    return status ? status : eng_aet_add(&b->aet, *id, err);
}

/* Doubling from FIRST_SIZE to the first size that holds every key. */
static EngStatus take_rates(Builder *b, EngErr *err)
{
    EngProfile *p = b->profile;
    int64_t hits[ENG_PROFILE_SIZES];
    for (int64_t size = FIRST_SIZE; p->n_sizes < ENG_PROFILE_SIZES; size *= 2) {
        p->sizes[p->n_sizes++] = size;
        if (size >= b->ids.n) break;
    }
    eng_stack_hits(&b->stack, p->sizes, p->n_sizes, hits);
    for (int i = 0; i < p->n_sizes; i++) p->hits[i] = (double)hits[i] / (double)p->accesses;
    eng_aet_rates(&b->aet, p->sizes, p->n_sizes, p->modelled);
    EngStatus status = eng_shards_rates(&b->shards, p->sizes, p->n_sizes, p->sampled, NULL);
    if (status == ENG_UNSUPPORTED) { /* so few keys that none is among the sample */
        for (int i = 0; i < p->n_sizes; i++) p->sampled[i] = NAN;
        return ENG_OK;
    }
    return status ? ENG_FAIL(err, status, "rates of a profile's sample") : ENG_OK;
}

static int64_t count_token(Builder *b, int64_t at)
{
    int64_t distinct = 0;
    for (int o = 0; o < b->orders; o++) {
        uint32_t *stamp = &b->stamps[b->keys[at * b->orders + o]];
        distinct += *stamp != b->stamp;
        *stamp = b->stamp;
    }
    return distinct;
}

static void count_batches(Builder *b, int64_t tokens, double *prefill, double *decode)
{
    int64_t all = b->profile->tokens, whole = all / tokens, draws = MOST_COUNTED / tokens;
    int64_t together = 0, apart = 0;
    EngRng rng;
    eng_rng_seed(&rng, DECODE_SEED);
    if (draws > MOST_DRAWS) draws = MOST_DRAWS;
    if (draws > whole) draws = whole;
    for (int64_t d = 0; d < draws; d++) {
        int64_t from = (whole - 1) * d / (draws > 1 ? draws - 1 : 1) * tokens;
        b->stamp++;
        for (int64_t t = 0; t < tokens; t++) together += count_token(b, from + t);
        b->stamp++;
        for (int64_t t = 0; t < tokens; t++)
            apart += count_token(b, (int64_t)eng_rng_below(&rng, (uint64_t)all));
    }
    double looked_up = (double)(draws * tokens * b->orders);
    *prefill = (double)together / looked_up;
    *decode = (double)apart / looked_up;
}

static EngStatus take_batches(Builder *b, EngErr *err)
{
    EngProfile *p = b->profile;
    EngStatus status =
        eng_alloc_or((void **)&b->stamps, b->ids.n, sizeof *b->stamps, "stamps of a profile", err);
    for (int64_t n = 1; !status && n <= MOST_BATCH && n <= p->tokens;
         n *= n == 1 ? FIRST_BATCH : 4) {
        int i = p->n_batches++;
        p->batches[i] = n;
        count_batches(b, n, &p->prefill[i], &p->decode[i]);
    }
    return status;
}

static void clean_up(Builder *b)
{
    eng_free(b->stamps);
    eng_free(b->keys);
    eng_aet_fini(&b->aet);
    eng_shards_fini(&b->shards);
    eng_stack_fini(&b->stack);
    eng_row_ids_fini(&b->ids);
}

EngStatus eng_profile_build(const char *corpus, const char *digest, const int32_t *ids, int64_t n,
                            int min_order, int max_order, EngProfile *profile, EngErr *err)
{
    Builder b = {.profile = profile, .tokens = ids, .orders = max_order - min_order + 1};
    *profile = (EngProfile){.min_order = min_order, .max_order = max_order, .tokens = n};
    if (min_order < 1 || max_order < min_order || max_order > ENG_PROFILE_ORDERS || n < 1)
        return ENG_FAIL(err, ENG_USAGE, "profile of %s: %lld tokens, orders %d to %d", corpus,
                        (long long)n, min_order, max_order);
    snprintf(profile->corpus, sizeof profile->corpus, "%s", corpus);
    snprintf(profile->digest, sizeof profile->digest, "%s", digest);
    profile->accesses = n * b.orders;
    EngStatus status = eng_alloc_or((void **)&b.keys, (size_t)profile->accesses, sizeof *b.keys,
                                    "keys of a profile", err);
    if (!status) status = eng_row_ids_init(&b.ids, err);
    if (!status) status = eng_stack_init(&b.stack, err);
    if (!status) status = eng_shards_init(&b.shards, SHARDS_RATE, err);
    if (!status) status = eng_aet_init(&b.aet, err);
    for (int64_t t = 0; t < n && !status; t++)
        for (int order = min_order; order <= max_order && !status; order++)
            status = add_key(&b, t, order, err);
    if (!status) status = take_rates(&b, err);
    if (!status) status = take_batches(&b, err);
    clean_up(&b);
    return status;
}

/* ---- text --------------------------------------------------------------------------------------
 */

static json_t *int_array(const int64_t *values, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(array, json_integer(values[i]));
    return array;
}

static json_t *real_array(const double *values, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(array, isnan(values[i]) ? json_null() : json_real(values[i]));
    return array;
}

EngStatus eng_profile_print(const EngProfile *p, EngStr *out, EngErr *err)
{
    int orders = p->max_order - p->min_order + 1;
    json_t *root = json_pack(
        "{ss, ss, ss, si, si, sI, so, so, so, so, so, so, so, so}", "format", FORMAT, "corpus",
        p->corpus, "digest", p->digest, "min_order", p->min_order, "max_order", p->max_order,
        "tokens", (json_int_t)p->tokens, "distinct", int_array(p->distinct, orders), "sizes",
        int_array(p->sizes, p->n_sizes), "hits", real_array(p->hits, p->n_sizes), "sampled",
        real_array(p->sampled, p->n_sizes), "modelled", real_array(p->modelled, p->n_sizes),
        "batches", int_array(p->batches, p->n_batches), "prefill",
        real_array(p->prefill, p->n_batches), "decode", real_array(p->decode, p->n_batches));
    char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (text) eng_str_printf(out, "%s\n", text);
    free(text);
    json_decref(root);
    if (!text) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a profile");
    return eng_str_status(out, err);
}

typedef struct Reader {
    const char *name;
    const json_t *root;
    EngErr *err;
} Reader;

/* Numbers of an array of that key: [most] at most, as many as *n when that is not 0. Both outputs
 * may be NULL. */
static EngStatus read_array(const Reader *r, const char *key, int most, int *n, int64_t *ints,
                            double *reals)
{
    const json_t *array = json_object_get(r->root, key);
    size_t size = json_array_size(array);
    if (!size || size > (size_t)most || (*n && size != (size_t)*n))
        return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: %s: %zu numbers", r->name, key, size);
    *n = (int)size;
    for (size_t i = 0; i < size; i++) {
        const json_t *value = json_array_get(array, i);
        double number = json_number_value(value);
        bool fine = ints ? json_is_integer(value) && number >= 0
                         : json_is_number(value) && number >= 0 && number <= 1;
        if (json_is_null(value) && !strcmp(key, "sampled")) {
            fine = true;
            number = NAN;
        }
        if (!fine) return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: %s[%zu]", r->name, key, i);
        if (ints) ints[i] = json_integer_value(value);
        if (reals) reals[i] = number;
    }
    return ENG_OK;
}

static EngStatus check_ascends(const Reader *r, const char *key, const int64_t *values, int n)
{
    for (int i = 0; i < n; i++)
        if (values[i] <= (i ? values[i - 1] : 0))
            return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: %s do not ascend", r->name, key);
    return ENG_OK;
}

static EngStatus read_head(const Reader *r, EngProfile *p)
{
    const char *format = json_string_value(json_object_get(r->root, "format"));
    const char *corpus = json_string_value(json_object_get(r->root, "corpus"));
    const char *digest = json_string_value(json_object_get(r->root, "digest"));
    if (!format || strcmp(format, FORMAT))
        return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: is not a profile (" FORMAT ")", r->name);
    if (!corpus || !digest || strlen(digest) >= sizeof p->digest)
        return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: has no corpus or no digest", r->name);
    snprintf(p->corpus, sizeof p->corpus, "%s", corpus);
    snprintf(p->digest, sizeof p->digest, "%s", digest);
    p->min_order = (int)json_integer_value(json_object_get(r->root, "min_order"));
    p->max_order = (int)json_integer_value(json_object_get(r->root, "max_order"));
    p->tokens = json_integer_value(json_object_get(r->root, "tokens"));
    if (p->min_order < 1 || p->max_order < p->min_order || p->max_order > ENG_PROFILE_ORDERS ||
        p->tokens < 1)
        return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: orders or tokens are missing", r->name);
    p->accesses = p->tokens * (p->max_order - p->min_order + 1);
    return ENG_OK;
}

EngStatus eng_profile_parse(const char *name, const char *text, EngProfile *p, EngErr *err)
{
    json_error_t where;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    Reader r = {name, root, err};
    *p = (EngProfile){0};
    if (!root) return ENG_FAIL(err, ENG_BAD_DATA, "%s: line %d: %s", name, where.line, where.text);
    EngStatus status = read_head(&r, p);
    int orders = p->max_order - p->min_order + 1;
    if (!status) status = read_array(&r, "distinct", orders, &orders, p->distinct, NULL);
    if (!status) status = read_array(&r, "sizes", ENG_PROFILE_SIZES, &p->n_sizes, p->sizes, NULL);
    if (!status) status = check_ascends(&r, "sizes", p->sizes, p->n_sizes);
    if (!status) status = read_array(&r, "hits", ENG_PROFILE_SIZES, &p->n_sizes, NULL, p->hits);
    if (!status)
        status = read_array(&r, "sampled", ENG_PROFILE_SIZES, &p->n_sizes, NULL, p->sampled);
    if (!status)
        status = read_array(&r, "modelled", ENG_PROFILE_SIZES, &p->n_sizes, NULL, p->modelled);
    if (!status)
        status = read_array(&r, "batches", ENG_PROFILE_BATCHES, &p->n_batches, p->batches, NULL);
    if (!status) status = check_ascends(&r, "batches", p->batches, p->n_batches);
    if (!status)
        status = read_array(&r, "prefill", ENG_PROFILE_BATCHES, &p->n_batches, NULL, p->prefill);
    if (!status)
        status = read_array(&r, "decode", ENG_PROFILE_BATCHES, &p->n_batches, NULL, p->decode);
    json_decref(root);
    return status;
}

/* ---- asking ------------------------------------------------------------------------------------
 */

/* Between neighbours, straight over the logarithm; x lies in [at[0], at[n - 1]]. */
static double between(const int64_t *at, const double *values, int n, double x)
{
    int i = 0;
    while (i + 2 < n && (double)at[i + 1] < x) i++;
    if (n == 1) return values[0];
    double low = log((double)at[i]), high = log((double)at[i + 1]);
    return values[i] + (values[i + 1] - values[i]) * (log(x) - low) / (high - low);
}

EngStatus eng_profile_hits(const EngProfile *p, double keys, double *rate, bool *known, EngErr *err)
{
    int last = p->n_sizes - 1;
    if (!(keys >= 0)) return ENG_FAIL(err, ENG_USAGE, "hits of a cache of %g keys", keys);
    *known = keys < (double)p->sizes[last];
    if (!*known)
        *rate = p->hits[last];
    else if (keys < (double)p->sizes[0])
        *rate = p->hits[0] * keys / (double)p->sizes[0];
    else
        *rate = between(p->sizes, p->hits, p->n_sizes, keys);
    return ENG_OK;
}

EngStatus eng_profile_unique(const EngProfile *p, bool decode, double tokens, double *share,
                             EngErr *err)
{
    int64_t most = p->batches[p->n_batches - 1];
    if (!(tokens >= 1) || tokens > (double)most)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "distinct rows of a batch of %g tokens: batches of 1 to %lld are counted "
                        "of %s",
                        tokens, (long long)most, p->corpus);
    *share = between(p->batches, decode ? p->decode : p->prefill, p->n_batches, tokens);
    return ENG_OK;
}

double eng_profile_keys(const EngProfile *p, double cached, double rows, int heads)
{
    double orders = p->max_order - p->min_order + 1, share = cached / (rows * heads * orders);
    return share < 1 ? -rows * orders * log1p(-share) : INFINITY;
}
