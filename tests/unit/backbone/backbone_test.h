/* Helpers of the backbone tests: shapes, weights by the formula of tests/oracle/backbone_case.py,
 * and comparison of arrays. */
#ifndef ENG_TESTS_BACKBONE_TEST_H
#define ENG_TESTS_BACKBONE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/backbone/backbone.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* Odd wherever a shape may be odd. */
static inline EngBackboneConfig small_config(int streams, EngDtype dtype)
{
    EngBackboneConfig c = eng_backbone_default();
    c.layers = 2, c.hidden = 9, c.streams = streams;
    c.heads = 3, c.kv_heads = 1, c.head_dim = 6;
    c.experts = 5, c.top_k = 2, c.expert_width = 7, c.route_scale = 1.5f;
    c.vocab = 11, c.dtype = c.stream_dtype = dtype;
    c.max_tokens = 70, c.max_seqs = 3, c.max_len = 90;
    c.seed = 3;
    return c;
}

static inline EngBackbone *make_backbone(const EngBackboneConfig *c)
{
    EngBackbone *b = NULL;
    EngErr err = {0};
    if (eng_backbone_create(c, &b, &err)) fail_msg("%s", err.text);
    return b;
}

static inline float float_of_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double formula(EngWeight what, int layer, int expert, int64_t i, int64_t inputs)
{
    uint64_t key = ((uint64_t)what * 16 + (uint64_t)layer) * 64 + (uint64_t)expert;
    uint64_t x = (((uint64_t)i + 1) * 2654435761u + key * 40503u) & 0xffffffffu;
    x ^= x >> 15;
    x = x * 2246822519u & 0xffffffffu;
    x ^= x >> 13;
    double v = (double)x / 2147483648.0 - 1;
    switch (what) {
    case ENG_W_FINAL_NORM:
    case ENG_W_ATTN_NORM:
    case ENG_W_MOE_NORM:
    case ENG_W_VISION_ATTN_NORM:
    case ENG_W_VISION_MLP_NORM:
        return 1 + 0.3 * v;
    case ENG_W_ROUTER_BIAS:
        return 0.2 * v;
    case ENG_W_ATTN_MIX_GAIN:
    case ENG_W_MOE_MIX_GAIN:
        return 0.5 + 0.3 * v;
    case ENG_W_ATTN_MIX_BIAS:
    case ENG_W_MOE_MIX_BIAS:
    case ENG_W_EMBED:
    case ENG_W_PATCHES:
        return v;
    default:
        return v * sqrt(3 / (double)inputs);
    }
}

/* Inputs of a product's weights: what the formula scales by. */
static inline int64_t inputs_of(const EngBackboneConfig *c, EngWeight what)
{
    switch (what) {
    case ENG_W_OUT:
        return (int64_t)c->heads * c->head_dim;
    case ENG_W_SHARED_DOWN:
        return (int64_t)c->shared_experts * c->expert_width;
    case ENG_W_EXPERT_DOWN:
        return c->expert_width;
    case ENG_W_ATTN_MIX:
    case ENG_W_MOE_MIX:
        return (int64_t)c->streams * c->hidden;
    case ENG_W_VISION_QKV:
    case ENG_W_VISION_OUT:
    case ENG_W_VISION_UP:
        return c->vision_hidden;
    case ENG_W_VISION_DOWN:
        return c->vision_width;
    default:
        return c->hidden;
    }
}

static inline void set_formula(EngBackbone *b)
{
    const EngBackboneConfig *c = eng_backbone_config(b);
    for (int what = 0; what < ENG_W_COUNT; what++) {
        bool expert = what == ENG_W_EXPERT_UP || what == ENG_W_EXPERT_DOWN;
        bool global = what <= ENG_W_HEAD || what == ENG_W_PATCHES;
        int layers = global ? 1 : what > ENG_W_PATCHES ? c->vision_layers : c->layers;
        for (int layer = 0; layer < layers; layer++)
            for (int e = 0; e < (expert ? c->experts : 1); e++) {
                int64_t n;
                EngDtype dtype;
                void *at = eng_backbone_weight(b, (EngWeight)what, layer, e, &n, &dtype);
                for (int64_t i = 0; i < n && at; i++) {
                    float v =
                        (float)formula((EngWeight)what, layer, e, i, inputs_of(c, (EngWeight)what));
                    uint32_t bits;
                    memcpy(&bits, &v, sizeof bits);
                    if (dtype == ENG_F32)
                        ((float *)at)[i] = v;
                    else
                        ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
                }
            }
    }
}

/* The largest difference, as a share of the largest value wanted, is at most `limit`. */
static inline void assert_close(const char *what, const float *got, const double *want, int64_t n,
                                double limit)
{
    double most = 0, worst = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(got[i]) < 1e30)) fail_msg("%s: element %lld is %g", what, (long long)i, got[i]);
        if (!(fabs(want[i]) < 1e30))
            fail_msg("%s: element %lld wanted is %g", what, (long long)i, want[i]);
        if (fabs(want[i]) > most) most = fabs(want[i]);
        if (fabs(got[i] - want[i]) > worst) worst = fabs(got[i] - want[i]), at = i;
    }
    if (!(worst <= limit * most))
        fail_msg("%s: element %lld: %.9g, want %.9g, error %.3g of %.3g", what, (long long)at,
                 got[at], want[at], worst, limit * most);
}

static inline void assert_close_f32(const char *what, const float *got, const float *want,
                                    int64_t n, double limit)
{
    double *wide = malloc((size_t)n * sizeof *wide + 1);
    for (int64_t i = 0; i < n; i++) wide[i] = want[i];
    assert_close(what, got, wide, n, limit);
    free(wide);
}

#endif
