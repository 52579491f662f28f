/* Decoding of e4m3fn values with e8m0 scales on the CPU: exact for all 65,536 pairs.
 *
 * Source: engram_facts section 5. f32 output is value * 2^(scale - 127) (infinity where that
 * overflows); bf16 output is the same, rounded once.
 */
#ifndef ENG_KERNELS_CPU_DECODE_H
#define ENG_KERNELS_CPU_DECODE_H

#include <stdint.h>

/* values: 32 * groups bytes, scales: groups bytes, out: 32 * groups elements; any alignment. */
void eng_cpu_decode_f32(const uint8_t *values, const uint8_t *scales, int groups, void *out);
void eng_cpu_decode_bf16(const uint8_t *values, const uint8_t *scales, int groups, void *out);

/* int4 (engram/types.h): 16 * groups bytes of nibbles, groups bf16 scales at any alignment. The
 * product has 12 significant bits: exact in f32, rounded once in bf16. */
void eng_cpu_decode_int4_f32(const uint8_t *values, const uint8_t *scales, int groups, void *out);
void eng_cpu_decode_int4_bf16(const uint8_t *values, const uint8_t *scales, int groups, void *out);

/* The plain form: a table look-up and one product per value. Same results. */
void eng_cpu_decode_f32_table(const uint8_t *values, const uint8_t *scales, int groups, void *out);
void eng_cpu_decode_bf16_table(const uint8_t *values, const uint8_t *scales, int groups, void *out);

#endif
