/* The backward of the short convolution over whole sequences (facts section 6 A), in f32. A block
 * of channels goes through all tokens, so that what the taps read and write stays in the nearest
 * cache: rows of the last tokens lie in two rings, one of normalised values and one of gradients of
 * the sums before silu. A token's gradient waits until the last token that reads it is through.
 * Only the norm couples blocks, by one sum per token and stream.
 */
#include <omp.h>

#include "base/mem.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/taps.h"
#include "kernels/cpu/train_conv.h"

#define BLOCK 128 /* channels */
#define AHEAD 4   /* tokens */
#define LINE  16  /* values of a cache line */

typedef struct State {
    float *rstd;   /* [tokens, streams] */
    float *taps;   /* [kernel, width]: the weights, tap-major */
    int64_t ring;  /* rows of a ring, a power of two */
    float *rings;  /* [threads, 2, ring, BLOCK] */
    float *shares; /* [tokens, blocks]: the block's part of the norm's sum */
    float *d_sums; /* [kernel + 1, width]: gradients of taps and norm weights */
} State;

static int64_t blocks_of_stream(const EngTrainConvProblem *p)
{
    return (p->hidden + BLOCK - 1) / BLOCK;
}

/* How many tokens later the last one comes that reads a token, in a sequence of so many. */
static int64_t lag_of(const EngTrainConvProblem *p, int64_t tokens)
{
    return eng_taps_reach(p, 0) < tokens ? eng_taps_reach(p, 0) : tokens - 1;
}

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->rstd);
    eng_free(state->taps);
    eng_free(state->rings);
    eng_free(state->shares);
    eng_free(state->d_sums);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    size_t tokens = (size_t)p->tokens, row = eng_taps_width(p) * sizeof(float);
    size_t kernel = (size_t)p->kernel, blocks = (size_t)(p->streams * blocks_of_stream(p));
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "convolution", err);
    *out = state;
    if (status) return status;
    state->ring = 1;
    while (state->ring <= lag_of(p, p->tokens)) state->ring *= 2;
    size_t rings = 2 * (size_t)state->ring * (size_t)problem->threads;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {{(void **)&state->rstd, tokens, (size_t)p->streams * sizeof(float)},
                  {(void **)&state->taps, kernel, row},
                  {(void **)&state->rings, rings, BLOCK * sizeof(float)},
                  {(void **)&state->shares, tokens, blocks * sizeof(float)},
                  {(void **)&state->d_sums, kernel + 1, row}};
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "convolution", err);
    if (!status) return ENG_OK;
    destroy(state);
    *out = NULL;
    return status;
}

/* ---- pieces ---- */

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

ENG_CLONES static void add_scaled_products(const float *restrict a, const float *restrict b,
                                           float scale, size_t n, float *restrict sum)
{
    for (size_t i = 0; i < n; i++) sum[i] += a[i] * b[i] * scale;
}

/* d_taps += rows * d_sum. */
ENG_CLONES static void back_taps_of(const EngTaps *taps, const float *restrict d_sum, size_t n,
                                    float *const d_taps[ENG_MAX_TAPS])
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

#define USUAL 4 /* taps, which are taken at once */

/* A token's values to normalised ones (the row that the last tap reads), and on as eng_taps_sum,
 * back_silu and back_taps_of. */
typedef struct Row {
    const float *v, *norm_weight, *d_out;
    float *normalised, *d_sum;
    size_t n;
    float rstd;
} Row;

ENG_CLONES static void back_usual(const Row *row, const EngTaps *taps,
                                  float *const d_taps[ENG_MAX_TAPS])
{
    const float *r0 = taps->rows[0], *r1 = taps->rows[1], *r2 = taps->rows[2];
    const float *w0 = taps->weights[0], *w1 = taps->weights[1], *w2 = taps->weights[2];
    const float *w3 = taps->weights[3], *v = row->v, *weight = row->norm_weight;
    const float *d_out = row->d_out;
    float *d0 = d_taps[0], *d1 = d_taps[1], *d2 = d_taps[2], *d3 = d_taps[3];
    float *normalised = row->normalised, *d_sum = row->d_sum, rstd = row->rstd;
#pragma omp simd
    for (size_t i = 0; i < row->n; i++) {
        float last = v[i] * rstd * weight[i];
        float sum = r0[i] * w0[i] + r1[i] * w1[i] + r2[i] * w2[i] + last * w3[i];
        float s = eng_cpu_sigmoid(sum), flow = d_out[i] * (s * (1.0f + sum * (1.0f - s)));
        normalised[i] = last;
        d_sum[i] = flow;
        d0[i] += r0[i] * flow;
        d1[i] += r1[i] * flow;
        d2[i] += r2[i] * flow;
        d3[i] += last * flow;
    }
}

/* From the taps that read a token: out = sum of rows * weights, d_weight += out * v * rstd, and the
 * sum of out * weight * v. */
