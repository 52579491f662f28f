/* Every block of the backbone against plain loops in double precision: what a hook saw go into a
 * block is computed again and compared with what the hook saw come out, so that errors of one block
 * do not hide in another's. Odd shapes, more tokens than a block of any loop, cached prefixes and
 * several sequences, f32 and bf16.
 */
#include "backbone_test.h"

#define MAX_LAYERS 3
#define MAX_SEQS   3
#define MAX_LEN    90

typedef struct Array {
    void *data;
    int64_t rows, columns;
} Array;

typedef struct Capture {
    EngBackbone *b;
    const EngBackboneConfig *c;
    Array of[MAX_LAYERS + 1][ENG_ACT_COUNT];
    int64_t expert_rows;
    /* Queries, keys and values of all tokens so far, as the hook saw them. */
    float *qkv[MAX_LAYERS][MAX_SEQS];
} Capture;

static void keep(void *context, int layer, EngActivation what, int index, const void *data,
                 int64_t rows, int64_t columns)
{
    Capture *capture = context;
    size_t size = 4;
    if ((what == ENG_ACT_STREAMS || what == ENG_ACT_STREAMS_OUT) &&
        capture->c->stream_dtype == ENG_BF16)
        size = 2;
    if (what == ENG_ACT_VISION_IN || what == ENG_ACT_VISION_QKV || what == ENG_ACT_VISION_OUT)
        layer = index; /* checked by known answers alone */
    if (what == ENG_ACT_EXPERT_ROWS) capture->expert_rows += rows;
    Array *to = &capture->of[layer][what];
    free(to->data);
    *to = (Array){malloc((size_t)(rows * columns) * size + 1), rows, columns};
    memcpy(to->data, data, (size_t)(rows * columns) * size);
}

static const float *seen(const Capture *capture, int layer, EngActivation what)
{
    assert_non_null(capture->of[layer][what].data);
    return capture->of[layer][what].data;
}

/* A weight as doubles; the caller frees it. */
static double *weight(const Capture *capture, EngWeight what, int layer, int expert)
{
    int64_t n;
    EngDtype dtype;
    const void *at = eng_backbone_weight(capture->b, what, layer, expert, &n, &dtype);
    double *out = malloc((size_t)n * sizeof *out + 1);
    for (int64_t i = 0; i < n; i++)
        out[i] = dtype == ENG_F32 ? (double)((const float *)at)[i]
                                  : (double)float_of_bf16(((const uint16_t *)at)[i]);
    return out;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* out [rows, n] = x [rows, k] . w [k, n] */
static void product(const float *x, const double *w, int64_t rows, int64_t k, int64_t n,
                    double *out)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++) sum += x[r * k + i] * w[i * n + j];
            out[r * n + j] = sum;
        }
}

/* What a product may be off: f32 sums, or inputs rounded to 8 bits. */
static double limit_of(const Capture *capture)
{
    return capture->c->dtype == ENG_F32 ? 2e-6 : 8e-3;
}

/* ---- the blocks ---- */

static void check_norm(const Capture *capture, int layer, EngActivation from, EngActivation to,
                       EngWeight what)
{
    int64_t rows = capture->of[layer][from].rows, d = capture->c->hidden;
    const float *x = seen(capture, layer, from);
    double *w = weight(capture, what, layer, 0), *want = malloc((size_t)(rows * d) * sizeof *want);
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t i = 0; i < d; i++) squares += (double)x[r * d + i] * x[r * d + i];
        double scale = 1 / sqrt(squares / (double)d + (double)capture->c->norm_eps);
        for (int64_t i = 0; i < d; i++) want[r * d + i] = x[r * d + i] * scale * w[i];
    }
    assert_close("norm", seen(capture, layer, to), want, rows * d, 2e-6);
    free(w), free(want);
}

static double *streams_of(const Capture *capture, int layer, EngActivation what)
{
    const Array *array = &capture->of[layer][what];
    int64_t n = array->rows * array->columns;
    double *out = malloc((size_t)n * sizeof *out);
    assert_non_null(array->data);
    for (int64_t i = 0; i < n; i++)
        out[i] = capture->c->stream_dtype == ENG_F32
                     ? (double)((const float *)array->data)[i]
                     : (double)float_of_bf16(((const uint16_t *)array->data)[i]);
    return out;
}

