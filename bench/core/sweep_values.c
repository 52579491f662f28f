/* Values of axes: canonical text, type, range and word checks, lists and ranges. */
#include "bench/core/sweep_parts.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIST 100000 /* values of one axis; more is a slip of the pen */

const char *eng_sweep_hint(const char *name, const char *const *candidates, size_t n, char *out,
                           size_t size)
{
    const char *near = eng_nearest(name, candidates, n);
    *out = 0;
    if (near) snprintf(out, size, "; did you mean '%s'?", near);
    return out;
}

static EngStatus unknown_word(const EngAxisDef *def, const char *text, const char *const *words,
                              size_t n, EngErr *err)
{
    char hint[96], list[400] = "";
    size_t used = 0;
    eng_sweep_hint(text, words, n, hint, sizeof hint);
    for (size_t i = 0; i < n && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    return ENG_FAIL(err, ENG_USAGE, "%s '%s' is not one of %s%s", def->name, text, list, hint);
}

bool eng_word_valid(const char *text)
{
    const char *p = text;
    while (isgraph((unsigned char)*p) && !strchr("\"',;()=\\", *p)) p++;
    return *text && !*p;
}

static EngStatus check_word(const EngAxisDef *def, const char *text, EngErr *err)
{
    if (!*text) return ENG_FAIL(err, ENG_USAGE, "%s has an empty value", def->name);
    if (!eng_word_valid(text))
        return ENG_FAIL(err, ENG_USAGE, "%s '%s' has a character that no word may have", def->name,
                        text);
    if (!def->words) return ENG_OK;
    size_t n = 0;
    for (; def->words[n]; n++)
        if (!strcmp(def->words[n], text)) return ENG_OK;
    return unknown_word(def, text, def->words, n, err);
}

bool eng_variant_is_group(const char *text)
{
    bool group = !strcmp(text, ENG_VARIANT_ALL);
    for (int b = 0; b < ENG_BACKEND_COUNT; b++)
        group |= !strcmp(text, eng_backend_name((EngBackend)b));
    return group;
}

bool eng_variant_covers(const char *text, const EngKernel *kernel)
{
    if (kernel->roof) return false;
    if (!strcmp(text, ENG_VARIANT_ALL)) return eng_backend_present(kernel->backend);
    return !strcmp(text, eng_backend_name(kernel->backend));
}

/* A kernel variant must exist and be no roof: those are in every block anyway. Its settings get one
 * spelling. */
static EngStatus check_variant(const EngCatalog *catalog, const EngExperiment *experiment,
                               const EngAxisDef *def, const char *text,
                               char canonical[ENG_VARIANT_BYTES], EngErr *err)
{
    const char *names[128] = {ENG_VARIANT_ALL};
    size_t n_names = 1;
    int n = 0;
    const EngKernel *const *kernels =
        catalog->kernels ? catalog->kernels((EngOp)experiment->op, &n) : NULL;
    snprintf(canonical, ENG_VARIANT_BYTES, "%s", text);
    if (eng_variant_is_group(text)) return ENG_OK;
    for (int i = 0; i < n; i++) {
        if (eng_kernel_is(kernels[i], text)) {
            int tuned[ENG_MAX_TUNABLES];
            EngStatus status = eng_kernel_settings(kernels[i], text, tuned, err);
            if (!status)
                status = eng_kernel_variant(kernels[i], tuned, canonical, ENG_VARIANT_BYTES, err);
            if (status || !kernels[i]->roof) return status;
            return ENG_FAIL(err, ENG_USAGE,
                            "%s '%s' is a roof: every block measures it without being asked",
                            def->name, text);
        }
        if (!kernels[i]->roof && n_names < sizeof names / sizeof *names)
            names[n_names++] = kernels[i]->name;
    }
    return unknown_word(def, text, names, n_names, err);
}

static EngStatus check_range(const EngAxisDef *def, const EngValue *value, EngErr *err)
{
    if (def->min == 0 && def->max == 0) return ENG_OK; /* the axis sets no limits */
    if (value->f < def->min)
        return ENG_FAIL(err, ENG_USAGE, "%s %s is below its least value %.15g", def->name,
                        value->text, def->min);
    if (value->f > def->max)
        return ENG_FAIL(err, ENG_USAGE, "%s %s is above its greatest value %.15g", def->name,
                        value->text, def->max);
    return ENG_OK;
}

/* Shortest decimal that reads back as the same number. */
static void shortest_real(double f, char *out, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, f);
        if (strtod(out, NULL) == f) return;
    }
}

