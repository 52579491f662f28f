/* split: a fixed budget of parameters goes to routed experts and to Engram tables as rho says; what
 * does each half of that cost per layer?
 *
 * P_total and P_active are axes, the accounting is in split_plan.h. A call runs the Engram chain of
 * one module (the experiment `chain` with the rows that rho leaves) and one backbone layer with the
 * experts that rho leaves; the MoE's time is that between its input and its output. Both see the
 * same number of tokens. rho = 1 is the pure MoE: nothing is gathered.
 */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/backbone/backbone.h"
#include "bench/core/resources.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/derive.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/split_plan.h"
#include "bench/experiments/support.h"

#define EST_FLOPS_PER_NS   30.0
#define EST_WEIGHTS_PER_NS 2.0
#define MOE_ERROR          2e-5 /* of the sum of absolute terms: f32 sums of some 1,000 products */

static const char *const g_words_variant[] = {"portable", "best", NULL};

static const EngAxisDef g_axes[] = {
    {"preset", ENG_AXIS_WORD, "laptop", "", 0, 0, NULL,
     "hidden size, streams and number of Engram modules"},
    ENG_AXIS_ORDERS_DEF,
    ENG_AXIS_HEADS_DEF,
    {"order_dims", ENG_AXIS_INT, "256", "values", 1, 65536, NULL,
     "values that a token reads per order: a row has that / K"},
    {"layers", ENG_AXIS_INT, "6", "", 1, 1024, NULL, "of the model whose parameters are counted"},
    {"top_k", ENG_AXIS_INT, "6", "", 1, 64, NULL, "routed experts of a token, beside a shared one"},
    {"total", ENG_AXIS_REAL, "5e+08", "parameters", 1, 1e13, NULL,
     "P_total, without embedding and head; the pure MoE nearest to it sets it for all rho"},
    {"active", ENG_AXIS_REAL, "6e+07", "parameters", 1, 1e12, NULL,
     "P_active: sets the width of an expert, in steps of 16"},
    {"rho", ENG_AXIS_REAL, "0.75", "", 0, 1, NULL,
     "share of the sparse parameters that are experts'; the rest are table rows"},
    ENG_AXIS_TOKENS_DEF("64", "tokens per call, one sequence"),
    ENG_AXIS_CORPUS_DEF,
    ENG_AXIS_THREADS_DEF,
    {"variant", ENG_AXIS_WORD, "best", "", 0, 0, g_words_variant,
     "of the chain: portable throughout, or per stage the first of a list by preference that fits"},
};

static const EngMetricDef g_metrics[] = {
    {"moe_us", "us", -1, "wall", "wall time of the MoE of one layer: router, shared, routed"},
    {"chain_us", "us", -1, "wall", "wall time of hash, gather, projection and gate of one module"},
    {"gather_us", "us", -1, "wall", "wall time of the gather of one module"},
    {"model_us", "us", -1, "wall", "modules x chain_us + layers x moe_us"},
    {"experts", "", 0, "none", "routed experts of a layer at this rho"},
    {"expert_width", "values", 0, "none", "of one routed expert"},
    {"experts_read", "", 0, "none", "routed experts that a call uses, mean"},
    {"rows_per_head", "rows", 0, "none", "first candidate for a head's prime"},
    {"table_bytes", "B", 0, "none", "values of all modules' tables as fp8, with scales"},
    {"total_params", "parameters", 0, "none", "P_total as it came out"},
    {"active_params", "parameters", 0, "none", "P_active as it came out, projections included"},
    {"total_residual", "", 0, "none", "P_total over that of rho = 1, less 1"},
    {"active_residual", "", 0, "none", "P_active over that of rho = 1, less 1"},
    {"projection_share", "", 0, "none", "of P_active: Engram's projections and gate weights"},
    {"rho_counted", "", 0, "none", "rho as whole experts and primes make it"},
};

