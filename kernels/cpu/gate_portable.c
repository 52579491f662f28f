/* Gate + write-back in one pass over the streams, in portable C: for each token and stream, three
 * sums over key and stream, one sigmoid, then the write-back while both still lie in the nearest
 * cache (facts section 6, steps 3-6).
 *
 * bf16 pairs are read as 32-bit words: the upper half of a word is already an f32, the lower needs
 * one shift. So a block of 32 values is worked on as 16 odd and 16 even ones, without any
 * conversion or shuffle; the folded weights are stored in that order.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gate.h"

#include "base/mem.h"

#include <math.h>
#include <omp.h>

#define BLOCK (2 * ENG_LANES) /* values worked on at once */

typedef struct State {
    size_t hidden_padded;
    float *w; /* [streams, hidden_padded]: q_weight * k_weight, per block 16 even, then 16 odd */
} State;

typedef struct Sums {
    float xx, kk, dot;
} Sums;

static void destroy(void *opaque)
{
    State *state = opaque;
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

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngGateProblem *p = &problem->u.gate;
    State *state = NULL;
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
            size_t to = i - in_block + in_block / 2 + (in_block % 2) * ENG_LANES;
            state->w[s * state->hidden_padded + to] =
                weight_at(p->q_weight, s * hidden + i) * weight_at(p->k_weight, s * hidden + i);
        }
    }
done:
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

/* The last, short block of a row, filled up with zeros, which add nothing to any sum. */
static void pad_block(const uint8_t *from, size_t bytes, uint8_t block[2 * BLOCK])
{
    memset(block, 0, 2 * BLOCK);
    memcpy(block, from, bytes);
}

static float sum_of_lanes(const EngLanesF32 *lanes)
{
    float part[ENG_LANES];
    memcpy(part, lanes, sizeof part);
    for (int width = ENG_LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) part[i] += part[i + width];
    return part[0];
}

#define EVEN(words) ((EngLanesF32)((words) << 16))
#define ODD(words)  ((EngLanesF32)((words)&0xffff0000u))
/* f32 lanes to bf16 in the upper half of each word: ties to even, a NaN stays one. */
#define ROUND_UP_HALF(lanes, result)                                                               \
    do {                                                                                           \
        EngLanesU32 bits_ = (EngLanesU32)(lanes);                                                  \
        EngLanesU32 nan_ = (EngLanesU32)((lanes) != (lanes));                                      \
        EngLanesU32 near_ = bits_ + 0x7fffu + ((bits_ >> 16) & 1u);                                \
        (result) = ((near_ & ~nan_) | ((bits_ | 0x400000u) & nan_)) & 0xffff0000u;                 \
    } while (0)

/* Sums over one block, into sums[0..5]: xx, kk and dot of even and of odd values. */
static inline __attribute__((always_inline)) void add_block(const uint8_t *x, const uint8_t *key,
                                                            const float *w, EngLanesF32 sums[6])
{
    EngLanesU32 xw = *(const EngLanesU32 *)x, kw = *(const EngLanesU32 *)key;
    EngLanesF32 x0 = EVEN(xw), x1 = ODD(xw), k0 = EVEN(kw), k1 = ODD(kw);
    sums[0] += x0 * x0;
    sums[1] += x1 * x1;
    sums[2] += k0 * k0;
    sums[3] += k1 * k1;
    sums[4] += x0 * *(const EngLanesF32 *)w * k0;
    sums[5] += x1 * *(const EngLanesF32 *)(w + ENG_LANES) * k1;
}

