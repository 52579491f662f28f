/* e4m3fn x e8m0 decoding, as arithmetic that compilers vectorize and as table look-ups.
 *
 * The arithmetic form builds the f32 bits directly. A code v (sign removed) has exponent and
 * fraction where f32 has them after a shift by 20; adding (scale - 7) << 23 corrects the exponent
 * (127 - 7 - 127 = -7). Subnormal codes lack the implicit one: give them the exponent of the
 * smallest normal binade, which adds a one that is then subtracted as a float. All this needs the
 * result to stay a normal f32: scales 10 to 246. Rows with other scales take the table form.
 */
#include "kernels/cpu/decode.h"

#include "kernels/cpu/common.h"

#define GROUP ENG_SCALE_GROUP

/* f32 bits of e4m3fn codes 0..127, eight to a binade; the sign is added afterwards. */
#define BITS(exponent, eighths) ((uint32_t)(exponent) << 23 | (uint32_t)(eighths) << 20)
#define BINADE(e)                                                                                  \
    BITS(e, 0), BITS(e, 1), BITS(e, 2), BITS(e, 3), BITS(e, 4), BITS(e, 5), BITS(e, 6), BITS(e, 7)
/* clang-format off */
static const uint32_t g_e4m3_bits[128] = {
    0, BITS(118, 0), BITS(119, 0), BITS(119, 4), /* subnormal: m * 2^-9 */
    BITS(120, 0), BITS(120, 2), BITS(120, 4), BITS(120, 6),
    BINADE(121), BINADE(122), BINADE(123), BINADE(124), BINADE(125), BINADE(126), BINADE(127),
    BINADE(128), BINADE(129), BINADE(130), BINADE(131), BINADE(132), BINADE(133), BINADE(134),
    BITS(135, 0), BITS(135, 1), BITS(135, 2), BITS(135, 3), BITS(135, 4), BITS(135, 5),
    BITS(135, 6), 0x7fc00000, /* 448, then NaN */
};
/* clang-format on */

static inline float table_value(uint8_t code, float scale)
{
    uint32_t bits = g_e4m3_bits[code & 0x7f] | (uint32_t)(code & 0x80u) << 24;
    return eng_cpu_float_of(bits) * scale;
}

/* Shifting byte 0 into the exponent would give 0, and byte 255 infinity. */
static inline float scale_value(uint8_t byte)
{
    if (byte == 0) return 0x1p-127f;
    return eng_cpu_float_of(byte == 255 ? 0x7fc00000u : (uint32_t)byte << 23);
}

void eng_cpu_decode_f32_table(const uint8_t *values, const uint8_t *scales, int groups, void *out)
{
    uint8_t *to = out;
    for (int g = 0; g < groups; g++, values += GROUP) {
        float scale = scale_value(scales[g]);
        for (int i = 0; i < GROUP; i++, to += sizeof(float)) {
            float value = table_value(values[i], scale);
            memcpy(to, &value, sizeof value);
        }
    }
}

void eng_cpu_decode_bf16_table(const uint8_t *values, const uint8_t *scales, int groups, void *out)
{
    uint8_t *to = out;
    for (int g = 0; g < groups; g++, values += GROUP) {
        float scale = scale_value(scales[g]);
        for (int i = 0; i < GROUP; i++, to += sizeof(uint16_t)) {
            uint16_t bits = eng_cpu_bf16_of(table_value(values[i], scale));
            memcpy(to, &bits, sizeof bits);
        }
    }
}

/* All ones where x, taken as signed, is negative: compares would narrow to bytes and cost twice. */
static inline uint32_t mask_of_sign(uint32_t x)
{
    return (uint32_t) - (int32_t)(x >> 31);
}

static inline uint32_t arithmetic_bits(uint8_t code, uint32_t base)
{
    uint32_t v = code & 0x7fu;
    uint32_t subnormal = mask_of_sign(v - 8u);
    uint32_t nan = mask_of_sign(0x7eu - v);
    uint32_t with_one = (v << 20) + base + (subnormal & (1u << 23));
    float value = eng_cpu_float_of(with_one) - eng_cpu_float_of(subnormal & (base + (1u << 23)));
    return eng_cpu_bits_of(value) | (nan & 0x7fc00000u) | (uint32_t)(code & 0x80u) << 24;
}

static inline int is_plain_scale(uint8_t byte)
{
    return byte >= 10 && byte <= 246;
}

/* Elements of an output buffer of any alignment. */
typedef uint32_t AnyU32 __attribute__((aligned(1), may_alias));
typedef uint16_t AnyU16 __attribute__((aligned(1), may_alias));

ENG_CLONES void eng_cpu_decode_f32(const uint8_t *restrict values, const uint8_t *restrict scales,
                                   int groups, void *restrict out)
{
    AnyU32 *to = out;
    for (int g = 0; g < groups; g++, values += GROUP, to += GROUP) {
        if (!is_plain_scale(scales[g])) {
            eng_cpu_decode_f32_table(values, scales + g, 1, to);
            continue;
        }
        uint32_t base = (uint32_t)(scales[g] - 7) << 23;
        for (int i = 0; i < GROUP; i++) to[i] = arithmetic_bits(values[i], base);
    }
}

ENG_CLONES void eng_cpu_decode_bf16(const uint8_t *restrict values, const uint8_t *restrict scales,
                                    int groups, void *restrict out)
{
    AnyU16 *to = out;
    for (int g = 0; g < groups; g++, values += GROUP, to += GROUP) {
        if (!is_plain_scale(scales[g])) {
            eng_cpu_decode_bf16_table(values, scales + g, 1, to);
            continue;
        }
        uint32_t base = (uint32_t)(scales[g] - 7) << 23;
        /* Four significant bits: cutting f32 is exact. */
        for (int i = 0; i < GROUP; i++) to[i] = (uint16_t)(arithmetic_bits(values[i], base) >> 16);
    }
}

/* ---- int4 --------------------------------------------------------------------------------------
 */

/* A group has only sixteen different values. */
static void int4_products(const uint8_t *scale, float products[16])
{
    uint16_t bits;
    memcpy(&bits, scale, sizeof bits);
    float factor = eng_cpu_f32_of_bf16(bits);
    for (int i = 0; i < 16; i++) products[i] = (float)(i < 8 ? i : i - 16) * factor;
}

void eng_cpu_decode_int4_f32(const uint8_t *values, const uint8_t *scales, int groups, void *out)
{
    AnyU32 *to = out;
    for (int g = 0; g < groups; g++, values += GROUP / 2, to += GROUP) {
        float products[16];
        int4_products(scales + 2 * (size_t)g, products);
        for (int i = 0; i < GROUP / 2; i++) {
            to[2 * i] = eng_cpu_bits_of(products[values[i] & 15]);
            to[2 * i + 1] = eng_cpu_bits_of(products[values[i] >> 4]);
        }
    }
}

void eng_cpu_decode_int4_bf16(const uint8_t *values, const uint8_t *scales, int groups, void *out)
{
    AnyU16 *to = out;
    for (int g = 0; g < groups; g++, values += GROUP / 2, to += GROUP) {
        float products[16];
        uint16_t rounded[16];
        int4_products(scales + 2 * (size_t)g, products);
        for (int i = 0; i < 16; i++) rounded[i] = eng_cpu_bf16_of(products[i]);
        for (int i = 0; i < GROUP / 2; i++) {
            to[2 * i] = rounded[values[i] & 15];
            to[2 * i + 1] = rounded[values[i] >> 4];
        }
    }
}
