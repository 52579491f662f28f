/* Backward of gate and write-back (facts section 7): for each stream one pass sums what its gate's
 * gradient is, another writes the gradients of stream, key and value and adds to the gradient of
 * the weights' product, in a buffer for each part of the tokens.
 */
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/train_gate.h"

#include "base/mem.h"

#include <math.h>
#include <omp.h>

typedef struct State {
    float *w;     /* [streams * hidden]: q_weight * k_weight */
    float *parts; /* [ENG_PARTS, streams * hidden]: gradients of w */
} State;

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->w);
    eng_free(state->parts);
    eng_free(state);
}

static size_t width_of(const EngTrainGateProblem *p)
{
    return (size_t)p->streams * (size_t)p->hidden;
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    size_t bytes = width_of(p) * sizeof(float), parts = (size_t)eng_cpu_parts(p->tokens);
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "gate backward", err);
    if (!status) status = eng_alloc_or((void **)&state->w, 1, bytes, "gate weights", err);
    if (!status)
        status = eng_alloc_or((void **)&state->parts, parts, bytes, "gradients of parts", err);
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

static void cost_of(const EngProblem *problem, EngCost *cost)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    double tokens = (double)p->tokens, values = tokens * p->streams * p->hidden;
    /* The gate's sum; then five for the stream, four for the key, two each for value and weights.
     */
    cost->flops = values * (2 + 5 + 4 + 2 + 2);
    cost->read_bytes = 4 * (3 * values + tokens * p->hidden + tokens * p->streams * ENG_GATE_KEPT);
    cost->write_bytes = 4 * (2 * values + tokens * p->hidden);
}

/* One stream: inputs, and where its gradients go. d_x may be d_out. */
typedef struct Stream {
    const float *x, *k, *w, *d_out;
    float *d_x, *d_k, *d_v, *d_w;
    size_t n;
    float gate;
    float flow;    /* d loss / d (sum of x w k) */
    float x_share; /* what a stream's own value takes off its gradient, through its norm */
    float k_share;
} Stream;

/* Asks on the way for what the pass behind it reads and writes at the same places. */
ENG_CLONES static void sum_products(const float *a, const float *b, size_t n, const Stream *later,
                                    float *out)
{
    EngLanesF32 lanes = {0};
    float rest = 0;
    size_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES) {
        __builtin_prefetch(later->x + i);
        __builtin_prefetch(later->k + i);
        __builtin_prefetch(later->d_x + i, 1);
        __builtin_prefetch(later->d_k + i, 1);
        lanes += *(const EngLanesF32 *)(a + i) * *(const EngLanesF32 *)(b + i);
    }
    for (; i < n; i++) rest += a[i] * b[i];
    *out = eng_lanes_sum(&lanes) + rest;
}

/* One vector, at element i. */
static inline __attribute__((always_inline)) void write_block(const Stream *s, size_t i, bool first)
{
#define AT(array) (*(EngLanesF32 *)(array + i))
#define OF(array) (*(const EngLanesF32 *)(array + i))
    EngLanesF32 go = OF(s->d_out), x = OF(s->x), k = OF(s->k), fw = s->flow * OF(s->w);
    AT(s->d_w) += s->flow * (x * k);
    if (first)
        AT(s->d_v) = s->gate * go;
    else
        AT(s->d_v) += s->gate * go;
    AT(s->d_k) = fw * x - s->k_share * k;
    AT(s->d_x) = go + (fw * k - s->x_share * x);
#undef AT
#undef OF
}

ENG_CLONES static void write_gradients(const Stream *stream, bool first)
{
    const Stream s = *stream; /* so that stores cannot change it */
    size_t i = 0;
    if (first)
        for (; i + ENG_LANES <= s.n; i += ENG_LANES) write_block(&s, i, true);
    else
        for (; i + ENG_LANES <= s.n; i += ENG_LANES) write_block(&s, i, false);
    for (; i < s.n; i++) {
        float go = s.d_out[i], fw = s.flow * s.w[i], x = s.x[i], k = s.k[i];
        s.d_w[i] += s.flow * (x * k);
        s.d_v[i] = (first ? 0.0f : s.d_v[i]) + s.gate * go;
        s.d_k[i] = fw * x - s.k_share * k;
        s.d_x[i] = go + (fw * k - s.x_share * x);
    }
}

