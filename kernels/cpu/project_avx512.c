/* Projection on fp8 weights with AVX-512 VBMI and BF16: weights stay one byte in memory and become
 * bf16 in registers, so a product with few tokens reads half of what a bf16 one does.
 *
 * Expansion: for the scale of a tile, two 128-byte tables give the upper and the lower byte of each
 * code's bf16 value, scale included. Two byte permutes, one merge of the sign and two unpacks make
 * 64 codes into two vectors of 16 outputs x 2 inputs, the operand of the bf16 dot instruction.
 * NaN codes are table entries like any other.
 *
 * Few tokens (up to DIRECT_MAX): a group of 32 outputs keeps all its sums in registers while its
 * weights stream past. More: weights of a block of groups are expanded to a panel that stays in
 * the second-level cache and multiplied tile by tile of tokens. In both, sums of an output run
 * along k in order, in f32: results do not depend on threads.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/project.h"
#include "kernels/cpu/project_avx512.h"

#include "base/mem.h"

#if ENG_X86
#include <immintrin.h>
#include <omp.h>
#include <pthread.h>

#define INLINE ENG_TARGET_AVX512_BF16 static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

/* Tokens of a register tile: two sums each, beside tables and operands. */
#define FUSED_M  10 /* where weights are expanded on the way */
#define PLAIN_M  14
#define DIRECT_M 11 /* up to here one tile is enough; one more is spilled, at little cost */

/* What `engram tune` may change. The defaults are the best of a search at 25,600 x 6,144. */
enum { AHEAD, CHUNK, BLOCK, GROUPS };
const EngTunable eng_project_avx512_tunables[] = {
    {"ahead", 1, 4096, 128, "32,64,128,256", "lines of weights asked for early"},
    {"chunk", 1, 1024, 0, "8,16,32,64,192", "tiles of 32 inputs expanded at a time"},
    {"block", 32, 4096, 256, "128,256,512", "tokens between two expansions"},
    {"groups", 1, 64, 1, "1,2,4", "groups of 32 outputs that share an input in the cache"},
    {0},
};
/* While x as a whole stays in the second-level cache, expanded weights belong in the first. After
 * that they take the second, as many of a group's as leave room for a tile of x: sums then stay in
 * registers from the first input to the last, and both operands come in at a tenth of what that
 * cache gives. At 256 tokens and more this runs at 97 % of the dot instruction's rate on operands
 * in the first-level cache (and a library product at 96 %): there is no more to be had. */
#define WHOLE_X_BYTES (768 << 10)
#define CHUNK_WHOLE   16
#define CHUNK_LONG    192

#define PAIRS         (ENG_TILE / 2) /* pairs of inputs in a tile */

/* Upper bytes of codes 0 .. 127, then lower bytes. */
typedef struct Table {
    uint8_t bytes[256];
} Table;

static Table g_tables[ENG_TILE_SCALE_MAX + 1];
static EngTileOrder g_order = {.name = "avx512"};
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

/* Unpacking bytes 0..7 of each 128-bit lane gives its four outputs with inputs 0 and 1, bytes 8..15
 * the same outputs with inputs 2 and 3. Vectors alternate between outputs 0..15 and 16..31. */
static void fill_tables(void)
{
    for (int b = 0; b < ENG_TILE_BYTES; b++) {
        int k4 = b / 128, half = b / 64 % 2, lane = b / 16 % 4, at = b % 16;
        int n = half * 16 + lane * 4 + at % 8 / 2, k = k4 * 4 + at / 8 * 2 + at % 2;
        g_order.order[b] = (uint16_t)(n * ENG_TILE + k);
    }
    for (int scale = ENG_TILE_SCALE_MIN; scale <= ENG_TILE_SCALE_MAX; scale++) {
        for (int code = 0; code < 128; code++) {
            int e = code >> 3, m = code & 7;
            float value = e ? (float)(8 + m) : (float)m; /* times 2^(max(e, 1) - 10) */
            float power = eng_cpu_float_of((uint32_t)(scale - 10 + (e ? e : 1)) << 23);
            uint16_t bits = code == 127 ? 0x7fc0 : eng_cpu_bf16_of(value * power);
            g_tables[scale].bytes[code] = (uint8_t)(bits >> 8);
            g_tables[scale].bytes[128 + code] = (uint8_t)bits;
        }
    }
}

