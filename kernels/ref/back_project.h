/* Oracle of the projection's backward (EngBackProjectProblem), one element at a time in double
 * precision. abs_sum is the sum of absolute products: what the error of an f32 sum scales with
 * (kernels/ref/compare.h). Operands of a BF16 problem are rounded to bf16 first.
 */
#ifndef ENG_KERNELS_REF_BACK_PROJECT_H
#define ENG_KERNELS_REF_BACK_PROJECT_H

#include <engram/kernels.h>

/* d_x of (token, input): n products. */
void eng_ref_back_project_x(const EngBackProjectProblem *problem, const EngBackProjectArgs *args,
                            int64_t t, int i, double *value, double *abs_sum);
/* What a run adds to d_w of (output, input): as many products as tokens. */
void eng_ref_back_project_w(const EngBackProjectProblem *problem, const EngBackProjectArgs *args,
                            int j, int i, double *value, double *abs_sum);
/* What a run adds to d_bias of an output; never rounded to bf16. */
void eng_ref_back_project_bias(const EngBackProjectProblem *problem, const EngBackProjectArgs *args,
                               int j, double *value, double *abs_sum);

#endif