ENG_CLONES static void sum_stream(const uint8_t *x, const uint8_t *key, const float *w,
                                  size_t hidden, Sums *out)
{
    EngLanesF32 sums[6] = {{0}};
    size_t i = 0;
    for (; i + BLOCK <= hidden; i += BLOCK) add_block(x + 2 * i, key + 2 * i, w + i, sums);
    if (i < hidden) {
        uint8_t last_x[2 * BLOCK], last_key[2 * BLOCK];
        pad_block(x + 2 * i, 2 * (hidden - i), last_x);
        pad_block(key + 2 * i, 2 * (hidden - i), last_key);
        add_block(last_x, last_key, w + i, sums);
    }
    for (int j = 0; j < 6; j += 2) sums[j] += sums[j + 1];
    out->xx = sum_of_lanes(&sums[0]);
    out->kk = sum_of_lanes(&sums[2]);
    out->dot = sum_of_lanes(&sums[4]);
}

static inline __attribute__((always_inline)) void
write_block(const uint8_t *x, const uint8_t *value, float gate, uint8_t *out)
{
    EngLanesU32 xw = *(const EngLanesU32 *)x, vw = *(const EngLanesU32 *)value, even, odd;
    EngLanesF32 y0 = EVEN(xw) + gate * EVEN(vw), y1 = ODD(xw) + gate * ODD(vw);
    ROUND_UP_HALF(y0, even);
    ROUND_UP_HALF(y1, odd);
    *(EngLanesU32 *)out = odd | even >> 16;
}

ENG_CLONES static void write_stream(const uint8_t *x, const uint8_t *value, float gate,
                                    size_t hidden, uint8_t *out)
{
    size_t i = 0;
    for (; i + BLOCK <= hidden; i += BLOCK)
        write_block(x + 2 * i, value + 2 * i, gate, out + 2 * i);
    if (i < hidden) {
        uint8_t last_x[2 * BLOCK], last_value[2 * BLOCK];
        pad_block(x + 2 * i, 2 * (hidden - i), last_x);
        pad_block(value + 2 * i, 2 * (hidden - i), last_value);
        write_block(last_x, last_value, gate, last_x);
        memcpy(out + 2 * i, last_x, 2 * (hidden - i));
    }
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

static float score_of(const EngGateProblem *p, const Sums *sums)
{
    float n = (float)p->hidden;
    float rstd = 1.0f / sqrtf(sums->xx / n + p->eps) * (1.0f / sqrtf(sums->kk / n + p->eps));
    return sums->dot * rstd * (1.0f / sqrtf(n));
}

static void run_token(const EngGateProblem *p, const State *state, const EngGateArgs *args,
                      int64_t t)
{
    size_t hidden = (size_t)p->hidden, streams = (size_t)p->streams, row = 2 * hidden;
    const uint8_t *in = (const uint8_t *)args->streams_in + (size_t)t * streams * row;
    const uint8_t *keys = (const uint8_t *)args->kv + (size_t)t * (streams + 1) * row;
    const uint8_t *value = keys + streams * row;
    uint8_t *out = (uint8_t *)args->streams_out + (size_t)t * streams * row;
    bool dead = args->dead && args->dead[t];
    if (dead && out != in) memcpy(out, in, streams * row);
    for (size_t s = 0; s < streams; s++) {
        float score = 0, gate = 0;
        if (!dead) {
            Sums sums;
            sum_stream(in + s * row, keys + s * row, state->w + s * state->hidden_padded, hidden,
                       &sums);
            score = score_of(p, &sums);
            gate = gate_of(p->formula, score);
            write_stream(in + s * row, value, gate, hidden, out + s * row);
        }
        if (args->gates) args->gates[(size_t)t * streams + s] = gate;
        if (args->scores) args->scores[(size_t)t * streams + s] = score;
    }
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngGateProblem *p = &problem->u.gate;
    int threads = problem->threads;
    (void)err;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(p->tokens, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t t = from; t < to; t++) run_token(p, opaque, &args->u.gate, t);
    }
    return ENG_OK;
}

const EngKernel eng_cpu_gate_portable = {
    .op = ENG_OP_GATE,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "gate and write-back in one pass, f32 lanes, in place or not",
    .supports = eng_cpu_gate_supports,
    .cost = eng_cpu_gate_cost,
    .create = create,
    .run = run,
    .destroy = destroy,
};
