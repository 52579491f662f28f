/* Comparing a kernel's output with the oracle: residuals, limits and a verdict.
 *
 * Limits are derived, not tuned. With u the unit roundoff of a type (2^-24 for f32, 2^-8 for bf16):
 *  - an f32 accumulation of k products, in any order, errs by at most k * 2^-24 * sum|a*w|, and for
 *    independent roundings by about sqrt(k) * 2^-24 * sum|a*w|;
 *  - the final rounding adds u(out) * |want|, or half the smallest subnormal.
 * `pass` is the worst case: beyond it the result is wrong. `warn` is four times the statistical
 * estimate (never above pass): between the two the result is marginal: possible, but no correct
 * kernel should get there, and a gather or a copy has limits of 0, so any difference is wrong.
 * NaN and infinity are compared by position: both or neither, with the same sign of infinity.
 */
#ifndef ENG_KERNELS_REF_COMPARE_H
#define ENG_KERNELS_REF_COMPARE_H

#include <stdbool.h>
#include <engram/types.h>

typedef enum EngResidualVerdict {
    ENG_RESIDUAL_PASS = 0,
    ENG_RESIDUAL_MARGINAL,
    ENG_RESIDUAL_FAIL
} EngResidualVerdict;

typedef struct EngLimit {
    double warn, pass; /* absolute error */
} EngLimit;

typedef struct EngComparison {
    int64_t count;     /* elements compared */
    int64_t nonfinite; /* NaN or infinity on one side only, or of different sign */
    int64_t marginal;  /* elements above warn, not above pass */
    int64_t failed;    /* elements above pass, nonfinite ones included */
    double max_abs;    /* largest |got - want| of finite pairs */
    double max_rel;    /* largest |got - want| / |want|, want not 0 */
    double max_share;  /* largest |got - want| / pass limit: 1 is the limit itself */
    int64_t worst;     /* index of the element with max_share, or of the first nonfinite; -1 */
    double got, want;  /* of that element */
    EngLimit limit;    /* of that element */
    EngResidualVerdict verdict;
} EngComparison;

/* "pass", "marginal", "fail". */
const char *eng_residual_verdict_name(EngResidualVerdict verdict);

/* Unit roundoff of F32 or BF16, and the error of one rounding of `value` to it. */
double eng_unit_roundoff(EngDtype type);
double eng_rounding_error(EngDtype type, double value);
/* Limits for an f32 sum of `terms` products whose absolute values add to abs_sum, rounded to out.
 */
EngLimit eng_limit_sum(EngDtype out, double want, double terms, double abs_sum);

void eng_residual_start(EngComparison *residual);
/* Adds one element; its index is the count so far. type tells where overflow to infinity is right.
 */
void eng_residual_add(EngComparison *residual, EngDtype type, double got, double want,
                      EngLimit limit);

/* Whole buffers, started afresh. got may be unaligned. abs_sums NULL: one final rounding only. */
void eng_compare_f32(EngComparison *residual, const float *got, const double *want,
                     const double *abs_sums, double terms, int64_t n);
void eng_compare_bf16(EngComparison *residual, const uint16_t *got, const double *want,
                      const double *abs_sums, double terms, int64_t n);
/* Bit for bit (n elements of F32 or BF16, or bytes for FP8), except that any NaN equals any NaN in
 * F32 and BF16. */
void eng_compare_bits(EngComparison *residual, EngDtype type, const void *got, const void *want,
                      int64_t n);

#endif