/* What the check needs of the last token of one pass. */
typedef struct Seen {
    float *in, *out; /* [hidden] */
    int32_t choice[64];
    float route[64];
} Seen;

typedef struct State {
    EngSplit split;
    EngPoint chain_point;
    void *chain; /* of eng_experiment_chain; NULL at rho = 1 */
    EngBackbone *backbone;
    EngTokens tokens;
    EngRng rng;
    int32_t *ids; /* [tokens] */
    Seen seen;
    bool look;
    int64_t moe_from, moe_ns, chain_ns, experts_read, runs; /* of the sample */
} State;

/* ---- the chain's point ---- */

static void derive_chain(const EngPoint *point, const EngSplit *split, EngPoint *chain)
{
    eng_point_derive(point, &eng_experiment_chain, chain);
    eng_point_set_int(chain, "rows", split->rows_per_head);
    eng_point_set_int(chain, "row_dims", split->row_dims);
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngSplit split;
    EngPoint chain;
    EngStatus status = eng_split_plan(point, &split, why);
    if (status || !split.modules) return status;
    derive_chain(point, &split, &chain);
    return eng_experiment_chain.check(&chain, why);
}

/* One layer is enough to time. */
static EngBackboneConfig one_layer(const EngSplit *split)
{
    EngBackboneConfig config = split->backbone;
    config.layers = 1;
    return config;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngSplit split;
    EngPoint chain;
    EngBackboneSize size;
    EngStatus status = eng_split_plan(point, &split, err);
    if (status) return status;
    EngBackboneConfig config = one_layer(&split);
    status = eng_backbone_size(&config, &size, err);
    if (status) return status;
    *need = (EngNeed){.corpus = eng_point_word(point, "corpus"),
                      .preset = eng_point_word(point, "preset"),
                      .max_tokens = eng_point_int(point, "tokens")};
    if (split.modules) {
        derive_chain(point, &split, &chain);
        status = eng_experiment_chain.need(&chain, need, err);
    }
    need->private_bytes += (size_t)size.bytes;
    return status;
}

static double estimate_ns(const EngPoint *point)
{
    EngSplit split;
    EngPoint chain;
    if (eng_split_plan(point, &split, NULL)) return 0;
    double tokens = eng_point_real(point, "tokens"), layers = split.backbone.layers;
    double used = fmin(split.backbone.experts, tokens * split.backbone.top_k);
    double moe = 2 * tokens * (double)split.active_at_1 / layers / EST_FLOPS_PER_NS +
                 used * (double)split.expert / layers / EST_WEIGHTS_PER_NS;
    derive_chain(point, &split, &chain);
    return moe + (split.modules ? eng_experiment_chain.estimate_ns(&chain) : 0);
}

/* ---- the layer ---- */

static void on_activation(void *context, int layer, EngActivation what, int index, const void *data,
                          int64_t rows, int64_t columns)
{
    State *state = context;
    size_t bytes = (size_t)columns * 4, last = (size_t)(rows - 1) * bytes;
    (void)layer, (void)index;
    if (what == ENG_ACT_MOE_IN) state->moe_from = eng_now_ns();
    if (what == ENG_ACT_MOE_OUT) state->moe_ns += eng_now_ns() - state->moe_from;
    if (what == ENG_ACT_EXPERT_ROWS) state->experts_read++;
    if (!state->look) return;
    const char *from = (const char *)data + last;
    if (what == ENG_ACT_MOE_IN) memcpy(state->seen.in, from, bytes);
    if (what == ENG_ACT_MOE_OUT) memcpy(state->seen.out, from, bytes);
    if (what == ENG_ACT_CHOICE) memcpy(state->seen.choice, from, bytes);
    if (what == ENG_ACT_ROUTE) memcpy(state->seen.route, from, bytes);
}

/* Tokens of the text as ids of the backbone's small vocabulary: other ones in each call, so that
 * other experts are chosen. */