/* ---- expansion ---------------------------------------------------------------------------------
 */

typedef struct Tables {
    __m512i high0, high1, low0, low1;
} Tables;

INLINE Tables load_tables(uint8_t scale)
{
    const uint8_t *bytes = g_tables[scale].bytes;
    return (Tables){_mm512_loadu_si512(bytes), _mm512_loadu_si512(bytes + 64),
                    _mm512_loadu_si512(bytes + 128), _mm512_loadu_si512(bytes + 192)};
}

INLINE void expand(const uint8_t *codes, const Tables *t, __m512i *first, __m512i *second)
{
    __m512i v = _mm512_loadu_si512(codes);
    __m512i high = _mm512_permutex2var_epi8(t->high0, v, t->high1);
    __m512i low = _mm512_permutex2var_epi8(t->low0, v, t->low1);
    high = _mm512_ternarylogic_epi32(high, v, _mm512_set1_epi8((char)0x80), 0xf8); /* a | b & c */
    *first = _mm512_unpacklo_epi8(low, high);
    *second = _mm512_unpackhi_epi8(low, high);
}

INLINE __m512 dot(__m512 sum, __m512i w, __m512i x)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)w, (__m512bh)x);
}

/* One load for both halves: an embedded broadcast would be loaded once for each. */
INLINE __m512i broadcast(const uint32_t *x)
{
    __m512i v = _mm512_set1_epi32((int)*x);
    __asm__("" : "+v"(v));
    return v;
}

INLINE void store_row(uint8_t *to, EngDtype type, __m512 first, __m512 second)
{
    if (type == ENG_BF16) {
        __m512bh both = _mm512_cvtne2ps_pbh(second, first);
        _mm512_storeu_si512(to, (__m512i)both);
    } else {
        _mm512_storeu_ps(to, first);
        _mm512_storeu_ps(to + 64, second);
    }
}

/* ---- products of a register tile ---------------------------------------------------------------
 */

/* sums[m, 32] = (or += ) x . w^T for the 32 outputs of a group. */
typedef struct Job {
    const uint8_t *tiles; /* [k_tiles, 1024] */
    const uint8_t *scales;
    int k_tiles;
    const uint32_t *x;    /* [k_tiles * 16, m] pairs */
    uint32_t *panel;      /* [k_tiles * 16, 32] words: expanded weights, written or read */
    float *kept;          /* [m, 32] sums before and after; not used where start and end are set */
    const uint8_t *ahead; /* weights a plain tile fetches meanwhile, a line per pair; or NULL */
    size_t codes_ahead;   /* bytes a fused one fetches early */
    bool start, end;      /* whether k starts or ends here: sums are 0 or go to the output */
    uint8_t *out;
    size_t out_stride;
    EngDtype out_type;
} Job;

INLINE void start_sums(const Job *job, const int m, __m512 *sums)
{
    /* Loads under a mask: zeroing in a branch makes the compiler copy the array in memory. */
    __mmask16 mask = job->start ? 0 : 0xffff;
    UNROLL for (int i = 0; i < 2 * m; i++) sums[i] =
        _mm512_maskz_loadu_ps(mask, job->kept + 16 * i);
}

/* Lines of the output lie far apart and are written once: asked for while the tile is computed,
 * they do not hold up the stores. */
INLINE void request_output(const Job *job, const int m)
{
    if (!job->end) return;
    const uint8_t *out = job->out;
    UNROLL for (int i = 0; i < m; i++, out += job->out_stride) _mm_prefetch(out, _MM_HINT_T0);
}

INLINE void end_sums(const Job *job, const int m, const __m512 *sums)
{
    if (!job->end) {
        UNROLL for (int i = 0; i < 2 * m; i++) _mm512_storeu_ps(job->kept + 16 * i, sums[i]);
        return;
    }
    uint8_t *out = job->out;
    UNROLL for (int i = 0; i < m; i++, out += job->out_stride)
        store_row(out, job->out_type, sums[2 * i], sums[2 * i + 1]);
}

