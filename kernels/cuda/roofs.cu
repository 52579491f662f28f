/* What a gather, a gate and a projection cannot be faster than: the same bytes read and stored by
 * kernels that compute nothing; see device.h.
 *
 * What is read has to be used, or the compiler drops the load: it is mixed into what is stored,
 * under a mask of zeros (which the compiler cannot know) where stored bytes are to stay.
 */
#include "kernels/cuda/device.h"

#include <string.h>

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"

#define THREADS        128
#define STREAM_THREADS 256
#define STREAM_DEPTH   8 /* loads of 16 bytes in flight a thread */

/* ---- rows of a table ---- */

typedef struct RowsJob {
    const uint8_t *values, *scales;
    uint64_t value_stride, scale_stride;
    const int64_t *rows;
    int64_t row_stride;
    uint32_t columns, slots, loads, row_tile;
    uint32_t scale_step;  /* bytes of scales that go with `scale_loads` loads; 0: none */
    uint32_t scale_loads; /* a power of two */
    uint32_t stores;      /* for each load */
    uint8_t *out, *out_scales;
} RowsJob;

/* A store of PIECE bytes out of a load's: its start, or the whole twice. */
template <int BYTES, int PIECE>
static __device__ __forceinline__ typename EngWide<PIECE>::type
piece_of(const typename EngWide<BYTES>::type &raw, uint32_t scale)
{
    typename EngWide<PIECE>::type piece;
    uint32_t words[4];
    memcpy(words, &raw, BYTES);
    if (BYTES < 16) memcpy(words + 2, &raw, 8);
    words[0] ^= scale;
    memcpy(&piece, words, PIECE);
    return piece;
}

/* BYTES of a load, PIECE of a store, DEPTH loads in flight a thread. */
template <int BYTES, int PIECE, int DEPTH>
__global__ void __launch_bounds__(THREADS) eng_rows_roof_kernel(RowsJob job)
{
    typedef typename EngWide<BYTES>::type Wide;
    for (uint64_t tile = blockIdx.x; tile * job.row_tile < job.slots; tile += gridDim.x) {
        uint32_t first = (uint32_t)tile * job.row_tile, left = job.slots - first;
        uint32_t n = (left < job.row_tile ? left : job.row_tile) * job.loads;
        for (uint32_t i = threadIdx.x; i < n; i += DEPTH * THREADS) {
            Wide raw[DEPTH];
            uint32_t scale[DEPTH];
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                uint32_t at = i + k * THREADS, load = at % job.loads;
                if (at >= n) continue;
                uint32_t slot = first + at / job.loads;
                uint64_t row =
                    (uint64_t)job.rows[slot / job.columns * job.row_stride + slot % job.columns];
                raw[k] = eng_load_once<Wide>(job.values + row * job.value_stride + load * BYTES);
                scale[k] = 0;
                if (job.scale_step)
                    scale[k] = eng_load_once<uint8_t>(job.scales + row * job.scale_stride +
                                                      load / job.scale_loads * job.scale_step);
            }
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                uint32_t at = i + k * THREADS;
                if (at >= n) continue;
                uint64_t load = (uint64_t)first * job.loads + at;
                for (uint32_t s = 0; s < job.stores; s++)
                    eng_store_once(job.out + (load * job.stores + s) * PIECE,
                                   piece_of<BYTES, PIECE>(raw[k], scale[k]));
                if (job.out_scales && load % job.scale_loads == 0)
                    eng_store_once(job.out_scales + load / job.scale_loads, (uint8_t)scale[k]);
            }
        }
    }
}

typedef void (*RowsKernel)(RowsJob job);

template <int BYTES, int PIECE> static RowsKernel rows_kernel(bool deep)
{
    return deep ? (RowsKernel)eng_rows_roof_kernel<BYTES, PIECE, 8>
                : (RowsKernel)eng_rows_roof_kernel<BYTES, PIECE, 4>;
}

static RowsJob rows_job(const EngGatherProblem *problem, const EngGatherArgs *args)
{
    const EngTable *table = &problem->table;
    RowsJob job = {};
    job.values = table->values, job.scales = table->scales;
    job.value_stride = eng_row_stride_bytes(table->format, table->row_dims);
    job.scale_stride = eng_row_scale_bytes(table->format, table->row_dims);
    if (!job.scale_stride) { /* behind the row's values, or none */
        job.scales = table->values + eng_row_scale_offset(table->format, table->row_dims);
        job.scale_stride = job.value_stride;
    }
    job.rows = args->rows, job.row_stride = args->row_stride;
    job.columns = (uint32_t)problem->columns;
    job.slots = (uint32_t)(problem->tokens * problem->columns);
    job.out = (uint8_t *)args->out;
    if (problem->out == ENG_FP8) job.out_scales = args->out_scales;
    return job;
}

