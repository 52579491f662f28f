/* collide: how much do n-grams of real text share table rows, by order, K and rows per head? Two
 * n-grams whose 64-bit mixes differ share at most floor(63 / log2 p) of their K rows, which
 * verify() holds every point to; only n-grams of equal mixes cannot be told apart. A table with a
 * row for each possible n-gram would need none of this, and direct_table_bytes says why nobody has
 * one.
 */
#include "bench/experiments/experiments.h"

#include <inttypes.h>
#include <math.h>

#include "base/mem.h"
#include "bench/core/resources.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/collide.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"

#define EST_NS_PER_NGRAM   60.0 /* and head: one visit of a hash table */
#define EST_NS_PER_PAIR    3.0  /* and head: one division */
#define MAX_COMPARISONS    3e9  /* pairs x heads: some ten seconds */
#define BRUTE_FORCE_TOKENS 1024

static const EngAxisDef g_axes[] = {
    ENG_AXIS_PRESET_DEF,
    ENG_AXIS_LAYER_DEF,
    {"order", ENG_AXIS_INT, "2", "", 1, ENG_MAX_ORDER, NULL, "n-gram length"},
    ENG_AXIS_HEADS_DEF,
    ENG_AXIS_ROWS_DEF,
    ENG_AXIS_ROW_DIMS_DEF,
    ENG_AXIS_HOLD_DEF,
    ENG_AXIS_ROW_FORMAT_DEF,
    ENG_AXIS_TOKENS_DEF("200000", "tokens of the stream looked at"),
    ENG_AXIS_CORPUS_DEF,
};

static const EngMetricDef g_metrics[] = {
    {"ngrams_per_row", "n-grams", -1, "none", "distinct n-grams per row in use, mean over heads"},
    {"ngrams", "n-grams", 0, "none", "distinct n-grams"},
    {"rows_used", "share", 0, "none", "share of a head's rows in use, mean over heads"},
    {"heads_shared_max", "heads", -1, "none",
     "most heads that two n-grams of different mixes share"},
    {"heads_shared_bound", "heads", 0, "none", "floor(63 / log2 p), the most they can share"},
    {"pairs_all_heads", "pairs", -1, "none", "pairs of n-grams that share every head"},
    {"equal_mixes", "pairs", -1, "none", "pairs of n-grams with the same 64-bit mix"},
    {"direct_table_bytes", "B", 0, "none", "a table with a row for each possible n-gram"},
    {"alone_share", "share", +1, "none", "share of n-grams that share no row with another"},
};

typedef struct State {
    EngShape shape;
    EngCollideInput input;
    EngCollisions counts;
} State;

/* Pairs that share a row, were rows drawn at random, times the heads they are compared in. */
static double comparisons(const EngShape *shape)
{
    double n = (double)shape->tokens, k = shape->heads;
    return k * k * n * n / 2 / (double)shape->rows_per_head;
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, why);
    if (status) return status;
    if (comparisons(&shape) > MAX_COMPARISONS)
        return ENG_FAIL(why, ENG_UNSUPPORTED,
                        "%" PRId64 " tokens in %" PRId64
                        " rows per head are up to %.2g comparisons: take fewer tokens",
                        shape.tokens, shape.rows_per_head, comparisons(&shape));
    return ENG_OK;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngStatus status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    *need = (EngNeed){.corpus = eng_point_word(point, "corpus"),
                      .preset = eng_point_word(point, "preset"),
                      .max_tokens = shape.tokens,
                      .private_bytes = (size_t)shape.tokens * 96};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    return EST_NS_PER_NGRAM * (double)shape.tokens * shape.heads +
           EST_NS_PER_PAIR * comparisons(&shape);
}

static void teardown(void *opaque)
{
    eng_free(opaque);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngTokens tokens;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "collide", err);
    if (status) return status;
    EngShape *shape = &state->shape;
    status = eng_shape_resolve(point, shape, err);
    if (!status)
        status = eng_resources_tokens(bench->resources, shape->preset.name,
                                      eng_point_word(point, "corpus"), &tokens, err);
    if (!status && tokens.n_tokens < shape->tokens)
        status = ENG_FAIL(err, ENG_UNSUPPORTED, "corpus %s has %" PRId64 " tokens, not %" PRId64,
                          tokens.corpus, tokens.n_tokens, shape->tokens);
    if (status) {
        teardown(state);
        return status;
    }
    state->input = (EngCollideInput){.address = &shape->address,
                                     .order = (int)eng_point_int(point, "order"),
                                     .ids = tokens.compressed,
                                     .n_ids = shape->tokens};
    *out = state;
    return ENG_OK;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    return eng_collide_count(&state->input, &state->counts, err);
}

static bool same_share(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

static int64_t differences(const EngCollisions *a, const EngCollisions *b)
{
    return (a->ngrams != b->ngrams) + !same_share(a->ngrams_per_row, b->ngrams_per_row) +
           !same_share(a->rows_used, b->rows_used) + (a->heads_shared_max != b->heads_shared_max) +
           (a->pairs_all_heads != b->pairs_all_heads) + (a->equal_mixes != b->equal_mixes) +
           !same_share(a->alone_share, b->alone_share);
}

/* All counts of a prefix by brute force, and the bound on the whole. */
static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {.n_checked = 8, .n_outputs = 8};
    EngCollisions quick, slow;
    EngCollideInput prefix = state->input;
    if (prefix.n_ids > BRUTE_FORCE_TOKENS) prefix.n_ids = BRUTE_FORCE_TOKENS;
    EngStatus status = eng_collide_count(&prefix, &quick, err);
    if (!status) status = eng_collide_brute_force(&prefix, &slow, err);
    if (!status) status = run(state, err);
    if (status) return status;
    int bound = eng_collide_bound(&state->shape.address, state->input.order);
    sum.n_failed = differences(&quick, &slow) + (state->counts.heads_shared_max > bound);
    eng_residual_of_check(&sum, "exact", residual);
    return ENG_OK;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const EngCollisions *counts = &state->counts;
    const EngAddress *address = &state->shape.address;
    (void)timing;
    values[0] = counts->ngrams_per_row;
    values[1] = (double)counts->ngrams;
    values[2] = counts->rows_used;
    values[3] = counts->heads_shared_max;
    values[4] = eng_collide_bound(address, state->input.order);
    values[5] = (double)counts->pairs_all_heads;
    values[6] = (double)counts->equal_mixes;
    values[7] = pow((double)address->vocab, state->input.order) * (double)state->shape.row_bytes;
    values[8] = counts->alone_share;
}

const EngExperiment eng_experiment_collide = {
    .name = "collide",
    .question = "How much do n-grams of real text share rows, by order, K and rows per head?",
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
