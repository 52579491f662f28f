/* Gather with AVX2 and F16C.
 *
 * fp8 to f32: a code whose exponent and fraction are shifted to where half precision has them is
 * that half times 2^8, subnormals included; the conversion to f32 and one product with
 * 2^(scale - 127 + 8) decode it exactly.
 *
 * fp8 to bf16, 32 codes at a time in bytes: a code t (sign removed) is 16 t + (scale - 7) * 128 as
 * a bf16 word, and so are the seven subnormals after a correction from a table of 16 bytes. With
 * u = t + correction + 16 (and 8 more where scale is even) the word's lower byte is the lower half
 * of u, shifted, and its upper byte the upper half of u plus a constant of the scale; zero has u =
 * 0 and no constant. These are 18 vector instructions; through half precision it was 24, of which
 * the conversions alone took as long. What is still more than AVX-512 needs, which permutes bytes
 * of whole tables, adds to the time of the misses: 67 to 78 % of the roof, where that has 74 to 89.
 *
 * NaN codes are found by the way, and scale bytes outside 10 to 246 give results that are not
 * normal: such rows go to the scalar decoder. Other rows are moved by the compiler's vectors.
 * Large output is stored past the caches.
 */
#include "kernels/cpu/isa.h"

#include "kernels/cpu/decode.h"
#include "kernels/cpu/gather_loop.h"
#include "kernels/cpu/gather_parts.h"

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_isa_require(ENG_ISA_AVX2, why);
    return status ? status : eng_cpu_gather_supports(problem, why);
}

#if ENG_X86
#include <immintrin.h>
#include <stddef.h>

#define BASE  ENG_ALWAYS_INLINE ENG_TARGET_AVX2
#define GROUP ENG_SCALE_GROUP

BASE void put(uint8_t *to, __m256i x, bool stream)
{
    if (stream)
        _mm256_stream_si256((__m256i *)to, x);
    else
        _mm256_storeu_si256((__m256i *)to, x);
}

/* NaN is the largest signed byte, and with a sign the largest unsigned one. */
BASE bool any_nan(const uint8_t *values, int groups)
{
    __m256i positive = _mm256_setzero_si256(), negative = positive;
#pragma GCC unroll 8
    for (int g = 0; g < groups; g++) {
        __m256i codes = _mm256_loadu_si256((const __m256i *)(values + g * GROUP));
        positive = _mm256_max_epi8(positive, codes);
        negative = _mm256_max_epu8(negative, codes);
    }
    __m256i found = _mm256_or_si256(_mm256_cmpeq_epi8(positive, _mm256_set1_epi8(0x7f)),
                                    _mm256_cmpeq_epi8(negative, _mm256_set1_epi8((char)0xff)));
    return _mm256_movemask_epi8(found) != 0;
}

/* Sixteen codes as halves of 2^-8 the value. */
BASE __m256i halves_of(__m128i codes)
{
    return _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7),
                            _mm256_set1_epi16((short)0xbfff));
}

BASE __m256 scale_of(uint8_t byte)
{
    return _mm256_castsi256_ps(_mm256_set1_epi32((byte + 8) << 23));
}

BASE void fp8_f32_row(const uint8_t *values, const uint8_t *scales, uint8_t *out, int groups,
                      bool stream)
{
    if (!eng_gather_plain_scales(scales, groups) || any_nan(values, groups)) {
        eng_gather_scalar_row(values, scales, groups, out, true);
        return;
    }
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++) {
        __m256 scale = scale_of(scales[g]);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++, values += 16, out += 64) {
            __m256i sixteen = halves_of(_mm_loadu_si128((const __m128i *)values));
            __m256 a = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(sixteen)), scale);
            __m256 b = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(sixteen, 1)), scale);
            put(out, _mm256_castps_si256(a), stream);
            put(out + 32, _mm256_castps_si256(b), stream);
        }
    }
}

/* By the last bit of scale: what to add to codes, and corrections of codes 0-7, at 8-15 of both
 * halves. */
typedef struct ByteConstants {
    _Alignas(32) uint8_t add[32];
    int8_t correct[32];
} ByteConstants;
#define EIGHT_ZEROS  0, 0, 0, 0, 0, 0, 0, 0
#define CORRECT(add) EIGHT_ZEROS, -(add), -17, -10, -7, -4, -3, -2, -1
#define FOUR(x)      x, x, x, x
#define CONSTANTS(x)                                                                               \
    {                                                                                              \
        {FOUR(x), FOUR(x), FOUR(x), FOUR(x), FOUR(x), FOUR(x), FOUR(x), FOUR(x)},                  \
            {CORRECT(x), CORRECT(x)},                                                              \
    }
