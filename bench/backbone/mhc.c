/* Residual streams: read operator, write operator, mixing coefficients (mHC, arXiv 2512.24880);
 * formulas in backbone.h. With one stream this is the plain residual.
 *
 * Streams are f32 or bf16; bf16 ones are widened for a block of tokens at a time and rounded once
 * when written.
 */
#include <math.h>
#include <string.h>

#include "bench/backbone/parts.h"
#include "bench/backbone/pointwise.h"

#define MAX_STREAMS ENG_BACKBONE_MAX_STREAMS

/* ---- coefficients ---- */

/* Sinkhorn-Knopp of exp(logits): columns, then rows, `rounds` times: rows sum to 1 exactly, columns
 * nearly. */
static void balance(float *res, int n, int rounds)
{
    float most = res[0];
    for (int i = 1; i < n * n; i++) most = res[i] > most ? res[i] : most;
    for (int i = 0; i < n * n; i++) res[i] = expf(res[i] - most);
    for (int round = 0; round < rounds; round++)
        for (int by = 0; by < 2; by++) /* columns: elements n apart, rows: 1 apart */
            for (int i = 0; i < n; i++) {
                int start = by ? i * n : i, step = by ? 1 : n;
                float sum = 0;
                for (int k = 0; k < n; k++) sum += res[start + k * step];
                for (int k = 0; k < n; k++) res[start + k * step] /= sum;
            }
}

/* From the products of a token's streams with the mixing weights to pre, post and res. */
static void finish_mix(float *mix, int n, float scale, const float *gain, const float *bias,
                       int rounds)
{
    int m = n * (n + 2);
    for (int i = 0; i < m; i++) {
        int part = i < n ? 0 : i < 2 * n ? 1 : 2;
        mix[i] = gain[part] * (mix[i] * scale) + bias[i];
    }
    eng_sigmoid(mix, (size_t)(2 * n));
    for (int i = n; i < 2 * n; i++) mix[i] *= 2;
    balance(mix + 2 * n, n, rounds);
}

/* ---- access to the streams ---- */

/* Streams of `rows` tokens from `token` on as f32: the streams themselves, or a widened copy. */
static const float *widen(const EngBackbone *b, int64_t token, int64_t rows, float *copy)
{
    int64_t width = (int64_t)b->config.streams * b->config.hidden;
    if (b->config.stream_dtype == ENG_F32) return (const float *)b->streams + token * width;
    eng_from_bf16((const uint16_t *)b->streams + token * width, copy, (size_t)(rows * width));
    return copy;
}

static void store(EngBackbone *b, int64_t at, const float *from, int64_t n)
{
    if (b->config.stream_dtype == ENG_F32)
        memcpy((float *)b->streams + at, from, (size_t)n * sizeof *from);
    else
        eng_to_bf16(from, (uint16_t *)b->streams + at, (size_t)n);
}

/* ---- reading ---- */

static EngStatus read_block(EngBackbone *b, int layer, bool moe, int64_t token, int64_t rows,
                            EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t n = c->streams, d = c->hidden, width = n * d, m = n * (n + 2);
    const float *flat = widen(b, token, rows, b->flat);
    const float *weight = eng_weight_of(b, moe ? ENG_W_MOE_MIX : ENG_W_ATTN_MIX, layer, 0);
    const float *bias = eng_weight_of(b, moe ? ENG_W_MOE_MIX_BIAS : ENG_W_ATTN_MIX_BIAS, layer, 0);
    const float *gain = eng_weight_of(b, moe ? ENG_W_MOE_MIX_GAIN : ENG_W_ATTN_MIX_GAIN, layer, 0);
    float *mix = b->mix + token * m;
    EngGemm gemm = {flat, weight, mix, rows, m, width, width, m, m, false, 1};
    EngStatus status = eng_gemm(&gemm, err);
    if (status) return status;
    for (int64_t t = 0; t < rows; t++) {
        const float *h = flat + t * width;
        float *x = b->x + (token + t) * d, *own = mix + t * m;
        finish_mix(own, c->streams, eng_reciprocal_rms(h, width, c->norm_eps), gain, bias,
                   c->sinkhorn_iters);
        memset(x, 0, (size_t)d * sizeof *x);
        for (int64_t k = 0; k < n; k++) eng_add_scaled(x, h + k * d, own[k], (size_t)d);
    }
    return ENG_OK;
}

EngStatus eng_mhc_read(EngBackbone *b, int layer, bool moe, int64_t tokens, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    if (c->streams == 1) {
        size_t n = (size_t)tokens * (size_t)c->hidden;
        if (c->stream_dtype == ENG_F32)
            memcpy(b->x, b->streams, n * sizeof *b->x);
        else
            eng_from_bf16(b->streams, b->x, n);
        return ENG_OK;
    }
    EngStatus status = ENG_OK;
    for (int64_t at = 0; at < tokens && !status; at += ENG_MIX_BLOCK) {
        int64_t rows = tokens - at < ENG_MIX_BLOCK ? tokens - at : ENG_MIX_BLOCK;
        status = read_block(b, layer, moe, at, rows, err);
    }
    return status;
}

/* ---- writing ---- */

static void write_token(EngBackbone *b, int64_t token)
{
    const EngBackboneConfig *c = &b->config;
    int64_t n = c->streams, d = c->hidden, width = n * d;
    const float *h = widen(b, token, 1, b->flat);
    const float *mix = b->mix + token * n * (n + 2), *y = b->y + token * d;
    float *next = b->flat + width; /* the block has room for two tokens and more */
    memset(next, 0, (size_t)width * sizeof *next);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++)
            eng_add_scaled(next + i * d, h + k * d, mix[2 * n + i * n + k], (size_t)d);
        eng_add_scaled(next + i * d, y, mix[n + i], (size_t)d);
    }
    store(b, token * width, next, width);
}

void eng_mhc_write(EngBackbone *b, int64_t tokens)
{
    const EngBackboneConfig *c = &b->config;
    if (c->streams > 1) {
        for (int64_t t = 0; t < tokens; t++) write_token(b, t);
        return;
    }
    /* x still holds the stream. */
    eng_add_scaled(b->x, b->y, 1, (size_t)tokens * (size_t)c->hidden);
    store(b, 0, b->x, tokens * c->hidden);
}

/* ---- both ends ---- */

void eng_mhc_start(EngBackbone *b, int64_t tokens)
{
    int64_t n = b->config.streams, d = b->config.hidden;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t k = 0; k < n; k++) store(b, (t * n + k) * d, b->x + t * d, d);
}

void eng_mhc_sum(const EngBackbone *b, const int64_t *tokens, int64_t rows, float *out)
{
    int64_t n = b->config.streams, d = b->config.hidden;
    memset(out, 0, (size_t)(rows * d) * sizeof *out);
    for (int64_t r = 0; r < rows; r++) {
        const float *h = widen(b, tokens ? tokens[r] : r, 1, b->flat);
        for (int64_t k = 0; k < n; k++) eng_add_scaled(out + r * d, h + k * d, 1, (size_t)d);
    }
}
