/* Backward of the projection on the CPU. Internal to kernels/cpu. */
#ifndef ENG_KERNELS_CPU_BACK_PROJECT_H
#define ENG_KERNELS_CPU_BACK_PROJECT_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_back_project_portable, eng_cpu_back_project_onednn;

/* Of all variants. */
EngStatus eng_cpu_back_project_supports(const EngProblem *problem, EngErr *why);
void eng_cpu_back_project_cost(const EngProblem *problem, EngCost *cost);
/* d_bias += sum of d_out over tokens, in order. */
void eng_cpu_back_project_bias(const EngProblem *problem, const EngBackProjectArgs *args);

#endif