/* Weights are expanded on the way, and kept in the panel when `keep` is set. Few sums need two
 * chains each: a dot instruction takes longer than the others need to issue. */
INLINE void fused(const Job *job, const int m, const int chains, const bool keep)
{
    __m512 sums[4 * FUSED_M + 8];
    const uint8_t *codes = job->tiles, *codes_ahead = codes + job->codes_ahead;
    const uint32_t *x = job->x;
    uint32_t *panel = job->panel;
    start_sums(job, m, sums);
    request_output(job, m);
    UNROLL for (int i = 2 * m; i < 2 * m * chains; i++) sums[i] = _mm512_setzero_ps();
    for (int tile = 0; tile < job->k_tiles; tile++) {
        Tables tables = load_tables(job->scales[tile]);
        for (int quad = 0; quad < ENG_TILE / 4;
             quad++, codes += 128, codes_ahead += 128, x += 2 * m) {
            __m512i w[2][2];
            _mm_prefetch(codes_ahead, _MM_HINT_T0);
            _mm_prefetch(codes_ahead + 64, _MM_HINT_T0);
            expand(codes, &tables, &w[0][0], &w[1][0]);
            expand(codes + 64, &tables, &w[0][1], &w[1][1]);
            if (keep) {
                UNROLL for (int i = 0; i < 4; i++)
                    _mm512_store_si512(panel + 16 * i, w[i / 2][i % 2]);
                panel += 64;
            }
            UNROLL for (int pair = 0; pair < 2; pair++)
            {
                int base = chains == 2 ? pair * 2 * m : 0;
                UNROLL for (int i = 0; i < m; i++)
                {
                    __m512i xi = broadcast(x + pair * m + i);
                    sums[base + 2 * i] = dot(sums[base + 2 * i], w[pair][0], xi);
                    sums[base + 2 * i + 1] = dot(sums[base + 2 * i + 1], w[pair][1], xi);
                }
            }
        }
    }
    if (chains == 2) {
        UNROLL for (int i = 0; i < 2 * m; i++) sums[i] = _mm512_add_ps(sums[i], sums[2 * m + i]);
    }
    end_sums(job, m, sums);
}

/* Weights come from the panel. */
INLINE void plain(const Job *job, const int m)
{
    __m512 sums[2 * PLAIN_M];
    const uint32_t *x = job->x, *panel = job->panel;
    const uint8_t *ahead = job->ahead;
    start_sums(job, m, sums);
    request_output(job, m);
    /* Sums of the next tile, most likely of the same size; asking for memory beyond is harmless. */
    if (!job->start)
        UNROLL for (int i = 2 * m; i < 4 * m; i++) _mm_prefetch(job->kept + 16 * i, _MM_HINT_T0);
    for (int pair = 0; pair < job->k_tiles * PAIRS; pair++, panel += 32, x += m) {
        __m512i w0 = _mm512_load_si512(panel), w1 = _mm512_load_si512(panel + 16);
        if (ahead) {
            _mm_prefetch(ahead, _MM_HINT_T1);
            ahead += 64;
        }
        UNROLL for (int i = 0; i < m; i++)
        {
            __m512i xi = broadcast(x + i);
            sums[2 * i] = dot(sums[2 * i], w0, xi);
            sums[2 * i + 1] = dot(sums[2 * i + 1], w1, xi);
        }
    }
    end_sums(job, m, sums);
}

typedef void Product(const Job *job);

/* clang-format off */
#define FOR_10(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10)
#define DEFINE_DIRECT(m) \
    ENG_TARGET_AVX512_BF16 static void direct_##m(const Job *job) \
    { fused(job, m, m <= 4 ? 2 : 1, false); }
#define DEFINE_FUSED(m) \
    ENG_TARGET_AVX512_BF16 static void fused_##m(const Job *job) { fused(job, m, 1, true); }
#define DEFINE_PLAIN(m) \
    ENG_TARGET_AVX512_BF16 static void plain_##m(const Job *job) { plain(job, m); }