/* The coefficients of one token: pre [n], post [n], res [n, n]. */
static void mix_token(const Capture *capture, const double *h, const double *w, const double *gain,
                      const double *bias, double *mix)
{
    int n = capture->c->streams, m = n * (n + 2), width = n * capture->c->hidden;
    double squares = 0;
    for (int i = 0; i < width; i++) squares += h[i] * h[i];
    double scale = 1 / sqrt(squares / width + (double)capture->c->norm_eps);
    for (int j = 0; j < m; j++) {
        double sum = 0;
        for (int i = 0; i < width; i++) sum += h[i] * w[i * m + j];
        mix[j] = gain[j < n ? 0 : j < 2 * n ? 1 : 2] * sum * scale + bias[j];
    }
    for (int j = 0; j < 2 * n; j++) mix[j] = (j < n ? 1 : 2) * sigmoid(mix[j]);
    double *res = mix + 2 * n;
    for (int i = 0; i < n * n; i++) res[i] = exp(res[i]);
    for (int round = 0; round < capture->c->sinkhorn_iters; round++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int i = 0; i < n; i++) sum += res[i * n + j];
            for (int i = 0; i < n; i++) res[i * n + j] /= sum;
        }
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int j = 0; j < n; j++) sum += res[i * n + j];
            for (int j = 0; j < n; j++) res[i * n + j] /= sum;
        }
    }
}

/* Read operator: coefficients and x from the streams h. */
static void check_read(const Capture *capture, int layer, bool moe, const double *h)
{
    const EngBackboneConfig *c = capture->c;
    EngActivation to = moe ? ENG_ACT_MOE_READ : ENG_ACT_ATTN_READ;
    int64_t rows = capture->of[layer][to].rows, n = c->streams, d = c->hidden, m = n * (n + 2);
    double *mix = malloc((size_t)(rows * m) * sizeof *mix);
    double *x = calloc((size_t)(rows * d), sizeof *x);
    double limit = c->stream_dtype == ENG_F32 ? 3e-6
                   : moe                      ? 1e-2
                                              : 3e-6; /* moe: h was rounded by us */
    if (n > 1) {
        double *w = weight(capture, moe ? ENG_W_MOE_MIX : ENG_W_ATTN_MIX, layer, 0);
        double *bias = weight(capture, moe ? ENG_W_MOE_MIX_BIAS : ENG_W_ATTN_MIX_BIAS, layer, 0);
        double *gain = weight(capture, moe ? ENG_W_MOE_MIX_GAIN : ENG_W_ATTN_MIX_GAIN, layer, 0);
        for (int64_t r = 0; r < rows; r++)
            mix_token(capture, h + r * n * d, w, gain, bias, mix + r * m);
        assert_close("mix", seen(capture, layer, moe ? ENG_ACT_MOE_MIX : ENG_ACT_ATTN_MIX), mix,
                     rows * m, limit);
        free(w), free(bias), free(gain);
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i < d; i++)
                x[r * d + i] += (n > 1 ? mix[r * m + k] : 1) * h[(r * n + k) * d + i];
    assert_close("read", seen(capture, layer, to), x, rows * d, limit);
    free(mix), free(x);
}

/* Write operator: h becomes the streams after it, with the coefficients that were seen. */
static void write_back(const Capture *capture, int layer, bool moe, double *h)
{
    const EngBackboneConfig *c = capture->c;
    EngActivation out = moe ? ENG_ACT_MOE_OUT : ENG_ACT_ATTN_OUT;
    int64_t rows = capture->of[layer][out].rows, n = c->streams, d = c->hidden, m = n * (n + 2);
    const float *y = seen(capture, layer, out);
    const float *mix =
        n > 1 ? seen(capture, layer, moe ? ENG_ACT_MOE_MIX : ENG_ACT_ATTN_MIX) : NULL;
    double *next = calloc((size_t)(rows * n * d), sizeof *next);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < d; i++) {
                double *to = &next[(r * n + j) * d + i];
                for (int64_t k = 0; k < n; k++)
                    *to += (mix ? mix[r * m + 2 * n + j * n + k] : 1) * h[(r * n + k) * d + i];
                *to += (mix ? mix[r * m + n + j] : 1) * y[r * d + i];
            }
    memcpy(h, next, (size_t)(rows * n * d) * sizeof *h);
    free(next);
}

