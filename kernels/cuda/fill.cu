/* Seeded content of a table, made on the device; see device.h.
 *
 * The bytes are those of kernels/store/content.c, whose random streams each yield 64 KiB. A lane
 * makes one stream, so that neighbouring lanes write 64 KiB apart: their words go through shared
 * memory, and the warp stores 128 bytes of a stream at a time. Scales inside rows are written over
 * the values afterwards, one thread for the 4,096 rows that share a stream.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"

#define WARPS       4
#define THREADS     (32 * WARPS)
#define CHUNK_BYTES 65536
#define WORDS       16          /* of a stream, between two barriers */
#define ROOM        (WORDS + 2) /* 16-byte aligned, and on other banks than the lane before */
#define SCALE_ROWS  4096
#define PIECE       256 /* bytes of a row's scales that are drawn together */

enum Content { CONTENT_CODES, CONTENT_SCALES, CONTENT_BF16, CONTENT_F32 };

/* ---- the generator of base/rng.c ---- */

typedef struct Random {
    uint64_t s[4];
} Random;

static __device__ __forceinline__ uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static __device__ __forceinline__ Random stream_at(uint64_t seed, uint64_t index, bool is_scale)
{
    Random random;
    uint64_t x = seed;
    x = splitmix(&x) ^ ((2 * index + is_scale) * 0xd1342543de82ef95u + 1);
#pragma unroll
    for (int i = 0; i < 4; i++) random.s[i] = splitmix(&x);
    return random;
}

static __device__ __forceinline__ uint64_t turned(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static __device__ __forceinline__ uint64_t next(Random *random)
{
    uint64_t *s = random->s, result = turned(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = turned(s[3], 45);
    return result;
}

/* ---- words of content ---- */

/* Eight codes; a NaN code, 0x7f or 0xff, loses its last bit. */
static __device__ __forceinline__ uint64_t codes(uint64_t x)
{
    uint64_t nan = (x & 0x7f7f7f7f7f7f7f7fu) + 0x0101010101010101u;
    return x ^ (nan & 0x8080808080808080u) >> 7;
}

/* Eight scales, 0x70 and a uniform 0..11. */
static __device__ __forceinline__ uint64_t scales(uint64_t x)
{
    uint64_t even = (x & 0x00ff00ff00ff00ffu) * 12 >> 8 & 0x00ff00ff00ff00ffu;
    uint64_t odd = (x >> 8 & 0x00ff00ff00ff00ffu) * 12 & 0xff00ff00ff00ff00u;
    return (even | odd) + 0x7070707070707070u;
}

static __device__ __forceinline__ uint64_t four_bf16(uint64_t x, const float *quantiles)
{
    uint64_t word = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t bits = __float_as_uint(quantiles[x >> 16 * i & 0xffff]);
        word |= (uint64_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16) << 16 * i;
    }
    return word;
}

/* Between two quantiles, straight; no contraction of product and sum, as on the host. */
static __device__ __forceinline__ uint64_t two_f32(uint64_t x, const float *quantiles)
{
    uint64_t word = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t half = (uint32_t)(x >> 32 * i);
        const float *q = quantiles + (half & 0xffff);
        float part = (float)(half >> 16) * 0x1p-16f;
        float value = __fadd_rn(q[0], __fmul_rn(__fadd_rn(q[1], -q[0]), part));
        word |= (uint64_t)__float_as_uint(value) << 32 * i;
    }
    return word;
}

template <int CONTENT>
static __device__ __forceinline__ uint64_t word_of(Random *random, const float *quantiles)
{
    uint64_t x = next(random);
    return CONTENT == CONTENT_CODES    ? codes(x)
           : CONTENT == CONTENT_SCALES ? scales(x)
           : CONTENT == CONTENT_BF16   ? four_bf16(x, quantiles)
                                       : two_f32(x, quantiles);
}

/* ---- kernels ---- */

typedef struct FillJob {
    uint8_t *out;        /* byte 0 of the table's values or scales */
    uint64_t begin, end; /* bytes to write */
    uint64_t seed;
    const float *quantiles;
} FillJob;

