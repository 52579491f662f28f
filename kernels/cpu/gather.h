/* Gather variants of the CPU. The loop they share is in gather_loop.h, decoders in decode.h. */
#ifndef ENG_KERNELS_CPU_GATHER_H
#define ENG_KERNELS_CPU_GATHER_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_gather_naive, eng_cpu_gather_portable;
extern const EngKernel eng_cpu_gather_avx2, eng_cpu_gather_avx512, eng_cpu_gather_avx512_vbmi,
    eng_cpu_gather_avx512_vbmi_cached;
extern const EngKernel eng_cpu_gather_roof_d0, eng_cpu_gather_roof_d16, eng_cpu_gather_roof_d48,
    eng_cpu_gather_roof_g12, eng_cpu_gather_roof_g12_nt, eng_cpu_gather_roof_g16_nt,
    eng_cpu_gather_roof_g24_nt, eng_cpu_gather_roof_g4a96_nt, eng_cpu_gather_roof_g24,
    eng_cpu_gather_roof_g48, eng_cpu_gather_roof_g64, eng_cpu_gather_roof_d48_nt,
    eng_cpu_gather_roof_g4_nt, eng_cpu_gather_roof_g48_nt;

#endif
