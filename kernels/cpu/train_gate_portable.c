/* Gate and write-back in f32 (facts section 6, steps 3-6), keeping score, gate and both root mean
 * squares of every stream for the backward. Tokens are cut among threads; each stream is computed
 * in one order.
 */
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/train_gate.h"

#include "base/mem.h"

#include <math.h>
#include <omp.h>

EngStatus eng_cpu_train_gate_supports(const EngProblem *problem, EngErr *why)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    EngProblem plain = {.op = ENG_OP_GATE, .threads = problem->threads};
    plain.u.gate = (EngGateProblem){.tokens = p->tokens,
                                    .streams = p->streams,
                                    .hidden = p->hidden,
                                    .formula = p->formula,
                                    .eps = p->eps};
    return eng_cpu_gate_supports(&plain, why);
}

static void cost_of(const EngProblem *problem, EngCost *cost)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    double tokens = (double)p->tokens, values = tokens * p->streams * p->hidden;
    /* Two squares and sums, a product of three and a sum, then a product and a sum. */
    cost->flops = values * (2 + 2 + 3 + 2);
    cost->read_bytes = 4 * (2 * values + tokens * p->hidden);
    cost->write_bytes = 4 * (values + tokens * p->streams * ENG_GATE_KEPT);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    return eng_alloc_or(out, (size_t)p->streams, (size_t)p->hidden * sizeof(float), "gate weights",
                        err); /* q_weight * k_weight, made by each run */
}

typedef struct Sums {
    float xx, kk, dot;
} Sums;

ENG_CLONES static void sum_stream(const float *x, const float *k, const float *w, size_t n,
                                  Sums *out)
{
    EngLanesF32 xx = {0}, kk = {0}, dot = {0};
    Sums rest = {0, 0, 0};
    size_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES) {
        EngLanesF32 a = *(const EngLanesF32 *)(x + i), b = *(const EngLanesF32 *)(k + i);
        xx += a * a;
        kk += b * b;
        dot += a * *(const EngLanesF32 *)(w + i) * b;
    }
    for (; i < n; i++) {
        rest.xx += x[i] * x[i];
        rest.kk += k[i] * k[i];
        rest.dot += x[i] * w[i] * k[i];
    }
    out->xx = eng_lanes_sum(&xx) + rest.xx;
    out->kk = eng_lanes_sum(&kk) + rest.kk;
    out->dot = eng_lanes_sum(&dot) + rest.dot;
}

ENG_CLONES static void write_stream(const float *x, const float *value, float gate, size_t n,
                                    float *out)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) out[i] = x[i] + gate * value[i];
}

static float gate_of(EngGateFormula formula, float score)
{
    float z = score;
    if (formula != ENG_GATE_PLAIN && score == score) {
        z = copysignf(sqrtf(fmaxf(fabsf(score), 1e-6f)), score);
        if (formula == ENG_GATE_SIGN && score == 0) z = 0;
    }
    return 1.0f / (1.0f + expf(-z));
}

static void gate_stream(const EngTrainGateProblem *p, const float *x, const float *k,
                        const float *w, float kept[ENG_GATE_KEPT])
{
    Sums sums;
    float n = (float)p->hidden;
    sum_stream(x, k, w, (size_t)p->hidden, &sums);
    float rx = 1.0f / sqrtf(sums.xx / n + p->eps), rk = 1.0f / sqrtf(sums.kk / n + p->eps);
    kept[0] = sums.dot * rx * rk / sqrtf(n);
    kept[1] = gate_of(p->formula, kept[0]);
    kept[2] = rx;
    kept[3] = rk;
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    const EngTrainGateArgs *a = &args->u.train_gate;
    size_t streams = (size_t)p->streams, hidden = (size_t)p->hidden;
    int threads = problem->threads;
    float *w = opaque;
    (void)err;
    for (size_t c = 0; c < streams * hidden; c++) w[c] = a->q_weight[c] * a->k_weight[c];
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t t = 0; t < p->tokens; t++) {
        const float *kv = a->kv + (size_t)t * (streams + 1) * hidden;
        bool dead = a->dead && a->dead[t];
        for (size_t s = 0; s < streams; s++) {
            size_t slot = (size_t)t * streams + s, at = slot * hidden;
            float *kept = a->kept + slot * ENG_GATE_KEPT;
            if (dead) {
                memset(kept, 0, ENG_GATE_KEPT * sizeof *kept);
                memcpy(a->streams_out + at, a->streams_in + at, hidden * sizeof(float));
                continue;
            }
            gate_stream(p, a->streams_in + at, kv + s * hidden, w + s * hidden, kept);
            write_stream(a->streams_in + at, kv + streams * hidden, kept[1], hidden,
                         a->streams_out + at);
        }
    }
    return ENG_OK;
}

const EngKernel eng_cpu_train_gate_portable = {
    .op = ENG_OP_TRAIN_GATE,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "gate and write-back in f32, keeping what the backward needs",
    .supports = eng_cpu_train_gate_supports,
    .cost = cost_of,
    .create = create,
    .run = run,
    .destroy = eng_free,
};
