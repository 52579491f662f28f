/* Rows decoded with AVX-512, inlined into the gathers and the fused look-up: fp8 through byte
 * permutations (`vbmi_row`, see gather_avx512.c), int4 through a table of products, bf16 and f32
 * converted. Every path is exact, up to the one rounding to bf16. Include it behind isa.h, on
 * x86-64 only.
 */
#ifndef ENG_KERNELS_CPU_GATHER_AVX512_H
#define ENG_KERNELS_CPU_GATHER_AVX512_H

#include <immintrin.h>

#include "kernels/cpu/decode.h"
#include "kernels/cpu/gather_loop.h"
#include "kernels/cpu/gather_parts.h"
#include "kernels/cpu/isa.h"

#define BASE  ENG_ALWAYS_INLINE ENG_TARGET_AVX512
#define VBMI  ENG_ALWAYS_INLINE ENG_TARGET_AVX512_VBMI
#define GROUP ENG_SCALE_GROUP

/* ---- stores ------------------------------------------------------------------------------------
 */

BASE void put(uint8_t *to, __m512i x, bool stream)
{
    if (stream)
        _mm512_stream_si512((__m512i *)to, x);
    else
        _mm512_storeu_si512(to, x);
}

/* 32 bf16 words, as they are or as f32. */
BASE void put_words(uint8_t *to, __m512i words, bool f32, bool stream)
{
    const __m512i low = _mm512_set_epi16(15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8,
                                         7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    if (!f32) {
        put(to, words, stream);
        return;
    }
    put(to, _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, low, words), stream);
    put(to + 64, _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, high, words), stream);
}

/* ---- fp8 ---------------------------------------------------------------------------------------
 */

/* bf16 bits of e4m3fn codes 0..127 in two planes of bytes. */
static const struct {
    _Alignas(64) uint8_t low[128], high[128];
} g_planes = {
#define EIGHT(e)                                                                                   \
    ((e)&1) << 7, ((e)&1) << 7 | 0x10, ((e)&1) << 7 | 0x20, ((e)&1) << 7 | 0x30,                   \
        ((e)&1) << 7 | 0x40, ((e)&1) << 7 | 0x50, ((e)&1) << 7 | 0x60, ((e)&1) << 7 | 0x70
#define TIMES_EIGHT(e)                                                                             \
    (e) >> 1, (e) >> 1, (e) >> 1, (e) >> 1, (e) >> 1, (e) >> 1, (e) >> 1, (e) >> 1
    .low = {0,          0x00,       0x80,       0xc0,       0x00,       0x20,
            0x40,       0x60, /* m * 2^-9: 2^-9, 2^-8, 1.5 * 2^-8, 2^-7 * (1, 1.25, 1.5, 1.75) */
            EIGHT(121), EIGHT(122), EIGHT(123), EIGHT(124), EIGHT(125), EIGHT(126),
            EIGHT(127), EIGHT(128), EIGHT(129), EIGHT(130), EIGHT(131), EIGHT(132),
            EIGHT(133), EIGHT(134), 0x80,       0x90,       0xa0,       0xb0,
            0xc0,       0xd0,       0xe0,       0xc0},
    .high = {0,
             0x3b,
             0x3b,
             0x3b,
             0x3c,
             0x3c,
             0x3c,
             0x3c,
             TIMES_EIGHT(121),
             TIMES_EIGHT(122),
             TIMES_EIGHT(123),
             TIMES_EIGHT(124),
             TIMES_EIGHT(125),
             TIMES_EIGHT(126),
             TIMES_EIGHT(127),
             TIMES_EIGHT(128),
             TIMES_EIGHT(129),
             TIMES_EIGHT(130),
             TIMES_EIGHT(131),
             TIMES_EIGHT(132),
             TIMES_EIGHT(133),
             TIMES_EIGHT(134),
             0x43,
             0x43,
             0x43,
             0x43,
             0x43,
             0x43,
             0x43,
             0x7f},
};

/* Eight scale bytes as what they add to a bf16 word; fewer near the end of a row. */
BASE __m512i exponents_of(const uint8_t *scales, int n)
{
    uint64_t bytes = 0;
    memcpy(&bytes, scales, n < 8 ? (size_t)n : sizeof bytes);
    __m128i words = _mm_cvtepu8_epi16(_mm_cvtsi64_si128((long long)bytes));
    return _mm512_castsi128_si512(_mm_slli_epi16(_mm_sub_epi16(words, _mm_set1_epi16(127)), 7));
}

/* Codes of one or two groups; those beyond read as zero. */
BASE __m512i load_codes(const uint8_t *values, int groups)
{
    return groups >= 2 ? _mm512_loadu_si512(values) : _mm512_maskz_loadu_epi8(0xffffffff, values);
}

