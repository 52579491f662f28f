/* Projection on fp8 weights with AVX2, F16C and FMA, for processors without bf16 instructions.
 *
 * An e4m3fn code shifted to where an f16 has exponent and fraction is an f16 of 2^-8 times its
 * value, subnormals included; the conversion to f32 and one product with the tile's scale do the
 * rest. Only NaN codes would become numbers: groups that hold one are computed exactly.
 *
 * Up to DIRECT_M tokens a group of 32 outputs keeps its sums in registers while its weights stream
 * past. With more, the weights of a chunk of k are expanded once to a panel in the nearest cache
 * and multiplied by tiles of six tokens. Sums of an output run along k in order, in f32.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/project.h"
#include "kernels/cpu/project_tiles.h"

#include "base/mem.h"

#if ENG_X86
#include <immintrin.h>
#include <omp.h>
#include <pthread.h>

#define INLINE   ENG_TARGET_AVX2 static inline __attribute__((always_inline))
#define UNROLL   _Pragma("GCC unroll 16")
#define DIRECT_M 2
#define PLAIN_M  6 /* tokens of a register tile: two sums each for 16 outputs */
#define CHUNK    6 /* tiles along k: their expanded weights take 24 KB */
#define BLOCK_M  192
#define AHEAD    4096 /* bytes of weights asked for early */

static EngTileOrder g_order = {.name = "avx2"};
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

/* Sixteen bytes per input and half of the outputs: the lower bytes of eight words are outputs
 * 0 .. 7, the upper ones 8 .. 15. */
static void fill_order(void)
{
    for (int b = 0; b < ENG_TILE_BYTES; b++) {
        int k = b / 32, half = b / 16 % 2, n = half * 16 + b % 2 * 8 + b % 16 / 2;
        g_order.order[b] = (uint16_t)(n * ENG_TILE + k);
    }
}

/* 2^(scale - 127), and the 2^8 that the f16 lacks. */
INLINE __m256 scale_of(uint8_t scale)
{
    return _mm256_set1_ps(eng_cpu_float_of((uint32_t)(scale + 8) << 23));
}

/* Sixteen codes as f32: outputs 0 .. 7 and 8 .. 15. */
INLINE void expand(const uint8_t *codes, __m256 scale, __m256 *first, __m256 *second)
{
    __m128i w = _mm_loadu_si128((const __m128i *)(const void *)codes);
    __m128i mask = _mm_set1_epi16((short)0xbf80); /* the arithmetic shift doubled the sign */
    __m128i low = _mm_and_si128(_mm_srai_epi16(_mm_slli_epi16(w, 8), 1), mask);
    __m128i high = _mm_and_si128(_mm_srai_epi16(w, 1), mask);
    *first = _mm256_mul_ps(_mm256_cvtph_ps(low), scale);
    *second = _mm256_mul_ps(_mm256_cvtph_ps(high), scale);
}

INLINE void store(uint8_t *to, EngDtype type, __m256 sums)
{
    if (type == ENG_F32) {
        _mm256_storeu_ps((float *)(void *)to, sums);
        return;
    }
    /* Ties to even; a NaN stays one. */
    __m256i bits = _mm256_castps_si256(sums);
    __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i near = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(sums, sums, _CMP_UNORD_Q));
    __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, nan), 16);
    __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
    _mm_storeu_si128((__m128i *)(void *)to, packed);
}

typedef struct Job {
    const uint8_t *tiles, *scales;
    int k_tiles;
    const float *x;     /* [k_tiles * 32, m] */
    const float *panel; /* [k_tiles * 32, 32] */
    float *kept;        /* [2, m, 16]: sums of both halves before and after */
    bool start, end;
    uint8_t *out;
    size_t out_stride;
    EngDtype out_type;
} Job;

