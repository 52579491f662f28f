/* From axes to a model; see arm.h. */
#include "bench/ablation/arm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/experiments/axes.h"
#include "bench/experiments/shape.h"

static const char *const g_rungs[] = {"tiny", "R0", "R0c", "R1", "R2", NULL};
static const char *const g_texts[] = {"training", "synthetic", NULL};
static const char *const g_gates[] = {"copysign", "sign", "plain", "off", NULL};
static const char *const g_fusions[] = {"streams", "read", "input", NULL};
static const char *const g_rows[] = {"hashed", "one", "shuffled", "frozen", NULL};
static const char *const g_rules[] = {"adamw", "muon", "sgd", "sinkhorn", NULL};
static const char *const g_schedules[] = {"cosine", "constant", "step", NULL};
static const char *const g_isos[] = {"parameters", "flops", NULL};
static const char *const g_backbones[] = {"moe", "dense", NULL};
static const char *const g_switch[] = {"on", "off", NULL};
static const char *const g_dtypes[] = {"f32", "bf16", NULL};

#define OF_RUNG "-1"
#define ANY_IDS 65536

static const int32_t g_any_map[ANY_IDS];

const EngAxisDef eng_arm_axes[ENG_ARM_AXES] = {
    {"rung", ENG_AXIS_WORD, "R0c", "", 0, 0, g_rungs, "size of the model (docs/replicate.md)"},
    {"text", ENG_AXIS_WORD, "training", "", 0, 0, g_texts,
     "what it is trained on: scripts/fetch_data --training, or generated"},
    {ENG_ARM_AXIS_SEED, ENG_AXIS_INT, "1", "", 1, 1e9, NULL, "of start values and data order"},
    {"budget", ENG_AXIS_REAL, "20", "", 0.001, 1e6, NULL,
     "tokens per active parameter of the rung at rho = 1"},
    {"rho", ENG_AXIS_REAL, "1", "", 0, 1, NULL,
     "share of the sparse parameters that is experts; 1: no Engram"},
    {"iso", ENG_AXIS_WORD, "parameters", "", 0, 0, g_isos,
     "flops: at rho = 1 the shared expert is wider by what Engram's projections would cost"},
    {"backbone", ENG_AXIS_WORD, "moe", "", 0, 0, g_backbones,
     "dense: a shared expert of the same FLOPs in place of routed ones and router"},
    {"engram_at", ENG_AXIS_WORD, "1", "", 0, 0, NULL, "layers with Engram, from 0, as 1 or 1+3"},
    {"memory", ENG_AXIS_INT, "0", "", 0, 1e12, NULL,
     "parameters of all tables, added to the rung at rho = 1; 0: as rho says"},
    {"orders", ENG_AXIS_WORD, "2-3", "", 0, 0, NULL, "n-gram lengths, as first-last or one number"},
    {"heads", ENG_AXIS_INT, OF_RUNG, "", -1, ENG_MAX_HEADS, NULL, "K; -1: the rung's"},
    {"hold", ENG_AXIS_WORD, "total_bytes", "", 0, 0, eng_words_hold,
     "what stays when K or orders change: values per row, values per order, or the whole table"},
    {"gate", ENG_AXIS_WORD, "copysign", "", 0, 0, g_gates,
     "signed root of the score, or plain, or none"},
    {"fusion", ENG_AXIS_WORD, "streams", "", 0, 0, g_fusions,
     "where Engram enters: each stream, the vector attention reads, or (over-encoding, engram_at "
     "is "
     "passed over) the input embedding"},
    {"compress", ENG_AXIS_WORD, "on", "", 0, 0, g_switch, "n-grams of compressed ids"},
    {"conv", ENG_AXIS_INT, "0", "tokens", 0, 16, NULL, "kernel of the short conv, 0: none"},
    {"kv_bias", ENG_AXIS_WORD, "off", "", 0, 0, g_switch,
     "biases of keys and values, as the demo has"},
    {"rows", ENG_AXIS_WORD, "hashed", "", 0, 0, g_rows, "controls that keep shapes and FLOPs"},
    {"streams", ENG_AXIS_INT, OF_RUNG, "", -1, ENG_BACKBONE_MAX_STREAMS, NULL,
     "residual streams (mHC); -1: the rung's"},
    {"lr", ENG_AXIS_REAL, OF_RUNG, "", -1, 10, NULL, "peak learning rate; -1: the rung's"},
    {"schedule", ENG_AXIS_WORD, "cosine", "", 0, 0, g_schedules, "of the learning rate"},
    {"rule", ENG_AXIS_WORD, "adamw", "", 0, 0, g_rules, "update of the blocks' matrices"},
    {"vocab_rule", ENG_AXIS_WORD, "adamw", "", 0, 0, g_rules, "update of embedding and head"},
    {"table_rule", ENG_AXIS_WORD, "adamw", "", 0, 0, g_rules, "update of the tables"},
    {"table_lr", ENG_AXIS_REAL, "5", "", 0, 1e6, NULL, "learning rate of the tables, times lr"},
    {"bias_step", ENG_AXIS_REAL, OF_RUNG, "", -1, 1, NULL,
     "of the router's loss-free balancing; -1: the rung's"},
    {"bias_decay", ENG_AXIS_REAL, OF_RUNG, "", -1, 1, NULL,
     "of that step with the learning rate, 0: constant; -1: the rung's"},
    {"balance_loss", ENG_AXIS_REAL, OF_RUNG, "", -1, 10, NULL,
     "weight of the balance loss; -1: the rung's"},
    {"batch", ENG_AXIS_INT, OF_RUNG, "tokens", -1, 1 << 20, NULL, "of a step; -1: the rung's"},
    {"dtype", ENG_AXIS_WORD, "f32", "", 0, 0, g_dtypes, "of products"},
    {"threads", ENG_AXIS_INT, "1", "", 1, 256, NULL, "of a run; no part of its identity"},
};

