/* Access to experiments and points by name; see experiment.h. */
#include "bench/core/experiment.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "bench/core/sweep.h"

int eng_experiment_axis(const EngExperiment *experiment, const char *axis)
{
    for (int i = 0; i < experiment->n_axes; i++)
        if (!strcmp(experiment->axes[i].name, axis)) return i;
    return -1;
}

const EngValue *eng_point_value(const EngPoint *point, const char *axis)
{
    int i = eng_experiment_axis(point->experiment, axis);
    assert(i >= 0);
    return &point->values[i];
}

int64_t eng_point_int(const EngPoint *point, const char *axis)
{
    return eng_point_value(point, axis)->i;
}

double eng_point_real(const EngPoint *point, const char *axis)
{
    return eng_point_value(point, axis)->f;
}

const char *eng_point_word(const EngPoint *point, const char *axis)
{
    return eng_point_value(point, axis)->text;
}

EngStatus eng_experiment_find(const EngExperimentList *list, const char *name,
                              const EngExperiment **out, EngErr *err)
{
    const char *names[64];
    size_t n = 0;
    *out = NULL;
    for (int i = 0; i < list->n; i++) {
        if (!strcmp(list->items[i]->name, name)) {
            *out = list->items[i];
            return ENG_OK;
        }
        if (n < sizeof names / sizeof *names) names[n++] = list->items[i]->name;
    }
    if (list->hint && (!list->elsewhere || !strcmp(name, list->elsewhere)))
        return ENG_FAIL(err, ENG_USAGE, "experiment '%s' is not here: %s", name, list->hint);
    const char *near = eng_nearest(name, names, n);
    return ENG_FAIL(err, ENG_USAGE, "unknown experiment '%s'%s%s%s", name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
