/* Gather with AVX-512. fp8 decoding, 64 codes at a time, in 16-bit lanes:
 *
 *  - `avx512_vbmi`: the low and the high byte of a code's bf16 value (scale 1) come from two byte
 *    permutations over tables of 128 entries, so zero, subnormals and NaN need no special case. The
 *    scale is then added to the exponent of all codes but zero and NaN.
 *  - `avx512` (no VBMI): exponent and fraction are shifted into place; codes 0-7 (zero and the
 *    subnormals) and 120-127 (the top binade with NaN) come from a table of 32 words instead, which
 *    together with the scale's bits is kept per scale byte.
 *
 * f32 output is the bf16 word with sixteen zeros. All this needs results that are normal: a row
 * with a scale byte outside 10 to 246 goes to the scalar decoder. Every path is exact. Output
 * larger than the private cache is stored past it; `avx512_vbmi_cached` never does, for consumers
 * that read it next.
 */
#include "kernels/cpu/isa.h"

#include "base/mem.h"
#include "kernels/cpu/decode.h"
#include "kernels/cpu/gather_loop.h"

/* Output of a thread, in bytes, from which rows are stored past the cache: half a private cache. */
#define STREAM_FROM ((size_t)512 << 10)

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_isa_require(ENG_ISA_AVX512, why);
    return status ? status : eng_cpu_gather_supports(problem, why);
}

static EngStatus supports_vbmi(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_isa_require(ENG_ISA_AVX512 | ENG_ISA_VBMI, why);
    return status ? status : eng_cpu_gather_supports(problem, why);
}

#if ENG_X86
#include <immintrin.h>

#define BASE  ENG_ALWAYS_INLINE ENG_TARGET_AVX512
#define VBMI  ENG_ALWAYS_INLINE ENG_TARGET_AVX512_VBMI
#define GROUP ENG_SCALE_GROUP

/* Rare, and kept out of the loops. */
static __attribute__((noinline)) void scalar_row(const uint8_t *values, const uint8_t *scales,
                                                 int groups, uint8_t *out, bool f32)
{
    if (f32)
        eng_cpu_decode_f32_table(values, scales, groups, out);
    else
        eng_cpu_decode_bf16_table(values, scales, groups, out);
}

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
        scalar_row(values, scales, groups, out, f32);
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

/* Words of one scale byte: what to add to shifted codes, and codes 0-7 and 120-127 (mod 32). */
typedef struct ScaleWords {
    _Alignas(64) uint16_t add[32];
    uint16_t special[32];
} ScaleWords;

BASE void base_group(const uint8_t *values, const ScaleWords *scale, __mmask32 special,
                     uint8_t *out, bool f32, bool stream)
{
    __m512i codes = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)values));
    __m512i words = _mm512_and_si512(_mm512_slli_epi16(codes, 4), _mm512_set1_epi16(0x7f0));
    words = _mm512_add_epi16(words, _mm512_load_si512(scale->add));
    words = _mm512_mask_permutexvar_epi16(words, special, codes, _mm512_load_si512(scale->special));
    words = _mm512_ternarylogic_epi32(words, codes, _mm512_set1_epi16((short)0x8000), 0xf8);
    put_words(out, words, f32, stream);
}

/* Adding 8 leaves bits 4 to 6 clear for codes 0-7 and 120-127 only. */
BASE __mmask64 special_codes(__m512i codes)
{
    return _mm512_testn_epi8_mask(_mm512_add_epi8(codes, _mm512_set1_epi8(8)),
                                  _mm512_set1_epi8(0x70));
}

