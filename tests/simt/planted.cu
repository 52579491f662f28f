/* See planted.cuh. Blocks have 64 threads; in holds at least 256 numbers. */
#include "planted.cuh"

__global__ void neighbour_sum(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [64]);
    int t = (int)threadIdx.x;
    cells[t] = 0;
    __syncthreads();
    cells[t] = in[t];
    if (!broken) __syncthreads();
    out[64 * (int)blockIdx.x + t] = cells[(t + 1) % 64];
}

__global__ void warp_neighbour(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [64]);
    int t = (int)threadIdx.x, warp = t / 32 * 32;
    cells[t] = 0;
    __syncwarp();
    cells[t] = in[t];
    if (!broken) __syncwarp();
    out[64 * (int)blockIdx.x + t] = cells[warp + (t + 1) % 32];
}

/* A warp's barrier orders its own lanes only: the second warp reads what the first writes. */
__global__ void other_warp(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [32]);
    int t = (int)threadIdx.x;
    if (t < 32) cells[t] = 0;
    __syncthreads();
    if (t < 32) cells[t] = in[t];
    __syncwarp();
    if (!broken) __syncthreads();
    if (t >= 32) out[64 * (int)blockIdx.x + t] = cells[t - 32];
}

/* All threads read a cell; the last one, which has passed a barrier of its warp, writes it. */
__global__ void written_while_read(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cell, [1]);
    int t = (int)threadIdx.x;
    if (t == 0) cell[0] = in[0];
    __syncthreads();
    out[64 * (int)blockIdx.x + t] = cell[0];
    __syncwarp();
    if (!broken) __syncthreads();
    if (t == 63) cell[0] = 1;
}

__global__ void early_exit(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    if (broken && t == 40) return;
    __syncthreads();
    out[64 * (int)blockIdx.x + t] = in[t];
}

__global__ void two_barriers(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    if (broken && t < 32)
        __syncthreads();
    else
        __syncthreads();
    if (!broken) __syncthreads();
    out[64 * (int)blockIdx.x + t] = in[t];
}

__global__ void lane_from_outside(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x, value = in[t];
    if (t % 32 < 16) value += __shfl_sync(0xffffu, value, broken ? 20 : 4);
    out[64 * (int)blockIdx.x + t] = value;
}

__global__ void mask_without_caller(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x, value = in[t];
    if (t % 32 < (broken ? 17 : 16)) value += __shfl_sync(0xffffu, value, 4);
    out[64 * (int)blockIdx.x + t] = value;
}

__global__ void ended_lane(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    out[64 * (int)blockIdx.x + t] = in[t];
    if (broken && t % 32 == 7) return;
    out[64 * (int)blockIdx.x + t] = __shfl_xor_sync(ENG_FULL_WARP, in[t], 1);
}

/* In order of threads the others wait already, for one that never comes. */
__global__ void ended_last_lane(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    out[64 * (int)blockIdx.x + t] = in[t];
    if (broken && t % 32 == 31) return;
    out[64 * (int)blockIdx.x + t] = __shfl_xor_sync(ENG_FULL_WARP, in[t], 1);
}

__global__ void full_mask_in_branch(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x, value = in[t];
    if (!broken) {
        value += __shfl_down_sync(ENG_FULL_WARP, value, 1);
    } else if (t % 2) {
        value += __shfl_down_sync(ENG_FULL_WARP, value, 1);
    } else {
        value -= __shfl_down_sync(ENG_FULL_WARP, value, 2);
    }
    out[64 * (int)blockIdx.x + t] = value;
}

__global__ void shared_past_end(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [64]);
    ENG_SHARED(int, others, [64]);
    int t = (int)threadIdx.x, at = broken ? t + 1 : t;
    others[t] = 1;
    cells[at] = in[t];
    __syncthreads();
    out[64 * (int)blockIdx.x + t] = cells[at] + others[t];
}

__global__ void shared_across_end(const int *in, int *out, bool broken)
{
    ENG_SHARED(unsigned char, bytes, [250]);
    int t = (int)threadIdx.x;
    int *cell = reinterpret_cast<int *>(bytes + 4 * (t < 62 ? t : broken ? 62 : 61));
    if (t < 62 || (broken && t == 62)) *cell = in[t];
    out[64 * (int)blockIdx.x + t] = in[t];
}

__global__ void shared_before_start(const int *in, int *out, bool broken)
{
    ENG_SHARED_DYNAMIC(int, cells);
    int t = (int)threadIdx.x, at = broken ? t - 1 : t;
    cells[at] = in[t];
    out[64 * (int)blockIdx.x + t] = cells[at];
}

