/* Short causal depthwise convolution of the original variant, in portable C (facts section 6 A).
 * Normalised tokens go into a buffer behind the decode state, so that taps reach back without a
 * special case; then every token sums its taps. Tokens are cut among threads; each output is
 * computed in one fixed order, so that results do not depend on the cut.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/conv.h"

#include "base/mem.h"

#include <math.h>
#include <omp.h>

typedef struct State {
    float *normalised; /* [history + tokens, streams * hidden] */
    float *taps;       /* [kernel, streams * hidden]: the weights, tap-major */
} State;

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->normalised);
    eng_free(state->taps);
    eng_free(state);
}

static size_t width_of(const EngConvProblem *p)
{
    return (size_t)p->streams * (size_t)p->hidden;
}

static size_t history_of(const EngConvProblem *p)
{
    return (size_t)(p->kernel - 1) * (size_t)p->dilation;
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngConvProblem *p = &problem->u.conv;
    State *state = NULL;
    size_t width = width_of(p), kernel = (size_t)p->kernel;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "convolution", err);
    if (status) goto done;
    status = eng_alloc_or((void **)&state->normalised, history_of(p) + (size_t)p->tokens,
                          width * sizeof(float), "normalised tokens", err);
    if (status) goto done;
    status = eng_alloc_or((void **)&state->taps, kernel, width * sizeof(float),
                          "convolution weights", err);
    if (status) goto done;
    for (size_t tap = 0; tap < kernel; tap++)
        for (size_t c = 0; c < width; c++)
            state->taps[tap * width + c] = p->conv_weight[c * kernel + tap];
done:
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

/* Lane sums, then the short rest: one order on every machine. */
ENG_CLONES static void sum_of_squares(const float *v, size_t n, float *out)
{
    EngLanesF32 lanes = {0};
    float part[ENG_LANES], rest = 0;
    size_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES) {
        EngLanesF32 x = *(const EngLanesF32 *)(v + i);
        lanes += x * x;
    }
    for (; i < n; i++) rest += v[i] * v[i];
    memcpy(part, &lanes, sizeof part);
    for (int width = ENG_LANES / 2; width; width /= 2)
        for (int j = 0; j < width; j++) part[j] += part[j + width];
    *out = part[0] + rest;
}

ENG_CLONES static void scale_by(const float *restrict v, const float *restrict weight, size_t n,
                                float rstd, float *restrict out)
{
    for (size_t i = 0; i < n; i++) out[i] = v[i] * rstd * weight[i];
}

ENG_CLONES static void add_tap(const float *restrict v, const float *restrict weight, size_t n,
                               float *restrict sum)
{
    for (size_t i = 0; i < n; i++) sum[i] += v[i] * weight[i];
}

static void normalise_token(const EngConvProblem *p, const float *value, float *out)
{
    size_t hidden = (size_t)p->hidden;
    for (size_t s = 0; s < (size_t)p->streams; s++) {
        float squares;
        sum_of_squares(value + s * hidden, hidden, &squares);
        float rstd = 1.0f / sqrtf(squares / (float)p->hidden + p->eps);
        scale_by(value + s * hidden, p->norm_weight + s * hidden, hidden, rstd, out + s * hidden);
    }
}

static void convolve_token(const EngConvProblem *p, const State *state, const float *value,
                           int64_t t, float *out)
{
    size_t width = width_of(p);
    memset(out, 0, width * sizeof *out);
    for (size_t tap = 0; tap < (size_t)p->kernel; tap++) {
        size_t slot = (size_t)t + tap * (size_t)p->dilation;
        add_tap(state->normalised + slot * width, state->taps + tap * width, width, out);
    }
    for (size_t c = 0; c < width; c++) out[c] = value[c] + out[c] / (1.0f + expf(-out[c]));
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngConvProblem *p = &problem->u.conv;
    const EngConvArgs *a = &args->u.conv;
    State *state = opaque;
    size_t width = width_of(p), history = history_of(p);
    int threads = problem->threads;
    (void)err;
    memcpy(state->normalised, a->state, history * width * sizeof(float));
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(p->tokens, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t t = from; t < to; t++)
            normalise_token(p, a->value + (size_t)t * width,
                            state->normalised + (history + (size_t)t) * width);
#pragma omp barrier
        for (int64_t t = from; t < to; t++)
            convolve_token(p, state, a->value + (size_t)t * width, t, a->out + (size_t)t * width);
    }
    memcpy(a->state, state->normalised + (size_t)p->tokens * width,
           history * width * sizeof(float));
    return ENG_OK;
}

const EngKernel eng_cpu_conv_portable = {
    .op = ENG_OP_CONV,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "normalise, then sum taps behind the decode state, f32",
    .supports = eng_cpu_conv_supports,
    .cost = eng_cpu_conv_cost,
    .create = create,
    .run = run,
    .destroy = destroy,
};
