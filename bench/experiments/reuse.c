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
#include "bench/experiments/idset.h"
#include "bench/core/resources.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "kernels/ref/hash.h"

#define EST_NS_PER_LOOKUP  60.0
#define MAX_BATCHES        64
#define MAX_COUNTED_TOKENS (1 << 18)
#define MIN_BATCHES        4
#define FIRST_ORDER        2 /* of the metrics distinct_2 .. distinct_5 */
#define LAST_ORDER         5

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

typedef struct Counts {
    double distinct_all, distinct[LAST_ORDER + 1], repeat_prev;
    int64_t batches, repeats; /* repeats: batches that have one before them */
} Counts;

typedef struct State {
    EngShape shape;
    EngAddress address;    /* over the vocabulary counted */
    const int32_t *stream; /* batch b starts at b * tokens */
    int32_t *ids;          /* owned copy of it when compression is off */
    int64_t n_batches, total_batches;
    int64_t *rows;
    EngIdSet now, before;
    Counts counts;
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

static int64_t batches_wanted(int64_t tokens, int64_t available)
{
    int64_t n = MAX_COUNTED_TOKENS / tokens;
    if (n > MAX_BATCHES) n = MAX_BATCHES;
    if (n < MIN_BATCHES) n = MIN_BATCHES;
    return n < available ? n : available;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    int64_t batches = batches_wanted(shape.tokens, INT64_MAX);
    return EST_NS_PER_LOOKUP * 2 * (double)(batches * shape.tokens) * shape.columns;
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_idset_destroy(&state->now);
    eng_idset_destroy(&state->before);
    eng_free(state->ids);
    eng_free(state->rows);
    eng_free(state);
}

/* The stream as the tokenizer wrote it, over the tokenizer's vocabulary. */
static EngStatus use_original_ids(State *state, EngTokens *tokens, EngErr *err)
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
    return eng_shape_address(&state->shape, tokens->vocab_ids, &state->address, err);
}

