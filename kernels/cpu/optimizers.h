/* Optimizers on the CPU. Internal to kernels/cpu. */
#ifndef ENG_KERNELS_CPU_OPTIMIZERS_H
#define ENG_KERNELS_CPU_OPTIMIZERS_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_sgd_portable, eng_cpu_adamw_portable, eng_cpu_sparse_adam_portable,
    eng_cpu_muon_onednn, eng_cpu_sinkhorn_portable;

/* ENG_UNSUPPORTED unless threads are 1 or more and an array of n * each floats can exist. */
EngStatus eng_cpu_optimizer_supports(const EngProblem *problem, int64_t n, int64_t each,
                                     EngErr *why);

#endif
