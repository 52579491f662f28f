/* Weights of the backbone: shapes, seeded content, access; see backbone.h and parts.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "bench/backbone/parts.h"
#include "bench/backbone/pointwise.h"

/* ---- shapes ---- */

static int64_t times(int64_t a, int64_t b)
{
    return a * b; /* eng_backbone_create has bounded every factor */
}

/* Inputs and outputs of one tensor; vectors have one input, none: outputs 0. */
static void shape_of(const EngBackboneConfig *c, EngWeight what, int64_t *in, int64_t *out)
{
    int64_t d = c->hidden, w = c->expert_width, shared = eng_shared_width(c);
    int64_t n = c->streams, m = n > 1 ? n * (n + 2) : 0;
    int64_t v = c->vision_layers ? c->vision_hidden : 0, vw = v ? c->vision_width : 0;
    int64_t qkv = times(c->heads + 2 * c->kv_heads, c->head_dim), e = c->experts;
    const int64_t shapes[ENG_W_COUNT][2] = {
        [ENG_W_EMBED] = {c->vocab, d},
        [ENG_W_FINAL_NORM] = {1, d},
        [ENG_W_HEAD] = {d, c->tied_head ? 0 : c->vocab},
        [ENG_W_ATTN_NORM] = {1, d},
        [ENG_W_QKV] = {d, qkv},
        [ENG_W_OUT] = {times(c->heads, c->head_dim), d},
        [ENG_W_MOE_NORM] = {1, d},
        [ENG_W_ROUTER] = {d, e},
        [ENG_W_ROUTER_BIAS] = {1, e},
        [ENG_W_SHARED_UP] = {d, 2 * shared},
        [ENG_W_SHARED_DOWN] = {shared, d},
        [ENG_W_EXPERT_UP] = {d, e ? 2 * w : 0},
        [ENG_W_EXPERT_DOWN] = {w, e ? d : 0},
        [ENG_W_ATTN_MIX] = {n * d, m},
        [ENG_W_ATTN_MIX_BIAS] = {1, m},
        [ENG_W_ATTN_MIX_GAIN] = {1, m ? 3 : 0},
        [ENG_W_MOE_MIX] = {n * d, m},
        [ENG_W_MOE_MIX_BIAS] = {1, m},
        [ENG_W_MOE_MIX_GAIN] = {1, m ? 3 : 0},
        [ENG_W_PATCHES] = {c->vision_patches, v},
        [ENG_W_VISION_ATTN_NORM] = {1, v},
        [ENG_W_VISION_QKV] = {v, 3 * v},
        [ENG_W_VISION_OUT] = {v, v},
        [ENG_W_VISION_MLP_NORM] = {1, v},
        [ENG_W_VISION_UP] = {v, vw},
        [ENG_W_VISION_DOWN] = {vw, v},
    };
    *in = shapes[what][0];
    *out = shapes[what][1];
}

int64_t eng_weight_elements(const EngBackboneConfig *c, EngWeight what, int64_t *inputs)
{
    int64_t in, out;
    shape_of(c, what, &in, &out);
    *inputs = in;
    return in * out;
}

static bool is_global(EngWeight what)
{
    return what <= ENG_W_HEAD || what == ENG_W_PATCHES;
}

static int64_t layers_of(const EngBackboneConfig *c, EngWeight what)
{
    if (is_global(what)) return 1;
    if (c->paced_layer_ns) return 0; /* nothing computes with them */
    if (what > ENG_W_PATCHES) return c->vision_layers;
    return c->distinct_layers ? c->distinct_layers : c->layers;
}

static int64_t experts_of(const EngBackboneConfig *c, EngWeight what)
{
    return what == ENG_W_EXPERT_UP || what == ENG_W_EXPERT_DOWN ? c->experts : 1;
}

int64_t eng_weight_copies(const EngBackboneConfig *c, EngWeight what)
{
    return layers_of(c, what) * experts_of(c, what);
}

EngDtype eng_weight_dtype(const EngBackboneConfig *c, EngWeight what)
{
    switch (what) {
    case ENG_W_EMBED:
    case ENG_W_HEAD:
    case ENG_W_QKV:
    case ENG_W_OUT:
    case ENG_W_SHARED_UP:
    case ENG_W_SHARED_DOWN:
    case ENG_W_EXPERT_UP:
    case ENG_W_EXPERT_DOWN:
    case ENG_W_VISION_QKV:
    case ENG_W_VISION_OUT:
    case ENG_W_VISION_UP:
    case ENG_W_VISION_DOWN:
        return c->dtype;
    default:
        return ENG_F32;
    }
}