static EngStatus run_layer(State *state, EngErr *err)
{
    const EngBackboneConfig *config = eng_backbone_config(state->backbone);
    uint64_t places = (uint64_t)(state->tokens.n_tokens - config->max_tokens + 1);
    const int32_t *text = state->tokens.compressed + eng_rng_below(&state->rng, places);
    for (int64_t i = 0; i < config->max_tokens; i++)
        state->ids[i] = (int32_t)((uint32_t)text[i] % (uint32_t)config->vocab);
    EngStatus status = eng_backbone_truncate(state->backbone, 0, 0, err);
    if (status) return status;
    return eng_backbone_prefill(state->backbone, 0, state->ids, config->max_tokens, NULL, err);
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_experiment_chain.teardown(state->chain);
    eng_backbone_destroy(state->backbone);
    eng_free(state->ids);
    eng_free(state->seen.in);
    eng_free(state->seen.out);
    eng_free(state);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "split", err);
    if (status) return status;
    EngSplit *split = &state->split;
    size_t hidden = 0, tokens = (size_t)eng_point_int(point, "tokens");
    eng_rng_seed(&state->rng, bench->seed);
    status = eng_split_plan(point, split, err);
    if (!status)
        status = eng_resources_tokens(bench->resources, eng_point_word(point, "preset"),
                                      eng_point_word(point, "corpus"), &state->tokens, err);
    if (!status && state->tokens.n_tokens < (int64_t)tokens)
        status = ENG_FAIL(err, ENG_UNSUPPORTED, "the stream is shorter than a call");
    if (!status && split->modules) {
        derive_chain(point, split, &state->chain_point);
        status = eng_experiment_chain.setup(bench, &state->chain_point, &state->chain, err);
    }
    hidden = (size_t)split->backbone.hidden;
    if (!status)
        status = eng_alloc_or((void **)&state->ids, tokens, sizeof *state->ids, "ids", err);
    if (!status)
        status = eng_alloc_or((void **)&state->seen.in, hidden, sizeof(float), "a token", err);
    if (!status)
        status = eng_alloc_or((void **)&state->seen.out, hidden, sizeof(float), "a token", err);
    if (!status) {
        EngBackboneConfig config = one_layer(split);
        config.seed = bench->seed;
        config.hooks = (EngBackboneHooks){.context = state, .activation = on_activation};
        status = eng_backbone_create(&config, &state->backbone, err);
    }
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngStatus prepare(void *opaque, EngErr *err)
{
    State *state = opaque;
    (void)err;
    state->moe_ns = state->chain_ns = state->experts_read = state->runs = 0;
    return ENG_OK;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngStatus status = ENG_OK;
    int64_t from = eng_now_ns();
    if (state->chain) status = eng_experiment_chain.run(state->chain, err);
    state->chain_ns += eng_now_ns() - from;
    if (!status) status = run_layer(state, err);
    state->runs++;
    return status;
}

/* ---- against an oracle ---- */

/* y += weight * down(swiglu(up(x))) in double precision; `size` sums the absolute terms. */
static void add_expert(State *state, EngWeight up, EngWeight down, int expert, int64_t width,
                       double weight, double *y, double *size)
{
    EngDtype dtype;
    int64_t n, hidden = state->split.backbone.hidden;
    const float *u = eng_backbone_weight(state->backbone, up, 0, expert, &n, &dtype);
    const float *d = eng_backbone_weight(state->backbone, down, 0, expert, &n, &dtype);
    for (int64_t j = 0; j < width; j++) {
        double gate = 0, value = 0;
        for (int64_t i = 0; i < hidden; i++) {
            gate += (double)state->seen.in[i] * u[i * 2 * width + j];
            value += (double)state->seen.in[i] * u[i * 2 * width + width + j];
        }
        double act = weight * gate / (1 + exp(-gate)) * value;
        for (int64_t i = 0; i < hidden; i++) {
            y[i] += act * d[j * hidden + i];
            size[i] += fabs(act * d[j * hidden + i]);
        }
    }
}

