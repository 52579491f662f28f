/* What the vector gathers share: a part for each way to store, and the row that no vector decodes.
 * Empty on other processors than x86-64.
 */
#ifndef ENG_KERNELS_CPU_GATHER_PARTS_H
#define ENG_KERNELS_CPU_GATHER_PARTS_H

#include "kernels/cpu/decode.h"
#include "kernels/cpu/gather_loop.h"
#include "kernels/cpu/isa.h"

#if ENG_X86
#include <immintrin.h>

/* Rare, and kept out of the loops. */
static __attribute__((noinline, unused)) void eng_gather_scalar_row(const uint8_t *values,
                                                                    const uint8_t *scales,
                                                                    int groups, uint8_t *out,
                                                                    bool f32)
{
    if (f32)
        eng_cpu_decode_f32_table(values, scales, groups, out);
    else
        eng_cpu_decode_bf16_table(values, scales, groups, out);
}

/* A part for each way to store, and for rows of 256 dims, whose eight groups are then a constant.
 * BODY sees loop, values, scales, out, out_scales, groups and stream. */
#define ENG_GATHER_ROW(name, TARGET, GROUPS, STREAM, BODY)                                         \
    ENG_ALWAYS_INLINE TARGET void name(const EngGatherLoop *loop, const uint8_t *values,           \
                                       const uint8_t *scales, uint8_t *out, uint8_t *out_scales)   \
    {                                                                                              \
        const int groups = GROUPS;                                                                 \
        const bool stream = STREAM;                                                                \
        (void)loop, (void)scales, (void)out_scales, (void)groups, (void)stream;                    \
        BODY;                                                                                      \
    }

#define ENG_GATHER_PART(name, TARGET, BURST, BODY)                                                 \
    ENG_GATHER_ROW(name##_any, TARGET, loop->groups, false, BODY)                                  \
    ENG_GATHER_ROW(name##_any_stream, TARGET, loop->groups, true, BODY)                            \
    ENG_GATHER_ROW(name##_eight, TARGET, 8, false, BODY)                                           \
    ENG_GATHER_ROW(name##_eight_stream, TARGET, 8, true, BODY)                                     \
    TARGET static void name(const EngGatherLoop *loop)                                             \
    {                                                                                              \
        EngRowKind kind = eng_gather_kind(loop);                                                   \
        if (kind == ENG_ROWS_SPLIT_256 && loop->stream)                                            \
            eng_gather_bursts(loop, name##_eight_stream, BURST, BURST, ENG_ROWS_SPLIT_256);        \
        else if (kind == ENG_ROWS_SPLIT_256)                                                       \
            eng_gather_bursts(loop, name##_eight, BURST, BURST, ENG_ROWS_SPLIT_256);               \
        else if (loop->groups == 8 && loop->stream)                                                \
            eng_gather_bursts(loop, name##_eight_stream, BURST, BURST, ENG_ROWS_ANY);              \
        else if (loop->groups == 8)                                                                \
            eng_gather_bursts(loop, name##_eight, BURST, BURST, ENG_ROWS_ANY);                     \
        else if (loop->stream)                                                                     \
            eng_gather_bursts(loop, name##_any_stream, BURST, BURST, ENG_ROWS_ANY);                \
        else                                                                                       \
            eng_gather_bursts(loop, name##_any, BURST, BURST, ENG_ROWS_ANY);                       \
        if (loop->stream) _mm_sfence();                                                            \
    }
#endif

#endif
