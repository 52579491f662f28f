/* Roofs of the gather: the same rows read and the same number of output bytes stored, without
 * decoding. One family, tuned over bursts and distance of the prefetch and the kind of store:
 * `roof_copy_d*` ask for the row so far ahead at each row, `roof_copy_g*` for bursts of so many
 * rows, `_nt` store past the caches (the others through them). Rows are moved by the widest vectors
 * of the machine. For fp8 output this is the operation itself.
 */
#include "kernels/cpu/gather_loop.h"
#include "kernels/cpu/isa.h"

#if ENG_X86
#include <immintrin.h>

ENG_ALWAYS_INLINE ENG_TARGET_AVX512 void put_512(uint8_t *to, const uint8_t *from, bool stream)
{
    __m512i x = _mm512_loadu_si512(from);
    if (stream)
        _mm512_stream_si512((__m512i *)to, x);
    else
        _mm512_storeu_si512(to, x);
}

ENG_ALWAYS_INLINE ENG_TARGET_AVX2 void put_256(uint8_t *to, const uint8_t *from, bool stream)
{
    for (int i = 0; i < 64; i += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(from + i));
        if (stream)
            _mm256_stream_si256((__m256i *)(to + i), x);
        else
            _mm256_storeu_si256((__m256i *)(to + i), x);
    }
}
#endif

/* 64 bytes with what every machine has. */
ENG_ALWAYS_INLINE void put_any(uint8_t *to, const uint8_t *from, bool stream)
{
    for (int i = 0; i < 64; i += 16) {
#if ENG_X86
        __m128i x = _mm_loadu_si128((const __m128i *)(from + i));
        if (stream)
            _mm_stream_si128((__m128i *)(to + i), x);
        else
            _mm_storeu_si128((__m128i *)(to + i), x);
#else
        (void)stream;
        memcpy(to + i, from + i, 16);
#endif
    }
}

typedef void PutFn(uint8_t *to, const uint8_t *from, bool stream);

/* One load of each line: what is read and not stored. */
ENG_ALWAYS_INLINE void touch(const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += 64) __asm__ volatile("" ::"r"(from[i]));
    if (n) __asm__ volatile("" ::"r"(from[n - 1]));
}

/* n bytes of output from a row, from its start again where it ends: 16 at once, since a roof may
 * not be slower than what it limits. */
ENG_ALWAYS_INLINE void fill(uint8_t *out, size_t n, const uint8_t *row, size_t row_bytes)
{
    size_t at = 0, step = row_bytes < 16 ? row_bytes : 16;
    for (; n >= 16 && step == 16; n -= 16, out += 16) {
        memcpy(out, row + at, 16);
        at = at + 32 <= row_bytes ? at + 16 : 0;
    }
    for (; n; n -= step, out += step) {
        if (n < step) step = n;
        for (size_t i = 0; i < step; i++) out[i] = row[i];
    }
}

/* Output is filled from the row line by line, each line stored as often as output is wider. */
ENG_ALWAYS_INLINE void copy_row(const EngGatherLoop *loop, const uint8_t *values,
                                const uint8_t *scales, uint8_t *out, uint8_t *out_scales,
                                PutFn *put, bool stream, int lines, int times)
{
    size_t read = 64 * (size_t)lines, stored = read * (size_t)times;
#pragma GCC unroll 4
    for (int line = 0; line < lines; line++)
        for (int i = 0; i < times; i++, out += 64) put(out, values + 64 * (size_t)line, stream);
    if (loop->row_bytes > read) touch(values + read, loop->row_bytes - read);
    if (stored < loop->out_bytes) /* small or odd rows */
        fill(out, loop->out_bytes - stored, values, loop->row_bytes);
    if (loop->out_scale_bytes == 8)
        memcpy(out_scales, scales, 8);
    else if (loop->out_scale_bytes)
        memcpy(out_scales, scales, loop->out_scale_bytes);
    else if (loop->scale_bytes == 8)
        __asm__ volatile("" ::"r"(*scales));
    else if (loop->scale_bytes)
        touch(scales, loop->scale_bytes);
}

/* ---- parts -------------------------------------------------------------------------------------
 */

typedef struct Tuning {
    unsigned burst, ahead; /* see eng_gather_bursts */
} Tuning;

/* Lines of a row that are stored, and how often each. */
typedef struct Shape {
    int lines, times;
} Shape;

static Shape shape_of(const EngGatherLoop *loop)
{
    size_t lines = loop->row_bytes / 64, out_lines = loop->out_bytes / 64;
    if (!lines || !out_lines) return (Shape){0, 1};
    if (out_lines < lines) return (Shape){(int)out_lines, 1};
    return (Shape){(int)lines, (int)(out_lines / lines)};
}

