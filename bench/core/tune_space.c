/* Candidates of a search, and the sweep of a stage; see tune.h. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/core/sweep_parts.h"
#include "bench/core/tune.h"

#define LIST_BYTES 90 /* of a line of values: the sweep grammar has a limit */

/* Values that one axis takes in the search. */
typedef struct List {
    int axis;
    EngValue *values;
    int n;
} List;

typedef struct Builder {
    EngTuneSpace *space;
    const EngSweepSection *section;
    List lists[ENG_MAX_AXES]; /* without the variant */
    int n_lists;
    int size; /* room in space->items */
    EngErr *err;
} Builder;

static EngStatus no_memory(EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a search");
}

static const EngSweepAxis *named_axis(const EngSweepSection *section, int axis)
{
    for (int i = 0; i < section->n_axes; i++)
        if (section->axes[i].axis == axis) return &section->axes[i];
    return NULL;
}

static const EngTunableAxis *tunable_axis(const EngExperiment *experiment, int axis)
{
    for (const EngTunableAxis *t = experiment->tunables; t && t->axis; t++)
        if (!strcmp(t->axis, experiment->axes[axis].name)) return t;
    return NULL;
}

/* ---- values ------------------------------------------------------------------------------------
 */

static void cores_text(int cores, char *out, size_t size)
{
    size_t used = 0;
    for (int n = 1; n < cores && used < size; n *= 2)
        used += (size_t)snprintf(out + used, size - used, "%d,", n);
    if (used < size) snprintf(out + used, size - used, "%d", cores);
}

/* Values of a kernel's tunable, by the sweep's own list grammar. */
static EngStatus tunable_values(Builder *b, const EngTunable *tunable, EngValue **values, int *n)
{
    const EngAxisDef def = {.name = tunable->name,
                            .type = ENG_AXIS_INT,
                            .def = "",
                            .unit = "",
                            .min = tunable->min,
                            .max = tunable->max,
                            .help = ""};
    const EngExperiment holder = {.name = "tunable", .axes = &def, .n_axes = 1, .op = -1};
    EngStatus status = eng_axis_values(b->space->sweep->catalog, &holder, 0, tunable->values,
                                       b->space->arena, values, n, b->err);
    return status == ENG_USAGE ? ENG_INTERNAL : status; /* the list is the program's */
}

/* Lists of the tunable axes; what is fixed goes into the sweep's text. */
static EngStatus read_axes(Builder *b, int variant, int cores)
{
    const EngExperiment *experiment = b->space->experiment;
    EngStr fixed = {0};
    EngStatus status = ENG_OK;
    for (int axis = 0; axis < experiment->n_axes && !status; axis++) {
        const EngSweepAxis *named = named_axis(b->section, axis);
        const EngTunableAxis *tunable = tunable_axis(experiment, axis);
        List list = {axis, named ? named->values : NULL, named ? named->n : 0};
        if (axis == variant) continue;
        if (!named && tunable && tunable->values) {
            char text[256];
            snprintf(text, sizeof text, "%s", tunable->values);
            if (!strcmp(text, ENG_TUNE_CORES)) cores_text(cores, text, sizeof text);
            status = eng_axis_values(b->space->sweep->catalog, experiment, axis, text,
                                     b->space->arena, &list.values, &list.n, b->err);
        }
        if (list.n > 1 && !tunable)
            status = ENG_FAIL(b->err, ENG_USAGE,
                              "tune: %s has %d values; a search is for one shape, so give it one",
                              experiment->axes[axis].name, list.n);
        if (!status && list.n > 1) b->lists[b->n_lists++] = list;
        if (!status && list.n == 1)
            eng_str_printf(&fixed, "%s = %s\n", experiment->axes[axis].name, list.values[0].text);
    }
    if (!status) status = eng_str_status(&fixed, b->err);
    b->space->fixed = status ? NULL : eng_arena_strdup(b->space->arena, fixed.n ? fixed.text : "");
    eng_str_free(&fixed);
    if (!status && !b->space->fixed) status = no_memory(b->err);
    return status;
}

/* ---- candidates --------------------------------------------------------------------------------
 */

static EngStatus add_candidate(Builder *b, const char **values)
{
    EngTuneSpace *space = b->space;
    if (space->n == ENG_TUNE_MAX_CANDIDATES)
        return ENG_FAIL(b->err, ENG_USAGE,
                        "tune: more than %d candidates; name fewer variants or values with -a",
                        ENG_TUNE_MAX_CANDIDATES);
    for (int i = 0; i < space->n; i++) {
        bool same = true;
        for (int k = 0; k < space->n_axes && same; k++)
            same = !strcmp(space->items[i].values[k], values[k]);
        if (same) return ENG_OK; /* a listed value may be the default */
    }
    const char **copy = eng_arena_alloc(space->arena, (size_t)space->n_axes * sizeof(const char *));
    if (!copy) return no_memory(b->err);
    memcpy(copy, values, (size_t)space->n_axes * sizeof *copy);
    space->items[space->n++] = (EngTuneCandidate){.values = copy};
    return ENG_OK;
}