/* ---- axes to configuration ---- */

static int word_index(const char *const *words, const char *word)
{
    int i = 0;
    while (strcmp(words[i], word)) i++;
    return i;
}

/* "1+3": ascending layers. */
static EngStatus parse_layers(const char *text, EngTrainConfig *config, EngErr *err)
{
    const char *at = text;
    bool good = true;
    for (int n = config->engram_layers = 0; good; n = config->engram_layers) {
        int layer, used = 0;
        good = n < ENG_MAX_LAYERS && sscanf(at, "%d%n", &layer, &used) == 1 &&
               (!n || layer > config->engram_at[n - 1]);
        if (!good) break;
        if (layer < 0 || layer >= config->model.layers)
            return ENG_FAIL(err, ENG_USAGE,
                            "engram_at = %s: layer %d is not one of the rung's, 0 to %d", text,
                            layer, config->model.layers - 1);
        config->engram_at[config->engram_layers++] = layer;
        at += used;
        if (!*at) return ENG_OK;
        good = *at++ == '+';
    }
    return ENG_FAIL(err, ENG_USAGE,
                    "engram_at = %s: layers from 0, ascending, as in 1 or 1+3 (at most %d)", text,
                    ENG_MAX_LAYERS);
}

/* -1 is "the rung's"; other numbers below 0, and counts of 0, would pass for it. */
static EngStatus check_of_rung(const EngPoint *point, EngErr *err)
{
    for (int i = 0; i < ENG_ARM_AXES; i++) {
        const EngAxisDef *axis = &eng_arm_axes[i];
        double value = point->values[i].f, least = axis->type == ENG_AXIS_INT ? 1 : 0;
        if (!strcmp(axis->def, OF_RUNG) && value < least && value != -1)
            return ENG_FAIL(err, ENG_USAGE, "%s = %s: at least %g, or -1 for the rung's",
                            axis->name, point->values[i].text, least);
    }
    return ENG_OK;
}

static void set_real(const EngPoint *point, const char *axis, double *value)
{
    double given = eng_point_real(point, axis);
    if (given >= 0) *value = given;
}

