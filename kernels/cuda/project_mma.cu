/* Projection of up to 16 tokens, fp8 weights read as they lie; see device.h and engram_facts
 * section 6, step 2.
 *
 * Weights are the first operand of mma.sync m16n8k16 in bf16, so that 8 tokens fill an instruction.
 * The sum over k may run in any order, the same for both operands: each lane takes 16 weights that
 * lie together (one load of 16 bytes) as the four it owns in each of four instructions. Codes
 * become bf16 exactly; the scale of a weight tile, a power of two, goes into the tokens' operand,
 * which 32 weight rows share. (sm_90 has no fp8 mma.sync: the compiler makes 12 conversions and
 * two f16 instructions of one, and scales would have to be applied to each sum of 32 products.
 * cuBLASLt has no 32x32 scales there either.)
 *
 * A block takes 32 weight rows, its warps share k step by step and add their sums at the end; with
 * few rows, k is cut among blocks too, and a second kernel adds their sums in order.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"

extern "C" {
#include "base/mem.h"
}

#define WARPS      4
#define THREADS    (32 * WARPS)
#define ROWS       32 /* of weights in a block: those of one scale tile */
#define STEP       64 /* of k: 4 lanes of 16 weights */
#define MOST       16 /* tokens */
#define MOST_SPLIT 32

typedef struct ProjectJob {
    const uint8_t *w, *w_scales;
    const uint8_t *x, *x_scales; /* x_scales NULL: x is bf16 */
    int tokens, n, k, splits;
    bool out_f32;
    void *out;    /* [tokens, n] */
    float *parts; /* [splits, tokens, n] when splits > 1 */
} ProjectJob;

struct EngCudaProject {
    EngProjectProblem problem;
    int splits;
    float *parts;
};

/* What one lane loads for a step of k: rows g, g + 8, g + 16, g + 24 and tokens g, g + 8. */
template <int GROUPS, bool FP8> struct Step {
    uint4 w[4];
    uint4 x[GROUPS][FP8 ? 1 : 2];
    uint8_t w_scale, x_scale[GROUPS];
};

template <int GROUPS, bool FP8>
static __device__ __forceinline__ void load(const ProjectJob &job, int first_row, int at,
                                            Step<GROUPS, FP8> *step)
{
    int lane = (int)threadIdx.x % 32, g = lane / 4;
    bool inside = at < job.k; /* the last step may be half a one */
    int64_t groups = job.k / ENG_SCALE_GROUP, group = at / ENG_SCALE_GROUP;
    const uint4 none = {0, 0, 0, 0};
#pragma unroll
    for (int r = 0; r < 4; r++) {
        step->w[r] = none;
        if (inside)
            step->w[r] =
                eng_load_once<uint4>(job.w + (int64_t)(first_row + g + 8 * r) * job.k + at);
    }
    step->w_scale = 0;
    if (inside)
        step->w_scale = eng_load_wide<uint8_t>(job.w_scales + first_row / ROWS * groups + group);
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        int64_t token = g + 8 * i;
        bool there = inside && token < job.tokens;
        step->x_scale[i] = 0;
        if (FP8 && there)
            step->x_scale[i] = eng_load_wide<uint8_t>(job.x_scales + token * groups + group);
#pragma unroll
        for (int part = 0; part < (FP8 ? 1 : 2); part++) {
            step->x[i][part] = none;
            if (there)
                step->x[i][part] =
                    eng_load_wide<uint4>(job.x + (token * job.k + at) * (FP8 ? 1 : 2) + 16 * part);
        }
    }
}

