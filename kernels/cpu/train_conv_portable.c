/* The short convolution over whole sequences (facts section 6 A) and its backward, in f32. Taps
 * that would reach before a sequence's start are left out. Both normalise all tokens first; the
 * backward then walks the tokens twice: once for the gradient of the sum before silu, once from
 * there to the values. Gradients of weights are summed by parts of the tokens.
 */
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/train_conv.h"

#include "base/mem.h"

#include <math.h>
#include <omp.h>

typedef struct State {
    float *normalised; /* [tokens, width] */
    float *rstd;       /* [tokens, streams] */
    float *taps;       /* [kernel, width]: the weights, tap-major */
    int64_t *first;    /* [tokens]: start of the token's sequence */
    int64_t *end;      /* [tokens]: and what follows it */
    float *d_sum;      /* [tokens, width]: gradient of the sum before silu; backward only */
    float *parts;      /* [parts, kernel + 1, width]: gradients of taps and norm; backward only */
} State;

static size_t width_of(const EngTrainConvProblem *p)
{
    return (size_t)p->streams * (size_t)p->hidden;
}

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->normalised);
    eng_free(state->rstd);
    eng_free(state->taps);
    eng_free(state->first);
    eng_free(state->end);
    eng_free(state->d_sum);
    eng_free(state->parts);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    size_t tokens = (size_t)p->tokens, row = width_of(p) * sizeof(float);
    size_t kernel = (size_t)p->kernel, parts = (size_t)eng_cpu_parts(p->tokens);
    bool back = problem->op == ENG_OP_BACK_CONV;
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "convolution", err);
    *out = state;
    if (status) return status;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {{(void **)&state->normalised, tokens, row},
                  {(void **)&state->rstd, tokens, (size_t)p->streams * sizeof(float)},
                  {(void **)&state->taps, kernel, row},
                  {(void **)&state->first, tokens, sizeof(int64_t)},
                  {(void **)&state->end, tokens, sizeof(int64_t)},
                  {(void **)&state->d_sum, back ? tokens : 0, row},
                  {(void **)&state->parts, back ? parts * (kernel + 1) : 0, row}};
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "convolution", err);
    if (!status) return ENG_OK;
    destroy(state);
    *out = NULL;
    return status;
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
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

/* ---- pieces -----------------------------------------------------------------------------------
 */

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

ENG_CLONES static void sum_of_three(const float *a, const float *b, const float *c, size_t n,
                                    float *out)
{
    EngLanesF32 lanes = {0};
    float rest = 0;
    size_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES)
        lanes += *(const EngLanesF32 *)(a + i) * *(const EngLanesF32 *)(b + i) *
                 *(const EngLanesF32 *)(c + i);
    for (; i < n; i++) rest += a[i] * b[i] * c[i];
    *out = eng_lanes_sum(&lanes) + rest;
}

ENG_CLONES static void scale_by(const float *restrict v, const float *restrict weight, size_t n,
                                float rstd, float *restrict out)
{
    for (size_t i = 0; i < n; i++) out[i] = v[i] * rstd * weight[i];
}

ENG_CLONES static void add_scaled_products(const float *restrict a, const float *restrict b,
                                           float scale, size_t n, float *restrict sum)
{
    for (size_t i = 0; i < n; i++) sum[i] += a[i] * b[i] * scale;
}

#define MAX_TAPS 64

/* Up to MAX_TAPS rows of the same width: what the taps of a token read, and their weights. */
typedef struct Taps {
    const float *rows[MAX_TAPS], *weights[MAX_TAPS];
    int n;
} Taps;

/* out = sum of rows * weights. */
ENG_CLONES static void sum_taps(const Taps *taps, size_t n, float *restrict out)
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

/* d_taps += rows * d_sum. */
ENG_CLONES static void back_taps_of(const Taps *taps, const float *restrict d_sum, size_t n,
                                    float *const d_taps[MAX_TAPS])
{
    size_t c = 0;
    for (; c + ENG_LANES <= n; c += ENG_LANES) {
        EngLanesF32 flow = *(const EngLanesF32 *)(d_sum + c);
        for (int tap = 0; tap < taps->n; tap++)
            *(EngLanesF32 *)(d_taps[tap] + c) += *(const EngLanesF32 *)(taps->rows[tap] + c) * flow;
    }
    for (; c < n; c++)
        for (int tap = 0; tap < taps->n; tap++) d_taps[tap][c] += taps->rows[tap][c] * d_sum[c];
}

/* out holds the sums and receives value + silu(sum). */
ENG_CLONES static void add_silu(const float *restrict value, size_t n, float *restrict out)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) out[i] = value[i] + out[i] * eng_cpu_sigmoid(out[i]);
}

/* sums holds the sums and receives their gradients. */
ENG_CLONES static void back_silu(const float *restrict d_out, size_t n, float *restrict sums)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float s = eng_cpu_sigmoid(sums[i]);
        sums[i] = d_out[i] * (s * (1.0f + sums[i] * (1.0f - s)));
    }
}

