/* One lane of training: memory of its activations, and a forward and backward pass over its share
 * of a batch; see train_parts.h. */
#include <string.h>

#include "base/mem.h"
#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/parts.h"
#include "bench/backbone/pointwise.h"
#include "bench/backbone/train_parts.h"

/* ---- access ---- */

static const EngTensor *tensor_of(const EngTrainer *t, int what, int layer, int expert)
{
    return &t->tensors.list[t->tensors.first[what][layer] + expert];
}

EngDense eng_dense(const EngLane *lane, int what, int layer, int expert)
{
    const EngTrainer *t = lane->trainer;
    const EngTensor *tensor = tensor_of(t, what, layer, expert);
    bool rounded = t->rounded && (tensor->group == ENG_GROUP_VOCABULARY ||
                                  (tensor->group == ENG_GROUP_MATRIX && what != ENG_W_ROUTER &&
                                   what != ENG_W_ATTN_MIX && what != ENG_W_MOE_MIX));
    return (EngDense){.w = t->values + tensor->at,
                      .rounded = rounded ? t->rounded + tensor->at : NULL,
                      .gradient = lane->gradient ? lane->gradient + tensor->at : NULL,
                      .in = tensor->rows,
                      .out = tensor->columns,
                      .fresh = tensor->group == ENG_GROUP_MATRIX}; /* used once in a pass */
}

const EngReal *eng_value(const EngLane *lane, int what, int layer)
{
    return lane->trainer->values + tensor_of(lane->trainer, what, layer, 0)->at;
}

EngReal *eng_gradient(const EngLane *lane, int what, int layer)
{
    return lane->gradient + tensor_of(lane->trainer, what, layer, 0)->at;
}

/* ---- memory ---- */

/* Hands out parts of one block; the first walk, with base NULL, only counts. */
typedef struct Carver {
    uint8_t *base;
    size_t used;
    bool fits;
} Carver;

static void *carve(Carver *carver, int64_t n, size_t size)
{
    size_t bytes, end;
    void *part = carver->base ? carver->base + carver->used : NULL;
    bool fits = eng_mul_size((size_t)n, size, &bytes) && eng_add_size(bytes, 63, &bytes) &&
                eng_add_size(carver->used, bytes & ~(size_t)63, &end);
    carver->fits &= fits;
    if (fits) carver->used = end;
    return part;
}

static EngReal *reals(Carver *carver, int64_t a, int64_t b)
{
    return carve(carver, a * b, sizeof(EngReal));
}

static int module_at(const EngTrainConfig *config, int layer)
{
    for (int m = 0; m < config->engram_layers; m++)
        if (config->engram_at[m] == layer) return m;
    return -1;
}

static void carve_half(Carver *carver, const EngTrainConfig *config, int64_t tokens, bool own_x,
                       EngHalfKept *half)
{
    int64_t d = config->model.hidden, n = config->model.streams, m = n > 1 ? n * (n + 2) : 0;
    half->streams = reals(carver, tokens, n * d);
    half->x = own_x ? reals(carver, tokens, d) : half->streams;
    half->rstd = reals(carver, tokens, 1);
    half->normed = reals(carver, tokens, d);
    half->y = reals(carver, tokens, d);
    half->raw = reals(carver, tokens, m);
    half->mix = reals(carver, tokens, m);
    half->scale = reals(carver, tokens, m ? 1 : 0);
}

