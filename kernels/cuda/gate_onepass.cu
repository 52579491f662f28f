/* Gate + write-back; see device.h and engram_facts section 6, steps 3-6.
 *
 * One block for a token and stream. Its threads keep the stream's elements in registers between the
 * sums and the write-back, so that each is read once; shapes that do not fit (no multiple of 8,
 * more than 5120, odd alignment) are read twice by a plain kernel.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"

#include <math.h>

#define THREADS 128
#define HELD    5 /* loads of 8 elements a thread keeps: 128 * 5 * 8 = 5120 */

typedef struct Sums {
    float xx, kk, dot;
} Sums;

typedef struct Block { /* where this block's token and stream lie */
    const uint16_t *x, *key, *value, *q, *k;
    uint16_t *out;
    int64_t slot;
    bool dead;
} Block;

static __device__ Block block_of(const EngGateProblem &problem, const EngGateArgs &args)
{
    int64_t token = blockIdx.x / (unsigned)problem.streams;
    int stream = (int)(blockIdx.x % (unsigned)problem.streams);
    int64_t slot = token * problem.streams + stream, hidden = problem.hidden;
    const uint16_t *kv = args.kv + token * (problem.streams + 1) * hidden;
    Block block;
    block.x = args.streams_in + slot * hidden;
    block.out = args.streams_out + slot * hidden;
    block.key = kv + stream * hidden;
    block.value = kv + problem.streams * hidden;
    block.q = problem.q_weight + stream * hidden;
    block.k = problem.k_weight + stream * hidden;
    block.slot = slot;
    block.dead = args.dead && args.dead[token];
    return block;
}

static __device__ __forceinline__ void add(Sums *sums, float x, float key, float q, float k)
{
    sums->xx += x * x;
    sums->kk += key * key;
    sums->dot += x * (q * k) * key;
}

/* Sums of the whole block, the same bits in every thread. */
static __device__ Sums reduce(Sums own)
{
    ENG_SHARED(float, parts, [THREADS / 32][3]);
#pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        own.xx += __shfl_xor_sync(ENG_FULL_WARP, own.xx, by);
        own.kk += __shfl_xor_sync(ENG_FULL_WARP, own.kk, by);
        own.dot += __shfl_xor_sync(ENG_FULL_WARP, own.dot, by);
    }
    int warp = (int)threadIdx.x / 32;
    if (threadIdx.x % 32 == 0)
        parts[warp][0] = own.xx, parts[warp][1] = own.kk, parts[warp][2] = own.dot;
    __syncthreads();
    Sums all = {0, 0, 0};
#pragma unroll
    for (int w = 0; w < THREADS / 32; w++)
        all.xx += parts[w][0], all.kk += parts[w][1], all.dot += parts[w][2];
    return all;
}

static __device__ float gate_of(EngGateFormula formula, float score)
{
    float z = score;
    if (formula != ENG_GATE_PLAIN && score == score) {
        z = copysignf(sqrtf(fmaxf(fabsf(score), 1e-6f)), score);
        if (formula == ENG_GATE_SIGN && score == 0) z = 0;
    }
    return 1.0f / (1.0f + expf(-z));
}

/* Score, gate, and their outputs. */
static __device__ float finish(const EngGateProblem &problem, const EngGateArgs &args,
                               const Block &block, Sums own)
{
    Sums all = reduce(own);
    float n = (float)problem.hidden;
    float rstd = 1.0f / sqrtf(all.xx / n + problem.eps) / sqrtf(all.kk / n + problem.eps);
    float score = block.dead ? 0 : all.dot * rstd / sqrtf(n);
    float gate = block.dead ? 0 : gate_of(problem.formula, score);
    if (threadIdx.x == 0) {
        if (args.gates) args.gates[block.slot] = gate;
        if (args.scores) args.scores[block.slot] = score;
    }
    return gate;
}

