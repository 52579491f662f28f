/* Projection of any number of tokens by cuBLASLt, in bf16 with f32 sums; see device.h.
 *
 * cuBLASLt has no 32x32 scales on sm_90, so fp8 weights are expanded to bf16 once (twice the bytes,
 * exact while bf16 holds a code times its scale), and fp8 tokens before each product. In its
 * column-major words the output is n x tokens, the product of the transposed weights and the
 * tokens.
 */
#include "kernels/cuda/device.h"

#include <cublasLt.h>

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/queue.h"

extern "C" {
#include "base/mem.h"
}

#define THREADS         256
#define WORKSPACE_BYTES ((size_t)32 << 20)

struct EngCudaBlas {
    EngProjectProblem problem;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w_layout, x_layout, out_layout;
    cublasLtMatmulAlgo_t algorithm;
    void *w, *x; /* bf16, of their own; NULL: the caller's are used */
    void *workspace;
    EngCudaExpansion expansion;
};

/* ---- expansion ---- */

/* bf16 of fp8 [rows, k], 16 codes a thread; group_rows rows share a scale. */
__global__ void __launch_bounds__(THREADS)
    eng_expand_kernel(const uint8_t *codes, const uint8_t *scales, int64_t rows, int k,
                      int group_rows, uint16_t *out)
{
    int64_t per_row = k / 16, n = rows * per_row, step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
        int64_t row = i / per_row, at = i % per_row * 16;
        int64_t group = row / group_rows * (k / ENG_SCALE_GROUP) + at / ENG_SCALE_GROUP;
        uint4 four = eng_load_once<uint4>(codes + 16 * i);
        float scale = eng_e8m0(eng_load_wide<uint8_t>(scales + group));
        const uint32_t words[4] = {four.x, four.y, four.z, four.w};
        uint32_t pairs[8];
#pragma unroll
        for (int pair = 0; pair < 8; pair++) {
            float2 two = eng_e4m3_pair(words[pair / 2] >> 16 * (pair % 2) & 0xffff);
            pairs[pair] = eng_bf16_pair(two.x * scale, two.y * scale);
        }
        eng_store_once(out + 16 * i, make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
        eng_store_once(out + 16 * i + 8, make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]));
    }
}

static EngStatus expand(const void *codes, const uint8_t *scales, int64_t rows, int k,
                        int group_rows, void *out, EngCudaStream *stream, EngErr *err)
{
    int processors = 0;
    EngStatus status = eng_cuda_check(
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "expansion", err);
    if (status) return status;
    int64_t blocks = (rows * (k / 16) + THREADS - 1) / THREADS;
    if (blocks > processors * 8) blocks = processors * 8;
    ENG_LAUNCH(eng_expand_kernel, dim3((unsigned)blocks), dim3(THREADS), 0, stream,
               static_cast<const uint8_t *>(codes), scales, rows, k, group_rows,
               static_cast<uint16_t *>(out));
    return eng_cuda_check(cudaGetLastError(), "expansion", err);
}

/* ---- creation ---- */

static EngStatus blas_check(cublasStatus_t error, const char *what, EngErr *err)
{
    if (error == CUBLAS_STATUS_SUCCESS) return ENG_OK;
    EngStatus status = error == CUBLAS_STATUS_ALLOC_FAILED    ? ENG_NO_MEMORY
                       : error == CUBLAS_STATUS_NOT_SUPPORTED ? ENG_UNSUPPORTED
                                                              : ENG_INTERNAL;
    return ENG_FAIL(err, status, "cuBLASLt: %s: %s", what, cublasLtGetStatusString(error));
}

EngStatus eng_cuda_blas_fits(const EngProjectProblem *problem, EngErr *why)
{
    if (problem->tokens < 0 || problem->n < 1 || problem->k < 1 || problem->tokens > INT32_MAX)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "project: %lld tokens of %d x %d",
                        (long long)problem->tokens, problem->n, problem->k);
    bool fp8 = problem->weights == ENG_FP8;
    if ((fp8 || problem->x == ENG_FP8) && problem->k % ENG_SCALE_GROUP)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "project: k %d is not whole scale groups",
                        problem->k);
    if (problem->n % 8 || problem->k % 8) /* so that every row is 16-byte aligned */
        return ENG_FAIL(why, ENG_UNSUPPORTED, "project: n %d or k %d is no multiple of 8",
                        problem->n, problem->k);
    return ENG_OK;
}