static __device__ __forceinline__ uint32_t word(const uint4 &four, int i)
{
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

/* Elements 2i and 2i + 1 of a lane's 16 weights. */
static __device__ __forceinline__ uint32_t weight_pair(const uint4 &codes, int i)
{
    float2 pair = eng_e4m3_pair(word(codes, i / 2) >> 16 * (i % 2) & 0xffff);
    return eng_bf16_pair(pair.x, pair.y);
}

/* Elements 2i and 2i + 1 of a lane's 16 of a token, with their own scale and the weights'. */
template <int GROUPS, bool FP8>
static __device__ __forceinline__ uint32_t token_pair(const Step<GROUPS, FP8> &step, int group,
                                                      int i)
{
    float2 pair;
    float w_scale = eng_e8m0(step.w_scale);
    if (FP8) {
        float x_scale = eng_e8m0(step.x_scale[group]);
        pair = eng_e4m3_pair(word(step.x[group][0], i / 2) >> 16 * (i % 2) & 0xffff);
        pair.x *= x_scale, pair.y *= x_scale;
    } else {
        uint32_t two = word(step.x[group][FP8 ? 0 : i / 4], i % 4);
        pair = make_float2(eng_bf16(two & 0xffff), eng_bf16(two >> 16));
    }
    return eng_bf16_pair(pair.x * w_scale, pair.y * w_scale);
}

template <int GROUPS, bool FP8>
static __device__ __forceinline__ void multiply(const Step<GROUPS, FP8> &step,
                                                float sums[2][GROUPS][4])
{
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        uint32_t tokens[GROUPS][2];
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            tokens[group][0] = token_pair(step, group, i);
            tokens[group][1] = token_pair(step, group, i + 1);
        }
#pragma unroll
        for (int side = 0; side < 2; side++) {
            const uint4 &upper = step.w[2 * side], &lower = step.w[2 * side + 1];
            const uint32_t weights[4] = {weight_pair(upper, i), weight_pair(lower, i),
                                         weight_pair(upper, i + 1), weight_pair(lower, i + 1)};
#pragma unroll
            for (int group = 0; group < GROUPS; group++)
                eng_mma_bf16(sums[side][group], weights, tokens[group]);
        }
    }
}

static __device__ __forceinline__ void put(const ProjectJob &job, int64_t at, float value)
{
    if (job.out_f32)
        static_cast<float *>(job.out)[at] = value;
    else
        static_cast<uint16_t *>(job.out)[at] = eng_bf16_rounded(value);
}

/* Adds the warps' sums and stores them. In a lane's four, rows are g, g, g + 8, g + 8 and tokens
 * 2t, 2t + 1, 2t, 2t + 1 (PTX ISA, mma.m16n8k16). */
template <int GROUPS>
static __device__ __forceinline__ void finish(const ProjectJob &job, int first_row,
                                              const float sums[2][GROUPS][4])
{
    ENG_SHARED(float, parts, [WARPS][8 * GROUPS][ROWS + 1]);
    int thread = (int)threadIdx.x, warp = thread / 32, g = thread % 32 / 4, t = thread % 4;
#pragma unroll
    for (int side = 0; side < 2; side++)
#pragma unroll
        for (int group = 0; group < GROUPS; group++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                parts[warp][8 * group + 2 * t + i % 2][16 * side + g + 8 * (i / 2)] =
                    sums[side][group][i];
    __syncthreads();
    for (int i = thread; i < job.tokens * ROWS; i += THREADS) {
        int token = i / ROWS, row = i % ROWS;
        float sum = parts[0][token][row];
#pragma unroll
        for (int w = 1; w < WARPS; w++) sum += parts[w][token][row];
        int64_t at = (int64_t)token * job.n + first_row + row;
        if (job.splits > 1)
            job.parts[(int64_t)blockIdx.y * job.tokens * job.n + at] = sum;
        else
            put(job, at, sum);
    }
}

/* GROUPS of 8 tokens. Grid [n / ROWS, splits]. */
template <int GROUPS, bool FP8>
__global__ void __launch_bounds__(THREADS) eng_project_kernel(ProjectJob job)
{
    int steps = (job.k + STEP - 1) / STEP, split = (int)blockIdx.y;
    int from = (int)((int64_t)steps * split / job.splits);
    int to = (int)((int64_t)steps * (split + 1) / job.splits);
    int first_row = (int)blockIdx.x * ROWS, mine = 16 * ((int)threadIdx.x % 4);
    float sums[2][GROUPS][4] = {};
    Step<GROUPS, FP8> now, next;
    int s = from + (int)threadIdx.x / 32;
    if (s < to) load(job, first_row, s * STEP + mine, &now);
    for (; s < to; s += WARPS) {
        if (s + WARPS < to) load(job, first_row, (s + WARPS) * STEP + mine, &next);
        multiply(now, sums);
        now = next;
    }
    finish<GROUPS>(job, first_row, sums);
}

__global__ void __launch_bounds__(THREADS) eng_project_add_kernel(ProjectJob job)
{
    int64_t n = (int64_t)job.tokens * job.n, at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= n) return;
    float sum = job.parts[at];
    for (int split = 1; split < job.splits; split++) sum += job.parts[split * n + at];
    put(job, at, sum);
}