static __device__ __forceinline__ void add_eight(Sums *sums, uint4 x, uint4 key, uint4 q, uint4 k)
{
    const uint32_t xs[4] = {x.x, x.y, x.z, x.w}, keys[4] = {key.x, key.y, key.z, key.w};
    const uint32_t qs[4] = {q.x, q.y, q.z, q.w}, ks[4] = {k.x, k.y, k.z, k.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        add(sums, eng_bf16(xs[i] & 0xffff), eng_bf16(keys[i] & 0xffff), eng_bf16(qs[i] & 0xffff),
            eng_bf16(ks[i] & 0xffff));
        add(sums, eng_bf16(xs[i] >> 16), eng_bf16(keys[i] >> 16), eng_bf16(qs[i] >> 16),
            eng_bf16(ks[i] >> 16));
    }
}

static __device__ __forceinline__ uint32_t written(uint32_t x, uint32_t value, float gate)
{
    return eng_bf16_pair(eng_bf16(x & 0xffff) + gate * eng_bf16(value & 0xffff),
                         eng_bf16(x >> 16) + gate * eng_bf16(value >> 16));
}

/* hidden in multiples of 8, at most THREADS * HELD * 8, all buffers 16-byte aligned. */
__global__ void __launch_bounds__(THREADS)
    eng_gate_held_kernel(EngGateProblem problem, EngGateArgs args)
{
    Block block = block_of(problem, args);
    int loads = problem.hidden / 8;
    uint4 x[HELD], value[HELD];
    Sums sums = {0, 0, 0};
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int at = 8 * ((int)threadIdx.x + i * THREADS);
        if (at / 8 >= loads) continue;
        x[i] = eng_load_wide<uint4>(block.x + at);
        value[i] = eng_load_once<uint4>(block.value + at);
        add_eight(&sums, x[i], eng_load_once<uint4>(block.key + at),
                  eng_load_wide<uint4>(block.q + at), eng_load_wide<uint4>(block.k + at));
    }
    float gate = finish(problem, args, block, sums);
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int at = 8 * ((int)threadIdx.x + i * THREADS);
        if (at / 8 >= loads) continue;
        uint4 out = x[i];
        if (!block.dead) /* a masked token keeps its bits, NaN included */
            out = make_uint4(written(x[i].x, value[i].x, gate), written(x[i].y, value[i].y, gate),
                             written(x[i].z, value[i].z, gate), written(x[i].w, value[i].w, gate));
        eng_store_once(block.out + at, out);
    }
}

__global__ void __launch_bounds__(THREADS)
    eng_gate_any_kernel(EngGateProblem problem, EngGateArgs args)
{
    Block block = block_of(problem, args);
    Sums sums = {0, 0, 0};
    for (int i = (int)threadIdx.x; i < problem.hidden; i += THREADS)
        add(&sums, eng_bf16(block.x[i]), eng_bf16(block.key[i]), eng_bf16(block.q[i]),
            eng_bf16(block.k[i]));
    float gate = finish(problem, args, block, sums);
    for (int i = (int)threadIdx.x; i < problem.hidden; i += THREADS)
        block.out[i] =
            block.dead ? block.x[i]
                       : eng_bf16_rounded(eng_bf16(block.x[i]) + gate * eng_bf16(block.value[i]));
}

static bool fits_held(const EngGateProblem *problem, const EngGateArgs *args)
{
    uintptr_t places = (uintptr_t)args->streams_in | (uintptr_t)args->streams_out |
                       (uintptr_t)args->kv | (uintptr_t)problem->q_weight |
                       (uintptr_t)problem->k_weight;
    return problem->hidden % 8 == 0 && problem->hidden <= THREADS * HELD * 8 && places % 16 == 0;
}

EngStatus eng_cuda_gate(const EngGateProblem *problem, const EngGateArgs *args,
                        EngCudaStream *stream, EngErr *err)
{
    if (problem->streams < 1 || problem->hidden < 1 || problem->tokens < 0 ||
        problem->tokens > INT32_MAX / problem->streams)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "gate: %lld tokens of %d streams of %d",
                        (long long)problem->tokens, problem->streams, problem->hidden);
    if (!problem->tokens) return ENG_OK;
    dim3 blocks((unsigned)(problem->tokens * problem->streams));
    if (fits_held(problem, args))
        ENG_LAUNCH(eng_gate_held_kernel, blocks, dim3(THREADS), 0, stream, *problem, *args);
    else
        ENG_LAUNCH(eng_gate_any_kernel, blocks, dim3(THREADS), 0, stream, *problem, *args);
    return eng_cuda_check(cudaGetLastError(), "gate", err);
}