static void check_streams(const Capture *capture, int layer, EngActivation what, const double *want)
{
    const Array *array = &capture->of[layer][what];
    int64_t n = array->rows * array->columns;
    double *got = streams_of(capture, layer, what);
    float *narrow = malloc((size_t)n * sizeof *narrow);
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)got[i];
    assert_close("streams", narrow, want, n, capture->c->stream_dtype == ENG_F32 ? 2e-6 : 1e-2);
    free(got), free(narrow);
}

/* Projection and RoPE at the positions of the tokens. */
static void check_qkv(const Capture *capture, int layer, const EngBackboneStep *step,
                      const int64_t *past)
{
    const EngBackboneConfig *c = capture->c;
    int64_t rows = step->starts[step->n_seqs], d = c->hidden, dim = c->head_dim, half = dim / 2;
    int64_t width = (c->heads + 2 * c->kv_heads) * dim;
    double *w = weight(capture, ENG_W_QKV, layer, 0);
    double *want = malloc((size_t)(rows * width) * sizeof *want);
    product(seen(capture, layer, ENG_ACT_ATTN_IN), w, rows, d, width, want);
    for (int s = 0; s < step->n_seqs; s++)
        for (int64_t t = step->starts[s]; t < step->starts[s + 1]; t++)
            for (int h = 0; h < c->heads + c->kv_heads; h++)
                for (int64_t i = 0; i < half; i++) {
                    double *x = want + t * width + h * dim + i, *y = x + half, a = *x, b = *y;
                    double angle = (double)(past[step->slots[s]] + t - step->starts[s]) *
                                   pow(c->rope_theta, -(double)i / (double)half);
                    *x = a * cos(angle) - b * sin(angle);
                    *y = a * sin(angle) + b * cos(angle);
                }
    assert_close("qkv", seen(capture, layer, ENG_ACT_QKV), want, rows * width,
                 limit_of(capture) * 2);
    free(w), free(want);
}

static void check_context(Capture *capture, int layer, const EngBackboneStep *step,
                          const int64_t *past)
{
    const EngBackboneConfig *c = capture->c;
    int64_t rows = step->starts[step->n_seqs], dim = c->head_dim, inner = c->heads * dim;
    int64_t width = (c->heads + 2 * c->kv_heads) * dim;
    const float *qkv = seen(capture, layer, ENG_ACT_QKV);
    double *want = calloc((size_t)(rows * inner), sizeof *want), scores[MAX_LEN];
    for (int s = 0; s < step->n_seqs; s++) {
        int slot = step->slots[s];
        float *all = capture->qkv[layer][slot];
        for (int64_t t = step->starts[s]; t < step->starts[s + 1]; t++) {
            int64_t position = past[slot] + t - step->starts[s];
            memcpy(all + position * width, qkv + t * width, (size_t)width * sizeof *all);
            for (int h = 0; h < c->heads; h++) {
                int kv = h / (c->heads / c->kv_heads);
                const float *q = qkv + t * width + h * dim;
                double sum = 0;
                for (int64_t j = 0; j <= position; j++) {
                    const float *k = all + j * width + (c->heads + kv) * dim;
                    scores[j] = 0;
                    for (int64_t i = 0; i < dim; i++) scores[j] += (double)q[i] * k[i];
                    sum += scores[j] = exp(scores[j] / sqrt((double)dim));
                }
                for (int64_t j = 0; j <= position; j++) {
                    const float *v = all + j * width + (c->heads + c->kv_heads + kv) * dim;
                    for (int64_t i = 0; i < dim; i++)
                        want[t * inner + h * dim + i] += scores[j] / sum * v[i];
                }
            }
        }
    }
    assert_close("context", seen(capture, layer, ENG_ACT_CONTEXT), want, rows * inner, 3e-6);
    double *w = weight(capture, ENG_W_OUT, layer, 0);
    double *out = malloc((size_t)(rows * c->hidden) * sizeof *out);
    product(seen(capture, layer, ENG_ACT_CONTEXT), w, rows, inner, c->hidden, out);
    assert_close("attention", seen(capture, layer, ENG_ACT_ATTN_OUT), out, rows * c->hidden,
                 limit_of(capture));
    free(want), free(w), free(out);
}

