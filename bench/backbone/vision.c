/* A vision encoder's stand-in: full attention and a GELU MLP over patches, pre-norm residuals. It
 * lengthens the time before the first layer, as encoding an image does; nothing reads its output.
 */
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/backbone/parts.h"
#include "bench/backbone/pointwise.h"

/* vision += product of x [patches, inputs] with a weight. */
static EngStatus add_product(EngBackbone *b, EngWeight what, int layer, const float *x,
                             int64_t inputs, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t patches = c->vision_patches, d = c->vision_hidden;
    EngProduct product = {
        x, eng_weight_of(b, what, layer, 0), b->vision_normed, patches, inputs, d, false};
    EngStatus status = eng_product(b->products, &product, err);
    if (!status) eng_add_scaled(b->vision, b->vision_normed, 1, (size_t)(patches * d));
    return status;
}

static EngStatus attend_all(EngBackbone *b, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t d = c->vision_hidden, dim = d / c->vision_heads, patches = c->vision_patches;
    int64_t longest = c->max_len > patches ? c->max_len : patches;
    atomic_int failed = 0;
    int threads = c->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (int h = 0; h < c->vision_heads; h++) {
        const float *q = b->vision_qkv + h * dim;
        EngAttend attend = {.q = q,
                            .k = q + d,
                            .v = q + 2 * d,
                            .out = b->vision_heads + h * dim,
                            .ldq = 3 * d,
                            .ldkv = 3 * d,
                            .ldo = d,
                            .rows = patches,
                            .keys = patches,
                            .visible = patches,
                            .head_dim = (int)dim};
        EngStatus status =
            eng_attend(&attend, b->scores + omp_get_thread_num() * ENG_QUERY_BLOCK * longest, NULL);
        if (status) atomic_store(&failed, (int)status);
    }
    if (!atomic_load(&failed)) return ENG_OK;
    return ENG_FAIL(err, (EngStatus)atomic_load(&failed), "oneDNN failed in vision attention");
}

static EngStatus run_layer(EngBackbone *b, int layer, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t patches = c->vision_patches, d = c->vision_hidden, w = c->vision_width;
    EngProduct qkv = {b->vision_normed,
                      eng_weight_of(b, ENG_W_VISION_QKV, layer, 0),
                      b->vision_qkv,
                      patches,
                      d,
                      3 * d,
                      false};
    EngProduct up = {b->vision_normed,
                     eng_weight_of(b, ENG_W_VISION_UP, layer, 0),
                     b->vision_wide,
                     patches,
                     d,
                     w,
                     false};
    eng_emit(b, layer, ENG_ACT_VISION_IN, 0, b->vision, patches, d);
    eng_rms_norm(b->vision, eng_weight_of(b, ENG_W_VISION_ATTN_NORM, layer, 0), c->norm_eps,
                 patches, d, b->vision_normed);
    EngStatus status = eng_product(b->products, &qkv, err);
    if (status) return status;
    eng_emit(b, layer, ENG_ACT_VISION_QKV, 0, b->vision_qkv, patches, 3 * d);
    status = attend_all(b, err);
    if (!status) status = add_product(b, ENG_W_VISION_OUT, layer, b->vision_heads, d, err);
    if (status) return status;
    eng_rms_norm(b->vision, eng_weight_of(b, ENG_W_VISION_MLP_NORM, layer, 0), c->norm_eps, patches,
                 d, b->vision_normed);
    status = eng_product(b->products, &up, err);
    if (status) return status;
    eng_gelu(b->vision_wide, (size_t)(patches * w));
    status = add_product(b, ENG_W_VISION_DOWN, layer, b->vision_wide, w, err);
    eng_emit(b, layer, ENG_ACT_VISION_OUT, 0, b->vision, patches, d);
    return status;
}

EngStatus eng_vision(EngBackbone *b, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    EngStatus status = ENG_OK;
    if (!c->vision_layers) return ENG_OK;
    memcpy(b->vision, eng_weight_of(b, ENG_W_PATCHES, 0, 0),
           (size_t)c->vision_patches * (size_t)c->vision_hidden * sizeof *b->vision);
    for (int layer = 0; layer < c->vision_layers && !status; layer++)
        status = run_layer(b, layer, err);
    return status;
}
