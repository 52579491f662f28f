/* Oracle of the short convolution of the original variant (engram_facts section 6 A), in double
 * precision: y = v + silu(sum over taps of w[tap] * rmsnorm(v)[t - (kernel-1-tap) * dilation]).
 */
#ifndef ENG_KERNELS_REF_CONV_H
#define ENG_KERNELS_REF_CONV_H

#include "kernels/ref/compare.h"

#include <engram/kernels.h>

/* value [tokens, streams, hidden]; state_in [(kernel-1)*dilation, streams, hidden], oldest first.
 * out as value; state_out as state_in; abs_sums [tokens, streams, hidden] holds the sum of
 * |tap * normalised|. state_out and abs_sums may be NULL. */
void eng_ref_conv(const EngConvProblem *problem, const float *value, const float *state_in,
                  double *out, double *state_out, double *abs_sums);

/* Limit of one f32 output: the slope of silu is below 1.1, and normalised values err like a mean
 * over `hidden` squares. */
EngLimit eng_ref_conv_limit(const EngConvProblem *problem, double want, double value,
                            double abs_sum);

#endif
