/* Parameters of a trained arm: which tensors there are, where they lie, what they start with.
 *
 * Start values come from a generator for each tensor, expert (a router's column too) and head of a
 * table, so that arms with other experts or rows share all that they have in common. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/backbone/parts.h"
#include "bench/backbone/train_parts.h"
#include "kernels/address/address.h"

/* ---- shapes ---- */

int eng_train_modules(const EngTrainConfig *config)
{
    return config->engram_layers;
}

int eng_train_module_streams(const EngTrainConfig *config)
{
    return config->fusion == ENG_FUSION_STREAMS ? config->model.streams : 1;
}

int eng_train_d_mem(const EngTrainConfig *config)
{
    return (config->max_order - config->min_order + 1) * config->engram_heads * config->row_dims;
}

static const struct {
    const char *name;
    EngTrainGroup group;
} kinds[ENG_W_TRAIN_COUNT] = {
    [ENG_W_EMBED] = {"embed", ENG_GROUP_VOCABULARY},
    [ENG_W_FINAL_NORM] = {"final_norm", ENG_GROUP_VECTOR},
    [ENG_W_HEAD] = {"head", ENG_GROUP_VOCABULARY},
    [ENG_W_ATTN_NORM] = {"attn_norm", ENG_GROUP_VECTOR},
    [ENG_W_QKV] = {"qkv", ENG_GROUP_MATRIX},
    [ENG_W_OUT] = {"out", ENG_GROUP_MATRIX},
    [ENG_W_MOE_NORM] = {"moe_norm", ENG_GROUP_VECTOR},
    [ENG_W_ROUTER] = {"router", ENG_GROUP_MATRIX},
    [ENG_W_SHARED_UP] = {"shared_up", ENG_GROUP_MATRIX},
    [ENG_W_SHARED_DOWN] = {"shared_down", ENG_GROUP_MATRIX},
    [ENG_W_EXPERT_UP] = {"up", ENG_GROUP_MATRIX},
    [ENG_W_EXPERT_DOWN] = {"down", ENG_GROUP_MATRIX},
    [ENG_W_ATTN_MIX] = {"attn_mix", ENG_GROUP_MATRIX},
    [ENG_W_ATTN_MIX_BIAS] = {"attn_mix_bias", ENG_GROUP_VECTOR},
    [ENG_W_ATTN_MIX_GAIN] = {"attn_mix_gain", ENG_GROUP_VECTOR},
    [ENG_W_MOE_MIX] = {"moe_mix", ENG_GROUP_MATRIX},
    [ENG_W_MOE_MIX_BIAS] = {"moe_mix_bias", ENG_GROUP_VECTOR},
    [ENG_W_MOE_MIX_GAIN] = {"moe_mix_gain", ENG_GROUP_VECTOR},
    [ENG_W_ENGRAM_KV] = {"kv", ENG_GROUP_MATRIX},
    [ENG_W_ENGRAM_QUERY] = {"q_weight", ENG_GROUP_VECTOR},
    [ENG_W_ENGRAM_KEY] = {"k_weight", ENG_GROUP_VECTOR},
    [ENG_W_ENGRAM_CONV_NORM] = {"conv_norm", ENG_GROUP_VECTOR},
    [ENG_W_ENGRAM_CONV] = {"conv", ENG_GROUP_VECTOR},
    [ENG_W_ENGRAM_KV_BIAS] = {"kv_bias", ENG_GROUP_VECTOR},
    [ENG_W_TABLE] = {"table", ENG_GROUP_TABLE},
};

static bool of_engram(int what)
{
    return what >= ENG_W_ENGRAM_KV;
}

static bool of_expert(int what)
{
    return what == ENG_W_EXPERT_UP || what == ENG_W_EXPERT_DOWN;
}

