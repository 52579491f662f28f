/* Small pieces of the training kernels: sums over lanes in one order on every machine, an
 * exponential that vectorises, and work cut into a fixed number of parts, so that gradients of
 * weights do not depend on the number of threads. Internal to kernels/cpu.
 */
#ifndef ENG_KERNELS_CPU_LANES_H
#define ENG_KERNELS_CPU_LANES_H

#include "kernels/cpu/common.h"

/* Tokens are cut into at most as many parts as this, of eight or more, each summing into a buffer
 * of its own; the buffers are then added in order. */
#define ENG_PARTS 32

static inline int eng_cpu_parts(int64_t tokens)
{
    return tokens <= 8 ? 1 : tokens < 8 * ENG_PARTS ? (int)((tokens + 7) / 8) : ENG_PARTS;
}

static inline __attribute__((always_inline)) float eng_lanes_sum(const EngLanesF32 *lanes)
{
    float part[ENG_LANES];
    memcpy(part, lanes, sizeof part);
    for (int width = ENG_LANES / 2; width; width /= 2)
        for (int j = 0; j < width; j++) part[j] += part[j + width];
    return part[0];
}

/* exp to about 2 units in the last place, in arithmetic that vectorises: 2^n times a polynomial
 * over [-ln2/2, ln2/2]. Arguments are cut to [-87, 88]; a NaN gives some number. */
static inline __attribute__((always_inline)) float eng_cpu_exp(float x)
{
    const float to_int = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    float shifted = x * 0x1.715476p0f + to_int, n = shifted - to_int;
    float r = x - n * 0x1.62e400p-1f - n * 0x1.7f7d1cp-20f;
    float p = 0x1.6c16c2p-10f; /* 1/6!, .., 1/2! */
    p = p * r + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0x1p-1f;
    p = p * r * r + r + 1.0f;
    return p * eng_cpu_float_of((eng_cpu_bits_of(shifted) + 127u) << 23);
}

static inline __attribute__((always_inline)) float eng_cpu_sigmoid(float x)
{
    return 1.0f / (1.0f + eng_cpu_exp(-x));
}

#endif
