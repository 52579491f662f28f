/* Gate + write-back with AVX2: f32 arithmetic on bf16 pairs, rounding in integers, the lines of the
 * next stream fetched during the write-back (see gate_avx512.c for why there). Vectors of half the
 * width and no dot or conversion instructions for bf16 leave more arithmetic than the memory hides:
 * 51 to 56 % of a roof that has AVX-512 (with which this operation reaches 70 to 76 %).
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gate.h"
#include "kernels/cpu/isa.h"

#if ENG_X86
#include <immintrin.h>

#define INLINE ENG_TARGET_AVX2 static inline __attribute__((always_inline))
#define BLOCK  ENG_GATE_BLOCK

INLINE __m256i load(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE __m256 even(__m256i words)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
}

INLINE __m256 odd(__m256i words)
{
    return _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32((int)0xffff0000)));
}

typedef struct Lanes {
    __m256 xx, kk, dot;
} Lanes;

INLINE void add(__m256 x, __m256 k, const float *w, Lanes *sums)
{
    sums->xx = _mm256_fmadd_ps(x, x, sums->xx);
    sums->kk = _mm256_fmadd_ps(k, k, sums->kk);
    sums->dot = _mm256_fmadd_ps(_mm256_mul_ps(x, _mm256_loadu_ps(w)), k, sums->dot);
}

/* A block: weights lie as 16 even and 16 odd ones. */
INLINE void add_block(const uint8_t *x, const uint8_t *key, const float *w, Lanes sums[4])
{
    for (int half = 0; half < 2; half++) {
        __m256i xw = load(x + 32 * half), kw = load(key + 32 * half);
        __asm__("" : "+x"(xw), "+x"(kw)); /* else each use would load them again */
        add(even(xw), even(kw), w + 8 * half, &sums[2 * half]);
        add(odd(xw), odd(kw), w + 16 + 8 * half, &sums[2 * half + 1]);
    }
}

INLINE float sum_of(__m256 a, __m256 b, __m256 c, __m256 d)
{
    __m256 v = _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

/* The last, short block of a row, filled up with zeros, which add nothing to any sum. */
static void pad_block(const uint8_t *from, size_t values, uint8_t block[2 * BLOCK])
{
    memset(block, 0, 2 * BLOCK);
    memcpy(block, from, 2 * values);
}

ENG_TARGET_AVX2 static void sum_stream(const EngGateStream *stream, EngGateSums *out)
{
    const EngGateStream s = *stream;
    Lanes l[4];
    size_t i = 0;
    for (int j = 0; j < 4; j++)
        l[j] = (Lanes){_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    for (; i + BLOCK <= s.hidden; i += BLOCK) add_block(s.x + 2 * i, s.key + 2 * i, s.w + i, l);
    if (i < s.hidden) {
        uint8_t x[2 * BLOCK], key[2 * BLOCK];
        pad_block(s.x + 2 * i, s.hidden - i, x);
        pad_block(s.key + 2 * i, s.hidden - i, key);
        add_block(x, key, s.w + i, l);
    }
    out->xx = sum_of(l[0].xx, l[1].xx, l[2].xx, l[3].xx);
    out->kk = sum_of(l[0].kk, l[1].kk, l[2].kk, l[3].kk);
    out->dot = sum_of(l[0].dot, l[1].dot, l[2].dot, l[3].dot);
}

/* f32 to bf16 in the upper half of each word: ties to even, a NaN stays one. */
INLINE __m256i round_up_half(__m256 y)
{
    __m256i bits = _mm256_castps_si256(y);
    __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i near = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256 nan = _mm256_cmp_ps(y, y, _CMP_UNORD_Q);
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(near), _mm256_castsi256_ps(quiet), nan));
}

INLINE void write_half(const uint8_t *x, const uint8_t *value, __m256 gate, uint8_t *out)
{
    __m256i xw = load(x), vw = load(value);
    __asm__("" : "+x"(xw), "+x"(vw));
    __m256i low = round_up_half(_mm256_fmadd_ps(gate, even(vw), even(xw)));
    __m256i high = round_up_half(_mm256_fmadd_ps(gate, odd(vw), odd(xw)));
    __m256i both = _mm256_blend_epi16(_mm256_srli_epi32(low, 16), high, 0xaa);
    _mm256_storeu_si256((__m256i *)(void *)out, both);
}

ENG_TARGET_AVX2 static void write_stream(const EngGateStream *stream)
{
    const EngGateStream s = *stream;
    __m256 gate = _mm256_set1_ps(s.gate);
    size_t i = 0;
    for (; i + BLOCK <= s.hidden; i += BLOCK) {
        if (2 * i < s.next_bytes) {
            _mm_prefetch(s.next_x + 2 * i, _MM_HINT_T0);
            _mm_prefetch(s.next_key + 2 * i, _MM_HINT_T0);
        }
        if (i < s.next_value_bytes) _mm_prefetch(s.next_value + i, _MM_HINT_T0);
        write_half(s.x + 2 * i, s.value + 2 * i, gate, s.out + 2 * i);
        write_half(s.x + 2 * i + BLOCK, s.value + 2 * i + BLOCK, gate, s.out + 2 * i + BLOCK);
    }
    if (i < s.hidden) {
        uint8_t x[2 * BLOCK], value[2 * BLOCK];
        pad_block(s.x + 2 * i, s.hidden - i, x);
        pad_block(s.value + 2 * i, s.hidden - i, value);
        write_half(x, value, gate, x);
        write_half(x + BLOCK, value + BLOCK, gate, x + BLOCK);
        memcpy(s.out + 2 * i, x, 2 * (s.hidden - i));
    }
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    static const EngGateSteps steps = {sum_stream, write_stream};
    (void)err;
    eng_cpu_gate_run(opaque, problem, &args->u.gate, &steps);
    return ENG_OK;
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cpu_gate_supports(problem, why);
    return status ? status : eng_isa_require(ENG_ISA_AVX2, why);
}

const EngKernel eng_cpu_gate_avx2 = {
    .op = ENG_OP_GATE,
    .name = "avx2",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one pass, next stream fetched meanwhile, f32 FMA",
    .tunables = eng_cpu_gate_tunables,
    .supports = supports,
    .cost = eng_cpu_gate_cost,
    .create = eng_cpu_gate_create,
    .run = run,
    .destroy = eng_cpu_gate_destroy,
};
#endif
