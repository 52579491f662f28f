/* Row-wise parts of training; see grad_pointwise.h. Leaf functions are compiled for several
 * instruction sets; sums run in sixteen lanes, so that all of them give the same bits. */
#include "bench/backbone/grad_pointwise.h"

#include "bench/backbone/pointwise.h"

static inline EngReal add_lanes(const EngReal lanes[ENG_LANES])
{
    EngReal half[ENG_LANES / 2], sum = 0;
    for (int i = 0; i < ENG_LANES / 2; i++) half[i] = lanes[i] + lanes[i + ENG_LANES / 2];
    for (int i = 0; i < ENG_LANES / 2; i++) sum += half[i];
    return sum;
}

static inline EngReal dot_of(const EngReal *a, const EngReal *b, int64_t n)
{
    EngReal lanes[ENG_LANES] = {0};
    int64_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) lanes[j] += a[i + j] * b[i + j];
    for (; i < n; i++) lanes[i % ENG_LANES] += a[i] * b[i];
    return add_lanes(lanes);
}

ENG_CLONES EngReal eng_dot(const EngReal *a, const EngReal *b, int64_t n)
{
    return dot_of(a, b, n);
}

ENG_CLONES void eng_add(const EngReal *a, const EngReal *b, EngReal *out, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

ENG_CLONES void eng_scale(EngReal *row, EngReal scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++) row[i] *= scale;
}

/* ---- norm ---- */

static inline EngReal reciprocal_root(EngReal x)
{
    return 1 / (EngReal)sqrt((double)x);
}

ENG_CLONES void eng_norm_forward(const EngReal *x, const EngReal *weight, EngReal eps, int64_t rows,
                                 int64_t n, EngReal *rstd, EngReal *out)
{
    for (int64_t r = 0; r < rows; r++) {
        const EngReal *from = x + r * n;
        EngReal scale = reciprocal_root(dot_of(from, from, n) / (EngReal)n + eps),
                *to = out + r * n;
        rstd[r] = scale;
        for (int64_t i = 0; i < n; i++) to[i] = from[i] * scale * weight[i];
    }
}

ENG_CLONES void eng_norm_backward(const EngReal *x, const EngReal *weight, const EngReal *rstd,
                                  const EngReal *d_out, int64_t rows, int64_t n, EngReal *d_x,
                                  EngReal *d_weight)
{
    for (int64_t r = 0; r < rows; r++) {
        const EngReal *from = x + r * n, *d = d_out + r * n;
        EngReal lanes[ENG_LANES] = {0}, *to = d_x + r * n, scale = rstd[r];
        int64_t i = 0;
        for (; i + ENG_LANES <= n; i += ENG_LANES)
            for (int j = 0; j < ENG_LANES; j++) lanes[j] += d[i + j] * weight[i + j] * from[i + j];
        for (; i < n; i++) lanes[i % ENG_LANES] += d[i] * weight[i] * from[i];
        EngReal pull = add_lanes(lanes) * scale * scale * scale / (EngReal)n;
        for (i = 0; i < n; i++) {
            EngReal own = d[i];
            d_weight[i] += own * from[i] * scale;
            to[i] = own * weight[i] * scale - from[i] * pull;
        }
    }
}

/* ---- SwiGLU ---- */

ENG_CLONES static void swiglu_row_back(EngReal *gate, EngReal *up, const EngReal *d_act, int64_t w,
                                       EngReal scale, EngReal *act, EngReal *d_scale)
{
    EngReal lanes[ENG_LANES] = {0};
    int64_t whole = w - w % ENG_LANES;
    for (int64_t i = 0; i < w; i++) {
        EngReal g = gate[i], u = up[i], d = d_act[i] * scale;
        EngReal s = 1 / (1 + eng_exp_of(-g)), silu = g * s;
        act[i] = silu * u;
        up[i] = d * silu;
        gate[i] = d * u * (s + silu * (1 - s));
    }
    if (!d_scale) return;
    for (int64_t i = 0; i < whole; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) lanes[j] += act[i + j] * d_act[i + j];
    for (int64_t i = whole; i < w; i++) lanes[i % ENG_LANES] += act[i] * d_act[i];
    *d_scale = add_lanes(lanes);
    for (int64_t i = 0; i < w; i++) act[i] *= scale;
}

