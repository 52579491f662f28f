/* The forward pass and what surrounds it: shapes, memory, sequences; see backbone.h. */
#include "bench/backbone/backbone.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "bench/backbone/parts.h"
#include "bench/backbone/pointwise.h"
#include "kernels/store/memory.h"

EngBackboneConfig eng_backbone_default(void)
{
    return (EngBackboneConfig){.layers = 6,
                               .hidden = 1024,
                               .streams = 4,
                               .heads = 8,
                               .kv_heads = 1,
                               .head_dim = 128,
                               .rope_theta = 10000,
                               .shared_experts = 1,
                               .experts = 16,
                               .top_k = 2,
                               .expert_width = 512,
                               .route_scale = 1,
                               .norm_eps = 1e-6f,
                               .sinkhorn_iters = 20,
                               .vocab = 8192,
                               .dtype = ENG_F32,
                               .threads = 1};
}

/* ---- shapes ---- */

typedef struct Bound {
    const char *name;
    int64_t value, min, max;
} Bound;

static EngStatus check_bounds(const Bound *bounds, size_t n, EngErr *err)
{
    for (size_t i = 0; i < n; i++)
        if (bounds[i].value < bounds[i].min || bounds[i].value > bounds[i].max)
            return ENG_FAIL(err, ENG_USAGE,
                            "backbone: %s=%" PRId64 ": not from %" PRId64 " to %" PRId64,
                            bounds[i].name, bounds[i].value, bounds[i].min, bounds[i].max);
    return ENG_OK;
}

static EngStatus check_vision(const EngBackboneConfig *c, EngErr *err)
{
    const Bound bounds[] = {{"vision_patches", c->vision_patches, 1, 1 << 16},
                            {"vision_hidden", c->vision_hidden, 1, 1 << 16},
                            {"vision_heads", c->vision_heads, 1, 1024},
                            {"vision_width", c->vision_width, 1, 1 << 20}};
    if (!c->vision_layers) return ENG_OK;
    if (c->paced_layer_ns && !c->paced_vision_ns)
        return ENG_FAIL(err, ENG_USAGE,
                        "backbone: vision_layers=%d beside paced layers: paced_vision_ns says how "
                        "long they take",
                        c->vision_layers);
    EngStatus status = check_bounds(bounds, sizeof bounds / sizeof *bounds, err);
    if (!status && c->vision_hidden % c->vision_heads)
        status =
            ENG_FAIL(err, ENG_USAGE, "backbone: vision_heads=%d do not divide vision_hidden=%d",
                     c->vision_heads, c->vision_hidden);
    return status;
}

static EngStatus check(const EngBackboneConfig *c, EngErr *err)
{
    const Bound bounds[] = {
        {"layers", c->layers, 1, 1024},
        {"hidden", c->hidden, 1, 1 << 16},
        {"streams", c->streams, 1, ENG_BACKBONE_MAX_STREAMS},
        {"heads", c->heads, 1, 1024},
        {"kv_heads", c->kv_heads, 1, c->heads},
        {"head_dim", c->head_dim, 2, 1024},
        {"shared_experts", c->shared_experts, c->experts ? 0 : 1, 1024},
        {"shared_extra", c->shared_extra, 0, 1 << 20},
        {"experts", c->experts, 0, 1 << 16},
        {"top_k", c->top_k, c->experts ? 1 : 0, c->experts},
        {"expert_width", c->expert_width, 1, 1 << 20},
        {"sinkhorn_iters", c->sinkhorn_iters, 0, 1000},
        {"vocab", c->vocab, 1, 1 << 22},
        {"distinct_layers", c->distinct_layers, 0, c->layers},
        {"threads", c->threads, 1, 1024},
        {"max_tokens", c->max_tokens, 1, 1 << 20},
        {"max_seqs", c->max_seqs, 1, 1 << 16},
        {"max_len", c->max_len, 1, 1 << 22},
        {"vision_layers", c->vision_layers, 0, 1024},
        {"paced_layer_ns", c->paced_layer_ns, 0, INT64_MAX / 4},
        {"paced_vision_ns", c->paced_vision_ns, 0, INT64_MAX / 4},
    };
    EngStatus status = check_bounds(bounds, sizeof bounds / sizeof *bounds, err);
    if (!status) status = check_vision(c, err);
    if (status) return status;
    if (c->heads % c->kv_heads || c->head_dim % 2)
        return ENG_FAIL(err, ENG_USAGE,
                        "backbone: heads=%d, kv_heads=%d, head_dim=%d: kv_heads must divide heads "
                        "and head_dim be even",
                        c->heads, c->kv_heads, c->head_dim);
    if ((c->dtype != ENG_F32 && c->dtype != ENG_BF16) ||
        (c->stream_dtype != ENG_F32 && c->stream_dtype != ENG_BF16))
        return ENG_FAIL(err, ENG_USAGE, "backbone: dtype and stream_dtype are f32 or bf16");
    return ENG_OK;
}

