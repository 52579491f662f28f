/* Engram of training: rows, projection, gate, short conv, write-back, forward and backward
 * (engram_facts sections 6 and 7), in f32 without intermediate rounding. */
#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/pointwise.h"
#include "bench/backbone/train_parts.h"

#define LEAST_SCORE 1e-6 /* below it the signed root is flat */

/* ---- rows ---- */

static void gather_e(EngLane *lane, int module)
{
    const EngTrainer *t = lane->trainer;
    const EngReal *table = eng_value(lane, ENG_W_TABLE, module);
    int64_t columns = t->address.n_columns, dims = t->config.row_dims;
    int64_t stride = t->address.n_layers * columns;
    EngReal *e = lane->engrams[module].e;
    for (int64_t i = 0; i < lane->tokens; i++)
        for (int64_t c = 0; c < columns; c++, e += dims)
            memcpy(e, table + lane->rows[i * stride + module * columns + c] * dims,
                   (size_t)dims * sizeof *e);
}

static EngStatus project(EngLane *lane, int module, EngErr *err)
{
    EngEngramKept *kept = &lane->engrams[module];
    EngDense kv = eng_dense(lane, ENG_W_ENGRAM_KV, module, 0);
    gather_e(lane, module);
    EngStatus status = eng_dense_forward(lane->products, &kv, kept->e, lane->tokens, kept->kv, err);
    for (int64_t t = 0; t < lane->tokens && !status && lane->trainer->config.kv_bias; t++)
        eng_add(kept->kv + t * kv.out, eng_value(lane, ENG_W_ENGRAM_KV_BIAS, module),
                kept->kv + t * kv.out, (size_t)kv.out);
    return status;
}

/* From scratch.kv, the gradient of keys and values, to weights and rows. */
static EngStatus project_back(EngLane *lane, int module, EngErr *err)
{
    EngDense kv = eng_dense(lane, ENG_W_ENGRAM_KV, module, 0);
    const EngReal *d_kv = lane->scratch.kv;
    EngReal *d_e = lane->d_e + module * lane->trainer->config.batch_tokens * kv.in;
    for (int64_t t = 0; t < lane->tokens && lane->trainer->config.kv_bias; t++) {
        EngReal *d_bias = eng_gradient(lane, ENG_W_ENGRAM_KV_BIAS, module);
        eng_add(d_bias, d_kv + t * kv.out, d_bias, (size_t)kv.out);
    }
    return eng_dense_backward(lane->products, &kv, lane->engrams[module].e, d_kv, lane->tokens, d_e,
                              false, err);
}

/* ---- gate of one stream of one token ---- */

typedef struct Gate {
    EngReal score, gate, rx, rk;
} Gate;

static inline EngReal sigmoid_of(EngReal x)
{
    return 1 / (1 + (EngReal)exp(-(double)x));
}

static EngReal gate_of(EngGateFormula formula, EngReal score)
{
    EngReal size = score < 0 ? -score : score;
    if (formula == ENG_GATE_PLAIN) return sigmoid_of(score);
    if (formula == ENG_GATE_SIGN && score == 0) return (EngReal)0.5;
    EngReal root =
        (EngReal)sqrt((double)(size > (EngReal)LEAST_SCORE ? size : (EngReal)LEAST_SCORE));
    return sigmoid_of(signbit(score) ? -root : root);
}

/* d gate / d score */
static EngReal gate_slope(EngGateFormula formula, EngReal score, EngReal gate)
{
    EngReal size = score < 0 ? -score : score, slope = gate * (1 - gate);
    if (formula == ENG_GATE_PLAIN) return slope;
    return size < (EngReal)LEAST_SCORE ? 0 : slope / (2 * (EngReal)sqrt((double)size));
}

