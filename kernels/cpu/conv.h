/* Short convolution on the CPU. Internal to kernels/cpu. */
#ifndef ENG_KERNELS_CPU_CONV_H
#define ENG_KERNELS_CPU_CONV_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_conv_portable;

#endif