/* ---- memory ---- */

typedef struct Buffer {
    void **at;
    int64_t n, each; /* elements: n * each */
    size_t size;
} Buffer;

#define MAX_BUFFERS 32

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Everything of b besides weights and products; b may be an empty one, to count. */
static int list_buffers(EngBackbone *b, Buffer list[MAX_BUFFERS])
{
    const EngBackboneConfig *c = &b->config;
    bool paced = c->paced_layer_ns > 0;
    int64_t t = c->max_tokens, d = c->hidden, patches = c->vision_layers ? c->vision_patches : 0;
    int64_t inner = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    int64_t wide = larger(eng_shared_width(c), c->experts ? c->expert_width : 0);
    int64_t longest = larger(c->max_len, patches), vision = patches ? c->vision_hidden : 0;
    Buffer all[] = {
        {(void **)&b->lengths, c->max_seqs, 1, sizeof *b->lengths},
        {&b->streams, t * c->streams, d, eng_dtype_bytes(c->stream_dtype, 1)},
        {(void **)&b->x, t, d, sizeof(float)},
        /* the rest is for computing */
        {(void **)&b->cache, (int64_t)c->layers * c->max_seqs * 2 * kv, c->max_len, sizeof(float)},
        {(void **)&b->cos, c->max_len, c->head_dim / 2, sizeof(float)},
        {(void **)&b->sin, c->max_len, c->head_dim / 2, sizeof(float)},
        {(void **)&b->mix, t, eng_mix_columns(c), sizeof(float)},
        {(void **)&b->normed, t, d, sizeof(float)},
        {(void **)&b->y, t, d, sizeof(float)},
        {(void **)&b->qkv, t, inner + 2 * kv, sizeof(float)},
        {(void **)&b->heads, t, inner, sizeof(float)},
        {(void **)&b->wide, t, 2 * wide, sizeof(float)},
        {(void **)&b->act, t, wide, sizeof(float)},
        {(void **)&b->affinity, t, c->experts, sizeof(float)},
        {(void **)&b->route, t, c->top_k, sizeof(float)},
        {(void **)&b->choice, t, c->top_k, sizeof(int32_t)},
        {(void **)&b->order, t, c->top_k, sizeof(int32_t)},
        {(void **)&b->first, c->experts + 1, 1, sizeof(int64_t)},
        {(void **)&b->gathered, t, d, sizeof(float)},
        {(void **)&b->returned, t, d, sizeof(float)},
        {(void **)&b->scores, (int64_t)c->threads * ENG_QUERY_BLOCK, longest, sizeof(float)},
        {(void **)&b->flat, ENG_MIX_BLOCK * c->streams, d, sizeof(float)},
        {(void **)&b->vision, patches, vision, sizeof(float)},
        {(void **)&b->vision_normed, patches, vision, sizeof(float)},
        {(void **)&b->vision_qkv, patches, 3 * vision, sizeof(float)},
        {(void **)&b->vision_heads, patches, vision, sizeof(float)},
        {(void **)&b->vision_wide, patches, patches ? c->vision_width : 0, sizeof(float)},
    };
    int n = paced ? 3 : (int)(sizeof all / sizeof *all);
    memcpy(list, all, (size_t)n * sizeof *all);
    return n;
}