#define DIRECT(m) [m] = direct_##m,
#define FUSED(m) [m] = fused_##m,
#define PLAIN(m) [m] = plain_##m,
FOR_10(DEFINE_DIRECT) DEFINE_DIRECT(11)
FOR_10(DEFINE_FUSED)
FOR_10(DEFINE_PLAIN) DEFINE_PLAIN(11) DEFINE_PLAIN(12) DEFINE_PLAIN(13) DEFINE_PLAIN(14)
static Product *const g_direct[] = {FOR_10(DIRECT) DIRECT(11)};
static Product *const g_fused[] = {FOR_10(FUSED)};
static Product *const g_plain[] = {FOR_10(PLAIN) PLAIN(11) PLAIN(12) PLAIN(13) PLAIN(14)};
/* clang-format on */

/* ---- a problem ---------------------------------------------------------------------------------
 */

typedef struct State {
    const EngWeightTiles *weights;
    EngTokenTile *tiles;
    int n_tiles;
    bool direct;
    uint32_t *x; /* see EngPackedX, and so are exact, any_exact and rows */
    uint8_t *exact;
    bool any_exact;
    uint16_t *rows;
    double *wide;    /* [threads, 2 * k] scratch */
    uint32_t *panel; /* [threads, chunk * 16, 32] */
    float *kept;     /* [threads, block_groups, tokens of a block, 32] */
    size_t block_tokens;
    int ahead, chunk, block, block_groups; /* settings */
} State;

void eng_project_avx512_destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_weight_tiles_release(state->weights);
    eng_free(state->tiles);
    eng_free(state->x);
    eng_free(state->exact);
    eng_free(state->rows);
    eng_free(state->wide);
    eng_free(state->panel);
    eng_free(state->kept);
    eng_free(state);
}

/* Cuts tokens into blocks, and each into one fused tile and plain ones of nearly equal size. */
static void cut_tokens(int64_t tokens, State *state)
{
    int64_t blocks = (tokens + state->block - 1) / state->block, from, to;
    if (state->direct) {
        state->tiles[0] = (EngTokenTile){0, (int)tokens, true};
        state->n_tiles = tokens > 0;
        return;
    }
    for (int64_t b = 0; b < blocks; b++) {
        eng_cpu_share(tokens, (int)blocks, (int)b, &from, &to);
        int64_t size = to - from, plain_tiles = (size - FUSED_M + PLAIN_M - 1) / PLAIN_M;
        int64_t first = size / (plain_tiles + 1) < FUSED_M ? size / (plain_tiles + 1) : FUSED_M;
        state->tiles[state->n_tiles++] = (EngTokenTile){from, (int)first, true};
        for (int64_t i = 0; i < plain_tiles; i++) {
            int64_t a, z;
            eng_cpu_share(size - first, (int)plain_tiles, (int)i, &a, &z);
            state->tiles[state->n_tiles++] = (EngTokenTile){from + first + a, (int)(z - a), false};
        }
        if (size > (int64_t)state->block_tokens) state->block_tokens = (size_t)size;
    }
}

static EngStatus allocate(const EngProblem *problem, State *state, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    size_t tokens = (size_t)p->tokens, k = (size_t)p->k, threads = (size_t)problem->threads;
    EngStatus status = eng_alloc_or((void **)&state->tiles, tokens / PLAIN_M + tokens / 32 + 4,
                                    2 * sizeof *state->tiles, "token tiles", err);
    if (status) return status;
    cut_tokens(p->tokens, state);
    status = eng_alloc_or((void **)&state->x, tokens, k * sizeof(uint16_t), "packed input", err);
    if (!status) status = eng_alloc_or((void **)&state->exact, tokens, 1, "token marks", err);
    if (!status)
        status = eng_alloc_or((void **)&state->rows, threads, k * sizeof *state->rows, "row", err);
    if (!status)
        status =
            eng_alloc_or((void **)&state->wide, threads, 2 * k * sizeof *state->wide, "row", err);
    if (status || state->direct) return status;
    eng_cpu_huge_pages(state->x, tokens * k * sizeof(uint16_t));
    status =
        eng_alloc_or((void **)&state->panel, threads,
                     (size_t)state->chunk * PAIRS * ENG_TILE * sizeof *state->panel, "panels", err);
    if (!status)
        status = eng_alloc_or((void **)&state->kept, threads * (size_t)state->block_groups,
                              state->block_tokens * ENG_TILE * sizeof *state->kept, "sums", err);
    return status;
}