INLINE void direct(const Job *job, const int m)
{
    __m256 sums[4 * DIRECT_M];
    const uint8_t *codes = job->tiles;
    const float *x = job->x;
    size_t size = job->out_type == ENG_F32 ? 4 : 2;
    UNROLL for (int i = 0; i < 4 * m; i++) sums[i] = _mm256_setzero_ps();
    for (int tile = 0; tile < job->k_tiles; tile++) {
        __m256 scale = scale_of(job->scales[tile]);
        for (int k = 0; k < ENG_TILE; k++, codes += 32, x += m) {
            __m256 w[4];
            if (k % 2 == 0) _mm_prefetch(codes + AHEAD, _MM_HINT_T0);
            expand(codes, scale, &w[0], &w[1]);
            expand(codes + 16, scale, &w[2], &w[3]);
            UNROLL for (int i = 0; i < m; i++)
            {
                __m256 xi = _mm256_broadcast_ss(x + i);
                UNROLL for (int j = 0; j < 4; j++) sums[4 * i + j] =
                    _mm256_fmadd_ps(w[j], xi, sums[4 * i + j]);
            }
        }
    }
    UNROLL for (int i = 0; i < 4 * m; i++)
        store(job->out + (size_t)(i / 4) * job->out_stride + (size_t)(i % 4 * 8) * size,
              job->out_type, sums[i]);
}

ENG_TARGET_AVX2 static void expand_panel(const Job *job, float *panel)
{
    const uint8_t *codes = job->tiles;
    for (int tile = 0; tile < job->k_tiles; tile++) {
        __m256 scale = scale_of(job->scales[tile]);
        for (int half = 0; half < 2 * ENG_TILE; half++, codes += 16, panel += 16) {
            __m256 first, second;
            if (half % 4 == 0) _mm_prefetch(codes + AHEAD, _MM_HINT_T0);
            expand(codes, scale, &first, &second);
            _mm256_storeu_ps(panel, first);
            _mm256_storeu_ps(panel + 8, second);
        }
    }
}

/* Sixteen outputs of m tokens. */
INLINE void plain_half(const Job *job, const int m, int half)
{
    __m256 sums[2 * PLAIN_M];
    const float *x = job->x, *panel = job->panel + 16 * half;
    float *kept = job->kept + half * m * 16;
    size_t size = job->out_type == ENG_F32 ? 4 : 2;
    __m256i mask = _mm256_set1_epi32(job->start ? 0 : -1); /* a branch would copy the array */
    UNROLL for (int i = 0; i < 2 * m; i++) sums[i] = _mm256_maskload_ps(kept + 8 * i, mask);
    for (int k = 0; k < job->k_tiles * ENG_TILE; k++, panel += 32, x += m) {
        __m256 w0 = _mm256_loadu_ps(panel), w1 = _mm256_loadu_ps(panel + 8);
        UNROLL for (int i = 0; i < m; i++)
        {
            __m256 xi = _mm256_broadcast_ss(x + i);
            sums[2 * i] = _mm256_fmadd_ps(w0, xi, sums[2 * i]);
            sums[2 * i + 1] = _mm256_fmadd_ps(w1, xi, sums[2 * i + 1]);
        }
    }
    if (!job->end) {
        UNROLL for (int i = 0; i < 2 * m; i++) _mm256_storeu_ps(kept + 8 * i, sums[i]);
        return;
    }
    uint8_t *out = job->out + (size_t)(half * 16) * size;
    UNROLL for (int i = 0; i < m; i++, out += job->out_stride)
    {
        store(out, job->out_type, sums[2 * i]);
        store(out + 8 * size, job->out_type, sums[2 * i + 1]);
    }
}

typedef void Product(const Job *job);

/* clang-format off */
#define FOR_DIRECT(X) X(1) X(2)
#define FOR_PLAIN(X)  X(1) X(2) X(3) X(4) X(5) X(6)
#define DEFINE_DIRECT(m) ENG_TARGET_AVX2 static void direct_##m(const Job *job) { direct(job, m); }
#define DEFINE_PLAIN(m) \
    ENG_TARGET_AVX2 static void plain_##m(const Job *job) \
    { plain_half(job, m, 0); plain_half(job, m, 1); }