static void carve_layer(Carver *carver, const EngTrainConfig *config, int64_t tokens, int layer,
                        EngLayerKept *kept)
{
    const EngBackboneConfig *c = &config->model;
    int64_t choices = tokens * c->top_k;
    bool read = config->fusion == ENG_FUSION_READ && module_at(config, layer) >= 0;
    carve_half(carver, config, tokens, c->streams > 1 || read, &kept->attention);
    carve_half(carver, config, tokens, c->streams > 1, &kept->moe);
    kept->qkv = reals(carver, tokens, (int64_t)(c->heads + 2 * c->kv_heads) * c->head_dim);
    kept->context = reals(carver, tokens, (int64_t)c->heads * c->head_dim);
    kept->lse = reals(carver, tokens, c->heads);
    kept->affinity = reals(carver, tokens, c->experts);
    kept->route = reals(carver, choices, 1);
    kept->choice = carve(carver, choices, sizeof *kept->choice);
    kept->order = carve(carver, choices, sizeof *kept->order);
    kept->first = carve(carver, c->experts + 1, sizeof *kept->first);
    kept->shared = reals(carver, tokens, 2 * eng_shared_width(c));
    kept->wide = reals(carver, choices, 2 * c->expert_width);
}

static void carve_module(Carver *carver, const EngTrainConfig *config, int64_t tokens,
                         EngEngramKept *kept)
{
    int64_t d = config->model.hidden, n = eng_train_module_streams(config);
    int64_t conv = config->conv_kernel ? tokens : 0;
    kept->streams = reals(carver, config->fusion == ENG_FUSION_INPUT ? 0 : tokens, n * d);
    kept->e = reals(carver, tokens, eng_train_d_mem(config));
    kept->kv = reals(carver, tokens, (n + 1) * d);
    kept->scores = reals(carver, tokens, n);
    kept->gates = reals(carver, tokens, n);
    kept->rx = reals(carver, tokens, n);
    kept->rk = reals(carver, tokens, n);
    kept->value = reals(carver, conv, n * d);
    kept->normed = reals(carver, conv, n * d);
    kept->conv_rstd = reals(carver, conv, n);
    kept->conv = reals(carver, conv, n * d);
}

static void carve_scratch(Carver *carver, const EngTrainConfig *config, int64_t tokens,
                          EngScratch *s)
{
    const EngBackboneConfig *c = &config->model;
    int64_t d = c->hidden, n = c->streams, shared = eng_shared_width(c), conv = config->conv_kernel;
    int64_t w = shared > c->expert_width ? shared : c->expert_width;
    s->streams = reals(carver, tokens, n * d);
    s->a = reals(carver, tokens, d);
    s->b = reals(carver, tokens, d);
    s->token = reals(carver, n, d);
    s->qkv = reals(carver, tokens, (int64_t)(c->heads + 2 * c->kv_heads) * c->head_dim);
    s->context = reals(carver, tokens, (int64_t)c->heads * c->head_dim);
    s->scores = reals(carver, 2 * ENG_TRAIN_QUERIES, config->seq_len);
    s->affinity = reals(carver, tokens, c->experts);
    s->route = reals(carver, tokens, c->top_k);
    s->share = reals(carver, c->experts, 1);
    s->act = reals(carver, tokens, w);
    s->act2 = reals(carver, tokens, w);
    s->rows = reals(carver, tokens, d);
    s->scale = reals(carver, tokens, 1);
    s->d_scale = reals(carver, tokens, 1);
    s->mix = reals(carver, tokens, n * (n + 2));
    s->kv = reals(carver, tokens, (n + 1) * d);
    s->weight = reals(carver, 2 * n, d);
    s->taps = reals(carver, 2 * conv, n * d);
    s->gated = reals(carver, conv ? tokens : 0, n * d);
    s->logits = reals(carver, ENG_TRAIN_CHUNK, c->vocab);
}