BASE void base_row(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                   uint8_t *out, int groups, bool f32, bool stream)
{
    const ScaleWords *words = loop->state;
    const size_t group_bytes = f32 ? 128 : 64;
    int g = 0;
    if (!eng_gather_plain_scales(scales, groups)) {
        scalar_row(values, scales, groups, out, f32);
        return;
    }
#pragma GCC unroll 4
    for (; g + 2 <= groups; g += 2, values += 2 * GROUP, out += 2 * group_bytes) {
        __mmask64 special = special_codes(load_codes(values, 2));
        base_group(values, &words[scales[g]], (__mmask32)special, out, f32, stream);
        base_group(values + GROUP, &words[scales[g + 1]], (__mmask32)(special >> 32),
                   out + group_bytes, f32, stream);
    }
    if (g < groups)
        base_group(values, &words[scales[g]], (__mmask32)special_codes(load_codes(values, 1)), out,
                   f32, stream);
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

BASE void copy_row(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                   uint8_t *out, uint8_t *out_scales, bool stream)
{
    copy_bytes(out, values, (int64_t)loop->out_bytes, stream);
    if (loop->out_scale_bytes == 8)
        memcpy(out_scales, scales, 8);
    else if (loop->out_scale_bytes)
        memcpy(out_scales, scales, loop->out_scale_bytes);
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

/* ---- parts -------------------------------------------------------------------------------------
 */

/* A part for each way to store, and for rows of 256 dims, whose eight groups are then a constant.
 * BODY sees loop, values, scales, out, out_scales, groups and stream. */
#define ROW(name, TARGET, GROUPS, STREAM, BODY)                                                    \
    ENG_ALWAYS_INLINE TARGET void name(const EngGatherLoop *loop, const uint8_t *values,           \
                                       const uint8_t *scales, uint8_t *out, uint8_t *out_scales)   \
    {                                                                                              \
        const int groups = GROUPS;                                                                 \
        const bool stream = STREAM;                                                                \
        (void)loop, (void)scales, (void)out_scales, (void)groups, (void)stream;                    \
        BODY;                                                                                      \
    }

#define PART(name, TARGET, BURST, BODY)                                                            \
    ROW(name##_any, TARGET, loop->groups, false, BODY)                                             \
    ROW(name##_any_stream, TARGET, loop->groups, true, BODY)                                       \
    ROW(name##_eight, TARGET, 8, false, BODY)                                                      \
    ROW(name##_eight_stream, TARGET, 8, true, BODY)                                                \
    TARGET static void name(const EngGatherLoop *loop)                                             \
    {                                                                                              \
        EngRowKind kind = eng_gather_kind(loop);                                                   \
        if (kind == ENG_ROWS_SPLIT_256 && loop->stream)                                            \
            eng_gather_bursts(loop, name##_eight_stream, BURST, BURST, ENG_ROWS_SPLIT_256);        \
        else if (kind == ENG_ROWS_SPLIT_256)                                                       \
            eng_gather_bursts(loop, name##_eight, BURST, BURST, ENG_ROWS_SPLIT_256);               \
        else if (loop->groups == 8 && loop->stream)                                                \
            eng_gather_bursts(loop, name##_eight_stream, BURST, BURST, ENG_ROWS_ANY);              \
        else if (loop->groups == 8)                                                                \
            eng_gather_bursts(loop, name##_eight, BURST, BURST, ENG_ROWS_ANY);                     \
        else if (loop->stream)                                                                     \
            eng_gather_bursts(loop, name##_any_stream, BURST, BURST, ENG_ROWS_ANY);                \
        else                                                                                       \
            eng_gather_bursts(loop, name##_any, BURST, BURST, ENG_ROWS_ANY);                       \
        if (loop->stream) _mm_sfence();                                                            \
    }

/* Bursts: twice as many rows as fit the first-level cache beside their output are too many. */
PART(vbmi_bf16, ENG_TARGET_AVX512_VBMI, 48, vbmi_row(values, scales, out, groups, false, stream))
PART(vbmi_f32, ENG_TARGET_AVX512_VBMI, 48, vbmi_row(values, scales, out, groups, true, stream))
PART(base_bf16, ENG_TARGET_AVX512, 48, base_row(loop, values, scales, out, groups, false, stream))
PART(base_f32, ENG_TARGET_AVX512, 48, base_row(loop, values, scales, out, groups, true, stream))
PART(copy_fp8, ENG_TARGET_AVX512, 48, copy_row(loop, values, scales, out, out_scales, stream))
PART(copy_wide, ENG_TARGET_AVX512, 12, copy_row(loop, values, scales, out, out_scales, stream))
PART(widen, ENG_TARGET_AVX512, 24, widen_row(loop, values, out, stream))
PART(narrow, ENG_TARGET_AVX512, 12, narrow_row(loop, values, out))
PART(int4_bf16, ENG_TARGET_AVX512, 48, int4_row(values, scales, out, groups, false, stream))
PART(int4_f32, ENG_TARGET_AVX512, 48, int4_row(values, scales, out, groups, true, stream))

static EngGatherPartFn *part_of(const EngGatherProblem *p, bool vbmi)
{
    EngRowFormat format = p->table.format;
    bool f32 = p->out == ENG_F32;
    if (p->out == ENG_FP8) return copy_fp8;
    if (format == ENG_ROW_BF16) return f32 ? widen : copy_wide;
    if (format == ENG_ROW_F32) return f32 ? copy_wide : narrow;
    if (format == ENG_ROW_INT4) return f32 ? int4_f32 : int4_bf16;
    if (vbmi) return f32 ? vbmi_f32 : vbmi_bf16;
    return f32 ? base_f32 : base_bf16;
}

static EngStatus create_base(const EngProblem *problem, void **state, EngErr *err)
{
    EngStatus status = ENG_OK;
    (void)problem;
    ScaleWords *words = eng_alloc_array(256, sizeof *words);
    if (!words) status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the decoding tables");
    for (int scale = 10; scale <= 246 && words; scale++) {
        for (int i = 0; i < 32; i++) words[scale].add[i] = (uint16_t)((scale - 7) * 128);
        for (int i = 0; i < 8; i++) {
            uint8_t codes[GROUP] = {0}, bytes[1] = {(uint8_t)scale};
            uint16_t decoded[GROUP];
            codes[0] = (uint8_t)i;
            codes[1] = (uint8_t)(120 + i);
            eng_cpu_decode_bf16_table(codes, bytes, 1, decoded);
            words[scale].special[i] = decoded[0];
            words[scale].special[24 + i] = decoded[1];
        }
    }
    *state = words;
    return status;
}

static EngStatus run_base(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)err;
    eng_cpu_gather_parts(problem, &args->u.gather, part_of(&problem->u.gather, false), state,
                         STREAM_FROM);
    return ENG_OK;
}

static EngStatus run_vbmi(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)err;
    eng_cpu_gather_parts(problem, &args->u.gather, part_of(&problem->u.gather, true), state,
                         STREAM_FROM);
    return ENG_OK;
}

static EngStatus run_cached(void *state, const EngProblem *problem, const EngArgs *args,
                            EngErr *err)
{
    (void)err;
    eng_cpu_gather_parts(problem, &args->u.gather, part_of(&problem->u.gather, true), state,
                         SIZE_MAX);
    return ENG_OK;
}

#else /* supports() refuses everything */

static EngStatus run_base(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state, (void)problem, (void)args;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "for x86-64 processors only");
}

#define run_vbmi    run_base
#define run_cached  run_base
#define create_base NULL

#endif

const EngKernel eng_cpu_gather_avx512 = {
    .op = ENG_OP_GATHER,
    .name = "avx512",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "AVX-512 without VBMI: shifts and a table per scale, bursts of 48 rows",
    .tunables = eng_cpu_gather_tunables,
    .supports = supports,
    .cost = eng_cpu_gather_cost,
    .create = create_base,
    .run = run_base,
    .destroy = eng_free,
};

const EngKernel eng_cpu_gather_avx512_vbmi = {
    .op = ENG_OP_GATHER,
    .name = "avx512_vbmi",
    .backend = ENG_CPU,
    .checked = true,
    .summary =
        "AVX-512 VBMI: byte permutations, bursts of 48 rows, large output stored past caches",
    .tunables = eng_cpu_gather_tunables,
    .supports = supports_vbmi,
    .cost = eng_cpu_gather_cost,
    .run = run_vbmi,
};

const EngKernel eng_cpu_gather_avx512_vbmi_cached = {
    .op = ENG_OP_GATHER,
    .name = "avx512_vbmi_cached",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "AVX-512 VBMI, all output stored through the caches",
    .tunables = eng_cpu_gather_tunables,
    .supports = supports_vbmi,
    .cost = eng_cpu_gather_cost,
    .run = run_cached,
};