static void take_settings(const EngProblem *problem, State *state)
{
    const EngProjectProblem *p = &problem->u.project;
    const int *tuned = problem->tuned;
    bool whole = (size_t)p->tokens * (size_t)p->k * sizeof(uint16_t) <= WHOLE_X_BYTES;
    state->ahead = tuned[AHEAD] ? tuned[AHEAD] : eng_project_avx512_tunables[AHEAD].def;
    state->chunk = tuned[CHUNK] ? tuned[CHUNK] : whole ? CHUNK_WHOLE : CHUNK_LONG;
    if (state->chunk > p->k / ENG_TILE) state->chunk = p->k / ENG_TILE; /* room for no more */
    state->block = tuned[BLOCK] ? tuned[BLOCK] : eng_project_avx512_tunables[BLOCK].def;
    state->block_groups = tuned[GROUPS] ? tuned[GROUPS] : eng_project_avx512_tunables[GROUPS].def;
}

EngStatus eng_project_avx512_create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "projection", err);
    if (status) goto done;
    pthread_once(&g_once, fill_tables);
    state->direct = p->tokens <= DIRECT_M;
    take_settings(problem, state);
    status = allocate(problem, state, err);
    if (status) goto done;
    if (p->tokens)
        status = eng_weight_tiles_acquire(problem, &g_order, false, &state->weights, err);