/* Loads of a row, and how their bytes are stored. */
typedef struct RowsCut {
    uint64_t bytes, loads, piece, stores;
} RowsCut;

static RowsCut cut_of(const EngGatherProblem *problem)
{
    const EngTable *table = &problem->table;
    uint64_t dims = (uint64_t)table->row_dims, out = eng_dtype_bytes(problem->out, dims);
    uint64_t row = table->format == ENG_ROW_INT4   ? dims / 2
                   : table->format == ENG_ROW_BF16 ? 2 * dims
                   : table->format == ENG_ROW_F32  ? 4 * dims
                                                   : dims;
    RowsCut cut = {};
    cut.bytes = (eng_row_stride_bytes(table->format, table->row_dims) | row) % 16 ? 8 : 16;
    cut.loads = row / cut.bytes;
    if (!cut.loads) return cut;
    cut.piece = out / cut.loads % 16 ? 8 : 16;
    cut.stores = out / cut.loads / cut.piece;
    return cut;
}

EngStatus eng_cuda_gather_roof_fits(const EngGatherProblem *problem, EngErr *why)
{
    const EngTable *table = &problem->table;
    RowsCut cut = cut_of(problem);
    uint64_t out = eng_dtype_bytes(problem->out, (size_t)table->row_dims);
    if (problem->columns < 1 || problem->tokens < 0 ||
        problem->tokens > INT32_MAX / problem->columns)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "roof of the gather: %lld tokens of %d columns",
                        (long long)problem->tokens, problem->columns);
    if (eng_row_stride_bytes(table->format, table->row_dims) % 8 ||
        (eng_row_has_groups(table->format) && table->row_dims % ENG_SCALE_GROUP) ||
        cut.loads * cut.stores * cut.piece != out || !out)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "roof of the gather: rows are no whole loads");
    return ENG_OK;
}

EngStatus eng_cuda_gather_roof(const EngGatherProblem *problem, const EngGatherArgs *args,
                               EngCudaGrid grid, bool deep, EngCudaStream *stream, EngErr *err)
{
    const EngTable *table = &problem->table;
    bool is_int4 = table->format == ENG_ROW_INT4, groups = eng_row_has_groups(table->format);
    EngStatus status = eng_cuda_gather_roof_fits(problem, err);
    if (status || !problem->tokens) return status;
    RowsCut cut = cut_of(problem);
    RowsJob job = rows_job(problem, args);
    if ((uintptr_t)job.values % cut.bytes || (uintptr_t)job.out % cut.piece || !job.rows)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "roof of the gather: buffers of odd alignment");
    job.loads = (uint32_t)cut.loads, job.stores = (uint32_t)cut.stores;
    job.scale_step = is_int4 ? 2 : groups ? 1 : 0;
    job.scale_loads = (uint32_t)((is_int4 ? 16 : ENG_SCALE_GROUP) / cut.bytes);
    job.row_tile = (uint32_t)grid.row_tile;
    unsigned tiles = (job.slots + job.row_tile - 1) / job.row_tile, blocks = tiles;
    if (grid.blocks > 0 && (unsigned)grid.blocks < tiles) blocks = (unsigned)grid.blocks;
    bool wide = cut.piece == 16;
    RowsKernel kernel = cut.bytes == 16
                            ? (wide ? rows_kernel<16, 16>(deep) : rows_kernel<16, 8>(deep))
                            : (wide ? rows_kernel<8, 16>(deep) : rows_kernel<8, 8>(deep));
    ENG_LAUNCH(kernel, dim3(blocks), dim3(THREADS), 0, stream, job);
    return eng_cuda_check(cudaGetLastError(), "roof of the gather", err);
}

/* ---- long runs of bytes ---- */

typedef struct Span {
    const uint4 *at;
    int64_t n; /* loads */
} Span;

/* `read` is read, then each word of `from` is stored into `to`, which may be the same place; from
 * NULL: of what was read. */
typedef struct StreamJob {
    Span read[3];
    const uint4 *from;
    uint4 *to;
    int64_t n;
    uint32_t mask;
} StreamJob;