/* What is the same for all arms of a budget, and for the model that counts its parameters. */
static EngStatus common(const EngPoint *point, EngTrainConfig *config, EngErr *err)
{
    EngStatus status = eng_train_rung(eng_point_word(point, "rung"), config, err);
    if (status) return status;
    config->engram_layers = 0;
    config->vocab_compressed = config->model.vocab; /* until data brings the real ones */
    config->token_map = g_any_map;
    if (config->model.vocab > ANY_IDS)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "rung %s: more than %d ids",
                        eng_point_word(point, "rung"), ANY_IDS);
    config->model.seed = (uint64_t)eng_point_int(point, ENG_ARM_AXIS_SEED);
    config->model.threads = (int)eng_point_int(point, "threads");
    config->model.dtype = strcmp(eng_point_word(point, "dtype"), "bf16") ? ENG_F32 : ENG_BF16;
    if (eng_point_int(point, "streams") > 0)
        config->model.streams = (int)eng_point_int(point, "streams");
    if (eng_point_int(point, "batch") > 0) config->batch_tokens = eng_point_int(point, "batch");
    set_real(point, "lr", &config->lr);
    set_real(point, "bias_step", &config->bias_step);
    set_real(point, "bias_decay", &config->bias_decay);
    set_real(point, "balance_loss", &config->balance_loss);
    config->schedule = (EngTrainSchedule)word_index(g_schedules, eng_point_word(point, "schedule"));
    config->rule = (EngTrainRule)word_index(g_rules, eng_point_word(point, "rule"));
    config->vocab_rule = (EngTrainRule)word_index(g_rules, eng_point_word(point, "vocab_rule"));
    config->table_rule = (EngTrainRule)word_index(g_rules, eng_point_word(point, "table_rule"));
    config->table_lr = eng_point_real(point, "table_lr");
    return ENG_OK;
}

static EngStatus engram_fields(const EngPoint *point, EngTrainConfig *config, EngErr *err)
{
    const char *gate = eng_point_word(point, "gate");
    EngStatus status = parse_layers(eng_point_word(point, "engram_at"), config, err);
    if (status) return status;
    config->gate_off = !strcmp(gate, "off");
    if (!config->gate_off) config->gate = (EngGateFormula)word_index(g_gates, gate);
    config->fusion = (EngTrainFusion)word_index(g_fusions, eng_point_word(point, "fusion"));
    if (config->fusion == ENG_FUSION_INPUT) { /* there is one input: engram_at is passed over */
        config->engram_layers = 1;
        config->engram_at[0] = 0;
    }
    config->rows = (EngTrainRows)word_index(g_rows, eng_point_word(point, "rows"));
    config->compress = !strcmp(eng_point_word(point, "compress"), "on");
    config->conv_kernel = (int)eng_point_int(point, "conv");
    config->kv_bias = !strcmp(eng_point_word(point, "kv_bias"), "on");
    return ENG_OK;
}

/* Rows and experts, from rho or from `memory`. */
static EngStatus allocate(const EngPoint *point, const EngTrainConfig *base, EngTrainConfig *config,
                          EngErr *err)
{
    double residual;
    int64_t memory = eng_point_int(point, "memory");
    double rho = eng_point_real(point, "rho");
    if (memory) return eng_train_size_tables(config, memory, err);
    EngStatus status = eng_train_allocate(base, rho, config, &residual, err);
    /* The rung cannot, another may: the point is skipped and says why. */
    return status == ENG_USAGE ? (EngStatus)(err ? err->status = ENG_UNSUPPORTED : ENG_UNSUPPORTED)
                               : status;
}