done:
    if (status) {
        eng_project_avx512_destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

/* Rows of x: context is an EngExactX. */
static void pack_x(const void *context, const EngPackedX *x, int parts, int index)
{
    const EngExactX *from_x = context;
    int64_t from, to;
    uint16_t *row = x->rows + (size_t)index * (size_t)x->k;
    eng_cpu_share(x->tokens, parts, index, &from, &to);
    for (const EngTokenTile *tile = x->tiles; tile < x->tiles + x->n_tiles; tile++)
        for (int64_t t = tile->first; t < tile->first + tile->count; t++) {
            if (t < from || t >= to) continue;
            if (!eng_project_x_bf16(from_x->problem, from_x->args, t, x->safe, row))
                eng_packed_x_mark(x, t);
            eng_packed_x_spread(row, (size_t)x->k / 2, (size_t)tile->count,
                                eng_packed_x_at(x, tile, 0, t - tile->first));
        }
}

/* Tokens of `tile`, outputs of `group`, and k tiles k0 .. k0 + k_tiles. */
static Job job_of(const EngProjectProblem *p, uint8_t *out, const State *state,
                  const EngTokenTile *tile, int64_t group, int k0, int k_tiles)
{
    const EngWeightTiles *w = state->weights;
    size_t size = eng_dtype_bytes(p->out, 1), n = (size_t)p->n;
    size_t at = (size_t)group * (size_t)w->k_tiles + (size_t)k0;
    size_t x_at =
        (size_t)tile->first * ((size_t)p->k / 2) + (size_t)k0 * PAIRS * (size_t)tile->count;
    return (Job){.tiles = w->tiles + at * ENG_TILE_BYTES,
                 .scales = w->scales + at,
                 .k_tiles = k_tiles,
                 .codes_ahead = (size_t)state->ahead * 64,
                 .x = state->x + x_at,
                 .start = k0 == 0,
                 .end = k0 + k_tiles == w->k_tiles,
                 .out = out + ((size_t)tile->first * n + (size_t)group * ENG_TILE) * size,
                 .out_stride = n * size,
                 .out_type = p->out};
}

/* One chunk of a group's weights times the tiles of a block of tokens. Returns the end of these. */
static const EngTokenTile *run_chunk(const EngProjectProblem *p, uint8_t *out, const State *state,
                                     const EngTokenTile *block, int64_t group, int k0,
                                     uint32_t *panel, float *kept)
{
    int left = state->weights->k_tiles - k0, k_tiles = left < state->chunk ? left : state->chunk;
    const EngTokenTile *tile = block;
    for (; tile < state->tiles + state->n_tiles && (tile == block || !tile->starts_block); tile++) {
        Job job = job_of(p, out, state, tile, group, k0, k_tiles);
        job.panel = panel;
        job.kept = kept + (size_t)(tile->first - block->first) * ENG_TILE;
        /* The first plain tile fetches the group's next weights for the others. */
        if (tile == block + 1) job.ahead = job.tiles + (size_t)k_tiles * ENG_TILE_BYTES;
        (tile == block ? g_fused : g_plain)[tile->count](&job);
    }
    return tile;
}

static void run_blocks(const EngProjectProblem *p, uint8_t *out, const State *state, int64_t from,
                       int64_t to, int thread)
{
    uint32_t *panel = state->panel + (size_t)(thread * state->chunk) * PAIRS * ENG_TILE;
    size_t kept_size = state->block_tokens * ENG_TILE;
    float *kept = state->kept + (size_t)(thread * state->block_groups) * kept_size;
    const EngTokenTile *block = state->tiles, *next = block;
    for (; block < state->tiles + state->n_tiles; block = next)
        for (int64_t g0 = from; g0 < to; g0 += state->block_groups)
            for (int k0 = 0; k0 < state->weights->k_tiles; k0 += state->chunk)
                for (int64_t g = g0; g < to && g < g0 + state->block_groups; g++)
                    next = run_chunk(p, out, state, block, g, k0, panel,
                                     kept + (size_t)(g - g0) * kept_size);
}

static void run_direct(const EngProjectProblem *p, uint8_t *out, const State *state, int64_t from,
                       int64_t to)
{
    for (int64_t g = from; g < to; g++) {
        Job job = job_of(p, out, state, state->tiles, g, 0, state->weights->k_tiles);
        g_direct[p->tokens](&job);
    }
}

void eng_project_avx512_run(void *opaque, const EngProblem *problem, const EngInputSource *source,
                            void *out)
{
    const EngProjectProblem *p = &problem->u.project;
    State *state = opaque;
    int threads = problem->threads;
    if (!p->tokens) return;
    const EngPackedX x = {.tiles = state->tiles,
                          .n_tiles = state->n_tiles,
                          .tokens = p->tokens,
                          .k = p->k,
                          .safe = eng_project_safe_range(state->weights, p->k),
                          .pairs = state->x,
                          .exact = state->exact,
                          .rows = state->rows,
                          .any_exact = &state->any_exact};
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        int thread = omp_get_thread_num();
        source->pack(source->context, &x, omp_get_num_threads(), thread);
#pragma omp barrier
        eng_cpu_share(state->weights->groups, omp_get_num_threads(), thread, &from, &to);
        if (from < to) {
            if (state->direct)
                run_direct(p, out, state, from, to);
            else
                run_blocks(p, out, state, from, to, thread);
        }
        eng_project_run_exact(p, source->exact, source->context, out, state->weights, state->exact,
                              from, to, state->wide + (size_t)thread * 2 * (size_t)p->k);
    }
    if (state->any_exact) memset(state->exact, 0, (size_t)p->tokens);
    state->any_exact = false;
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    EngExactX x = {&problem->u.project, &args->u.project};
    EngInputSource source = {.pack = pack_x, .exact = eng_project_exact_x, .context = &x};
    (void)err;
    eng_project_avx512_run(state, problem, &source, args->u.project.out);
    return ENG_OK;
}

EngStatus eng_project_avx512_supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_project_tiles_supports(problem, why);
    return status ? status : eng_isa_require(ENG_ISA_AVX512 | ENG_ISA_VBMI | ENG_ISA_BF16, why);
}

const EngKernel eng_cpu_project_avx512 = {
    .op = ENG_OP_PROJECT,
    .name = "avx512",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "fp8 weights become bf16 in registers and a small panel; bf16 dot instructions",
    .tunables = eng_project_avx512_tunables,
    .supports = eng_project_avx512_supports,
    .cost = eng_cpu_project_cost,
    .create = eng_project_avx512_create,
    .run = run,
    .destroy = eng_project_avx512_destroy,
};
#endif