void eng_train_shape(const EngTrainConfig *config, int what, int64_t *rows, int64_t *columns)
{
    int64_t n = eng_train_module_streams(config), d = config->model.hidden;
    bool input = config->fusion == ENG_FUSION_INPUT;
    const int64_t shapes[][2] = {
        [ENG_W_ENGRAM_KV - ENG_W_COUNT] = {eng_train_d_mem(config), (input ? 1 : n + 1) * d},
        [ENG_W_ENGRAM_QUERY - ENG_W_COUNT] = {n, input ? 0 : d},
        [ENG_W_ENGRAM_KEY - ENG_W_COUNT] = {n, input ? 0 : d},
        [ENG_W_ENGRAM_CONV_NORM - ENG_W_COUNT] = {n, config->conv_kernel && !input ? d : 0},
        [ENG_W_ENGRAM_CONV - ENG_W_COUNT] = {n * d, input ? 0 : config->conv_kernel},
        [ENG_W_ENGRAM_KV_BIAS - ENG_W_COUNT] = {1, config->kv_bias ? (input ? 1 : n + 1) * d : 0},
        [ENG_W_TABLE - ENG_W_COUNT] = {1, config->row_dims},
    };
    *rows = *columns = 0;
    if (!kinds[what].name || (of_engram(what) && !config->engram_layers)) return;
    if (of_engram(what)) {
        *rows = shapes[what - ENG_W_COUNT][0], *columns = shapes[what - ENG_W_COUNT][1];
    } else {
        int64_t n_elements = eng_weight_elements(&config->model, (EngWeight)what, rows);
        *columns = *rows ? n_elements / *rows : 0;
    }
}

static int copies_of(const EngTrainConfig *config, int what)
{
    if (of_engram(what)) return config->engram_layers;
    return what <= ENG_W_HEAD ? 1 : config->model.layers;
}

EngStatus eng_train_address(const EngTrainConfig *config, EngAddress *address, EngErr *err)
{
    EngAddressSpec spec = {.n_layers = config->engram_layers,
                           .min_order = config->min_order,
                           .max_order = config->max_order,
                           .heads = config->engram_heads,
                           .vocab =
                               config->compress ? config->vocab_compressed : config->model.vocab,
                           .pad = config->pad,
                           .start = config->row_start};
    memset(address, 0, sizeof *address);
    if (!config->engram_layers) return ENG_OK;
    memcpy(spec.layer_ids, config->engram_at, sizeof spec.layer_ids);
    EngStatus status = eng_address_build(&spec, address, err);
    if (status || config->rows != ENG_ROWS_ONE) return status;
    for (int m = 0; m < address->n_layers; m++) {
        address->rows[m] = address->n_columns;
        for (int c = 0; c < address->n_columns; c++)
            address->primes[m][c] = 1, address->offsets[m][c] = c;
    }
    return ENG_OK;
}

/* ---- the list ---- */

/* Visits all tensors in order; list NULL: only counts. */
static int list_tensors(const EngTrainConfig *config, const EngAddress *address, EngTensors *out,
                        EngTensor *list)
{
    int n = 0;
    out->all = 0;
    for (int what = 0; what < ENG_W_TRAIN_COUNT; what++) {
        int64_t rows, columns;
        eng_train_shape(config, what, &rows, &columns);
        if (!rows || !columns) continue;
        if (what == ENG_W_TABLE) out->dense = out->all;
        for (int copy = 0; copy < copies_of(config, what); copy++) {
            int experts = of_expert(what) ? config->model.experts : 1;
            if (what == ENG_W_TABLE) rows = address->rows[copy];
            if (list) out->first[what][copy] = n;
            for (int e = 0; e < experts; e++, n++) {
                if (list)
                    list[n] =
                        (EngTensor){what, copy, e, kinds[what].group, rows, columns, out->all};
                out->all += rows * columns;
            }
        }
    }
    if (!config->engram_layers) out->dense = out->all;
    return n;
}

EngStatus eng_tensors_create(const EngTrainConfig *config, const EngAddress *address,
                             EngTensors *tensors, EngErr *err)
{
    *tensors = (EngTensors){.n = list_tensors(config, address, tensors, NULL)};
    EngStatus status = eng_alloc_or((void **)&tensors->list, (size_t)tensors->n,
                                    sizeof *tensors->list, "parameters", err);
    for (int what = 0; what < ENG_W_TRAIN_COUNT && !status; what++)
        status = eng_alloc_or((void **)&tensors->first[what], (size_t)copies_of(config, what),
                              sizeof **tensors->first, "parameters", err);
    if (status)
        eng_tensors_destroy(tensors);
    else
        list_tensors(config, address, tensors, tensors->list);
    return status;
}

void eng_tensors_destroy(EngTensors *tensors)
{
    for (int what = 0; what < ENG_W_TRAIN_COUNT; what++) eng_free(tensors->first[what]);
    eng_free(tensors->list);
    *tensors = (EngTensors){0};
}

