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
 * with a scale byte outside 10 to 246 goes to the scalar decoder. Every path is exact. Large
 * output is stored past the caches; `avx512_vbmi_cached` never does, for consumers
 * that read it next.
 */
#include "kernels/cpu/isa.h"

#include "base/mem.h"
#include "kernels/cpu/decode.h"
#include "kernels/cpu/gather_loop.h"
#include "kernels/cpu/gather_parts.h"

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
#include "kernels/cpu/gather_avx512.h"

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
        eng_gather_scalar_row(values, scales, groups, out, f32);
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

BASE void copy_row(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                   uint8_t *out, uint8_t *out_scales, bool stream)
{
    copy_bytes(out, values, (int64_t)loop->out_bytes, stream);
    if (loop->out_scale_bytes == 8)
        memcpy(out_scales, scales, 8);
    else if (loop->out_scale_bytes)
        memcpy(out_scales, scales, loop->out_scale_bytes);
}

/* ---- parts -------------------------------------------------------------------------------------
 */

/* Bursts: twice as many rows as fit the first-level cache beside their output are too many. */
ENG_GATHER_PART(vbmi_bf16, ENG_TARGET_AVX512_VBMI, 48,
                vbmi_row(values, scales, out, groups, false, stream))
ENG_GATHER_PART(vbmi_f32, ENG_TARGET_AVX512_VBMI, 48,
                vbmi_row(values, scales, out, groups, true, stream))
ENG_GATHER_PART(base_bf16, ENG_TARGET_AVX512, 48,
                base_row(loop, values, scales, out, groups, false, stream))
ENG_GATHER_PART(base_f32, ENG_TARGET_AVX512, 48,
                base_row(loop, values, scales, out, groups, true, stream))
ENG_GATHER_PART(copy_fp8, ENG_TARGET_AVX512, 48,
                copy_row(loop, values, scales, out, out_scales, stream))
ENG_GATHER_PART(copy_wide, ENG_TARGET_AVX512, 12,
                copy_row(loop, values, scales, out, out_scales, stream))
ENG_GATHER_PART(widen, ENG_TARGET_AVX512, 24, widen_row(loop, values, out, stream))
ENG_GATHER_PART(narrow, ENG_TARGET_AVX512, 12, narrow_row(loop, values, out))
ENG_GATHER_PART(int4_bf16, ENG_TARGET_AVX512, 48,
                int4_row(values, scales, out, groups, false, stream))
ENG_GATHER_PART(int4_f32, ENG_TARGET_AVX512, 48,
                int4_row(values, scales, out, groups, true, stream))

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
                         eng_cpu_gather_stream_from);
    return ENG_OK;
}

static EngStatus run_vbmi(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)err;
    eng_cpu_gather_parts(problem, &args->u.gather, part_of(&problem->u.gather, true), state,
                         eng_cpu_gather_stream_from);
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
