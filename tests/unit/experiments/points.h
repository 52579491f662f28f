/* Points for tests: an experiment's defaults with some axes set by text. */
#ifndef ENG_TESTS_POINTS_H
#define ENG_TESTS_POINTS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "bench/experiments/experiments.h"

static inline void set_value(const EngAxisDef *axis, const char *text, EngValue *value)
{
    value->text = text;
    if (axis->type == ENG_AXIS_INT) assert_true(eng_parse_i64(text, &value->i));
    if (axis->type == ENG_AXIS_REAL) assert_true(eng_parse_f64(text, &value->f));
    if (axis->type == ENG_AXIS_INT) value->f = (double)value->i;
}

static inline void set_axis(EngPoint *point, const char *axis, const char *text)
{
    for (int i = 0; i < point->experiment->n_axes; i++) {
        if (strcmp(point->experiment->axes[i].name, axis)) continue;
        set_value(&point->experiment->axes[i], text, &point->values[i]);
        return;
    }
    fail_msg("%s has no axis %s", point->experiment->name, axis);
}

static inline int has_axis(const EngExperiment *experiment, const char *axis)
{
    for (int i = 0; i < experiment->n_axes; i++)
        if (!strcmp(experiment->axes[i].name, axis)) return 1;
    return 0;
}

/* `portable`, or the operation's first where it has none of that name. */
static inline const char *plain_variant(const EngExperiment *experiment)
{
    int n;
    EngOp op = (EngOp)experiment->op;
    return eng_kernel_find(op, "portable") ? "portable" : eng_kernels(op, &n)[0]->name;
}

/* Pairs of axis and text, then NULL. Axes that the experiment lacks are passed over. */
static inline EngPoint point_of(const EngExperiment *experiment, ...)
{
    EngPoint point = {.experiment = experiment};
    for (int i = 0; i < experiment->n_axes; i++) {
        /* A plan writes `all` out; a single point needs one variant. */
        const char *def = experiment->axes[i].def;
        if (!strcmp(def, "all")) def = plain_variant(experiment);
        set_value(&experiment->axes[i], def, &point.values[i]);
    }
    va_list list;
    va_start(list, experiment);
    for (const char *axis; (axis = va_arg(list, const char *));) {
        const char *text = va_arg(list, const char *);
        if (has_axis(experiment, axis)) set_axis(&point, axis, text);
    }
    va_end(list);
    return point;
}

/* Value of a metric by name. */
static inline double metric_of(const EngExperiment *experiment, const double *values,
                               const char *name)
{
    for (int i = 0; i < experiment->n_metrics; i++)
        if (!strcmp(experiment->metrics[i].name, name)) return values[i];
    fail_msg("%s has no metric %s", experiment->name, name);
    return 0;
}

/* Group set-up and tear-down: table files in a folder of this process alone. */
static inline int make_tables(void **state)
{
    static char folder[] = "/tmp/engram_tables_XXXXXX";
    *state = mkdtemp(folder);
    return *state ? setenv("ENG_TABLES", *state, 1) : -1;
}

static inline int remove_tables(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", (const char *)*state);
    return system(command) ? -1 : 0;
}

#endif
