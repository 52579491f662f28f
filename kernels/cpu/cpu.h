/* All CPU variants, for kernels/registry.c. */
#ifndef ENG_KERNELS_CPU_CPU_H
#define ENG_KERNELS_CPU_CPU_H

#include <engram/kernels.h>

/* Ends with NULL. Within an operation, plain variants come before fast ones and roofs last. */
extern const EngKernel *const eng_cpu_kernels[];

#endif
