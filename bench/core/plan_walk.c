/* Walk over the values of one section; see plan_walk.h. */
#include "bench/core/plan_walk.h"

#include <string.h>

EngStatus eng_plan_default_values(const EngSweep *sweep, const EngExperiment *experiment,
                                  EngArena *arena, EngPoint *point, EngErr *err)
{
    *point = (EngPoint){.experiment = experiment};
    for (int i = 0; i < experiment->n_axes; i++) {
        EngStatus status = eng_axis_value(sweep->catalog, experiment, i, experiment->axes[i].def,
                                          arena, &point->values[i], err);
        if (status == ENG_USAGE) status = ENG_INTERNAL;
        if (status)
            return eng_err_prefix(err, "default of %s.%s", experiment->name,
                                  experiment->axes[i].name),
                   status;
    }
    return ENG_OK;
}

const EngKernel *const *eng_plan_kernels(const EngSweep *sweep, const EngExperiment *experiment,
                                         int *n)
{
    *n = 0;
    if (experiment->op < 0 || !sweep->catalog->kernels) return NULL;
    return sweep->catalog->kernels((EngOp)experiment->op, n);
}

/* Replaces `all` and names of backends by the variants that they stand for, in registry order and
 * once each. */
static EngStatus write_out_variants(const EngSweep *sweep, const EngExperiment *experiment,
                                    EngArena *arena, EngSweepAxis *axis, EngErr *err)
{
    int n_kernels, n = 0;
    const EngKernel *const *kernels = eng_plan_kernels(sweep, experiment, &n_kernels);
    EngValue *values = eng_arena_alloc(arena, (size_t)(axis->n + n_kernels + 1) * sizeof *values);
    if (!values) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the plan");
    for (int k = 0; k < n_kernels; k++) {
        bool wanted = false;
        for (int i = 0; i < axis->n; i++)
            wanted |= eng_variant_covers(axis->values[i].text, kernels[k]);
        if (wanted) values[n++] = (EngValue){.text = kernels[k]->name};
    }
    int n_stood_for = n;
    for (int i = 0; i < axis->n; i++) {
        bool known = eng_variant_is_group(axis->values[i].text);
        for (int k = 0; k < n_stood_for; k++)
            known |= !strcmp(axis->values[i].text, values[k].text);
        if (!known) values[n++] = axis->values[i];
    }
    if (!n)
        return ENG_FAIL(err, ENG_NOT_FOUND, "experiment %s: its operation has no variant \"%s\"",
                        experiment->name, axis->values[0].text);
    axis->values = values;
    axis->n = n;
    return ENG_OK;
}

EngStatus eng_plan_walk_open(const EngSweep *sweep, const EngSweepSection *section, EngArena *arena,
                             EngPlanWalk *walk, EngErr *err)
{
    const EngExperiment *experiment = section->experiment;
    int variant = experiment->op >= 0 ? eng_experiment_axis(experiment, ENG_AXIS_VARIANT) : -1;
    int wheel_of_zip[ENG_MAX_AXES];
    bool has_variant = false;
    walk->n_axes = section->n_axes;
    walk->n_wheels = 0;
    memcpy(walk->axes, section->axes, sizeof walk->axes);
    memset(wheel_of_zip, -1, sizeof wheel_of_zip);
    EngStatus status = eng_plan_default_values(sweep, experiment, arena, &walk->defaults, err);
    if (status) return status;
    for (int i = 0; i < walk->n_axes; i++) has_variant |= walk->axes[i].axis == variant;
    if (variant >= 0 && !has_variant)
        walk->axes[walk->n_axes++] =
            (EngSweepAxis){variant, &walk->defaults.values[variant], 1, -1};
    for (int i = 0; i < walk->n_axes; i++) {
        EngSweepAxis *axis = &walk->axes[i];
        if (axis->axis == variant &&
            (status = write_out_variants(sweep, experiment, arena, axis, err)))
            return status;
        int wheel = axis->zip < 0 ? -1 : wheel_of_zip[axis->zip];
        if (wheel < 0) {
            wheel = walk->n_wheels++;
            walk->wheels[wheel] = (EngPlanWheel){.n = axis->n};
            if (axis->zip >= 0) wheel_of_zip[axis->zip] = wheel;
        }
        walk->wheels[wheel].axes[walk->wheels[wheel].n_axes++] = axis;
    }
    return ENG_OK;
}

const char *eng_plan_walk_preset(const EngPlanWalk *walk)
{
    int preset = eng_experiment_axis(walk->defaults.experiment, ENG_AXIS_PRESET);
    if (preset < 0) return "";
    for (int w = 0; w < walk->n_wheels; w++)
        for (int i = 0; i < walk->wheels[w].n_axes; i++)
            if (walk->wheels[w].axes[i]->axis == preset)
                return walk->wheels[w].axes[i]->values[walk->wheels[w].at].text;
    return walk->defaults.values[preset].text;
}

void eng_plan_walk_point(const EngPlanWalk *walk, const EngPoint *defaults, EngPoint *point)
{
    *point = *defaults;
    for (int w = 0; w < walk->n_wheels; w++)
        for (int i = 0; i < walk->wheels[w].n_axes; i++) {
            const EngSweepAxis *axis = walk->wheels[w].axes[i];
            point->values[axis->axis] = axis->values[walk->wheels[w].at];
        }
}

bool eng_plan_walk_step(EngPlanWalk *walk)
{
    for (int w = walk->n_wheels - 1; w >= 0; w--) {
        if (++walk->wheels[w].at < walk->wheels[w].n) return true;
        walk->wheels[w].at = 0;
    }
    return false;
}
