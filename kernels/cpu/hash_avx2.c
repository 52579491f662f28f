/* Hash with AVX2 and FMA: four heads to a vector, remainders in double precision (proof in
 * hash_block.h). Per vector three fused products, three sums and one integer subtraction, which a
 * core with two pipes of each kind takes two a clock. The loop over tokens is the inner one, so
 * that an order's constants stay in registers. */
#include "kernels/cpu/isa.h"

#include "base/mem.h"
#include "kernels/cpu/hash_block.h"

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_isa_require(ENG_ISA_AVX2, why);
    return status ? status : eng_cpu_hash_supports(problem, why);
}

#if ENG_X86
#include <immintrin.h>

#define LANES 4

typedef struct Halves {
    double high[ENG_HASH_BLOCK], low[ENG_HASH_BLOCK];
} Halves;

/* Low 64 bits of 32-bit ids times a 64-bit multiplier. */
ENG_TARGET_AVX2 static inline __m256i product(__m256i ids, uint64_t multiplier)
{
    __m256i low = _mm256_mul_epu32(ids, _mm256_set1_epi64x((long long)multiplier));
    __m256i high = _mm256_mul_epu32(ids, _mm256_set1_epi64x((long long)(multiplier >> 32)));
    return _mm256_add_epi64(low, _mm256_slli_epi64(high, 32));
}

ENG_TARGET_AVX2 static inline __m256d double_of(__m256i below_2_52)
{
    __m256i bits = _mm256_or_si256(below_2_52, _mm256_set1_epi64x((long long)ENG_HASH_DOUBLE_BITS));
    return _mm256_sub_pd(_mm256_castsi256_pd(bits), _mm256_set1_pd(0x1p52));
}

/* Extends the mixes by one lag and splits them. */
ENG_TARGET_AVX2 static void mix_lag(uint64_t *mixes, const int32_t *ids, uint64_t multiplier, int n,
                                    Halves *halves)
{
    const __m256i low_mask = _mm256_set1_epi64x(((int64_t)1 << ENG_HASH_LOW_BITS) - 1);
    for (int i = 0; i < n; i += LANES) {
        __m256i *at = (__m256i *)(mixes + i);
        __m256i wide = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(ids + i)));
        __m256i mix = _mm256_xor_si256(_mm256_load_si256(at), product(wide, multiplier));
        _mm256_store_si256(at, mix);
        _mm256_storeu_pd(halves->high + i, double_of(_mm256_srli_epi64(mix, ENG_HASH_LOW_BITS)));
        _mm256_storeu_pd(halves->low + i, double_of(_mm256_and_si256(mix, low_mask)));
    }
}

typedef struct Constants {
    __m256d fold, half, inverse, minus, last;
} Constants;

ENG_TARGET_AVX2 static inline Constants constants_of(const EngHashOrder *order, int head)
{
    return (Constants){
        .fold = _mm256_loadu_pd(order->fold + head),
        .half = _mm256_loadu_pd(order->half + head),
        .inverse = _mm256_loadu_pd(order->inverse + head),
        .minus = _mm256_loadu_pd(order->minus + head),
        .last = _mm256_loadu_pd(order->last + head),
    };
}

ENG_TARGET_AVX2 static inline __m256i rows_of(Constants c, __m256d high, __m256d low)
{
    const __m256d round = _mm256_set1_pd(ENG_HASH_ROUND);
    __m256d t = _mm256_fmadd_pd(high, c.fold, _mm256_add_pd(low, c.half));
    __m256d quotient = _mm256_sub_pd(_mm256_fmadd_pd(t, c.inverse, round), round);
    __m256d row = _mm256_add_pd(_mm256_fmadd_pd(quotient, c.minus, t), c.last);
    return _mm256_xor_si256(_mm256_castpd_si256(row),
                            _mm256_set1_epi64x((long long)ENG_HASH_DOUBLE_BITS));
}

/* Lanes of the vector that begins at `head`, as maskstore wants them. */
ENG_TARGET_AVX2 static inline __m256i lanes_from(int heads, int head)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(heads - head), _mm256_setr_epi64x(0, 1, 2, 3));
}

