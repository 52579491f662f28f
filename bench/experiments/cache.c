/* cache: what share of the rows that a text looks up does a cache of so many rows hold?
 *
 * The stream is walked once, token by token and column by column, through the very index that the
 * cached store uses, so the rates are those of that store. Overall rates count all look-ups;
 * conditional ones those that a cache in front has left over: they fall as the front grows, though
 * the system gets better, so neither says much without the other.
 */
#include "bench/experiments/experiments.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/core/resources.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/idset.h"
#include "bench/experiments/reuse_count.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "kernels/ref/hash.h"
#include "kernels/store/cache_index.h"

#define EST_NS_PER_LOOKUP 60.0
#define CHUNK_TOKENS      4096 /* hashed at a time */
#define NODE_BYTES        40   /* of a cached row, in the larger indexes */
#define SET_BYTES         24   /* of a distinct row, while they are counted */

static const char *const g_words_policy[] = {"lru", "sieve", "direct", "ways", NULL};

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,
    ENG_AXIS_CORPUS_DEF,
    {"stream_tokens", ENG_AXIS_INT, "524288", "tokens", 2, 0x1p31, NULL,
     "tokens of the stream walked, or all when it has fewer"},
    {"policy", ENG_AXIS_WORD, "lru", "", 0, 0, g_words_policy, "which row goes"},
    {"cache_rows", ENG_AXIS_INT, "65536", "rows", 1, 0x1p31, NULL,
     "capacity; more than the table has means all of it"},
    {"ways", ENG_AXIS_INT, "8", "", 2, 16, NULL, "policy ways: places per row"},
    {"front_rows", ENG_AXIS_INT, "0", "rows", 0, 0x1p31, NULL,
     "a smaller cache of the same policy that is asked first; 0: none"},
};

static const EngMetricDef g_metrics[] = {
    {"hit_rate", "share", +1, "none", "look-ups that a cache answered, the front's included"},
    {"hit_2", "share", +1, "none", "the same for the 2-gram columns"},
    {"hit_3", "share", +1, "none", "the same for the 3-gram columns"},
    {"hit_4", "share", +1, "none", "the same for the 4-gram columns"},
    {"hit_5", "share", +1, "none", "the same for the 5-gram columns"},
    {"hit_warm", "share", +1, "none", "overall rate of the second half of the stream"},
    {"hit_front", "share", 0, "none", "look-ups that the front answered"},
    {"hit_conditional", "share", 0, "none",
     "of the look-ups that the front left over, those answered behind it"},
    {"cold_misses", "share", 0, "none",
     "look-ups of rows not asked for before: no cache hits them"},
    {"evicted", "share", 0, "none", "rows given up, per look-up"},
    {"lookups", "rows", 0, "none", "look-ups walked"},
    {"capacity_rows", "rows", 0, "none", "rows that the cache holds at most"},
    {"capacity_bytes", "B", 0, "none", "bytes of these rows, scales included, without the index"},
    {"table_share", "share", 0, "none", "capacity over the rows of the table"},
};

typedef struct Counts {
    int64_t lookups[ENG_MAX_ORDER + 1], hits[ENG_MAX_ORDER + 1]; /* by order; front included */
    int64_t all, all_hits, late, late_hits;                      /* late: second half */
} Counts;

