/* Instruction sets found at run time, and the attributes that compile single functions for them.
 *
 * The files of the ISA variants are built with the baseline flags; only functions marked
 * ENG_TARGET_* may use wider instructions, and supports() keeps them from running elsewhere.
 */
#ifndef ENG_KERNELS_CPU_ISA_H
#define ENG_KERNELS_CPU_ISA_H

#include <engram/status.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define ENG_X86         1
#define ENG_TARGET_AVX2 __attribute__((target("avx2,fma,f16c,bmi2")))
#define ENG_TARGET_AVX512                                                                          \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,bmi2")))
#define ENG_TARGET_AVX512_IFMA                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx2,fma,bmi2")))
#define ENG_TARGET_AVX512_VBMI                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx2,fma,bmi2")))
#define ENG_TARGET_AVX512_BF16                                                                     \
    __attribute__((                                                                                \
        target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512bf16,avx2,fma,bmi2")))
#else
#define ENG_X86 0
#endif

/* Sets of instructions, as the variants need them together. */
typedef enum EngIsa {
    ENG_ISA_AVX2 = 1,   /* AVX2, FMA, F16C, BMI2 */
    ENG_ISA_AVX512 = 2, /* AVX-512 F, BW, VL, DQ */
    ENG_ISA_VBMI = 4,
    ENG_ISA_VNNI = 8,
    ENG_ISA_BF16 = 16,
    ENG_ISA_IFMA = 32,
    ENG_ISA_ALL = 63
} EngIsa;

/* Sets that processor and operating system offer, or'ed. */
unsigned eng_isa_present(void);

/* ENG_OK, or ENG_UNSUPPORTED naming the first set of `needed` that is missing. */
EngStatus eng_isa_require(unsigned needed, EngErr *why);

/* Hides all but `allowed` from both functions above, so that a test sees the refusals of a lesser
 * processor; ENG_ISA_ALL takes the limit away. */
void eng_isa_limit(unsigned allowed);

#endif
