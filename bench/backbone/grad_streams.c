/* Residual streams of training: what a half of a layer reads, its norm, and what it writes, forward
 * and backward (mHC, arXiv 2512.24880; formulas in backbone.h). With one stream this is the plain
 * residual. Sinkhorn-Knopp and its backward go over sixteen tokens at once. */
#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/pointwise.h"
#include "bench/backbone/train_parts.h"

#define MAX_N      ENG_BACKBONE_MAX_STREAMS
#define MAX_ROUNDS 64 /* of Sinkhorn-Knopp, in training */

typedef struct Half {
    EngHalfKept *kept;
    int mix, bias, gain, norm; /* EngWeight */
} Half;

static Half half_of(EngLane *lane, int layer, bool moe)
{
    EngLayerKept *kept = &lane->layers[layer];
    if (moe)
        return (Half){&kept->moe, ENG_W_MOE_MIX, ENG_W_MOE_MIX_BIAS, ENG_W_MOE_MIX_GAIN,
                      ENG_W_MOE_NORM};
    return (Half){&kept->attention, ENG_W_ATTN_MIX, ENG_W_ATTN_MIX_BIAS, ENG_W_ATTN_MIX_GAIN,
                  ENG_W_ATTN_NORM};
}

/* ---- Sinkhorn-Knopp on sixteen matrices: element i of token j at m[i][j] ---- */

typedef EngReal Lanes[ENG_LANES];

/* Divides groups of n elements (columns, or rows) by their sums, which go to sums[n]. */
static inline void normalise_lanes(Lanes *m, int n, bool rows, Lanes *sums)
{
    for (int i = 0; i < n; i++) {
        int start = rows ? i * n : i, step = rows ? 1 : n;
        for (int j = 0; j < ENG_LANES; j++) sums[i][j] = 0;
        for (int k = 0; k < n; k++)
            for (int j = 0; j < ENG_LANES; j++) sums[i][j] += m[start + k * step][j];
        for (int j = 0; j < ENG_LANES; j++) sums[i][j] = 1 / sums[i][j];
        for (int k = 0; k < n; k++)
            for (int j = 0; j < ENG_LANES; j++) m[start + k * step][j] *= sums[i][j];
    }
}

/* d of what normalise_lanes gave to d of what it got; m: what it gave. */
static inline void normalise_lanes_back(const Lanes *m, Lanes *d, int n, bool rows,
                                        const Lanes *sums)
{
    for (int i = 0; i < n; i++) {
        int start = rows ? i * n : i, step = rows ? 1 : n;
        Lanes dot = {0};
        for (int k = 0; k < n; k++)
            for (int j = 0; j < ENG_LANES; j++)
                dot[j] += m[start + k * step][j] * d[start + k * step][j];
        for (int k = 0; k < n; k++)
            for (int j = 0; j < ENG_LANES; j++)
                d[start + k * step][j] = (d[start + k * step][j] - dot[j]) * sums[i][j];
    }
}

static inline void exp_lanes(Lanes *m, int n)
{
    Lanes most;
    for (int j = 0; j < ENG_LANES; j++) most[j] = m[0][j];
    for (int i = 1; i < n * n; i++)
        for (int j = 0; j < ENG_LANES; j++) most[j] = m[i][j] > most[j] ? m[i][j] : most[j];
    for (int i = 0; i < n * n; i++)
        for (int j = 0; j < ENG_LANES; j++) m[i][j] = eng_exp_of(m[i][j] - most[j]);
}

ENG_CLONES static void sinkhorn_lanes(Lanes *m, int n, int rounds)
{
    Lanes sums[MAX_N];
    exp_lanes(m, n);
    for (int round = 0; round < 2 * rounds; round++) normalise_lanes(m, n, round % 2, sums);
}

/* m: logits; d: gradient of the result, becomes that of the logits. work: room for the 2 rounds + 1
 * matrices of the way. */