static const ByteConstants g_constants[2] = {CONSTANTS(24), CONSTANTS(16)};

/* What scales mean for the bytes of words, eight at a time: which constants, in bytes from the
 * first, and what the upper byte gets. */
typedef struct ScaleBytes {
    uint8_t constants[8], upper[8];
} ScaleBytes;
_Static_assert(sizeof(ByteConstants) == 64, "offsets are made by a shift");

BASE void scale_bytes_of(const uint8_t *scales, int n, ScaleBytes *out)
{
    uint64_t bytes = 0x0a0a0a0a0a0a0a0aull; /* 10 is the least that comes here */
    memcpy(&bytes, scales, n < 8 ? (size_t)n : sizeof bytes);
    uint64_t constants = (bytes & 0x0101010101010101ull) << 6;
    uint64_t upper = (bytes - 0x0909090909090909ull) >> 1 & 0x7f7f7f7f7f7f7f7full;
    memcpy(out->constants, &constants, sizeof constants);
    memcpy(out->upper, &upper, sizeof upper);
    __asm__("" : "+m"(*out)); /* from memory a byte is one load: not out of registers by shifts */
}

/* Two vectors of 16 bf16 words from 32 codes in the order 0-7, 16-23, 8-15, 24-31. t: the codes
 * without signs. */
BASE void words_of(__m256i codes, __m256i t, const ScaleBytes *scales, int g, __m256i *first,
                   __m256i *second)
{
    const __m256i four_bits = _mm256_set1_epi8(0x0f), sign = _mm256_set1_epi8((char)0x80);
    const uint8_t *c = (const uint8_t *)g_constants + scales->constants[g];
    /* 8 and more saturate past 0x7f, where the shuffle gives 0. */
    __m256i index = _mm256_adds_epu8(t, _mm256_set1_epi8(0x78));
    __m256i correction = _mm256_shuffle_epi8(
        _mm256_load_si256((const __m256i *)(c + offsetof(ByteConstants, correct))), index);
    __m256i u = _mm256_add_epi8(t, _mm256_load_si256((const __m256i *)c));
    u = _mm256_add_epi8(u, correction);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(u, 4), four_bits);
    __m256i low = _mm256_andnot_si256(four_bits, _mm256_slli_epi16(u, 4));
    /* 0 where t is 0. */
    __m256i upper = _mm256_sign_epi8(_mm256_set1_epi8((char)scales->upper[g]), t);
    high = _mm256_or_si256(_mm256_add_epi8(high, upper), _mm256_and_si256(codes, sign));
    *first = _mm256_unpacklo_epi8(low, high);
    *second = _mm256_unpackhi_epi8(low, high);
}

/* Decoded before it is known whether there is a NaN among the codes: then once more. */
BASE void fp8_bf16_row(const uint8_t *values, const uint8_t *scales, uint8_t *out, int groups,
                       bool stream)
{
    __m256i most = _mm256_setzero_si256();
    bool plain = eng_gather_plain_scales(scales, groups);
    ScaleBytes bytes;
#pragma GCC unroll 8
    for (int g = 0; g < groups && plain; g++) {
        __m256i first, second;
        if (g % 8 == 0) scale_bytes_of(scales + g, groups - g, &bytes);
        __m256i codes = _mm256_loadu_si256((const __m256i *)(values + (size_t)g * GROUP));
        codes = _mm256_permute4x64_epi64(codes, 0xd8);
        __m256i t = _mm256_and_si256(codes, _mm256_set1_epi8(0x7f));
        most = _mm256_max_epu8(most, t);
        words_of(codes, t, &bytes, g % 8, &first, &second);
        put(out + (size_t)g * 64, first, stream);
        put(out + (size_t)g * 64 + 32, second, stream);
    }
    __m256i nan = _mm256_cmpeq_epi8(most, _mm256_set1_epi8(0x7f));
    if (!plain || _mm256_movemask_epi8(nan))
        eng_gather_scalar_row(values, scales, groups, out, false);
}

BASE void copy_row(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                   uint8_t *out, uint8_t *out_scales, bool stream)
{
    size_t i = 0;
    for (; i + 32 <= loop->out_bytes; i += 32)
        put(out + i, _mm256_loadu_si256((const __m256i *)(values + i)), stream);
    if (i < loop->out_bytes) memcpy(out + i, values + i, loop->out_bytes - i);
    if (loop->out_scale_bytes == 8)
        memcpy(out_scales, scales, 8);
    else if (loop->out_scale_bytes)
        memcpy(out_scales, scales, loop->out_scale_bytes);
}