/* Group g of a chunk of eight, and with `two` the next one. */
VBMI void vbmi_groups(const uint8_t *values, __m512i exponents, int g, uint8_t *out, bool two,
                      bool f32, bool stream)
{
    const __m512i low0 = _mm512_load_si512(g_planes.low);
    const __m512i low1 = _mm512_load_si512(g_planes.low + 64);
    const __m512i high0 = _mm512_load_si512(g_planes.high);
    const __m512i high1 = _mm512_load_si512(g_planes.high + 64);
    /* Interleaving works within 128 bits: this order makes the results come out in a row. */
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    __m512i codes = load_codes(values, two ? 2 : 1);
    __m512i ordered = _mm512_permutexvar_epi64(order, codes);
    __m512i low = _mm512_permutex2var_epi8(low0, ordered, low1);
    __m512i high = _mm512_permutex2var_epi8(high0, ordered, high1);
    high = _mm512_ternarylogic_epi32(high, ordered, _mm512_set1_epi8((char)0x80), 0xf8);
    /* 0 and 0x7f, with either sign, become 0x01, 0x80, 0x81 or 0x00 here. */
    __mmask64 scaled =
        _mm512_test_epi8_mask(_mm512_add_epi8(codes, _mm512_set1_epi8(1)), _mm512_set1_epi8(0x7e));
    __m512i words = _mm512_unpacklo_epi8(low, high);
    __m512i add = _mm512_permutexvar_epi16(_mm512_set1_epi16((short)g), exponents);
    put_words(out, _mm512_mask_add_epi16(words, (__mmask32)scaled, words, add), f32, stream);
    if (!two) return;
    words = _mm512_unpackhi_epi8(low, high);
    add = _mm512_permutexvar_epi16(_mm512_set1_epi16((short)(g + 1)), exponents);
    put_words(out + (f32 ? 128 : 64),
              _mm512_mask_add_epi16(words, (__mmask32)(scaled >> 32), words, add), f32, stream);
}

VBMI void vbmi_row(const uint8_t *values, const uint8_t *scales, uint8_t *out, int groups, bool f32,
                   bool stream)
{
    if (!eng_gather_plain_scales(scales, groups)) {
        eng_gather_scalar_row(values, scales, groups, out, f32);
        return;
    }
    for (int first = 0; first < groups; first += 8) {
        int g = 0, n = groups - first < 8 ? groups - first : 8;
        __m512i exponents = exponents_of(scales + first, n);
#pragma GCC unroll 4
        for (; g + 2 <= n; g += 2, values += 2 * GROUP, out += f32 ? 256 : 128)
            vbmi_groups(values, exponents, g, out, true, f32, stream);
        if (g < n) vbmi_groups(values, exponents, g, out, false, f32, stream);
    }
}

/* ---- other rows --------------------------------------------------------------------------------
 */

/* Mask of the lanes below n of `lanes`. */
static inline uint64_t lanes_below(int64_t n, int lanes)
{
    return n >= lanes ? ~(uint64_t)0 >> (64 - lanes) : ((uint64_t)1 << n) - 1;
}

BASE void copy_bytes(uint8_t *out, const uint8_t *from, int64_t n, bool stream)
{
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) put(out + i, _mm512_loadu_si512(from + i), stream);
    if (i < n) {
        __mmask64 lanes = lanes_below(n - i, 64);
        _mm512_mask_storeu_epi8(out + i, lanes, _mm512_maskz_loadu_epi8(lanes, from + i));
    }
}

BASE void widen_row(const EngGatherLoop *loop, const uint8_t *values, uint8_t *out, bool stream)
{
    int i = 0;
    for (; i + 16 <= loop->dims; i += 16) {
        __m256i words = _mm256_loadu_si256((const __m256i *)(values + 2 * (size_t)i));
        put(out + 4 * (size_t)i, _mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16), stream);
    }
    if (i < loop->dims) {
        __mmask16 lanes = (__mmask16)lanes_below(loop->dims - i, 16);
        __m256i words = _mm256_maskz_loadu_epi16(lanes, values + 2 * (size_t)i);
        _mm512_mask_storeu_epi32(out + 4 * (size_t)i, lanes,
                                 _mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
    }
}

/* Rounding by hand: the instruction for it flushes subnormals. NaN as eng_cpu_bf16_of has it. */
BASE __m512i bf16_of(__m512i bits)
{
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 nan =
        _mm512_cmp_ps_mask(_mm512_castsi512_ps(bits), _mm512_castsi512_ps(bits), _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_srli_epi32(rounded, 16);
}

BASE void narrow_row(const EngGatherLoop *loop, const uint8_t *values, uint8_t *out)
{
    for (int i = 0; i < loop->dims; i += 16) {
        __mmask16 lanes = (__mmask16)lanes_below(loop->dims - i, 16);
        __m512i bits = _mm512_maskz_loadu_epi32(lanes, values + 4 * (size_t)i);
        _mm512_mask_cvtepi32_storeu_epi16(out + 2 * (size_t)i, lanes, bf16_of(bits));
    }
}

/* A group of int4 has sixteen values: their products with the scale are the table that the nibbles
 * look up. */
BASE void int4_row(const uint8_t *values, const uint8_t *scales, uint8_t *out, int groups, bool f32,
                   bool stream)
{
    const __m512 nibbles = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    for (int g = 0; g < groups; g++, values += GROUP / 2) {
        uint16_t bits;
        memcpy(&bits, scales + 2 * (size_t)g, sizeof bits);
        __m512 scale = _mm512_castsi512_ps(_mm512_set1_epi32((int)((uint32_t)bits << 16)));
        __m512 products = _mm512_mul_ps(nibbles, scale);
        if (f32) {
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++, out += 64) {
                __m128i eight = _mm_loadl_epi64((const __m128i *)(values + 8 * half));
                __m512i index = _mm512_cvtepu8_epi64(eight); /* both nibbles in dwords' low bits */
                index = _mm512_or_si512(index, _mm512_slli_epi64(index, 28));
                put(out, _mm512_castps_si512(_mm512_permutexvar_ps(index, products)), stream);
            }
        } else {
            __m256i words = _mm512_cvtepi32_epi16(bf16_of(_mm512_castps_si512(products)));
            __m512i table = _mm512_broadcast_i64x4(words);
            __m512i index = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)values));
            index = _mm512_or_si512(index, _mm512_slli_epi32(index, 12));
            put(out, _mm512_permutexvar_epi16(index, table), stream);
            out += 64;
        }
    }
}

#endif