void eng_tensor_name(const EngTensor *tensor, char *name, size_t size)
{
    const char *kind = kinds[tensor->what].name;
    if (of_expert(tensor->what))
        snprintf(name, size, "layer%d.expert%d.%s", tensor->layer, tensor->expert, kind);
    else if (of_engram(tensor->what))
        snprintf(name, size, "engram%d.%s", tensor->layer, kind);
    else if (tensor->what <= ENG_W_HEAD)
        snprintf(name, size, "%s", kind);
    else
        snprintf(name, size, "layer%d.%s", tensor->layer, kind);
}

/* ---- start values ---- */

static void seed_tensor(const EngTrainConfig *config, const EngTensor *tensor, int expert,
                        EngRng *rng)
{
    uint64_t number = (uint64_t)tensor->layer << 24 | (uint64_t)expert;
    /* Start values are those of before there were biases, which draw none. */
    int what = tensor->what - (tensor->what > ENG_W_ENGRAM_KV_BIAS);
    eng_rng_seed_at(rng, config->model.seed, number << 8 | (uint64_t)what);
}

static double deviation_of(const EngTrainConfig *config, const EngTensor *tensor)
{
    double in = (double)tensor->rows;
    switch (tensor->what) {
    case ENG_W_EMBED:
        return config->embed_scale;
    case ENG_W_HEAD:
        return config->head_scale / sqrt(in);
    case ENG_W_OUT:
    case ENG_W_SHARED_DOWN:
    case ENG_W_EXPERT_DOWN: /* what is added to the residual: smaller, the more there are of it */
        return 1 / sqrt(in * 2 * config->model.layers);
    case ENG_W_ENGRAM_CONV:
        return config->conv_random ? 0.5 : 0;
    default:
        return 1 / sqrt(in);
    }
}

static void fill_uniform(EngRng *rng, double deviation, EngReal *out, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        out[i * step] = (EngReal)(float)((2 * eng_rng_unit(rng) - 1) * sqrt(3) * deviation);
}

/* Mixing that starts as backbone.h's weights do: streams enter a read alike and stay mostly
 * themselves. */
static void fill_vector(const EngTrainConfig *config, const EngTensor *tensor, EngReal *out)
{
    int n = config->model.streams;
    int64_t count = tensor->rows * tensor->columns;
    bool gain = tensor->what == ENG_W_ATTN_MIX_GAIN || tensor->what == ENG_W_MOE_MIX_GAIN;
    if (tensor->what == ENG_W_ATTN_MIX_BIAS || tensor->what == ENG_W_MOE_MIX_BIAS) {
        for (int i = 0; i < n; i++) out[i] = (EngReal)-logf((float)n - 1);
        for (int i = 0; i < n; i++) out[n + i] = 0;
        for (int i = 0; i < n * n; i++) out[2 * n + i] = i % (n + 1) ? -4 : 0;
        return;
    }
    EngReal start = tensor->what == ENG_W_ENGRAM_KV_BIAS ? 0 : gain ? (EngReal)0.01f : 1;
    for (int64_t i = 0; i < count; i++) out[i] = start;
}

static void fill_tensor(const EngTrainConfig *config, const EngAddress *address,
                        const EngTensor *tensor, EngReal *out)
{
    EngRng rng;
    int64_t count = tensor->rows * tensor->columns, dims = tensor->columns;
    if (tensor->what == ENG_W_TABLE) {
        for (int c = 0; c < address->n_columns; c++) {
            seed_tensor(config, tensor, c, &rng);
            fill_uniform(&rng, config->table_scale, out + address->offsets[tensor->layer][c] * dims,
                         address->primes[tensor->layer][c] * dims, 1);
        }
    } else if (tensor->what == ENG_W_ROUTER) {
        for (int e = 0; e < tensor->columns; e++) {
            seed_tensor(config, tensor, e, &rng);
            fill_uniform(&rng, deviation_of(config, tensor), out + e, tensor->rows, dims);
        }
    } else if (tensor->group == ENG_GROUP_VECTOR && tensor->what != ENG_W_ENGRAM_CONV) {
        fill_vector(config, tensor, out);
    } else {
        seed_tensor(config, tensor, tensor->expert, &rng);
        fill_uniform(&rng, deviation_of(config, tensor), out, count, 1);
    }
}

void eng_tensors_fill(const EngTrainConfig *config, const EngAddress *address,
                      const EngTensors *tensors, EngReal *values)
{
    for (int i = 0; i < tensors->n; i++)
        fill_tensor(config, address, &tensors->list[i], values + tensors->list[i].at);
}
