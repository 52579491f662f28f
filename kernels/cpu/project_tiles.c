/* Tiles of fp8 weights with their cache, and the exact path beside the fast kernels; see
 * project_tiles.h.
 */
#include "kernels/cpu/project_tiles.h"

#include "kernels/cpu/common.h"
#include "kernels/cpu/decode.h"

#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

typedef struct Key {
    const uint8_t *w, *w_scales;
    int n, k;
    const EngTileOrder *order;
    bool nan_is_exact;
    uint64_t digest; /* memory may have been freed and given to other weights */
} Key;

typedef struct Entry {
    EngWeightTiles tiles; /* first: handed out as a pointer to it */
    struct Entry *next;
    Key key;
    int users;
} Entry;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static Entry *g_entries;

EngStatus eng_project_tiles_supports(const EngProblem *problem, EngErr *why)
{
    const EngProjectProblem *p = &problem->u.project;
    EngStatus status = eng_cpu_project_supports(problem, why);
    if (status) return status;
    if (p->weights != ENG_FP8)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "weights must be fp8, not %s",
                        eng_dtype_name(p->weights));
    return ENG_OK;
}

void eng_cpu_huge_pages(void *block, size_t bytes)
{
    const uintptr_t page = (uintptr_t)2 << 20;
    uintptr_t from = ((uintptr_t)block + page - 1) & ~(page - 1);
    uintptr_t to = ((uintptr_t)block + bytes) & ~(page - 1);
    if (from >= to) return;
    /* The allocator has touched the small pages: give them back, so that the next touch gets large
     * ones. Both calls are hints; memory that was given back reads as zeros. */
    if (madvise((void *)from, to - from, MADV_HUGEPAGE)) return;
    (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

/* ---- packing -----------------------------------------------------------------------------------
 */

static bool has_nan(const uint8_t *tile)
{
    int found = 0;
    for (int i = 0; i < ENG_TILE_BYTES; i++) found |= (tile[i] & 0x7f) == 0x7f;
    return found;
}

static bool is_zero(const uint8_t *tile)
{
    unsigned any = 0;
    for (int i = 0; i < ENG_TILE_BYTES; i++) any |= tile[i] & 0x7fu;
    return !any;
}

static void pack_group(const EngProjectProblem *p, const Key *key, EngWeightTiles *out, int group)
{
    size_t k = (size_t)p->k, k_tiles = (size_t)out->k_tiles;
    const uint8_t *rows = p->w + (size_t)group * ENG_TILE * k;
    for (size_t i = 0; i < k_tiles; i++) {
        uint8_t *tile = out->tiles + ((size_t)group * k_tiles + i) * ENG_TILE_BYTES;
        uint8_t scale = p->w_scales[(size_t)group * k_tiles + i];
        uint8_t plain[ENG_TILE_BYTES];
        for (size_t j = 0; j < ENG_TILE; j++)
            memcpy(plain + j * ENG_TILE, rows + j * k + i * ENG_TILE, ENG_TILE);
        for (size_t b = 0; b < ENG_TILE_BYTES; b++) tile[b] = plain[key->order->order[b]];
        if (scale != 255 && is_zero(plain)) scale = 127;
        if (scale < ENG_TILE_SCALE_MIN || scale > ENG_TILE_SCALE_MAX ||
            (key->nan_is_exact && has_nan(plain))) {
            out->exact[group] = 1;
            scale = 127; /* the kernel's result is replaced */
        }
        out->scales[(size_t)group * k_tiles + i] = scale;
    }
}

static void free_entry(Entry *entry)
{
    if (!entry) return;
    eng_free(entry->tiles.tiles);
    eng_free(entry->tiles.scales);
    eng_free(entry->tiles.exact);
    eng_free(entry);
}

static void find_scale_range(EngWeightTiles *tiles)
{
    tiles->min_scale = tiles->max_scale = 127;
    for (size_t g = 0; g < (size_t)tiles->groups; g++)
        for (size_t i = 0; !tiles->exact[g] && i < (size_t)tiles->k_tiles; i++) {
            int scale = tiles->scales[g * (size_t)tiles->k_tiles + i];
            if (scale < tiles->min_scale) tiles->min_scale = scale;
            if (scale > tiles->max_scale) tiles->max_scale = scale;
        }
}

static EngStatus make(const EngProblem *problem, const Key *key, Entry **out, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    Entry *made = NULL;
    size_t n_tiles = (size_t)(p->n / ENG_TILE) * (size_t)(p->k / ENG_TILE);
    int threads = problem->threads;
    EngStatus status = eng_alloc_or((void **)&made, 1, sizeof *made, "weight tiles", err);
    if (status) goto done;
    EngWeightTiles *tiles = &made->tiles;
    made->key = *key;
    tiles->groups = p->n / ENG_TILE;
    tiles->k_tiles = p->k / ENG_TILE;
    status = eng_alloc_or((void **)&tiles->tiles, n_tiles, ENG_TILE_BYTES, "weight tiles", err);
    if (status) goto done;
    eng_cpu_huge_pages(tiles->tiles, n_tiles * ENG_TILE_BYTES);
    status = eng_alloc_or((void **)&tiles->scales, n_tiles, 1, "weight scales", err);
    if (status) goto done;
    status = eng_alloc_or((void **)&tiles->exact, (size_t)tiles->groups, 1, "weight marks", err);
    if (status) goto done;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int g = 0; g < tiles->groups; g++) pack_group(p, key, tiles, g);
    find_scale_range(tiles);
done:
    if (status) {
        free_entry(made);
        made = NULL;
    }
    *out = made;
    return status;
}

/* ---- cache -------------------------------------------------------------------------------------
 */

/* Over all bytes: eight sums that do not wait for each other run at the speed of memory. */
static uint64_t digest(uint64_t hash, const uint8_t *bytes, size_t n)
{
    uint64_t lanes[8];
    size_t i = 0;
    for (int l = 0; l < 8; l++) lanes[l] = hash + (uint64_t)l;
    for (; i + sizeof lanes <= n; i += sizeof lanes)
        for (size_t l = 0; l < 8; l++) {
            uint64_t word;
            memcpy(&word, bytes + i + 8 * l, sizeof word);
            lanes[l] = (lanes[l] ^ word) * 0x9e3779b97f4a7c15u;
            lanes[l] ^= lanes[l] >> 32;
        }
    for (; i < n; i++) lanes[i % 8] = (lanes[i % 8] ^ bytes[i]) * 0x9e3779b97f4a7c15u;
    for (int l = 0; l < 8; l++) hash = (hash ^ lanes[l]) * 0x100000001b3u;
    return hash;
}

static bool same_key(const Key *a, const Key *b)
{
    return a->w == b->w && a->w_scales == b->w_scales && a->n == b->n && a->k == b->k &&
           a->order == b->order && a->nan_is_exact == b->nan_is_exact && a->digest == b->digest;
}

EngStatus eng_weight_tiles_acquire(const EngProblem *problem, const EngTileOrder *order,
                                   bool nan_is_exact, const EngWeightTiles **out, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    size_t values = (size_t)p->n * (size_t)p->k;
    Key key = {p->w, p->w_scales, p->n, p->k, order, nan_is_exact, 0};
    key.digest = digest(0xcbf29ce484222325u, p->w, values);
    key.digest = digest(key.digest, p->w_scales, values / ENG_TILE_BYTES);
    Entry *entry;
    *out = NULL;
    pthread_mutex_lock(&g_lock);
    for (entry = g_entries; entry && !same_key(&entry->key, &key);) entry = entry->next;
    if (entry) entry->users++;
    pthread_mutex_unlock(&g_lock);
    if (!entry) {
        EngStatus status = make(problem, &key, &entry, err);
        if (status) return status;
        entry->users = 1;
        pthread_mutex_lock(&g_lock);
        entry->next = g_entries;
        g_entries = entry;
        pthread_mutex_unlock(&g_lock);
    }
    *out = &entry->tiles;
    return ENG_OK;
}

void eng_weight_tiles_release(const EngWeightTiles *tiles)
{
    if (!tiles) return;
    pthread_mutex_lock(&g_lock);
    for (Entry *entry = g_entries; entry; entry = entry->next)
        if (&entry->tiles == tiles) entry->users--;
    pthread_mutex_unlock(&g_lock);
}

void eng_weight_tiles_clear(void)
{
    pthread_mutex_lock(&g_lock);
    for (Entry **link = &g_entries; *link;) {
        Entry *entry = *link;
        if (entry->users) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        free_entry(entry);
    }
    pthread_mutex_unlock(&g_lock);
}

int eng_weight_tiles_entries(void)
{
    int n = 0;
    pthread_mutex_lock(&g_lock);
    for (Entry *entry = g_entries; entry; entry = entry->next) n++;
    pthread_mutex_unlock(&g_lock);
    return n;
}

/* ---- input and the exact path ------------------------------------------------------------------
 */

/* Smallest nonzero magnitude as bf16 bits, 0xffff when all are zero, and largest finite one. */
ENG_CLONES static void magnitudes(const uint16_t *bits, int k, uint16_t *least, uint16_t *most)
{
    uint16_t low = 0xffff, high = 0;
    for (int i = 0; i < k; i++) {
        uint16_t magnitude = bits[i] & 0x7fff;
        uint16_t wrapped = (uint16_t)(magnitude - 1); /* 0 becomes the largest */
        uint16_t finite = magnitude < 0x7f80 ? magnitude : 0;
        low = wrapped < low ? wrapped : low;
        high = finite > high ? finite : high;
    }
    *least = low == 0xffff ? low : (uint16_t)(low + 1);
    *most = high;
}

/* A group whose scale is out of range does no harm when all its values are zero. */
static bool plain_groups(const uint8_t *codes, const uint8_t *scales, int groups)
{
    for (int g = 0; g < groups; g++) {
        if (scales[g] >= 10 && scales[g] <= 246) continue;
        unsigned any = scales[g] == 255;
        for (int i = 0; i < ENG_SCALE_GROUP; i++) any |= codes[g * ENG_SCALE_GROUP + i] & 0x7fu;
        if (any) return false;
    }
    return true;
}

/* Weights are 2^(min_scale - 136) or more. With every product 2^-102 or more, what is lost below
 * 2^-126 is under 2^-24 of any of them. And k products of weights below 2^(max_scale - 118) must
 * add up in f32. */
EngSafeRange eng_project_safe_range(const EngWeightTiles *tiles, int k)
{
    EngSafeRange range = {.low = 136 - 102 - tiles->min_scale + 127,
                          .high = 118 - tiles->max_scale + 127 + 127};
    for (int64_t terms = 1; terms < k; terms *= 2) range.high--;
    return range;
}

bool eng_project_is_safe(EngSafeRange range, const uint16_t *words, int n, const uint8_t *codes,
                         const uint8_t *scales)
{
    uint16_t least, most;
    magnitudes(words, n, &least, &most);
    return least >> 7 >= range.low && most >> 7 < range.high &&
           (!codes || plain_groups(codes, scales, n / ENG_SCALE_GROUP));
}

bool eng_project_x_bf16(const EngProjectProblem *p, const EngProjectArgs *args, int64_t t,
                        EngSafeRange range, uint16_t *out)
{
    size_t k = (size_t)p->k;
    const uint8_t *codes = NULL, *scales = NULL;
    if (p->x == ENG_BF16) {
        memcpy(out, (const uint8_t *)args->x + 2 * (size_t)t * k, 2 * k);
    } else {
        codes = (const uint8_t *)args->x + (size_t)t * k;
        scales = args->x_scales + (size_t)t * (k / ENG_SCALE_GROUP);
        eng_cpu_decode_bf16(codes, scales, p->k / ENG_SCALE_GROUP, out);
    }
    return eng_project_is_safe(range, out, p->k, codes, scales);
}

static double scale_of(uint8_t byte)
{
    return byte == 255 ? (double)NAN : ldexp(1, byte - 127);
}

void eng_project_widen_fp8(const uint8_t *codes, const uint8_t *scales, int n, double *out)
{
    static const uint8_t one = 127;
    for (int i = 0; i < n; i += ENG_SCALE_GROUP) {
        float values[ENG_SCALE_GROUP];
        double scale = scale_of(scales[i / ENG_SCALE_GROUP]);
        eng_cpu_decode_f32(codes + i, &one, 1, values);
        for (int j = 0; j < ENG_SCALE_GROUP; j++) out[i + j] = values[j] * scale;
    }
}

void eng_project_widen_bf16(const uint8_t *words, int n, double *out)
{
    for (int i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, words + 2 * (size_t)i, sizeof bits);
        out[i] = eng_cpu_f32_of_bf16(bits);
    }
}