typedef struct State {
    EngShape shape;
    EngCacheOptions options, front_options;
    const int32_t *stream;
    int64_t tokens;
    EngCacheIndex cache, front;
    EngIdSet seen;
    int64_t *rows; /* [CHUNK_TOKENS, columns] */
    Counts counts;
} State;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static EngStatus read_options(const EngPoint *point, const EngShape *shape, EngCacheOptions *cache,
                              EngCacheOptions *front, EngErr *err)
{
    int ways = (int)eng_point_int(point, "ways");
    int64_t table = shape->address.rows[0];
    *cache = (EngCacheOptions){
        .policy = (EngCachePolicy)eng_cache_policy_parse(eng_point_word(point, "policy")),
        .rows = least(eng_point_int(point, "cache_rows"), table),
        .ways = ways};
    *front = *cache;
    front->rows = eng_point_int(point, "front_rows");
    if (ways & (ways - 1))
        return ENG_FAIL(err, ENG_UNSUPPORTED, "ways: %d, 2, 4, 8 or 16 are possible", ways);
    if (cache->policy != ENG_CACHE_WAYS && ways != 8)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "policy %s has no ways",
                        eng_point_word(point, "policy"));
    if (front->rows >= cache->rows)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "front_rows: %" PRId64 " is not less than the %" PRId64 " behind it",
                        front->rows, cache->rows);
    return ENG_OK;
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    EngCacheOptions cache, front;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    return status ? status : read_options(point, &shape, &cache, &front, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngCacheOptions cache, front;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (!status) status = read_options(point, &shape, &cache, &front, err);
    if (status) return status;
    int64_t lookups = eng_point_int(point, "stream_tokens") * shape.columns;
    *need = (EngNeed){.corpus = eng_point_word(point, "corpus"),
                      .preset = eng_point_word(point, "preset"),
                      .max_tokens = 2,
                      .private_bytes = (size_t)(cache.rows + front.rows) * NODE_BYTES +
                                       (size_t)least(lookups, shape.address.rows[0]) * SET_BYTES};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    return EST_NS_PER_LOOKUP * (double)eng_point_int(point, "stream_tokens") * shape.columns;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_cache_index_fini(&state->cache);
    eng_cache_index_fini(&state->front);
    eng_idset_destroy(&state->seen);
    eng_free(state->rows);
    eng_free(state);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngTokens tokens = {0};
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "cache", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    status = eng_shape_resolve(point, shape, err);
    if (!status) status = read_options(point, shape, &state->options, &state->front_options, err);
    if (!status)
        status = eng_resources_tokens(bench->resources, shape->preset.name,
                                      eng_point_word(point, "corpus"), &tokens, err);
    state->stream = tokens.compressed;
    state->tokens = status ? 0 : least(eng_point_int(point, "stream_tokens"), tokens.n_tokens);
    if (!status && state->tokens < 2)
        status = ENG_FAIL(err, ENG_UNSUPPORTED, "corpus %s has %" PRId64 " tokens", tokens.corpus,
                          tokens.n_tokens);
    if (!status)
        status = eng_cache_index_init(&state->cache, &state->options, shape->address.rows[0], err);
    if (!status && state->front_options.rows)
        status =
            eng_cache_index_init(&state->front, &state->front_options, shape->address.rows[0], err);
    if (!status)
        status = eng_idset_create(
            &state->seen, least(state->tokens * shape->columns, shape->address.rows[0]), err);
    if (!status)
        status = eng_alloc_or((void **)&state->rows, CHUNK_TOKENS,
                              (size_t)shape->columns * sizeof *state->rows, "rows", err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

/* ---- the walk ----------------------------------------------------------------------------------
 */

/* Rows of n tokens from `at`, with the stream's own history. */
static void hash_chunk(State *state, int64_t at, int64_t n)
{
    const EngAddress *address = &state->shape.address;
    int32_t history[ENG_MAX_ORDER];
    int reach = address->max_order - 1;
    for (int i = 0; i < reach; i++) {
        int64_t from = at - reach + i;
        history[i] = from < 0 ? ENG_TOKEN_DEAD : state->stream[from];
    }
    EngHashArgs args = {.tokens = state->stream + at,
                        .n_tokens = n,
                        .n_live = n,
                        .n_seqs = 1,
                        .history = history,
                        .rows = state->rows};
    eng_ref_hash(address, &args);
}

static bool look_up(State *state, int64_t row)
{
    bool hit = false;
    if (state->front_options.rows) eng_cache_index_access(&state->front, row, &hit);
    if (!hit) eng_cache_index_access(&state->cache, row, &hit);
    return hit;
}

static void walk_chunk(State *state, int64_t at, int64_t n)
{
    const EngAddress *address = &state->shape.address;
    Counts *c = &state->counts;
    hash_chunk(state, at, n);
    for (int64_t t = 0; t < n; t++)
        for (int column = 0; column < address->n_columns; column++) {
            int64_t row = state->rows[t * address->n_columns + column];
            int order = address->min_order + column / address->heads;
            bool hit = look_up(state, row);
            eng_idset_add(&state->seen, (uint64_t)row);
            c->lookups[order]++;
            c->hits[order] += hit;
            c->all++;
            c->all_hits += hit;
            if (2 * (at + t) < state->tokens) continue;
            c->late++;
            c->late_hits += hit;
        }
}

static void start_over(EngCacheIndex *index)
{
    if (!index->capacity) return;
    eng_cache_index_clear(index);
    index->hits = index->misses = index->evictions = 0;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    (void)err;
    start_over(&state->cache);
    start_over(&state->front);
    eng_idset_clear(&state->seen);
    memset(&state->counts, 0, sizeof state->counts);
    for (int64_t at = 0; at < state->tokens; at += CHUNK_TOKENS)
        walk_chunk(state, at, least(CHUNK_TOKENS, state->tokens - at));
    return ENG_OK;
}

/* What must hold of any cache, and what is known exactly: with room for every row, a cache that may
 * hold any row anywhere misses each row once. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngStatus status = run(state, err);
    if (status) return status;
    const Counts *c = &state->counts;
    const EngCacheIndex *cache = &state->cache;
    int64_t distinct = state->seen.n, misses = c->all - c->all_hits, held;
    bool lists = state->options.policy == ENG_CACHE_LRU || state->options.policy == ENG_CACHE_SIEVE;
    held = cache->misses - cache->evictions;
    sum.n_failed += c->all != state->tokens * state->shape.columns;
    sum.n_failed += cache->hits + cache->misses + state->front.hits != c->all;
    sum.n_failed += misses != cache->misses;
    sum.n_failed += misses < distinct;
    sum.n_failed += held > cache->capacity || held > distinct;
    if (lists && cache->capacity >= distinct) sum.n_failed += misses != distinct;
    if (lists) sum.n_failed += held != least(cache->capacity, distinct);
    sum.n_checked = sum.n_outputs = 7;
    eng_residual_of_check(&sum, "exact", residual);
    return ENG_OK;
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const Counts *c = &state->counts;
    (void)timing;
    values[0] = share(c->all_hits, c->all);
    for (int order = ENG_REUSE_FIRST_ORDER; order <= ENG_REUSE_LAST_ORDER; order++)
        values[1 + order - ENG_REUSE_FIRST_ORDER] = share(c->hits[order], c->lookups[order]);
    values[5] = share(c->late_hits, c->late);
    values[6] = state->front_options.rows ? share(state->front.hits, c->all) : NAN;
    values[7] = share(state->cache.hits, state->cache.hits + state->cache.misses);
    values[8] = share(state->seen.n, c->all);
    values[9] = share(state->cache.evictions, c->all);
    values[10] = (double)c->all;
    values[11] = (double)state->cache.capacity;
    values[12] = (double)state->cache.capacity * (double)state->shape.row_bytes;
    values[13] = (double)state->cache.capacity / (double)state->shape.address.rows[0];
}

const EngExperiment eng_experiment_cache = {
    .name = "cache",
    .question = "What share of a text's look-ups does a cache of so many rows answer?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
    .counted = true,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
