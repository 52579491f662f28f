/* What a trained arm is: rungs, fields by name, and which shapes can be; see train.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "bench/backbone/train_parts.h"

/* ---- rungs (paper.md 8.3) ---- */

typedef struct Rung {
    const char *name;
    int hidden, layers, heads, head_dim, shared, experts, top_k, width, vocab;
    int engram_heads, row_dims; /* d_mem = hidden / 2 over all modules' orders */
    int modules, at[2], streams;
    int64_t active; /* about, for 20 tokens each */
} Rung;

static const Rung rungs[] = {
    {"tiny", 16, 2, 2, 8, 1, 6, 2, 8, 64, 1, 4, 1, {1, 0}, 1, 10000},
    {"R0", 64, 4, 2, 32, 2, 113, 6, 32, 4096, 2, 8, 1, {1, 0}, 1, 292000},
    {"R0c", 64, 4, 2, 32, 1, 38, 2, 96, 4096, 2, 8, 1, {1, 0}, 1, 297000},
    {"R1", 128, 6, 4, 32, 2, 107, 6, 64, 8192, 4, 8, 2, {1, 3}, 1, 1657000},
    {"R2", 256, 8, 8, 32, 2, 104, 6, 128, 8192, 8, 8, 2, {1, 4}, 4, 8610000},
};

EngStatus eng_train_rung(const char *name, EngTrainConfig *config, EngErr *err)
{
    const Rung *r = NULL;
    for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++)
        if (!strcmp(name, rungs[i].name)) r = &rungs[i];
    if (!r) return ENG_FAIL(err, ENG_NOT_FOUND, "no rung \"%s\": tiny, R0, R0c, R1 or R2", name);
    bool tiny = r->hidden < 64;
    *config = (EngTrainConfig){
        .model = {.layers = r->layers,
                  .hidden = r->hidden,
                  .streams = r->streams,
                  .heads = r->heads,
                  .kv_heads = r->heads,
                  .head_dim = r->head_dim,
                  .rope_theta = 10000,
                  .shared_experts = r->shared,
                  .experts = r->experts,
                  .top_k = r->top_k,
                  .expert_width = r->width,
                  .route_scale = 1,
                  .norm_eps = 1e-6f,
                  .sinkhorn_iters = 20,
                  .vocab = r->vocab,
                  .dtype = ENG_F32,
                  .threads = 1,
                  .seed = 1},
        .engram_at = {r->at[0], r->at[1]},
        .min_order = 2,
        .max_order = 3,
        .engram_heads = r->engram_heads,
        .row_dims = r->row_dims,
        .row_start = tiny ? 31 : 4001,
        .gate_eps = 1e-20f,
        .table_scale = 0.02f,
        .embed_scale = 1,
        .head_scale = 0.5f,
        .tokens = tiny ? 4096 : r->active * 20,
        .batch_tokens = tiny ? 64 : 2048,
        .seq_len = tiny ? 16 : 256,
        .lr = 8e-3,
        .final_lr = 0.1,
        .warmup_steps = tiny ? 5 : 100,
        .table_lr = 5,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .adam_eps = 1e-8,
        .weight_decay = 0.1,
        .momentum = 0.95,
        .bias_step = 2e-3,
        .bias_decay = 0,
        .blow_up = 2,
    };
    return ENG_OK;
}

/* ---- fields ---- */

typedef enum FieldKind { INT, INT64, UINT64, FLOAT, DOUBLE, BOOL, LAYERS, NAMES } FieldKind;

typedef struct Field {
    const char *name;
    FieldKind kind;
    size_t at;
    const char *names; /* of enumerators from 0, with commas */
} Field;

#define OF(field) offsetof(EngTrainConfig, field)

