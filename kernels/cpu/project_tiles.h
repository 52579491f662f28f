/* fp8 projection weights repacked for kernels that expand them on the fly. Internal to kernels/cpu.
 *
 * Weights are cut into tiles of 32 outputs x 32 inputs, which is what one e8m0 scale covers. A tile
 * is 1,024 bytes in an order that the kernel names; the tiles of one group of 32 outputs follow
 * each other along k, so that a product with few tokens reads one ascending stream per thread.
 *
 * bf16 dot instructions take subnormal operands and results as 0. Groups with a tile whose values
 * could get there (or overflow bf16) are marked: their outputs are computed in double
 * precision. Likewise tokens with tiny values. Both are rare enough to be slow.
 */
#ifndef ENG_KERNELS_CPU_PROJECT_TILES_H
#define ENG_KERNELS_CPU_PROJECT_TILES_H

#include <engram/kernels.h>

#define ENG_TILE       32
#define ENG_TILE_BYTES (ENG_TILE * ENG_TILE)

/* Scales with which every e4m3fn value is a normal bf16 and products keep away from subnormals. */
#define ENG_TILE_SCALE_MIN 64
#define ENG_TILE_SCALE_MAX 190

/* Byte b of a tile holds output order[b] / 32, input order[b] % 32 of it. */
typedef struct EngTileOrder {
    const char *name;
    uint16_t order[ENG_TILE_BYTES];
} EngTileOrder;

typedef struct EngWeightTiles {
    int groups, k_tiles;
    uint8_t *tiles;           /* [groups, k_tiles, 1024] */
    uint8_t *scales;          /* [groups, k_tiles]; 127 for a tile of zeros */
    uint8_t *exact;           /* [groups], 1: compute in double precision */
    int min_scale, max_scale; /* of groups that are not exact, and 127 */
} EngWeightTiles;

/* Repacked weights of `problem` (fp8), from the process's cache or made with problem->threads.
 * nan_is_exact marks groups that hold NaN codes as exact too. eng_project_cache_clear frees those
 * without users. */
EngStatus eng_weight_tiles_acquire(const EngProblem *problem, const EngTileOrder *order,
                                   bool nan_is_exact, const EngWeightTiles **out, EngErr *err);
void eng_weight_tiles_release(const EngWeightTiles *tiles); /* accepts NULL */
void eng_weight_tiles_clear(void);
int eng_weight_tiles_entries(void);

/* Asks for 2 MiB pages under a block from eng_alloc that was not written yet; it stays zeroed. */
void eng_cpu_huge_pages(void *block, size_t bytes);

/* ENG_OK for problems with fp8 weights that eng_cpu_project_supports accepts. */
EngStatus eng_project_tiles_supports(const EngProblem *problem, EngErr *why);

/* Biased exponents that nonzero finite inputs may have, from `low` to below `high`, so that the
 * fast kernels lose nothing of their products with these weights. */
typedef struct EngSafeRange {
    int low, high;
} EngSafeRange;
EngSafeRange eng_project_safe_range(const EngWeightTiles *tiles, int k);

/* Whether n values of a token, as bf16 words, are within the range; with the codes and scales that
 * an fp8 token had (NULL: it had none), whether none was lost in decoding. */
bool eng_project_is_safe(EngSafeRange range, const uint16_t *words, int n, const uint8_t *codes,
                         const uint8_t *scales);

/* Token t of x as bf16 words into out [k]. False when it is not safe: then its outputs have to be
 * exact ones. */
bool eng_project_x_bf16(const EngProjectProblem *p, const EngProjectArgs *args, int64_t t,
                        EngSafeRange range, uint16_t *out);

/* n fp8 codes with their scales, or n bf16 words at any alignment, as doubles. */
void eng_project_widen_fp8(const uint8_t *codes, const uint8_t *scales, int n, double *out);
void eng_project_widen_bf16(const uint8_t *words, int n, double *out);

/* Writes a token's inputs [k] in double precision. */
typedef void EngExactInput(const void *context, int64_t t, double *x);
/* The one of a projection: context is an EngExactX. */
typedef struct EngExactX {
    const EngProjectProblem *problem;
    const EngProjectArgs *args;
} EngExactX;
EngExactInput eng_project_exact_x;

/* Outputs of groups from .. to, computed in double precision, for all tokens that exact_tokens
 * marks, and of the marked groups for all tokens: what a fast kernel may have got wrong. out is the
 * whole product's, scratch 2 * k doubles. */
void eng_project_run_exact(const EngProjectProblem *p, EngExactInput *input, const void *context,
                           void *out, const EngWeightTiles *tiles, const uint8_t *exact_tokens,
                           int64_t from, int64_t to, double *scratch);

#endif
