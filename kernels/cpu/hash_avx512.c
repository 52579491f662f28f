/* Hash with AVX-512, eight heads to a vector: `avx512` with remainders in double precision (three
 * fused products, three sums, one integer operation a vector), `avx512_ifma` with fractions of 2^52
 * (four integer multiply-adds a vector). Proofs in hash_block.h. The loop over tokens is the inner
 * one, so that an order's constants stay in registers and the mixes come as broadcast operands.
 */
#include "kernels/cpu/isa.h"

#include "base/mem.h"
#include "kernels/cpu/hash_block.h"

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_isa_require(ENG_ISA_AVX512, why);
    return status ? status : eng_cpu_hash_supports(problem, why);
}

static EngStatus supports_ifma(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_isa_require(ENG_ISA_AVX512 | ENG_ISA_IFMA, why);
    return status ? status : eng_cpu_hash_supports(problem, why);
}

#if ENG_X86
#include <immintrin.h>

#define LANES ENG_HASH_LANES

/* Mixes of a block, taken apart: halves as doubles, or three pieces as integers. */
typedef union Pieces {
    double half[2][ENG_HASH_BLOCK];
    uint64_t piece[3][ENG_HASH_BLOCK];
} Pieces;

ENG_TARGET_AVX512 static inline __m512i mix_eight(uint64_t *mixes, const int32_t *ids,
                                                  uint64_t multiplier)
{
    __m512i wide = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)ids));
    __m512i factor = _mm512_set1_epi64((long long)multiplier);
    __m512i mix = _mm512_xor_si512(_mm512_load_si512(mixes), _mm512_mullo_epi64(wide, factor));
    _mm512_store_si512(mixes, mix);
    return mix;
}

ENG_TARGET_AVX512 static inline __m512d double_of(__m512i below_2_52)
{
    __m512i bits = _mm512_or_si512(below_2_52, _mm512_set1_epi64((long long)ENG_HASH_DOUBLE_BITS));
    return _mm512_sub_pd(_mm512_castsi512_pd(bits), _mm512_set1_pd(0x1p52));
}

ENG_TARGET_AVX512 static void mix_halves(uint64_t *mixes, const int32_t *ids, uint64_t multiplier,
                                         int n, Pieces *pieces)
{
    const __m512i low_mask = _mm512_set1_epi64(((int64_t)1 << ENG_HASH_LOW_BITS) - 1);
    for (int i = 0; i < n; i += LANES) {
        __m512i mix = mix_eight(mixes + i, ids + i, multiplier);
        _mm512_storeu_pd(pieces->half[0] + i, double_of(_mm512_srli_epi64(mix, ENG_HASH_LOW_BITS)));
        _mm512_storeu_pd(pieces->half[1] + i, double_of(_mm512_and_si512(mix, low_mask)));
    }
}

ENG_TARGET_AVX512 static void mix_pieces(uint64_t *mixes, const int32_t *ids, uint64_t multiplier,
                                         int n, Pieces *pieces)
{
    const __m512i mask = _mm512_set1_epi64(((int64_t)1 << ENG_HASH_PIECE_BITS) - 1);
    for (int i = 0; i < n; i += LANES) {
        __m512i mix = mix_eight(mixes + i, ids + i, multiplier);
        __m512i middle = _mm512_srli_epi64(mix, ENG_HASH_PIECE_BITS);
        _mm512_storeu_si512(pieces->piece[0] + i, _mm512_and_si512(mix, mask));
        _mm512_storeu_si512(pieces->piece[1] + i, _mm512_and_si512(middle, mask));
        _mm512_storeu_si512(pieces->piece[2] + i, _mm512_srli_epi64(mix, 2 * ENG_HASH_PIECE_BITS));
    }
}

/* Lanes of the vector that begins at `head`. */
static inline __mmask8 lanes_from(int heads, int head)
{
    return (__mmask8)(heads - head >= LANES ? 0xffu : (1u << (heads - head)) - 1);
}

typedef struct Floats {
    __m512d fold, half, inverse, minus, last;
} Floats;

ENG_TARGET_AVX512 static inline Floats floats_of(const EngHashOrder *order, int head)
{
    return (Floats){
        .fold = _mm512_loadu_pd(order->fold + head),
        .half = _mm512_loadu_pd(order->half + head),
        .inverse = _mm512_loadu_pd(order->inverse + head),
        .minus = _mm512_loadu_pd(order->minus + head),
        .last = _mm512_loadu_pd(order->last + head),
    };
}

