/* The short convolution over whole sequences (facts section 6 A), in f32. Taps that would reach
 * before a sequence's start are left out. All tokens are normalised first.
 */
#include <omp.h>

#include "base/mem.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/taps.h"
#include "kernels/cpu/train_conv.h"

typedef struct State {
    float *normalised; /* [tokens, width] */
    float *rstd;       /* [tokens, streams] */
    float *taps;       /* [kernel, width]: the weights, tap-major */
    int64_t *first;    /* [tokens]: start of the token's sequence */
} State;

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->normalised);
    eng_free(state->rstd);
    eng_free(state->taps);
    eng_free(state->first);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    size_t tokens = (size_t)p->tokens, row = eng_taps_width(p) * sizeof(float);
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "convolution", err);
    *out = state;
    if (status) return status;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {{(void **)&state->normalised, tokens, row},
                  {(void **)&state->rstd, tokens, (size_t)p->streams * sizeof(float)},
                  {(void **)&state->taps, (size_t)p->kernel, row},
                  {(void **)&state->first, tokens, sizeof(int64_t)}};
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "convolution", err);
    if (!status) return ENG_OK;
    destroy(state);
    *out = NULL;
    return status;
}

/* out holds the sums and receives value + silu(sum). */
ENG_CLONES static void add_silu(const float *restrict value, size_t n, float *restrict out)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) out[i] = value[i] + out[i] * eng_cpu_sigmoid(out[i]);
}

static void find_sequences(const EngTrainConvProblem *p, const int64_t *starts, int64_t n_seqs,
                           State *state)
{
    if (!starts) memset(state->first, 0, (size_t)p->tokens * sizeof *state->first);
    for (int64_t s = 0; starts && s < n_seqs; s++)
        for (int64_t t = starts[s]; t < starts[s + 1]; t++) state->first[t] = starts[s];
}

static void normalise_token(const EngTrainConvProblem *p, const float *value,
                            const float *norm_weight, int64_t t, State *state)
{
    size_t hidden = (size_t)p->hidden, streams = (size_t)p->streams;
    eng_taps_norms(p, value, t, state->rstd + (size_t)t * streams);
    for (size_t s = 0; s < streams; s++) {
        size_t at = ((size_t)t * streams + s) * hidden;
        eng_taps_normalise(value + at, norm_weight + s * hidden, hidden,
                           state->rstd[(size_t)t * streams + s], state->normalised + at);
    }
}

/* What token t reads within its sequence. */
static void read_taps(const EngTrainConvProblem *p, const State *state, int64_t t, EngTaps *taps)
{
    size_t width = eng_taps_width(p);
    taps->n = 0;
    for (int tap = 0; tap < p->kernel; tap++) {
        int64_t source = t - eng_taps_reach(p, tap);
        if (source < state->first[t]) continue;
        taps->rows[taps->n] = state->normalised + (size_t)source * width;
        taps->weights[taps->n++] = state->taps + (size_t)tap * width;
    }
}

static EngStatus run_forward(void *opaque, const EngProblem *problem, const EngArgs *args,
                             EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    const EngTrainConvArgs *a = &args->u.train_conv;
    State *state = opaque;
    size_t width = eng_taps_width(p);
    int threads = problem->threads;
    (void)err;
    find_sequences(p, a->starts, a->n_seqs, state);
    eng_taps_order(p, a->conv_weight, state->taps);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t t = 0; t < p->tokens; t++)
            normalise_token(p, a->value, a->norm_weight, t, state);
#pragma omp for schedule(static)
        for (int64_t t = 0; t < p->tokens; t++) {
            EngTaps taps;
            read_taps(p, state, t, &taps);
            eng_taps_sum(&taps, width, a->out + (size_t)t * width);
            add_silu(a->value + (size_t)t * width, width, a->out + (size_t)t * width);
        }
    }
    return ENG_OK;
}

static void cost_forward(const EngProblem *problem, EngCost *cost)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    double width = (double)p->streams * p->hidden, values = (double)p->tokens * width;
    /* Norm: square, sum, two products; taps: product and sum each; silu and the last sum: four. */
    cost->flops = values * (4 + 2.0 * p->kernel + 4);
    cost->read_bytes = 4 * (values + width * (p->kernel + 1));
    cost->write_bytes = 4 * values;
}

const EngKernel eng_cpu_train_conv_portable = {
    .op = ENG_OP_TRAIN_CONV,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "whole sequences: normalise all tokens, then sum taps, f32",
    .supports = eng_taps_supports,
    .cost = cost_forward,
    .create = create,
    .run = run_forward,
    .destroy = destroy,
};