typedef struct Back {
    const float *v, *norm_weight;
    float *out, *d_weight;
    size_t n;
    float rstd;
} Back;

ENG_CLONES static void sum_usual(const EngTaps *taps, const Back *back, float *share)
{
    const float *const *rows = taps->rows, *const *weights = taps->weights;
    EngLanesF32 lanes = {0};
    float rest = 0;
    size_t c = 0;
    for (; c + ENG_LANES <= back->n; c += ENG_LANES) {
        EngLanesF32 v = *(const EngLanesF32 *)(back->v + c), sum = {0};
#pragma GCC unroll 4
        for (int tap = 0; tap < USUAL; tap++)
            sum += *(const EngLanesF32 *)(rows[tap] + c) * *(const EngLanesF32 *)(weights[tap] + c);
        *(EngLanesF32 *)(back->out + c) = sum;
        *(EngLanesF32 *)(back->d_weight + c) += sum * v * back->rstd;
        lanes += sum * *(const EngLanesF32 *)(back->norm_weight + c) * v;
    }
    for (; c < back->n; c++) {
        float sum = 0;
        for (int tap = 0; tap < USUAL; tap++) sum += rows[tap][c] * weights[tap][c];
        back->out[c] = sum;
        back->d_weight[c] += sum * back->v[c] * back->rstd;
        rest += sum * back->norm_weight[c] * back->v[c];
    }
    *share = eng_lanes_sum(&lanes) + rest;
}

/* ---- steps ---- */

/* Channels first .. first + n of stream `stream`, on their way through the tokens. */
typedef struct Block {
    const EngTrainConvProblem *p;
    const State *state;
    const EngBackConvArgs *a;
    size_t first, n, stream;
    int64_t index;
    float *normalised, *d_sums; /* rings [ring, BLOCK] */
} Block;

static float *ring_row(const Block *b, float *ring, int64_t t)
{
    return ring + (size_t)(t & (b->state->ring - 1)) * BLOCK;
}

static float rstd_of(const Block *b, int64_t t)
{
    return b->state->rstd[t * b->p->streams + (int64_t)b->stream];
}

/* Rows of a block are too far apart for what the processor foresees by itself. */
static void fetch_ahead(const Block *b, size_t at)
{
    for (size_t c = 0; c < b->n; c += LINE) {
        __builtin_prefetch(b->a->value + at + c);
        __builtin_prefetch(b->a->d_out + at + c);
        __builtin_prefetch(b->a->d_value + at + c, 1);
    }
}

/* Token t, of a sequence from `start` on: the gradient of its sum before silu, and of the taps. */
static void back_taps(const Block *b, int64_t start, int64_t t)
{
    const EngBackConvArgs *a = b->a;
    size_t width = eng_taps_width(b->p), at = (size_t)t * width + b->first;
    float *d_taps[ENG_MAX_TAPS];
    EngTaps taps;
    taps.n = 0;
    Row row = {.v = a->value + at,
               .norm_weight = a->norm_weight + b->first,
               .d_out = a->d_out + at,
               .normalised = ring_row(b, b->normalised, t),
               .d_sum = ring_row(b, b->d_sums, t),
               .n = b->n,
               .rstd = rstd_of(b, t)};
    if (t + AHEAD < b->p->tokens) fetch_ahead(b, at + AHEAD * width);
    for (int tap = 0; tap < b->p->kernel; tap++) {
        int64_t source = t - eng_taps_reach(b->p, tap);
        size_t weights = (size_t)tap * width + b->first;
        if (source < start) continue;
        taps.rows[taps.n] = ring_row(b, b->normalised, source);
        taps.weights[taps.n] = b->state->taps + weights;
        d_taps[taps.n++] = b->state->d_sums + weights;
    }
    if (taps.n == USUAL) {
        back_usual(&row, &taps, d_taps);
        return;
    }
    eng_taps_normalise(row.v, row.norm_weight, row.n, row.rstd, row.normalised);
    eng_taps_sum(&taps, row.n, row.d_sum);
    back_silu(row.d_out, row.n, row.d_sum);
    back_taps_of(&taps, row.d_sum, row.n, d_taps);
}

/* From the sums of the tokens that read token t, before `end`, to its normalised values, and what
 * they add to the norm's sums. */