ENG_TARGET_AVX512 static inline __m512i rows_by_floats(Floats c, __m512d high, __m512d low)
{
    const __m512d round = _mm512_set1_pd(ENG_HASH_ROUND);
    __m512d t = _mm512_fmadd_pd(high, c.fold, _mm512_add_pd(low, c.half));
    __m512d quotient = _mm512_sub_pd(_mm512_fmadd_pd(t, c.inverse, round), round);
    __m512d row = _mm512_add_pd(_mm512_fmadd_pd(quotient, c.minus, t), c.last);
    return _mm512_xor_si512(_mm512_castpd_si512(row),
                            _mm512_set1_epi64((long long)ENG_HASH_DOUBLE_BITS));
}

ENG_TARGET_AVX512 static void reduce_halves(const EngHashOrder *order, int heads,
                                            const Pieces *pieces, int n, int64_t *rows,
                                            int64_t per_token)
{
    for (int head = 0; head < heads; head += LANES) {
        Floats c = floats_of(order, head);
        __mmask8 lanes = lanes_from(heads, head);
        int64_t *to = rows + head;
#pragma GCC unroll 4
        for (int i = 0; i < n; i++, to += per_token)
            _mm512_mask_storeu_epi64(to, lanes,
                                     rows_by_floats(c, _mm512_set1_pd(pieces->half[0][i]),
                                                    _mm512_set1_pd(pieces->half[1][i])));
    }
}

typedef struct Fractions {
    __m512i part0, part1, part2, prime, offset;
} Fractions;

ENG_TARGET_AVX512_IFMA static inline Fractions fractions_of(const EngHashOrder *order, int head)
{
    return (Fractions){
        .part0 = _mm512_loadu_si512(order->part[0] + head),
        .part1 = _mm512_loadu_si512(order->part[1] + head),
        .part2 = _mm512_loadu_si512(order->part[2] + head),
        .prime = _mm512_loadu_si512(order->prime + head),
        .offset = _mm512_loadu_si512(order->offset + head),
    };
}

ENG_TARGET_AVX512_IFMA static inline __m512i rows_by_fractions(Fractions c, uint64_t x0,
                                                               uint64_t x1, uint64_t x2)
{
    __m512i f = _mm512_setzero_si512();
    f = _mm512_madd52lo_epu64(f, c.part0, _mm512_set1_epi64((long long)x0));
    f = _mm512_madd52lo_epu64(f, c.part1, _mm512_set1_epi64((long long)x1));
    f = _mm512_madd52lo_epu64(f, c.part2, _mm512_set1_epi64((long long)x2));
    return _mm512_madd52hi_epu64(c.offset, f, c.prime);
}

ENG_TARGET_AVX512_IFMA static void reduce_pieces(const EngHashOrder *order, int heads,
                                                 const Pieces *pieces, int n, int64_t *rows,
                                                 int64_t per_token)
{
    for (int head = 0; head < heads; head += LANES) {
        Fractions c = fractions_of(order, head);
        __mmask8 lanes = lanes_from(heads, head);
        int64_t *to = rows + head;
#pragma GCC unroll 4
        for (int i = 0; i < n; i++, to += per_token)
            _mm512_mask_storeu_epi64(to, lanes,
                                     rows_by_fractions(c, pieces->piece[0][i], pieces->piece[1][i],
                                                       pieces->piece[2][i]));
    }
}

/* ---- a block -----------------------------------------------------------------------------------
 */

typedef void MixFn(uint64_t *mixes, const int32_t *ids, uint64_t multiplier, int n, Pieces *pieces);
typedef void ReduceFn(const EngHashOrder *order, int heads, const Pieces *pieces, int n,
                      int64_t *rows, int64_t per_token);
typedef void OneFn(const EngHashOrder *order, int heads, uint64_t mix, int64_t *rows);

static inline __attribute__((always_inline)) void
walk_block(const EngHashPlan *plan, const EngHashBlock *block, MixFn *mix, ReduceFn *reduce)
{
    _Alignas(64) uint64_t mixes[ENG_HASH_BLOCK];
    _Alignas(64) Pieces pieces;
    const EngHashOrder *order = plan->orders;
    int64_t *rows = block->rows, per_token = (int64_t)plan->n_layers * plan->n_columns;
    int padded = (block->n + LANES - 1) / LANES * LANES;
    for (int layer = 0; layer < plan->n_layers; layer++) {
        for (int i = 0; i < padded; i++) mixes[i] = 0;
        for (int lag = 0; lag < plan->max_order; lag++) {
            mix(mixes, block->ids[lag], plan->multipliers[layer][lag], block->n, &pieces);
            if (lag + 1 < plan->min_order) continue;
            reduce(order++, plan->heads, &pieces, block->n, rows, per_token);
            rows += plan->heads;
        }
    }
}

