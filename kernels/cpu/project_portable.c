/* Projection in portable C, for small M: weights are read as they lie (fp8 with 32x32 e8m0 tiles,
 * or bf16), four rows at a time, a block of k after the other. A block of four rows is decoded to
 * f32 once and used for up to 64 tokens. Sums run over 16 lanes in a fixed order: results depend
 * neither on threads nor on how many tokens there are.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/decode.h"
#include "kernels/cpu/project.h"

#include "base/mem.h"

#include <omp.h>

#define ROWS        4
#define BLOCK_K     512 /* 4 rows of f32: 8 KB, a quarter of the nearest cache */
#define BLOCK_M     64
#define AHEAD_BYTES 2048 /* weights of the same row asked for early */

typedef struct State {
    size_t k_padded; /* to whole lanes; the padding is 0 in x and in decoded rows */
    float *x;        /* [tokens, k_padded] */
} State;

typedef struct Scratch {
    float w[ROWS][BLOCK_K];
    float sums[BLOCK_M][ROWS][ENG_LANES];
} Scratch;

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->x);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "projection", err);
    if (status) goto done;
    state->k_padded = ((size_t)p->k + ENG_LANES - 1) / ENG_LANES * ENG_LANES;
    status = eng_alloc_or((void **)&state->x, (size_t)p->tokens, state->k_padded * sizeof *state->x,
                          "expanded input", err);
done:
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

ENG_CLONES static void widen(const uint8_t *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof bits);
        to[i] = eng_cpu_f32_of_bf16(bits);
    }
}

static void expand_token(const EngProjectProblem *p, const EngProjectArgs *args, int64_t t,
                         float *to)
{
    size_t k = (size_t)p->k;
    const uint8_t *x = args->x;
    if (p->x == ENG_FP8)
        eng_cpu_decode_f32(x + (size_t)t * k, args->x_scales + (size_t)t * (k / ENG_SCALE_GROUP),
                           (int)(k / ENG_SCALE_GROUP), to);
    else
        widen(x + 2 * (size_t)t * k, to, k);
}

/* Columns k0 .. k0+n of rows j0 .. j0+rows as f32, padded with 0 to whole lanes. */
static void decode_block(const EngProjectProblem *p, int j0, int rows, size_t k0, size_t n,
                         Scratch *s)
{
    size_t k = (size_t)p->k;
    for (int r = 0; r < rows; r++) {
        size_t at = (size_t)(j0 + r) * k + k0;
        if (p->weights == ENG_FP8) {
            const uint8_t *w = p->w + at;
            size_t tile =
                (size_t)(j0 + r) / ENG_SCALE_GROUP * (k / ENG_SCALE_GROUP) + k0 / ENG_SCALE_GROUP;
            for (size_t i = 0; i < n; i += 64) __builtin_prefetch(w + i + AHEAD_BYTES);
            eng_cpu_decode_f32(w, p->w_scales + tile, (int)(n / ENG_SCALE_GROUP), s->w[r]);
        } else {
            widen(p->w + 2 * at, s->w[r], n);
        }
        for (size_t i = n; i % ENG_LANES; i++) s->w[r][i] = 0;
    }
}

ENG_CLONES static void add_products(const float *x, size_t x_stride, int tokens, size_t n,
                                    Scratch *s)
{
    for (int m = 0; m < tokens; m++, x += x_stride) {
        EngLanesF32 *sums = (EngLanesF32 *)s->sums[m];
        EngLanesF32 sum0 = sums[0], sum1 = sums[1], sum2 = sums[2], sum3 = sums[3];
        for (size_t i = 0; i < n; i += ENG_LANES) {
            EngLanesF32 xi = *(const EngLanesF32 *)(x + i);
            sum0 += xi * *(const EngLanesF32 *)(s->w[0] + i);
            sum1 += xi * *(const EngLanesF32 *)(s->w[1] + i);
            sum2 += xi * *(const EngLanesF32 *)(s->w[2] + i);
            sum3 += xi * *(const EngLanesF32 *)(s->w[3] + i);
        }
        sums[0] = sum0, sums[1] = sum1, sums[2] = sum2, sums[3] = sum3;
    }
}

static float sum_of_lanes(const float *lanes)
{
    float part[ENG_LANES];
    memcpy(part, lanes, sizeof part);
    for (int width = ENG_LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) part[i] += part[i + width];
    return part[0];
}

static void store(const EngProjectProblem *p, void *out, int64_t t, int j, float value)
{
    uint8_t *to = out;
    size_t at = (size_t)t * (size_t)p->n + (size_t)j;
    if (p->out == ENG_BF16) {
        uint16_t bits = eng_cpu_bf16_of(value);
        memcpy(to + 2 * at, &bits, sizeof bits);
    } else {
        memcpy(to + 4 * at, &value, sizeof value);
    }
}

/* Output columns j0 .. j0+rows for tokens t0 .. t0+tokens. */
static void project_rows(const EngProjectProblem *p, const State *state, void *out, int j0,
                         int rows, int64_t t0, int tokens, Scratch *s)
{
    memset(s->sums, 0, sizeof s->sums[0] * (size_t)tokens);
    for (size_t k0 = 0; k0 < (size_t)p->k; k0 += BLOCK_K) {
        size_t n = (size_t)p->k - k0 < BLOCK_K ? (size_t)p->k - k0 : BLOCK_K;
        decode_block(p, j0, rows, k0, n, s);
        add_products(state->x + (size_t)t0 * state->k_padded + k0, state->k_padded, tokens,
                     (n + ENG_LANES - 1) / ENG_LANES * ENG_LANES, s);
    }
    for (int m = 0; m < tokens; m++)
        for (int r = 0; r < rows; r++) store(p, out, t0 + m, j0 + r, sum_of_lanes(s->sums[m][r]));
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    const State *state = opaque;
    int threads = problem->threads;
    int64_t groups = ((int64_t)p->n + ROWS - 1) / ROWS;
    (void)err;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Scratch scratch;
        int64_t from, to;
        memset(scratch.w, 0, sizeof scratch.w); /* rows past n count as 0 */
        eng_cpu_share(p->tokens, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t t = from; t < to; t++)
            expand_token(p, &args->u.project, t, state->x + (size_t)t * state->k_padded);
#pragma omp barrier
        eng_cpu_share(groups, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t t0 = 0; t0 < p->tokens; t0 += BLOCK_M) {
            int tokens = (int)(p->tokens - t0 < BLOCK_M ? p->tokens - t0 : BLOCK_M);
            for (int64_t g = from; g < to; g++) {
                int j0 = (int)(g * ROWS), rows = p->n - j0 < ROWS ? p->n - j0 : ROWS;
                project_rows(p, state, args->u.project.out, j0, rows, t0, tokens, &scratch);
            }
        }
    }
    return ENG_OK;
}

const EngKernel eng_cpu_project_portable = {
    .op = ENG_OP_PROJECT,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "weights read as they lie (fp8 tiles or bf16), decoded to f32; for few tokens",
    .supports = eng_cpu_project_supports,
    .cost = eng_cpu_project_cost,
    .create = create,
    .run = run,
    .destroy = destroy,
};
