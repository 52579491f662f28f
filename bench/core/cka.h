/* Likeness of representations: linear CKA with the unbiased minibatch estimator of HSIC (paper
 * notes 5.2). */
#ifndef ENG_BENCH_CKA_H
#define ENG_BENCH_CKA_H

#include <stdint.h>

#include <engram/status.h>

/* x [n, dx] and y [n, dy], rows the same n samples in both, n at least `batch` >= 4: for each batch
 * of rows the three HSIC terms, K = XX' and L = YY' with zero diagonal,
 *   (tr(KL) + (1'K1)(1'L1) / ((b-1)(b-2)) - 2 / (b-2) 1'KL1) / (b (b-3)),
 * averaged over batches before the ratio is taken. Rows beyond the last whole batch are left out.
 * ENG_USAGE: too few rows; ENG_NO_MEMORY. Representations without spread give NaN. */
EngStatus eng_cka(const float *x, int dx, const float *y, int dy, int64_t n, int batch, double *cka,
                  EngErr *err);

#endif
