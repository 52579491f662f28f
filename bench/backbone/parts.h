/* What the blocks of the backbone share: its state and one function per block. Internal to
 * bench/backbone. Matrices are row-major; T tokens, d hidden, n streams.
 */
#ifndef ENG_BENCH_BACKBONE_PARTS_H
#define ENG_BENCH_BACKBONE_PARTS_H

#include <stddef.h>
#include "bench/backbone/backbone.h"
#include "bench/backbone/product.h"

typedef struct EngWeightStore {
    void *bytes[ENG_W_COUNT]; /* [distinct layers][experts], owned; NULL: none of these */
} EngWeightStore;

struct EngBackbone {
    EngBackboneConfig config;
    EngWeightStore weights;
    EngProducts *products;
    int64_t *lengths;   /* [max_seqs] */
    float *cache;       /* [layers, max_seqs, keys and values, kv_heads, max_len, head_dim] */
    float *cos, *sin;   /* [max_len, head_dim / 2] */
    void *streams;      /* [T, n, d] in dtype */
    float *mix;         /* [T, n (n + 2)] */
    float *x, *normed;  /* [T, d] */
    float *y;           /* [T, d] */
    float *qkv, *heads; /* [T, (heads + 2 kv_heads) head_dim], [T, heads head_dim] */
    float *wide, *act;  /* [T, 2 w], [T, w] with w the widest of shared and routed */
    float *affinity;    /* [T, experts] */
    float *route;       /* [T, top_k] */
    int32_t *choice;    /* [T, top_k] */
    int32_t *order;     /* [T top_k] places sorted by expert */
    int64_t *first;     /* [experts + 1] in order */
    float *gathered, *returned; /* [T, d] of one expert */
    float *scores;              /* [threads, ENG_QUERY_BLOCK, longest row of scores] */
    float *flat;                /* [ENG_MIX_BLOCK, n d], [ENG_MIX_BLOCK, m] */
    float *vision, *vision_normed, *vision_qkv, *vision_heads, *vision_wide; /* [patches, ..] */
};

#define ENG_QUERY_BLOCK 64 /* queries that are scored together */
#define ENG_MIX_BLOCK   64 /* tokens whose streams are widened together */

/* ---- weights.c ---- */

EngStatus eng_weights_create(const EngBackboneConfig *config, EngWeightStore *store, EngErr *err);
void eng_weights_destroy(EngWeightStore *store);
/* Elements of one tensor (of one layer and expert), and its inputs (rows), 0 when there is none. */
int64_t eng_weight_elements(const EngBackboneConfig *config, EngWeight what, int64_t *inputs);
/* How many there are: distinct layers times experts. */
int64_t eng_weight_copies(const EngBackboneConfig *config, EngWeight what);
EngDtype eng_weight_dtype(const EngBackboneConfig *config, EngWeight what);
const void *eng_weight_of(const EngBackbone *b, EngWeight what, int layer, int expert);

/* ---- blocks: inputs and outputs are buffers of the backbone or of the caller ---- */

static inline int eng_mix_columns(const EngBackboneConfig *c)
{
    return c->streams * (c->streams + 2);
}

/* Width of the shared experts together: they are one network. */
static inline int64_t eng_shared_width(const EngBackboneConfig *c)
{
    return (int64_t)c->shared_experts * c->expert_width + c->shared_extra;
}

static inline void eng_emit(const EngBackbone *b, int layer, EngActivation what, int index,
                            const void *data, int64_t rows, int64_t columns)
{
    const EngBackboneHooks *hooks = &b->config.hooks;
    if (hooks->activation)
        hooks->activation(hooks->context, layer, what, index, data, rows, columns);
}

/* mhc.c: from the streams to x and mix; from y, streams and mix to the streams. `moe`: of the MoE
 * half of the layer, else of the attention half. */
EngStatus eng_mhc_read(EngBackbone *b, int layer, bool moe, int64_t tokens, EngErr *err);
void eng_mhc_write(EngBackbone *b, int64_t tokens);
/* All streams copies of x; out[row] = sum of the streams of token tokens[row] (NULL: all). */
void eng_mhc_start(EngBackbone *b, int64_t tokens);
void eng_mhc_sum(const EngBackbone *b, const int64_t *tokens, int64_t rows, float *out);

/* attention.c: normed to y; appends keys and values to the caches. */
EngStatus eng_attention(EngBackbone *b, int layer, const EngBackboneStep *step, EngErr *err);

/* moe.c: normed to y. */
EngStatus eng_moe(EngBackbone *b, int layer, int64_t tokens, EngErr *err);

/* vision.c */
EngStatus eng_vision(EngBackbone *b, EngErr *err);

/* attention.c: rows of queries q [rows, ldq] against keys and values [keys, ld] of one head, with
 * `visible` keys for the first row and one more for each further one (keys: all for all). */
typedef struct EngAttend {
    const float *q, *k, *v;
    float *out;
    int64_t ldq, ldkv, ldo;
    int64_t rows, keys, visible;
    int head_dim;
} EngAttend;
EngStatus eng_attend(const EngAttend *a, float *scores, EngErr *err);

#endif
