/* Between the files of the plan: the odometer over the axis values that one section names. */
#ifndef ENG_BENCH_PLAN_WALK_H
#define ENG_BENCH_PLAN_WALK_H

#include "bench/core/sweep.h"

/* Axes in lockstep are one wheel. */
typedef struct EngPlanWheel {
    const EngSweepAxis *axes[ENG_MAX_AXES];
    int n_axes, n, at;
} EngPlanWheel;

typedef struct EngPlanWalk {
    EngSweepAxis axes[ENG_MAX_AXES]; /* the section's, variant `all` written out */
    int n_axes;
    EngPlanWheel wheels[ENG_MAX_AXES];
    int n_wheels;
    EngPoint defaults; /* of the axes' own table */
} EngPlanWalk;

/* Sets `walk` on the first combination. The variant axis is always one of its axes; what is made
 * for it lies in `arena`, and `walk` points into itself: it must not be copied. */
EngStatus eng_plan_walk_open(const EngSweep *sweep, const EngSweepSection *section, EngArena *arena,
                             EngPlanWalk *walk, EngErr *err);

/* Goes to the next combination; false after the last. */
bool eng_plan_walk_step(EngPlanWalk *walk);

/* The present value of the preset axis, or its default; "" without such an axis. */
const char *eng_plan_walk_preset(const EngPlanWalk *walk);

/* The present combination, with `defaults` for every axis that the section does not name. */
void eng_plan_walk_point(const EngPlanWalk *walk, const EngPoint *defaults, EngPoint *point);

/* The defaults in the experiment's table of axes, whatever the preset. */
EngStatus eng_plan_default_values(const EngSweep *sweep, const EngExperiment *experiment,
                                  EngArena *arena, EngPoint *point, EngErr *err);

/* Variants of the experiment's operation in registry order; none (NULL) without an operation. */
const EngKernel *const *eng_plan_kernels(const EngSweep *sweep, const EngExperiment *experiment,
                                         int *n);

#endif
