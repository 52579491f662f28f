/* Backward of gate and write-back for training; see device.h and engram_facts section 7.
 *
 * Three launches. A block for each token and stream sums what the gate's gradient is; then a thread
 * takes one channel of a part of the tokens, through all streams, so that the value's gradient is
 * summed in a register and the weights' too; the last adds the parts, in order. How tokens are cut
 * depends on their number alone: results are the same on every device.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/ptx.cuh"

#include <math.h>

extern "C" {
#include "base/mem.h"
}

#define THREADS      128
#define MOST_STREAMS 8
#define MOST_PARTS   64
#define FLOWS        4

/* What the gradients of a token's stream need; all 0 for a masked token. */
enum Flow {
    FLOW_GATE,
    FLOW_SUM, /* d loss / d (sum of x w k) */
    FLOW_X,   /* what a stream's own value takes off its gradient, through its norm */
    FLOW_K
};

struct EngCudaBackGate {
    EngTrainGateProblem problem;
    int parts;
    float *flows;   /* [tokens, streams, FLOWS] */
    float *weights; /* [parts, streams, hidden]: gradients of q_weight * k_weight */
};

static __device__ float slope_of(EngGateFormula formula, float score, float gate)
{
    float slope = gate * (1.0f - gate), size = fabsf(score);
    if (formula == ENG_GATE_PLAIN) return slope;
    return size < 1e-6f ? 0.0f : slope * 0.5f / sqrtf(size);
}

__global__ void __launch_bounds__(THREADS)
    eng_back_gate_flow_kernel(EngTrainGateProblem problem, EngBackGateArgs args, float *flows)
{
    ENG_SHARED(float, parts, [THREADS / 32]);
    int64_t slot = blockIdx.x, token = slot / problem.streams, hidden = problem.hidden;
    const float *d_out = args.d_out + slot * hidden;
    const float *value = args.kv + (token * (problem.streams + 1) + problem.streams) * hidden;
    float sum = 0;
    for (int i = (int)threadIdx.x; i < problem.hidden; i += THREADS) sum += d_out[i] * value[i];
#pragma unroll
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(ENG_FULL_WARP, sum, by);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < THREADS / 32; w++) sum += parts[w];
    bool dead = args.dead && args.dead[token];
    const float *kept = args.kept + slot * ENG_GATE_KEPT;
    float score = kept[0], gate = kept[1], rx = kept[2], rk = kept[3], n = (float)problem.hidden;
    float d_score = sum * slope_of(problem.formula, score, gate);
    float *flow = flows + slot * FLOWS;
    flow[FLOW_GATE] = dead ? 0 : gate;
    flow[FLOW_SUM] = dead ? 0 : d_score * (rx * rk / sqrtf(n));
    flow[FLOW_X] = dead ? 0 : d_score * score * (rx * rx / n);
    flow[FLOW_K] = dead ? 0 : d_score * score * (rk * rk / n);
}

/* Grid [hidden / THREADS, parts]; d_streams may be d_out: each element is read before it is
 * written, by the same thread. */
__global__ void __launch_bounds__(THREADS)
    eng_back_gate_kernel(EngTrainGateProblem problem, EngBackGateArgs args, const float *flows,
                         float *weights)
{
    int i = (int)blockIdx.x * THREADS + (int)threadIdx.x, streams = problem.streams;
    if (i >= problem.hidden) return;
    int64_t hidden = problem.hidden, part = blockIdx.y, parts = gridDim.y;
    int64_t from = problem.tokens * part / parts, to = problem.tokens * (part + 1) / parts;
    float w[MOST_STREAMS], d_w[MOST_STREAMS] = {};
#pragma unroll
    for (int s = 0; s < MOST_STREAMS; s++)
        w[s] = s < streams ? args.q_weight[s * hidden + i] * args.k_weight[s * hidden + i] : 0;
    for (int64_t t = from; t < to; t++) {
        bool dead = args.dead && args.dead[t];
        int64_t kv = t * (streams + 1) * hidden + i;
        float d_v = 0;
#pragma unroll
        for (int s = 0; s < MOST_STREAMS; s++) {
            if (s >= streams) continue;
            int64_t slot = t * streams + s, at = slot * hidden + i, key = kv + s * hidden;
            const float *flow = flows + slot * FLOWS;
            float go = args.d_out[at], d_x = go, d_k = 0;
            if (!dead) { /* a masked token's values do not count, be they NaN */
                float x = args.streams_in[at], k = args.kv[key], sum = flow[FLOW_SUM];
                float sw = sum * w[s];
                d_w[s] += sum * (x * k);
                d_v += flow[FLOW_GATE] * go;
                d_k = sw * x - flow[FLOW_K] * k;
                d_x = go + (sw * k - flow[FLOW_X] * x);
            }
            args.d_kv[key] = d_k;
            args.d_streams[at] = d_x;
        }
        args.d_kv[kv + streams * hidden] = d_v;
    }
#pragma unroll
    for (int s = 0; s < MOST_STREAMS; s++)
        if (s < streams) weights[(part * streams + s) * hidden + i] = d_w[s];
}