static const Field fields[] = {
    {"layers", INT, OF(model.layers), NULL},
    {"hidden", INT, OF(model.hidden), NULL},
    {"streams", INT, OF(model.streams), NULL},
    {"heads", INT, OF(model.heads), NULL},
    {"kv_heads", INT, OF(model.kv_heads), NULL},
    {"head_dim", INT, OF(model.head_dim), NULL},
    {"rope_theta", DOUBLE, OF(model.rope_theta), NULL},
    {"shared_experts", INT, OF(model.shared_experts), NULL},
    {"shared_extra", INT, OF(model.shared_extra), NULL},
    {"experts", INT, OF(model.experts), NULL},
    {"top_k", INT, OF(model.top_k), NULL},
    {"expert_width", INT, OF(model.expert_width), NULL},
    {"route_scale", FLOAT, OF(model.route_scale), NULL},
    {"norm_eps", FLOAT, OF(model.norm_eps), NULL},
    {"sinkhorn_iters", INT, OF(model.sinkhorn_iters), NULL},
    {"vocab", INT, OF(model.vocab), NULL},
    {"tied_head", BOOL, OF(model.tied_head), NULL},
    {"dtype", NAMES, OF(model.dtype), "f32,bf16"},
    {"threads", INT, OF(model.threads), NULL},
    {"seed", UINT64, OF(model.seed), NULL},
    {"engram_layers", INT, OF(engram_layers), NULL},
    {"engram_at", LAYERS, OF(engram_at), NULL},
    {"min_order", INT, OF(min_order), NULL},
    {"max_order", INT, OF(max_order), NULL},
    {"engram_heads", INT, OF(engram_heads), NULL},
    {"row_dims", INT, OF(row_dims), NULL},
    {"row_start", INT64, OF(row_start), NULL},
    {"rows", NAMES, OF(rows), "hashed,one,shuffled,frozen"},
    {"fusion", NAMES, OF(fusion), "streams,read,input"},
    {"gate", NAMES, OF(gate), "copysign,sign,plain"},
    {"gate_off", BOOL, OF(gate_off), NULL},
    {"compress", BOOL, OF(compress), NULL},
    {"conv_kernel", INT, OF(conv_kernel), NULL},
    {"conv_random", BOOL, OF(conv_random), NULL},
    {"gate_eps", FLOAT, OF(gate_eps), NULL},
    {"table_scale", FLOAT, OF(table_scale), NULL},
    {"embed_scale", FLOAT, OF(embed_scale), NULL},
    {"head_scale", FLOAT, OF(head_scale), NULL},
    {"vocab_compressed", INT64, OF(vocab_compressed), NULL},
    {"pad", INT, OF(pad), NULL},
    {"tokens", INT64, OF(tokens), NULL},
    {"batch_tokens", INT64, OF(batch_tokens), NULL},
    {"seq_len", INT64, OF(seq_len), NULL},
    {"lr", DOUBLE, OF(lr), NULL},
    {"final_lr", DOUBLE, OF(final_lr), NULL},
    {"warmup_steps", INT64, OF(warmup_steps), NULL},
    {"schedule", NAMES, OF(schedule), "cosine,constant,step"},
    {"rule", NAMES, OF(rule), "adamw,muon,sgd,sinkhorn"},
    {"vocab_rule", NAMES, OF(vocab_rule), "adamw,muon,sgd,sinkhorn"},
    {"table_rule", NAMES, OF(table_rule), "adamw,muon,sgd,sinkhorn"},
    {"table_lr", DOUBLE, OF(table_lr), NULL},
    {"beta1", DOUBLE, OF(beta1), NULL},
    {"beta2", DOUBLE, OF(beta2), NULL},
    {"adam_eps", DOUBLE, OF(adam_eps), NULL},
    {"weight_decay", DOUBLE, OF(weight_decay), NULL},
    {"momentum", DOUBLE, OF(momentum), NULL},
    {"clip", DOUBLE, OF(clip), NULL},
    {"bias_step", DOUBLE, OF(bias_step), NULL},
    {"bias_decay", DOUBLE, OF(bias_decay), NULL},
    {"balance_loss", DOUBLE, OF(balance_loss), NULL},
    {"blow_up", DOUBLE, OF(blow_up), NULL},
    {"kv_bias", BOOL, OF(kv_bias), NULL},
};

enum { N_FIELDS = sizeof fields / sizeof *fields };

