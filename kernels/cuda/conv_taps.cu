/* Short causal depthwise convolution of the original variant; see device.h and engram_facts
 * section 6 A.
 *
 * Three launches: 1/rms of each token and stream; each output from its taps, normalised on the way
 * (a tap is in the caches when the tile of tokens before has been read); the decode state moved on,
 * last, since taps read it. A thread takes four channels where they lie together.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"

#include <math.h>

extern "C" {
#include "base/mem.h"
}

#define THREADS 128
#define TOKENS  8 /* of a block's tile */

struct EngCudaConv {
    EngConvProblem problem;
    float *rstd; /* [tokens, streams] */
};

static __device__ __forceinline__ int64_t history_of(const EngConvProblem &problem)
{
    return (int64_t)(problem.kernel - 1) * problem.dilation;
}

/* One block for a token and stream. */
__global__ void __launch_bounds__(THREADS)
    eng_conv_rstd_kernel(EngConvProblem problem, const float *value, float *rstd)
{
    ENG_SHARED(float, parts, [THREADS / 32]);
    const float *own = value + (int64_t)blockIdx.x * problem.hidden;
    float sum = 0;
    for (int i = (int)threadIdx.x; i < problem.hidden; i += THREADS) sum += own[i] * own[i];
#pragma unroll
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(ENG_FULL_WARP, sum, by);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < THREADS / 32; w++) sum += parts[w];
    rstd[blockIdx.x] = 1.0f / sqrtf(sum / (float)problem.hidden + problem.eps);
}

/* N floats of a channel group, in one load where N is 4. */
template <int N> static __device__ __forceinline__ void read(const float *at, float *to)
{
    if (N == 4) {
        uint4 four = eng_load_wide<uint4>(at);
        to[0] = __uint_as_float(four.x), to[1] = __uint_as_float(four.y);
        to[2] = __uint_as_float(four.z), to[3] = __uint_as_float(four.w);
    } else {
        to[0] = *at;
    }
}

template <int N> static __device__ __forceinline__ void write(float *at, const float *from)
{
    if (N == 4)
        eng_store_once(at, make_uint4(__float_as_uint(from[0]), __float_as_uint(from[1]),
                                      __float_as_uint(from[2]), __float_as_uint(from[3])));
    else
        eng_store_once(at, *from);
}

/* Channels c .. c + N of token t >= 0, normalised. */
template <int N>
static __device__ __forceinline__ void normalised(const EngConvProblem &problem, const float *value,
                                                  const float *rstd, int64_t t, int c, float *to)
{
    float weight[N];
    float scale = rstd[t * problem.streams + c / problem.hidden];
    read<N>(value + t * problem.streams * problem.hidden + c, to);
    read<N>(problem.norm_weight + c, weight);
#pragma unroll
    for (int i = 0; i < N; i++) to[i] = to[i] * scale * weight[i];
}

/* Grid [channels / (N * THREADS), tokens / TOKENS]. */
template <int N>
__global__ void __launch_bounds__(THREADS)
    eng_conv_kernel(EngConvProblem problem, EngConvArgs args, const float *rstd)
{
    int width = problem.streams * problem.hidden;
    int c = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * N;
    if (c >= width) return;
    int64_t first = (int64_t)blockIdx.y * TOKENS;
    int64_t end = first + TOKENS < problem.tokens ? first + TOKENS : problem.tokens;
    for (int64_t t = first; t < end; t++) {
        float sums[N] = {}, own[N];
        for (int tap = 0; tap < problem.kernel; tap++) {
            int64_t at = t - (int64_t)(problem.kernel - 1 - tap) * problem.dilation;
            if (at >= 0)
                normalised<N>(problem, args.value, rstd, at, c, own);
            else
                read<N>(args.state + (at + history_of(problem)) * width + c, own);
#pragma unroll
            for (int i = 0; i < N; i++)
                sums[i] += own[i] * problem.conv_weight[(int64_t)(c + i) * problem.kernel + tap];
        }
        read<N>(args.value + t * width + c, own);
#pragma unroll
        for (int i = 0; i < N; i++) sums[i] = own[i] + sums[i] / (1.0f + expf(-sums[i]));
        write<N>(args.out + t * width + c, sums);
    }
}