static void carve_lane(Carver *carver, EngLane *lane)
{
    const EngTrainer *t = lane->trainer;
    const EngTrainConfig *config = &t->config;
    const EngBackboneConfig *c = &config->model;
    int64_t tokens = lane->max_tokens, d = c->hidden;
    lane->layers = carve(carver, c->layers, sizeof *lane->layers);
    lane->engrams = carve(carver, config->engram_layers, sizeof *lane->engrams);
    EngLayerKept layer;
    EngEngramKept module;
    for (int l = 0; l < c->layers; l++)
        carve_layer(carver, config, tokens, l, carver->base ? &lane->layers[l] : &layer);
    for (int m = 0; m < config->engram_layers; m++)
        carve_module(carver, config, tokens, carver->base ? &lane->engrams[m] : &module);
    lane->out_streams = reals(carver, tokens, c->streams * d);
    lane->final_x = c->streams > 1 ? reals(carver, tokens, d) : lane->out_streams;
    lane->final_rstd = reals(carver, tokens, 1);
    lane->final = reals(carver, tokens, d);
    lane->gradient = reals(carver, t->tensors.dense, 1);
    lane->load = carve(carver, (int64_t)c->layers * c->experts, sizeof *lane->load);
    carve_scratch(carver, config, tokens, &lane->scratch);
}

/* Elements of the largest operand that is rounded: tokens (times top_k within an expert at most
 * tokens) times the widest side of a matrix, or a chunk of logits. */
static int64_t largest_operand(const EngTrainConfig *config, int64_t tokens)
{
    int64_t most = ENG_TRAIN_CHUNK * (int64_t)config->model.vocab;
    for (int what = 0; what < ENG_W_TRAIN_COUNT; what++) {
        int64_t rows, columns;
        eng_train_shape(config, what, &rows, &columns);
        if (what == ENG_W_EMBED || what == ENG_W_HEAD || what == ENG_W_TABLE) continue;
        if (rows * tokens > most) most = rows * tokens;
        if (columns * tokens > most) most = columns * tokens;
    }
    return most;
}

EngStatus eng_lane_create(EngTrainer *trainer, int64_t tokens, EngLane *lane, EngErr *err)
{
    Carver carver = {.fits = true};
    *lane = (EngLane){.trainer = trainer, .max_tokens = tokens};
    carve_lane(&carver, lane);
    if (!carver.fits)
        return ENG_FAIL(err, ENG_USAGE, "training: shapes overflow the address space");
    EngStatus status = eng_alloc_or(&lane->memory, carver.used, 1, "activations", err);
    if (status) return status;
    carver = (Carver){.base = lane->memory, .fits = true};
    carve_lane(&carver, lane);
    const int64_t often[ENG_DENSE_ROWS] = {tokens, ENG_TRAIN_CHUNK};
    return eng_denses_create(trainer->config.model.dtype, largest_operand(&trainer->config, tokens),
                             often, &lane->products, err);
}

void eng_lane_destroy(EngLane *lane)
{
    eng_denses_destroy(lane->products);
    eng_free(lane->memory);
}

/* ---- forward ---- */

/* Where the streams that enter a layer are kept; beyond the last: what leaves it. */
static EngReal *entry_of(const EngLane *lane, int layer)
{
    const EngTrainConfig *config = &lane->trainer->config;
    if (layer == config->model.layers) return lane->out_streams;
    int module = config->fusion == ENG_FUSION_STREAMS ? module_at(config, layer) : -1;
    return module < 0 ? lane->layers[layer].attention.streams : lane->engrams[module].streams;
}

static EngStatus embed_tokens(EngLane *lane, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    int64_t n = config->model.streams, d = config->model.hidden;
    const EngReal *table = eng_value(lane, ENG_W_EMBED, 0);
    EngReal *x = lane->scratch.a, *streams = entry_of(lane, 0);
    EngStatus status = ENG_OK;
    for (int64_t t = 0; t < lane->tokens; t++)
        memcpy(x + t * d, table + lane->ids[t] * d, (size_t)d * sizeof *x);
    if (config->engram_layers && config->fusion == ENG_FUSION_INPUT)
        status = eng_train_over_encode(lane, x, err);
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t s = 0; s < n; s++)
            memcpy(streams + (t * n + s) * d, x + t * d, (size_t)d * sizeof *x);
    eng_part_end(lane, ENG_PART_EMBED);
    return status;
}

