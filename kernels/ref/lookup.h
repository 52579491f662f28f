/* Oracle of the look-up (gather and project in one) in double precision: the table's values,
 * rounded to bf16 where their format holds more, times the weights (engram_facts sections 5 and 6).
 * abs_sum as in project.h.
 */
#ifndef ENG_KERNELS_REF_LOOKUP_H
#define ENG_KERNELS_REF_LOOKUP_H

#include <engram/kernels.h>

/* One output element. abs_sum may be NULL. */
void eng_ref_lookup_at(const EngLookupProblem *problem, const EngLookupArgs *args, int64_t t, int j,
                       double *value, double *abs_sum);

/* All outputs: out [tokens, n] and abs_sums [tokens, n] (may be NULL). */
void eng_ref_lookup(const EngLookupProblem *problem, const EngLookupArgs *args, double *out,
                    double *abs_sums);

#endif
