/* Look-ups (gather and project in one) on the CPU. */
#ifndef ENG_KERNELS_CPU_LOOKUP_H
#define ENG_KERNELS_CPU_LOOKUP_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_lookup_portable, eng_cpu_lookup_avx2, eng_cpu_lookup_avx512;
extern const EngKernel eng_cpu_lookup_avx512_fused;
extern const EngKernel eng_cpu_lookup_onednn_bf16, eng_cpu_lookup_onednn_bf16_ip,
    eng_cpu_lookup_onednn_f32;

#endif
