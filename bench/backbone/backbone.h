/* The backbone: a small MoE transformer with mHC residual streams that stands in for the 552 B one.
 * Its forward pass is the compute beside which rows are fetched, and what training builds on.
 *
 * A layer is: before_layer (rows are demanded, Engram writes back to the streams), then attention,
 * then MoE; each reads one vector from the streams, normalises it and adds its output to them:
 *   1 stream:  x = h, h' = h + y
 *   n streams: x = sum_m pre_m h_m, h'_m = sum_k res_mk h_k + post_m y, with pre, post and res made
 *              from all streams (mHC, arXiv 2512.24880: sigmoid, 2 sigmoid, Sinkhorn-Knopp)
 * Attention: RMSNorm, grouped queries, RoPE on the halves of a head, causal, keys and values cached
 * in f32. MoE: RMSNorm, shared experts as one SwiGLU, sigmoid affinities, top-k by affinity plus
 * bias (loss-free balancing), weights normalised to route_scale, tokens sorted by expert.
 * Products go through oneDNN in f32 or bf16 (f32 sums); norms, router, mixing, softmax are f32.
 *
 * All work is done by the calling thread and, with threads > 1, its OpenMP team; the caller pins
 * it. Nothing is allocated by a forward pass but what oneDNN takes. One thread at a time may use a
 * backbone.
 */
#ifndef ENG_BENCH_BACKBONE_H
#define ENG_BENCH_BACKBONE_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/status.h>
#include <engram/types.h>

#define ENG_BACKBONE_MAX_STREAMS 8

typedef struct EngBackbone EngBackbone;

/* What a forward pass is asked for: new tokens of several sequences, laid end to end. One long
 * sequence is a prefill, one token each a decode step, a few each a verification of drafts. */
typedef struct EngBackboneStep {
    const int32_t *ids;    /* [tokens], in [0, vocab) */
    const int64_t *starts; /* [n_seqs + 1], ascending, starts[0] = 0 */
    const int *slots;      /* [n_seqs] cache slot of each, all different; NULL: 0, 1, .. */
    int n_seqs;
} EngBackboneStep;

/* Values that a pass has computed, in order; `rows x columns` of float unless said otherwise. Valid
 * during the call. d hidden, n streams, m = n (n + 2), w expert width. */
typedef enum EngActivation {
    ENG_ACT_STREAMS = 0, /* [T, n d] after before_layer, in the stream's dtype */
    ENG_ACT_ATTN_MIX,    /* [T, m] pre, post, res row-major; several streams only */
    ENG_ACT_ATTN_READ,   /* [T, d] */
    ENG_ACT_ATTN_IN,     /* [T, d] normalised */
    ENG_ACT_QKV,         /* [T, (heads + 2 kv_heads) head_dim] after RoPE */
    ENG_ACT_CONTEXT,     /* [T, heads head_dim] */
    ENG_ACT_ATTN_OUT,    /* [T, d] */
    ENG_ACT_MOE_MIX,     /* [T, m] */
    ENG_ACT_MOE_READ,    /* [T, d] */
    ENG_ACT_MOE_IN,      /* [T, d] normalised */
    ENG_ACT_SHARED,      /* [T, 2 shared_experts w] gate, then up, before SwiGLU */
    ENG_ACT_AFFINITY,    /* [T, experts] */
    ENG_ACT_CHOICE,      /* [T, top_k] int32 expert numbers, best first */
    ENG_ACT_ROUTE,       /* [T, top_k] weights */
    ENG_ACT_EXPERT,      /* [its tokens, 2 w] of one expert (index), before SwiGLU */
    ENG_ACT_EXPERT_ROWS, /* [its tokens, 1] int32: token * top_k + place; comes before it */
    ENG_ACT_MOE_OUT,     /* [T, d] */
    ENG_ACT_STREAMS_OUT, /* [T, n d] after the last layer, in the stream's dtype */
    ENG_ACT_FINAL, /* [n_seqs, d] normalised sum of streams of last tokens; all_logits: [T, d] */
    ENG_ACT_VISION_IN,  /* [patches, vision_hidden] before a vision layer */
    ENG_ACT_VISION_QKV, /* [patches, 3 vision_hidden] */
    ENG_ACT_VISION_OUT, /* [patches, vision_hidden] after it */
    ENG_ACT_COUNT
} EngActivation;

typedef struct EngBackboneHooks {
    void *context;
    /* Before layer `layer` (from 0) computes: fetch rows, write Engram's output back to `streams`
     * [tokens, streams, hidden], f32 or bf16 as stream_dtype says, where the next read sees it. A
     * failure ends the pass. */
    EngStatus (*before_layer)(void *context, const EngBackboneStep *step, int layer, void *streams,
                              EngErr *err);
    void (*activation)(void *context, int layer, EngActivation what, int index, const void *data,
                       int64_t rows, int64_t columns);
} EngBackboneHooks;