static bool add_bytes(uint64_t *bytes, int64_t n, int64_t each, size_t size)
{
    size_t part;
    return eng_mul_size((size_t)n, (size_t)each, &part) && eng_mul_size(part, size, &part) &&
           eng_add_size(*bytes, part, bytes);
}

EngStatus eng_backbone_size(const EngBackboneConfig *config, EngBackboneSize *size, EngErr *err)
{
    EngBackbone empty = {.config = *config};
    Buffer list[MAX_BUFFERS];
    EngStatus status = check(config, err);
    if (status) return status;
    *size = (EngBackboneSize){0};
    bool fits = true;
    for (int what = 0; what < ENG_W_COUNT; what++) {
        int64_t in, n = eng_weight_elements(config, (EngWeight)what, &in);
        bool expert = what == ENG_W_EXPERT_UP || what == ENG_W_EXPERT_DOWN;
        int64_t layers = what == ENG_W_FINAL_NORM ? 1 : config->layers;
        fits &= add_bytes(&size->bytes, n, eng_weight_copies(config, (EngWeight)what),
                          eng_dtype_bytes(eng_weight_dtype(config, (EngWeight)what), 1));
        if (what == ENG_W_EMBED || what == ENG_W_HEAD || what >= ENG_W_PATCHES ||
            what == ENG_W_ROUTER_BIAS) /* a rule sets it, not the gradient */
            continue;
        if (n > INT64_MAX >> 26) fits = false; /* times layers and experts it would overflow */
        if (!fits) break;
        if (expert) size->expert += n;
        size->total += n * layers * (expert ? config->experts : 1);
        size->active += n * layers * (expert ? config->top_k : 1);
    }
    int n = list_buffers(&empty, list);
    for (int i = 0; i < n; i++)
        fits &= add_bytes(&size->bytes, list[i].n, list[i].each, list[i].size);
    if (!fits) return ENG_FAIL(err, ENG_USAGE, "backbone: shapes overflow the address space");
    return ENG_OK;
}

static EngStatus check_memory(const EngBackboneConfig *config, EngErr *err)
{
    EngBackboneSize size;
    EngStatus status = eng_backbone_size(config, &size, err);
    size_t available = eng_memory_available_bytes();
    if (!status && available && size.bytes > available - available / 10)
        status = ENG_FAIL(err, ENG_NO_MEMORY,
                          "backbone needs %" PRIu64 " bytes; %zu are available, of which 10 %% are "
                          "kept free (distinct_layers shares weights)",
                          size.bytes, available);
    return status;
}

static EngStatus allocate(EngBackbone *b, EngErr *err)
{
    Buffer list[MAX_BUFFERS];
    EngStatus status = ENG_OK;
    int n = list_buffers(b, list);
    for (int i = 0; i < n && !status; i++) /* sizes were checked by eng_backbone_size */
        status = eng_alloc_or(list[i].at, (size_t)list[i].n * (size_t)list[i].each, list[i].size,
                              "the backbone", err);
    return status;
}

static void fill_angles(EngBackbone *b)
{
    const EngBackboneConfig *c = &b->config;
    int half = c->head_dim / 2;
    for (int64_t position = 0; position < c->max_len; position++)
        for (int i = 0; i < half; i++) {
            double angle = (double)position * pow(c->rope_theta, -(double)i / half);
            b->cos[position * half + i] = (float)cos(angle);
            b->sin[position * half + i] = (float)sin(angle);
        }
}