ENG_CLONES static void sinkhorn_lanes_back(const Lanes *m, Lanes *d, int n, int rounds, Lanes *work)
{
    static _Thread_local Lanes sums[2 * MAX_ROUNDS][MAX_N];
    int all = n * n;
    memcpy(work, m, (size_t)all * sizeof *m);
    exp_lanes(work, n);
    for (int round = 0; round < 2 * rounds; round++) {
        Lanes *next = work + (round + 1) * all;
        memcpy(next, next - all, (size_t)all * sizeof *next);
        normalise_lanes(next, n, round % 2, sums[round]);
    }
    for (int round = 2 * rounds; round-- > 0;)
        normalise_lanes_back((const Lanes *)work + (round + 1) * all, d, n, round % 2,
                             (const Lanes *)sums[round]);
    for (int i = 0; i < all; i++)
        for (int j = 0; j < ENG_LANES; j++) d[i][j] *= work[i][j];
}

/* ---- coefficients ---- */

static inline EngReal part_gain(const EngReal *gain, int i, int n)
{
    return gain[i < n ? 0 : i < 2 * n ? 1 : 2];
}

/* From raw products of `tokens` <= 16 tokens to pre, post and res. */
static void finish_coefficients(const EngReal *raw, const EngReal *scale, EngReal *mix,
                                int64_t tokens, int n, const EngReal *gain, const EngReal *bias,
                                int rounds)
{
    int m = n * (n + 2);
    Lanes res[MAX_N * MAX_N] = {{0}};
    for (int64_t t = 0; t < tokens; t++) {
        EngReal *own = mix + t * m;
        for (int i = 0; i < m; i++)
            own[i] = part_gain(gain, i, n) * raw[t * m + i] * scale[t] + bias[i];
        for (int i = 0; i < n * n; i++) res[i][t] = own[2 * n + i];
        eng_sigmoid(own, (size_t)(2 * n));
        for (int i = n; i < 2 * n; i++) own[i] *= 2;
    }
    sinkhorn_lanes(res, n, rounds);
    for (int64_t t = 0; t < tokens; t++)
        for (int i = 0; i < n * n; i++) mix[t * m + 2 * n + i] = res[i][t];
}

/* d [tokens, m] of the coefficients becomes that of gain * raw * scale + bias. */
static void coefficients_back(const EngReal *raw, const EngReal *scale, const EngReal *mix,
                              EngReal *d, int64_t tokens, int n, const EngReal *gain,
                              const EngReal *bias, int rounds)
{
    static _Thread_local Lanes work[(2 * MAX_ROUNDS + 1) * MAX_N * MAX_N];
    int m = n * (n + 2);
    Lanes logits[MAX_N * MAX_N] = {{0}}, d_res[MAX_N * MAX_N] = {{0}};
    for (int64_t t = 0; t < tokens; t++) {
        EngReal *own = d + t * m;
        const EngReal *value = mix + t * m;
        for (int i = 0; i < n; i++) own[i] *= value[i] * (1 - value[i]);
        for (int i = n; i < 2 * n; i++) own[i] *= value[i] * (1 - value[i] / 2);
        for (int i = 0; i < n * n; i++) {
            logits[i][t] = gain[2] * raw[t * m + 2 * n + i] * scale[t] + bias[2 * n + i];
            d_res[i][t] = own[2 * n + i];
        }
    }
    sinkhorn_lanes_back((const Lanes *)logits, d_res, n, rounds, work);
    for (int64_t t = 0; t < tokens; t++)
        for (int i = 0; i < n * n; i++) d[t * m + 2 * n + i] = d_res[i][t];
}

/* ---- reading ---- */

