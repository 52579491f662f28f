/* Projection weights as oneDNN wants them: expanded to bf16 or f32, packed, shared by all kernel
 * states of the process that need the same ones. Internal to kernels/cpu.
 */
#ifndef ENG_KERNELS_CPU_ONEDNN_WEIGHTS_H
#define ENG_KERNELS_CPU_ONEDNN_WEIGHTS_H

#include <engram/kernels.h>
#include <oneapi/dnnl/dnnl.h>

typedef struct EngPackedWeights EngPackedWeights;

/* Maps a oneDNN status to ours, naming the step; ENG_OK for success. */
EngStatus eng_onednn_status(dnnl_status_t status, const char *step, EngErr *err);

/* One CPU engine for the process; never destroyed. */
EngStatus eng_onednn_engine(dnnl_engine_t *engine, EngErr *err);
/* oneDNN takes the number of threads from OpenMP, both when it plans and when it runs. Gives the
 * number before, to be set again with omp_set_num_threads. */
int eng_onednn_set_threads(int threads);
/* ENG_UNSUPPORTED where oneDNN has no bf16 products. */
EngStatus eng_onednn_bf16(EngErr *why);

/* Weights of `problem` in type ENG_BF16 or ENG_F32 and the layout of `layout`, from the cache or
 * made with problem->threads. plain describes the same weights row-major [n, k], with the same
 * dimensions as layout. Give every reference back with eng_packed_weights_release. */
EngStatus eng_packed_weights_acquire(const EngProblem *problem, EngDtype type,
                                     const dnnl_memory_desc_t *plain,
                                     const dnnl_memory_desc_t *layout, EngPackedWeights **out,
                                     EngErr *err);
void eng_packed_weights_release(EngPackedWeights *weights); /* accepts NULL */
dnnl_memory_t eng_packed_weights_memory(const EngPackedWeights *weights);

/* One row of k fp8 (with scales) or bf16 values as type BF16 or F32. */
void eng_onednn_expand_row(EngDtype from, const uint8_t *values, const uint8_t *scales, int k,
                           EngDtype type, uint8_t *out);

#endif