ENG_CLONES static void three_sums(const EngReal *x, const EngReal *k, const EngReal *w, int64_t n,
                                  EngReal out[3])
{
    EngReal a[ENG_LANES] = {0}, b[ENG_LANES] = {0}, c[ENG_LANES] = {0};
    int64_t whole = n - n % ENG_LANES;
    for (int64_t i = 0; i < whole; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) {
            a[j] += x[i + j] * x[i + j];
            b[j] += k[i + j] * k[i + j];
            c[j] += x[i + j] * w[i + j] * k[i + j];
        }
    for (int64_t i = whole; i < n; i++)
        a[0] += x[i] * x[i], b[0] += k[i] * k[i], c[0] += x[i] * w[i] * k[i];
    for (int j = 1; j < ENG_LANES; j++) a[0] += a[j], b[0] += b[j], c[0] += c[j];
    out[0] = a[0], out[1] = b[0], out[2] = c[0];
}

static Gate gate_forward(const EngTrainConfig *config, const EngReal *x, const EngReal *k,
                         const EngReal *w)
{
    int64_t d = config->model.hidden;
    EngReal sums[3];
    if (config->gate_off) return (Gate){0, 1, 0, 0};
    three_sums(x, k, w, d, sums);
    Gate g;
    g.rx = 1 / (EngReal)sqrt((double)(sums[0] / (EngReal)d) + (double)config->gate_eps);
    g.rk = 1 / (EngReal)sqrt((double)(sums[1] / (EngReal)d) + (double)config->gate_eps);
    g.score = sums[2] * g.rx * g.rk / (EngReal)sqrt((double)d);
    g.gate = gate_of(config->gate, g.score);
    return g;
}

/* d: of raw = sum x w k. Adds to d_x, writes d_k, adds to d_w (of w). */
ENG_CLONES static void gate_row_back(const EngReal *x, const EngReal *k, const EngReal *w,
                                     EngReal d, EngReal pull_x, EngReal pull_k, int64_t n,
                                     EngReal *d_x, EngReal *d_k, EngReal *d_w)
{
    for (int64_t i = 0; i < n; i++) {
        d_x[i] += d * (k[i] * w[i] - x[i] * pull_x);
        d_k[i] = d * (x[i] * w[i] - k[i] * pull_k);
        d_w[i] += d * x[i] * k[i];
    }
}

static void gate_backward(const EngTrainConfig *config, Gate g, const EngReal *x, const EngReal *k,
                          const EngReal *w, EngReal d_gate, EngReal *d_x, EngReal *d_k,
                          EngReal *d_w)
{
    int64_t n = config->model.hidden;
    if (config->gate_off) {
        memset(d_k, 0, (size_t)n * sizeof *d_k);
        return;
    }
    EngReal c = 1 / (EngReal)sqrt((double)n), raw = g.score / (c * g.rx * g.rk);
    EngReal d = d_gate * gate_slope(config->gate, g.score, g.gate) * c * g.rx * g.rk;
    gate_row_back(x, k, w, d, raw * g.rx * g.rx / (EngReal)n, raw * g.rk * g.rk / (EngReal)n, n,
                  d_x, d_k, d_w);
}

/* ---- short conv: y = v + silu(conv(norm(v))), taps t, t - dilation, .. within a sequence ---- */

/* taps [kernel, channels] of weights [channels, kernel] */
static void turn(const EngReal *from, int64_t rows, int64_t columns, EngReal *to)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
}

ENG_CLONES static void add_product(EngReal *to, const EngReal *a, const EngReal *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += a[i] * b[i];
}

ENG_CLONES static void add_silu(const EngReal *x, EngReal *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += x[i] / (1 + eng_exp_of(-x[i]));
}

ENG_CLONES static void silu_back(EngReal *x, const EngReal *d_out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        EngReal s = 1 / (1 + eng_exp_of(-x[i]));
        x[i] = d_out[i] * s * (1 + x[i] * (1 - s));
    }
}

