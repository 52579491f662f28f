/* The short convolution for training on the CPU: forward and backward. Internal to kernels/cpu. */
#ifndef ENG_KERNELS_CPU_TRAIN_CONV_H
#define ENG_KERNELS_CPU_TRAIN_CONV_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_train_conv_portable, eng_cpu_back_conv_portable;

#endif
