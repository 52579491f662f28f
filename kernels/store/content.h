/* Seeded random table content: a function of format, seed and position alone, so that a smaller
 * table is bit for bit the start of a larger one, in memory and on disk.
 *
 * fp8: values are e4m3fn bytes without NaN codes, scale bytes 0x70..0x7b. bf16 and f32: normal
 * values of deviation 0.1. int4: any nibbles, scales of 2^-7 to 2^-6. Scales that lie inside rows
 * depend on the row's size and are written over the values in a second step.
 */
#ifndef ENG_KERNELS_STORE_CONTENT_H
#define ENG_KERNELS_STORE_CONTENT_H

#include <engram/status.h>
#include <engram/types.h>

/* Positions must be multiples of it: each chunk has a random stream of its own. */
#define ENG_CONTENT_CHUNK_BYTES ((size_t)64 << 10)

#define ENG_CONTENT_QUANTILES   65537

typedef struct EngContent {
    EngRowFormat format;
    uint64_t seed;
    float *
        quantiles; /* [ENG_CONTENT_QUANTILES] of the normal distribution, for bf16 and f32; owned */
} EngContent;

EngStatus eng_content_create(EngContent *content, EngRowFormat format, uint64_t seed, EngErr *err);
void eng_content_destroy(EngContent *content);

/* n bytes from `at` of the values, or of the scales where they lie apart. */
void eng_content_values(const EngContent *content, uint64_t at, size_t n, uint8_t *out);
void eng_content_scales(const EngContent *content, uint64_t at, size_t n, uint8_t *out);
/* Writes what scales inside rows of row_dims have in bytes [at, at + n) of the values; at may be
 * anything. Nothing to do for other formats. */
void eng_content_row_scales(const EngContent *content, int row_dims, uint64_t at, size_t n,
                            uint8_t *out);

#endif