int eng_train_fields(void)
{
    return N_FIELDS;
}

const char *eng_train_field_name(int field)
{
    return field >= 0 && field < N_FIELDS ? fields[field].name : NULL;
}

bool eng_train_field_counts(const EngTrainConfig *config, int field)
{
    const char *name = eng_train_field_name(field);
    if (!name || !strcmp(name, "threads")) return false;
    return strcmp(name, "kv_bias") || config->kv_bias;
}

/* The number-th name of a list with commas, NULL beyond; *n: its length. */
static const char *name_at(const char *names, int number, size_t *n)
{
    for (; number > 0 && names; number--) {
        names = strchr(names, ',');
        if (names) names++;
    }
    if (names) *n = strcspn(names, ",");
    return names;
}

static int write_layers(const EngTrainConfig *config, char *text, size_t size)
{
    size_t used = 0;
    for (int m = 0; m < config->engram_layers && used < size; m++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%d", m ? "," : "", config->engram_at[m]);
    if (!config->engram_layers) used = (size_t)snprintf(text, size, "none");
    return (int)used;
}

EngStatus eng_train_field_get(const EngTrainConfig *config, int field, char *text, size_t size,
                              EngErr *err)
{
    if (field < 0 || field >= N_FIELDS)
        return ENG_FAIL(err, ENG_USAGE, "training: no field number %d", field);
    const Field *f = &fields[field];
    const void *at = (const char *)config + f->at;
    size_t n = 0;
    int used = 0;
    switch (f->kind) {
    case INT:
        used = snprintf(text, size, "%d", *(const int *)at);
        break;
    case INT64:
        used = snprintf(text, size, "%" PRId64, *(const int64_t *)at);
        break;
    case UINT64:
        used = snprintf(text, size, "%" PRIu64, *(const uint64_t *)at);
        break;
    case FLOAT:
        used = snprintf(text, size, "%.9g", (double)*(const float *)at);
        break;
    case DOUBLE:
        used = snprintf(text, size, "%.17g", *(const double *)at);
        break;
    case BOOL:
        used = snprintf(text, size, "%s", *(const bool *)at ? "true" : "false");
        break;
    case LAYERS:
        used = write_layers(config, text, size);
        break;
    case NAMES: {
        const char *name = name_at(f->names, (int)*(const unsigned *)at, &n);
        used = snprintf(text, size, "%.*s", (int)n, name ? name : "?");
        break;
    }
    }
    if (used < 0 || (size_t)used >= size)
        return ENG_FAIL(err, ENG_USAGE, "training: no room for the value of %s", f->name);
    return ENG_OK;
}

/* ---- setting ---- */

static bool parse_layers(EngTrainConfig *config, const char *value)
{
    int n = 0;
    if (!strcmp(value, "none")) {
        config->engram_layers = 0;
        return true;
    }
    for (const char *p = value; *p && n < ENG_MAX_LAYERS;) {
        char *end;
        long layer = strtol(p, &end, 10);
        if (end == p || layer < 0 || layer > 1 << 20 || (*end && *end != ',')) return false;
        config->engram_at[n++] = (int)layer;
        p = *end ? end + 1 : end;
        if (!*p) {
            config->engram_layers = n;
            return !*end;
        }
    }
    return false;
}

static bool parse_name(const char *names, const char *value, unsigned *out)
{
    size_t n;
    const char *name;
    for (int i = 0; (name = name_at(names, i, &n)); i++)
        if (strlen(value) == n && !strncmp(name, value, n)) {
            *out = (unsigned)i;
            return true;
        }
    return false;
}

static bool parse_number(const Field *f, const char *value, void *at)
{
    char *end;
    if (f->kind == FLOAT || f->kind == DOUBLE) {
        double x = strtod(value, &end);
        if (end == value || *end || !isfinite(x)) return false;
        if (f->kind == FLOAT)
            *(float *)at = (float)x;
        else
            *(double *)at = x;
        return true;
    }
    long long x = strtoll(value, &end, 10);
    if (end == value || *end || (f->kind != INT64 && f->kind != UINT64 && x != (int)x) ||
        (f->kind == UINT64 && x < 0))
        return false;
    if (f->kind == INT)
        *(int *)at = (int)x;
    else
        *(int64_t *)at = x;
    return true;
}

static EngStatus unknown_field(const char *name, EngErr *err)
{
    const char *names[N_FIELDS];
    for (int i = 0; i < N_FIELDS; i++) names[i] = fields[i].name;
    const char *nearest = eng_nearest(name, names, N_FIELDS);
    return ENG_FAIL(err, ENG_USAGE, "training: no field \"%s\"%s%s%s", name,
                    nearest ? " (did you mean \"" : "", nearest ? nearest : "",
                    nearest ? "\"?)" : "");
}

EngStatus eng_train_set(EngTrainConfig *config, const char *name, const char *value, EngErr *err)
{
    const Field *f = NULL;
    bool good = false;
    for (int i = 0; i < N_FIELDS; i++)
        if (!strcmp(name, fields[i].name)) f = &fields[i];
    if (!f) return unknown_field(name, err);
    void *at = (char *)config + f->at;
    if (f->kind == LAYERS)
        good = parse_layers(config, value);
    else if (f->kind == NAMES)
        good = parse_name(f->names, value, at);
    else if (f->kind != BOOL)
        good = parse_number(f, value, at);
    else if ((good = !strcmp(value, "true") || !strcmp(value, "false")))
        *(bool *)at = *value == 't';
    if (good) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE, "training: %s=%s%s%s", name, value,
                    f->names ? ": one of " : ": no value for it", f->names ? f->names : "");
}

