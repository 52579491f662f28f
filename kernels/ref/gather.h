/* Oracle of the gather: the one right output, bit for bit (NaN payloads aside).
 *
 * Source: engram_facts section 5: f32(fp8) * 2^(scale - 127), then one rounding to the output type.
 */
#ifndef ENG_KERNELS_REF_GATHER_H
#define ENG_KERNELS_REF_GATHER_H

#include <engram/kernels.h>

/* Value of element i of a table row: exact. */
double eng_ref_table_value(const EngTable *table, int64_t row, int i);

/* One row in the output type: out holds row_dims elements, out_scales row_dims / 32 bytes (FP8
 * output, else unused). */
void eng_ref_gather_row(const EngTable *table, int64_t row, EngDtype type, void *out,
                        uint8_t *out_scales);

/* The whole operation, into args->out and args->out_scales. */
void eng_ref_gather(const EngGatherProblem *problem, const EngGatherArgs *args);

#endif