static EngStatus attention_half(EngLane *lane, int layer, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    EngHalfKept *half = &lane->layers[layer].attention;
    int module = module_at(config, layer);
    bool read = module >= 0 && config->fusion == ENG_FUSION_READ;
    size_t n = (size_t)(lane->tokens * config->model.hidden);
    EngStatus status = eng_streams_read(lane, layer, false, err);
    if (!status && read) {
        EngReal *x = lane->engrams[module].streams;
        memcpy(x, half->x, n * sizeof *x);
        status = eng_train_engram(lane, module, x, half->x, err);
    }
    if (status) return status;
    eng_streams_norm(lane, layer, false);
    eng_part_end(lane, ENG_PART_STREAMS);
    status = eng_train_attention(lane, layer, err);
    eng_part_end(lane, ENG_PART_ATTENTION);
    if (status) return status;
    if (read) { /* what Engram added to the read vector goes through to the streams */
        eng_add(half->y, half->x, half->y, n);
        eng_add_scaled(half->y, lane->engrams[module].streams, -1, n);
    }
    eng_streams_write(lane, layer, false, lane->layers[layer].moe.streams);
    return ENG_OK;
}

static EngStatus layer_forward(EngLane *lane, int layer, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    int module = config->fusion == ENG_FUSION_STREAMS ? module_at(config, layer) : -1;
    int64_t width = (int64_t)config->model.streams * config->model.hidden;
    EngReal *entry = entry_of(lane, layer);
    EngStatus status = ENG_OK;
    eng_show(lane, layer, ENG_TV_STREAMS, entry, width);
    if (module >= 0)
        status = eng_train_engram(lane, module, entry, lane->layers[layer].attention.streams, err);
    eng_part_end(lane, ENG_PART_ENGRAM);
    if (!status) status = attention_half(lane, layer, err);
    if (!status) status = eng_streams_read(lane, layer, true, err);
    if (status) return status;
    eng_streams_norm(lane, layer, true);
    eng_part_end(lane, ENG_PART_STREAMS);
    status = eng_train_moe(lane, layer, err);
    if (status) return status;
    eng_streams_write(lane, layer, true, entry_of(lane, layer + 1));
    eng_part_end(lane, ENG_PART_STREAMS);
    return ENG_OK;
}

static void sum_streams(const EngLane *lane, EngReal *out)
{
    int64_t n = lane->trainer->config.model.streams, d = lane->trainer->config.model.hidden;
    memset(out, 0, (size_t)(lane->tokens * d) * sizeof *out);
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t s = 0; s < n; s++)
            eng_add_scaled(out + t * d, lane->out_streams + (t * n + s) * d, 1, (size_t)d);
}

static EngStatus lane_forward(EngLane *lane, EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngStatus status = embed_tokens(lane, err);
    for (int layer = 0; layer < c->layers && !status; layer++)
        status = layer_forward(lane, layer, err);
    if (status) return status;
    eng_show(lane, c->layers, ENG_TV_STREAMS, lane->out_streams, (int64_t)c->streams * c->hidden);
    if (c->streams > 1) sum_streams(lane, lane->final_x);
    eng_norm_forward(lane->final_x, eng_value(lane, ENG_W_FINAL_NORM, 0), c->norm_eps, lane->tokens,
                     c->hidden, lane->final_rstd, lane->final);
    eng_show(lane, c->layers, ENG_TV_FINAL, lane->final, c->hidden);
    eng_part_end(lane, ENG_PART_STREAMS);
    return ENG_OK;
}

/* ---- backward: scratch.streams is the gradient of the streams ---- */

static EngStatus moe_half_back(EngLane *lane, int layer, EngErr *err)
{
    EngScratch *s = &lane->scratch;
    eng_streams_write_back(lane, layer, true, s->streams, s->a);
    eng_part_end(lane, ENG_PART_STREAMS);
    EngStatus status = eng_train_moe_back(lane, layer, s->a, s->b, err);
    if (status) return status;
    eng_streams_norm_back(lane, layer, true, s->b, s->b);
    status = eng_streams_read_back(lane, layer, true, s->b, s->streams, err);
    eng_part_end(lane, ENG_PART_STREAMS);
    return status;
}

