/* Mixture of experts of training: router, shared experts, routed experts on tokens sorted by
 * expert, forward and backward. The choice of experts has no gradient; the balance loss (V4.1's
 * sequence-wise one) reaches the router through all affinities. Experts run one after the other,
 * gathered rows and all between them in the cache. */
#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/parts.h"
#include "bench/backbone/pointwise.h"
#include "bench/backbone/train_parts.h"

/* ---- routing ---- */

ENG_CLONES static EngReal largest(const EngReal *x, int64_t n)
{
    EngReal lanes[ENG_LANES], most = x[0];
    int64_t i = 0;
    for (int j = 0; j < ENG_LANES; j++) lanes[j] = most;
    for (; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int j = 0; j < ENG_LANES; j++) most = lanes[j] > most ? lanes[j] : most;
    return most;
}

/* The top_k experts by affinity plus bias, the lower number first among equals; `biased` is scratch
 * of `experts`. */
static void choose_experts(const EngReal *affinity, const EngReal *bias, int experts, int top_k,
                           EngReal *biased, int32_t *choice)
{
    eng_add(affinity, bias, biased, (size_t)experts);
    for (int place = 0; place < top_k; place++) {
        EngReal most = largest(biased, experts);
        int e = 0;
        while (e + 1 < experts && !(biased[e] >= most)) e++;
        choice[place] = e;
        biased[e] = -(EngReal)INFINITY;
    }
}

static void count_and_sort(EngLane *lane, int layer)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngLayerKept *kept = &lane->layers[layer];
    int64_t n = lane->tokens * c->top_k, *first = kept->first;
    int64_t *load = lane->load + (int64_t)layer * c->experts;
    memset(first, 0, (size_t)(c->experts + 1) * sizeof *first);
    for (int64_t i = 0; i < n; i++) first[kept->choice[i] + 1]++;
    for (int e = 0; e < c->experts; e++) {
        load[e] += first[e + 1];
        first[e + 1] += first[e];
    }
    for (int64_t i = 0; i < n; i++) kept->order[first[kept->choice[i]]++] = (int32_t)i;
    for (int e = c->experts; e > 0; e--) first[e] = first[e - 1]; /* ends back to starts */
    first[0] = 0;
}

static EngStatus route_tokens(EngLane *lane, int layer, EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngLayerKept *kept = &lane->layers[layer];
    int64_t experts = c->experts, k = c->top_k;
    const EngReal *bias = lane->trainer->bias + layer * experts;
    EngDense router = eng_dense(lane, ENG_W_ROUTER, layer, 0);
    EngStatus status = eng_dense_forward(lane->products, &router, kept->moe.normed, lane->tokens,
                                         kept->affinity, err);
    if (status) return status;
    eng_sigmoid(kept->affinity, (size_t)(lane->tokens * experts));
    for (int64_t t = 0; t < lane->tokens; t++) {
        const EngReal *affinity = kept->affinity + t * experts;
        EngReal sum = 0, *weights = kept->route + t * k;
        int32_t *choice = kept->choice + t * k;
        if (!lane->frozen_choice)
            choose_experts(affinity, bias, c->experts, c->top_k, lane->scratch.affinity, choice);
        for (int i = 0; i < k; i++) sum += weights[i] = affinity[choice[i]];
        for (int i = 0; i < k; i++) weights[i] *= (EngReal)c->route_scale / sum;
    }
    count_and_sort(lane, layer);
    eng_show(lane, layer, ENG_TV_AFFINITY, kept->affinity, experts);
    return ENG_OK;
}

/* ---- balance loss: per sequence sum_e f_e P_e, f the share of choices times experts, P the mean
 * of the affinities normalised by token ---- */

typedef struct Balance {
    const EngReal *affinity;
    const int32_t *choice;
    int64_t tokens, experts, k;
    EngReal *share; /* [experts] f / tokens */
} Balance;

static Balance balance_of(EngLane *lane, int layer, int64_t seq)
{
    const EngTrainConfig *config = &lane->trainer->config;
    EngLayerKept *kept = &lane->layers[layer];
    int64_t experts = config->model.experts, k = config->model.top_k, n = config->seq_len;
    Balance b = {kept->affinity + seq * n * experts,
                 kept->choice + seq * n * k,
                 n,
                 experts,
                 k,
                 lane->scratch.share};
    for (int64_t e = 0; e < experts; e++) b.share[e] = 0;
    for (int64_t i = 0; i < n * k; i++)
        b.share[b.choice[i]] += (EngReal)experts / (EngReal)(k * n) / (EngReal)n;
    return b;
}

