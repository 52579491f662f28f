/* Counts by the models of sim/cache; see simulate_counts.h. */
#include "bench/experiments/simulate_counts.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "bench/experiments/reuse_count.h"
#include "bench/experiments/shape.h"
#include "kernels/ref/hash.h"
#include "sim/cache/aet.h"
#include "sim/cache/curve.h"
#include "sim/cache/shards.h"

#define CHUNK_TOKENS 1024
#define LONG_STREAM  10000000 /* look-ups from which on a hundredth is sample enough */
#define MOST_CACHES  32
#define MOST_COUNTED (1 << 18) /* tokens that `reuse` counts */

static EngStatus open_stream(const EngResources *resources, const EngPoint *point, EngShape *shape,
                             EngTokens *tokens, EngErr *err)
{
    EngStatus status = eng_shape_resolve(point, shape, err);
    return status ? status
                  : eng_resources_tokens(resources, shape->preset.name,
                                         eng_point_word(point, "corpus"), tokens, err);
}

/* ---- caches ------------------------------------------------------------------------------------
 */

typedef struct Models {
    EngCurve curve;
    EngShards shards;
    EngAet aet;
    EngRowIds ids;
    int64_t *rows; /* of a chunk */
} Models;

static void close_models(Models *m)
{
    eng_free(m->rows);
    eng_row_ids_fini(&m->ids);
    eng_aet_fini(&m->aet);
    eng_shards_fini(&m->shards);
    eng_curve_close(&m->curve);
}

/* SHARDS is as good as its sample is large: 1 of 100 rows of 3 M look-ups is off by 0.014. */
static double sample_rate(int64_t look_ups)
{
    return look_ups < LONG_STREAM ? 0.1 : 0.01;
}

static EngStatus open_models(Models *m, const int64_t *capacities, int n, int columns,
                             int64_t tokens, EngErr *err)
{
    *m = (Models){0};
    EngStatus status = eng_curve_open(&m->curve, ENG_CACHE_LRU, 0, capacities, n, err);
    if (!status) status = eng_shards_init(&m->shards, sample_rate(tokens * columns), err);
    if (!status) status = eng_aet_init(&m->aet, err);
    if (!status) status = eng_row_ids_init(&m->ids, err);
    if (!status)
        status = eng_alloc_or((void **)&m->rows, CHUNK_TOKENS, (size_t)columns * sizeof *m->rows,
                              "rows of tokens", err);
    return status;
}

static EngStatus add_rows(Models *m, int64_t n, EngErr *err)
{
    EngStatus status = eng_curve_add(&m->curve, m->rows, n, err);
    for (int64_t r = 0; r < n && !status; r++) {
        uint32_t id;
        status = eng_shards_add(&m->shards, m->rows[r], err);
        if (!status) status = eng_row_ids_of(&m->ids, m->rows[r], &id, err);
        if (!status) status = eng_aet_add(&m->aet, id, err);
    }
    return status;
}

static EngStatus walk(Models *m, const EngAddress *address, const int32_t *stream, int64_t tokens,
                      EngErr *err)
{
    int reach = address->max_order - 1;
    EngStatus status = ENG_OK;
    for (int64_t at = 0; at < tokens && !status; at += CHUNK_TOKENS) {
        int64_t n = tokens - at < CHUNK_TOKENS ? tokens - at : CHUNK_TOKENS;
        int32_t history[ENG_MAX_ORDER];
        for (int i = 0; i < reach; i++)
            history[i] = at - reach + i < 0 ? ENG_TOKEN_DEAD : stream[at - reach + i];
        EngHashArgs args = {.tokens = stream + at,
                            .n_tokens = n,
                            .n_live = n,
                            .n_seqs = 1,
                            .history = history,
                            .rows = m->rows};
        eng_ref_hash(address, &args);
        status = add_rows(m, n * address->n_columns, err);
    }
    return status;
}

static EngStatus read_capacities(const EngPoint *const *points, int n, int64_t table,
                                 int64_t *capacities, EngErr *err)
{
    if (n > MOST_CACHES)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "more than %d caches at once", MOST_CACHES);
    for (int i = 0; i < n; i++) {
        if (strcmp(eng_point_word(points[i], "policy"), "lru") ||
            eng_point_int(points[i], "front_rows"))
            return ENG_FAIL(err, ENG_UNSUPPORTED, "only plain lru caches are simulated");
        capacities[i] = eng_point_int(points[i], "cache_rows");
        if (capacities[i] > table) capacities[i] = table;
    }
    return ENG_OK;
}

EngStatus eng_simulate_cache(const EngResources *resources, const EngPoint *const *points, int n,
                             EngSimulatedHits *hits, EngErr *err)
{
    EngShape shape;
    EngTokens tokens;
    Models models = {0};
    int64_t capacities[MOST_CACHES], counts[MOST_CACHES];
    double sampled[MOST_CACHES], modelled[MOST_CACHES];
    EngStatus status = open_stream(resources, points[0], &shape, &tokens, err);
    if (!status) status = read_capacities(points, n, shape.address.rows[0], capacities, err);
    int64_t length = status ? 0 : eng_point_int(points[0], "stream_tokens");
    if (!status && length > tokens.n_tokens) length = tokens.n_tokens;
    if (!status) status = open_models(&models, capacities, n, shape.columns, length, err);
    if (!status) status = walk(&models, &shape.address, tokens.compressed, length, err);
    if (!status) status = eng_shards_rates(&models.shards, capacities, n, sampled, err);
    if (!status) {
        eng_curve_hits(&models.curve, counts);
        eng_aet_rates(&models.aet, capacities, n, modelled);
    }
    for (int i = 0; i < n && !status; i++)
        hits[i] = (EngSimulatedHits){(double)counts[i] / (double)models.curve.accesses, sampled[i],
                                     modelled[i]};
    close_models(&models);
    return status;
}

/* ---- batches -----------------------------------------------------------------------------------
 */

EngStatus eng_simulate_reuse(const EngResources *resources, const EngPoint *point, double *share,
                             EngErr *err)
{
    EngShape shape;
    EngTokens tokens;
    EngReuse reuse = {0}; /* for the places of the batches and their rows */
    double sum = 0;
    EngStatus status = open_stream(resources, point, &shape, &tokens, err);
    if (!status && strcmp(eng_point_word(point, "compress"), "on"))
        status = ENG_FAIL(err, ENG_UNSUPPORTED, "batches of compressed ids only are simulated");
    if (!status)
        status = eng_reuse_open(&reuse, &shape.address, tokens.compressed, tokens.n_tokens,
                                shape.tokens, MOST_COUNTED, err);
    int64_t looked_up = shape.tokens * shape.columns;
    for (int64_t b = 0; b < reuse.n_batches && !status; b++) {
        EngRowIds ids;
        uint32_t id;
        eng_reuse_rows(&reuse, eng_reuse_batch_at(&reuse, b));
        status = eng_row_ids_init(&ids, err);
        for (int64_t r = 0; r < looked_up && !status; r++)
            status = eng_row_ids_of(&ids, reuse.rows[r], &id, err);
        sum += (double)ids.n / (double)looked_up;
        eng_row_ids_fini(&ids);
    }
    if (!status) *share = sum / (double)reuse.n_batches;
    eng_reuse_close(&reuse);
    return status;
}
