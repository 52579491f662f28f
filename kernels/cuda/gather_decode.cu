/* Gather + decode of every row format; see device.h and engram_facts section 5.
 *
 * A thread takes one load of a row at a time, the widest that the row's place allows: 16 bytes for
 * all formats but packed fp8 (264 bytes a row: 8). Blocks take tiles of rows, and a thread has
 * several rows in flight before it decodes the first. Products of a value and its scale are exact
 * in f32 (subnormal scales included); a bf16 output is rounded once.
 */
#include "kernels/cuda/device.h"

#include <string.h>

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"

#define THREADS   128
#define IN_FLIGHT 4

enum Coding { CODING_FP8, CODING_BF16, CODING_F32, CODING_INT4 };

typedef struct GatherJob {
    const uint8_t *values, *scales; /* first row's */
    uint64_t value_stride, scale_stride;
    const int64_t *rows;
    int64_t row_stride;
    uint32_t columns, slots; /* rows of a token, of all tokens */
    uint32_t loads;          /* of a row */
    uint32_t row_tile;
    uint8_t *out, *out_scales;
} GatherJob;

/* Elements that one load of BYTES holds. */
static __host__ __device__ constexpr int elements_of(int coding, int bytes)
{
    return coding == CODING_FP8    ? bytes
           : coding == CODING_BF16 ? bytes / 2
           : coding == CODING_F32  ? bytes / 4
                                   : bytes * 2;
}

static __host__ __device__ constexpr int size_of(int out)
{
    return out == ENG_F32 ? 4 : out == ENG_BF16 ? 2 : 1;
}

template <int CODING, int BYTES>
static __device__ __forceinline__ void decode(const uint8_t *bytes, float scale, float *values)
{
    if (CODING == CODING_FP8) {
#pragma unroll
        for (int i = 0; i < BYTES; i++)
            values[i] = __half2float(__half(__nv_cvt_fp8_to_halfraw(bytes[i], __NV_E4M3))) * scale;
    } else if (CODING == CODING_BF16) {
#pragma unroll
        for (int i = 0; i < BYTES / 2; i++)
            values[i] = eng_bf16((uint32_t)(bytes[2 * i] | bytes[2 * i + 1] << 8));
    } else if (CODING == CODING_F32) {
        memcpy(values, bytes, BYTES);
    } else {
#pragma unroll
        for (int i = 0; i < 2 * BYTES; i++) {
            int nibble = bytes[i / 2] >> 4 * (i % 2) & 15;
            values[i] = (float)((nibble ^ 8) - 8) * scale;
        }
    }
}

/* n values as out elements, in stores of up to 16 bytes. */
template <int N, int OUT>
static __device__ __forceinline__ void store(uint8_t *out, const float *values)
{
    constexpr int bytes = N * (OUT == ENG_F32 ? 4 : 2), piece = bytes < 16 ? bytes : 16;
    uint8_t packed[bytes];
    if (OUT == ENG_F32) {
        memcpy(packed, values, bytes);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) {
            __nv_bfloat16 rounded = __float2bfloat16_rn(values[i]);
            memcpy(packed + 2 * i, &rounded, 2);
        }
    }
#pragma unroll
    for (int at = 0; at < bytes; at += piece) {
        typename EngWide<piece>::type wide;
        memcpy(&wide, packed + at, piece);
        eng_store_once(out + at, wide);
    }
}

/* Scale of the group that element `at` of a row lies in. */
template <int CODING>
static __device__ __forceinline__ float scale_at(const GatherJob &job, uint64_t row, uint32_t at)
{
    const uint8_t *scales = job.scales + row * job.scale_stride;
    if (CODING == CODING_FP8)
        return eng_e8m0(eng_load_once<uint8_t>(scales + at / ENG_SCALE_GROUP));
    if (CODING == CODING_INT4)
        return eng_bf16(eng_load_once<uint16_t>(scales + 2 * (at / ENG_SCALE_GROUP)));
    return 1.0f;
}

template <int CODING, int BYTES, int OUT>
static __device__ __forceinline__ void finish(const GatherJob &job, uint32_t slot, uint32_t load,
                                              const typename EngWide<BYTES>::type &raw, float scale)
{
    constexpr int n = elements_of(CODING, BYTES);
    uint64_t at = ((uint64_t)slot * job.loads + load) * n;
    uint8_t bytes[BYTES];
    float values[n];
    memcpy(bytes, &raw, BYTES);
    decode<CODING, BYTES>(bytes, scale, values);
    store<n, OUT>(job.out + at * size_of(OUT), values);
}

static __device__ __forceinline__ uint64_t row_at(const GatherJob &job, uint32_t slot)
{
    if (!job.rows) return slot;
    uint32_t token = slot / job.columns, column = slot % job.columns;
    return (uint64_t)job.rows[token * job.row_stride + column];
}