static __device__ __forceinline__ void put(const FillJob &job, uint64_t at, uint4 four)
{
    if (at >= job.begin && at + 16 <= job.end) return eng_store_once(job.out + at, four);
    const uint32_t words[4] = {four.x, four.y, four.z, four.w};
    for (int i = 0; i < 16; i++)
        if (at + i >= job.begin && at + i < job.end)
            job.out[at + i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
}

/* A warp takes 32 neighbouring streams; is_scale tells which family they are of. */
template <int CONTENT> __global__ void __launch_bounds__(THREADS) eng_fill_kernel(FillJob job)
{
    ENG_SHARED(uint64_t, words, [WARPS][32][ROOM]);
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    uint64_t first = job.begin / CHUNK_BYTES + ((uint64_t)blockIdx.x * WARPS + warp) * 32;
    if (first * CHUNK_BYTES >= job.end) return;
    Random random = stream_at(job.seed, first + lane, CONTENT == CONTENT_SCALES);
    for (int done = 0; done < CHUNK_BYTES; done += 8 * WORDS) {
        for (int i = 0; i < WORDS; i++)
            words[warp][lane][i] = word_of<CONTENT>(&random, job.quantiles);
        __syncwarp();
        for (int i = 0; i < 8; i++) { /* four streams, eight parts of each, at a time */
            int from = 4 * i + lane / 8, part = lane % 8;
            uint64_t at = (first + from) * CHUNK_BYTES + done + 16 * part;
            if (at < job.end && at + 16 > job.begin)
                put(job, at, eng_load_wide<uint4>(&words[warp][from][2 * part]));
        }
        __syncwarp();
    }
}

/* A whole number below 128 for each two bytes of int4 scales: 2^-7 to 2^-6 in bf16. */
static __device__ __forceinline__ uint32_t int4_scale(Random *random)
{
    uint64_t x;
    do x = next(random);
    while (x >= UINT64_MAX - 127); /* as rng_below leaves out its short last interval */
    return 0x3c00 + (uint32_t)(x % 128);
}

/* Rows of one stream of scales, [begin, end) of them written; scales are `bytes` at `offset`. */
template <bool INT4>
__global__ void __launch_bounds__(THREADS)
    eng_fill_inner_kernel(FillJob job, uint64_t stride, uint64_t offset, uint32_t bytes)
{
    uint64_t stream = job.begin / SCALE_ROWS + (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    uint64_t row = stream * SCALE_ROWS,
             last = row + SCALE_ROWS < job.end ? row + SCALE_ROWS : job.end;
    if (row >= job.end) return;
    Random random = stream_at(job.seed, stream, true);
    for (; row < last; row++) {
        uint8_t *out = job.out + row * stride + offset;
        for (uint32_t i = 0; i < bytes;) {
            uint32_t n = INT4 ? 2 : 8;
            uint64_t word = INT4 ? int4_scale(&random) : scales(next(&random));
            if (n > PIECE - i % PIECE) n = PIECE - i % PIECE;
            if (n > bytes - i) n = bytes - i;
            for (uint32_t b = 0; b < n && row >= job.begin; b++)
                out[i + b] = (uint8_t)(word >> 8 * b);
            i += n;
        }
    }
}

/* ---- launching ---- */

template <int CONTENT> static EngStatus fill(const FillJob &job, EngCudaStream *stream, EngErr *err)
{
    uint64_t chunks = (job.end + CHUNK_BYTES - 1) / CHUNK_BYTES - job.begin / CHUNK_BYTES;
    uint64_t blocks = (chunks + THREADS - 1) / THREADS;
    if (blocks > INT32_MAX) return ENG_FAIL(err, ENG_UNSUPPORTED, "fill: too many rows");
    ENG_LAUNCH((eng_fill_kernel<CONTENT>), dim3((unsigned)blocks), dim3(THREADS), 0, stream, job);
    return eng_cuda_check(cudaGetLastError(), "fill", err);
}

static EngStatus fill_inner(const EngTable *table, FillJob job, int64_t first, int64_t rows,
                            EngCudaStream *stream, EngErr *err)
{
    uint64_t stride = eng_row_stride_bytes(table->format, table->row_dims);
    uint64_t offset = eng_row_scale_offset(table->format, table->row_dims);
    uint32_t bytes = (uint32_t)(eng_row_value_bytes(table->format, table->row_dims) - offset);
    job.begin = (uint64_t)first, job.end = (uint64_t)(first + rows);
    uint64_t streams = (job.end + SCALE_ROWS - 1) / SCALE_ROWS - job.begin / SCALE_ROWS;
    dim3 blocks((unsigned)((streams + THREADS - 1) / THREADS));
    if (table->format == ENG_ROW_INT4)
        ENG_LAUNCH((eng_fill_inner_kernel<true>), blocks, dim3(THREADS), 0, stream, job, stride,
                   offset, bytes);
    else
        ENG_LAUNCH((eng_fill_inner_kernel<false>), blocks, dim3(THREADS), 0, stream, job, stride,
                   offset, bytes);
    return eng_cuda_check(cudaGetLastError(), "fill", err);
}

EngStatus eng_cuda_fill(const EngTable *table, int64_t first, int64_t rows, uint64_t seed,
                        const float *quantiles, EngCudaStream *stream, EngErr *err)
{
    EngRowFormat format = table->format;
    bool normal = format == ENG_ROW_BF16 || format == ENG_ROW_F32;
    uint64_t stride = eng_row_stride_bytes(format, table->row_dims);
    uint64_t scale_bytes = eng_row_scale_bytes(format, table->row_dims);
    if (first < 0 || rows < 0 || first > table->rows - rows)
        return ENG_FAIL(err, ENG_USAGE, "fill: rows %lld and %lld more of %lld", (long long)first,
                        (long long)rows, (long long)table->rows);
    if ((normal && !quantiles) || ((uintptr_t)table->values | (uintptr_t)table->scales) % 16)
        return ENG_FAIL(err, ENG_USAGE, "fill: quantiles missing or buffers of odd alignment");
    if (!rows) return ENG_OK;
    FillJob job = {const_cast<uint8_t *>(table->values), (uint64_t)first * stride,
                   (uint64_t)(first + rows) * stride, seed, quantiles};
    EngStatus status = format == ENG_ROW_BF16  ? fill<CONTENT_BF16>(job, stream, err)
                       : format == ENG_ROW_F32 ? fill<CONTENT_F32>(job, stream, err)
                                               : fill<CONTENT_CODES>(job, stream, err);
    if (!status && scale_bytes) {
        FillJob apart = {const_cast<uint8_t *>(table->scales), (uint64_t)first * scale_bytes,
                         (uint64_t)(first + rows) * scale_bytes, seed, quantiles};
        status = fill<CONTENT_SCALES>(apart, stream, err);
    }
    if (!status && eng_row_scale_offset(format, table->row_dims))
        status = fill_inner(table, job, first, rows, stream, err);
    return status;
}
