/* reuse: how many distinct rows does a batch of consecutive tokens read? Counted exactly on the
 * stream, by order, with and without token compression: what a cache or a deduplication can save,
 * and whether a benchmark prompt is honest (a repeated phrase reads almost nothing).
 */
#include "bench/experiments/experiments.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/experiments/axes.h"
#include "bench/core/resources.h"
#include "bench/experiments/reuse_count.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"

#define EST_NS_PER_LOOKUP  60.0
#define MAX_COUNTED_TOKENS (1 << 18)

static const char *const g_words_compress[] = {"on", "off", NULL};

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,
    ENG_AXIS_TOKENS_DEF("4096", "consecutive tokens of a batch"),
    ENG_AXIS_CORPUS_DEF,
    {"compress", ENG_AXIS_WORD, "on", "", 0, 0, g_words_compress,
     "off: n-grams of the tokenizer's own ids"},
};

static const EngMetricDef g_metrics[] = {
    {"distinct_all", "share", 0, "none", "distinct rows / rows looked up, mean over batches"},
    {"distinct_2", "share", 0, "none", "the same for the 2-gram columns"},
    {"distinct_3", "share", 0, "none", "the same for the 3-gram columns"},
    {"distinct_4", "share", 0, "none", "the same for the 4-gram columns"},
    {"distinct_5", "share", 0, "none", "the same for the 5-gram columns"},
    {"repeat_prev", "share", 0, "none",
     "share of a batch's distinct rows that the batch before read too"},
    {"batches", "batches", 0, "none", "batches counted, spread evenly over the stream"},
};

typedef struct State {
    EngShape shape;
    EngReuse reuse;
    int32_t *ids; /* owned stream of original ids when compression is off */
    EngReuseCounts counts;
} State;

static bool compressed(const EngPoint *point)
{
    return !strcmp(eng_point_word(point, "compress"), "on");
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    EngAddress address;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (status || compressed(point)) return status;
    if (!shape.preset.vocab_ids)
        return ENG_FAIL(why, ENG_UNSUPPORTED,
                        "preset %s names no tokenizer: compress=off has no ids", shape.preset.name);
    return eng_shape_address(&shape, shape.preset.vocab_ids, &address, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    *need = (EngNeed){.corpus = eng_point_word(point, "corpus"),
                      .preset = eng_point_word(point, "preset"),
                      .max_tokens = shape.tokens,
                      .private_bytes = (size_t)shape.tokens * (size_t)shape.columns * 60};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    int64_t batches = eng_reuse_batches(shape.tokens, INT64_MAX, MAX_COUNTED_TOKENS);
    return EST_NS_PER_LOOKUP * 2 * (double)(batches * shape.tokens) * shape.columns;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_reuse_close(&state->reuse);
    eng_free(state->ids);
    eng_free(state);
}

/* The stream as the tokenizer wrote it, over the tokenizer's vocabulary. */
static EngStatus use_original_ids(State *state, EngTokens *tokens, EngAddress *address, EngErr *err)
{
    if (!tokens->ids)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "corpus %s has compressed ids only: compress=off",
                        tokens->corpus);
    EngStatus status = eng_alloc_or((void **)&state->ids, (size_t)tokens->n_tokens,
                                    sizeof *state->ids, "token ids", err);
    if (status) return status;
    for (int64_t i = 0; i < tokens->n_tokens; i++) {
        if (tokens->ids[i] >= (uint64_t)tokens->vocab_ids)
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "corpus %s: token %" PRId64 " is %u, the tokenizer has %" PRId64 " ids",
                            tokens->corpus, i, tokens->ids[i], tokens->vocab_ids);
        state->ids[i] = (int32_t)tokens->ids[i];
    }
    tokens->compressed = state->ids;
    return eng_shape_address(&state->shape, tokens->vocab_ids, address, err);
}

static EngStatus setup_stream(State *state, EngTokens *tokens, bool compress, EngErr *err)
{
    EngAddress address = state->shape.address;
    EngStatus status = compress ? ENG_OK : use_original_ids(state, tokens, &address, err);
    if (!status)
        status = eng_reuse_open(&state->reuse, &address, tokens->compressed, tokens->n_tokens,
                                state->shape.tokens, MAX_COUNTED_TOKENS, err);
    return status ? eng_err_prefix(err, "corpus %s", tokens->corpus), status : ENG_OK;
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngTokens tokens;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "reuse", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    status = eng_shape_resolve(point, shape, err);
    if (!status)
        status = eng_resources_tokens(bench->resources, shape->preset.name,
                                      eng_point_word(point, "corpus"), &tokens, err);
    if (!status) status = setup_stream(state, &tokens, compressed(point), err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    (void)err;
    eng_reuse_count(&state->reuse, &state->counts);
    return ENG_OK;
}

static int compare_rows(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Distinct numbers of a sorted array. */
static int64_t count_sorted(const int64_t *rows, int64_t n)
{
    int64_t distinct = n > 0;
    for (int64_t i = 1; i < n; i++) distinct += rows[i] != rows[i - 1];
    return distinct;
}

/* Recounts one batch by sorting, and checks what must hold of any result. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngStatus status = run(state, err);
    if (status) return status;
    EngReuse *reuse = &state->reuse;
    const EngAddress *address = &reuse->address;
    int64_t batch = eng_reuse_batch_at(reuse, 0), n = reuse->tokens * address->n_columns;
    EngReuseCounts one = {0};
    eng_reuse_add(reuse, batch, &one);
    eng_reuse_rows(reuse, batch);
    qsort(reuse->rows, (size_t)n, sizeof *reuse->rows, compare_rows);
    sum.n_failed += count_sorted(reuse->rows, n) != reuse->now.n;
    double parts = 0;
    for (int order = ENG_REUSE_FIRST_ORDER; order <= ENG_REUSE_LAST_ORDER; order++) {
        double share = state->counts.distinct[order];
        sum.n_failed += !(share >= 0 && share <= 1);
        parts += share;
    }
    /* The whole is the mean of its orders: their rows are disjoint. */
    int orders = address->max_order - address->min_order + 1;
    bool all_reported =
        address->min_order >= ENG_REUSE_FIRST_ORDER && address->max_order <= ENG_REUSE_LAST_ORDER;
    if (all_reported) sum.n_failed += fabs(parts / orders - state->counts.distinct_all) > 1e-9;
    double repeat = state->counts.repeat_prev;
    sum.n_failed += !isnan(repeat) && !(repeat >= 0 && repeat <= 1);
    sum.n_checked = sum.n_outputs =
        2 + ENG_REUSE_LAST_ORDER - ENG_REUSE_FIRST_ORDER + 1 + all_reported;
    eng_residual_of_check(&sum, "exact", residual);
    return ENG_OK;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const EngReuseCounts *counts = &state->counts;
    (void)timing;
    values[0] = counts->distinct_all;
    for (int order = ENG_REUSE_FIRST_ORDER; order <= ENG_REUSE_LAST_ORDER; order++) {
        bool has =
            order >= state->reuse.address.min_order && order <= state->reuse.address.max_order;
        values[1 + order - ENG_REUSE_FIRST_ORDER] = has ? counts->distinct[order] : NAN;
    }
    values[5] = counts->repeat_prev;
    values[6] = (double)counts->batches;
}

const EngExperiment eng_experiment_reuse = {
    .name = "reuse",
    .question = "How many distinct rows does a batch read, by order and corpus?",
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