ENG_TARGET_AVX2 static inline void store_rows(int64_t *to, __m256i rows, int heads, int head)
{
    if (head + LANES <= heads)
        _mm256_storeu_si256((__m256i *)(to + head), rows);
    else
        _mm256_maskstore_epi64((long long *)(to + head), lanes_from(heads, head), rows);
}

ENG_TARGET_AVX2 static void reduce(const EngHashOrder *order, int heads, const Halves *halves,
                                   int n, int64_t *rows, int64_t per_token)
{
    for (int head = 0; head < heads; head += LANES) {
        Constants c = constants_of(order, head);
        int64_t *to = rows;
#pragma GCC unroll 4
        for (int i = 0; i < n; i++, to += per_token)
            store_rows(to,
                       rows_of(c, _mm256_broadcast_sd(halves->high + i),
                               _mm256_broadcast_sd(halves->low + i)),
                       heads, head);
    }
}

/* ---- a block -----------------------------------------------------------------------------------
 */

ENG_TARGET_AVX2 static void walk_block(const EngHashPlan *plan, const EngHashBlock *block)
{
    _Alignas(32) uint64_t mixes[ENG_HASH_BLOCK];
    Halves halves;
    const EngHashOrder *order = plan->orders;
    int64_t *rows = block->rows, per_token = (int64_t)plan->n_layers * plan->n_columns;
    for (int layer = 0; layer < plan->n_layers; layer++) {
        for (int i = 0; i < block->n; i += LANES)
            _mm256_store_si256((__m256i *)(mixes + i), _mm256_setzero_si256());
        for (int lag = 0; lag < plan->max_order; lag++) {
            mix_lag(mixes, block->ids[lag], plan->multipliers[layer][lag], block->n, &halves);
            if (lag + 1 < plan->min_order) continue;
            reduce(order++, plan->heads, &halves, block->n, rows, per_token);
            rows += plan->heads;
        }
    }
}

/* A few positions, mixed in scalar registers: a round through memory would cost more than it saves.
 */
ENG_TARGET_AVX2 static void walk_few(const EngHashPlan *plan, const EngHashBlock *block)
{
    int64_t *rows = block->rows;
    for (int i = 0; i < block->n; i++) {
        const EngHashOrder *order = plan->orders;
        for (int layer = 0; layer < plan->n_layers; layer++) {
            uint64_t mix = 0;
            for (int lag = 0; lag < plan->max_order; lag++) {
                mix ^= (uint64_t)block->ids[lag][i] * plan->multipliers[layer][lag];
                if (lag + 1 < plan->min_order) continue;
                int64_t low_bits = (int64_t)(mix & (((uint64_t)1 << ENG_HASH_LOW_BITS) - 1));
                __m256d high = _mm256_set1_pd((double)(int64_t)(mix >> ENG_HASH_LOW_BITS));
                __m256d low = _mm256_set1_pd((double)low_bits);
                for (int head = 0; head < plan->heads; head += LANES)
                    store_rows(rows, rows_of(constants_of(order, head), high, low), plan->heads,
                               head);
                order++;
                rows += plan->heads;
            }
        }
    }
}

ENG_TARGET_AVX2 static void hash_block(const EngHashPlan *plan, const EngHashBlock *block)
{
    if (block->n <= ENG_HASH_FEW)
        walk_few(plan, block);
    else
        walk_block(plan, block);
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngHashPlan *plan = state;
    return eng_cpu_hash_blocks(plan, problem, &args->u.hash,
                               plan->floats ? hash_block : eng_cpu_hash_block_reciprocal, err);
}

#else /* supports() refuses everything */

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state, (void)problem, (void)args;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "for x86-64 processors only");
}

#endif

const EngKernel eng_cpu_hash_avx2 = {
    .op = ENG_OP_HASH,
    .name = "avx2",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "AVX2: four heads a vector, remainders in double precision",
    .tunables = eng_cpu_hash_tunables,
    .supports = supports,
    .cost = eng_cpu_hash_cost,
    .create = eng_cpu_hash_plan,
    .run = run,
    .destroy = eng_free,
};