static EngStatus number_value(const EngAxisDef *def, double f, int64_t i, EngArena *arena,
                              EngValue *value, EngErr *err)
{
    char text[32];
    if (def->type == ENG_AXIS_INT)
        snprintf(text, sizeof text, "%lld", (long long)i);
    else
        shortest_real(f == 0 ? 0 : f, text, sizeof text); /* no "-0" */
    *value =
        (EngValue){eng_arena_strdup(arena, text), i, def->type == ENG_AXIS_INT ? (double)i : f};
    if (!value->text) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for axis values");
    return check_range(def, value, err);
}

static EngStatus parse_number(const EngAxisDef *def, const char *text, double *f, int64_t *i,
                              EngErr *err)
{
    *i = 0;
    if (def->type == ENG_AXIS_INT) {
        if (!eng_parse_i64(text, i))
            return ENG_FAIL(err, ENG_USAGE, "%s '%s' is not an integer", def->name, text);
        *f = (double)*i;
    } else if (!eng_parse_f64(text, f)) {
        return ENG_FAIL(err, ENG_USAGE, "%s '%s' is not a number", def->name, text);
    }
    return ENG_OK;
}

EngStatus eng_axis_value(const EngCatalog *catalog, const EngExperiment *experiment, int axis,
                         const char *text, EngArena *arena, EngValue *value, EngErr *err)
{
    const EngAxisDef *def = &experiment->axes[axis];
    double f;
    int64_t i;
    char variant[ENG_VARIANT_BYTES];
    EngStatus status;
    if (def->type != ENG_AXIS_WORD) {
        status = parse_number(def, text, &f, &i, err);
        return status ? status : number_value(def, f, i, arena, value, err);
    }
    if (experiment->op >= 0 && !strcmp(def->name, ENG_AXIS_VARIANT)) {
        status = check_variant(catalog, experiment, def, text, variant, err);
        text = variant;
    } else {
        status = check_word(def, text, err);
    }
    if (status) return status;
    *value = (EngValue){.text = eng_arena_strdup(arena, text)};
    return value->text ? ENG_OK : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for axis values");
}

/* ---- lists -------------------------------------------------------------------------------------
 */

typedef struct List {
    EngArena *arena;
    const EngAxisDef *def;
    EngValue *values;
    int n, size;
} List;

static EngStatus push(List *list, EngValue value, EngErr *err)
{
    if (list->n == MAX_LIST)
        return ENG_FAIL(err, ENG_USAGE, "%s has more than %d values", list->def->name, MAX_LIST);
    if (list->n == list->size) {
        int size = list->size ? 2 * list->size : 16;
        EngValue *grown = eng_arena_alloc(list->arena, (size_t)size * sizeof *grown);
        if (!grown) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for axis values");
        if (list->n) memcpy(grown, list->values, (size_t)list->n * sizeof *grown);
        list->values = grown;
        list->size = size;
    }
    list->values[list->n++] = value;
    return ENG_OK;
}

typedef struct Range {
    double first, last, step;
    int64_t first_i, last_i, step_i;
    bool geometric;
} Range;

static EngStatus push_number(List *list, double f, int64_t i, EngErr *err)
{
    EngValue value;
    EngStatus status = number_value(list->def, f, i, list->arena, &value, err);
    return status ? status : push(list, value, err);
}

static EngStatus walk_integers(List *list, const Range *range, EngErr *err)
{
    for (int64_t i = range->first_i; i <= range->last_i;) {
        EngStatus status = push_number(list, (double)i, i, err);
        if (status) return status;
        bool over = range->geometric ? __builtin_mul_overflow(i, range->step_i, &i)
                                     : __builtin_add_overflow(i, range->step_i, &i);
        if (over) break;
    }
    return ENG_OK;
}

