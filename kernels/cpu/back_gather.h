/* Backward of the gather on the CPU: gradients of rows, duplicates summed. Internal to kernels/cpu.
 */
#ifndef ENG_KERNELS_CPU_BACK_GATHER_H
#define ENG_KERNELS_CPU_BACK_GATHER_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_back_gather_sort, eng_cpu_back_gather_owner,
    eng_cpu_back_gather_atomic;

/* Of all variants. */
EngStatus eng_cpu_back_gather_supports(const EngProblem *problem, EngErr *why);
void eng_cpu_back_gather_cost(const EngProblem *problem, EngCost *cost);

/* to[n] = from[n], or to[n] += from[n]. */
void eng_cpu_row_copy(const float *from, size_t n, float *to);
void eng_cpu_row_add(const float *from, size_t n, float *to);

#endif
