/* Gate + write-back with AVX-512 BF16, one pass over memory.
 *
 * The write-back of a stream needs its sums, so a stream is read twice; the second time it lies in
 * the cache. All that the next stream needs is fetched during the write-back: the sums already
 * stream their weights (twice the bytes of the input) from the second-level cache, and requests
 * beside those only queue up.
 *
 * Sums of squares are dot products of bf16 vectors with themselves; x * w * key is done in f32,
 * since w is a product of two bf16 numbers. The dot and conversion instructions take subnormals as
 * 0: sums of squares so small that this could matter are done again in plain f32, and a block with
 * a subnormal result is rounded in integers.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gate.h"
#include "kernels/cpu/isa.h"

#if ENG_X86
#include <immintrin.h>

#define INLINE ENG_TARGET_AVX512_BF16 static inline __attribute__((always_inline))
#define BLOCK  ENG_GATE_BLOCK
#define STEP   (2 * BLOCK) /* values a turn: two blocks hide the latency of sums */
INLINE __m512 even(__m512i words)
{
    return (__m512)_mm512_slli_epi32(words, 16);
}

INLINE __m512 odd(__m512i words)
{
    return (__m512)_mm512_and_si512(words, _mm512_set1_epi32((int)0xffff0000));
}

/* Of up to 32 values, those past `left` as 0. */
INLINE __mmask32 first(size_t left)
{
    return left >= BLOCK ? 0xffffffffu : (1u << left) - 1;
}

typedef struct Lanes {
    __m512 xx, kk, even, odd;
} Lanes;

INLINE void add_block(__m512i x, __m512i k, const float *w, Lanes *sums)
{
    __asm__("" : "+v"(x), "+v"(k)); /* else each use would load them again */
    __m512 xw0 = _mm512_mul_ps(even(x), _mm512_loadu_ps(w));
    __m512 xw1 = _mm512_mul_ps(odd(x), _mm512_loadu_ps(w + 16));
    sums->xx = _mm512_dpbf16_ps(sums->xx, (__m512bh)x, (__m512bh)x);
    sums->kk = _mm512_dpbf16_ps(sums->kk, (__m512bh)k, (__m512bh)k);
    sums->even = _mm512_fmadd_ps(xw0, even(k), sums->even);
    sums->odd = _mm512_fmadd_ps(xw1, odd(k), sums->odd);
}

/* The sum of squares without flushing subnormals. */
ENG_TARGET_AVX512_BF16 static __attribute__((noinline)) float squares(const uint8_t *x,
                                                                      size_t hidden)
{
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < hidden; i += BLOCK) {
        __m512i v = _mm512_maskz_loadu_epi16(first(hidden - i), x + 2 * i);
        sum = _mm512_fmadd_ps(even(v), even(v), sum);
        sum = _mm512_fmadd_ps(odd(v), odd(v), sum);
    }
    return _mm512_reduce_add_ps(sum);
}

ENG_TARGET_AVX512_BF16 static void sum_stream(const EngGateStream *stream, EngGateSums *out)
{
    const EngGateStream s = *stream;
    Lanes a = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
    Lanes b = a;
    size_t i = 0;
    for (; i + STEP <= s.hidden; i += STEP) {
        const uint8_t *x = s.x + 2 * i, *key = s.key + 2 * i;
        add_block(_mm512_loadu_si512(x), _mm512_loadu_si512(key), s.w + i, &a);
        add_block(_mm512_loadu_si512(x + 64), _mm512_loadu_si512(key + 64), s.w + i + BLOCK, &b);
    }
    for (; i < s.hidden; i += BLOCK) {
        __mmask32 mask = first(s.hidden - i);
        add_block(_mm512_maskz_loadu_epi16(mask, s.x + 2 * i),
                  _mm512_maskz_loadu_epi16(mask, s.key + 2 * i), s.w + i, &a);
    }
    out->xx = _mm512_reduce_add_ps(_mm512_add_ps(a.xx, b.xx));
    out->kk = _mm512_reduce_add_ps(_mm512_add_ps(a.kk, b.kk));
    out->dot = _mm512_reduce_add_ps(
        _mm512_add_ps(_mm512_add_ps(a.even, a.odd), _mm512_add_ps(b.even, b.odd)));
    /* Each of up to 2^31 squares may have lost 2^-126. */
    if (out->xx < 0x1p-70f) out->xx = squares(s.x, s.hidden);
    if (out->kk < 0x1p-70f) out->kk = squares(s.key, s.hidden);
}