/* kept->value -> kept->conv; out += value + silu(conv) */
static void conv_forward(EngLane *lane, int module, EngReal *out)
{
    const EngTrainConfig *config = &lane->trainer->config;
    EngEngramKept *kept = &lane->engrams[module];
    int n = eng_train_module_streams(config);
    int64_t d = config->model.hidden, width = n * d, kernel = config->conv_kernel;
    const EngReal *norm = eng_value(lane, ENG_W_ENGRAM_CONV_NORM, module);
    EngReal *taps = lane->scratch.taps;
    turn(eng_value(lane, ENG_W_ENGRAM_CONV, module), width, kernel, taps);
    memset(kept->conv, 0, (size_t)(lane->tokens * width) * sizeof *kept->conv);
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t s = 0; s < n; s++)
            eng_norm_forward(kept->value + t * width + s * d, norm + s * d, (EngReal)1e-5, 1, d,
                             kept->conv_rstd + t * n + s, kept->normed + t * width + s * d);
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t tap = 0; tap < kernel; tap++) {
            int64_t lag = (kernel - 1 - tap) * config->max_order;
            if (lag <= t % config->seq_len)
                add_product(kept->conv + t * width, taps + tap * width,
                            kept->normed + (t - lag) * width, width);
        }
    eng_add(out, kept->value, out, (size_t)(lane->tokens * width));
    add_silu(kept->conv, out, lane->tokens * width);
}

/* d_out of out; d_value is written. kept->conv is used up. */
static void conv_backward(EngLane *lane, int module, const EngReal *d_out, EngReal *d_value)
{
    const EngTrainConfig *config = &lane->trainer->config;
    EngEngramKept *kept = &lane->engrams[module];
    int n = eng_train_module_streams(config);
    int64_t d = config->model.hidden, width = n * d, kernel = config->conv_kernel;
    const EngReal *norm = eng_value(lane, ENG_W_ENGRAM_CONV_NORM, module);
    EngReal *d_norm = eng_gradient(lane, ENG_W_ENGRAM_CONV_NORM, module);
    EngReal *taps = lane->scratch.taps, *d_taps = taps + kernel * width;
    turn(eng_value(lane, ENG_W_ENGRAM_CONV, module), width, kernel, taps);
    memset(d_taps, 0, (size_t)(kernel * width) * sizeof *d_taps);
    memset(d_value, 0, (size_t)(lane->tokens * width) * sizeof *d_value);
    silu_back(kept->conv, d_out, lane->tokens * width);
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t tap = 0; tap < kernel; tap++) {
            int64_t lag = (kernel - 1 - tap) * config->max_order;
            const EngReal *own = kept->conv + t * width;
            if (lag > t % config->seq_len) continue;
            add_product(d_value + (t - lag) * width, taps + tap * width, own, width);
            add_product(d_taps + tap * width, kept->normed + (t - lag) * width, own, width);
        }
    EngReal *d_weight = eng_gradient(lane, ENG_W_ENGRAM_CONV, module);
    for (int64_t c = 0; c < width; c++)
        for (int64_t tap = 0; tap < kernel; tap++)
            d_weight[c * kernel + tap] += d_taps[tap * width + c];
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t s = 0; s < n; s++) {
            int64_t at = t * width + s * d;
            eng_norm_backward(kept->value + at, norm + s * d, kept->conv_rstd + t * n + s,
                              d_value + at, 1, d, d_value + at, d_norm + s * d);
        }
    eng_add(d_value, d_out, d_value, (size_t)(lane->tokens * width));
}

/* ---- the module ---- */

static void weigh(EngLane *lane, int module, int64_t width)
{
    const EngReal *q = eng_value(lane, ENG_W_ENGRAM_QUERY, module);
    const EngReal *k = eng_value(lane, ENG_W_ENGRAM_KEY, module);
    for (int64_t i = 0; i < width; i++) lane->scratch.weight[i] = q[i] * k[i];
}

