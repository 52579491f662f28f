/* What the CPU variants share: which problems an operation accepts and what they cost (the same for
 * all its variants), how work is cut among threads, and compiling one C function for several
 * instruction sets.
 */
#ifndef ENG_KERNELS_CPU_COMMON_H
#define ENG_KERNELS_CPU_COMMON_H

#include <engram/kernels.h>
#include <string.h>

/* Compiled for AVX-512, AVX2 and the base instruction set, chosen when the program is loaded. Put
 * it on leaf functions only: the body of an OpenMP region inside would not be cloned. Contraction
 * is off, so that all clones of an elementwise loop give the same bits. Not under the thread
 * sanitizer: the loader would call instrumented resolvers before the sanitizer is there. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ENG_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ENG_CLONES
#endif

/* Sixteen lanes, whatever the machine's vectors are; loads and stores need no alignment. */
typedef float EngLanesF32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t EngLanesU32 __attribute__((vector_size(64), aligned(1), may_alias));
#define ENG_LANES 16

/* ENG_OK, or ENG_UNSUPPORTED with the reason; buffers are not looked at. */
EngStatus eng_cpu_gather_supports(const EngProblem *problem, EngErr *why);
EngStatus eng_cpu_project_supports(const EngProblem *problem, EngErr *why);
EngStatus eng_cpu_gate_supports(const EngProblem *problem, EngErr *why);
EngStatus eng_cpu_conv_supports(const EngProblem *problem, EngErr *why);
EngStatus eng_cpu_lookup_supports(const EngProblem *problem, EngErr *why);

/* Gather: row ids are not counted (gather bandwidth is logical row bytes over time). */
void eng_cpu_gather_cost(const EngProblem *problem, EngCost *cost);
void eng_cpu_project_cost(const EngProblem *problem, EngCost *cost);
void eng_cpu_gate_cost(const EngProblem *problem, EngCost *cost);
void eng_cpu_conv_cost(const EngProblem *problem, EngCost *cost);
/* Rows and weights read, outputs written: nothing for what lies between gather and product. */
void eng_cpu_lookup_cost(const EngProblem *problem, EngCost *cost);

/* The gather and the product that a look-up is made of, with x as the type between them. */
EngProblem eng_cpu_lookup_gather(const EngProblem *problem, EngDtype x);
EngProblem eng_cpu_lookup_project(const EngProblem *problem, EngDtype x);

/* Part `index` of `parts` of [0, total): contiguous, sizes differ by one at most. */
static inline void eng_cpu_share(int64_t total, int parts, int index, int64_t *from, int64_t *to)
{
    int64_t each = total / parts, more = total % parts;
    *from = each * index + (index < more ? index : more);
    *to = *from + each + (index < more);
}

static inline float eng_cpu_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t eng_cpu_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* To nearest, ties to even; a NaN keeps its sign and upper payload and becomes quiet. */
static inline uint16_t eng_cpu_bf16_of(float value)
{
    uint32_t bits = eng_cpu_bits_of(value);
    uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (uint16_t)((value != value ? bits | 0x400000u : rounded) >> 16);
}

static inline float eng_cpu_f32_of_bf16(uint16_t bits)
{
    return eng_cpu_float_of((uint32_t)bits << 16);
}

#endif