#define DIRECT(m) [m] = direct_##m,
#define PLAIN(m)  [m] = plain_##m,
FOR_DIRECT(DEFINE_DIRECT)
FOR_PLAIN(DEFINE_PLAIN)
static Product *const g_direct[] = {FOR_DIRECT(DIRECT)};
static Product *const g_plain[] = {FOR_PLAIN(PLAIN)};
/* clang-format on */

/* ---- a problem ---------------------------------------------------------------------------------
 */

typedef struct State {
    const EngWeightTiles *weights;
    bool direct;
    int n_tiles;    /* tiles of tokens: sizes differ by one at most */
    float *x;       /* per tile of m tokens: [k, m] */
    uint8_t *exact; /* [tokens], 1: computed in double precision */
    uint16_t *rows; /* [threads, k] scratch */
    double *wide;   /* [threads, 2 * k] scratch */
    float *panel;   /* [threads, CHUNK * 32, 32] */
    float *kept;    /* [threads, BLOCK_M, 32] */
} State;

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_weight_tiles_release(state->weights);
    eng_free(state->x);
    eng_free(state->exact);
    eng_free(state->rows);
    eng_free(state->wide);
    eng_free(state->panel);
    eng_free(state->kept);
    eng_free(state);
}

static EngStatus allocate(const EngProblem *problem, State *state, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    size_t tokens = (size_t)p->tokens, k = (size_t)p->k, threads = (size_t)problem->threads;
    EngStatus status =
        eng_alloc_or((void **)&state->x, tokens, k * sizeof *state->x, "expanded input", err);
    if (!status) status = eng_alloc_or((void **)&state->exact, tokens, 1, "token marks", err);
    if (!status)
        status = eng_alloc_or((void **)&state->rows, threads, k * sizeof *state->rows, "row", err);
    if (!status)
        status =
            eng_alloc_or((void **)&state->wide, threads, 2 * k * sizeof *state->wide, "row", err);
    if (status || state->direct) return status;
    status = eng_alloc_or((void **)&state->panel, threads,
                          CHUNK * ENG_TILE * ENG_TILE * sizeof *state->panel, "panels", err);
    if (!status)
        status = eng_alloc_or((void **)&state->kept, threads,
                              BLOCK_M * ENG_TILE * sizeof *state->kept, "sums", err);
    return status;
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "projection", err);
    if (status) goto done;
    pthread_once(&g_once, fill_order);
    state->direct = p->tokens <= DIRECT_M;
    state->n_tiles = (int)((p->tokens + PLAIN_M - 1) / PLAIN_M);
    status = allocate(problem, state, err);
    if (status) goto done;
    if (p->tokens) status = eng_weight_tiles_acquire(problem, &g_order, true, &state->weights, err);
done:
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

/* Tokens of tile i: first and count. */
static int tile_at(const EngProjectProblem *p, const State *state, int i, int64_t *first)
{
    int64_t to;
    eng_cpu_share(p->tokens, state->n_tiles, i, first, &to);
    return (int)(to - *first);
}

static void pack_x(const EngProjectProblem *p, const EngProjectArgs *args, const State *state,
                   int parts, int index)
{
    int64_t from, to, first;
    size_t k = (size_t)p->k;
    uint16_t *row = state->rows + (size_t)index * k;
    EngSafeRange range = eng_project_safe_range(state->weights, p->k);
    eng_cpu_share(p->tokens, parts, index, &from, &to);
    for (int i = 0; i < state->n_tiles; i++) {
        int count = tile_at(p, state, i, &first);
        for (int64_t t = first; t < first + count; t++) {
            if (t < from || t >= to) continue;
            float *x = state->x + (size_t)first * k + (size_t)(t - first);
            state->exact[t] = !eng_project_x_bf16(p, args, t, range, row);
            for (size_t j = 0; j < k; j++) x[j * (size_t)count] = eng_cpu_f32_of_bf16(row[j]);
        }
    }
}