/* K, orders and, where `hold` says so, the values of a row. */
static EngStatus columns(const EngPoint *point, EngTrainConfig *config, EngErr *err)
{
    int heads = (int)eng_point_int(point, "heads"), min_order, max_order;
    int dims = config->engram_heads * config->row_dims; /* of an order */
    EngStatus status =
        eng_orders_parse(eng_point_word(point, "orders"), &min_order, &max_order, err);
    if (status) return status;
    config->min_order = min_order;
    config->max_order = max_order;
    if (heads > 0) config->engram_heads = heads;
    if (strcmp(eng_point_word(point, "hold"), "embed_dims") != 0) return ENG_OK;
    if (dims % config->engram_heads)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "K = %d does not divide the %d dims of an order (hold=embed_dims)",
                        config->engram_heads, dims);
    config->row_dims = dims / config->engram_heads;
    return ENG_OK;
}

/* Unless the whole table is held, the rung's model is sized, and its rows and experts are kept. */
static EngStatus engram_model(const EngPoint *point, const EngTrainConfig *base,
                              EngTrainConfig *config, EngErr *err)
{
    EngStatus status = engram_fields(point, config, err);
    EngTrainConfig reference = *config;
    if (!status) status = columns(point, config, err);
    if (status) return status;
    if (!strcmp(eng_point_word(point, "hold"), "total_bytes"))
        return allocate(point, base, config, err);
    status = allocate(point, base, &reference, err);
    config->row_start = reference.row_start;
    config->model.experts = reference.model.experts;
    return status;
}

static EngStatus check_together(const EngPoint *point, EngErr *err)
{
    double rho = eng_point_real(point, "rho");
    bool dense = !strcmp(eng_point_word(point, "backbone"), "dense");
    if (eng_point_int(point, "memory") && rho < 1)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "memory and rho both say how large the tables are: one of them");
    if (dense && rho < 1)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "a dense model has no experts to share with: rho 1");
    if (!strcmp(eng_point_word(point, "iso"), "flops") &&
        (rho < 1 || eng_point_int(point, "memory")))
        return ENG_FAIL(err, ENG_USAGE,
                        "iso = flops widens the model without Engram by what Engram would cost: it "
                        "goes with rho = 1 and memory = 0, not with %s = %s",
                        rho < 1 ? "rho" : "memory",
                        eng_point_value(point, rho < 1 ? "rho" : "memory")->text);
    return ENG_OK;
}

/* The pure MoE's shared expert gets the width that the modules' projections would cost. */
static EngStatus widen(const EngPoint *point, EngTrainConfig *config, EngErr *err)
{
    EngTrainConfig with = *config;
    EngTrainAccount account;
    EngStatus status = engram_fields(point, &with, err);
    if (!status) status = columns(point, &with, err);
    if (!status) status = eng_train_account(&with, &account, err);
    if (status) return status;
    double a_column =
        3.0 * config->model.hidden * config->model.layers; /* SwiGLU: three matrices */
    config->model.shared_extra += (int)lround((double)account.engram_dense / a_column);
    return ENG_OK;
}

static EngStatus make_arm(const EngPoint *point, const EngTrainConfig *base, EngArm *arm,
                          EngErr *err)
{
    EngTrainConfig *config = &arm->config;
    *config = *base;
    if (!strcmp(eng_point_word(point, "backbone"), "dense")) {
        config->model.shared_experts += config->model.top_k;
        /* What the router cost: a column for each expert; one of a SwiGLU is three. */
        config->model.shared_extra += (int)lround(config->model.experts / 3.0);
        config->model.experts = config->model.top_k = 0;
    }
    if (eng_point_real(point, "rho") < 1 || eng_point_int(point, "memory"))
        return engram_model(point, base, config, err);
    return strcmp(eng_point_word(point, "iso"), "flops") ? ENG_OK : widen(point, config, err);
}