EngStatus eng_backbone_create(const EngBackboneConfig *config, EngBackbone **backbone, EngErr *err)
{
    EngBackbone *b = NULL;
    *backbone = NULL;
    EngStatus status = check(config, err);
    if (!status) status = check_memory(config, err);
    if (!status) status = eng_alloc_or((void **)&b, 1, sizeof *b, "a backbone", err);
    if (status) return status;
    b->config = *config;
    int64_t inputs = larger(config->hidden, (int64_t)config->heads * config->head_dim);
    inputs = larger(inputs, larger(eng_shared_width(config), config->expert_width));
    int64_t rows = config->max_tokens;
    if (config->vision_layers) {
        inputs = larger(inputs, larger(config->vision_hidden, config->vision_width));
        rows = larger(rows, config->vision_patches);
    }
    if (!config->paced_layer_ns)
        status = eng_products_create(config->dtype, rows, inputs, &b->products, err);
    if (!status) status = allocate(b, err);
    if (!status) status = eng_weights_create(config, &b->weights, err);
    if (status) {
        eng_backbone_destroy(b);
        return status;
    }
    if (b->cos) fill_angles(b);
    *backbone = b;
    return ENG_OK;
}

void eng_backbone_destroy(EngBackbone *b)
{
    Buffer list[MAX_BUFFERS];
    if (!b) return;
    int n = list_buffers(b, list);
    for (int i = 0; i < n; i++) eng_free(*list[i].at);
    eng_weights_destroy(&b->weights);
    eng_products_destroy(b->products);
    eng_free(b);
}

const EngBackboneConfig *eng_backbone_config(const EngBackbone *b)
{
    return &b->config;
}

bool eng_backbone_emulated(const EngBackbone *b)
{
    return b->config.paced_layer_ns > 0 || b->config.paced_vision_ns > 0;
}

double eng_backbone_flops(const EngBackboneConfig *c, int64_t tokens, int64_t context)
{
    double d = c->hidden, inner = (double)c->heads * c->head_dim, w = c->expert_width;
    double kv = (double)c->kv_heads * c->head_dim, n = c->streams;
    double each = d * (inner + 2 * kv) + inner * d +
                  3 * d * ((double)eng_shared_width(c) + w * c->top_k) + d * c->experts +
                  (n > 1 ? 2 * n * d * n * (n + 2) : 0);
    double keys = (double)tokens * (double)context + (double)tokens * ((double)tokens + 1) / 2;
    return c->layers * (2 * each * (double)tokens + 4 * inner * keys);
}

/* ---- sequences ---- */

int64_t eng_backbone_length(const EngBackbone *b, int slot)
{
    return b->lengths[slot];
}

EngStatus eng_backbone_truncate(EngBackbone *b, int slot, int64_t length, EngErr *err)
{
    if (slot < 0 || slot >= b->config.max_seqs || length < 0 || length > b->lengths[slot])
        return ENG_FAIL(err, ENG_USAGE, "backbone: no %" PRId64 " tokens in slot %d", length, slot);
    b->lengths[slot] = length;
    return ENG_OK;
}

static EngStatus check_sequence(const EngBackbone *b, const EngBackboneStep *step, int s,
                                EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int slot = step->slots ? step->slots[s] : s;
    int64_t n = step->starts[s + 1] - step->starts[s];
    if (slot < 0 || slot >= c->max_seqs)
        return ENG_FAIL(err, ENG_USAGE, "backbone: slot %d, there are %d", slot, c->max_seqs);
    for (int i = 0; i < s && step->slots; i++)
        if (step->slots[i] == slot)
            return ENG_FAIL(err, ENG_USAGE, "backbone: slot %d twice in a step", slot);
    if (n < 1 || b->lengths[slot] + n > c->max_len)
        return ENG_FAIL(err, ENG_USAGE,
                        "backbone: %" PRId64 " tokens more in slot %d with %" PRId64 " of %" PRId64,
                        n, slot, b->lengths[slot], c->max_len);
    return ENG_OK;
}

