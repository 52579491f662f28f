/* Oracles of the optimizers SGD, AdamW, sparse Adam and Muon in double precision; formulas stand
 * with their problems in engram/kernels.h. State and weights are updated in place. `errors`, where
 * not NULL, receives the worst case of the new weights of an f32 step from the same state.
 */
#ifndef ENG_KERNELS_REF_OPTIMIZERS_H
#define ENG_KERNELS_REF_OPTIMIZERS_H

#include <engram/kernels.h>

/* buffer may be NULL when momentum is 0. All arrays [n]. */
void eng_ref_sgd(const EngSgdProblem *problem, double *w, const double *grad, double *buffer,
                 double rate, double *errors);
void eng_ref_adamw(const EngAdamWProblem *problem, double *w, const double *grad, double *m,
                   double *v, double rate, int64_t step, double *errors);
/* w, m, v, errors [rows, row_dims] (errors of rows that are not touched: 0); row_steps [rows] or
 * NULL. */
void eng_ref_sparse_adam(const EngSparseAdamProblem *problem, double *w, const int64_t *touched,
                         int64_t n_touched, const double *grad, double *m, double *v,
                         int32_t *row_steps, double rate, int64_t step, double *errors);
/* Arrays [count, rows, cols]. False: no memory. The limit is statistical: an error in a small
 * singular value grows by 3.4445 in each step. */
bool eng_ref_muon(const EngMuonProblem *problem, double *w, const double *grad, double *buffer,
                  double rate, double *errors);

#endif