EngStatus eng_arm_resolve(const EngPoint *point, EngArm *arm, EngErr *err)
{
    EngTrainConfig base;
    EngTrainAccount of_base;
    *arm =
        (EngArm){.text = eng_point_word(point, "text"), .threads = eng_point_int(point, "threads")};
    EngStatus status = check_together(point, err);
    if (!status) status = check_of_rung(point, err);
    if (!status) status = common(point, &base, err);
    if (!status) status = eng_train_account(&base, &of_base, err);
    if (status) return status;
    double tokens = eng_point_real(point, "budget") * (double)of_base.active;
    base.tokens = (int64_t)(tokens / (double)base.batch_tokens + 0.5) * base.batch_tokens;
    if (base.tokens < base.batch_tokens) base.tokens = base.batch_tokens;
    status = make_arm(point, &base, arm, err);
    if (!status) status = eng_train_check(&arm->config, err);
    if (!status) status = eng_train_account(&arm->config, &arm->account, err);
    if (status) return status;
    arm->residual = (double)arm->account.total / (double)of_base.total - 1;
    int64_t sparse = of_base.total - of_base.active, k = base.model.top_k;
    int64_t experts = arm->config.model.experts - k;
    bool shares = sparse > 0 && arm->config.model.experts > 0;
    arm->rho = shares ? (double)(experts * of_base.expert) / (double)sparse : NAN;
    return ENG_OK;
}

/* ---- manifest ---- */

EngStatus eng_arm_manifest(const EngArm *arm, const EngTrainData *data, EngStr *text,
                           char key[ENG_KEY_HEX], EngErr *err)
{
    EngTrainConfig config = arm->config;
    EngStatus status = ENG_OK;
    config.vocab_compressed = data->map.n_compressed;
    for (int i = 0; i < eng_train_fields() && !status; i++) {
        char value[256];
        const char *name = eng_train_field_name(i);
        if (!eng_train_field_counts(&config, i)) continue;
        status = eng_train_field_get(&config, i, value, sizeof value, err);
        eng_str_printf(text, "%s=%s\n", name, value);
    }
    eng_str_printf(text, "data=%s\nrecipe=%d\n", data->digest, ENG_TRAIN_RECIPE);
    if (!status) status = eng_str_status(text, err);
    return status ? status : eng_key_of(text->text, key, err);
}

EngStatus eng_arm_label(const EngPoint *point, EngStr *out, EngErr *err)
{
    for (int i = 0; i < ENG_ARM_AXES; i++) {
        const EngAxisDef *axis = &eng_arm_axes[i];
        const EngValue *value = &point->values[i];
        double of_default = 0;
        bool word = axis->type == ENG_AXIS_WORD;
        if (word ? !strcmp(value->text, axis->def)
                 : eng_parse_f64(axis->def, &of_default) && value->f == of_default)
            continue;
        eng_str_printf(out, "%s%s=", out->n ? " " : "", axis->name);
        if (axis->type == ENG_AXIS_REAL)
            eng_str_printf(out, "%g", value->f);
        else
            eng_str_add(out, value->text);
    }
    if (!out->n) eng_str_add(out, "");
    return eng_str_status(out, err);
}

/* ---- one variable ---- */

bool eng_arm_is_training(const char *axis)
{
    static const char *const names[] = {"rung",         "text",     "budget",    "streams",
                                        "lr",           "schedule", "rule",      "vocab_rule",
                                        "table_rule",   "table_lr", "bias_step", "bias_decay",
                                        "balance_loss", "batch",    "dtype"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], axis)) return true;
    return false;
}

static bool is_free(int axis)
{
    return !strcmp(eng_arm_axes[axis].name, ENG_ARM_AXIS_SEED) ||
           !strcmp(eng_arm_axes[axis].name, "threads");
}

EngStatus eng_arm_check_sweep(const EngSweep *sweep, EngErr *err)
{
    for (int i = 0; i < sweep->n_sections; i++) {
        const EngSweepSection *section = &sweep->sections[i];
        const char *first = NULL;
        for (int a = 0; a < section->n_axes; a++) {
            const EngSweepAxis *axis = &section->axes[a];
            if (axis->n < 2 || is_free(axis->axis)) continue;
            const char *name = section->experiment->axes[axis->axis].name;
            if (first)
                return ENG_FAIL(
                    err, ENG_USAGE,
                    "%s: [%s%s%s] changes two variables, %s and %s; a comparison changes "
                    "one: write a section for each",
                    sweep->source, section->experiment->name, section->label[0] ? ":" : "",
                    section->label, first, name);
            first = name;
        }
    }
    return ENG_OK;
}