/* Constants for rows of 256 fp8 or bf16 values; any other shape with the values at run time. */
#define SHAPED(name, TARGET, PUT, STREAM, LINES, TIMES)                                            \
    ENG_ALWAYS_INLINE TARGET void row_##name(const EngGatherLoop *loop, const uint8_t *values,     \
                                             const uint8_t *scales, uint8_t *out,                  \
                                             uint8_t *out_scales)                                  \
    {                                                                                              \
        copy_row(loop, values, scales, out, out_scales, PUT, STREAM, LINES, TIMES);                \
    }                                                                                              \
    TARGET static void part_##name(const EngGatherLoop *loop)                                      \
    {                                                                                              \
        const Tuning *tuning = loop->state;                                                        \
        if (eng_gather_kind(loop) == ENG_ROWS_SPLIT_256)                                           \
            eng_gather_bursts(loop, row_##name, tuning->burst, tuning->ahead, ENG_ROWS_SPLIT_256); \
        else                                                                                       \
            eng_gather_bursts(loop, row_##name, tuning->burst, tuning->ahead, ENG_ROWS_ANY);       \
    }

#define PARTS(name, TARGET, PUT)                                                                   \
    SHAPED(name##_1, TARGET, PUT, false, 4, 1)                                                     \
    SHAPED(name##_1_stream, TARGET, PUT, true, 4, 1)                                               \
    SHAPED(name##_8, TARGET, PUT, false, 8, 1)                                                     \
    SHAPED(name##_8_stream, TARGET, PUT, true, 8, 1)                                               \
    SHAPED(name##_2, TARGET, PUT, false, 4, 2)                                                     \
    SHAPED(name##_2_stream, TARGET, PUT, true, 4, 2)                                               \
    SHAPED(name##_4, TARGET, PUT, false, 4, 4)                                                     \
    SHAPED(name##_4_stream, TARGET, PUT, true, 4, 4)                                               \
    SHAPED(name##_any, TARGET, PUT, false, shape_of(loop).lines, shape_of(loop).times)             \
    SHAPED(name##_any_stream, TARGET, PUT, true, shape_of(loop).lines, shape_of(loop).times)       \
    static void part_##name(const EngGatherLoop *loop)                                             \
    {                                                                                              \
        Shape shape = shape_of(loop);                                                              \
        if (shape.lines == 4 && shape.times == 1)                                                  \
            (loop->stream ? part_##name##_1_stream : part_##name##_1)(loop);                       \
        else if (shape.lines == 8 && shape.times == 1)                                             \
            (loop->stream ? part_##name##_8_stream : part_##name##_8)(loop);                       \
        else if (shape.lines == 4 && shape.times == 2)                                             \
            (loop->stream ? part_##name##_2_stream : part_##name##_2)(loop);                       \
        else if (shape.lines == 4 && shape.times == 4)                                             \
            (loop->stream ? part_##name##_4_stream : part_##name##_4)(loop);                       \
        else                                                                                       \
            (loop->stream ? part_##name##_any_stream : part_##name##_any)(loop);                   \
    }

PARTS(base, , put_any)
#if ENG_X86
PARTS(avx512, ENG_TARGET_AVX512, put_512)
PARTS(avx2, ENG_TARGET_AVX2, put_256)
#endif

static void part(const EngGatherLoop *loop)
{
#if ENG_X86
    unsigned isa = eng_isa_present();
    EngGatherPartFn *fn = isa & ENG_ISA_AVX512 ? part_avx512
                          : isa & ENG_ISA_AVX2 ? part_avx2
                                               : part_base;
    fn(loop);
    _mm_sfence();
#else
    part_base(loop);
#endif
}

#define ROOF(id, text_name, BURST, AHEAD, STREAM, text)                                            \
    static EngStatus run_##id(void *state, const EngProblem *problem, const EngArgs *args,         \
                              EngErr *err)                                                         \
    {                                                                                              \
        static const Tuning tuning = {BURST, AHEAD};                                               \
        (void)state, (void)err;                                                                    \
        eng_cpu_gather_parts(problem, &args->u.gather, part, &tuning, STREAM ? 0 : SIZE_MAX);      \
        return ENG_OK;                                                                             \
    }                                                                                              \
    const EngKernel eng_cpu_gather_roof_##id = {                                                   \
        .op = ENG_OP_GATHER,                                                                       \
        .name = text_name,                                                                         \
        .backend = ENG_CPU,                                                                        \
        .roof = true,                                                                              \
        .checked = false,                                                                          \
        .summary = "roof: same rows read, same bytes stored, no decoding; " text,                  \
        .supports = eng_cpu_gather_supports,                                                       \
        .cost = eng_cpu_gather_cost,                                                               \
        .run = run_##id,                                                                           \
    }

ROOF(d0, "roof_copy_d0", 1, 0, false, "no prefetch");
ROOF(d16, "roof_copy_d16", 1, 16, false, "16 rows ahead");
ROOF(d48, "roof_copy_d48", 1, 48, false, "48 rows ahead");
ROOF(g12, "roof_copy_g12", 12, 12, false, "bursts of 12 rows");
ROOF(g12_nt, "roof_copy_g12_nt", 12, 12, true, "bursts of 12 rows, stored past the caches");
ROOF(g16_nt, "roof_copy_g16_nt", 16, 16, true, "bursts of 16 rows, stored past the caches");
ROOF(g24_nt, "roof_copy_g24_nt", 24, 24, true, "bursts of 24 rows, stored past the caches");
ROOF(g4a96_nt, "roof_copy_g4a96_nt", 4, 96, true,
     "bursts of 4, 96 rows ahead, stored past the caches");
ROOF(g24, "roof_copy_g24", 24, 24, false, "bursts of 24 rows");
ROOF(g48, "roof_copy_g48", 48, 48, false, "bursts of 48 rows");
ROOF(g64, "roof_copy_g64", 64, 64, false, "bursts of 64 rows");
ROOF(d48_nt, "roof_copy_d48_nt", 1, 48, true, "48 rows ahead, stored past the caches");
ROOF(g4_nt, "roof_copy_g4_nt", 4, 48, true, "bursts of 4, 48 rows ahead, stored past the caches");
ROOF(g48_nt, "roof_copy_g48_nt", 48, 48, true, "bursts of 48 rows, stored past the caches");