/* Crosses the tunable axes; values[0] is the variant where there is one. */
static EngStatus cross_axes(Builder *b, const char **values, int first)
{
    int at[ENG_MAX_AXES] = {0};
    for (;;) {
        for (int i = 0; i < b->n_lists; i++) values[first + i] = b->lists[i].values[at[i]].text;
        EngStatus status = add_candidate(b, values);
        if (status) return status;
        int i = b->n_lists - 1;
        while (i >= 0 && ++at[i] == b->lists[i].n) at[i--] = 0;
        if (i < 0) return ENG_OK;
    }
}

/* The plain kernel, then all combinations of what its tunables list. */
static EngStatus cross_kernel(Builder *b, const EngKernel *kernel)
{
    const char *values[ENG_MAX_AXES] = {kernel->name};
    EngValue *lists[ENG_MAX_TUNABLES];
    int sizes[ENG_MAX_TUNABLES], at[ENG_MAX_TUNABLES] = {0}, n = 0;
    EngStatus status = cross_axes(b, values, 1);
    for (; !status && kernel->tunables && n < ENG_MAX_TUNABLES && kernel->tunables[n].name; n++)
        status = tunable_values(b, &kernel->tunables[n], &lists[n], &sizes[n]);
    while (!status && n) {
        int tuned[ENG_MAX_TUNABLES] = {0};
        char text[ENG_VARIANT_BYTES];
        for (int i = 0; i < n; i++) tuned[i] = (int)lists[i][at[i]].i;
        status = eng_kernel_variant(kernel, tuned, text, sizeof text, b->err);
        if (!status && !(values[0] = eng_arena_strdup(b->space->arena, text)))
            status = no_memory(b->err);
        if (!status) status = cross_axes(b, values, 1);
        int i = n - 1;
        while (i >= 0 && ++at[i] == sizes[i]) at[i--] = 0;
        if (i < 0) break;
    }
    return status;
}

static EngStatus cross_variant(Builder *b, const char *name)
{
    const EngExperiment *experiment = b->space->experiment;
    const EngCatalog *catalog = b->space->sweep->catalog;
    const char *values[ENG_MAX_AXES] = {name};
    int n = 0;
    const EngKernel *const *kernels = experiment->op >= 0 && catalog->kernels
                                          ? catalog->kernels((EngOp)experiment->op, &n)
                                          : NULL;
    bool group = eng_variant_is_group(name);
    EngStatus status = ENG_OK;
    if (!kernels || strchr(name, '@')) return cross_axes(b, values, 1);
    for (int i = 0; i < n && !status; i++) {
        const EngKernel *kernel = kernels[i];
        bool asked = group ? eng_variant_covers(name, kernel) : eng_kernel_is(kernel, name);
        if (!kernel->roof && asked) status = cross_kernel(b, kernel);
    }
    return status;
}

static EngStatus cross_variants(Builder *b, int variant)
{
    const EngExperiment *experiment = b->space->experiment;
    const EngAxisDef *def = &experiment->axes[variant];
    const EngSweepAxis *named = named_axis(b->section, variant);
    EngStatus status = ENG_OK;
    if (named)
        for (int i = 0; i < named->n && !status; i++)
            status = cross_variant(b, named->values[i].text);
    else if (experiment->op >= 0)
        status = cross_variant(b, ENG_VARIANT_ALL);
    else if (def->words)
        for (int i = 0; def->words[i] && !status; i++) status = cross_variant(b, def->words[i]);
    else
        status = cross_variant(b, def->def);
    return status;
}

/* ---- space -------------------------------------------------------------------------------------
 */

/* The first timed metric's clock; but teams of different sizes differ in what their busiest thread
 * does not see (waking, waiting), so that a search over threads is judged by wall time. */
static const char *judging_clock(const EngTuneSpace *space)
{
    for (int i = 0; i < space->n_axes; i++)
        if (!strcmp(space->experiment->axes[space->axes[i]].name, "threads")) return "wall";
    for (int i = 0; i < space->experiment->n_metrics; i++)
        if (strcmp(space->experiment->metrics[i].clock, "none"))
            return space->experiment->metrics[i].clock;
    return "wall";
}

static EngStatus refuse_settings(const EngSweepSection *section, EngErr *err)
{
    const EngSweepSettings *s = &section->settings, *d = &eng_sweep_defaults;
    bool zipped = false;
    for (int i = 0; i < section->n_axes; i++) zipped |= section->axes[i].zip >= 0;
    int variant = eng_experiment_axis(section->experiment, ENG_AXIS_VARIANT);
    if (section->where || zipped || section->compare != variant ||
        section->compare_mask != (variant < 0 ? 0 : ENG_AXIS_BIT(variant)))
        return ENG_FAIL(err, ENG_USAGE, "tune: zip, where and compare are for `engram run`");
    if (s->pairs != d->pairs || s->segments != d->segments || s->budget_ms != d->budget_ms ||
        s->precision)
        return ENG_FAIL(err, ENG_USAGE,
                        "tune: a search sets pairs, segments, budget_ms and precision itself (see "
                        "--budget)");
    if (section->experiment->counted)
        return ENG_FAIL(err, ENG_USAGE, "tune: %s counts, there is nothing to make faster",
                        section->experiment->name);
    return ENG_OK;
}