static EngStatus check_step(const EngBackbone *b, const EngBackboneStep *step, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    if (step->n_seqs < 1 || step->n_seqs > c->max_seqs || step->starts[0] ||
        step->starts[step->n_seqs] > c->max_tokens)
        return ENG_FAIL(err, ENG_USAGE,
                        "backbone: a step of %d sequences and %" PRId64
                        " tokens; at most %d and %" PRId64,
                        step->n_seqs, step->n_seqs < 1 ? 0 : step->starts[step->n_seqs],
                        c->max_seqs, c->max_tokens);
    EngStatus status = ENG_OK;
    for (int s = 0; s < step->n_seqs && !status; s++) status = check_sequence(b, step, s, err);
    for (int64_t t = 0; !status && t < step->starts[step->n_seqs]; t++)
        if (step->ids[t] < 0 || step->ids[t] >= c->vocab)
            status = ENG_FAIL(err, ENG_USAGE, "backbone: id %" PRId32 " is not in [0, %d)",
                              step->ids[t], c->vocab);
    return status;
}

/* ---- the pass ---- */

static void spin(int64_t ns)
{
    for (int64_t end = eng_now_ns() + ns; eng_now_ns() < end;) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

static void embed(EngBackbone *b, const EngBackboneStep *step)
{
    size_t d = (size_t)b->config.hidden;
    const void *table = eng_weight_of(b, ENG_W_EMBED, 0, 0);
    int64_t tokens = step->starts[step->n_seqs];
    for (int64_t t = 0; t < tokens; t++) {
        size_t at = (size_t)step->ids[t] * d;
        if (b->config.dtype == ENG_F32)
            memcpy(b->x + (size_t)t * d, (const float *)table + at, d * sizeof *b->x);
        else
            eng_from_bf16((const uint16_t *)table + at, b->x + (size_t)t * d, d);
    }
    eng_mhc_start(b, tokens);
}

/* One half of a layer: read, normalise, compute, write. */
static EngStatus run_half(EngBackbone *b, int layer, bool moe, const EngBackboneStep *step,
                          EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t tokens = step->starts[step->n_seqs];
    const float *norm = eng_weight_of(b, moe ? ENG_W_MOE_NORM : ENG_W_ATTN_NORM, layer, 0);
    EngStatus status = eng_mhc_read(b, layer, moe, tokens, err);
    if (status) return status;
    if (c->streams > 1)
        eng_emit(b, layer, moe ? ENG_ACT_MOE_MIX : ENG_ACT_ATTN_MIX, 0, b->mix, tokens,
                 eng_mix_columns(c));
    eng_emit(b, layer, moe ? ENG_ACT_MOE_READ : ENG_ACT_ATTN_READ, 0, b->x, tokens, c->hidden);
    eng_rms_norm(b->x, norm, c->norm_eps, tokens, c->hidden, b->normed);
    eng_emit(b, layer, moe ? ENG_ACT_MOE_IN : ENG_ACT_ATTN_IN, 0, b->normed, tokens, c->hidden);
    status = moe ? eng_moe(b, layer, tokens, err) : eng_attention(b, layer, step, err);
    if (status) return status;
    eng_emit(b, layer, moe ? ENG_ACT_MOE_OUT : ENG_ACT_ATTN_OUT, 0, b->y, tokens, c->hidden);
    eng_mhc_write(b, tokens);
    return ENG_OK;
}

static EngStatus run_layer(EngBackbone *b, int layer, const EngBackboneStep *step, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    const EngBackboneHooks *hooks = &c->hooks;
    int64_t tokens = step->starts[step->n_seqs];
    EngStatus status = ENG_OK;
    if (hooks->before_layer)
        status = hooks->before_layer(hooks->context, step, layer, b->streams, err);
    if (status) return status;
    eng_nvtx_push(ENG_RANGE_LAYER, (EngRangeInfo){.tokens = tokens, .layer = layer, .step = -1});
    if (c->paced_layer_ns) {
        spin(c->paced_layer_ns);
    } else {
        eng_emit(b, layer, ENG_ACT_STREAMS, 0, b->streams, tokens, (int64_t)c->streams * c->hidden);
        status = run_half(b, layer, false, step, err);
        if (!status) status = run_half(b, layer, true, step, err);
    }
    eng_nvtx_pop();
    return status;
}

static EngStatus run_head(EngBackbone *b, const EngBackboneStep *step, bool all, float *logits,
                          EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t rows = all ? step->starts[step->n_seqs] : step->n_seqs, d = c->hidden;
    for (int64_t r = 0; r < rows; r++) {
        int64_t token = all ? r : step->starts[r + 1] - 1;
        eng_mhc_sum(b, &token, 1, b->x + r * d);
    }
    eng_rms_norm(b->x, eng_weight_of(b, ENG_W_FINAL_NORM, 0, 0), c->norm_eps, rows, d, b->normed);
    eng_emit(b, c->layers, ENG_ACT_FINAL, 0, b->normed, rows, d);
    EngProduct head = {b->normed,   eng_weight_of(b, c->tied_head ? ENG_W_EMBED : ENG_W_HEAD, 0, 0),
                       logits,      rows,
                       d,           c->vocab,
                       c->tied_head};
    return eng_product(b->products, &head, err);
}

static EngStatus run_pass(EngBackbone *b, const EngBackboneStep *step, bool all, float *logits,
                          EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    EngStatus status = ENG_OK;
    if (c->paced_vision_ns)
        spin(c->paced_vision_ns);
    else if (!c->paced_layer_ns)
        status = eng_vision(b, err);
    if (status) return status;
    embed(b, step);
    for (int layer = 0; layer < c->layers && !status; layer++)
        status = run_layer(b, layer, step, err);
    if (status || c->paced_layer_ns) return status;
    eng_emit(b, c->layers, ENG_ACT_STREAMS_OUT, 0, b->streams, step->starts[step->n_seqs],
             (int64_t)c->streams * c->hidden);
    return logits ? run_head(b, step, all, logits, err) : ENG_OK;
}

EngStatus eng_backbone_forward(EngBackbone *b, const EngBackboneStep *step, bool all, float *logits,
                               EngErr *err)
{
    EngStatus status = check_step(b, step, err);
    if (!status && logits && b->config.paced_layer_ns)
        status = ENG_FAIL(err, ENG_USAGE, "backbone: a paced one computes no logits");
    if (status) return status;
    int threads = omp_get_max_threads(); /* oneDNN takes its number from OpenMP */
    if (threads != b->config.threads) omp_set_num_threads(b->config.threads);
    status = run_pass(b, step, all, logits, err);
    if (threads != b->config.threads) omp_set_num_threads(threads);
    for (int s = 0; s < step->n_seqs && !status; s++)
        b->lengths[step->slots ? step->slots[s] : s] += step->starts[s + 1] - step->starts[s];
    return status;
}

EngStatus eng_backbone_prefill(EngBackbone *b, int slot, const int32_t *ids, int64_t n,
                               float *logits, EngErr *err)
{
    int64_t starts[] = {0, n};
    EngBackboneStep step = {ids, starts, &slot, 1};
    return eng_backbone_forward(b, &step, false, logits, err);
}

EngStatus eng_backbone_decode(EngBackbone *b, const int32_t *ids, int n_seqs, float *logits,
                              EngErr *err)
{
    enum { MAX_BATCH = 4096 };
    int64_t starts[MAX_BATCH + 1];
    if (n_seqs < 1 || n_seqs > MAX_BATCH)
        return ENG_FAIL(err, ENG_USAGE, "backbone: a decode step of %d sequences; from 1 to %d",
                        n_seqs, MAX_BATCH);
    for (int s = 0; s <= n_seqs; s++) starts[s] = s;
    EngBackboneStep step = {ids, starts, NULL, n_seqs};
    return eng_backbone_forward(b, &step, false, logits, err);
}