static void back_values(const Block *b, int64_t end, int64_t t)
{
    const EngBackConvArgs *a = b->a;
    size_t width = eng_taps_width(b->p), at = (size_t)t * width + b->first;
    int64_t blocks = b->p->streams * blocks_of_stream(b->p);
    float *share = &b->state->shares[t * blocks + b->index];
    Back back = {.v = a->value + at,
                 .norm_weight = a->norm_weight + b->first,
                 .out = a->d_value + at,
                 .d_weight = b->state->d_sums + (size_t)b->p->kernel * width + b->first,
                 .n = b->n,
                 .rstd = rstd_of(b, t)};
    EngTaps readers;
    readers.n = 0;
    for (int tap = b->p->kernel - 1; tap >= 0; tap--) {
        int64_t reader = t + eng_taps_reach(b->p, tap);
        if (reader >= end) continue;
        readers.rows[readers.n] = ring_row(b, b->d_sums, reader);
        readers.weights[readers.n++] = b->state->taps + (size_t)tap * width + b->first;
    }
    if (readers.n == USUAL) {
        sum_usual(&readers, &back, share);
        return;
    }
    eng_taps_sum(&readers, back.n, back.out);
    add_scaled_products(back.out, back.v, back.rstd, back.n, back.d_weight);
    sum_of_three(back.out, back.norm_weight, back.v, back.n, share);
}

static void back_block(const EngTrainConvProblem *p, State *state, const EngBackConvArgs *a,
                       int64_t index)
{
    const int64_t whole[] = {0, p->tokens}, *starts = a->starts ? a->starts : whole;
    int64_t n_seqs = a->starts ? a->n_seqs : 1, inside = index % blocks_of_stream(p) * BLOCK;
    float *rings = state->rings + (size_t)(omp_get_thread_num() * 2 * state->ring) * BLOCK;
    Block b = {.p = p,
               .state = state,
               .a = a,
               .stream = (size_t)(index / blocks_of_stream(p)),
               .index = index,
               .normalised = rings,
               .d_sums = rings + (size_t)state->ring * BLOCK};
    b.first = b.stream * (size_t)p->hidden + (size_t)inside;
    b.n = p->hidden - inside < BLOCK ? (size_t)(p->hidden - inside) : BLOCK;
    for (int64_t s = 0; s < n_seqs; s++) {
        int64_t start = starts[s], end = starts[s + 1], lag = lag_of(p, end - start);
        for (int64_t t = start; t < end + lag; t++) {
            if (t < end) back_taps(&b, start, t);
            if (t - lag >= start) back_values(&b, end, t - lag);
        }
    }
}

/* A token through its norms: d_value holds the gradient of the normalised values. */
static void back_norms(const EngTrainConvProblem *p, const State *state, const EngBackConvArgs *a,
                       int64_t t)
{
    size_t width = eng_taps_width(p), hidden = (size_t)p->hidden;
    int64_t per_stream = blocks_of_stream(p);
    for (int64_t s = 0; s < p->streams; s++) {
        size_t c = (size_t)s * hidden, at = (size_t)t * width + c;
        float rstd = state->rstd[t * p->streams + s], sum = 0;
        for (int64_t block = 0; block < per_stream; block++)
            sum += state->shares[(t * p->streams + s) * per_stream + block];
        Norm norm = {.v = a->value + at,
                     .weight = a->norm_weight + c,
                     .d_out = a->d_out + at,
                     .d_v = a->d_value + at,
                     .n = hidden,
                     .rstd = rstd,
                     .share = rstd * rstd * rstd / (float)p->hidden * sum};
        back_norm(&norm);
    }
}

static void add_gradients(const EngTrainConvProblem *p, const State *state,
                          const EngBackConvArgs *a)
{
    size_t width = eng_taps_width(p), kernel = (size_t)p->kernel;
    for (size_t c = 0; c < width; c++) {
        for (size_t tap = 0; tap < kernel; tap++)
            a->d_conv_weight[c * kernel + tap] += state->d_sums[tap * width + c];
        a->d_norm_weight[c] += state->d_sums[kernel * width + c];
    }
}

static EngStatus run_backward(void *opaque, const EngProblem *problem, const EngArgs *args,
                              EngErr *err)
{
    const EngTrainConvProblem *p = &problem->u.train_conv;
    const EngBackConvArgs *a = &args->u.back_conv;
    State *state = opaque;
    int64_t blocks = p->streams * blocks_of_stream(p);
    int threads = problem->threads;
    (void)err;
    eng_taps_order(p, a->conv_weight, state->taps);
    memset(state->d_sums, 0, ((size_t)p->kernel + 1) * eng_taps_width(p) * sizeof *state->d_sums);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t t = 0; t < p->tokens; t++)
            eng_taps_norms(p, a->value, t, state->rstd + t * p->streams);
#pragma omp for schedule(static)
        for (int64_t block = 0; block < blocks; block++) back_block(p, state, a, block);
#pragma omp for schedule(static)
        for (int64_t t = 0; t < p->tokens; t++) back_norms(p, state, a, t);
    }
    add_gradients(p, state, a);
    return ENG_OK;
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

const EngKernel eng_cpu_back_conv_portable = {
    .op = ENG_OP_BACK_CONV,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "blocks of channels back through silu and taps, then back through the norm, f32",
    .supports = eng_taps_supports,
    .cost = cost_backward,
    .create = create,
    .run = run_backward,
    .destroy = destroy,
};
