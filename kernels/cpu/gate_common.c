/* What gate variants share: folded weights, the loop over tokens and streams, the formula between a
 * stream's sums and its gate (facts section 6, steps 3-6); see gate.h.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gate.h"

#include "base/mem.h"

#include <math.h>
#include <omp.h>

#define BLOCK ENG_GATE_BLOCK

const EngTunable eng_cpu_gate_tunables[] = {
    {.name = "fetch",
     .min = 1,
     .max = 100,
     .def = 100,
     .values = "1,25,50,75,100",
     .help = "percent of the next stream's input and key asked for during the write-back"},
    {.name = NULL},
};

void eng_cpu_gate_destroy(void *opaque)
{
    EngGateState *state = opaque;
    if (!state) return;
    eng_free(state->w);
    eng_free(state);
}

static float weight_at(const uint16_t *base, size_t i)
{
    uint16_t bits;
    memcpy(&bits, (const uint8_t *)base + 2 * i, sizeof bits);
    return eng_cpu_f32_of_bf16(bits);
}

EngStatus eng_cpu_gate_create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngGateProblem *p = &problem->u.gate;
    EngGateState *state = NULL;
    size_t hidden = (size_t)p->hidden;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "gate", err);
    if (status) goto done;
    state->hidden_padded = (hidden + BLOCK - 1) / BLOCK * BLOCK;
    status = eng_alloc_or((void **)&state->w, (size_t)p->streams,
                          state->hidden_padded * sizeof *state->w, "gate weights", err);
    if (status) goto done;
    for (size_t s = 0; s < (size_t)p->streams; s++) {
        for (size_t i = 0; i < hidden; i++) {
            size_t in_block = i % BLOCK;
            size_t to = i - in_block + in_block / 2 + (in_block % 2) * (BLOCK / 2);
            state->w[s * state->hidden_padded + to] =
                weight_at(p->q_weight, s * hidden + i) * weight_at(p->k_weight, s * hidden + i);
        }
    }
done:
    if (status) {
        eng_cpu_gate_destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

static float gate_of(EngGateFormula formula, float score)
{
    float z = score;
    if (formula != ENG_GATE_PLAIN) {
        float magnitude = fabsf(score);
        if (magnitude < 1e-6f) magnitude = 1e-6f; /* fmaxf would swallow a NaN */
        z = copysignf(sqrtf(magnitude), score);
        if (formula == ENG_GATE_SIGN && score == 0) z = 0;
    }
    return 1.0f / (1.0f + expf(-z));
}

static float score_of(const EngGateProblem *p, const EngGateSums *sums)
{
    float n = (float)p->hidden;
    float rstd = 1.0f / sqrtf(sums->xx / n + p->eps) * (1.0f / sqrtf(sums->kk / n + p->eps));
    return sums->dot * rstd * (1.0f / sqrtf(n));
}

/* Where (t, s) lies, and what follows it: the next stream, else the next token's first. */
static EngGateStream stream_at(const EngProblem *problem, const EngGateState *state,
                               const EngGateArgs *args, int64_t t, size_t s, int64_t end)
{
    const EngGateProblem *p = &problem->u.gate;
    size_t percent = problem->tuned[0] ? (size_t)problem->tuned[0] : 100;
    size_t hidden = (size_t)p->hidden, streams = (size_t)p->streams, row = 2 * hidden;
    size_t at = ((size_t)t * streams + s) * row, from = row * s / streams;
    const uint8_t *x = (const uint8_t *)args->streams_in + at;
    const uint8_t *keys = (const uint8_t *)args->kv + (size_t)t * (streams + 1) * row;
    EngGateStream stream = {.x = x,
                            .key = keys + s * row,
                            .value = keys + streams * row,
                            .w = state->w + s * state->hidden_padded,
                            .out = (uint8_t *)args->streams_out + at,
                            .hidden = hidden};
    bool last = s + 1 == streams, more = t + 1 < end;
    if (!last || more) {
        stream.next_x = x + row;
        stream.next_bytes = row * percent / 100;
        stream.next_key = keys + (s + 1 + last) * row; /* the value lies between two tokens' keys */
    }
    if (more) {
        stream.next_value = stream.value + (streams + 1) * row + from;
        stream.next_value_bytes = row * (s + 1) / streams - from;
    }
    return stream;
}

static void run_token(const EngProblem *problem, const EngGateState *state, const EngGateArgs *args,
                      const EngGateSteps *steps, int64_t t, int64_t end)
{
    const EngGateProblem *p = &problem->u.gate;
    size_t streams = (size_t)p->streams;
    bool dead = args->dead && args->dead[t];
    for (size_t s = 0; s < streams; s++) {
        EngGateStream stream = stream_at(problem, state, args, t, s, end);
        float score = 0;
        if (!dead) {
            EngGateSums sums;
            steps->sum(&stream, &sums);
            score = score_of(p, &sums);
            stream.gate = gate_of(p->formula, score);
            steps->write(&stream);
        } else if (stream.out != stream.x) {
            memcpy(stream.out, stream.x, 2 * stream.hidden);
        }
        if (args->gates) args->gates[(size_t)t * streams + s] = stream.gate;
        if (args->scores) args->scores[(size_t)t * streams + s] = score;
    }
}

void eng_cpu_gate_run(const EngGateState *state, const EngProblem *problem, const EngGateArgs *args,
                      const EngGateSteps *steps)
{
    const EngGateProblem *p = &problem->u.gate;
    int threads = problem->threads;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(p->tokens, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t t = from; t < to; t++) run_token(problem, state, args, steps, t, to);
    }
}