static __device__ __forceinline__ uint32_t folded(const uint4 &v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

static __device__ __forceinline__ uint32_t read_span(const Span &span, int64_t thread,
                                                     int64_t threads)
{
    uint32_t all = 0;
    for (int64_t i = thread; i < span.n; i += STREAM_DEPTH * threads) {
        uint4 v[STREAM_DEPTH];
#pragma unroll
        for (int k = 0; k < STREAM_DEPTH; k++) {
            v[k] = make_uint4(0, 0, 0, 0);
            if (i + k * threads < span.n) v[k] = eng_load_once<uint4>(span.at + i + k * threads);
        }
#pragma unroll
        for (int k = 0; k < STREAM_DEPTH; k++) all ^= folded(v[k]);
    }
    return all;
}

__global__ void __launch_bounds__(STREAM_THREADS) eng_stream_roof_kernel(StreamJob job)
{
    int64_t thread = (int64_t)blockIdx.x * STREAM_THREADS + threadIdx.x;
    int64_t threads = (int64_t)gridDim.x * STREAM_THREADS;
    uint32_t all = 0;
    for (int s = 0; s < 3; s++) all ^= read_span(job.read[s], thread, threads);
    all &= job.mask;
    for (int64_t i = thread; i < job.n; i += STREAM_DEPTH * threads) {
        uint4 v[STREAM_DEPTH];
#pragma unroll
        for (int k = 0; k < STREAM_DEPTH; k++) {
            v[k] = make_uint4(0, 0, 0, 0);
            if (job.from && i + k * threads < job.n)
                v[k] = eng_load_wide<uint4>(job.from + i + k * threads);
        }
#pragma unroll
        for (int k = 0; k < STREAM_DEPTH; k++) {
            v[k].x ^= all;
            if (i + k * threads < job.n) eng_store_once(job.to + i + k * threads, v[k]);
        }
    }
}

static Span span_of(const void *at, size_t bytes)
{
    return {static_cast<const uint4 *>(at), at ? (int64_t)(bytes / 16) : 0};
}

/* As many blocks as all multiprocessors hold; fewer for what they would find nothing to do in. */
static EngStatus run_stream(StreamJob *job, const char *what, EngCudaStream *stream, EngErr *err)
{
    int processors = 0;
    int64_t most = job->n;
    EngStatus status = eng_cuda_check(
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), what, err);
    if (status) return status;
    for (const Span &span : job->read) {
        if ((uintptr_t)span.at % 16)
            return ENG_FAIL(err, ENG_UNSUPPORTED, "%s: buffers of odd alignment", what);
        if (span.n > most) most = span.n;
    }
    if (((uintptr_t)job->from | (uintptr_t)job->to) % 16)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "%s: buffers of odd alignment", what);
    int64_t blocks = (most + STREAM_THREADS - 1) / STREAM_THREADS;
    if (blocks > 8 * processors) blocks = 8 * processors;
    if (!blocks) return ENG_OK;
    ENG_LAUNCH(eng_stream_roof_kernel, dim3((unsigned)blocks), dim3(STREAM_THREADS), 0, stream,
               *job);
    return eng_cuda_check(cudaGetLastError(), what, err);
}

EngStatus eng_cuda_gate_roof_fits(const EngGateProblem *problem, EngErr *why)
{
    if (problem->hidden > 0 && problem->hidden % 8 == 0) return ENG_OK;
    return ENG_FAIL(why, ENG_UNSUPPORTED, "roof of the gate: %d values are no whole loads",
                    problem->hidden);
}

EngStatus eng_cuda_gate_roof(const EngGateProblem *problem, const EngGateArgs *args,
                             EngCudaStream *stream, EngErr *err)
{
    size_t values = (size_t)problem->streams * (size_t)problem->hidden;
    size_t tokens = problem->tokens < 0 ? 0 : (size_t)problem->tokens;
    EngStatus status = eng_cuda_gate_roof_fits(problem, err);
    if (status) return status;
    StreamJob job = {};
    job.read[0] = span_of(args->kv, 2 * tokens * (values + (size_t)problem->hidden));
    job.from = reinterpret_cast<const uint4 *>(args->streams_in);
    job.to = reinterpret_cast<uint4 *>(args->streams_out);
    job.n = (int64_t)(tokens * values / 8);
    return run_stream(&job, "roof of the gate", stream, err);
}

EngStatus eng_cuda_project_roof(const EngProjectProblem *problem, const EngProjectArgs *args,
                                EngCudaStream *stream, EngErr *err)
{
    size_t n = (size_t)problem->n, k = (size_t)problem->k, tokens = (size_t)problem->tokens;
    StreamJob job = {};
    job.read[0] = span_of(problem->w, eng_dtype_bytes(problem->weights, n * k));
    job.read[1] = span_of(problem->w_scales, n / ENG_SCALE_GROUP * (k / ENG_SCALE_GROUP));
    job.read[2] = span_of(args->x, eng_dtype_bytes(problem->x, tokens * k));
    job.to = static_cast<uint4 *>(args->out);
    job.n = (int64_t)(eng_dtype_bytes(problem->out, tokens * n) / 16);
    job.mask = UINT32_MAX;
    return run_stream(&job, "roof of the projection", stream, err);
}