EngStatus eng_train_engram(EngLane *lane, int module, const EngReal *x, EngReal *out, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    EngEngramKept *kept = &lane->engrams[module];
    int n = eng_train_module_streams(config), layer = config->engram_at[module];
    int64_t d = config->model.hidden, width = n * d;
    EngStatus status = project(lane, module, err);
    if (status) return status;
    if (out != x) memcpy(out, x, (size_t)(lane->tokens * width) * sizeof *out);
    weigh(lane, module, width);
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t s = 0; s < n; s++) {
            const EngReal *kv = kept->kv + t * (width + d), *value = kv + width;
            Gate g = gate_forward(config, x + t * width + s * d, kv + s * d,
                                  lane->scratch.weight + s * d);
            kept->gates[t * n + s] = g.gate, kept->scores[t * n + s] = g.score;
            kept->rx[t * n + s] = g.rx, kept->rk[t * n + s] = g.rk;
            EngReal *to = (config->conv_kernel ? kept->value : out) + t * width + s * d;
            if (config->conv_kernel) memset(to, 0, (size_t)d * sizeof *to);
            if (!lane->suppress) eng_add_scaled(to, value, g.gate, (size_t)d);
        }
    if (config->conv_kernel && !lane->suppress) conv_forward(lane, module, out);
    eng_show(lane, layer, ENG_TV_SCORE, kept->scores, n);
    eng_show(lane, layer, ENG_TV_GATE, kept->gates, n);
    return ENG_OK;
}

EngStatus eng_train_engram_back(EngLane *lane, int module, const EngReal *x, EngReal *d_out,
                                EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    EngEngramKept *kept = &lane->engrams[module];
    int n = eng_train_module_streams(config);
    int64_t d = config->model.hidden, width = n * d;
    EngReal *weight = lane->scratch.weight, *d_weight = weight + width;
    const EngReal *d_gated = d_out;
    weigh(lane, module, width);
    memset(d_weight, 0, (size_t)width * sizeof *d_weight);
    if (config->conv_kernel) {
        conv_backward(lane, module, d_out, lane->scratch.gated);
        d_gated = lane->scratch.gated;
    }
    for (int64_t t = 0; t < lane->tokens; t++) {
        const EngReal *kv = kept->kv + t * (width + d), *value = kv + width;
        EngReal *d_kv = lane->scratch.kv + t * (width + d), *d_value = d_kv + width;
        memset(d_value, 0, (size_t)d * sizeof *d_value);
        for (int64_t s = 0; s < n; s++) {
            int64_t at = t * width + s * d, i = t * n + s;
            Gate g = {kept->scores[i], kept->gates[i], kept->rx[i], kept->rk[i]};
            EngReal d_gate = eng_dot(d_gated + at, value, d);
            eng_add_scaled(d_value, d_gated + at, g.gate, (size_t)d);
            gate_backward(config, g, x + at, kv + s * d, weight + s * d, d_gate, d_out + at,
                          d_kv + s * d, d_weight + s * d);
        }
    }
    const EngReal *q = eng_value(lane, ENG_W_ENGRAM_QUERY, module);
    const EngReal *k = eng_value(lane, ENG_W_ENGRAM_KEY, module);
    add_product(eng_gradient(lane, ENG_W_ENGRAM_QUERY, module), d_weight, k, width);
    add_product(eng_gradient(lane, ENG_W_ENGRAM_KEY, module), d_weight, q, width);
    return project_back(lane, module, err);
}

/* ---- over-encoding ---- */

EngStatus eng_train_over_encode(EngLane *lane, EngReal *x, EngErr *err)
{
    int64_t n = lane->tokens * lane->trainer->config.model.hidden;
    EngStatus status = project(lane, 0, err);
    if (status) return status;
    if (!lane->suppress) eng_add(x, lane->engrams[0].kv, x, (size_t)n);
    eng_scale(x, (EngReal)0.5, n); /* a silent memory gives 0 to the average */
    return ENG_OK;
}

EngStatus eng_train_over_encode_back(EngLane *lane, EngReal *d_x, EngErr *err)
{
    int64_t n = lane->tokens * lane->trainer->config.model.hidden;
    eng_scale(d_x, (EngReal)0.5, n);
    memcpy(lane->scratch.kv, d_x, (size_t)n * sizeof *d_x);
    return project_back(lane, 0, err);
}
