/* The gate for training on the CPU: forward and backward. Internal to kernels/cpu. */
#ifndef ENG_KERNELS_CPU_TRAIN_GATE_H
#define ENG_KERNELS_CPU_TRAIN_GATE_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_train_gate_portable, eng_cpu_back_gate_portable;

/* Of both operations. */
EngStatus eng_cpu_train_gate_supports(const EngProblem *problem, EngErr *why);

#endif