static void check_route(const Capture *capture, int layer)
{
    const EngBackboneConfig *c = capture->c;
    int64_t rows = capture->of[layer][ENG_ACT_AFFINITY].rows, e = c->experts, k = c->top_k;
    const float *affinity = seen(capture, layer, ENG_ACT_AFFINITY);
    const float *route = seen(capture, layer, ENG_ACT_ROUTE);
    const int32_t *choice = (const int32_t *)seen(capture, layer, ENG_ACT_CHOICE);
    double *w = weight(capture, ENG_W_ROUTER, layer, 0);
    double *bias = weight(capture, ENG_W_ROUTER_BIAS, layer, 0);
    double *want = malloc((size_t)(rows * e) * sizeof *want), weights[16];
    product(seen(capture, layer, ENG_ACT_MOE_IN), w, rows, c->hidden, e, want);
    for (int64_t i = 0; i < rows * e; i++) want[i] = sigmoid(want[i]);
    assert_close("affinity", affinity, want, rows * e, 3e-6);
    for (int64_t t = 0; t < rows; t++) {
        double sum = 0;
        for (int64_t i = 0; i < k; i++) { /* nobody that was passed over is better */
            int32_t mine = choice[t * k + i];
            assert_in_range(mine, 0, e - 1);
            sum += weights[i] = affinity[t * e + mine];
            for (int32_t other = 0; other < e; other++) {
                bool before = other == mine;
                for (int64_t j = 0; j < i; j++) before |= choice[t * k + j] == other;
                if (before) continue;
                float a = affinity[t * e + mine] + (float)bias[mine];
                float z = affinity[t * e + other] + (float)bias[other];
                assert_true(a > z || (a == z && mine < other));
            }
        }
        for (int64_t i = 0; i < k; i++) weights[i] *= (double)c->route_scale / sum;
        assert_close("route", route + t * k, weights, k, 1e-6);
    }
    free(w), free(bias), free(want);
}

/* y += gate * expert(x) for one token, in double. */
static void add_expert(const Capture *capture, const double *up, const double *down, const float *x,
                       int64_t w, double gate, double *y)
{
    int64_t d = capture->c->hidden;
    double hidden[512];
    product(x, up, 1, d, 2 * w, hidden);
    for (int64_t i = 0; i < w; i++) hidden[i] = hidden[i] * sigmoid(hidden[i]) * hidden[w + i];
    for (int64_t i = 0; i < w; i++)
        for (int64_t j = 0; j < d; j++) y[j] += gate * hidden[i] * down[i * d + j];
}

static void check_moe(const Capture *capture, int layer)
{
    const EngBackboneConfig *c = capture->c;
    int64_t rows = capture->of[layer][ENG_ACT_MOE_OUT].rows, d = c->hidden, k = c->top_k;
    const float *x = seen(capture, layer, ENG_ACT_MOE_IN);
    double *want = calloc((size_t)(rows * d), sizeof *want);
    int64_t shared = (int64_t)c->shared_experts * c->expert_width;
    double *up = weight(capture, ENG_W_SHARED_UP, layer, 0);
    double *down = weight(capture, ENG_W_SHARED_DOWN, layer, 0);
    for (int64_t t = 0; t < rows && shared; t++)
        add_expert(capture, up, down, x + t * d, shared, 1, want + t * d);
    free(up), free(down);
    if (c->experts) check_route(capture, layer);
    for (int e = 0; e < c->experts; e++) {
        const int32_t *choice = (const int32_t *)seen(capture, layer, ENG_ACT_CHOICE);
        const float *route = seen(capture, layer, ENG_ACT_ROUTE);
        up = weight(capture, ENG_W_EXPERT_UP, layer, e);
        down = weight(capture, ENG_W_EXPERT_DOWN, layer, e);
        for (int64_t i = 0; i < rows * k; i++)
            if (choice[i] == e)
                add_expert(capture, up, down, x + i / k * d, c->expert_width, route[i],
                           want + i / k * d);
        free(up), free(down);
    }
    assert_close("moe", seen(capture, layer, ENG_ACT_MOE_OUT), want, rows * d,
                 limit_of(capture) * 2);
    free(want);
}

/* ---- the passes ---- */