static EngStatus setup_stream(State *state, EngTokens *tokens, bool compress, EngErr *err)
{
    const EngShape *shape = &state->shape;
    EngStatus status = ENG_OK;
    state->address = shape->address;
    if (!compress) status = use_original_ids(state, tokens, err);
    if (status) return status;
    if (tokens->n_tokens < shape->tokens)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "corpus %s has %" PRId64 " tokens, a batch takes %" PRId64, tokens->corpus,
                        tokens->n_tokens, shape->tokens);
    state->stream = tokens->compressed;
    state->total_batches = tokens->n_tokens / shape->tokens;
    state->n_batches = batches_wanted(shape->tokens, state->total_batches);
    return ENG_OK;
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
    int64_t per_batch = shape->tokens * shape->columns;
    if (!status)
        status = eng_alloc_or((void **)&state->rows, (size_t)per_batch, sizeof *state->rows,
                              "rows of a batch", err);
    if (!status) status = eng_idset_create(&state->now, per_batch, err);
    if (!status) status = eng_idset_create(&state->before, per_batch, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

/* ---- counting ---- */

/* Rows of batch b with the stream's own history before it. */
static void rows_of_batch(State *state, int64_t batch)
{
    int reach = state->address.max_order - 1;
    int64_t at = batch * state->shape.tokens;
    EngHashArgs args = {.tokens = state->stream + at,
                        .n_tokens = state->shape.tokens,
                        .n_live = state->shape.tokens,
                        .n_seqs = 1,
                        .rows = state->rows};
    int32_t start[ENG_MAX_ORDER];
    for (int i = 0; i < reach; i++) {
        int64_t from = at - reach + i;
        start[i] = from < 0 ? ENG_TOKEN_DEAD : state->stream[from];
    }
    args.history = start;
    eng_ref_hash(&state->address, &args);
}

/* Adds one order's columns of the batch to the set and returns how many rows were new. Columns own
 * disjoint rows, so orders can share one set. */
static int64_t add_order(const State *state, int order, EngIdSet *set)
{
    int64_t before = set->n;
    int first = (order - state->address.min_order) * state->address.heads;
    for (int64_t t = 0; t < state->shape.tokens; t++)
        for (int c = first; c < first + state->address.heads; c++)
            eng_idset_add(set, (uint64_t)state->rows[t * state->address.n_columns + c]);
    return set->n - before;
}

static void fill_set(State *state, int64_t batch, EngIdSet *set)
{
    rows_of_batch(state, batch);
    eng_idset_clear(set);
    for (int order = state->address.min_order; order <= state->address.max_order; order++)
        add_order(state, order, set);
}

static int64_t count_common(const State *state)
{
    int64_t common = 0;
    const EngIdSet *now = &state->now;
    for (uint64_t slot = 0; slot <= now->mask; slot++)
        if (now->stamps[slot] == now->stamp)
            common += eng_idset_has(&state->before, now->keys[slot]);
    return common;
}

/* Batch i of n, spread evenly; the last is the stream's last whole one. */
static int64_t batch_at(const State *state, int64_t i)
{
    if (state->n_batches == state->total_batches) return i;
    return (i + 1) * (state->total_batches - 1) / state->n_batches;
}

static void add_batch(State *state, int64_t batch, Counts *counts)
{
    double per_order = (double)(state->shape.tokens * state->address.heads);
    if (batch) fill_set(state, batch - 1, &state->before);
    rows_of_batch(state, batch);
    eng_idset_clear(&state->now);
    for (int order = state->address.min_order; order <= state->address.max_order; order++) {
        int64_t distinct = add_order(state, order, &state->now);
        if (order <= LAST_ORDER) counts->distinct[order] += (double)distinct / per_order;
    }
    counts->distinct_all +=
        (double)state->now.n / (double)(state->shape.tokens * state->address.n_columns);
    counts->batches++;
    if (!batch) return;
    counts->repeat_prev += (double)count_common(state) / (double)state->now.n;
    counts->repeats++;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    Counts counts = {0};
    (void)err;
    for (int64_t i = 0; i < state->n_batches; i++) add_batch(state, batch_at(state, i), &counts);
    double n = (double)counts.batches;
    counts.distinct_all /= n;
    for (int order = 0; order <= LAST_ORDER; order++) counts.distinct[order] /= n;
    counts.repeat_prev = counts.repeats ? counts.repeat_prev / (double)counts.repeats : NAN;
    state->counts = counts;
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
    int64_t batch = batch_at(state, 0), n = state->shape.tokens * state->address.n_columns;
    Counts one = {0};
    add_batch(state, batch, &one);
    rows_of_batch(state, batch);
    qsort(state->rows, (size_t)n, sizeof *state->rows, compare_rows);
    sum.n_failed += count_sorted(state->rows, n) != state->now.n;
    double parts = 0;
    for (int order = FIRST_ORDER; order <= LAST_ORDER; order++) {
        double share = state->counts.distinct[order];
        sum.n_failed += !(share >= 0 && share <= 1);
        parts += share;
    }
    /* The whole is the mean of its orders: their rows are disjoint. */
    int orders = state->address.max_order - state->address.min_order + 1;
    bool all_reported =
        state->address.min_order >= FIRST_ORDER && state->address.max_order <= LAST_ORDER;
    if (all_reported) sum.n_failed += fabs(parts / orders - state->counts.distinct_all) > 1e-9;
    double repeat = state->counts.repeat_prev;
    sum.n_failed += !isnan(repeat) && !(repeat >= 0 && repeat <= 1);
    sum.n_checked = sum.n_outputs = 2 + LAST_ORDER - FIRST_ORDER + 1 + all_reported;
    eng_residual_of_check(&sum, "exact", residual);
    return ENG_OK;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const Counts *counts = &state->counts;
    (void)timing;
    values[0] = counts->distinct_all;
    for (int order = FIRST_ORDER; order <= LAST_ORDER; order++) {
        bool has = order >= state->address.min_order && order <= state->address.max_order;
        values[1 + order - FIRST_ORDER] = has ? counts->distinct[order] : NAN;
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