static double balance_loss(const Balance *b)
{
    double loss = 0;
    for (int64_t t = 0; t < b->tokens; t++) {
        const EngReal *a = b->affinity + t * b->experts;
        double sum = 0, dot = 0;
        for (int64_t e = 0; e < b->experts; e++)
            sum += (double)a[e], dot += (double)(a[e] * b->share[e]);
        loss += dot / sum;
    }
    return loss;
}

/* Adds weight times the gradient to d [tokens, experts] of the affinities. */
static void balance_backward(const Balance *b, EngReal weight, EngReal *d)
{
    for (int64_t t = 0; t < b->tokens; t++) {
        const EngReal *a = b->affinity + t * b->experts;
        EngReal sum = 0, dot = 0, *own = d + t * b->experts;
        for (int64_t e = 0; e < b->experts; e++) sum += a[e], dot += a[e] * b->share[e];
        for (int64_t e = 0; e < b->experts; e++) own[e] += weight * (b->share[e] - dot / sum) / sum;
    }
}

/* ---- experts ---- */

static int64_t expert_rows(const EngLayerKept *kept, int e)
{
    return kept->first[e + 1] - kept->first[e];
}

static void gather_rows(const EngReal *from, const int32_t *order, int64_t rows, int64_t k,
                        int64_t d, EngReal *to)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * d, from + order[r] / k * d, (size_t)d * sizeof *to);
}

static EngStatus expert_forward(EngLane *lane, int layer, int e, EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngLayerKept *kept = &lane->layers[layer];
    EngScratch *s = &lane->scratch;
    int64_t d = c->hidden, w = c->expert_width, k = c->top_k, rows = expert_rows(kept, e);
    const int32_t *order = kept->order + kept->first[e];
    EngReal *wide = kept->wide + kept->first[e] * 2 * w;
    EngDense up = eng_dense(lane, ENG_W_EXPERT_UP, layer, e);
    EngDense down = eng_dense(lane, ENG_W_EXPERT_DOWN, layer, e);
    if (!rows) return ENG_OK;
    gather_rows(kept->moe.normed, order, rows, k, d, s->rows);
    EngStatus status = eng_dense_forward(lane->products, &up, s->rows, rows, wide, err);
    if (status) return status;
    eng_swiglu(wide, rows, w, s->act);
    status = eng_dense_forward(lane->products, &down, s->act, rows, s->rows, err);
    for (int64_t r = 0; r < rows && !status; r++)
        eng_add_scaled(kept->moe.y + order[r] / k * d, s->rows + r * d, kept->route[order[r]],
                       (size_t)d);
    return status;
}

static EngStatus expert_backward(EngLane *lane, int layer, int e, const EngReal *d_y,
                                 EngReal *d_normed, EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngLayerKept *kept = &lane->layers[layer];
    EngScratch *s = &lane->scratch;
    int64_t d = c->hidden, w = c->expert_width, k = c->top_k, rows = expert_rows(kept, e);
    const int32_t *order = kept->order + kept->first[e];
    EngReal *wide = kept->wide + kept->first[e] * 2 * w;
    EngStatus status;
    EngDense up = eng_dense(lane, ENG_W_EXPERT_UP, layer, e);
    EngDense down = eng_dense(lane, ENG_W_EXPERT_DOWN, layer, e);
    if (!rows) {
        status = eng_dense_weight(lane->products, &down, NULL, NULL, 0, err);
        return status ? status : eng_dense_weight(lane->products, &up, NULL, NULL, 0, err);
    }
    gather_rows(d_y, order, rows, k, d, s->rows);
    status = eng_dense_input(lane->products, &down, s->rows, rows, s->act2, false, err);
    if (status) return status;
    for (int64_t r = 0; r < rows; r++) s->scale[r] = kept->route[order[r]];
    eng_swiglu_backward(wide, s->act2, s->scale, rows, w, s->act, s->d_scale);
    for (int64_t r = 0; r < rows; r++) s->route[order[r]] = s->d_scale[r];
    status = eng_dense_weight(lane->products, &down, s->act, s->rows, rows, err);
    gather_rows(kept->moe.normed, order, rows, k, d, s->rows);
    if (!status)
        status = eng_dense_backward(lane->products, &up, s->rows, wide, rows, s->rows, false, err);
    for (int64_t r = 0; r < rows && !status; r++)
        eng_add_scaled(d_normed + order[r] / k * d, s->rows + r * d, 1, (size_t)d);
    return status;
}

/* ---- the block ---- */

static EngStatus shared_forward(EngLane *lane, int layer, EngErr *err)
{
    EngLayerKept *kept = &lane->layers[layer];
    EngDense up = eng_dense(lane, ENG_W_SHARED_UP, layer, 0);
    EngDense down = eng_dense(lane, ENG_W_SHARED_DOWN, layer, 0);
    EngStatus status =
        eng_dense_forward(lane->products, &up, kept->moe.normed, lane->tokens, kept->shared, err);
    if (status) return status;
    eng_swiglu(kept->shared, lane->tokens, down.in, lane->scratch.act);
    return eng_dense_forward(lane->products, &down, lane->scratch.act, lane->tokens, kept->moe.y,
                             err);
}