__global__ void __launch_bounds__(THREADS)
    eng_back_gate_weights_kernel(int64_t width, int parts, EngBackGateArgs args,
                                 const float *weights)
{
    int64_t c = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (c >= width) return;
    float sum = 0;
    for (int part = 0; part < parts; part++) sum += weights[part * width + c];
    args.d_q_weight[c] += sum * args.k_weight[c];
    args.d_k_weight[c] += sum * args.q_weight[c];
}

/* ---- launching ---- */

EngStatus eng_cuda_back_gate_create(const EngTrainGateProblem *problem, EngCudaBackGate **out,
                                    EngErr *err)
{
    EngCudaBackGate *back = NULL;
    *out = NULL;
    if (problem->streams < 1 || problem->streams > MOST_STREAMS || problem->hidden < 1 ||
        problem->hidden > INT32_MAX / MOST_STREAMS || problem->tokens < 0 ||
        problem->tokens > INT32_MAX / problem->streams)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "gate backward: %lld tokens of %d streams of %d",
                        (long long)problem->tokens, problem->streams, problem->hidden);
    EngStatus status = eng_alloc_or((void **)&back, 1, sizeof *back, "gate backward", err);
    if (status) return status;
    back->problem = *problem;
    back->parts = problem->tokens < MOST_PARTS ? (int)problem->tokens : MOST_PARTS;
    size_t streams = (size_t)problem->streams, width = streams * (size_t)problem->hidden;
    size_t flows = (size_t)problem->tokens * streams * FLOWS * sizeof(float);
    size_t weights = (size_t)back->parts * width * sizeof(float);
    if (problem->tokens)
        status = eng_cuda_check(cudaMalloc((void **)&back->flows, flows), "gate backward", err);
    if (problem->tokens && !status)
        status = eng_cuda_check(cudaMalloc((void **)&back->weights, weights), "gate backward", err);
    if (status) {
        eng_cuda_back_gate_destroy(back);
        back = NULL;
    }
    *out = back;
    return status;
}

void eng_cuda_back_gate_destroy(EngCudaBackGate *back)
{
    if (back) cudaFree(back->flows), cudaFree(back->weights);
    eng_free(back);
}

EngStatus eng_cuda_back_gate(const EngCudaBackGate *back, const EngBackGateArgs *args,
                             EngCudaStream *stream, EngErr *err)
{
    const EngTrainGateProblem *p = &back->problem;
    if (!p->tokens) return ENG_OK;
    int64_t width = (int64_t)p->streams * p->hidden;
    ENG_LAUNCH(eng_back_gate_flow_kernel, dim3((unsigned)(p->tokens * p->streams)), dim3(THREADS),
               0, stream, *p, *args, back->flows);
    dim3 grid((unsigned)((p->hidden + THREADS - 1) / THREADS), (unsigned)back->parts);
    ENG_LAUNCH(eng_back_gate_kernel, grid, dim3(THREADS), 0, stream, *p, *args, back->flows,
               back->weights);
    ENG_LAUNCH(eng_back_gate_weights_kernel, dim3((unsigned)((width + THREADS - 1) / THREADS)),
               dim3(THREADS), 0, stream, width, back->parts, *args, back->weights);
    return eng_cuda_check(cudaGetLastError(), "gate backward", err);
}
