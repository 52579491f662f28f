/* The number type of training: float. Tests of gradients compile the same sources with double
 * (ENG_BACKBONE_DOUBLE), so that differences are taken where rounding does not hide mistakes. */
#ifndef ENG_BENCH_BACKBONE_REAL_H
#define ENG_BENCH_BACKBONE_REAL_H

#include <math.h>

#include "kernels/cpu/common.h"

#ifdef ENG_BACKBONE_DOUBLE
typedef double EngReal;
static inline double eng_exp_of(double x)
{
    return exp(x);
}

static inline double eng_exp_falling(double x)
{
    return exp(x);
}
#else
typedef float EngReal;
/* e^x to about 1e-7 relative (Cody and Waite's reduction, degree 7), 0 below e^-87, NaN for NaN;
 * without branches, so that loops over it become vector code. */
static inline float eng_exp_falling(float x) /* x at most 88 */
{
    float turns = x * 1.44269504f + 12582912.0f; /* rounds: 1.5 * 2^23 */
    float whole = turns - 12582912.0f;
    float r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
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

static inline float eng_exp_of(float x)
{
    return eng_exp_falling(x > 88.0f ? 88.0f : x);
}
#endif

#endif