/* One stream through its norm: d_v holds the gradient of the normalised values. */
typedef struct Norm {
    const float *v, *weight, *d_out;
    float *d_v;
    size_t n;
    float rstd, share; /* share: rstd^3 / n * sum of gradient * weight * v */
} Norm;

ENG_CLONES static void back_norm(const Norm *norm)
{
    const float *v = norm->v, *weight = norm->weight, *d_out = norm->d_out;
    float *d_v = norm->d_v, rstd = norm->rstd, share = norm->share;
#pragma omp simd
    for (size_t i = 0; i < norm->n; i++)
        d_v[i] = d_out[i] + (rstd * (weight[i] * d_v[i]) - share * v[i]);
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static void find_sequences(const EngTrainConvProblem *p, const int64_t *starts, int64_t n_seqs,
                           State *state)
{
    const int64_t whole[] = {0, p->tokens};
    if (!starts) {
        starts = whole;
        n_seqs = 1;
    }
    for (int64_t s = 0; s < n_seqs; s++)
        for (int64_t t = starts[s]; t < starts[s + 1]; t++) {
            state->first[t] = starts[s];
            state->end[t] = starts[s + 1];
        }
}

static void order_taps(const EngTrainConvProblem *p, const float *weight, float *taps)
{
    size_t width = width_of(p), kernel = (size_t)p->kernel;
    for (size_t tap = 0; tap < kernel; tap++)
        for (size_t c = 0; c < width; c++) taps[tap * width + c] = weight[c * kernel + tap];
}

static void normalise_token(const EngTrainConvProblem *p, const float *value,
                            const float *norm_weight, int64_t t, State *state)
{
    size_t hidden = (size_t)p->hidden, streams = (size_t)p->streams;
    for (size_t s = 0; s < streams; s++) {
        size_t at = ((size_t)t * streams + s) * hidden;
        float squares;
        sum_of_squares(value + at, hidden, &squares);
        float rstd = 1.0f / sqrtf(squares / (float)p->hidden + p->eps);
        state->rstd[(size_t)t * streams + s] = rstd;
        scale_by(value + at, norm_weight + s * hidden, hidden, rstd, state->normalised + at);
    }
}

/* How far back tap `tap` reads. */
static int64_t reach(const EngTrainConvProblem *p, int tap)
{
    return (int64_t)(p->kernel - 1 - tap) * p->dilation;
}

/* What token t reads within its sequence; parts: where each tap's weights' gradients go, or NULL.
 */
static void read_taps(const EngTrainConvProblem *p, const State *state, int64_t t, Taps *taps,
                      float *part, float *d_taps[MAX_TAPS])
{
    size_t width = width_of(p);
    taps->n = 0;
    for (int tap = 0; tap < p->kernel; tap++) {
        int64_t source = t - reach(p, tap);
        if (source < state->first[t]) continue;
        taps->rows[taps->n] = state->normalised + (size_t)source * width;
        taps->weights[taps->n] = state->taps + (size_t)tap * width;
        if (part) d_taps[taps->n] = part + (size_t)tap * width;
        taps->n++;
    }
}

static EngStatus run_forward(void *opaque, const EngProblem *problem, const EngArgs *args,
                             EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    const EngTrainConvArgs *a = &args->u.train_conv;
    State *state = opaque;
    size_t width = width_of(p);
    int threads = problem->threads;
    (void)err;
    find_sequences(p, a->starts, a->n_seqs, state);
    order_taps(p, a->conv_weight, state->taps);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t t = 0; t < p->tokens; t++)
            normalise_token(p, a->value, a->norm_weight, t, state);
#pragma omp for schedule(static)
        for (int64_t t = 0; t < p->tokens; t++) {
            Taps taps;
            read_taps(p, state, t, &taps, NULL, NULL);
            sum_taps(&taps, width, a->out + (size_t)t * width);
            add_silu(a->value + (size_t)t * width, width, a->out + (size_t)t * width);
        }
    }
    return ENG_OK;
}

/* ---- backward ---------------------------------------------------------------------------------
 */

/* Gradients of the sums before silu, and of the taps into the part's buffer. */
static void back_taps(const EngTrainConvProblem *p, const State *state, const float *d_out,
                      int64_t t, float *part)
{
    size_t width = width_of(p);
    float *d_taps[MAX_TAPS], *d_sum = state->d_sum + (size_t)t * width;
    Taps taps;
    read_taps(p, state, t, &taps, part, d_taps);
    sum_taps(&taps, width, d_sum);
    back_silu(d_out + (size_t)t * width, width, d_sum);
    back_taps_of(&taps, d_sum, width, d_taps);
}

