/* Number formats of the oracle, decoded by definition and in double precision, where every value of
 * every format is exact.
 *
 * Source: engram_facts section 5. e4m3fn is the OCP format without infinities (0x7f and 0xff are
 * NaN, the largest value is 448); e8m0 is a power of two, 2^(byte - 127), with 255 as NaN and byte
 * 0 as 2^-127 (not zero).
 */
#ifndef ENG_KERNELS_REF_FP8_H
#define ENG_KERNELS_REF_FP8_H

#include <stdint.h>

double eng_ref_e4m3(uint8_t byte);
double eng_ref_e8m0(uint8_t byte);

double eng_ref_bf16(uint16_t bits);
/* One rounding, to nearest with ties to even; overflow gives infinity, a NaN stays one. */
uint16_t eng_ref_bf16_round(double value);
/* The same rounding to f32, as a float. */
float eng_ref_f32_round(double value);

#endif
