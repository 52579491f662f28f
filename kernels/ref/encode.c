/* See encode.h. */
#include "kernels/ref/encode.h"

#include <math.h>
#include <string.h>

#include "kernels/ref/fp8.h"

static double largest_of(const float *values)
{
    double largest = 0;
    for (int i = 0; i < ENG_SCALE_GROUP; i++) largest = fmax(largest, fabs((double)values[i]));
    return largest;
}

/* ---- fp8 ---- */

/* Bytes 0 .. 126 rise from 0 to 448; the even byte of two neighbours has the even fraction. */
static uint8_t nearest_e4m3(double value)
{
    int low = 0, high = 126;
    double magnitude = fabs(value);
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (eng_ref_e4m3((uint8_t)middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double below = magnitude - eng_ref_e4m3((uint8_t)low);
    double above = eng_ref_e4m3((uint8_t)high) - magnitude;
    int byte = below < above || (below == above && low % 2 == 0) ? low : high;
    return (uint8_t)(byte | (signbit(value) ? 0x80 : 0));
}

static uint8_t fp8_scale(double largest)
{
    int exponent;
    if (largest == 0) return 0;
    double share = frexp(largest / 448, &exponent); /* 2^exponent * share, share in [1/2, 1) */
    if (share == 0.5) exponent--;
    exponent += 127;
    return (uint8_t)(exponent < 0 ? 0 : exponent > 254 ? 254 : exponent);
}

static void encode_fp8(int row_dims, const float *row, uint8_t *values, uint8_t *scales)
{
    for (int g = 0; g < row_dims / ENG_SCALE_GROUP; g++, row += ENG_SCALE_GROUP) {
        scales[g] = fp8_scale(largest_of(row));
        for (int i = 0; i < ENG_SCALE_GROUP; i++)
            values[g * ENG_SCALE_GROUP + i] = nearest_e4m3(row[i] / eng_ref_e8m0(scales[g]));
    }
}

/* ---- int4 ---- */

static void encode_int4(int row_dims, const float *row, uint8_t *values, uint8_t *scales)
{
    for (int g = 0; g < row_dims / ENG_SCALE_GROUP; g++, row += ENG_SCALE_GROUP) {
        uint16_t bits = eng_ref_bf16_round(largest_of(row) / 7);
        double scale = eng_ref_bf16(bits);
        memcpy(scales + 2 * g, &bits, sizeof bits);
        for (int i = 0; i < ENG_SCALE_GROUP; i++) {
            double level = scale > 0 ? nearbyint(row[i] / scale) : 0;
            unsigned nibble = (unsigned)(int)fmax(-8, fmin(7, level)) & 15;
            uint8_t *byte = values + (g * ENG_SCALE_GROUP + i) / 2;
            *byte = (uint8_t)(i % 2 ? (unsigned)*byte | nibble << 4 : nibble);
        }
    }
}

void eng_ref_encode_row(EngRowFormat format, int row_dims, const float *row, uint8_t *values,
                        uint8_t *scales)
{
    uint8_t *inside = values + eng_row_scale_offset(format, row_dims);
    memset(values, 0, eng_row_stride_bytes(format, row_dims));
    switch (format) {
    case ENG_ROW_BF16:
        for (int i = 0; i < row_dims; i++) {
            uint16_t bits = eng_ref_bf16_round(row[i]);
            memcpy(values + 2 * i, &bits, sizeof bits);
        }
        break;
    case ENG_ROW_F32:
        memcpy(values, row, (size_t)row_dims * sizeof *row);
        break;
    case ENG_ROW_INT4:
        encode_int4(row_dims, row, values, inside);
        break;
    default:
        encode_fp8(row_dims, row, values, format == ENG_ROW_FP8 ? scales : inside);
    }
}