typedef struct EngBackboneConfig {
    int layers, hidden, streams; /* streams 1..8 */
    int heads, kv_heads, head_dim;
    double rope_theta;
    int shared_experts, experts, top_k, expert_width; /* experts 0: only the shared ones */
    int shared_extra;  /* added to the width of the shared ones together */
    float route_scale; /* sum of a token's weights: 1.5 in V4.1 */
    float norm_eps;
    int sinkhorn_iters;
    int vocab;
    bool tied_head;
    EngDtype dtype;        /* of products: F32 or BF16 */
    EngDtype stream_dtype; /* of the residual streams: F32, or BF16 as the gate kernels take them */
    int distinct_layers; /* layer l has the weights of l % distinct_layers; 0: all have their own */
    int threads;
    int64_t max_tokens; /* of one pass */
    int max_seqs;
    int64_t max_len; /* of a sequence */
    uint64_t seed;
    /* A vision encoder's stand-in runs before each pass: full attention and MLP over patches. */
    int vision_layers, vision_patches, vision_hidden, vision_heads,
        vision_width; /* layers 0: none */
    /* Emulated window: instead of computing, the calling thread spins so long in each layer (after
     * before_layer) and, for the vision encoder, before the first. With paced layers the streams
     * hold the embeddings, there are no logits, and the encoder is paced too. */
    int64_t paced_layer_ns, paced_vision_ns;
    EngBackboneHooks hooks;
} EngBackboneConfig;

/* Shapes of a laptop-scale backbone, everything set but seed, hooks, max_*: fields are then changed
 * as wanted. */
EngBackboneConfig eng_backbone_default(void);

/* Weights are seeded: uniform of variance 1/inputs, a generator for each tensor and expert, so that
 * those of one expert do not depend on how many there are. ENG_USAGE: a shape that cannot be, by
 * name; ENG_UNSUPPORTED: bf16 products without AVX-512; ENG_NO_MEMORY: with bytes needed and there.
 */
EngStatus eng_backbone_create(const EngBackboneConfig *config, EngBackbone **backbone, EngErr *err);
void eng_backbone_destroy(EngBackbone *backbone); /* accepts NULL */
const EngBackboneConfig *eng_backbone_config(const EngBackbone *backbone);
/* A paced one's times are the configuration's, and everything measured on it says `emulated`. */
bool eng_backbone_emulated(const EngBackbone *backbone);

/* Appends the step's tokens to their sequences. logits [n_seqs, vocab] of each one's last token, or
 * NULL; `all` gives [tokens, vocab]. On failure (ENG_USAGE: ids, slots or lengths out of range;
 * what before_layer returned) no sequence has grown. */
EngStatus eng_backbone_forward(EngBackbone *backbone, const EngBackboneStep *step, bool all,
                               float *logits, EngErr *err);
/* n tokens of one sequence. */
EngStatus eng_backbone_prefill(EngBackbone *backbone, int slot, const int32_t *ids, int64_t n,
                               float *logits, EngErr *err);
/* One token of each of slots 0 .. n_seqs-1. */
EngStatus eng_backbone_decode(EngBackbone *backbone, const int32_t *ids, int n_seqs, float *logits,
                              EngErr *err);
int64_t eng_backbone_length(const EngBackbone *backbone, int slot);
/* Forgets what lies beyond `length` (rejected drafts; 0: a new sequence). */
EngStatus eng_backbone_truncate(EngBackbone *backbone, int slot, int64_t length, EngErr *err);

/* ---- weights ---- */

/* Products are [inputs, outputs] row-major in the configuration's dtype, the rest f32. */
typedef enum EngWeight {
    ENG_W_EMBED = 0, /* [vocab, d] dtype */
    ENG_W_FINAL_NORM,
    ENG_W_HEAD, /* [d, vocab]; none when tied */
    ENG_W_ATTN_NORM,
    ENG_W_QKV, /* [d, (heads + 2 kv_heads) head_dim] */
    ENG_W_OUT, /* [heads head_dim, d] */
    ENG_W_MOE_NORM,
    ENG_W_ROUTER,        /* f32 [d, experts] */
    ENG_W_ROUTER_BIAS,   /* [experts] */
    ENG_W_SHARED_UP,     /* [d, 2 shared w]: gate columns, then up columns */
    ENG_W_SHARED_DOWN,   /* [shared w, d] */
    ENG_W_EXPERT_UP,     /* [d, 2 w] each */
    ENG_W_EXPERT_DOWN,   /* [w, d] each */
    ENG_W_ATTN_MIX,      /* f32 [n d, m]; several streams only, as what follows */
    ENG_W_ATTN_MIX_BIAS, /* [m] */
    ENG_W_ATTN_MIX_GAIN, /* [3] of pre, post, res */
    ENG_W_MOE_MIX,
    ENG_W_MOE_MIX_BIAS,
    ENG_W_MOE_MIX_GAIN,
    ENG_W_PATCHES, /* f32 [patches, vision_hidden]: the vision input */
    ENG_W_VISION_ATTN_NORM,
    ENG_W_VISION_QKV,
    ENG_W_VISION_OUT,
    ENG_W_VISION_MLP_NORM,
    ENG_W_VISION_UP, /* [vision_hidden, vision_width], GELU after it */
    ENG_W_VISION_DOWN,
    ENG_W_COUNT
} EngWeight;

/* A tensor, to read or to set; layer 0 for those outside layers, expert 0 for those without. n:
 * elements. NULL when the shape has none. Weights may be changed between passes. */
void *eng_backbone_weight(EngBackbone *backbone, EngWeight what, int layer, int expert, int64_t *n,
                          EngDtype *dtype);

/* ---- accounting ---- */

/* Parameters of the blocks, as the paper counts (without embedding and head): all, and those that a
 * token uses; of one routed expert; bytes that create() takes. */
typedef struct EngBackboneSize {
    int64_t total, active, expert;
    uint64_t bytes;
} EngBackboneSize;
EngStatus eng_backbone_size(const EngBackboneConfig *config, EngBackboneSize *size, EngErr *err);
/* Floating-point operations of a pass over `tokens` new tokens with `context` cached ones before
 * them, head and vision block left out. */
double eng_backbone_flops(const EngBackboneConfig *config, int64_t tokens, int64_t context);

#endif
