/* What the CUDA variants have in common. Internal to kernels/cuda. */
#ifndef ENG_KERNELS_CUDA_VARIANTS_H
#define ENG_KERNELS_CUDA_VARIANTS_H

#include <engram/kernels.h>

#include "kernels/cuda/queue.h"

/* ENG_UNSUPPORTED where no device is; shapes are the launchers' to refuse. */
EngStatus eng_cuda_variant_supports(const EngProblem *problem, EngErr *why);
/* Not in a measured window or a capture: an address that was good outside is good there. */
EngStatus eng_cuda_variant_reachable(const void *at, const char *what, EngErr *err);

/* cuda.c: of every gather and gate, and the tunable "tile"; project.c: of every projection. */
void eng_cuda_gather_cost(const EngProblem *problem, EngCost *cost);
void eng_cuda_gate_cost(const EngProblem *problem, EngCost *cost);
void eng_cuda_project_cost(const EngProblem *problem, EngCost *cost);
extern const EngTunable eng_cuda_gather_tile[];

/* staged.c */
extern const EngKernel eng_cuda_gather_staged;

/* roofs.c */
extern const EngKernel eng_cuda_gather_roof_t2, eng_cuda_gather_roof_t16,
    eng_cuda_gather_roof_t32_b1056, eng_cuda_gather_roof_t64_deep, eng_cuda_gate_roof_copy,
    eng_cuda_project_roof_read;

/* project.c */
extern const EngKernel eng_cuda_project_mma, eng_cuda_project_blas;

/* conv.c */
extern const EngKernel eng_cuda_conv_taps;

/* train.c */
extern const EngKernel eng_cuda_back_gate_parts, eng_cuda_back_gather_sort,
    eng_cuda_sinkhorn_scales;

#endif
