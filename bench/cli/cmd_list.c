/* engram list: what can be measured, with which kernels, presets and corpora. */
#include <stdio.h>
#include <string.h>

#include "bench/ablation/sweep.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/core/stream.h"
#include "bench/experiments/experiments.h"
#include "kernels/address/preset.h"

static EngStatus list_experiments(EngErr *err)
{
    static const EngTableColumn columns[] = {{"experiment", false}, {"question", false}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 2, err);
    for (int i = 0; i < eng_experiments.n && !status; i++) {
        eng_table_text(table, eng_experiments.items[i]->name);
        eng_table_text(table, eng_experiments.items[i]->question);
    }
    if (!status) {
        eng_table_text(table, eng_experiment_train.name); /* by `engram train` */
        eng_table_text(table, eng_experiment_train.question);
        status = eng_table_print(table, stdout, err);
    }
    eng_table_free(table);
    return status;
}

static EngStatus list_kernels(EngErr *err)
{
    static const EngTableColumn columns[] = {{"operation", false},
                                             {"variant", false},
                                             {"backend", false},
                                             {"", false},
                                             {"what it does", false}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 5, err);
    for (int op = 0; op < ENG_OP_COUNT && !status; op++) {
        int n;
        const EngKernel *const *kernels = eng_kernels((EngOp)op, &n);
        for (int i = 0; i < n; i++) {
            eng_table_text(table, eng_op_name((EngOp)op));
            eng_table_text(table, kernels[i]->name);
            eng_table_text(table, eng_backend_name(kernels[i]->backend));
            eng_table_text(table, kernels[i]->roof ? "roof" : "");
            char text[512];
            size_t used = (size_t)snprintf(text, sizeof text, "%s", kernels[i]->summary);
            const EngTunable *t = kernels[i]->tunables;
            for (int k = 0; t && k < ENG_MAX_TUNABLES && t[k].name && used < sizeof text; k++)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s@%s=%d..%d",
                                         k ? "" : "; ", t[k].name, t[k].min, t[k].max);
            eng_table_text(table, text);
        }
    }
    if (!status) status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

static EngStatus list_presets(EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"preset", false},          {"orders", false}, {"K", true},
        {"rows per head", true},    {"dims", true},    {"rows", false},
        {"layers (from 0)", false}, {"hidden", true},  {"", false}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 9, err);
    for (const char *const *name = eng_preset_names(); *name && !status; name++) {
        EngPreset p;
        char layers[64] = "";
        status = eng_preset_find(*name, &p, err);
        if (status) break;
        for (int i = 0; i < p.address.n_layers; i++) {
            size_t used = strlen(layers);
            snprintf(layers + used, sizeof layers - used, "%s%d", i ? "," : "",
                     p.address.layer_ids[i]);
        }
        eng_table_text(table, p.name);
        eng_table_printf(table, "%d-%d", p.address.min_order, p.address.max_order);
        eng_table_printf(table, "%d", p.address.heads);
        eng_table_printf(table, "%lld", (long long)p.address.start);
        eng_table_printf(table, "%d", p.row_dims);
        eng_table_text(table, eng_row_format_name(p.row_format));
        eng_table_text(table, layers);
        eng_table_printf(table, "%d x %d", p.streams, p.hidden);
        eng_table_text(table, p.summary);
    }
    if (!status) status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

enum { WORDS_BYTES = 160 };

/* " row_dims embed_dims": the words an axis may take. */
static const char *words_text(const char *const *words, char out[WORDS_BYTES])
{
    size_t used = 0;
    out[0] = 0;
    for (; *words && used < WORDS_BYTES; words++)
        used += (size_t)snprintf(out + used, WORDS_BYTES - used, " %s", *words);
    return out;
}

static EngStatus list_axes(const EngExperiment *e, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"axis", false}, {"default", true}, {"unit", false}, {"", false}};
    static const EngTableColumn metric_columns[] = {
        {"metric", false}, {"unit", false}, {"better", false}, {"clock", false}, {"", false}};
    EngTextTable *table;
    char words[WORDS_BYTES];
    printf("%s: %s\n\n", e->name, e->question);
    EngStatus status = eng_table_create(&table, columns, 4, err);
    if (status) return status;
    for (int i = 0; i < e->n_axes; i++) {
        eng_table_text(table, e->axes[i].name);
        eng_table_text(table, e->axes[i].def);
        eng_table_text(table, e->axes[i].unit);
        if (e->axes[i].words) {
            eng_table_printf(table, "%s:%s", e->axes[i].help, words_text(e->axes[i].words, words));
        } else {
            eng_table_text(table, e->axes[i].help);
        }
    }
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    if (!status) status = eng_table_create(&table, metric_columns, 5, err);
    if (status) return status;
    putchar('\n');
    for (int i = 0; i < e->n_metrics; i++) {
        const EngMetricDef *m = &e->metrics[i];
        eng_table_text(table, m->name);
        eng_table_text(table, m->unit);
        eng_table_text(table, m->better > 0 ? "more" : m->better < 0 ? "less" : "");
        eng_table_text(table, m->clock);
        eng_table_text(table, m->help);
    }
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

static EngStatus list_corpora(EngCli *cli, EngErr *err)
{
    EngStreamNames names;
    EngStatus status = eng_stream_names(eng_cli_text(cli, "data"), &names, err);
    if (status) return status;
    printf("corpora: synthetic uniform");
    for (int i = 0; i < names.n; i++) printf(" %s", names.names[i]);
    printf("   (`engram stream list` tells more)\n");
    eng_stream_names_free(&names);
    return ENG_OK;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    const EngExperiment *e;
    const char *name = eng_cli_operand(cli, 0);
    EngStatus status;
    if (name) {
        if (!strcmp(name, eng_experiment_train.name)) return list_axes(&eng_experiment_train, err);
        status = eng_experiment_find(&eng_experiments, name, &e, err);
        return status ? status : list_axes(e, err);
    }
    status = list_experiments(err);
    putchar('\n');
    if (!status) status = list_kernels(err);
    putchar('\n');
    if (!status) status = list_presets(err);
    putchar('\n');
    if (!status) status = list_corpora(cli, err);
    return status;
}

static const EngOption g_options[] = {
    ENG_OPTION_DATA,
};

const EngVerb eng_verb_list = {
    .name = "list",
    .operands = "[EXPERIMENT]",
    .summary = "experiments, kernels, presets, corpora; axes and metrics of one experiment",
    .options = g_options,
    .n_options = 1,
    .max_operands = 1,
    .run = run,
};