static EngStatus shared_backward(EngLane *lane, int layer, const EngReal *d_y, EngReal *d_normed,
                                 EngErr *err)
{
    EngLayerKept *kept = &lane->layers[layer];
    EngScratch *s = &lane->scratch;
    int64_t rows = lane->tokens;
    EngDense up = eng_dense(lane, ENG_W_SHARED_UP, layer, 0);
    EngDense down = eng_dense(lane, ENG_W_SHARED_DOWN, layer, 0);
    EngStatus status = eng_dense_input(lane->products, &down, d_y, rows, s->act2, false, err);
    if (status) return status;
    eng_swiglu_backward(kept->shared, s->act2, NULL, rows, down.in, s->act, NULL);
    status = eng_dense_weight(lane->products, &down, s->act, d_y, rows, err);
    if (status) return status;
    return eng_dense_backward(lane->products, &up, kept->moe.normed, kept->shared, rows, d_normed,
                              false, err);
}

/* From d of the routing weights to that of the router's inputs (added to d_normed) and weights. */
static EngStatus router_backward(EngLane *lane, int layer, EngReal *d_normed, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    const EngBackboneConfig *c = &config->model;
    EngLayerKept *kept = &lane->layers[layer];
    EngScratch *s = &lane->scratch;
    int64_t experts = c->experts, k = c->top_k, all = lane->tokens * experts;
    EngReal weight =
        (EngReal)(config->balance_loss * (double)config->seq_len / (double)lane->total);
    memset(s->affinity, 0, (size_t)all * sizeof *s->affinity);
    for (int64_t t = 0; t < lane->tokens; t++) {
        const EngReal *a = kept->affinity + t * experts, *d = s->route + t * k;
        const int32_t *choice = kept->choice + t * k;
        EngReal sum = 0, dot = 0, *out = s->affinity + t * experts;
        for (int i = 0; i < k; i++) sum += a[choice[i]], dot += d[i] * a[choice[i]];
        for (int i = 0; i < k; i++)
            out[choice[i]] = (EngReal)c->route_scale / sum * (d[i] - dot / sum);
    }
    for (int64_t seq = 0; config->balance_loss > 0 && seq < lane->tokens / config->seq_len; seq++) {
        Balance b = balance_of(lane, layer, seq);
        balance_backward(&b, weight, s->affinity + seq * config->seq_len * experts);
    }
    for (int64_t i = 0; i < all; i++) s->affinity[i] *= kept->affinity[i] * (1 - kept->affinity[i]);
    EngDense router = eng_dense(lane, ENG_W_ROUTER, layer, 0);
    return eng_dense_backward(lane->products, &router, kept->moe.normed, s->affinity, lane->tokens,
                              d_normed, true, err);
}

EngStatus eng_train_moe(EngLane *lane, int layer, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    const EngBackboneConfig *c = &config->model;
    EngReal *y = lane->layers[layer].moe.y;
    EngStatus status = ENG_OK;
    if (eng_shared_width(c))
        status = shared_forward(lane, layer, err);
    else
        memset(y, 0, (size_t)(lane->tokens * c->hidden) * sizeof *y);
    eng_part_end(lane, ENG_PART_SHARED);
    if (status || !c->experts) return status;
    status = route_tokens(lane, layer, err);
    for (int64_t seq = 0; config->balance_loss > 0 && seq < lane->tokens / config->seq_len; seq++) {
        Balance b = balance_of(lane, layer, seq);
        lane->balance += balance_loss(&b);
    }
    eng_part_end(lane, ENG_PART_ROUTER);
    for (int e = 0; e < c->experts && !status; e++) status = expert_forward(lane, layer, e, err);
    eng_part_end(lane, ENG_PART_EXPERTS);
    return status;
}

EngStatus eng_train_moe_back(EngLane *lane, int layer, const EngReal *d_y, EngReal *d_normed,
                             EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngStatus status = ENG_OK;
    if (eng_shared_width(c))
        status = shared_backward(lane, layer, d_y, d_normed, err);
    else
        memset(d_normed, 0, (size_t)(lane->tokens * c->hidden) * sizeof *d_normed);
    eng_part_end(lane, ENG_PART_SHARED);
    for (int e = 0; e < c->experts && !status; e++)
        status = expert_backward(lane, layer, e, d_y, d_normed, err);
    eng_part_end(lane, ENG_PART_EXPERTS);
    if (status || !c->experts) return status;
    status = router_backward(lane, layer, d_normed, err);
    eng_part_end(lane, ENG_PART_ROUTER);
    return status;
}