/* From the sums of the tokens that read token t to its values. */
static void back_values(const EngTrainConvProblem *p, const State *state, const EngBackConvArgs *a,
                        int64_t t, float *part)
{
    size_t width = width_of(p), hidden = (size_t)p->hidden, streams = (size_t)p->streams;
    float *d_value = a->d_value + (size_t)t * width;
    Taps readers;
    readers.n = 0;
    for (int tap = p->kernel - 1; tap >= 0; tap--) {
        int64_t reader = t + reach(p, tap);
        if (reader >= state->end[t]) continue;
        readers.rows[readers.n] = state->d_sum + (size_t)reader * width;
        readers.weights[readers.n++] = state->taps + (size_t)tap * width;
    }
    sum_taps(&readers, width, d_value);
    for (size_t s = 0; s < streams; s++) {
        size_t c = s * hidden, at = (size_t)t * width + c;
        float rstd = state->rstd[(size_t)t * streams + s], sum;
        add_scaled_products(d_value + c, a->value + at, rstd, hidden,
                            part + (size_t)p->kernel * width + c);
        sum_of_three(d_value + c, a->norm_weight + c, a->value + at, hidden, &sum);
        Norm norm = {.v = a->value + at,
                     .weight = a->norm_weight + c,
                     .d_out = a->d_out + at,
                     .d_v = d_value + c,
                     .n = hidden,
                     .rstd = rstd,
                     .share = rstd * rstd * rstd / (float)p->hidden * sum};
        back_norm(&norm);
    }
}

ENG_CLONES static void add_row(const float *restrict from, size_t n, float *restrict sum)
{
    for (size_t i = 0; i < n; i++) sum[i] += from[i];
}

/* Buffers of all parts, in order, into the gradients of taps and norm. */
static void add_parts(const EngTrainConvProblem *p, const State *state, const EngBackConvArgs *a,
                      size_t from, size_t to)
{
    size_t width = width_of(p), kernel = (size_t)p->kernel, rows = kernel + 1;
    size_t parts = (size_t)eng_cpu_parts(p->tokens);
    float *sums = state->parts;
    for (size_t part = 1; part < parts; part++)
        for (size_t row = 0; row < rows; row++)
            add_row(sums + (part * rows + row) * width + from, to - from,
                    sums + row * width + from);
    for (size_t c = from; c < to; c++)
        for (size_t tap = 0; tap < kernel; tap++)
            a->d_conv_weight[c * kernel + tap] += sums[tap * width + c];
    add_row(sums + kernel * width + from, to - from, a->d_norm_weight + from);
}

static EngStatus run_backward(void *opaque, const EngProblem *problem, const EngArgs *args,
                              EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    const EngBackConvArgs *a = &args->u.back_conv;
    State *state = opaque;
    size_t width = width_of(p), part_values = ((size_t)p->kernel + 1) * width;
    int threads = problem->threads, parts = eng_cpu_parts(p->tokens);
    (void)err;
    find_sequences(p, a->starts, a->n_seqs, state);
    order_taps(p, a->conv_weight, state->taps);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
#pragma omp for schedule(static)
        for (int64_t t = 0; t < p->tokens; t++)
            normalise_token(p, a->value, a->norm_weight, t, state);
#pragma omp for schedule(static)
        for (int part = 0; part < parts; part++) {
            float *sums = state->parts + (size_t)part * part_values;
            memset(sums, 0, part_values * sizeof *sums);
            eng_cpu_share(p->tokens, parts, part, &from, &to);
            for (int64_t t = from; t < to; t++) back_taps(p, state, a->d_out, t, sums);
        }
#pragma omp for schedule(static)
        for (int part = 0; part < parts; part++) {
            eng_cpu_share(p->tokens, parts, part, &from, &to);
            for (int64_t t = from; t < to; t++)
                back_values(p, state, a, t, state->parts + (size_t)part * part_values);
        }
        eng_cpu_share((int64_t)width, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        add_parts(p, state, a, (size_t)from, (size_t)to);
    }
    return ENG_OK;
}

/* ---- variants ---------------------------------------------------------------------------------
 */

static void cost_forward(const EngProblem *problem, EngCost *cost)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    double width = (double)p->streams * p->hidden, values = (double)p->tokens * width;
    /* Norm: square, sum, two products; taps: product and sum each; silu and the last sum: four. */
    cost->flops = values * (4 + 2.0 * p->kernel + 4);
    cost->read_bytes = 4 * (values + width * (p->kernel + 1));
    cost->write_bytes = 4 * values;
}

static void cost_backward(const EngProblem *problem, EngCost *cost)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    double width = (double)p->streams * p->hidden, values = (double)p->tokens * width;
    /* As the forward; then taps twice more, silu's slope, and the norm's three sums. */
    cost->flops = values * (4 + 6.0 * p->kernel + 8 + 3 + 3 + 5);
    cost->read_bytes = 4 * (2 * values + 2 * width * (p->kernel + 1));
    cost->write_bytes = 4 * (values + width * (p->kernel + 1));
}

const EngKernel eng_cpu_train_conv_portable = {
    .op = ENG_OP_TRAIN_CONV,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "whole sequences: normalise all tokens, then sum taps, f32",
    .supports = supports,
    .cost = cost_forward,
    .create = create,
    .run = run_forward,
    .destroy = destroy,
};

const EngKernel eng_cpu_back_conv_portable = {
    .op = ENG_OP_BACK_CONV,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "normalise, back through silu and taps, back through the norm, f32",
    .supports = supports,
    .cost = cost_backward,
    .create = create,
    .run = run_backward,
    .destroy = destroy,
};
