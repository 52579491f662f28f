/* Projections on the CPU. Internal to kernels/cpu, but for eng_project_cache_clear, which whoever
 * owns weight memory calls before freeing or rewriting it.
 */
#ifndef ENG_KERNELS_CPU_PROJECT_H
#define ENG_KERNELS_CPU_PROJECT_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_project_portable, eng_cpu_project_avx2, eng_cpu_project_avx512;
extern const EngKernel eng_cpu_project_onednn_bf16, eng_cpu_project_onednn_bf16_ip,
    eng_cpu_project_onednn_f32;

/* Expanded weights that create() packed for oneDNN are kept for the process, so that problems which
 * differ only in tokens share them as long as oneDNN wants the same layout. They are found by the
 * pointers w and w_scales, the shape and type, and a digest of samples of the bytes. This frees
 * those that no living kernel state uses. Safe from any thread. */
void eng_project_cache_clear(void);
/* Packed copies alive, for tests. */
int eng_project_cache_entries(void);

#endif
