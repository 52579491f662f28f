/* Oracle of the gate for training: forward (engram_facts section 6, steps 3-6) and backward
 * (section 7) in double precision, with the error limits of an f32 implementation.
 *
 * Data is double, so that finite differences can be taken of the forward. Shapes as in
 * EngTrainGateArgs and EngBackGateArgs. `errors` are worst cases of an f32 backward: roundings of
 * sums over `hidden` and, for weights, over tokens; the slope d gate / d score is taken over the
 * span in which an f32 score may lie, since it is steep near 0 and jumps at the clamp.
 */
#ifndef ENG_KERNELS_REF_TRAIN_GATE_H
#define ENG_KERNELS_REF_TRAIN_GATE_H

#include "kernels/ref/compare.h"

#include <engram/kernels.h>

typedef struct EngRefGateInputs {
    const double *streams; /* [tokens, streams, hidden] */
    const double *kv;      /* [tokens, (streams + 1) * hidden] */
    const double *q_weight, *k_weight;
    const uint8_t *dead; /* NULL: none */
} EngRefGateInputs;

/* d gate / d score; 0 where the clamp holds (strictly below 1e-6; never for the plain formula). */
double eng_ref_gate_slope(EngGateFormula formula, double score);

/* out [tokens, streams, hidden], kept [tokens, streams, ENG_GATE_KEPT]; either may be NULL. A dead
 * token keeps its streams; its kept are zeros. out_errors, kept_errors: limits, either may be NULL.
 */
void eng_ref_train_gate(const EngTrainGateProblem *problem, const EngRefGateInputs *inputs,
                        double *out, double *kept, double *out_errors, double *kept_errors);

typedef struct EngRefGateGradients {
    double *streams, *kv, *q_weight, *k_weight;
} EngRefGateGradients;

/* Gradients from d_out, all written; errors of the same shapes, or NULL. */
void eng_ref_back_gate(const EngTrainGateProblem *problem, const EngRefGateInputs *inputs,
                       const double *d_out, const EngRefGateGradients *gradients,
                       const EngRefGateGradients *errors);

#endif
