/* Streams; see stream.h. Four lines per turn. Non-temporal stores go by whole lines: one store with
 * AVX-512, else four of SSE2, which every x86-64 has and write combining joins.
 */
#include "kernels/cpu/stream.h"

#include <omp.h>
#include <string.h>

#include "kernels/cpu/common.h"
#include "kernels/cpu/isa.h"

#if ENG_X86
#include <immintrin.h>
#endif

#define LINE 64

typedef uint64_t Words __attribute__((vector_size(LINE), aligned(LINE), may_alias));

static const char *const g_names[ENG_STREAM_OP_COUNT] = {"read", "write", "copy", "update"};

const char *eng_stream_op_name(EngStreamOp op)
{
    return (unsigned)op < ENG_STREAM_OP_COUNT ? g_names[op] : NULL;
}

int eng_stream_op_parse(const char *name)
{
    for (int i = 0; i < ENG_STREAM_OP_COUNT; i++)
        if (!strcmp(g_names[i], name)) return i;
    return -1;
}

int eng_stream_op_factor(EngStreamOp op)
{
    return op == ENG_STREAM_COPY || op == ENG_STREAM_UPDATE ? 2 : 1;
}

EngStatus eng_stream_supports(EngStreamOp op, bool non_temporal, EngErr *why)
{
    if (!non_temporal) return ENG_OK;
    if (op == ENG_STREAM_READ)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "a read stores nothing, non-temporal or not");
    if (!ENG_X86) return ENG_FAIL(why, ENG_UNSUPPORTED, "no non-temporal stores on this processor");
    return ENG_OK;
}

/* ---- ordinary stores ---------------------------------------------------------------------------
 */

ENG_CLONES static uint64_t read_words(const uint8_t *from, size_t n)
{
    const Words *p = (const Words *)(const void *)from;
    Words a = {0}, b = {0}, c = {0}, d = {0};
    size_t lines = n / LINE, i = 0;
    for (; i + 4 <= lines; i += 4) {
        a += p[i];
        b += p[i + 1];
        c += p[i + 2];
        d += p[i + 3];
    }
    for (; i < lines; i++) a += p[i];
    uint64_t sum = 0;
    a += b + c + d;
    for (int j = 0; j < 8; j++) sum += a[j];
    return sum;
}

/* Loops over whole lines that the compiler may not turn into memset or memcpy, whose choice of
 * stores is not ours. */
ENG_CLONES static void write_words(uint8_t *to, size_t n, uint64_t value)
{
    Words *p = (Words *)(void *)to;
    Words v = value - (Words){0};
    for (size_t i = 0; i < n / LINE; i++) {
        p[i] = v;
        __asm__ volatile("" ::: "memory");
    }
}

ENG_CLONES static void copy_words(uint8_t *to, const uint8_t *from, size_t n)
{
    Words *p = (Words *)(void *)to;
    const Words *q = (const Words *)(const void *)from;
    for (size_t i = 0; i < n / LINE; i++) {
        p[i] = q[i];
        __asm__ volatile("" ::: "memory");
    }
}

ENG_CLONES static void update_words(uint8_t *to, size_t n, uint64_t value)
{
    Words *p = (Words *)(void *)to;
    for (size_t i = 0; i < n / LINE; i++) p[i] += value;
}

/* ---- non-temporal stores -----------------------------------------------------------------------
 */

#if ENG_X86
/* Each loads (where it does), changes and stores lines. */
ENG_TARGET_AVX512 static void stream_avx512(EngStreamOp op, uint8_t *to, const uint8_t *from,
                                            size_t n, uint64_t value)
{
    __m512i v = _mm512_set1_epi64((long long)value);
    if (op == ENG_STREAM_WRITE)
        for (size_t i = 0; i < n; i += LINE) _mm512_stream_si512((void *)(to + i), v);
    else if (op == ENG_STREAM_COPY)
        for (size_t i = 0; i < n; i += LINE)
            _mm512_stream_si512((void *)(to + i), _mm512_load_si512((const void *)(from + i)));
    else
        for (size_t i = 0; i < n; i += LINE)
            _mm512_stream_si512((void *)(to + i),
                                _mm512_add_epi64(_mm512_load_si512((const void *)(to + i)), v));
    _mm_sfence();
}

static void stream_sse2(EngStreamOp op, uint8_t *to, const uint8_t *from, size_t n, uint64_t value)
{
    __m128i v = _mm_set1_epi64x((long long)value);
    const uint8_t *source = op == ENG_STREAM_COPY ? from : to;
    for (size_t i = 0; i < n; i += sizeof v) {
        __m128i x = v;
        if (op != ENG_STREAM_WRITE) x = _mm_load_si128((const __m128i *)(const void *)(source + i));
        if (op == ENG_STREAM_UPDATE) x = _mm_add_epi64(x, v);
        _mm_stream_si128((__m128i *)(void *)(to + i), x);
    }
    _mm_sfence();
}

static void stream(EngStreamOp op, uint8_t *to, const uint8_t *from, size_t n, uint64_t value)
{
    if (eng_isa_present() & ENG_ISA_AVX512)
        stream_avx512(op, to, from, n, value);
    else
        stream_sse2(op, to, from, n, value);
}
#else
static void stream(EngStreamOp op, uint8_t *to, const uint8_t *from, size_t n, uint64_t value)
{
    (void)op, (void)to, (void)from, (void)n, (void)value; /* refused by eng_stream_supports */
}
#endif

uint64_t eng_stream_pass(EngStreamOp op, bool non_temporal, uint8_t *to, const uint8_t *from,
                         size_t n, uint64_t value)
{
    if (op == ENG_STREAM_READ) return read_words(to, n);
    if (non_temporal)
        stream(op, to, from, n, value);
    else if (op == ENG_STREAM_WRITE)
        write_words(to, n, value);
    else if (op == ENG_STREAM_COPY)
        copy_words(to, from, n);
    else
        update_words(to, n, value);
    return 0;
}

uint64_t eng_stream_parts(EngStreamOp op, bool non_temporal, uint8_t *to, const uint8_t *from,
                          int threads, const size_t *offset, size_t n, uint64_t value)
{
    uint64_t sum = 0;
    const uint8_t *source = op == ENG_STREAM_COPY ? from : to;
    if (threads == 1)
        return eng_stream_pass(op, non_temporal, to + offset[0], source + offset[0], n, value);
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    /* A team may come out smaller than asked for: every part is passed over all the same. */
    for (int part = omp_get_thread_num(); part < threads; part += omp_get_num_threads())
        sum +=
            eng_stream_pass(op, non_temporal, to + offset[part], source + offset[part], n, value);
    return sum;
}
