/* The hash in blocks of positions: what the fast variants share.
 *
 * A driver cuts the batch into blocks of at most ENG_HASH_BLOCK positions and gives each block's
 * windows as one array of ids per lag, dead ones and everything older already replaced by the pad.
 * Where a block lies inside one sequence and holds no dead id these arrays are the caller's own
 * tokens, shifted. A variant's block function mixes and reduces.
 *
 * Remainders without division, two exact ways. Both take the mix m as an unsigned 64-bit number.
 *
 * 1. Double precision ("float"), for odd primes p < 2^35. Split m = hi * 2^49 + lo; with
 *    c = 2^49 mod p and k = (p - 1) / 2 let t = hi * c + lo - k, which is m - k modulo p.
 *    hi < 2^15 and c < 2^35 give |t| < 2^50 + 2^49: every step is exact, fused or not.
 *    With inv = 1/p rounded, x = t * inv differs from t/p by less than |t|/p * (2^-53 + 2^-53 +
 *    2^-106) < 0.38/p. t = q*p + e with |e| <= k for just one integer q, and then |t/p - q| <=
 *    1/2 - 1/(2p): so x lies within 1/2 of q, strictly, and adding and subtracting 1.5 * 2^52
 *    (round to nearest) gives q exactly. q*p and e = t - q*p are exact, and e + k is m mod p.
 *    Adding 2^52 + k + offset leaves row = offset + m mod p in the low bits of the double.
 *
 * 2. Fractions of 2^52 ("ifma"), for any prime p < 2^29. Split m = x2 * 2^42 + x1 * 2^21 + x0 with
 *    x0, x1 < 2^21 and x2 < 2^22. With r_i = ceil(2^(52 + 21 i) / p) modulo 2^52, the sum
 *    f = x0 r_0 + x1 r_1 + x2 r_2 modulo 2^52 is 2^52 * (m mod p) / p plus an error e, 0 <= e <
 *    x0 + x1 + x2 < 2^23: below 2^52 in all, since (m mod p) / p <= 1 - 1/p and 2^52 / p > 2^23.
 *    So f * p / 2^52 = m mod p + e * p / 2^52, where the last term is in [0, 1): the high half of
 *    the product is the remainder. Four multiply-adds, the last of which adds the offset too.
 *
 * Other primes (2, and larger ones) take a 64-bit reciprocal: with r = floor((2^64 - 1) / p),
 * q = floor(m * r / 2^64) is m / p or one less, so one conditional subtraction finishes it.
 */
#ifndef ENG_KERNELS_CPU_HASH_BLOCK_H
#define ENG_KERNELS_CPU_HASH_BLOCK_H

#include "kernels/cpu/hash.h"

#define ENG_HASH_BLOCK       256 /* most positions of a block */
#define ENG_HASH_FEW         4   /* positions that are better mixed one by one */
#define ENG_HASH_LANES       8   /* heads are padded to full vectors */
#define ENG_HASH_MAX_PADDED  (ENG_MAX_HEADS + ENG_HASH_LANES)
#define ENG_HASH_LOW_BITS    49
#define ENG_HASH_PIECE_BITS  21
#define ENG_HASH_ROUND       0x1.8p52              /* added and taken away: rounds to an integer */
#define ENG_HASH_DOUBLE_BITS 0x4330000000000000ull /* bits of 2^52 */

/* Constants of the heads of one layer and order; lanes past the last head hold those of prime 3. */
typedef struct EngHashOrder {
    double fold[ENG_HASH_MAX_PADDED];      /* 2^49 mod p */
    double half[ENG_HASH_MAX_PADDED];      /* -(p - 1) / 2 */
    double inverse[ENG_HASH_MAX_PADDED];   /* 1 / p */
    double minus[ENG_HASH_MAX_PADDED];     /* -p */
    double last[ENG_HASH_MAX_PADDED];      /* 2^52 + (p - 1) / 2 + offset */
    uint64_t part[3][ENG_HASH_MAX_PADDED]; /* r_0, r_1, r_2 */
    uint64_t prime[ENG_HASH_MAX_PADDED], offset[ENG_HASH_MAX_PADDED];
    uint64_t reciprocal[ENG_HASH_MAX_PADDED];
} EngHashOrder;

typedef struct EngHashPlan {
    int n_layers, n_columns, min_order, max_order, heads;
    int block; /* positions: a setting */
    int32_t pad;
    bool floats, fractions; /* which of the two ways all primes allow */
    uint64_t multipliers[ENG_MAX_LAYERS][ENG_MAX_ORDER];
    EngHashOrder orders[]; /* [n_layers, n_orders] */
} EngHashPlan;

/* ids[lag][i] is the id `lag` places before position i; readable up to the next multiple of eight
 * positions. Row j of column c of position i goes to rows[i * n_layers * n_columns + c]. */
typedef struct EngHashBlock {
    const int32_t *ids[ENG_MAX_ORDER];
    int n;
    int64_t *rows;
} EngHashBlock;

typedef void EngHashBlockFn(const EngHashPlan *plan, const EngHashBlock *block);

/* Settings of all block variants: positions of a block. */
extern const EngTunable eng_cpu_hash_tunables[];

/* EngKernel.create of all block variants; freed with eng_free. */
EngStatus eng_cpu_hash_plan(const EngProblem *problem, void **plan, EngErr *err);

/* The batch through `fn`, cut among the problem's threads. */
EngStatus eng_cpu_hash_blocks(const EngHashPlan *plan, const EngProblem *problem,
                              const EngHashArgs *args, EngHashBlockFn *fn, EngErr *err);

/* The way for all other primes. */
void eng_cpu_hash_block_reciprocal(const EngHashPlan *plan, const EngHashBlock *block);

#endif
