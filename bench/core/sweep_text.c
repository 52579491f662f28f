/* The effective sweep as text; see sweep.h. */
#include <string.h>

#include "bench/core/sweep.h"

#define WRAP_BYTES 96

/* "key = value", broken at spaces into indented lines, since a line of a file may not be long. */
static void put_line(EngStr *out, const char *key, const char *value)
{
    size_t column = strlen(key) + 3;
    eng_str_printf(out, "%s =", key);
    while (*value) {
        size_t n = strcspn(value, " ");
        bool comment = *value == ';' || *value == '#'; /* would be one at the start of a line */
        if (column + n > WRAP_BYTES && !comment && column > strlen(key) + 3) {
            eng_str_add(out, "\n   ");
            column = 4;
        }
        eng_str_add(out, " ");
        eng_str_add_n(out, value, n);
        column += n + 1;
        value += n;
        while (*value == ' ') value++;
    }
    eng_str_add(out, "\n");
}

static void put_settings(EngStr *out, const EngSweepSettings *settings,
                         const EngSweepSettings *above)
{
    if (!above || settings->pairs != above->pairs)
        eng_str_printf(out, "pairs = %d\n", settings->pairs);
    if (!above || settings->segments != above->segments)
        eng_str_printf(out, "segments = %d\n", settings->segments);
    if (!above || settings->budget_ms != above->budget_ms)
        eng_str_printf(out, "budget_ms = %lld\n", (long long)settings->budget_ms);
    if (!above || settings->seed != above->seed)
        eng_str_printf(out, "seed = %llu\n", (unsigned long long)settings->seed);
    if (above ? settings->precision != above->precision : settings->precision)
        eng_str_printf(out, "precision = %g%%\n", settings->precision / 100.0);
    if (above ? settings->settled != above->settled : settings->settled)
        eng_str_printf(out, "settled = %g%%\n", settings->settled / 100.0);
    if (above ? settings->trace != above->trace : settings->trace)
        eng_str_printf(out, "trace = %d\n", settings->trace);
}

static void put_zips(EngStr *out, const EngSweepSection *section)
{
    bool any = false;
    for (int group = 0; group < ENG_MAX_AXES; group++) {
        bool open = false;
        for (int i = 0; i < section->n_axes; i++) {
            if (section->axes[i].zip != group) continue;
            eng_str_add(out, open ? ", " : any ? ", (" : "zip = (");
            eng_str_add(out, section->experiment->axes[section->axes[i].axis].name);
            open = any = true;
        }
        if (open) eng_str_add(out, ")");
    }
    if (any) eng_str_add(out, "\n");
}

static EngStatus put_section(EngStr *out, const EngSweep *sweep, const EngSweepSection *section,
                             EngErr *err)
{
    const EngExperiment *experiment = section->experiment;
    eng_str_printf(out, "\n[%s%s%s]\n", experiment->name, *section->label ? ":" : "",
                   section->label);
    for (int i = 0; i < section->n_axes; i++) {
        EngStr list = {0};
        for (int k = 0; k < section->axes[i].n; k++)
            eng_str_printf(&list, "%s%s", k ? ", " : "", section->axes[i].values[k].text);
        EngStatus status = eng_str_status(&list, err);
        if (!status) put_line(out, experiment->axes[section->axes[i].axis].name, list.text);
        eng_str_free(&list);
        if (status) return status;
    }
    put_zips(out, section);
    if (section->where) put_line(out, "where", section->where_text);
    if (section->compare >= 0) put_line(out, "compare", section->compare_text);
    put_settings(out, &section->settings, &sweep->settings);
    return ENG_OK;
}

EngStatus eng_sweep_text(const EngSweep *sweep, EngStr *out, EngErr *err)
{
    eng_str_add(out, "[sweep]\n");
    put_line(out, "name", sweep->name);
    if (*sweep->question) put_line(out, "question", sweep->question);
    put_settings(out, &sweep->settings, NULL);
    for (int i = 0; i < sweep->n_sections; i++) {
        EngStatus status = put_section(out, sweep, &sweep->sections[i], err);
        if (status) return status;
    }
    return eng_str_status(out, err);
}
