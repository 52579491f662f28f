/* Oracle of the gather's backward: the gradients of each distinct row summed in double precision.
 */
#ifndef ENG_KERNELS_REF_BACK_GATHER_H
#define ENG_KERNELS_REF_BACK_GATHER_H

#include <engram/kernels.h>

/* Distinct rows ascending into touched [tokens * columns]; gives how many. False: no memory. */
bool eng_ref_touched(const EngBackGatherProblem *problem, const EngBackGatherArgs *args,
                     int64_t *touched, int64_t *n_touched);
/* Sum, sum of absolute values and number of the gradients of one row: [row_dims] each. */
void eng_ref_back_gather_row(const EngBackGatherProblem *problem, const EngBackGatherArgs *args,
                             int64_t row, double *sum, double *abs_sum, int64_t *n);

#endif