void eng_swiglu_backward(EngReal *x, const EngReal *d_act, const EngReal *row_scale, int64_t rows,
                         int64_t w, EngReal *act, EngReal *d_scale)
{
    for (int64_t r = 0; r < rows; r++)
        swiglu_row_back(x + 2 * r * w, x + 2 * r * w + w, d_act + r * w, w,
                        row_scale ? row_scale[r] : 1, act + r * w, row_scale ? d_scale + r : NULL);
}

/* ---- attention ---- */

ENG_CLONES void eng_rope_backward(EngReal *heads, int n_heads, int head_dim, const EngReal *cos,
                                  const EngReal *sin)
{
    int half = head_dim / 2;
    for (int h = 0; h < n_heads; h++) {
        EngReal *a = heads + (size_t)h * (size_t)head_dim, *b = a + half;
        for (int i = 0; i < half; i++) {
            EngReal x = a[i], y = b[i];
            a[i] = x * cos[i] + y * sin[i];
            b[i] = y * cos[i] - x * sin[i];
        }
    }
}

static inline EngReal largest_of(const EngReal *row, int64_t n)
{
    EngReal most = row[0];
#pragma omp simd reduction(max : most) /* without it the compiler compares one by one */
    for (int64_t i = 0; i < n; i++) most = row[i] > most ? row[i] : most;
    return most;
}

/* Exponentials of row minus its largest, in place; their sum, and the largest. */
static inline EngReal exponentials(EngReal *row, int64_t n, EngReal *largest)
{
    EngReal lanes[ENG_LANES] = {0}, most = largest_of(row, n);
    int64_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) {
            row[i + j] = eng_exp_falling(row[i + j] - most);
            lanes[j] += row[i + j];
        }
    for (; i < n; i++) {
        row[i] = eng_exp_falling(row[i] - most);
        lanes[i % ENG_LANES] += row[i];
    }
    *largest = most;
    return add_lanes(lanes);
}

ENG_CLONES EngReal eng_softmax_scaled(EngReal *row, EngReal scale, int64_t n)
{
    EngReal most, sum = exponentials(row, n, &most), share = scale / sum;
    for (int64_t i = 0; i < n; i++) row[i] *= share;
    return most + (EngReal)log((double)sum);
}

ENG_CLONES EngReal eng_softmax_rounded(EngReal *row, EngReal scale, int64_t n, uint16_t *out)
{
    EngReal most, sum = exponentials(row, n, &most), share = scale / sum;
    for (int64_t i = 0; i < n; i++) { /* finite and not negative: no NaN to keep */
        float value = (float)(row[i] * share);
        uint32_t bits = eng_cpu_bits_of(value);
        out[i] = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
    return most + (EngReal)log((double)sum);
}

/* Fills up to whole vectors with what exponentiates to 0: scalar tails would cost more. */
static inline int64_t pad_row(EngReal *row, int64_t n, int64_t size)
{
    int64_t whole = (n + ENG_LANES - 1) / ENG_LANES * ENG_LANES;
    if (whole > size) whole = size;
    for (int64_t i = n; i < whole; i++) row[i] = -(EngReal)INFINITY;
    for (int64_t i = whole; i < size; i++) row[i] = 0;
    return whole;
}

ENG_CLONES EngReal eng_softmax_lse(EngReal *row, int64_t n, int64_t size)
{
    int64_t whole = pad_row(row, n, size);
    EngReal most, sum = exponentials(row, whole, &most), share = 1 / sum;
    for (int64_t i = 0; i < whole; i++) row[i] *= share;
    return most + (EngReal)log((double)sum);
}

ENG_CLONES void eng_softmax_again(EngReal *row, EngReal lse, int64_t n, int64_t size)
{
    int64_t whole = pad_row(row, n, size), i = 0;
    for (; i + ENG_LANES <= whole; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) row[i + j] = eng_exp_falling(row[i + j] - lse);
    for (; i < whole; i++) row[i] = eng_exp_falling(row[i] - lse);
}

ENG_CLONES void eng_softmax_backward(const EngReal *p, EngReal *d, EngReal shift, EngReal scale,
                                     int64_t n)
{
    for (int64_t i = 0; i < n; i++) d[i] = p[i] * (d[i] - shift) * scale;
}