__global__ void shared_misaligned(const int *in, int *out, bool broken)
{
    ENG_SHARED(unsigned char, bytes, [512]);
    int t = (int)threadIdx.x;
    int *cell = reinterpret_cast<int *>(bytes + 4 * t + (broken ? 2 : 0));
    *cell = in[t];
    out[64 * (int)blockIdx.x + t] = *cell;
}

__global__ void shared_unwritten(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [64]);
    int t = (int)threadIdx.x;
    if (!broken || t != 13) cells[t] = in[t];
    __syncthreads();
    out[64 * (int)blockIdx.x + t] = cells[63 - t];
}

__global__ void global_past_end(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    out[64 * (int)blockIdx.x + t + (broken && blockIdx.x + 1 == gridDim.x ? 1 : 0)] = in[t];
}

__global__ void global_far(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    out[64 * (int)blockIdx.x + t] = in[broken ? t - 100000000 : t];
}

__global__ void global_misaligned(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    uint4 four = eng_load_once<uint4>(in + 4 * (t % 32) + (broken ? 2 : 0));
    out[64 * (int)blockIdx.x + t] = (int)four.x;
}

__global__ void same_cell(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x, at = 64 * (int)blockIdx.x;
    out[at + t] = in[t];
    __syncthreads();
    if (broken)
        out[at] = in[t];
    else if (t == 0)
        out[at] = in[t];
}

__global__ void cell_of_all_blocks(const int *in, int *out, bool broken)
{
    if (threadIdx.x) return;
    if (broken)
        out[0] += in[0];
    else
        atomicAdd(out, in[0]);
}

/* All blocks read what the last of them writes. */
__global__ void written_while_all_read(const int *in, int *out, bool broken)
{
    int first = out[0];
    __syncthreads();
    if (broken && threadIdx.x == 0 && blockIdx.x + 1 == gridDim.x) out[0] = in[0] + first;
}

__global__ void atomic_and_plain(const int *in, int *out, bool broken)
{
    int at = 64 * (int)blockIdx.x;
    if (broken && threadIdx.x == 0)
        out[at] = in[0];
    else
        atomicAdd(out + at, in[0]);
}

/* The last thread also reads the sum, which others may still add to. */
__global__ void atomic_then_read(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x, at = 64 * (int)blockIdx.x;
    atomicAdd(out + at, in[0]);
    if (!broken) __syncthreads();
    if (t == 63) out[at + t] = out[at];
}

/* Each thread copies four numbers and reads one of its own. */
__global__ void copy_too_early(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [256]);
    int t = (int)threadIdx.x;
    eng_copy_async_16(&cells[4 * t], in + 4 * t);
    eng_copy_commit();
    if (!broken) eng_copy_wait<0>();
    out[64 * (int)blockIdx.x + t] = cells[4 * t + 1];
    eng_copy_wait<0>();
}

/* The own wait says nothing about the copies of other threads. */
__global__ void copy_without_barrier(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [256]);
    int t = (int)threadIdx.x;
    eng_copy_async_16(&cells[4 * t], in + 4 * t);
    eng_copy_commit();
    eng_copy_wait<0>();
    if (!broken) __syncthreads();
    out[64 * (int)blockIdx.x + t] = cells[(4 * t + 4) % 256];
}

__global__ void copy_never_awaited(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [256]);
    int t = (int)threadIdx.x;
    eng_copy_async_16(&cells[4 * t], in + 4 * t);
    eng_copy_commit();
    if (!broken) eng_copy_wait<0>();
    out[64 * (int)blockIdx.x + t] = in[t];
}

/* Awaited behind a barrier, but begun while others may read the cells. */
__global__ void copy_over_readers(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [256]);
    int t = (int)threadIdx.x;
    for (int i = 0; i < 4; i++) cells[4 * t + i] = in[t];
    __syncthreads();
    int read = cells[(4 * t + 4) % 256];
    if (!broken) __syncthreads();
    eng_copy_async_16(&cells[4 * t], in + 4 * t);
    eng_copy_commit();
    __syncthreads();
    eng_copy_wait<0>();
    out[64 * (int)blockIdx.x + t] = read;
}

/* Begun before a barrier, awaited behind it: others may only read behind the next one. */
__global__ void copy_landed_elsewhere(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [256]);
    int t = (int)threadIdx.x;
    eng_copy_async_16(&cells[4 * t], in + 4 * t);
    eng_copy_commit();
    __syncthreads();
    eng_copy_wait<0>();
    if (!broken) __syncthreads();
    out[64 * (int)blockIdx.x + t] = t ? cells[4 * (t - 1)] : 0;
}