/* Token tile i, outputs of `group`, and k tiles k0 .. k0 + k_tiles. */
static Job job_of(const EngProjectProblem *p, const EngProjectArgs *args, const State *state,
                  int64_t first, int count, int64_t group, int k0, int k_tiles)
{
    const EngWeightTiles *w = state->weights;
    size_t size = eng_dtype_bytes(p->out, 1), n = (size_t)p->n;
    size_t at = (size_t)group * (size_t)w->k_tiles + (size_t)k0;
    return (Job){.tiles = w->tiles + at * ENG_TILE_BYTES,
                 .scales = w->scales + at,
                 .k_tiles = k_tiles,
                 .x = state->x + (size_t)first * (size_t)p->k + (size_t)(k0 * ENG_TILE * count),
                 .start = k0 == 0,
                 .end = k0 + k_tiles == w->k_tiles,
                 .out =
                     (uint8_t *)args->out + ((size_t)first * n + (size_t)group * ENG_TILE) * size,
                 .out_stride = n * size,
                 .out_type = p->out};
}

static void run_blocks(const EngProjectProblem *p, const EngProjectArgs *args, const State *state,
                       int64_t from, int64_t to, int thread)
{
    float *panel = state->panel + (size_t)thread * CHUNK * ENG_TILE * ENG_TILE;
    float *kept = state->kept + (size_t)thread * BLOCK_M * ENG_TILE;
    int k_tiles = state->weights->k_tiles, per_block = BLOCK_M / PLAIN_M;
    int64_t first, block_first;
    for (int block = 0; block < state->n_tiles; block += per_block) {
        tile_at(p, state, block, &block_first);
        for (int64_t g = from; g < to; g++) {
            for (int k0 = 0; k0 < k_tiles; k0 += CHUNK) {
                int n = k_tiles - k0 < CHUNK ? k_tiles - k0 : CHUNK;
                for (int i = block; i < state->n_tiles && i < block + per_block; i++) {
                    int count = tile_at(p, state, i, &first);
                    Job job = job_of(p, args, state, first, count, g, k0, n);
                    if (i == block) expand_panel(&job, panel);
                    job.panel = panel;
                    job.kept = kept + (size_t)(first - block_first) * ENG_TILE;
                    g_plain[count](&job);
                }
            }
        }
    }
}

static void run_direct(const EngProjectProblem *p, const EngProjectArgs *args, const State *state,
                       int64_t from, int64_t to)
{
    for (int64_t g = from; g < to; g++) {
        Job job = job_of(p, args, state, 0, (int)p->tokens, g, 0, state->weights->k_tiles);
        g_direct[p->tokens](&job);
    }
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    const State *state = opaque;
    const EngExactX x = {p, &args->u.project};
    int threads = problem->threads;
    (void)err;
    if (!p->tokens) return ENG_OK;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        int thread = omp_get_thread_num();
        pack_x(p, &args->u.project, state, omp_get_num_threads(), thread);
#pragma omp barrier
        eng_cpu_share(state->weights->groups, omp_get_num_threads(), thread, &from, &to);
        if (state->direct)
            run_direct(p, &args->u.project, state, from, to);
        else
            run_blocks(p, &args->u.project, state, from, to, thread);
        eng_project_run_exact(p, eng_project_exact_x, &x, args->u.project.out, state->weights,
                              state->exact, from, to,
                              state->wide + (size_t)thread * 2 * (size_t)p->k);
    }
    return ENG_OK;
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_project_tiles_supports(problem, why);
    return status ? status : eng_isa_require(ENG_ISA_AVX2, why);
}

const EngKernel eng_cpu_project_avx2 = {
    .op = ENG_OP_PROJECT,
    .name = "avx2",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "fp8 weights become f32 in registers or a small panel; f32 FMA",
    .supports = supports,
    .cost = eng_cpu_project_cost,
    .create = create,
    .run = run,
    .destroy = destroy,
};
#endif
