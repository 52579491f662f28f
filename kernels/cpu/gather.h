/* The loop all CPU gathers share: rows cut among threads, prefetched by a plan, handed one by one
 * to a row function. Internal to kernels/cpu.
 */
#ifndef ENG_KERNELS_CPU_GATHER_H
#define ENG_KERNELS_CPU_GATHER_H

#include <engram/kernels.h>

/* Writes one row: out holds row_dims elements of the output type, out_scales row_dims/32 bytes (FP8
 * output only). Any alignment. */
typedef void EngGatherRow(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales);

typedef enum EngPrefetchPlan {
    ENG_PREFETCH_NONE,
    ENG_PREFETCH_ROLLING, /* at each row, the row `depth` further on */
    ENG_PREFETCH_GROUPS   /* `depth` rows back to back, then the group before them is used */
} EngPrefetchPlan;

#define ENG_PREFETCH_MAX_DEPTH 64

void eng_cpu_gather_rows(const EngProblem *problem, const EngGatherArgs *args, EngGatherRow *row_fn,
                         EngPrefetchPlan plan, int depth);

extern const EngKernel eng_cpu_gather_naive, eng_cpu_gather_portable;
extern const EngKernel eng_cpu_gather_roof_d0, eng_cpu_gather_roof_d16, eng_cpu_gather_roof_d48,
    eng_cpu_gather_roof_g24, eng_cpu_gather_roof_g48;

#endif
