/* Oracle of the short convolution over whole sequences and of its backward (engram_facts section 6
 * A), in double precision, with worst-case errors of an f32 implementation. Shapes as in
 * EngTrainConvArgs and EngBackConvArgs; data is double, so that finite differences can be taken.
 */
#ifndef ENG_KERNELS_REF_TRAIN_CONV_H
#define ENG_KERNELS_REF_TRAIN_CONV_H

#include <engram/kernels.h>

typedef struct EngRefConvInputs {
    const double *value, *norm_weight, *conv_weight;
    const int64_t *starts; /* NULL: one sequence */
    int64_t n_seqs;
} EngRefConvInputs;

/* out [tokens, streams, hidden]; errors of that shape, or NULL. */
void eng_ref_train_conv(const EngTrainConvProblem *problem, const EngRefConvInputs *inputs,
                        double *out, double *errors);

typedef struct EngRefConvGradients {
    double *value, *norm_weight, *conv_weight;
} EngRefConvGradients;

/* Gradients from d_out, all written; errors of the same shapes, or NULL. False: no memory. */
bool eng_ref_back_conv(const EngTrainConvProblem *problem, const EngRefConvInputs *inputs,
                       const double *d_out, const EngRefConvGradients *gradients,
                       const EngRefConvGradients *errors);

#endif
