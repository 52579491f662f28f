/* See derive.h. */
#include "bench/experiments/derive.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

static int axis_index(const EngExperiment *experiment, const char *axis)
{
    for (int i = 0; i < experiment->n_axes; i++)
        if (!strcmp(experiment->axes[i].name, axis)) return i;
    return -1;
}

static EngValue default_of(const EngAxisDef *axis)
{
    EngValue value = {.text = axis->def};
    if (axis->type == ENG_AXIS_INT && eng_parse_i64(axis->def, &value.i)) value.f = (double)value.i;
    if (axis->type == ENG_AXIS_REAL) eng_parse_f64(axis->def, &value.f);
    return value;
}

void eng_point_derive(const EngPoint *from, const EngExperiment *to, EngPoint *out)
{
    *out = (EngPoint){.experiment = to};
    for (int i = 0; i < to->n_axes; i++) {
        int same = axis_index(from->experiment, to->axes[i].name);
        out->values[i] = same >= 0 ? from->values[same] : default_of(&to->axes[i]);
    }
}

void eng_point_set_int(EngPoint *point, const char *axis, int64_t value)
{
    int i = axis_index(point->experiment, axis);
    assert(i >= 0);
    point->values[i] = (EngValue){.text = "derived", .i = value, .f = (double)value};
}

int eng_metric_index(const EngExperiment *experiment, const char *metric)
{
    int i = 0;
    while (i < experiment->n_metrics && strcmp(experiment->metrics[i].name, metric)) i++;
    assert(i < experiment->n_metrics);
    return i;
}