/* The MoE of the last token, given what the router chose. */
static EngStatus verify_moe(State *state, EngCheck *sum, EngErr *err)
{
    const EngBackboneConfig *c = eng_backbone_config(state->backbone);
    double *y = NULL, weights = 0;
    EngStatus status = eng_alloc_or((void **)&y, 2 * (size_t)c->hidden, sizeof *y, "MoE", err);
    if (status) return status;
    state->look = true;
    status = run_layer(state, err);
    state->look = false;
    if (status) goto out;
    double *size = y + c->hidden;
    add_expert(state, ENG_W_SHARED_UP, ENG_W_SHARED_DOWN, 0,
               (int64_t)c->shared_experts * c->expert_width, 1, y, size);
    for (int i = 0; i < c->top_k; i++) {
        weights += state->seen.route[i];
        add_expert(state, ENG_W_EXPERT_UP, ENG_W_EXPERT_DOWN, state->seen.choice[i],
                   c->expert_width, state->seen.route[i], y, size);
    }
    for (int i = 0; i < c->hidden; i++) {
        double error = fabs(state->seen.out[i] - y[i]) / (MOE_ERROR * size[i] + 1e-30);
        if (!(error <= sum->max_share)) sum->max_share = error;
        sum->n_failed += !(error <= 1);
        sum->n_nonfinite += !isfinite(state->seen.out[i]);
    }
    sum->n_failed += !(fabs(weights - c->route_scale) < 1e-5 * c->route_scale);
    sum->n_checked += c->hidden;
    sum->n_outputs += c->hidden;
out:
    eng_free(y);
    return status;
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    EngCheck sum = {0};
    EngResidual chain = {.pass = true};
    EngStatus status = verify_moe(state, &sum, err);
    eng_residual_of_check(&sum, "rel", residual);
    if (!status && state->chain) status = eng_experiment_chain.verify(state->chain, &chain, err);
    if (!status && state->chain && residual->pass) {
        chain.n_checked += residual->n_checked;
        chain.n_outputs += residual->n_outputs;
        *residual = chain;
    }
    return status;
}

static double gather_share(const State *state, int64_t runs)
{
    double values[ENG_MAX_METRICS];
    EngTiming timing = {.inner = runs, .wall_ns = state->chain_ns, .cpu_ns = state->chain_ns};
    eng_experiment_chain.observe(state->chain, &timing, values);
    return values[eng_metric_index(&eng_experiment_chain, "share_gather")];
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    State *state = opaque;
    const EngSplit *s = &state->split;
    double runs = (double)state->runs, moe_us = (double)state->moe_ns * 1e-3 / runs;
    double chain_us = state->chain ? (double)state->chain_ns * 1e-3 / runs : NAN;
    int64_t rows = s->modules ? s->tables / s->row_dims : 0;
    (void)timing;
    values[2] = state->chain ? chain_us * gather_share(state, state->runs) : NAN;
    values[1] = chain_us;
    values[0] = moe_us;
    values[3] = s->backbone.layers * moe_us + (state->chain ? s->modules * chain_us : 0);
    values[4] = s->backbone.experts;
    values[5] = s->backbone.expert_width;
    values[6] = (double)state->experts_read / runs;
    values[7] = (double)s->rows_per_head;
    values[8] = (double)rows * (double)(eng_row_stride_bytes(ENG_ROW_FP8, s->row_dims) +
                                        eng_row_scale_bytes(ENG_ROW_FP8, s->row_dims));
    values[9] = (double)s->total;
    values[10] = (double)s->active;
    values[11] = (double)s->total / (double)s->total_at_1 - 1;
    values[12] = (double)s->active / (double)s->active_at_1 - 1;
    values[13] = (double)s->projections / (double)s->active;
    values[14] = eng_split_rho(s);
}

const EngExperiment eng_experiment_split = {
    .name = "split",
    .question = "Of a fixed parameter budget, what do experts and table rows cost at each rho?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .prepare = prepare,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