static EngStatus build(Builder *b, int cores)
{
    EngTuneSpace *space = b->space;
    int variant = eng_experiment_axis(space->experiment, ENG_AXIS_VARIANT);
    const char *none[ENG_MAX_AXES];
    EngStatus status = refuse_settings(b->section, b->err);
    if (!status) status = read_axes(b, variant, cores);
    if (status) return status;
    if (variant >= 0) space->axes[space->n_axes++] = variant;
    for (int i = 0; i < b->n_lists; i++) space->axes[space->n_axes++] = b->lists[i].axis;
    if (!space->n_axes)
        return ENG_FAIL(b->err, ENG_USAGE, "tune: %s has neither variants nor tunable axes",
                        space->experiment->name);
    space->clock = judging_clock(space);
    return variant >= 0 ? cross_variants(b, variant) : cross_axes(b, none, 0);
}

EngStatus eng_tune_space_open(const EngSweep *sweep, int cores, EngTuneSpace **out, EngErr *err)
{
    EngArena *arena = eng_arena_create();
    EngTuneSpace *space = arena ? eng_arena_alloc(arena, sizeof *space) : NULL;
    EngTuneCandidate *items =
        space ? eng_arena_alloc(arena, ENG_TUNE_MAX_CANDIDATES * sizeof *items) : NULL;
    *out = NULL;
    if (!items) {
        eng_arena_destroy(arena);
        return no_memory(err);
    }
    *space = (EngTuneSpace){.arena = arena,
                            .sweep = sweep,
                            .experiment = sweep->sections[0].experiment,
                            .items = items};
    Builder b = {.space = space, .section = &sweep->sections[0], .err = err};
    EngStatus status = build(&b, cores < 1 ? 1 : cores);
    if (status)
        eng_tune_space_free(space);
    else
        *out = space;
    return status;
}

void eng_tune_space_free(EngTuneSpace *space)
{
    if (space) eng_arena_destroy(space->arena);
}

/* ---- texts -------------------------------------------------------------------------------------
 */

void eng_tune_label(const EngTuneSpace *space, int candidate, char *out, size_t size)
{
    size_t used = 0;
    *out = 0;
    for (int k = 0; k < space->n_axes && used < size; k++) {
        const EngAxisDef *def = &space->experiment->axes[space->axes[k]];
        bool variant = !strcmp(def->name, ENG_AXIS_VARIANT);
        used += (size_t)snprintf(out + used, size - used, "%s%s%s%s", k ? " " : "",
                                 variant ? "" : def->name, variant ? "" : "=",
                                 space->items[candidate].values[k]);
    }
}

/* "name = a, b," with indented further lines. */
static void put_list(const EngTuneSpace *space, const int *chosen, int n, int axis, EngStr *out)
{
    size_t line = out->n;
    eng_str_printf(out, "%s = ", space->experiment->axes[space->axes[axis]].name);
    for (int i = 0; i < n; i++) {
        eng_str_printf(out, "%s%s", space->items[chosen[i]].values[axis], i + 1 < n ? "," : "\n");
        if (i + 1 == n) break;
        if (out->n - line > LIST_BYTES) {
            eng_str_add(out, "\n    ");
            line = out->n;
        } else {
            eng_str_add(out, " ");
        }
    }
}

EngStatus eng_tune_stage_text(const EngTuneSpace *space, const int *chosen, int n,
                              const EngTuneStage *stage, int number, EngStr *out, EngErr *err)
{
    const EngExperiment *experiment = space->experiment;
    eng_str_printf(out, "[sweep]\nname = tune %s, stage %d\npairs = %d\nsegments = %d\n",
                   experiment->name, number + 1, stage->pairs, stage->segments);
    eng_str_printf(out, "seed = %llu\n\n[%s]\n%s",
                   (unsigned long long)space->sweep->sections[0].settings.seed, experiment->name,
                   space->fixed);
    for (int k = 0; k < space->n_axes; k++) put_list(space, chosen, n, k, out);
    for (int list = 0; list < 2; list++) { /* zip = (a, b), then compare = a, b */
        if (!list && space->n_axes < 2) continue;
        eng_str_add(out, list ? "compare = " : "zip = (");
        for (int k = 0; k < space->n_axes; k++)
            eng_str_printf(out, "%s%s", k ? ", " : "", experiment->axes[space->axes[k]].name);
        eng_str_add(out, list ? "\n" : ")\n");
    }
    return eng_str_status(out, err);
}
