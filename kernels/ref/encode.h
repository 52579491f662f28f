/* Oracle of how values become a table row of each format: the nearest that the format holds.
 *
 * fp8: per 32 values the smallest power of two with which the largest stays within 448, then the
 * nearest e4m3fn number (engram_facts section 5). int4: per 32 values the bf16 number nearest to
 * largest / 7, then the nearest of -8..7. Ties go to even.
 */
#ifndef ENG_KERNELS_REF_ENCODE_H
#define ENG_KERNELS_REF_ENCODE_H

#include <engram/types.h>

/* values: eng_row_stride_bytes(), padding zeroed; scales: eng_row_scale_bytes(), else unused. */
void eng_ref_encode_row(EngRowFormat format, int row_dims, const float *row, uint8_t *values,
                        uint8_t *scales);

#endif
