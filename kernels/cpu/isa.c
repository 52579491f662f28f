/* Detection of instruction sets; see isa.h. The compiler's run-time library reads CPUID and, for
 * the wide registers, whether the operating system saves them. */
#include "kernels/cpu/isa.h"

#include <stddef.h>

static unsigned g_allowed = ENG_ISA_ALL;

static const struct {
    EngIsa isa;
    const char *name;
} g_names[] = {
    {ENG_ISA_AVX2, "AVX2 with FMA"}, {ENG_ISA_AVX512, "AVX-512 F, BW, VL and DQ"},
    {ENG_ISA_VBMI, "AVX-512 VBMI"},  {ENG_ISA_VNNI, "AVX-512 VNNI"},
    {ENG_ISA_BF16, "AVX-512 BF16"},  {ENG_ISA_IFMA, "AVX-512 IFMA"},
};

static unsigned detect(void)
{
    unsigned present = 0;
#if ENG_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2"))
        present |= ENG_ISA_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        (present & ENG_ISA_AVX2)) {
        present |= ENG_ISA_AVX512; /* the rest widens these: alone it is of no use */
        if (__builtin_cpu_supports("avx512vbmi")) present |= ENG_ISA_VBMI;
        if (__builtin_cpu_supports("avx512vnni")) present |= ENG_ISA_VNNI;
        if (__builtin_cpu_supports("avx512bf16")) present |= ENG_ISA_BF16;
        if (__builtin_cpu_supports("avx512ifma")) present |= ENG_ISA_IFMA;
    }
#endif
    return present;
}

unsigned eng_isa_present(void)
{
    return detect() & g_allowed;
}

EngStatus eng_isa_require(unsigned needed, EngErr *why)
{
    if (!ENG_X86 && needed) return ENG_FAIL(why, ENG_UNSUPPORTED, "for x86-64 processors only");
    unsigned missing = needed & ~eng_isa_present();
    for (size_t i = 0; i < sizeof g_names / sizeof *g_names; i++)
        if (missing & g_names[i].isa)
            return ENG_FAIL(why, ENG_UNSUPPORTED, "needs %s, which this processor lacks",
                            g_names[i].name);
    return ENG_OK;
}

void eng_isa_limit(unsigned allowed)
{
    g_allowed = allowed;
}
