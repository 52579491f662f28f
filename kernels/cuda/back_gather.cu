/* Scatter-add of row gradients by sorting; see device.h.
 *
 * The row ids of a batch are sorted with their places, four bits a pass, stably: gradients of a row
 * are then summed in the order of the batch, whatever the device. Equal neighbours make a segment;
 * a warp sums one. No atomic sum is used.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"

extern "C" {
#include "base/mem.h"
}

#define THREADS 128
#define ITEMS   8 /* of a thread, in their order */
#define TILE    (THREADS * ITEMS)
#define BITS    4
#define DIGITS  (1 << BITS)

typedef struct Pairs {
    uint64_t *keys;   /* row ids */
    uint32_t *places; /* token * columns + column */
} Pairs;

struct EngCudaBackGather {
    EngBackGatherProblem problem;
    uint32_t n, tiles;
    Pairs pairs[2];
    uint32_t *counts; /* [DIGITS, tiles], or [tiles] of segments; one more for the sum */
    uint32_t *starts; /* [n + 1]: of segments, in sorted order */
};

__global__ void __launch_bounds__(THREADS)
    eng_sort_load_kernel(EngBackGatherProblem problem, EngBackGatherArgs args, uint32_t n,
                         Pairs pairs)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    uint32_t token = i / (uint32_t)problem.columns, column = i % (uint32_t)problem.columns;
    pairs.keys[i] = (uint64_t)args.rows[token * args.row_stride + column];
    pairs.places[i] = i;
}

/* The calling thread's items of the block's tile are [first, end). */
static __device__ __forceinline__ uint32_t first_of(uint32_t n, uint32_t *end)
{
    uint32_t first = blockIdx.x * TILE + threadIdx.x * ITEMS;
    *end = first + ITEMS < n ? first + ITEMS : n;
    return first < n ? first : n;
}

static __device__ __forceinline__ uint32_t digit_of(uint64_t key, int shift)
{
    return (uint32_t)(key >> shift) & (DIGITS - 1);
}

typedef uint16_t DigitCounts[DIGITS][THREADS];

