/* Oracle of the Sinkhorn-balanced update (paper.md 7.2) in double precision, as the algorithm is
 * written: dense momentum, and every step rewrites the matrix.
 */
#ifndef ENG_KERNELS_REF_SINKHORN_H
#define ENG_KERNELS_REF_SINKHORN_H

#include <engram/kernels.h>

/* One group of rows. grad and momentum (in/out) [rows, row_dims], zeros in rows without gradient;
 * step out, same shape: sqrt(row_dims) * U, what gamma * rate multiplies; ratios out [rows], may be
 * NULL: norm over mean norm, which tau is compared with (0 when all are 0); errors out as step, may
 * be NULL: worst case of an f32 implementation, unless a ratio is so near tau that it decides
 * otherwise. */
void eng_ref_sinkhorn_step(const EngSinkhornProblem *problem, int64_t rows, const double *grad,
                           double *momentum, double *step, double *ratios, double *errors);

/* All groups: w (in/out), grad, momentum (in/out), ratios (out, may be NULL) and errors (out, may
 * be NULL: of the new w) of the whole table. False: no memory. */
bool eng_ref_sinkhorn(const EngSinkhornProblem *problem, double *w, const double *grad,
                      double *momentum, double rate, double *ratios, double *errors);

#endif