/* The last tokens become the state: slots of a channel in order, so that what moves down is read
 * before it is overwritten. */
template <int N>
__global__ void __launch_bounds__(THREADS)
    eng_conv_state_kernel(EngConvProblem problem, EngConvArgs args, const float *rstd)
{
    int64_t width = (int64_t)problem.streams * problem.hidden, history = history_of(problem);
    int c = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * N;
    if (c >= width) return;
    for (int64_t slot = 0; slot < history; slot++) {
        int64_t t = problem.tokens - history + slot;
        float own[N];
        if (t >= 0)
            normalised<N>(problem, args.value, rstd, t, c, own);
        else
            read<N>(args.state + (slot + problem.tokens) * width + c, own);
        write<N>(args.state + slot * width + c, own);
    }
}

/* ---- launching ---- */

EngStatus eng_cuda_conv_create(const EngConvProblem *problem, EngCudaConv **out, EngErr *err)
{
    EngCudaConv *conv = NULL;
    *out = NULL;
    if (problem->tokens < 0 || problem->streams < 1 || problem->hidden < 1 || problem->kernel < 1 ||
        problem->dilation < 1 || problem->hidden > INT32_MAX / 2 / problem->streams ||
        problem->tokens > INT32_MAX / problem->streams || problem->tokens > (int64_t)TOKENS * 65535)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "convolution: %lld tokens of %d streams of %d",
                        (long long)problem->tokens, problem->streams, problem->hidden);
    EngStatus status = eng_alloc_or((void **)&conv, 1, sizeof *conv, "convolution", err);
    if (status) return status;
    conv->problem = *problem;
    size_t n = (size_t)problem->tokens * (size_t)problem->streams;
    if (n)
        status = eng_cuda_check(cudaMalloc((void **)&conv->rstd, n * sizeof *conv->rstd),
                                "convolution", err);
    if (status) {
        eng_cuda_conv_destroy(conv);
        conv = NULL;
    }
    *out = conv;
    return status;
}

void eng_cuda_conv_destroy(EngCudaConv *conv)
{
    if (conv) cudaFree(conv->rstd);
    eng_free(conv);
}

template <int N>
static void launch(const EngCudaConv *conv, const EngConvArgs *args, EngCudaStream *stream)
{
    const EngConvProblem *p = &conv->problem;
    unsigned groups = (unsigned)((p->streams * p->hidden + N * THREADS - 1) / (N * THREADS));
    unsigned tiles = (unsigned)((p->tokens + TOKENS - 1) / TOKENS);
    ENG_LAUNCH(eng_conv_rstd_kernel, dim3((unsigned)(p->tokens * p->streams)), dim3(THREADS), 0,
               stream, *p, args->value, conv->rstd);
    ENG_LAUNCH((eng_conv_kernel<N>), dim3(groups, tiles), dim3(THREADS), 0, stream, *p, *args,
               conv->rstd);
    ENG_LAUNCH((eng_conv_state_kernel<N>), dim3(groups), dim3(THREADS), 0, stream, *p, *args,
               conv->rstd);
}

EngStatus eng_cuda_conv(const EngCudaConv *conv, const EngConvArgs *args, EngCudaStream *stream,
                        EngErr *err)
{
    const EngConvProblem *p = &conv->problem;
    if (!p->tokens) return ENG_OK;
    uintptr_t places = (uintptr_t)args->value | (uintptr_t)args->state | (uintptr_t)args->out |
                       (uintptr_t)p->norm_weight;
    if (p->hidden % 4 == 0 && places % 16 == 0)
        launch<4>(conv, args, stream);
    else
        launch<1>(conv, args, stream);
    return eng_cuda_check(cudaGetLastError(), "convolution", err);
}
