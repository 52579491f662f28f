/* Elementwise and row-wise parts; see pointwise.h. Leaf functions are compiled for several
 * instruction sets; sums run in sixteen lanes, so that all of them give the same bits. */
#include "bench/backbone/pointwise.h"

#include <math.h>
#include <string.h>

ENG_CLONES void eng_to_bf16(const EngReal *from, uint16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        float value = (float)from[i];
        memcpy(&bits, &value, sizeof bits);
        uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
        to[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);
    }
}

ENG_CLONES void eng_from_bf16(const uint16_t *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

static inline EngReal sum_lanes(const EngReal lanes[ENG_LANES])
{
    EngReal sum = 0;
    for (int i = 0; i < ENG_LANES; i++) sum += lanes[i];
    return sum;
}

ENG_CLONES static EngReal sum_squares(const EngReal *x, int64_t n)
{
    EngReal lanes[ENG_LANES] = {0};
    int64_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) lanes[j] += x[i + j] * x[i + j];
    for (; i < n; i++) lanes[i % ENG_LANES] += x[i] * x[i];
    return sum_lanes(lanes);
}

EngReal eng_reciprocal_rms(const EngReal *x, int64_t n, EngReal eps)
{
    return 1 / (EngReal)sqrt((double)(sum_squares(x, n) / (EngReal)n + eps));
}

ENG_CLONES static void scale_row(const EngReal *x, const EngReal *weight, EngReal scale, int64_t n,
                                 EngReal *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * scale * weight[i];
}

void eng_rms_norm(const EngReal *x, const EngReal *weight, EngReal eps, int64_t rows, int64_t n,
                  EngReal *out)
{
    for (int64_t r = 0; r < rows; r++)
        scale_row(x + r * n, weight, eng_reciprocal_rms(x + r * n, n, eps), n, out + r * n);
}

ENG_CLONES void eng_rope(EngReal *heads, int n_heads, int head_dim, const EngReal *cos,
                         const EngReal *sin)
{
    int half = head_dim / 2;
    for (int h = 0; h < n_heads; h++) {
        EngReal *a = heads + (size_t)h * (size_t)head_dim, *b = a + half;
        for (int i = 0; i < half; i++) {
            EngReal x = a[i], y = b[i];
            a[i] = x * cos[i] - y * sin[i];
            b[i] = y * cos[i] + x * sin[i];
        }
    }
}

ENG_CLONES static void swiglu_row(const EngReal *gate, const EngReal *up, int64_t w, EngReal *out)
{
    for (int64_t i = 0; i < w; i++) out[i] = gate[i] / (1.0f + eng_exp_of(-gate[i])) * up[i];
}

void eng_swiglu(const EngReal *x, int64_t rows, int64_t w, EngReal *out)
{
    for (int64_t r = 0; r < rows; r++) swiglu_row(x + 2 * r * w, x + 2 * r * w + w, w, out + r * w);
}

/* tanh(z) = 1 - 2 / (e^2z + 1), so that x / 2 (1 + tanh z) = x / (1 + e^-2z). */
ENG_CLONES void eng_gelu(EngReal *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        EngReal z = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        x[i] = x[i] / (1.0f + eng_exp_of(-2.0f * z));
    }
}

ENG_CLONES void eng_sigmoid(EngReal *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = 1.0f / (1.0f + eng_exp_of(-x[i]));
}

ENG_CLONES void eng_softmax(EngReal *row, int64_t n, int64_t size)
{
    EngReal lanes[ENG_LANES], most = row[0];
    int64_t i = 0;
    for (int j = 0; j < ENG_LANES; j++) lanes[j] = most;
    for (; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++)
            lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
    for (; i < n; i++) most = row[i] > most ? row[i] : most;
    for (int j = 0; j < ENG_LANES; j++) most = lanes[j] > most ? lanes[j] : most;
    for (i = 0; i < n; i++) row[i] = eng_exp_of(row[i] - most);
    for (int j = 0; j < ENG_LANES; j++) lanes[j] = 0;
    for (i = 0; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) lanes[j] += row[i + j];
    for (; i < n; i++) lanes[i % ENG_LANES] += row[i];
    EngReal scale = 1.0f / sum_lanes(lanes);
    for (i = 0; i < n; i++) row[i] *= scale;
    for (i = n; i < size; i++) row[i] = 0;
}

ENG_CLONES void eng_add_scaled(EngReal *to, const EngReal *from, EngReal scale, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += scale * from[i];
}