/* ---- launching ---- */

EngStatus eng_cuda_project_fits(const EngProjectProblem *problem, EngErr *why)
{
    if (problem->weights != ENG_FP8)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "project: weights are not fp8");
    if (problem->tokens < 0 || problem->tokens > MOST)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "project: %lld tokens, up to %d here",
                        (long long)problem->tokens, MOST);
    if (problem->n < 1 || problem->k < 1 || problem->n % ROWS || problem->k % ENG_SCALE_GROUP)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "project: %d x %d is not whole scale tiles",
                        problem->n, problem->k);
    return ENG_OK;
}

/* Enough blocks for every multiprocessor to hold four, as long as each warp has a step. */
static int chosen_splits(const EngProjectProblem *problem, int processors)
{
    int tiles = problem->n / ROWS, most = (problem->k + STEP * WARPS - 1) / (STEP * WARPS);
    int splits = (4 * processors + tiles - 1) / tiles;
    if (splits > MOST_SPLIT) splits = MOST_SPLIT;
    return splits > most ? most : splits;
}

EngStatus eng_cuda_project_create(const EngProjectProblem *problem, int splits,
                                  EngCudaProject **out, EngErr *err)
{
    EngCudaProject *project = NULL;
    int processors = 0;
    *out = NULL;
    EngStatus status = eng_cuda_project_fits(problem, err);
    if (!status)
        status = eng_cuda_check(
            cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "project", err);
    if (!status) status = eng_alloc_or((void **)&project, 1, sizeof *project, "project", err);
    if (status) return status;
    project->problem = *problem;
    project->splits = splits > 0 ? splits : chosen_splits(problem, processors);
    if (project->splits > MOST_SPLIT) project->splits = MOST_SPLIT;
    size_t bytes = (size_t)project->splits * (size_t)problem->tokens * (size_t)problem->n * 4;
    if (project->splits > 1 && bytes)
        status = eng_cuda_check(cudaMalloc((void **)&project->parts, bytes), "project: sums", err);
    if (status) {
        eng_cuda_project_destroy(project);
        project = NULL;
    }
    *out = project;
    return status;
}

void eng_cuda_project_destroy(EngCudaProject *project)
{
    if (project) cudaFree(project->parts);
    eng_free(project);
}

typedef void (*ProjectKernel)(ProjectJob job);

static ProjectKernel kernel_for(int64_t tokens, bool fp8)
{
    if (tokens <= 8)
        return fp8 ? (ProjectKernel)eng_project_kernel<1, true>
                   : (ProjectKernel)eng_project_kernel<1, false>;
    return fp8 ? (ProjectKernel)eng_project_kernel<2, true>
               : (ProjectKernel)eng_project_kernel<2, false>;
}

EngStatus eng_cuda_project(const EngCudaProject *project, const EngProjectArgs *args,
                           EngCudaStream *stream, EngErr *err)
{
    const EngProjectProblem *p = &project->problem;
    if (!p->tokens) return ENG_OK;
    if (((uintptr_t)p->w | (uintptr_t)args->x) % 16)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "project: buffers of odd alignment");
    ProjectJob job = {p->w,           p->w_scales,     static_cast<const uint8_t *>(args->x),
                      args->x_scales, (int)p->tokens,  p->n,
                      p->k,           project->splits, p->out == ENG_F32,
                      args->out,      project->parts};
    ProjectKernel project_kernel = kernel_for(p->tokens, p->x == ENG_FP8);
    dim3 grid((unsigned)(p->n / ROWS), (unsigned)project->splits);
    ENG_LAUNCH(project_kernel, grid, dim3(THREADS), 0, stream, job);
    if (project->splits > 1) {
        int64_t n = p->tokens * p->n;
        ENG_LAUNCH(eng_project_add_kernel, dim3((unsigned)((n + THREADS - 1) / THREADS)),
                   dim3(THREADS), 0, stream, job);
    }
    return eng_cuda_check(cudaGetLastError(), "project", err);
}