/* Values come from the index, not from repeated sums, and the end is met within rounding. */
static EngStatus walk_reals(List *list, const Range *range, EngErr *err)
{
    double slack = 1e-9 * (fabs(range->last) + fabs(range->step));
    for (int i = 0;; i++) {
        double f =
            range->geometric ? range->first * pow(range->step, i) : range->first + i * range->step;
        if (f > range->last + slack) return ENG_OK;
        if (fabs(f - range->last) <= slack) f = range->last;
        char text[32]; /* 0.1 + 2 * 0.1 is meant to be 0.3 */
        snprintf(text, sizeof text, "%.12g", f);
        EngStatus status = push_number(list, strtod(text, NULL), 0, err);
        if (status) return status;
    }
}

/* first:last:xFACTOR or first:last:+STEP; `item` is cut at its colons. */
static EngStatus push_range(List *list, char *item, EngErr *err)
{
    const char *name = list->def->name;
    char *last = strchr(item, ':') + 1, *step = strchr(last, ':');
    if (!step)
        return ENG_FAIL(err, ENG_USAGE, "%s range '%s' needs a step, as in %s:x2 or %s:+1", name,
                        item, item, item);
    char *whole = eng_arena_strdup(list->arena, item);
    if (!whole) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for axis values");
    last[-1] = *step++ = 0;
    item = eng_trim(item);
    last = eng_trim(last);
    step = eng_trim(step);
    Range range = {.geometric = *step == 'x'};
    if (*step != 'x' && *step != '+')
        return ENG_FAIL(err, ENG_USAGE, "%s range '%s': the step must begin with x or +", name,
                        whole);
    step = eng_trim(step + 1);
    EngStatus status = parse_number(list->def, item, &range.first, &range.first_i, err);
    if (!status) status = parse_number(list->def, last, &range.last, &range.last_i, err);
    if (!status) status = parse_number(list->def, step, &range.step, &range.step_i, err);
    if (status) return eng_err_prefix(err, "range '%s'", whole), status;
    if (range.last < range.first)
        return ENG_FAIL(err, ENG_USAGE, "%s range '%s' ends below its start", name, whole);
    if (range.geometric && (range.step <= 1 || range.first <= 0))
        return ENG_FAIL(err, ENG_USAGE, "%s range '%s' needs a start above 0 and a factor above 1",
                        name, whole);
    if (!range.geometric && range.step <= 0)
        return ENG_FAIL(err, ENG_USAGE, "%s range '%s' needs a step above 0", name, whole);
    return list->def->type == ENG_AXIS_INT ? walk_integers(list, &range, err)
                                           : walk_reals(list, &range, err);
}

EngStatus eng_axis_values(const EngCatalog *catalog, const EngExperiment *experiment, int axis,
                          const char *text, EngArena *arena, EngValue **values, int *n, EngErr *err)
{
    List list = {.arena = arena, .def = &experiment->axes[axis]};
    char *copy = eng_arena_strdup(arena, text);
    *values = NULL;
    *n = 0;
    if (!copy) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for axis values");
    if (!*eng_trim(copy)) return ENG_FAIL(err, ENG_USAGE, "%s has no value", list.def->name);
    for (char *item = copy, *next; item; item = next) {
        char *comma = strchr(item, ',');
        next = comma ? comma + 1 : NULL;
        if (comma) *comma = 0;
        item = eng_trim(item);
        EngStatus status;
        if (!*item) {
            status = ENG_FAIL(err, ENG_USAGE, "%s has an empty value in its list", list.def->name);
        } else if (list.def->type != ENG_AXIS_WORD && strchr(item, ':')) {
            status = push_range(&list, item, err);
        } else {
            EngValue value;
            status = eng_axis_value(catalog, experiment, axis, item, arena, &value, err);
            if (!status) status = push(&list, value, err);
        }
        if (status) return status;
    }
    *values = list.values;
    *n = list.n;
    return ENG_OK;
}
