/* The AVX-512 projection as an engine: the caller puts the inputs where its register tiles want
 * them, from rows of x (project_avx512.c) or straight from rows of a table (lookup_avx512.c).
 * Internal to kernels/cpu.
 */
#ifndef ENG_KERNELS_CPU_PROJECT_AVX512_H
#define ENG_KERNELS_CPU_PROJECT_AVX512_H

#include "kernels/cpu/project_tiles.h"

/* Tokens of a register tile, at most 14. The first of a block of tokens is one that expands
 * weights. */
typedef struct EngTokenTile {
    int64_t first;
    int count;
    bool starts_block;
} EngTokenTile;

/* The packed operand: pairs of bf16 inputs, [k / 2, count] of them for each tile, tiles behind each
 * other in the order of their tokens, which are consecutive. */
typedef struct EngPackedX {
    const EngTokenTile *tiles;
    int n_tiles;
    int64_t tokens;
    int k;
    EngSafeRange safe;
    uint32_t *pairs;
    uint8_t *exact; /* [tokens], 0 before packing; set with eng_packed_x_mark */
    uint16_t *rows; /* [parts, k] scratch */
    bool *any_exact;
} EngPackedX;

/* Pair 0 of a tile's column of inputs that begins with pair `pair`, for its token j. */
static inline uint32_t *eng_packed_x_at(const EngPackedX *x, const EngTokenTile *tile, size_t pair,
                                        int64_t j)
{
    return x->pairs + (size_t)tile->first * (size_t)(x->k / 2) + pair * (size_t)tile->count +
           (size_t)j;
}

/* n pairs of one token to their places between those of the others. */
static inline void eng_packed_x_spread(const uint16_t *words, size_t n, size_t count, uint32_t *to)
{
    for (size_t i = 0; i < n; i++) memcpy(to + i * count, words + 2 * i, sizeof *to);
}

/* Has the outputs of token t computed in double precision. From any thread. */
static inline void eng_packed_x_mark(const EngPackedX *x, int64_t t)
{
    __atomic_store_n(&x->exact[t], 1, __ATOMIC_RELAXED);
    __atomic_store_n(x->any_exact, true, __ATOMIC_RELAXED);
}

/* Where inputs come from: pack() is called by each of `parts` threads and packs its part of them;
 * exact() gives a marked token's inputs. */
typedef struct EngInputSource {
    void (*pack)(const void *context, const EngPackedX *x, int parts, int index);
    EngExactInput *exact;
    const void *context;
} EngInputSource;

/* create(), run() and destroy() of a variant, for a problem of ENG_OP_PROJECT that
 * eng_project_avx512_supports accepts; its x is the source's. out [tokens, n]. */
EngStatus eng_project_avx512_supports(const EngProblem *problem, EngErr *why);
EngStatus eng_project_avx512_create(const EngProblem *problem, void **state, EngErr *err);
void eng_project_avx512_run(void *state, const EngProblem *problem, const EngInputSource *source,
                            void *out);
void eng_project_avx512_destroy(void *state);
extern const EngTunable eng_project_avx512_tunables[];

#endif