/* ---- what can be ---- */

typedef struct Range {
    const char *name;
    double value, min, max;
} Range;

static EngStatus check_ranges(const Range *ranges, size_t n, EngErr *err)
{
    for (size_t i = 0; i < n; i++)
        if (!(ranges[i].value >= ranges[i].min && ranges[i].value <= ranges[i].max))
            return ENG_FAIL(err, ENG_USAGE, "training: %s=%g: not from %g to %g", ranges[i].name,
                            ranges[i].value, ranges[i].min, ranges[i].max);
    return ENG_OK;
}

static EngStatus check_engram(const EngTrainConfig *c, EngErr *err)
{
    const Range ranges[] = {{"engram_layers", c->engram_layers, 0, ENG_MAX_LAYERS},
                            {"row_dims", c->row_dims, 1, 4096},
                            {"conv_kernel", c->conv_kernel, 0, 64},
                            {"gate_eps", (double)c->gate_eps, 0, 1},
                            {"table_scale", (double)c->table_scale, 0, 100}};
    if (!c->engram_layers) return ENG_OK;
    EngStatus status = check_ranges(ranges, sizeof ranges / sizeof *ranges, err);
    for (int m = 0; m < c->engram_layers && !status; m++) {
        if (c->engram_at[m] < 0 || c->engram_at[m] >= c->model.layers)
            status =
                ENG_FAIL(err, ENG_USAGE, "training: engram_at=%d: not a layer; there are 0 to %d",
                         c->engram_at[m], c->model.layers - 1);
        else if (m && c->engram_at[m] <= c->engram_at[m - 1])
            status = ENG_FAIL(err, ENG_USAGE, "training: engram_at: %d after %d does not ascend",
                              c->engram_at[m], c->engram_at[m - 1]);
    }
    if (status) return status;
    if (c->fusion == ENG_FUSION_INPUT && (c->engram_layers != 1 || c->engram_at[0]))
        return ENG_FAIL(err, ENG_USAGE,
                        "training: fusion=input has one module, at the input: engram_at=0");
    if (c->compress && (!c->token_map || c->vocab_compressed < 1))
        return ENG_FAIL(err, ENG_USAGE,
                        "training: compress=true needs a token map and the number "
                        "of ids it gives (vocab_compressed)");
    for (int i = 0; c->compress && i < c->model.vocab; i++)
        if (c->token_map[i] < 0 || c->token_map[i] >= c->vocab_compressed)
            return ENG_FAIL(err, ENG_BAD_DATA, "token map: id %d gives %d, not in [0, %" PRId64 ")",
                            i, c->token_map[i], c->vocab_compressed);
    EngAddress address;
    return eng_train_address(c, &address, err);
}

