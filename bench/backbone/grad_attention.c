/* Causal grouped-query attention of training: whole sequences, forward and backward. Scores are
 * made again in the backward pass from the kept log-sums, so that they never leave the cache. */
#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/pointwise.h"
#include "bench/backbone/train_parts.h"

/* One head of one sequence. */
typedef struct Head {
    const EngReal *q, *k, *v;
    EngReal *d_q, *d_k, *d_v; /* backward */
    int64_t wide;             /* distance of tokens in those above */
    EngReal *out;             /* context, or its gradient */
    EngReal *lse;             /* distance of tokens: heads */
    int64_t narrow, heads, dim, length;
    EngReal scale;
} Head;

static Head head_of(EngLane *lane, int layer, int64_t seq, int h, EngReal *context)
{
    const EngTrainConfig *config = &lane->trainer->config;
    const EngBackboneConfig *c = &config->model;
    EngLayerKept *kept = &lane->layers[layer];
    int64_t dim = c->head_dim, wide = (c->heads + 2 * c->kv_heads) * dim, narrow = c->heads * dim;
    int64_t first = seq * config->seq_len, kv = h / (c->heads / c->kv_heads);
    EngReal *qkv = kept->qkv + first * wide, *d_qkv = lane->scratch.qkv + first * wide;
    int64_t k = (c->heads + kv) * dim, v = (c->heads + c->kv_heads + kv) * dim;
    return (Head){.q = qkv + h * dim,
                  .k = qkv + k,
                  .v = qkv + v,
                  .d_q = d_qkv + h * dim,
                  .d_k = d_qkv + k,
                  .d_v = d_qkv + v,
                  .wide = wide,
                  .out = context + first * narrow + h * dim,
                  .lse = kept->lse + first * c->heads + h,
                  .narrow = narrow,
                  .heads = c->heads,
                  .dim = dim,
                  .length = config->seq_len,
                  .scale = 1 / (EngReal)sqrt((double)dim)};
}

/* scores [rows, keys] = scale q . k^T of the queries from `at` on. */
static EngStatus score(const Head *h, int64_t at, int64_t rows, int64_t keys, EngReal *scores,
                       EngErr *err)
{
    EngRealGemm gemm = {.a = h->q + at * h->wide,
                        .b = h->k,
                        .c = scores,
                        .m = rows,
                        .n = keys,
                        .k = h->dim,
                        .lda = h->wide,
                        .ldb = h->wide,
                        .ldc = keys,
                        .turn_b = true,
                        .alpha = h->scale};
    return eng_real_gemm(&gemm, err);
}

static EngStatus head_forward(const Head *h, EngReal *scores, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int64_t at = 0; at < h->length && !status; at += ENG_TRAIN_QUERIES) {
        int64_t rows = h->length - at < ENG_TRAIN_QUERIES ? h->length - at : ENG_TRAIN_QUERIES;
        int64_t keys = at + rows;
        status = score(h, at, rows, keys, scores, err);
        if (status) break;
        for (int64_t r = 0; r < rows; r++)
            h->lse[(at + r) * h->heads] = eng_softmax_lse(scores + r * keys, at + r + 1, keys);
        EngRealGemm sum = {.a = scores,
                           .b = h->v,
                           .c = h->out + at * h->narrow,
                           .m = rows,
                           .n = h->dim,
                           .k = keys,
                           .lda = keys,
                           .ldb = h->wide,
                           .ldc = h->narrow,
                           .alpha = 1};
        status = eng_real_gemm(&sum, err);
    }
    return status;
}