/* OUT F32 or BF16. */
template <int CODING, int BYTES, int OUT>
__global__ void __launch_bounds__(THREADS) eng_gather_kernel(GatherJob job)
{
    for (uint64_t tile = blockIdx.x; tile * job.row_tile < job.slots; tile += gridDim.x) {
        uint32_t first = (uint32_t)tile * job.row_tile, left = job.slots - first;
        uint32_t n = (left < job.row_tile ? left : job.row_tile) * job.loads;
        for (uint32_t i = threadIdx.x; i < n; i += IN_FLIGHT * THREADS) {
            typename EngWide<BYTES>::type raw[IN_FLIGHT];
            float scale[IN_FLIGHT];
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; k++) {
                uint32_t at = i + k * THREADS, load = at % job.loads;
                if (at >= n) continue;
                uint64_t row = row_at(job, first + at / job.loads);
                raw[k] = eng_load_once<typename EngWide<BYTES>::type>(
                    job.values + row * job.value_stride + load * BYTES);
                scale[k] = scale_at<CODING>(job, row, load * elements_of(CODING, BYTES));
            }
#pragma unroll
            for (int k = 0; k < IN_FLIGHT; k++) {
                uint32_t at = i + k * THREADS;
                if (at < n)
                    finish<CODING, BYTES, OUT>(job, first + at / job.loads, at % job.loads, raw[k],
                                               scale[k]);
            }
        }
    }
}

/* fp8 values and scales as they are. */
template <int BYTES>
__global__ void __launch_bounds__(THREADS) eng_gather_copy_kernel(GatherJob job)
{
    typedef typename EngWide<BYTES>::type Wide;
    uint32_t scales = job.loads * BYTES / ENG_SCALE_GROUP;
    for (uint64_t tile = blockIdx.x; tile * job.row_tile < job.slots; tile += gridDim.x) {
        uint32_t first = (uint32_t)tile * job.row_tile, left = job.slots - first;
        uint32_t n = (left < job.row_tile ? left : job.row_tile) * job.loads;
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            uint32_t slot = first + i / job.loads, load = i % job.loads;
            uint64_t row = row_at(job, slot);
            eng_store_once(job.out + ((uint64_t)slot * job.loads + load) * BYTES,
                           eng_load_once<Wide>(job.values + row * job.value_stride + load * BYTES));
            if (load * BYTES % ENG_SCALE_GROUP) continue;
            uint32_t group = load * BYTES / ENG_SCALE_GROUP;
            eng_store_once(job.out_scales + (uint64_t)slot * scales + group,
                           eng_load_once<uint8_t>(job.scales + row * job.scale_stride + group));
        }
    }
}

/* ---- launching ---- */

typedef void (*GatherKernel)(GatherJob job);

static int coding_of(EngRowFormat format)
{
    return format == ENG_ROW_BF16   ? CODING_BF16
           : format == ENG_ROW_F32  ? CODING_F32
           : format == ENG_ROW_INT4 ? CODING_INT4
                                    : CODING_FP8;
}

static bool fits(const GatherJob *job, uint64_t row_bytes, int coding, int bytes, int out)
{
    uint64_t store = (uint64_t)elements_of(coding, bytes) * (uint64_t)size_of(out);
    if (!store) return false; /* less than an element */
    if (store > 16) store = 16;
    return ((uintptr_t)job->values | job->value_stride | row_bytes) % (uint64_t)bytes == 0 &&
           (uintptr_t)job->out % store == 0;
}

template <int CODING, int BYTES> static GatherKernel kernel_for(int out)
{
    return out == ENG_F32 ? (GatherKernel)eng_gather_kernel<CODING, BYTES, ENG_F32>
                          : (GatherKernel)eng_gather_kernel<CODING, BYTES, ENG_BF16>;
}

/* The kernel of the widest load that fits, and that width; NULL when none does. */
static GatherKernel choose(const GatherJob *job, uint64_t row_bytes, int coding, int out,
                           int *bytes)
{
    static const int widths[] = {16, 8, 4, 2, 1};
    for (int width : widths) {
        *bytes = width;
        if (!fits(job, row_bytes, coding, width, out)) continue;
        if (coding == CODING_FP8 && out == ENG_FP8) {
            if (width == 16) return eng_gather_copy_kernel<16>;
            if (width == 8) return eng_gather_copy_kernel<8>;
            if (width == 1) return eng_gather_copy_kernel<1>;
        } else if (coding == CODING_FP8) {
            if (width == 16) return kernel_for<CODING_FP8, 16>(out);
            if (width == 8) return kernel_for<CODING_FP8, 8>(out);
            if (width == 1) return kernel_for<CODING_FP8, 1>(out);
        } else if (coding == CODING_BF16) {
            if (width == 16) return kernel_for<CODING_BF16, 16>(out);
            if (width == 2) return kernel_for<CODING_BF16, 2>(out);
        } else if (coding == CODING_F32) {
            if (width == 16) return kernel_for<CODING_F32, 16>(out);
            if (width == 4) return kernel_for<CODING_F32, 4>(out);
        } else {
            if (width == 16) return kernel_for<CODING_INT4, 16>(out);
            if (width == 2) return kernel_for<CODING_INT4, 2>(out);
        }
    }
    return NULL;
}