/* f32 to bf16 in the upper half of each word, in integers. */
INLINE __m512i round_up_half(__m512 y)
{
    __m512i bits = (__m512i)y, one = _mm512_set1_epi32(1);
    __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    __m512i near = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
    return _mm512_mask_or_epi32(near, _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q), bits,
                                _mm512_set1_epi32(0x400000));
}

ENG_TARGET_AVX512_BF16 static __attribute__((noinline)) __m512i narrow_exact(__m512 y0, __m512 y1)
{
    return _mm512_or_si512(_mm512_srli_epi32(round_up_half(y0), 16),
                           _mm512_and_si512(round_up_half(y1), _mm512_set1_epi32((int)0xffff0000)));
}

static const uint16_t g_places[BLOCK] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                         21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                         11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

/* Even and odd results of a block to 32 bf16 in order; places: even, odd, even, .. */
INLINE __m512i write_block(__m512i x, __m512i v, __m512 gate, __m512i places)
{
    __m512 y0 = _mm512_fmadd_ps(gate, even(v), even(x));
    __m512 y1 = _mm512_fmadd_ps(gate, odd(v), odd(x));
    __mmask16 subnormal = _mm512_fpclass_ps_mask(y0, 0x20) | _mm512_fpclass_ps_mask(y1, 0x20);
    if (__builtin_expect(subnormal != 0, 0)) return narrow_exact(y0, y1);
    return _mm512_permutexvar_epi16(places, (__m512i)_mm512_cvtne2ps_pbh(y1, y0));
}

ENG_TARGET_AVX512_BF16 static void write_stream(const EngGateStream *stream)
{
    const EngGateStream s = *stream;
    __m512 gate = _mm512_set1_ps(s.gate);
    __m512i places = _mm512_loadu_si512(g_places);
    size_t i = 0;
    for (; i + STEP <= s.hidden; i += STEP) {
        const uint8_t *x = s.x + 2 * i, *value = s.value + 2 * i;
        if (2 * i < s.next_bytes) {
            _mm_prefetch(s.next_x + 2 * i, _MM_HINT_T0);
            _mm_prefetch(s.next_x + 2 * i + 64, _MM_HINT_T0);
            _mm_prefetch(s.next_key + 2 * i, _MM_HINT_T0);
            _mm_prefetch(s.next_key + 2 * i + 64, _MM_HINT_T0);
        }
        if (i < s.next_value_bytes) _mm_prefetch(s.next_value + i, _MM_HINT_T0);
        __m512i y0 = write_block(_mm512_loadu_si512(x), _mm512_loadu_si512(value), gate, places);
        __m512i y1 =
            write_block(_mm512_loadu_si512(x + 64), _mm512_loadu_si512(value + 64), gate, places);
        _mm512_storeu_si512(s.out + 2 * i, y0);
        _mm512_storeu_si512(s.out + 2 * i + 64, y1);
    }
    for (; i < s.hidden; i += BLOCK) {
        __mmask32 mask = first(s.hidden - i);
        __m512i y = write_block(_mm512_maskz_loadu_epi16(mask, s.x + 2 * i),
                                _mm512_maskz_loadu_epi16(mask, s.value + 2 * i), gate, places);
        _mm512_mask_storeu_epi16(s.out + 2 * i, mask, y);
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
    return status ? status : eng_isa_require(ENG_ISA_AVX512 | ENG_ISA_BF16, why);
}

const EngKernel eng_cpu_gate_avx512 = {
    .op = ENG_OP_GATE,
    .name = "avx512",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one pass, next stream fetched meanwhile, bf16 dot and conversion instructions",
    .tunables = eng_cpu_gate_tunables,
    .supports = supports,
    .cost = eng_cpu_gate_cost,
    .create = eng_cpu_gate_create,
    .run = run,
    .destroy = eng_cpu_gate_destroy,
};
#endif