/* Queries at .. at + rows: h->out is the gradient of context, `context` what the forward gave. */
static EngStatus block_backward(const Head *h, const EngReal *context, int64_t at, int64_t rows,
                                EngReal *p, EngReal *d, EngErr *err)
{
    int64_t keys = at + rows;
    const EngReal *d_out = h->out + at * h->narrow;
    EngStatus status = score(h, at, rows, keys, p, err);
    EngRealGemm to_p = {.a = d_out,
                        .b = h->v,
                        .c = d,
                        .m = rows,
                        .n = keys,
                        .k = h->dim,
                        .lda = h->narrow,
                        .ldb = h->wide,
                        .ldc = keys,
                        .turn_b = true,
                        .alpha = 1};
    if (!status) status = eng_real_gemm(&to_p, err);
    for (int64_t r = 0; r < rows && !status; r++) {
        EngReal shift = eng_dot(d_out + r * h->narrow, context + (at + r) * h->narrow, h->dim);
        eng_softmax_again(p + r * keys, h->lse[(at + r) * h->heads], at + r + 1, keys);
        eng_softmax_backward(p + r * keys, d + r * keys, shift, h->scale, keys);
    }
    EngRealGemm to_v = {.a = p,
                        .b = d_out,
                        .c = h->d_v,
                        .m = keys,
                        .n = h->dim,
                        .k = rows,
                        .lda = keys,
                        .ldb = h->narrow,
                        .ldc = h->wide,
                        .turn_a = true,
                        .alpha = 1,
                        .beta = 1};
    EngRealGemm to_q = {.a = d,
                        .b = h->k,
                        .c = h->d_q + at * h->wide,
                        .m = rows,
                        .n = h->dim,
                        .k = keys,
                        .lda = keys,
                        .ldb = h->wide,
                        .ldc = h->wide,
                        .alpha = 1};
    EngRealGemm to_k = to_v;
    to_k.a = d, to_k.b = h->q + at * h->wide, to_k.c = h->d_k, to_k.ldb = h->wide;
    if (!status) status = eng_real_gemm(&to_v, err);
    if (!status) status = eng_real_gemm(&to_q, err);
    return status ? status : eng_real_gemm(&to_k, err);
}

static EngStatus head_backward(const Head *h, const EngReal *context, EngReal *scores, EngErr *err)
{
    EngStatus status = ENG_OK;
    EngReal *d = scores + ENG_TRAIN_QUERIES * h->length;
    for (int64_t at = 0; at < h->length && !status; at += ENG_TRAIN_QUERIES) {
        int64_t rows = h->length - at < ENG_TRAIN_QUERIES ? h->length - at : ENG_TRAIN_QUERIES;
        status = block_backward(h, context, at, rows, scores, d, err);
    }
    return status;
}

/* ---- the block ---- */

static void rotate(EngLane *lane, EngReal *qkv, bool back)
{
    const EngTrainConfig *config = &lane->trainer->config;
    const EngBackboneConfig *c = &config->model;
    int64_t wide = (int64_t)(c->heads + 2 * c->kv_heads) * c->head_dim, half = c->head_dim / 2;
    for (int64_t t = 0; t < lane->tokens; t++) {
        int64_t angle = t % config->seq_len * half;
        (back ? eng_rope_backward : eng_rope)(qkv + t * wide, c->heads + c->kv_heads, c->head_dim,
                                              lane->trainer->cos + angle,
                                              lane->trainer->sin + angle);
    }
}

EngStatus eng_train_attention(EngLane *lane, int layer, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    EngLayerKept *kept = &lane->layers[layer];
    EngDense qkv = eng_dense(lane, ENG_W_QKV, layer, 0), out = eng_dense(lane, ENG_W_OUT, layer, 0);
    EngStatus status = eng_dense_forward(lane->products, &qkv, kept->attention.normed, lane->tokens,
                                         kept->qkv, err);
    if (status) return status;
    rotate(lane, kept->qkv, false);
    for (int64_t seq = 0; seq < lane->tokens / config->seq_len; seq++)
        for (int h = 0; h < config->model.heads && !status; h++) {
            Head head = head_of(lane, layer, seq, h, kept->context);
            status = head_forward(&head, lane->scratch.scores, err);
        }
    if (status) return status;
    return eng_dense_forward(lane->products, &out, kept->context, lane->tokens, kept->attention.y,
                             err);
}

EngStatus eng_train_attention_back(EngLane *lane, int layer, const EngReal *d_y, EngReal *d_normed,
                                   EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    const EngBackboneConfig *c = &config->model;
    EngLayerKept *kept = &lane->layers[layer];
    EngScratch *s = &lane->scratch;
    EngDense qkv = eng_dense(lane, ENG_W_QKV, layer, 0), out = eng_dense(lane, ENG_W_OUT, layer, 0);
    EngStatus status = eng_dense_backward(lane->products, &out, kept->context, d_y, lane->tokens,
                                          s->context, false, err);
    memset(s->qkv, 0, (size_t)(lane->tokens * qkv.out) * sizeof *s->qkv);
    for (int64_t seq = 0; seq < lane->tokens / config->seq_len; seq++)
        for (int h = 0; h < c->heads && !status; h++) {
            Head head = head_of(lane, layer, seq, h, s->context);
            const EngReal *context =
                kept->context + seq * config->seq_len * head.narrow + h * head.dim;
            status = head_backward(&head, context, s->scores, err);
        }
    if (status) return status;
    rotate(lane, s->qkv, true);
    return eng_dense_backward(lane->products, &qkv, kept->attention.normed, s->qkv, lane->tokens,
                              d_normed, false, err);
}
