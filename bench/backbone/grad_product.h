/* Products of training: general ones, and those with a weight matrix, forward and backward.
 * Internal to bench/backbone.
 *
 * With bf16 weights the operands of all three products (forward, gradient of the input, gradient of
 * the weights) are rounded to bf16; sums and results are f32.
 */
#ifndef ENG_BENCH_BACKBONE_GRAD_PRODUCT_H
#define ENG_BENCH_BACKBONE_GRAD_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/status.h>
#include <engram/types.h>
#include "bench/backbone/real.h"

/* c [m, n] = alpha a . b + beta c; a is [m, k], or [k, m] when turn_a; b likewise. */
typedef struct EngRealGemm {
    const EngReal *a, *b;
    EngReal *c;
    int64_t m, n, k, lda, ldb, ldc;
    bool turn_a, turn_b;
    EngReal alpha, beta;
} EngRealGemm;
EngStatus eng_real_gemm(const EngRealGemm *gemm, EngErr *err);

typedef struct EngDense {
    const EngReal *w;        /* [in, out], or [out, in] when turned */
    const EngReal *w_turned; /* a copy the other way round, which is faster backward, or NULL */
    const uint16_t *rounded; /* the same in bf16, or NULL */
    EngReal *gradient;       /* as w */
    int64_t in, out;
    bool turned;
    bool fresh; /* nothing is in the gradient yet: it is written, not added to */
} EngDense;

/* Rounded operands and primitives: one per lane. `rows` (up to ENG_DENSE_ROWS, 0: none) are numbers
 * of rows that come often, `most` the largest operand's elements. ENG_UNSUPPORTED: bf16 without
 * AVX-512. */
#define ENG_DENSE_ROWS 2
typedef struct EngDenses EngDenses;
EngStatus eng_denses_create(EngDtype dtype, int64_t most, const int64_t rows[ENG_DENSE_ROWS],
                            EngDenses **denses, EngErr *err);
void eng_denses_destroy(EngDenses *denses); /* accepts NULL */

/* y [rows, out] = x [rows, in] . w */
EngStatus eng_dense_forward(EngDenses *denses, const EngDense *dense, const EngReal *x,
                            int64_t rows, EngReal *y, EngErr *err);
/* d_x [rows, in] = d_y . w^T, added to what is there when `add` */
EngStatus eng_dense_input(EngDenses *denses, const EngDense *dense, const EngReal *d_y,
                          int64_t rows, EngReal *d_x, bool add, EngErr *err);
/* gradient += x^T . d_y, or = when it is fresh; no rows: zeros then */
EngStatus eng_dense_weight(EngDenses *denses, const EngDense *dense, const EngReal *x,
                           const EngReal *d_y, int64_t rows, EngErr *err);
/* Where a bf16 d_y may be put instead of passing one, NULL without bf16. */
uint16_t *eng_dense_rounded(EngDenses *denses, const EngDense *dense);
/* Both, which rounds d_y once (NULL: it lies in eng_dense_rounded); d_x may be x. */
EngStatus eng_dense_backward(EngDenses *denses, const EngDense *dense, const EngReal *x,
                             const EngReal *d_y, int64_t rows, EngReal *d_x, bool add, EngErr *err);

#endif