static EngStatus attention_half_back(EngLane *lane, int layer, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    EngScratch *s = &lane->scratch;
    int module = module_at(config, layer);
    size_t n = (size_t)(lane->tokens * config->model.hidden);
    eng_streams_write_back(lane, layer, false, s->streams, s->a);
    eng_part_end(lane, ENG_PART_STREAMS);
    EngStatus status = eng_train_attention_back(lane, layer, s->a, s->b, err);
    eng_part_end(lane, ENG_PART_ATTENTION);
    if (status) return status;
    eng_streams_norm_back(lane, layer, false, s->b, s->b);
    if (module >= 0 && config->fusion == ENG_FUSION_READ) {
        /* x + z was read and z went to y: z gets both gradients, x only the first and the gate's */
        eng_add(s->b, s->a, s->b, n);
        status = eng_train_engram_back(lane, module, lane->engrams[module].streams, s->b, err);
        eng_add_scaled(s->b, s->a, -1, n);
    }
    if (!status) status = eng_streams_read_back(lane, layer, false, s->b, s->streams, err);
    eng_part_end(lane, ENG_PART_STREAMS);
    return status;
}

static EngStatus embed_back(EngLane *lane, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    int64_t n = config->model.streams, d = config->model.hidden;
    EngReal *d_x = lane->scratch.a, *gradient = eng_gradient(lane, ENG_W_EMBED, 0);
    EngStatus status = ENG_OK;
    memset(d_x, 0, (size_t)(lane->tokens * d) * sizeof *d_x);
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t s = 0; s < n; s++)
            eng_add_scaled(d_x + t * d, lane->scratch.streams + (t * n + s) * d, 1, (size_t)d);
    if (config->engram_layers && config->fusion == ENG_FUSION_INPUT)
        status = eng_train_over_encode_back(lane, d_x, err);
    for (int64_t t = 0; t < lane->tokens; t++)
        eng_add_scaled(gradient + lane->ids[t] * d, d_x + t * d, 1, (size_t)d);
    eng_part_end(lane, ENG_PART_EMBED);
    return status;
}

static EngStatus lane_backward(EngLane *lane, EngErr *err)
{
    const EngTrainConfig *config = &lane->trainer->config;
    const EngBackboneConfig *c = &config->model;
    EngScratch *s = &lane->scratch;
    int64_t n = c->streams, d = c->hidden;
    EngStatus status = ENG_OK;
    eng_norm_backward(lane->final_x, eng_value(lane, ENG_W_FINAL_NORM, 0), lane->final_rstd, s->b,
                      lane->tokens, d, s->b, eng_gradient(lane, ENG_W_FINAL_NORM, 0));
    for (int64_t t = 0; t < lane->tokens; t++)
        for (int64_t k = 0; k < n; k++)
            memcpy(s->streams + (t * n + k) * d, s->b + t * d, (size_t)d * sizeof *s->b);
    for (int layer = c->layers; layer-- > 0 && !status;) {
        int module = config->fusion == ENG_FUSION_STREAMS ? module_at(config, layer) : -1;
        status = moe_half_back(lane, layer, err);
        if (!status) status = attention_half_back(lane, layer, err);
        if (!status && module >= 0)
            status =
                eng_train_engram_back(lane, module, lane->engrams[module].streams, s->streams, err);
        eng_part_end(lane, ENG_PART_ENGRAM);
    }
    return status ? status : embed_back(lane, err);
}

EngStatus eng_lane_pass(EngLane *lane, bool train, EngErr *err)
{
    lane->loss = lane->balance = 0;
    eng_part_begin(lane);
    EngStatus status = lane_forward(lane, err);
    if (!status) status = eng_train_head(lane, train, lane->scratch.b, err);
    eng_part_end(lane, ENG_PART_HEAD);
    return status || !train ? status : lane_backward(lane, err);
}