/* d gate / d score over the gate's clamp (facts section 7). */
static float slope_of(EngGateFormula formula, float score, float gate)
{
    float slope = gate * (1.0f - gate);
    if (formula == ENG_GATE_PLAIN) return slope;
    float size = fabsf(score);
    return size < 1e-6f ? 0.0f : slope * 0.5f / sqrtf(size);
}

static void back_token(const EngTrainGateProblem *p, const EngBackGateArgs *a, const float *w,
                       int64_t t, float *d_w)
{
    size_t streams = (size_t)p->streams, hidden = (size_t)p->hidden;
    size_t kv_at = (size_t)t * (streams + 1) * hidden, value_at = kv_at + streams * hidden;
    float n = (float)p->hidden;
    for (size_t s = 0; s < streams; s++) {
        size_t slot = (size_t)t * streams + s, at = slot * hidden;
        const float *kept = a->kept + slot * ENG_GATE_KEPT;
        float score = kept[0], gate = kept[1], rx = kept[2], rk = kept[3], d_gate;
        Stream one = {.x = a->streams_in + at,
                      .k = a->kv + kv_at + s * hidden,
                      .w = w + s * hidden,
                      .d_out = a->d_out + at,
                      .d_x = a->d_streams + at,
                      .d_k = a->d_kv + kv_at + s * hidden,
                      .d_v = a->d_kv + value_at,
                      .d_w = d_w + s * hidden,
                      .n = hidden,
                      .gate = gate};
        sum_products(one.d_out, a->kv + value_at, hidden, &one, &d_gate);
        float d_score = d_gate * slope_of(p->formula, score, gate);
        one.flow = d_score * (rx * rk / sqrtf(n));
        one.x_share = d_score * score * (rx * rx / n);
        one.k_share = d_score * score * (rk * rk / n);
        write_gradients(&one, s == 0);
    }
}

static void back_dead_token(const EngTrainGateProblem *p, const EngBackGateArgs *a, int64_t t)
{
    size_t width = width_of(p), kv_width = width + (size_t)p->hidden;
    memset(a->d_kv + (size_t)t * kv_width, 0, kv_width * sizeof(float));
    memmove(a->d_streams + (size_t)t * width, a->d_out + (size_t)t * width, width * sizeof(float));
}

/* Buffers of all parts, in order, into the gradients of both weights. */
ENG_CLONES static void add_parts(float *restrict parts, size_t n_parts, size_t width, size_t from,
                                 size_t to, const EngBackGateArgs *a)
{
    float *restrict d_q = a->d_q_weight, *restrict d_k = a->d_k_weight;
    for (size_t part = 1; part < n_parts; part++) {
        const float *restrict more = parts + part * width;
        for (size_t c = from; c < to; c++) parts[c] += more[c];
    }
    for (size_t c = from; c < to; c++) {
        d_q[c] += parts[c] * a->k_weight[c];
        d_k[c] += parts[c] * a->q_weight[c];
    }
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    const EngBackGateArgs *a = &args->u.back_gate;
    State *state = opaque;
    size_t width = width_of(p);
    int threads = problem->threads, parts = eng_cpu_parts(p->tokens);
    (void)err;
    for (size_t c = 0; c < width; c++) state->w[c] = a->q_weight[c] * a->k_weight[c];
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int part = 0; part < parts; part++) {
            int64_t from, to;
            float *d_w = state->parts + (size_t)part * width;
            memset(d_w, 0, width * sizeof *d_w);
            eng_cpu_share(p->tokens, parts, part, &from, &to);
            for (int64_t t = from; t < to; t++) {
                if (a->dead && a->dead[t])
                    back_dead_token(p, a, t);
                else
                    back_token(p, a, state->w, t, d_w);
            }
        }
        int64_t from, to;
        eng_cpu_share((int64_t)width, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        add_parts(state->parts, (size_t)parts, width, (size_t)from, (size_t)to, a);
    }
    return ENG_OK;
}

const EngKernel eng_cpu_back_gate_portable = {
    .op = ENG_OP_BACK_GATE,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "two passes over each stream, f32; weights' gradients by parts of the tokens",
    .supports = eng_cpu_train_gate_supports,
    .cost = cost_of,
    .create = create,
    .run = run,
    .destroy = destroy,
};
