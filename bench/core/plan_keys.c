/* Keys and texts of planned points; see plan.h for what enters a key. Key texts are lines of
 * "name=value", axes sorted by name, so that neither the order of axes in a table nor their number
 * matters. */
#include "bench/core/plan_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void eng_key_text_free(EngKeyText *text)
{
    eng_str_free(&text->text);
}

const char *eng_plan_backend(const EngKernel *kernel)
{
    static const char *const names[ENG_BACKEND_COUNT] = {[ENG_CPU] = "cpu", [ENG_CUDA] = "cuda"};
    return names[kernel ? kernel->backend : ENG_CPU];
}

/* Insertion sort of axis indices by name. */
static void sort_axes(const EngExperiment *experiment, int *order)
{
    for (int i = 0; i < experiment->n_axes; i++) {
        int k = i;
        for (; k && strcmp(experiment->axes[order[k - 1]].name, experiment->axes[i].name) > 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

static void restart(EngKeyText *text, const EngExperiment *experiment, const char *head)
{
    if (text->experiment != experiment) {
        sort_axes(experiment, text->order);
        text->experiment = experiment;
    }
    text->text.n = 0;
    eng_str_add(&text->text, head);
}

static void add_line(EngStr *str, const char *name, const char *value)
{
    eng_str_add(str, name);
    eng_str_add_n(str, "=", 1);
    eng_str_add(str, value);
    eng_str_add_n(str, "\n", 1);
}

static EngStatus take_key(EngKeyText *text, char key[ENG_KEY_HEX], EngErr *err)
{
    EngStatus status = eng_str_status(&text->text, err);
    return status ? status : eng_key_of(text->text.text, key, err);
}

EngStatus eng_plan_keys(EngPlanPoint *point, const char *machine_id, EngKeyText *text, EngErr *err)
{
    const EngExperiment *experiment = point->point.experiment;
    EngStr *str = &text->text;
    restart(text, experiment, "engram config 1\n");
    add_line(str, "experiment", experiment->name);
    for (int i = 0; i < experiment->n_axes; i++) {
        const EngAxisDef *def = &experiment->axes[text->order[i]];
        int axis = text->order[i];
        if (!strcmp(def->name, ENG_AXIS_VARIANT) || (point->at_default >> axis & 1)) continue;
        eng_str_add(str, "axis ");
        add_line(str, def->name, point->point.values[axis].text);
    }
    add_line(str, "variant", point->variant);
    add_line(str, "stream", point->stream_digest ? point->stream_digest : "");
    add_line(str, "preset", point->preset_digest ? point->preset_digest : "");
    add_line(str, "store", point->store_digest ? point->store_digest : "");
    EngStatus status = take_key(text, point->config_key, err);
    if (status) return status;
    restart(text, experiment, "engram point 1\n");
    add_line(str, "config", point->config_key);
    add_line(str, "build", point->variant_digest ? point->variant_digest : "");
    add_line(str, "machine", machine_id ? machine_id : "");
    return take_key(text, point->point_key, err);
}

EngStatus eng_plan_axes_key(const EngPlanPoint *point, EngAxisMask without, const char *rest,
                            EngKeyText *text, char key[ENG_KEY_HEX], EngErr *err)
{
    const EngExperiment *experiment = point->point.experiment;
    restart(text, experiment, "engram axes 1\n");
    add_line(&text->text, "experiment", experiment->name);
    for (int i = 0; i < experiment->n_axes; i++) {
        int axis = text->order[i];
        if (!(without >> axis & 1))
            add_line(&text->text, experiment->axes[axis].name, point->point.values[axis].text);
    }
    eng_str_add(&text->text, rest);
    return take_key(text, key, err);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

EngStatus eng_plan_settings_key(EngPlan *plan, EngErr *err)
{
    EngStr str = {0};
    void *memory;
    int n = 0;
    EngStatus status =
        eng_alloc_or(&memory, (size_t)plan->n_named, sizeof(char *), "the plan's key", err);
    if (status) return status;
    char **lines = memory;
    for (int b = 0; b < plan->n_blocks && !status; b++) {
        const EngPlanBlock *block = &plan->blocks[b];
        const EngSweepSettings *s = &block->settings;
        for (int i = 0; i < block->n_points && !status; i++) {
            if (block->points[i]->is_roof) continue;
            char rule[48] = "";
            if (s->precision) snprintf(rule, sizeof rule, " %d %d", s->precision, s->settled);
            lines[n] = eng_arena_printf(plan->arena, "%s %s %d %d %lld %llu%s\n",
                                        block->points[i]->point_key, block->compare_axis, s->pairs,
                                        s->segments, (long long)s->budget_ms,
                                        (unsigned long long)s->seed, rule);
            if (!lines[n++]) status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the plan");
        }
    }
    if (!status) {
        qsort(lines, (size_t)n, sizeof *lines, compare_texts);
        for (int i = 0; i < n; i++) eng_str_add(&str, lines[i]);
        status = eng_str_status(&str, err);
    }
    if (!status) status = eng_key_of(str.text, plan->plan_key, err);
    eng_str_free(&str);
    eng_free(memory);
    return status;
}

EngStatus eng_plan_rekey(EngPlan *plan, EngErr *err)
{
    EngKeyText text = {0};
    EngStatus status = ENG_OK;
    eng_key_table_free(&plan->index);
    for (int i = 0; i < plan->n_points && !status; i++) {
        EngPlanPoint *point = plan->points[i];
        status = eng_plan_keys(point, plan->identity->machine_id, &text, err);
        if (!status && !eng_key_table_put(&plan->index, point->point_key, point))
            status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the plan");
    }
    eng_key_text_free(&text);
    return status ? status : eng_plan_settings_key(plan, err);
}

/* Canonical numbers are JSON numbers, and words hold nothing that JSON escapes (sweep_values.c). */
EngStatus eng_plan_axes_json(const EngPlanPoint *point, EngStr *out, EngErr *err)
{
    const EngExperiment *experiment = point->point.experiment;
    int order[ENG_MAX_AXES];
    sort_axes(experiment, order);
    eng_str_add(out, "{");
    for (int i = 0; i < experiment->n_axes; i++) {
        const EngAxisDef *def = &experiment->axes[order[i]];
        const char *quote = def->type == ENG_AXIS_WORD ? "\"" : "";
        eng_str_printf(out, "%s\"%s\":%s%s%s", i ? "," : "", def->name, quote,
                       point->point.values[order[i]].text, quote);
    }
    eng_str_add(out, "}");
    return eng_str_status(out, err);
}

EngStatus eng_plan_label(const EngPlanPoint *point, EngStr *out, EngErr *err)
{
    const EngExperiment *experiment = point->point.experiment;
    size_t before = out->n;
    for (int i = 0; i < experiment->n_axes; i++) {
        if (point->at_default >> i & 1) continue;
        eng_str_printf(out, "%s%s=%s", out->n > before ? " " : "", experiment->axes[i].name,
                       point->point.values[i].text);
    }
    if (out->n == before) eng_str_add(out, "(all axes at their default)");
    return eng_str_status(out, err);
}

EngStatus eng_plan_blame(const EngPlanPoint *point, EngStatus status, EngErr *err)
{
    EngStr label = {0};
    if (err && !eng_plan_label(point, &label, NULL))
        eng_err_prefix(err, "%s %s", point->point.experiment->name, label.text ? label.text : "");
    eng_str_free(&label);
    return status;
}
