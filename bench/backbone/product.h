/* Products with weights through oneDNN: y [rows, outputs] = x [rows, inputs] . w, f32 in and out.
 * Internal to bench/backbone.
 *
 * bf16 weights: x is rounded to bf16, sums stay f32. Weights lie as they are and rows may be any
 * number in each call: oneDNN packs on the way, so that nothing depends on how many tokens an
 * expert got.
 */
#ifndef ENG_BENCH_BACKBONE_PRODUCT_H
#define ENG_BENCH_BACKBONE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/status.h>
#include <engram/types.h>

typedef struct EngProducts EngProducts;

/* For weights of `dtype`, up to max_rows x max_inputs of input. ENG_UNSUPPORTED: bf16 without
 * AVX-512. */
EngStatus eng_products_create(EngDtype dtype, int64_t max_rows, int64_t max_inputs,
                              EngProducts **products, EngErr *err);
void eng_products_destroy(EngProducts *products); /* accepts NULL */

typedef struct EngProduct {
    const float *x; /* [rows, inputs] */
    const void *w;  /* [inputs, outputs], or [outputs, inputs] when transposed */
    float *y;       /* [rows, outputs] */
    int64_t rows, inputs, outputs;
    bool transposed;
} EngProduct;
EngStatus eng_product(EngProducts *products, const EngProduct *product, EngErr *err);

/* c [m, n] = alpha a [m, k] . b, in f32: b is [k, n], or [n, k] when transposed. */
typedef struct EngGemm {
    const float *a, *b;
    float *c;
    int64_t m, n, k, lda, ldb, ldc;
    bool transposed;
    float alpha;
} EngGemm;
EngStatus eng_gemm(const EngGemm *gemm, EngErr *err);

#endif
