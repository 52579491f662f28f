/* Rows that taps read, and the norm before them; see taps.h. */
#include "kernels/cpu/taps.h"

#include <math.h>

#include "kernels/cpu/conv.h"
#include "kernels/cpu/lanes.h"

EngStatus eng_taps_supports(const EngProblem *problem, EngErr *why)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    EngProblem plain = {.op = ENG_OP_CONV, .threads = problem->threads};
    plain.u.conv = (EngConvProblem){.tokens = p->tokens,
                                    .streams = p->streams,
                                    .hidden = p->hidden,
                                    .kernel = p->kernel,
                                    .dilation = p->dilation,
                                    .eps = p->eps};
    return eng_cpu_conv_supports(&plain, why);
}

void eng_taps_order(const EngTrainConvProblem *p, const float *weight, float *taps)
{
    size_t width = eng_taps_width(p), kernel = (size_t)p->kernel;
    for (size_t tap = 0; tap < kernel; tap++)
        for (size_t c = 0; c < width; c++) taps[tap * width + c] = weight[c * kernel + tap];
}

ENG_CLONES static void sum_of_squares(const float *v, size_t n, float *out)
{
    EngLanesF32 lanes = {0};
    float rest = 0;
    size_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES) {
        EngLanesF32 x = *(const EngLanesF32 *)(v + i);
        lanes += x * x;
    }
    for (; i < n; i++) rest += v[i] * v[i];
    *out = eng_lanes_sum(&lanes) + rest;
}

void eng_taps_norms(const EngTrainConvProblem *p, const float *value, int64_t t, float *rstd)
{
    size_t hidden = (size_t)p->hidden, streams = (size_t)p->streams;
    for (size_t s = 0; s < streams; s++) {
        float squares;
        sum_of_squares(value + ((size_t)t * streams + s) * hidden, hidden, &squares);
        rstd[s] = 1.0f / sqrtf(squares / (float)p->hidden + p->eps);
    }
}

ENG_CLONES void eng_taps_normalise(const float *restrict v, const float *restrict weight, size_t n,
                                   float rstd, float *restrict out)
{
    for (size_t i = 0; i < n; i++) out[i] = v[i] * rstd * weight[i];
}

ENG_CLONES void eng_taps_sum(const EngTaps *taps, size_t n, float *restrict out)
{
    size_t c = 0;
    for (; c + ENG_LANES <= n; c += ENG_LANES) {
        EngLanesF32 sum = {0};
        for (int tap = 0; tap < taps->n; tap++)
            sum += *(const EngLanesF32 *)(taps->rows[tap] + c) *
                   *(const EngLanesF32 *)(taps->weights[tap] + c);
        *(EngLanesF32 *)(out + c) = sum;
    }
    for (; c < n; c++) {
        out[c] = 0;
        for (int tap = 0; tap < taps->n; tap++)
            out[c] += taps->rows[tap][c] * taps->weights[tap][c];
    }
}
