/* Rows that lie in memory: copying them to a destination, and asking for their lines in advance. */
#ifndef ENG_KERNELS_STORE_COPY_H
#define ENG_KERNELS_STORE_COPY_H

#include <string.h>
#include <engram/store.h>

#define ENG_COPY_LINE 64
#define ENG_COPY_AHEAD                                                                             \
    16 /* rows between asking and copying: about as many misses as a core keeps */

/* Sizes of a row, computed once for a batch. */
typedef struct EngRowSizes {
    size_t value, stride, scale;
} EngRowSizes;

static inline EngRowSizes eng_row_sizes(EngRowFormat format, int row_dims)
{
    return (EngRowSizes){eng_row_value_bytes(format, row_dims),
                         eng_row_stride_bytes(format, row_dims),
                         eng_row_scale_bytes(format, row_dims)};
}

static inline void eng_prefetch_row(const EngRowSizes *sizes, const uint8_t *values,
                                    const uint8_t *scales, int64_t row)
{
    const uint8_t *p = values + (size_t)row * sizes->stride;
    for (size_t i = 0; i < sizes->value; i += ENG_COPY_LINE) __builtin_prefetch(p + i);
    __builtin_prefetch(p + sizes->value - 1);
    if (sizes->scale) __builtin_prefetch(scales + (size_t)row * sizes->scale);
}

/* Row `from` of one place into row `to` of another. */
static inline void eng_copy_row(const EngRowSizes *sizes, uint8_t *to_values, uint8_t *to_scales,
                                int64_t to, const uint8_t *values, const uint8_t *scales,
                                int64_t from)
{
    memcpy(to_values + (size_t)to * sizes->stride, values + (size_t)from * sizes->stride,
           sizes->value);
    if (sizes->scale)
        memcpy(to_scales + (size_t)to * sizes->scale, scales + (size_t)from * sizes->scale,
               sizes->scale);
}

#endif