static EngStatus create_layouts(EngCudaBlas *blas, EngErr *err)
{
    const EngProjectProblem *p = &blas->problem;
    uint64_t n = (uint64_t)p->n, k = (uint64_t)p->k, tokens = (uint64_t)p->tokens;
    cublasOperation_t transposed = CUBLAS_OP_T;
    cudaDataType out = p->out == ENG_F32 ? CUDA_R_32F : CUDA_R_16BF;
    EngStatus status = blas_check(cublasLtCreate(&blas->handle), "handle", err);
    if (!status)
        status =
            blas_check(cublasLtMatmulDescCreate(&blas->product, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                       "product", err);
    if (!status)
        status =
            blas_check(cublasLtMatmulDescSetAttribute(blas->product, CUBLASLT_MATMUL_DESC_TRANSA,
                                                      &transposed, sizeof transposed),
                       "product", err);
    if (!status)
        status =
            blas_check(cublasLtMatrixLayoutCreate(&blas->w_layout, CUDA_R_16BF, k, n, (int64_t)k),
                       "weights", err);
    if (!status)
        status = blas_check(
            cublasLtMatrixLayoutCreate(&blas->x_layout, CUDA_R_16BF, k, tokens, (int64_t)k),
            "tokens", err);
    if (!status)
        status =
            blas_check(cublasLtMatrixLayoutCreate(&blas->out_layout, out, n, tokens, (int64_t)n),
                       "output", err);
    return status;
}

/* The first of cuBLASLt's suggestions. */
static EngStatus choose(EngCudaBlas *blas, EngErr *err)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result;
    size_t bytes = WORKSPACE_BYTES;
    uint32_t alignment = 16; /* of the caller's buffers */
    int n = 0;
    EngStatus status = blas_check(cublasLtMatmulPreferenceCreate(&preference), "choice", err);
    if (status) return status;
    status =
        blas_check(cublasLtMatmulPreferenceSetAttribute(
                       preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
                   "choice", err);
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned && !status; i++)
        status = blas_check(cublasLtMatmulPreferenceSetAttribute(preference, aligned[i], &alignment,
                                                                 sizeof alignment),
                            "choice", err);
    if (!status)
        status = blas_check(cublasLtMatmulAlgoGetHeuristic(
                                blas->handle, blas->product, blas->w_layout, blas->x_layout,
                                blas->out_layout, blas->out_layout, preference, 1, &result, &n),
                            "choice", err);
    if (!status && (n < 1 || result.state != CUBLAS_STATUS_SUCCESS))
        status = ENG_FAIL(err, ENG_UNSUPPORTED, "cuBLASLt has no algorithm for this product");
    if (!status) blas->algorithm = result.algo;
    cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

static EngStatus allocate(EngCudaBlas *blas, EngErr *err)
{
    const EngProjectProblem *p = &blas->problem; /* all three numbers are below 2^31 */
    size_t w_bytes = 2 * (size_t)p->n * (size_t)p->k,
           x_bytes = 2 * (size_t)p->tokens * (size_t)p->k;
    EngStatus status =
        eng_cuda_check(cudaMalloc(&blas->workspace, WORKSPACE_BYTES), "project: workspace", err);
    if (!status && p->weights == ENG_FP8) {
        status = eng_cuda_check(cudaMalloc(&blas->w, w_bytes), "project: bf16 weights", err);
        if (!status) blas->expansion.bytes = w_bytes;
    }
    if (!status && p->x == ENG_FP8)
        status = eng_cuda_check(cudaMalloc(&blas->x, x_bytes), "project: bf16 tokens", err);
    return status;
}

static EngStatus expand_weights(EngCudaBlas *blas, EngCudaStream *stream, EngErr *err)
{
    const EngProjectProblem *p = &blas->problem;
    EngCudaEvent *from = NULL, *to = NULL;
    EngStatus status = eng_cuda_event_create(&from, err);
    if (!status) status = eng_cuda_event_create(&to, err);
    if (!status) status = eng_cuda_event_record(from, stream, err);
    if (!status)
        status = expand(p->w, p->w_scales, p->n, p->k, ENG_SCALE_GROUP, blas->w, stream, err);
    if (!status) status = eng_cuda_event_record(to, stream, err);
    if (!status) status = eng_cuda_event_ns(from, to, &blas->expansion.ns, err);
    eng_cuda_event_destroy(from);
    eng_cuda_event_destroy(to);
    return status;
}

EngStatus eng_cuda_blas_create(const EngProjectProblem *problem, EngCudaStream *stream,
                               EngCudaBlas **out, EngErr *err)
{
    EngCudaBlas *blas = NULL;
    *out = NULL;
    EngStatus status = eng_cuda_blas_fits(problem, err);
    if (!status) status = eng_alloc_or((void **)&blas, 1, sizeof *blas, "project", err);
    if (status) return status;
    blas->problem = *problem;
    if (problem->tokens) {
        status = create_layouts(blas, err);
        if (!status) status = choose(blas, err);
        if (!status) status = allocate(blas, err);
        if (!status && blas->w) status = expand_weights(blas, stream, err);
    }
    if (status) {
        eng_cuda_blas_destroy(blas);
        blas = NULL;
    }
    *out = blas;
    return status;
}

void eng_cuda_blas_destroy(EngCudaBlas *blas)
{
    if (!blas) return;
    cudaFree(blas->w), cudaFree(blas->x), cudaFree(blas->workspace);
    if (blas->w_layout) cublasLtMatrixLayoutDestroy(blas->w_layout);
    if (blas->x_layout) cublasLtMatrixLayoutDestroy(blas->x_layout);
    if (blas->out_layout) cublasLtMatrixLayoutDestroy(blas->out_layout);
    if (blas->product) cublasLtMatmulDescDestroy(blas->product);
    if (blas->handle) cublasLtDestroy(blas->handle);
    eng_free(blas);
}

EngCudaExpansion eng_cuda_blas_expansion(const EngCudaBlas *blas)
{
    return blas->expansion;
}

EngStatus eng_cuda_blas_project(EngCudaBlas *blas, const EngProjectArgs *args,
                                EngCudaStream *stream, EngErr *err)
{
    const EngProjectProblem *p = &blas->problem;
    const float one = 1, zero = 0;
    const void *w = blas->w ? blas->w : p->w, *x = blas->x ? blas->x : args->x;
    if (!p->tokens) return ENG_OK;
    if (((uintptr_t)w | (uintptr_t)args->x | (uintptr_t)args->out) % 16)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "project: buffers of odd alignment");
    EngStatus status = ENG_OK;
    if (blas->x) status = expand(args->x, args->x_scales, p->tokens, p->k, 1, blas->x, stream, err);
    if (status) return status;
    eng_cuda_launched++;
    return blas_check(cublasLtMatmul(blas->handle, blas->product, &one, w, blas->w_layout, x,
                                     blas->x_layout, &zero, args->out, blas->out_layout, args->out,
                                     blas->out_layout, &blas->algorithm, blas->workspace,
                                     WORKSPACE_BYTES, stream),
                      "product", err);
}