const void *eng_weight_of(const EngBackbone *b, EngWeight what, int layer, int expert)
{
    const EngBackboneConfig *c = &b->config;
    const uint8_t *bytes = b->weights.bytes[what];
    if (!bytes) return NULL;
    int64_t in, n = eng_weight_elements(c, what, &in);
    int64_t copy = layer % layers_of(c, what) * experts_of(c, what) + expert;
    return bytes + (size_t)copy * eng_dtype_bytes(eng_weight_dtype(c, what), (size_t)n);
}

void *eng_backbone_weight(EngBackbone *b, EngWeight what, int layer, int expert, int64_t *n,
                          EngDtype *dtype)
{
    int64_t in;
    *n = eng_weight_elements(&b->config, what, &in);
    *dtype = eng_weight_dtype(&b->config, what);
    return (void *)(uintptr_t)eng_weight_of(b, what, layer, expert);
}

/* ---- content ---- */

typedef struct Fill {
    const EngBackboneConfig *config;
    EngWeight what;
    void *bytes;
} Fill;

/* What a tensor starts with besides uniform numbers: norms 1, gains small, mixing so that all
 * streams enter a read alike and the streams stay mostly themselves. */
static bool fill_fixed(const EngBackboneConfig *c, EngWeight what, float *out, int64_t count)
{
    int n = c->streams;
    switch (what) {
    case ENG_W_FINAL_NORM:
    case ENG_W_ATTN_NORM:
    case ENG_W_MOE_NORM:
    case ENG_W_VISION_ATTN_NORM:
    case ENG_W_VISION_MLP_NORM:
        for (int64_t i = 0; i < count; i++) out[i] = 1;
        return true;
    case ENG_W_ROUTER_BIAS:
        return true; /* zeros */
    case ENG_W_ATTN_MIX_GAIN:
    case ENG_W_MOE_MIX_GAIN:
        for (int64_t i = 0; i < count; i++) out[i] = 0.01f;
        return true;
    case ENG_W_ATTN_MIX_BIAS:
    case ENG_W_MOE_MIX_BIAS:
        for (int i = 0; i < n; i++) out[i] = -logf((float)n - 1); /* sigmoid: 1 / n */
        for (int i = 0; i < n * n; i++) out[2 * n + i] = i % (n + 1) ? -4.0f : 0.0f;
        return true;
    default:
        return false;
    }
}

static void fill_copy(void *context, int64_t copy)
{
    enum { PIECE = 256 };
    const Fill *fill = context;
    const EngBackboneConfig *c = fill->config;
    EngDtype dtype = eng_weight_dtype(c, fill->what);
    int64_t in, n = eng_weight_elements(c, fill->what, &in), experts = experts_of(c, fill->what);
    uint8_t *out = (uint8_t *)fill->bytes + (size_t)copy * eng_dtype_bytes(dtype, (size_t)n);
    float piece[PIECE];
    EngRng rng;
    if (fill_fixed(c, fill->what, (float *)out, n)) return;
    /* Numbered by layer and expert, not by copy: more experts change nothing. */
    uint64_t number = (uint64_t)(copy / experts) << 24 | (uint64_t)(copy % experts);
    eng_rng_seed_at(&rng, c->seed, number << 8 | (uint64_t)fill->what);
    /* Embeddings and patches are inputs: of variance 1. */
    bool input = fill->what == ENG_W_EMBED || fill->what == ENG_W_PATCHES;
    float scale = sqrtf(3.0f / (float)(input ? 1 : in)) * 0x1p-31f;
    for (int64_t at = 0, part; at < n; at += part) {
        part = n - at < PIECE ? n - at : PIECE;
        for (int i = 0; i < part; i += 2) {
            uint64_t x = eng_rng_u64(&rng);
            piece[i] = (float)(int32_t)x * scale;
            piece[i + 1] = (float)(int32_t)(x >> 32) * scale;
        }
        if (dtype == ENG_BF16)
            eng_to_bf16(piece, (uint16_t *)out + at, (size_t)part);
        else
            memcpy((float *)out + at, piece, (size_t)part * sizeof *piece);
    }
}

EngStatus eng_weights_create(const EngBackboneConfig *config, EngWeightStore *store, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int what = 0; what < ENG_W_COUNT && !status; what++) {
        int64_t in, n = eng_weight_elements(config, (EngWeight)what, &in);
        int64_t copies = eng_weight_copies(config, (EngWeight)what);
        if (!n || !copies) continue;
        status = eng_alloc_or(&store->bytes[what], (size_t)copies,
                              eng_dtype_bytes(eng_weight_dtype(config, (EngWeight)what), (size_t)n),
                              "weights", err);
        if (status) break;
        Fill fill = {config, (EngWeight)what, store->bytes[what]};
        eng_parallel_for(copies, 0, fill_copy, &fill);
    }
    return status;
}

void eng_weights_destroy(EngWeightStore *store)
{
    for (int what = 0; what < ENG_W_COUNT; what++) eng_free(store->bytes[what]);
}