static void check_pass(Capture *capture, const EngBackboneStep *step)
{
    const EngBackboneConfig *c = capture->c;
    int64_t tokens = step->starts[step->n_seqs], past[MAX_SEQS];
    EngErr err = {0};
    for (int s = 0; s < MAX_SEQS; s++) past[s] = eng_backbone_length(capture->b, s);
    capture->expert_rows = 0;
    if (eng_backbone_forward(capture->b, step, false, NULL, &err)) fail_msg("%s", err.text);
    assert_int_equal(capture->expert_rows, c->layers * tokens * c->top_k);
    for (int layer = 0; layer < c->layers; layer++) {
        double *h = streams_of(capture, layer, ENG_ACT_STREAMS);
        check_read(capture, layer, false, h);
        check_norm(capture, layer, ENG_ACT_ATTN_READ, ENG_ACT_ATTN_IN, ENG_W_ATTN_NORM);
        check_qkv(capture, layer, step, past);
        check_context(capture, layer, step, past);
        write_back(capture, layer, false, h);
        check_read(capture, layer, true, h);
        check_norm(capture, layer, ENG_ACT_MOE_READ, ENG_ACT_MOE_IN, ENG_W_MOE_NORM);
        check_moe(capture, layer);
        write_back(capture, layer, true, h);
        bool last = layer == c->layers - 1;
        check_streams(capture, layer + 1, last ? ENG_ACT_STREAMS_OUT : ENG_ACT_STREAMS, h);
        free(h);
    }
}

static void check_backbone(EngBackboneConfig c)
{
    static Capture capture;
    EngErr err = {0};
    int32_t ids[80];
    capture = (Capture){.c = &c};
    c.hooks = (EngBackboneHooks){.context = &capture, .activation = keep};
    if (eng_backbone_create(&c, &capture.b, &err)) {
        assert_int_equal(err.status, ENG_UNSUPPORTED);
        return;
    }
    set_formula(capture.b);
    int64_t width = (c.heads + 2 * c.kv_heads) * c.head_dim;
    for (int i = 0; i < MAX_LAYERS * MAX_SEQS; i++)
        capture.qkv[i / MAX_SEQS][i % MAX_SEQS] = malloc((size_t)(MAX_LEN * width) * sizeof(float));
    for (int i = 0; i < 80; i++) ids[i] = (i * i + 3 * i) % c.vocab;
    /* A prompt of one sequence, prompts of the others beside a step of it, then single tokens. */
    static const int slots[][3] = {{1}, {2, 1, 0}, {0, 1, 2}};
    static const int64_t starts[][4] = {{0, 67}, {0, 5, 6, 17}, {0, 1, 2, 3}};
    for (int i = 0; i < 3; i++) {
        EngBackboneStep step = {ids + i, starts[i], slots[i], i ? 3 : 1};
        check_pass(&capture, &step);
    }
    for (int i = 0; i < MAX_LAYERS * MAX_SEQS; i++) free(capture.qkv[i / MAX_SEQS][i % MAX_SEQS]);
    for (int i = 0; i < (MAX_LAYERS + 1) * ENG_ACT_COUNT; i++)
        free(capture.of[i / ENG_ACT_COUNT][i % ENG_ACT_COUNT].data);
    eng_backbone_destroy(capture.b);
}

static void test_streams(void **state)
{
    (void)state;
    for (int streams = 1; streams <= 4; streams++) check_backbone(small_config(streams, ENG_F32));
}

static void test_bf16(void **state)
{
    (void)state;
    for (int streams = 1; streams <= 4; streams += 3)
        check_backbone(small_config(streams, ENG_BF16));
    EngBackboneConfig c = small_config(4, ENG_F32); /* bf16 streams around f32 products */
    c.stream_dtype = ENG_BF16;
    check_backbone(c);
    c = small_config(1, ENG_BF16);
    c.stream_dtype = ENG_F32;
    check_backbone(c);
}

/* One head group each, several shared experts, none, all experts chosen, no experts, no rounds of
 * balancing, wide rows. */
static void test_other_shapes(void **state)
{
    EngBackboneConfig c = small_config(2, ENG_F32);
    (void)state;
    c.kv_heads = 3, c.shared_experts = 3;
    check_backbone(c);
    c = small_config(1, ENG_F32);
    c.layers = 3, c.shared_experts = 0, c.top_k = 5;
    check_backbone(c);
    c = small_config(3, ENG_F32);
    c.experts = c.top_k = 0, c.sinkhorn_iters = 1;
    check_backbone(c);
    c = small_config(4, ENG_F32);
    c.hidden = 133, c.expert_width = 71, c.heads = 5, c.head_dim = 34, c.experts = 9, c.top_k = 3;
    check_backbone(c);
    c.threads = 2;
    check_backbone(c);
    c.dtype = ENG_BF16;
    check_backbone(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_streams), cmocka_unit_test(test_bf16),
                                       cmocka_unit_test(test_other_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
