/* Elementwise and row-wise parts; see pointwise.h. Leaf functions are compiled for several
 * instruction sets; sums run in sixteen lanes, so that all of them give the same bits. */
#include "bench/backbone/pointwise.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/common.h"

/* e^x to about 1e-7 relative (Cody and Waite's reduction, degree 7), 0 below e^-87, NaN for NaN;
 * without branches, so that loops over it become vector code. */
static inline float exp_of(float x)
{
    x = x > 88.0f ? 88.0f : x;
    float low = x < -87.0f ? -87.0f : x;
    float turns = low * 1.44269504f + 12582912.0f; /* rounds: 1.5 * 2^23 */
    float whole = turns - 12582912.0f;
    float r = low - whole * 0.693359375f + whole * 2.12194440e-4f;
    float p = 1.9875692e-4f;
    p = p * r + 1.3981999e-3f;
    p = p * r + 8.3334519e-3f;
    p = p * r + 4.1665795e-2f;
    p = p * r + 1.6666665e-1f;
    p = p * r + 5.0000001e-1f;
    p = p * r * r + r + 1.0f;
    float scale = eng_cpu_float_of((eng_cpu_bits_of(turns) + 127u - 0x4b400000u) << 23);
    return x < -87.0f ? 0.0f : p * scale;
}

ENG_CLONES void eng_to_bf16(const float *from, uint16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
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

static inline float sum_lanes(const float lanes[ENG_LANES])
{
    float sum = 0;
    for (int i = 0; i < ENG_LANES; i++) sum += lanes[i];
    return sum;
}

ENG_CLONES static float sum_squares(const float *x, int64_t n)
{
    float lanes[ENG_LANES] = {0};
    int64_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) lanes[j] += x[i + j] * x[i + j];
    for (; i < n; i++) lanes[i % ENG_LANES] += x[i] * x[i];
    return sum_lanes(lanes);
}

float eng_reciprocal_rms(const float *x, int64_t n, float eps)
{
    return 1.0f / sqrtf(sum_squares(x, n) / (float)n + eps);
}

ENG_CLONES static void scale_row(const float *x, const float *weight, float scale, int64_t n,
                                 float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * scale * weight[i];
}

void eng_rms_norm(const float *x, const float *weight, float eps, int64_t rows, int64_t n,
                  float *out)
{
    for (int64_t r = 0; r < rows; r++)
        scale_row(x + r * n, weight, eng_reciprocal_rms(x + r * n, n, eps), n, out + r * n);
}

ENG_CLONES void eng_rope(float *heads, int n_heads, int head_dim, const float *cos,
                         const float *sin)
{
    int half = head_dim / 2;
    for (int h = 0; h < n_heads; h++) {
        float *a = heads + (size_t)h * (size_t)head_dim, *b = a + half;
        for (int i = 0; i < half; i++) {
            float x = a[i], y = b[i];
            a[i] = x * cos[i] - y * sin[i];
            b[i] = y * cos[i] + x * sin[i];
        }
    }
}

ENG_CLONES static void swiglu_row(const float *gate, const float *up, int64_t w, float *out)
{
    for (int64_t i = 0; i < w; i++) out[i] = gate[i] / (1.0f + exp_of(-gate[i])) * up[i];
}

void eng_swiglu(const float *x, int64_t rows, int64_t w, float *out)
{
    for (int64_t r = 0; r < rows; r++) swiglu_row(x + 2 * r * w, x + 2 * r * w + w, w, out + r * w);
}

/* tanh(z) = 1 - 2 / (e^2z + 1), so that x / 2 (1 + tanh z) = x / (1 + e^-2z). */
ENG_CLONES void eng_gelu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float z = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        x[i] = x[i] / (1.0f + exp_of(-2.0f * z));
    }
}

ENG_CLONES void eng_sigmoid(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = 1.0f / (1.0f + exp_of(-x[i]));
}

ENG_CLONES void eng_softmax(float *row, int64_t n, int64_t size)
{
    float lanes[ENG_LANES], most = row[0];
    int64_t i = 0;
    for (int j = 0; j < ENG_LANES; j++) lanes[j] = most;
    for (; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++)
            lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
    for (; i < n; i++) most = row[i] > most ? row[i] : most;
    for (int j = 0; j < ENG_LANES; j++) most = lanes[j] > most ? lanes[j] : most;
    for (i = 0; i < n; i++) row[i] = exp_of(row[i] - most);
    for (int j = 0; j < ENG_LANES; j++) lanes[j] = 0;
    for (i = 0; i + ENG_LANES <= n; i += ENG_LANES)
        for (int j = 0; j < ENG_LANES; j++) lanes[j] += row[i + j];
    for (; i < n; i++) lanes[i % ENG_LANES] += row[i];
    float scale = 1.0f / sum_lanes(lanes);
    for (i = 0; i < n; i++) row[i] *= scale;
    for (i = n; i < size; i++) row[i] = 0;
}

ENG_CLONES void eng_add_scaled(float *to, const float *from, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += scale * from[i];
}