void eng_project_exact_x(const void *context, int64_t t, double *x)
{
    const EngProjectProblem *p = ((const EngExactX *)context)->problem;
    const EngProjectArgs *args = ((const EngExactX *)context)->args;
    size_t k = (size_t)p->k;
    if (p->x == ENG_FP8)
        eng_project_widen_fp8((const uint8_t *)args->x + (size_t)t * k,
                              args->x_scales + (size_t)t * (k / ENG_SCALE_GROUP), p->k, x);
    else
        eng_project_widen_bf16((const uint8_t *)args->x + 2 * (size_t)t * k, p->k, x);
}

/* One group's outputs of token t. w: room for a row of weights. */
static void exact_group(const EngProjectProblem *p, const double *x, int64_t t, int64_t group,
                        void *out, double *w)
{
    size_t k = (size_t)p->k;
    for (size_t j = (size_t)group * ENG_TILE; j < (size_t)(group + 1) * ENG_TILE; j++) {
        double sum = 0;
        eng_project_widen_fp8(p->w + j * k, p->w_scales + j / ENG_TILE * (k / ENG_SCALE_GROUP),
                              p->k, w);
        for (size_t i = 0; i < k; i++) sum += x[i] * w[i];
        size_t at = (size_t)t * (size_t)p->n + j;
        float value = (float)sum;
        uint16_t bits = eng_cpu_bf16_of(value);
        if (p->out == ENG_BF16)
            memcpy((uint8_t *)out + 2 * at, &bits, sizeof bits);
        else
            memcpy((uint8_t *)out + 4 * at, &value, sizeof value);
    }
}

void eng_project_run_exact(const EngProjectProblem *p, EngExactInput *input, const void *context,
                           void *out, const EngWeightTiles *tiles, const uint8_t *exact_tokens,
                           int64_t from, int64_t to, double *scratch)
{
    for (int64_t t = 0; t < p->tokens; t++) {
        bool read = false;
        for (int64_t g = from; g < to; g++) {
            if (!exact_tokens[t] && !tiles->exact[g]) continue;
            if (!read) input(context, t, scratch);
            read = true;
            exact_group(p, scratch, t, g, out, scratch + p->k);
        }
    }
}