__global__ void copy_to_global(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [256]);
    int t = (int)threadIdx.x;
    if (t % 4 == 0)
        eng_copy_async_16(broken ? out + 64 * (int)blockIdx.x + t : &cells[4 * t], in + t);
    eng_copy_commit();
    eng_copy_wait<0>();
}

__global__ void copy_from_outside(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [256]);
    int t = (int)threadIdx.x;
    eng_copy_async_16(&cells[4 * t], in + 4 * t + (broken ? 8 : 0));
    eng_copy_commit();
    eng_copy_wait<0>();
    out[64 * (int)blockIdx.x + t] = cells[4 * t];
}

__global__ void large_static(const int *in, int *out, bool broken)
{
    int i = 64 * (int)blockIdx.x + (int)threadIdx.x;
    if (broken) {
        ENG_SHARED(unsigned char, large, [50000]);
        large[threadIdx.x] = 1;
    }
    out[i] = in[i];
}

__global__ void endless(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    volatile const int *flag = in;
    while (broken && *flag != 12345) {
    }
    out[64 * (int)blockIdx.x + t] = in[t];
}

/* Two stages in flight; broken: the next copy starts into cells that others may still read. */
__global__ void double_buffer(const int *in, int *out, bool broken)
{
    ENG_SHARED(int, cells, [2][256]);
    int t = (int)threadIdx.x, sum = 0;
    eng_copy_async_16(&cells[0][4 * t], in + 4 * t);
    eng_copy_commit();
    for (int stage = 0; stage < 4; stage++) {
        if (!broken) __syncthreads();
        eng_copy_async_16(&cells[(stage + 1) % 2][4 * t], in + 4 * t);
        eng_copy_commit();
        eng_copy_wait<1>();
        __syncthreads();
        sum += cells[stage % 2][(4 * t + 4) % 256];
    }
    eng_copy_wait<0>();
    out[64 * (int)blockIdx.x + t] = sum;
}

/* Lane 9 of the broken one goes another way, or has ended; `in` holds small whole numbers. */
__global__ void mma_in_branch(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    float sums[4] = {0, 0, 0, 0};
    const uint32_t one = 0x3f803f80u, a[4] = {one, one, one, one}, b[2] = {one, one};
    if (broken && t % 32 == 9)
        sums[0] = (float)in[t];
    else
        eng_mma_bf16(sums, a, b);
    __syncwarp();
    out[64 * (int)blockIdx.x + t] = (int)sums[0];
}

__global__ void mma_of_ended_lane(const int *in, int *out, bool broken)
{
    int t = (int)threadIdx.x;
    float sums[4] = {0, 0, 0, 0};
    const uint32_t one = 0x3f803f80u, a[4] = {one, one, one, one}, b[2] = {one, one};
    out[64 * (int)blockIdx.x + t] = in[t];
    if (broken && t % 32 == 9) return;
    __syncwarp();
    eng_mma_bf16(sums, a, b);
    out[64 * (int)blockIdx.x + t] = (int)sums[0];
}

/* out [16, 8] = a [16, 16] . b [16, 8], bf16 in row-major order, by one warp. */
__global__ void mma_product(const uint16_t *a, const uint16_t *b, float *out)
{
    int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    uint32_t left[4], right[2];
    float sums[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        const uint16_t *pair = a + 16 * (g + 8 * (i % 2)) + 8 * (i / 2) + 2 * t;
        left[i] = pair[0] | (uint32_t)pair[1] << 16;
    }
    for (int i = 0; i < 2; i++) {
        const uint16_t *pair = b + 8 * (8 * i + 2 * t) + g;
        right[i] = pair[0] | (uint32_t)pair[8] << 16;
    }
    eng_mma_bf16(sums, left, right);
    for (int i = 0; i < 4; i++) out[8 * (g + 8 * (i / 2)) + 2 * t + i % 2] = sums[i];
}

__global__ void add_one(const int *in, int *out)
{
    int i = 64 * (int)blockIdx.x + (int)threadIdx.x;
    out[i] = in[i] + 1;
}

__global__ void far_row(const int *in, int *out, int row, int row_ints, bool broken)
{
    uint32_t short_at = (uint32_t)row * (uint32_t)row_ints * 4u;
    uint64_t at = broken ? short_at : (uint64_t)row * (uint64_t)row_ints * 4u;
    out[0] = in[at / 4];
}