/* How often each thread has each digit. */
static __device__ void count_own(const uint64_t *keys, uint32_t n, int shift, DigitCounts &own)
{
    uint32_t end, first = first_of(n, &end);
    for (int d = 0; d < DIGITS; d++) own[d][threadIdx.x] = 0;
    for (uint32_t i = first; i < end; i++) own[digit_of(keys[i], shift)][threadIdx.x]++;
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS)
    eng_sort_count_kernel(const uint64_t *keys, uint32_t n, int shift, uint32_t *counts)
{
    ENG_SHARED(uint16_t, own, [DIGITS][THREADS]);
    count_own(keys, n, shift, own);
    if (threadIdx.x >= DIGITS) return;
    uint32_t sum = 0;
    for (int t = 0; t < THREADS; t++) sum += own[threadIdx.x][t];
    counts[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

/* counts [n] become the sums of those before them, and counts[n] the sum of all; one block. */
__global__ void __launch_bounds__(THREADS) eng_scan_kernel(uint32_t *counts, uint32_t n)
{
    ENG_SHARED(uint32_t, sums, [THREADS]);
    uint32_t thread = threadIdx.x, each = (n + THREADS - 1) / THREADS;
    uint32_t from = thread * each < n ? thread * each : n;
    uint32_t to = from + each < n ? from + each : n, sum = 0;
    for (uint32_t i = from; i < to; i++) sum += counts[i];
    sums[thread] = sum;
    __syncthreads();
    uint32_t before = 0;
    for (uint32_t t = 0; t < thread; t++) before += sums[t];
    for (uint32_t i = from; i < to; i++) {
        uint32_t count = counts[i];
        counts[i] = before;
        before += count;
    }
    if (thread == THREADS - 1) counts[n] = before;
}

__global__ void __launch_bounds__(THREADS)
    eng_sort_move_kernel(Pairs from, uint32_t n, int shift, const uint32_t *counts, Pairs to)
{
    ENG_SHARED(uint16_t, own, [DIGITS][THREADS]);
    count_own(from.keys, n, shift, own);
    if (threadIdx.x < DIGITS) {
        uint16_t before = 0;
        for (int t = 0; t < THREADS; t++) {
            uint16_t count = own[threadIdx.x][t];
            own[threadIdx.x][t] = before;
            before = (uint16_t)(before + count);
        }
    }
    __syncthreads();
    uint32_t end, first = first_of(n, &end);
    for (uint32_t i = first; i < end; i++) {
        uint64_t key = from.keys[i];
        uint32_t digit = digit_of(key, shift);
        uint32_t at = counts[digit * gridDim.x + blockIdx.x] + own[digit][threadIdx.x]++;
        to.keys[at] = key;
        to.places[at] = from.places[i];
    }
}

static __device__ __forceinline__ bool begins(const uint64_t *keys, uint32_t i)
{
    return i == 0 || keys[i] != keys[i - 1];
}

/* Segments that begin in each tile. */
__global__ void __launch_bounds__(THREADS)
    eng_segment_count_kernel(const uint64_t *keys, uint32_t n, uint32_t *counts)
{
    ENG_SHARED(uint32_t, own, [THREADS]);
    uint32_t end, first = first_of(n, &end), sum = 0;
    for (uint32_t i = first; i < end; i++) sum += begins(keys, i);
    own[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int t = 1; t < THREADS; t++) sum += own[t];
    counts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(THREADS)
    eng_segment_list_kernel(const uint64_t *keys, uint32_t n, const uint32_t *counts,
                            uint32_t *starts, EngBackGatherArgs args)
{
    ENG_SHARED(uint32_t, own, [THREADS]);
    uint32_t end, first = first_of(n, &end), sum = 0;
    for (uint32_t i = first; i < end; i++) sum += begins(keys, i);
    own[threadIdx.x] = sum;
    __syncthreads();
    uint32_t at = counts[blockIdx.x];
    for (uint32_t t = 0; t < threadIdx.x; t++) at += own[t];
    for (uint32_t i = first; i < end; i++) {
        if (!begins(keys, i)) continue;
        starts[at] = i;
        args.touched[at++] = (int64_t)keys[i];
    }
    if (blockIdx.x || threadIdx.x) return;
    uint32_t all = counts[gridDim.x];
    starts[all] = n;
    *args.n_touched = all;
}

/* One warp a segment; a lane sums every 32nd group of N elements. */
template <int N>
__global__ void __launch_bounds__(THREADS)
    eng_segment_sum_kernel(EngBackGatherProblem problem, EngBackGatherArgs args,
                           const uint32_t *starts, const uint32_t *places)
{
    uint32_t lane = threadIdx.x % 32, step = gridDim.x * (THREADS / 32);
    uint32_t segment = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    for (; segment < *args.n_touched; segment += step) {
        uint32_t from = starts[segment], to = starts[segment + 1];
        for (uint32_t j = lane * N; j < (uint32_t)problem.row_dims; j += 32 * N) {
            float sums[N] = {};
            for (uint32_t i = from; i < to; i++) {
                const float *d_out = args.d_out + (uint64_t)places[i] * problem.row_dims + j;
                if (N == 4) {
                    uint4 four = eng_load_once<uint4>(d_out);
                    sums[0] += __uint_as_float(four.x), sums[N > 1] += __uint_as_float(four.y);
                    sums[N > 2 ? 2 : 0] += __uint_as_float(four.z);
                    sums[N > 3 ? 3 : 0] += __uint_as_float(four.w);
                } else {
                    sums[0] += *d_out;
                }
            }
            for (int k = 0; k < N; k++)
                args.d_rows[(uint64_t)segment * problem.row_dims + j + k] = sums[k];
        }
    }
}

/* ---- launching ---- */

EngStatus eng_cuda_back_gather_create(const EngBackGatherProblem *problem, EngCudaBackGather **out,
                                      EngErr *err)
{
    EngCudaBackGather *back = NULL;
    *out = NULL;
    if (problem->columns < 1 || problem->row_dims < 1 || problem->rows < 1 || problem->tokens < 0 ||
        problem->tokens > (INT32_MAX - TILE) / problem->columns)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "scatter-add: %lld tokens of %d columns of %d dims",
                        (long long)problem->tokens, problem->columns, problem->row_dims);
    EngStatus status = eng_alloc_or((void **)&back, 1, sizeof *back, "scatter-add", err);
    if (status) return status;
    back->problem = *problem;
    back->n = (uint32_t)(problem->tokens * problem->columns);
    back->tiles = (back->n + TILE - 1) / TILE;
    size_t n = back->n, counts = (size_t)DIGITS * back->tiles + 1;
    struct {
        void **at;
        size_t bytes;
    } wanted[] = {{(void **)&back->pairs[0].keys, n * sizeof(uint64_t)},
                  {(void **)&back->pairs[1].keys, n * sizeof(uint64_t)},
                  {(void **)&back->pairs[0].places, n * sizeof(uint32_t)},
                  {(void **)&back->pairs[1].places, n * sizeof(uint32_t)},
                  {(void **)&back->counts, counts * sizeof(uint32_t)},
                  {(void **)&back->starts, (n + 1) * sizeof(uint32_t)}};
    for (size_t i = 0; n && !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_cuda_check(cudaMalloc(wanted[i].at, wanted[i].bytes), "scatter-add", err);
    if (status) {
        eng_cuda_back_gather_destroy(back);
        back = NULL;
    }
    *out = back;
    return status;
}

void eng_cuda_back_gather_destroy(EngCudaBackGather *back)
{
    if (!back) return;
    for (Pairs &pairs : back->pairs) cudaFree(pairs.keys), cudaFree(pairs.places);
    cudaFree(back->counts), cudaFree(back->starts);
    eng_free(back);
}

/* Sorted pairs end up in the ones that are returned. */
static const Pairs *sort(const EngCudaBackGather *back, EngCudaStream *stream)
{
    int from = 0;
    for (int shift = 0; (uint64_t)(back->problem.rows - 1) >> shift; shift += BITS, from ^= 1) {
        const Pairs &pairs = back->pairs[from];
        ENG_LAUNCH(eng_sort_count_kernel, dim3(back->tiles), dim3(THREADS), 0, stream, pairs.keys,
                   back->n, shift, back->counts);
        ENG_LAUNCH(eng_scan_kernel, dim3(1), dim3(THREADS), 0, stream, back->counts,
                   DIGITS * back->tiles);
        ENG_LAUNCH(eng_sort_move_kernel, dim3(back->tiles), dim3(THREADS), 0, stream, pairs,
                   back->n, shift, back->counts, back->pairs[from ^ 1]);
    }
    return &back->pairs[from];
}

EngStatus eng_cuda_back_gather(const EngCudaBackGather *back, const EngBackGatherArgs *args,
                               EngCudaStream *stream, EngErr *err)
{
    const EngBackGatherProblem *p = &back->problem;
    if (!back->n)
        return eng_cuda_check(cudaMemsetAsync(args->n_touched, 0, sizeof *args->n_touched, stream),
                              "scatter-add", err);
    ENG_LAUNCH(eng_sort_load_kernel, dim3((back->n + THREADS - 1) / THREADS), dim3(THREADS), 0,
               stream, *p, *args, back->n, back->pairs[0]);
    const Pairs *sorted = sort(back, stream);
    ENG_LAUNCH(eng_segment_count_kernel, dim3(back->tiles), dim3(THREADS), 0, stream, sorted->keys,
               back->n, back->counts);
    ENG_LAUNCH(eng_scan_kernel, dim3(1), dim3(THREADS), 0, stream, back->counts, back->tiles);
    ENG_LAUNCH(eng_segment_list_kernel, dim3(back->tiles), dim3(THREADS), 0, stream, sorted->keys,
               back->n, back->counts, back->starts, *args);
    uint32_t blocks = (back->n + THREADS / 32 - 1) / (THREADS / 32);
    dim3 grid(blocks < 4096 ? blocks : 4096);
    if (p->row_dims % 4 == 0 && (uintptr_t)args->d_out % 16 == 0)
        ENG_LAUNCH((eng_segment_sum_kernel<4>), grid, dim3(THREADS), 0, stream, *p, *args,
                   back->starts, sorted->places);
    else
        ENG_LAUNCH((eng_segment_sum_kernel<1>), grid, dim3(THREADS), 0, stream, *p, *args,
                   back->starts, sorted->places);
    return eng_cuda_check(cudaGetLastError(), "scatter-add", err);
}