BASE void widen_row(const EngGatherLoop *loop, const uint8_t *values, uint8_t *out, bool stream)
{
    int i = 0;
    for (; i + 8 <= loop->dims; i += 8) {
        __m128i words = _mm_loadu_si128((const __m128i *)(values + 2 * (size_t)i));
        put(out + 4 * (size_t)i, _mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16), stream);
    }
    for (; i < loop->dims; i++) {
        uint16_t word;
        memcpy(&word, values + 2 * (size_t)i, sizeof word);
        float wide = eng_cpu_f32_of_bf16(word);
        memcpy(out + 4 * (size_t)i, &wide, sizeof wide);
    }
}

/* Rounded like eng_cpu_bf16_of. */
BASE __m256i bf16_of(__m256i bits)
{
    __m256 value = _mm256_castsi256_ps(bits);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}

BASE void narrow_row(const EngGatherLoop *loop, const uint8_t *values, uint8_t *out)
{
    int i = 0;
    for (; i + 16 <= loop->dims; i += 16) {
        const __m256i *from = (const __m256i *)(values + 4 * (size_t)i);
        __m256i a = bf16_of(_mm256_loadu_si256(from)), b = bf16_of(_mm256_loadu_si256(from + 1));
        __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
        _mm256_storeu_si256((__m256i *)(out + 2 * (size_t)i), packed);
    }
    for (; i < loop->dims; i++) {
        float wide;
        memcpy(&wide, values + 4 * (size_t)i, sizeof wide);
        uint16_t word = eng_cpu_bf16_of(wide);
        memcpy(out + 2 * (size_t)i, &word, sizeof word);
    }
}

static void int4_row(const uint8_t *values, const uint8_t *scales, uint8_t *out, int groups,
                     bool f32)
{
    if (f32)
        eng_cpu_decode_int4_f32(values, scales, groups, out);
    else
        eng_cpu_decode_int4_bf16(values, scales, groups, out);
}

/* ---- parts -------------------------------------------------------------------------------------
 */

ENG_GATHER_PART(fp8_bf16, ENG_TARGET_AVX2, 24, fp8_bf16_row(values, scales, out, groups, stream))
ENG_GATHER_PART(fp8_f32, ENG_TARGET_AVX2, 48, fp8_f32_row(values, scales, out, groups, stream))
ENG_GATHER_PART(copy_fp8, ENG_TARGET_AVX2, 48,
                copy_row(loop, values, scales, out, out_scales, stream))
ENG_GATHER_PART(copy_wide, ENG_TARGET_AVX2, 12,
                copy_row(loop, values, scales, out, out_scales, stream))
ENG_GATHER_PART(widen, ENG_TARGET_AVX2, 24, widen_row(loop, values, out, stream))
ENG_GATHER_PART(narrow, ENG_TARGET_AVX2, 12, narrow_row(loop, values, out))
ENG_GATHER_PART(int4_bf16, ENG_TARGET_AVX2, 48, int4_row(values, scales, out, groups, false))
ENG_GATHER_PART(int4_f32, ENG_TARGET_AVX2, 48, int4_row(values, scales, out, groups, true))

static EngGatherPartFn *part_of(const EngGatherProblem *p)
{
    EngRowFormat format = p->table.format;
    bool f32 = p->out == ENG_F32;
    if (p->out == ENG_FP8) return copy_fp8;
    if (format == ENG_ROW_BF16) return f32 ? widen : copy_wide;
    if (format == ENG_ROW_F32) return f32 ? copy_wide : narrow;
    if (format == ENG_ROW_INT4) return f32 ? int4_f32 : int4_bf16;
    return f32 ? fp8_f32 : fp8_bf16;
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)err;
    eng_cpu_gather_parts(problem, &args->u.gather, part_of(&problem->u.gather), state,
                         eng_cpu_gather_stream_from);
    return ENG_OK;
}

#else /* supports() refuses everything */

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state, (void)problem, (void)args;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "for x86-64 processors only");
}

#endif

const EngKernel eng_cpu_gather_avx2 = {
    .op = ENG_OP_GATHER,
    .name = "avx2",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "AVX2 and F16C: fp8 in bytes to bf16, through half precision to f32; bursts of rows",
    .tunables = eng_cpu_gather_tunables,
    .supports = supports,
    .cost = eng_cpu_gather_cost,
    .run = run,
};
