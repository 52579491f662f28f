/* Gate + write-back on the CPU. Internal to kernels/cpu. */
#ifndef ENG_KERNELS_CPU_GATE_H
#define ENG_KERNELS_CPU_GATE_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_gate_portable, eng_cpu_gate_roof_inplace;

#endif