EngStatus eng_streams_read(EngLane *lane, int layer, bool moe, EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    Half half = half_of(lane, layer, moe);
    EngHalfKept *kept = half.kept;
    int64_t n = c->streams, d = c->hidden, width = n * d, m = n * (n + 2);
    if (n == 1) {
        if (kept->x != kept->streams)
            memcpy(kept->x, kept->streams, (size_t)(lane->tokens * d) * sizeof *kept->x);
        return ENG_OK;
    }
    EngDense mixing = eng_dense(lane, half.mix, layer, 0);
    EngStatus status =
        eng_dense_forward(lane->products, &mixing, kept->streams, lane->tokens, kept->raw, err);
    if (status) return status;
    for (int64_t t = 0; t < lane->tokens; t++)
        kept->scale[t] = eng_reciprocal_rms(kept->streams + t * width, width, c->norm_eps);
    for (int64_t t = 0; t < lane->tokens; t += ENG_LANES) {
        int64_t some = lane->tokens - t < ENG_LANES ? lane->tokens - t : ENG_LANES;
        finish_coefficients(kept->raw + t * m, kept->scale + t, kept->mix + t * m, some, c->streams,
                            eng_value(lane, half.gain, layer), eng_value(lane, half.bias, layer),
                            c->sinkhorn_iters);
    }
    memset(kept->x, 0, (size_t)(lane->tokens * d) * sizeof *kept->x);
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t k = 0; k < n; k++)
            eng_add_scaled(kept->x + t * d, kept->streams + t * width + k * d, kept->mix[t * m + k],
                           (size_t)d);
    return ENG_OK;
}

void eng_streams_norm(EngLane *lane, int layer, bool moe)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    Half half = half_of(lane, layer, moe);
    eng_norm_forward(half.kept->x, eng_value(lane, half.norm, layer), c->norm_eps, lane->tokens,
                     c->hidden, half.kept->rstd, half.kept->normed);
}

void eng_streams_norm_back(EngLane *lane, int layer, bool moe, const EngReal *d_normed,
                           EngReal *d_x)
{
    Half half = half_of(lane, layer, moe);
    eng_norm_backward(half.kept->x, eng_value(lane, half.norm, layer), half.kept->rstd, d_normed,
                      lane->tokens, lane->trainer->config.model.hidden, d_x,
                      eng_gradient(lane, half.norm, layer));
}

/* Gradients of the coefficients, in scratch.mix, to gains, biases, weights and streams. */
static EngStatus mixing_back(EngLane *lane, int layer, const Half *half, EngReal *d_streams,
                             EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngHalfKept *kept = half->kept;
    int n = c->streams, m = n * (n + 2);
    int64_t width = (int64_t)n * c->hidden;
    const EngReal *gain = eng_value(lane, half->gain, layer);
    EngReal *d_gain = eng_gradient(lane, half->gain, layer);
    EngReal *d_bias = eng_gradient(lane, half->bias, layer), *d = lane->scratch.mix;
    for (int64_t t = 0; t < lane->tokens; t += ENG_LANES) {
        int64_t some = lane->tokens - t < ENG_LANES ? lane->tokens - t : ENG_LANES;
        coefficients_back(kept->raw + t * m, kept->scale + t, kept->mix + t * m, d + t * m, some, n,
                          gain, eng_value(lane, half->bias, layer), c->sinkhorn_iters);
    }
    for (int64_t t = 0; t < lane->tokens; t++) {
        const EngReal *raw = kept->raw + t * m, scale = kept->scale[t];
        EngReal d_scale = 0, *own = d + t * m;
        for (int i = 0; i < m; i++) {
            int part = i < n ? 0 : i < 2 * n ? 1 : 2;
            d_bias[i] += own[i];
            d_gain[part] += own[i] * raw[i] * scale;
            d_scale += own[i] * gain[part] * raw[i];
            own[i] *= gain[part] * scale;
        }
        eng_add_scaled(d_streams + t * width, kept->streams + t * width,
                       -d_scale * scale * scale * scale / (EngReal)width, (size_t)width);
    }
    EngDense mixing = eng_dense(lane, half->mix, layer, 0);
    EngStatus status =
        eng_dense_weight(lane->products, &mixing, kept->streams, d, lane->tokens, err);
    if (status) return status;
    return eng_dense_input(lane->products, &mixing, d, lane->tokens, d_streams, true, err);
}