static GatherJob job_of(const EngGatherProblem *problem, const EngGatherArgs *args)
{
    const EngTable *table = &problem->table;
    GatherJob job = {};
    job.values = table->values;
    job.value_stride = eng_row_stride_bytes(table->format, table->row_dims);
    job.scales = table->scales;
    job.scale_stride = eng_row_scale_bytes(table->format, table->row_dims);
    if (!job.scale_stride) { /* behind the row's values, or none */
        job.scales = table->values + eng_row_scale_offset(table->format, table->row_dims);
        job.scale_stride = job.value_stride;
    }
    job.rows = args->rows, job.row_stride = args->row_stride;
    job.columns = (uint32_t)problem->columns;
    job.slots = (uint32_t)(problem->tokens * problem->columns);
    job.out = (uint8_t *)args->out, job.out_scales = args->out_scales;
    return job;
}

static EngStatus check(const EngGatherProblem *problem, const EngGatherArgs *args, EngErr *err)
{
    const EngTable *table = &problem->table;
    if (problem->out == ENG_FP8 && (!eng_row_is_fp8(table->format) || !args->out_scales))
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "gather: undecoded rows need an fp8 table and scales");
    if (problem->columns < 1 || table->row_dims < 1 ||
        (eng_row_has_groups(table->format) && table->row_dims % ENG_SCALE_GROUP))
        return ENG_FAIL(err, ENG_UNSUPPORTED, "gather: %d columns of %d dims", problem->columns,
                        table->row_dims);
    if (problem->tokens < 0 || problem->tokens > INT32_MAX / problem->columns)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "gather: %lld tokens", (long long)problem->tokens);
    return ENG_OK;
}

/* Blocks of the kernel that a multiprocessor holds at once. */
static EngStatus resident(GatherKernel kernel, int *blocks, EngErr *err)
{
    static GatherKernel known; /* one thread of a process speaks to the device */
    static int held;
    EngStatus status = ENG_OK;
    if (kernel != known)
        status = eng_cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                    &held, reinterpret_cast<const void *>(kernel), THREADS, 0),
                                "gather", err);
    known = status ? NULL : kernel;
    *blocks = held > 1 ? held : 1;
    return status;
}

/* Few rows want small tiles, so that every multiprocessor gets some; many want as many blocks as
 * run at once, which go on from tile to tile. */
static EngStatus cut(EngCudaGrid grid, GatherKernel kernel, GatherJob *job, unsigned *blocks,
                     EngErr *err)
{
    int processors = 0, each = 0;
    EngStatus status = eng_cuda_check(
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "gather", err);
    if (!status) status = resident(kernel, &each, err);
    if (status) return status;
    job->row_tile = grid.row_tile > 0 ? (uint32_t)grid.row_tile : job->slots <= 4096 ? 2 : 16;
    unsigned tiles = (job->slots + job->row_tile - 1) / job->row_tile;
    *blocks = grid.blocks > 0 ? (unsigned)grid.blocks : (unsigned)(processors * each);
    if (grid.blocks == ENG_CUDA_HALF_GRID) *blocks = (*blocks + 1) / 2;
    if (*blocks > tiles) *blocks = tiles;
    return ENG_OK;
}

EngStatus eng_cuda_gather(const EngGatherProblem *problem, const EngGatherArgs *args,
                          EngCudaGrid grid, EngCudaStream *stream, EngErr *err)
{
    EngStatus status = check(problem, args, err);
    if (status || !problem->tokens) return status;
    const EngTable *table = &problem->table;
    GatherJob job = job_of(problem, args);
    int coding = coding_of(table->format), bytes;
    /* Values alone: scales behind them are not loaded with them. */
    uint64_t row_bytes = coding == CODING_INT4
                             ? (uint64_t)table->row_dims / 2
                             : (uint64_t)table->row_dims * (coding == CODING_F32    ? 4
                                                            : coding == CODING_BF16 ? 2
                                                                                    : 1);
    GatherKernel gather_kernel = choose(&job, row_bytes, coding, problem->out, &bytes);
    if (!gather_kernel) return ENG_FAIL(err, ENG_UNSUPPORTED, "gather: buffers of odd alignment");
    job.loads = (uint32_t)(row_bytes / (uint64_t)bytes);
    unsigned blocks;
    status = cut(grid, gather_kernel, &job, &blocks, err);
    if (status) return status;
    ENG_LAUNCH(gather_kernel, dim3(blocks), dim3(THREADS), 0, stream, job);
    return eng_cuda_check(cudaGetLastError(), "gather", err);
}
