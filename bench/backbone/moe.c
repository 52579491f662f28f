/* Mixture of experts: router, shared experts, routed experts on tokens sorted by expert; formulas
 * in backbone.h. Experts run one after the other, so that a token's sum has one order for any
 * number of threads. */
#include <math.h>
#include <string.h>

#include "bench/backbone/parts.h"
#include "bench/backbone/pointwise.h"

/* ---- routing ---- */

/* The top_k experts of one token by affinity plus bias, the lower number first among equals. */
static void choose(const float *affinity, const float *bias, int experts, int top_k,
                   int32_t *choice)
{
    for (int place = 0; place < top_k; place++) {
        int best = -1;
        for (int e = 0; e < experts; e++) {
            bool taken = false;
            for (int i = 0; i < place; i++) taken |= choice[i] == e;
            if (taken) continue;
            if (best < 0 || affinity[e] + bias[e] > affinity[best] + bias[best]) best = e;
        }
        choice[place] = best;
    }
}

static EngStatus route(EngBackbone *b, int layer, int64_t tokens, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t experts = c->experts, k = c->top_k;
    const float *bias = eng_weight_of(b, ENG_W_ROUTER_BIAS, layer, 0);
    EngGemm gemm = {b->normed,
                    eng_weight_of(b, ENG_W_ROUTER, layer, 0),
                    b->affinity,
                    tokens,
                    experts,
                    c->hidden,
                    c->hidden,
                    experts,
                    experts,
                    false,
                    1};
    EngStatus status = eng_gemm(&gemm, err);
    if (status) return status;
    eng_sigmoid(b->affinity, (size_t)(tokens * experts));
    for (int64_t t = 0; t < tokens; t++) {
        const float *affinity = b->affinity + t * experts;
        float sum = 0, *weights = b->route + t * k;
        choose(affinity, bias, c->experts, c->top_k, b->choice + t * k);
        for (int i = 0; i < k; i++) sum += weights[i] = affinity[b->choice[t * k + i]];
        for (int i = 0; i < k; i++) weights[i] *= c->route_scale / sum;
    }
    eng_emit(b, layer, ENG_ACT_AFFINITY, 0, b->affinity, tokens, experts);
    eng_emit(b, layer, ENG_ACT_CHOICE, 0, b->choice, tokens, k);
    eng_emit(b, layer, ENG_ACT_ROUTE, 0, b->route, tokens, k);
    return ENG_OK;
}

/* Counting sort of all (token, place) by expert; tokens stay in order. */
static void sort_by_expert(EngBackbone *b, int64_t tokens)
{
    int64_t n = tokens * b->config.top_k, *first = b->first;
    memset(first, 0, (size_t)(b->config.experts + 1) * sizeof *first);
    for (int64_t i = 0; i < n; i++) first[b->choice[i] + 1]++;
    for (int e = 0; e < b->config.experts; e++) first[e + 1] += first[e];
    for (int64_t i = 0; i < n; i++) b->order[first[b->choice[i]]++] = (int32_t)i;
    for (int e = b->config.experts; e > 0; e--) first[e] = first[e - 1]; /* ends back to starts */
    first[0] = 0;
}

/* ---- experts ---- */

/* SwiGLU network of width w; the hidden values are emitted before the activation. */
static EngStatus feed(EngBackbone *b, int layer, EngActivation what, int expert, EngWeight up,
                      EngWeight down, const float *x, int64_t rows, int64_t w, float *y,
                      EngErr *err)
{
    int64_t d = b->config.hidden;
    EngProduct wide = {x, eng_weight_of(b, up, layer, expert), b->wide, rows, d, 2 * w, false};
    EngProduct narrow = {b->act, eng_weight_of(b, down, layer, expert), y, rows, w, d, false};
    EngStatus status = eng_product(b->products, &wide, err);
    if (status) return status;
    eng_emit(b, layer, what, expert, b->wide, rows, 2 * w);
    eng_swiglu(b->wide, rows, w, b->act);
    return eng_product(b->products, &narrow, err);
}

static EngStatus run_expert(EngBackbone *b, int layer, int expert, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t d = c->hidden, from = b->first[expert], rows = b->first[expert + 1] - from;
    const int32_t *order = b->order + from;
    if (!rows) return ENG_OK;
    for (int64_t r = 0; r < rows; r++)
        memcpy(b->gathered + r * d, b->normed + order[r] / c->top_k * d,
               (size_t)d * sizeof *b->gathered);
    eng_emit(b, layer, ENG_ACT_EXPERT_ROWS, expert, order, rows, 1);
    EngStatus status = feed(b, layer, ENG_ACT_EXPERT, expert, ENG_W_EXPERT_UP, ENG_W_EXPERT_DOWN,
                            b->gathered, rows, c->expert_width, b->returned, err);
    for (int64_t r = 0; r < rows && !status; r++)
        eng_add_scaled(b->y + order[r] / c->top_k * d, b->returned + r * d, b->route[order[r]],
                       (size_t)d);
    return status;
}

EngStatus eng_moe(EngBackbone *b, int layer, int64_t tokens, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    EngStatus status = ENG_OK;
    int64_t shared = eng_shared_width(c);
    if (shared)
        status = feed(b, layer, ENG_ACT_SHARED, 0, ENG_W_SHARED_UP, ENG_W_SHARED_DOWN, b->normed,
                      tokens, shared, b->y, err);
    else
        memset(b->y, 0, (size_t)(tokens * c->hidden) * sizeof *b->y);
    if (status || !c->experts) return status;
    status = route(b, layer, tokens, err);
    if (status) return status;
    sort_by_expert(b, tokens);
    for (int e = 0; e < c->experts && !status; e++) status = run_expert(b, layer, e, err);
    return status;
}
