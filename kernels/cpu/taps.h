/* What the short convolution of whole sequences and its backward share: rows of tokens that taps
 * read, and the norm before them (facts section 6 A). Internal to kernels/cpu.
 */
#ifndef ENG_KERNELS_CPU_TAPS_H
#define ENG_KERNELS_CPU_TAPS_H

#include "kernels/cpu/common.h"

#define ENG_MAX_TAPS 64

/* Up to ENG_MAX_TAPS rows of the same width: what the taps of a token read, and their weights. */
typedef struct EngTaps {
    const float *rows[ENG_MAX_TAPS], *weights[ENG_MAX_TAPS];
    int n;
} EngTaps;

/* Values of a token. */
static inline size_t eng_taps_width(const EngTrainConvProblem *p)
{
    return (size_t)p->streams * (size_t)p->hidden;
}

/* How far back tap `tap` reads. */
static inline int64_t eng_taps_reach(const EngTrainConvProblem *p, int tap)
{
    return (int64_t)(p->kernel - 1 - tap) * p->dilation;
}

EngStatus eng_taps_supports(const EngProblem *problem, EngErr *why);
/* weight [width, kernel] to taps [kernel, width]. */
void eng_taps_order(const EngTrainConvProblem *p, const float *weight, float *taps);
/* rstd [streams] of token t of value [tokens, width]. */
void eng_taps_norms(const EngTrainConvProblem *p, const float *value, int64_t t, float *rstd);
/* out[i] = v[i] * rstd * weight[i]. */
void eng_taps_normalise(const float *v, const float *weight, size_t n, float rstd, float *out);
/* out = sum of rows * weights, over n values. */
void eng_taps_sum(const EngTaps *taps, size_t n, float *out);

#endif