static EngStatus check_model(const EngTrainConfig *config, EngErr *err)
{
    EngBackboneConfig c = config->model;
    EngBackboneSize size;
    c.max_tokens = config->batch_tokens, c.max_len = config->seq_len, c.max_seqs = 1;
    if (c.experts && c.experts < c.top_k)
        return ENG_FAIL(err, ENG_USAGE, "training: experts=%d: fewer than top_k=%d", c.experts,
                        c.top_k);
    if (c.distinct_layers || c.stream_dtype || c.vision_layers || c.paced_layer_ns)
        return ENG_FAIL(err, ENG_USAGE,
                        "training: distinct_layers, stream_dtype, vision and pacing stay 0");
    if (c.streams > 1 && (c.sinkhorn_iters < 1 || c.sinkhorn_iters > 64))
        return ENG_FAIL(err, ENG_USAGE, "training: sinkhorn_iters=%d: not from 1 to 64",
                        c.sinkhorn_iters);
    return eng_backbone_size(&c, &size, err); /* checks all other shapes */
}

static EngStatus check_rules(const EngTrainConfig *c, EngErr *err)
{
    if (c->rule == ENG_RULE_SINKHORN)
        return ENG_FAIL(err, ENG_USAGE,
                        "training: rule=sinkhorn: it is for embedding, head and "
                        "tables (vocab_rule, table_rule)");
    if (c->vocab_rule == ENG_RULE_MUON || c->table_rule == ENG_RULE_MUON)
        return ENG_FAIL(err, ENG_USAGE,
                        "training: muon is for matrices of the blocks (rule), not for vocab_rule "
                        "or table_rule");
    return ENG_OK;
}

EngStatus eng_train_check(const EngTrainConfig *c, EngErr *err)
{
    const Range ranges[] = {
        {"seq_len", (double)c->seq_len, 2, 1 << 20},
        {"batch_tokens", (double)c->batch_tokens, (double)c->seq_len, 1 << 20},
        {"threads", c->model.threads, 1, 256},
        {"tokens", (double)c->tokens, (double)c->batch_tokens, 1e15},
        {"lr", c->lr, 0, 100},
        {"final_lr", c->final_lr, 0, 1},
        {"warmup_steps", (double)c->warmup_steps, 0, 1e9},
        {"table_lr", c->table_lr, 0, 1e6},
        {"beta1", c->beta1, 0, 0.999999},
        {"beta2", c->beta2, 0, 0.999999},
        {"adam_eps", c->adam_eps, 0, 1},
        {"weight_decay", c->weight_decay, 0, 10},
        {"momentum", c->momentum, 0, 0.999999},
        {"clip", c->clip, 0, 1e9},
        {"bias_step", c->bias_step, 0, 1},
        {"bias_decay", c->bias_decay, 0, 1},
        {"balance_loss", c->balance_loss, 0, 100},
        {"blow_up", c->blow_up, 1, 1e9},
        {"embed_scale", (double)c->embed_scale, 0, 100},
        {"head_scale", (double)c->head_scale, 0, 100},
    };
    EngStatus status = check_ranges(ranges, sizeof ranges / sizeof *ranges, err);
    if (!status) status = check_model(c, err);
    if (!status) status = check_engram(c, err);
    if (!status) status = check_rules(c, err);
    if (status) return status;
    int64_t sequences = c->batch_tokens / c->seq_len;
    if (c->batch_tokens % c->seq_len)
        return ENG_FAIL(err, ENG_USAGE,
                        "training: batch_tokens=%" PRId64 ": not a multiple of seq_len=%" PRId64,
                        c->batch_tokens, c->seq_len);
    if (sequences < c->model.threads)
        return ENG_FAIL(err, ENG_USAGE,
                        "training: threads=%d: a batch has only %" PRId64 " sequences",
                        c->model.threads, sequences);
    return ENG_OK;
}
