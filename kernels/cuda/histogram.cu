/* Histograms of gates and scores for traced passes; see device.h.
 *
 * Bins are told by their edges, the smallest f32 of each bin, so that a count is the host's
 * whatever function scales the axis: no logarithm is taken here.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/launch.cuh"

#define THREADS 256

/* values [tokens, streams]; block y takes a stream. A NaN is below every edge, as on the host. */
__global__ void __launch_bounds__(THREADS)
    eng_histogram_kernel(const float *values, int64_t tokens, int streams, const float *edges,
                         int n_bins, unsigned long long *counts)
{
    ENG_SHARED(float, own_edges, [ENG_CUDA_MOST_BINS]);
    ENG_SHARED(unsigned, own_counts, [ENG_CUDA_MOST_BINS]);
    int stream = (int)blockIdx.y;
    for (int i = (int)threadIdx.x; i < n_bins; i += THREADS) {
        own_counts[i] = 0;
        if (i + 1 < n_bins) own_edges[i] = edges[i];
    }
    __syncthreads();
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t t = (int64_t)blockIdx.x * THREADS + threadIdx.x; t < tokens; t += step) {
        float value = values[t * streams + stream];
        int low = 0, high = n_bins - 1; /* the bin lies in [low, high] */
        while (low < high) {
            int middle = (low + high) / 2;
            if (value >= own_edges[middle])
                low = middle + 1;
            else
                high = middle;
        }
        atomicAdd(&own_counts[low], 1u);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n_bins; i += THREADS)
        if (own_counts[i])
            atomicAdd(&counts[(int64_t)stream * n_bins + i], (unsigned long long)own_counts[i]);
}

EngStatus eng_cuda_histogram(const float *values, int64_t tokens, int streams, const float *edges,
                             int n_bins, int64_t *counts, EngCudaStream *stream, EngErr *err)
{
    if (n_bins < 1 || n_bins > ENG_CUDA_MOST_BINS || streams < 1 || streams > 65535 || tokens < 0)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "histogram: %d bins of %d streams", n_bins, streams);
    if (!tokens) return ENG_OK;
    int64_t blocks = (tokens + THREADS - 1) / THREADS;
    dim3 grid((unsigned)(blocks < 64 ? blocks : 64), (unsigned)streams);
    ENG_LAUNCH(eng_histogram_kernel, grid, dim3(THREADS), 0, stream, values, tokens, streams, edges,
               n_bins, reinterpret_cast<unsigned long long *>(counts));
    return eng_cuda_check(cudaGetLastError(), "histogram", err);
}
