/* Oracle of the projection out = x . w^T (engram_facts section 6, step 2), in double precision.
 *
 * abs_sum is the sum of |x * w|: what the error bound of an f32 accumulation scales with
 * (kernels/ref/compare.h).
 */
#ifndef ENG_KERNELS_REF_PROJECT_H
#define ENG_KERNELS_REF_PROJECT_H

#include <engram/kernels.h>

/* Element i of x's token t, and element i of weight row j. */
double eng_ref_project_x(const EngProjectProblem *problem, const EngProjectArgs *args, int64_t t,
                         int i);
double eng_ref_project_w(const EngProjectProblem *problem, int j, int i);

/* One output element, for checks by sampling: k multiplications. abs_sum may be NULL. */
void eng_ref_project_at(const EngProjectProblem *problem, const EngProjectArgs *args, int64_t t,
                        int j, double *value, double *abs_sum);

/* All outputs: out [tokens, n] and abs_sums [tokens, n] (may be NULL). */
void eng_ref_project(const EngProjectProblem *problem, const EngProjectArgs *args, double *out,
                     double *abs_sums);

#endif