ENG_TARGET_AVX512 static void one_by_floats(const EngHashOrder *order, int heads, uint64_t mix,
                                            int64_t *rows)
{
    __m512d high = _mm512_set1_pd((double)(mix >> ENG_HASH_LOW_BITS));
    __m512d low = _mm512_set1_pd((double)(mix & (((uint64_t)1 << ENG_HASH_LOW_BITS) - 1)));
    for (int head = 0; head < heads; head += LANES)
        _mm512_mask_storeu_epi64(rows + head, lanes_from(heads, head),
                                 rows_by_floats(floats_of(order, head), high, low));
}

ENG_TARGET_AVX512_IFMA static void one_by_fractions(const EngHashOrder *order, int heads,
                                                    uint64_t mix, int64_t *rows)
{
    const uint64_t mask = ((uint64_t)1 << ENG_HASH_PIECE_BITS) - 1;
    uint64_t x0 = mix & mask, x1 = mix >> ENG_HASH_PIECE_BITS & mask,
             x2 = mix >> 2 * ENG_HASH_PIECE_BITS;
    for (int head = 0; head < heads; head += LANES)
        _mm512_mask_storeu_epi64(rows + head, lanes_from(heads, head),
                                 rows_by_fractions(fractions_of(order, head), x0, x1, x2));
}

/* A few positions, mixed in scalar registers: a round through memory would cost more than it saves.
 */
static inline __attribute__((always_inline)) void walk_few(const EngHashPlan *plan,
                                                           const EngHashBlock *block, OneFn *one)
{
    int64_t *rows = block->rows;
    for (int i = 0; i < block->n; i++) {
        const EngHashOrder *order = plan->orders;
        for (int layer = 0; layer < plan->n_layers; layer++) {
            uint64_t mix = 0;
            for (int lag = 0; lag < plan->max_order; lag++) {
                mix ^= (uint64_t)block->ids[lag][i] * plan->multipliers[layer][lag];
                if (lag + 1 < plan->min_order) continue;
                one(order++, plan->heads, mix, rows);
                rows += plan->heads;
            }
        }
    }
}

ENG_TARGET_AVX512 static void block_halves(const EngHashPlan *plan, const EngHashBlock *block)
{
    if (block->n <= ENG_HASH_FEW)
        walk_few(plan, block, one_by_floats);
    else
        walk_block(plan, block, mix_halves, reduce_halves);
}

ENG_TARGET_AVX512_IFMA static void block_pieces(const EngHashPlan *plan, const EngHashBlock *block)
{
    if (block->n <= ENG_HASH_FEW)
        walk_few(plan, block, one_by_fractions);
    else
        walk_block(plan, block, mix_pieces, reduce_pieces);
}

/* The widest way that the primes allow. */
static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngHashPlan *plan = state;
    EngHashBlockFn *fn = plan->floats ? block_halves : eng_cpu_hash_block_reciprocal;
    return eng_cpu_hash_blocks(plan, problem, &args->u.hash, fn, err);
}

static EngStatus run_ifma(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngHashPlan *plan = state;
    EngHashBlockFn *fn = plan->fractions ? block_pieces
                         : plan->floats  ? block_halves
                                         : eng_cpu_hash_block_reciprocal;
    return eng_cpu_hash_blocks(plan, problem, &args->u.hash, fn, err);
}

#else /* supports() refuses everything */

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state, (void)problem, (void)args;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "for x86-64 processors only");
}

#define run_ifma run

#endif

const EngKernel eng_cpu_hash_avx512 = {
    .op = ENG_OP_HASH,
    .name = "avx512",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "AVX-512: eight heads a vector, remainders in double precision",
    .tunables = eng_cpu_hash_tunables,
    .supports = supports,
    .cost = eng_cpu_hash_cost,
    .create = eng_cpu_hash_plan,
    .run = run,
    .destroy = eng_free,
};

const EngKernel eng_cpu_hash_avx512_ifma = {
    .op = ENG_OP_HASH,
    .name = "avx512_ifma",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "AVX-512 IFMA: eight heads a vector, remainders as fractions of 2^52",
    .tunables = eng_cpu_hash_tunables,
    .supports = supports_ifma,
    .cost = eng_cpu_hash_cost,
    .create = eng_cpu_hash_plan,
    .run = run_ifma,
    .destroy = eng_free,
};
