/* Formats by definition: sign, exponent and fraction taken apart, put together with ldexp. */
#include "kernels/ref/fp8.h"

#include <math.h>
#include <string.h>

double eng_ref_e4m3(uint8_t byte)
{
    int sign = byte >> 7;
    int exponent = (byte >> 3) & 15;
    int fraction = byte & 7;
    double magnitude;
    if (exponent == 15 && fraction == 7)
        magnitude = NAN;
    else if (exponent == 0)
        magnitude = ldexp(fraction, -9); /* subnormal: fraction/8 * 2^(1-7) */
    else
        magnitude = ldexp(8 + fraction, exponent - 7 - 3);
    return sign ? -magnitude : magnitude;
}

double eng_ref_e8m0(uint8_t byte)
{
    return byte == 255 ? NAN : ldexp(1.0, byte - 127);
}

double eng_ref_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t eng_ref_bf16_round(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (isnan(value)) return sign | 0x7fc0;
    if (magnitude == 0) return sign;
    if (isinf(value)) return sign | 0x7f80;
    /* Distance of neighbouring bf16 numbers here: 8 significant bits, 2^-133 among subnormals. */
    int exponent;
    frexp(magnitude, &exponent); /* magnitude in [2^(exponent-1), 2^exponent) */
    int quantum = exponent - 8 < -133 ? -133 : exponent - 8;
    double rounded = ldexp(nearbyint(ldexp(magnitude, -quantum)), quantum);
    if (rounded >= ldexp(1.0, 128)) return sign | 0x7f80;
    float exact = (float)rounded;
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    return (uint16_t)(sign | bits >> 16);
}

float eng_ref_f32_round(double value)
{
    return (float)value;
}