EngStatus eng_streams_read_back(EngLane *lane, int layer, bool moe, const EngReal *d_x,
                                EngReal *d_streams, EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    Half half = half_of(lane, layer, moe);
    int64_t n = c->streams, d = c->hidden, width = n * d, m = n * (n + 2);
    if (n == 1) {
        eng_add(d_streams, d_x, d_streams, (size_t)(lane->tokens * d));
        return ENG_OK;
    }
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t k = 0; k < n; k++) {
            const EngReal *from = half.kept->streams + t * width + k * d;
            lane->scratch.mix[t * m + k] = eng_dot(d_x + t * d, from, d);
            eng_add_scaled(d_streams + t * width + k * d, d_x + t * d, half.kept->mix[t * m + k],
                           (size_t)d);
        }
    return mixing_back(lane, layer, &half, d_streams, err);
}

/* ---- writing ---- */

void eng_streams_write(EngLane *lane, int layer, bool moe, EngReal *next)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngHalfKept *kept = half_of(lane, layer, moe).kept;
    int64_t n = c->streams, d = c->hidden, width = n * d, m = n * (n + 2);
    if (n == 1) {
        eng_add(kept->streams, kept->y, next, (size_t)(lane->tokens * d));
        return;
    }
    memset(next, 0, (size_t)(lane->tokens * width) * sizeof *next);
    for (int64_t t = 0; t < lane->tokens; t++) {
        const EngReal *h = kept->streams + t * width, *mix = kept->mix + t * m;
        for (int64_t i = 0; i < n; i++) {
            EngReal *to = next + t * width + i * d;
            for (int64_t k = 0; k < n; k++)
                eng_add_scaled(to, h + k * d, mix[2 * n + i * n + k], (size_t)d);
            eng_add_scaled(to, kept->y + t * d, mix[n + i], (size_t)d);
        }
    }
}

/* One token of several streams; old: d of what was written, to: d of the streams. */
static void write_token_back(const EngReal *h, const EngReal *y, const EngReal *mix, int64_t n,
                             int64_t d, const EngReal *old, EngReal *to, EngReal *d_y,
                             EngReal *d_mix)
{
    memset(to, 0, (size_t)(n * d) * sizeof *to);
    memset(d_y, 0, (size_t)d * sizeof *d_y);
    for (int64_t i = 0; i < n; i++) {
        const EngReal *own = old + i * d;
        eng_add_scaled(d_y, own, mix[n + i], (size_t)d);
        d_mix[n + i] = eng_dot(own, y, d);
        for (int64_t k = 0; k < n; k++) {
            d_mix[2 * n + i * n + k] = eng_dot(own, h + k * d, d);
            eng_add_scaled(to + k * d, own, mix[2 * n + i * n + k], (size_t)d);
        }
    }
}

void eng_streams_write_back(EngLane *lane, int layer, bool moe, EngReal *d_streams, EngReal *d_y)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngHalfKept *kept = half_of(lane, layer, moe).kept;
    int64_t n = c->streams, d = c->hidden, width = n * d, m = n * (n + 2);
    if (n == 1) {
        memcpy(d_y, d_streams, (size_t)(lane->tokens * d) * sizeof *d_y);
        return;
    }
    for (int64_t t = 0; t < lane->tokens; t++) {
        EngReal *own = d_streams + t * width, *old = lane->scratch.token;
        memcpy(old, own, (size_t)width * sizeof *old);
        write_token_back(kept->streams + t * width, kept->y + t * d, kept->mix + t * m, n, d, old,
                         own, d_y + t * d, lane->scratch.mix + t * m);
    }
}
