/* Between the files of the plan: the texts that keys are made of. */
#ifndef ENG_BENCH_PLAN_KEYS_H
#define ENG_BENCH_PLAN_KEYS_H

#include "bench/core/key_table.h"
#include "bench/core/plan.h"

/* Scratch, with the axes of the last experiment seen in the order of their names. */
typedef struct EngKeyText {
    EngStr text;
    const EngExperiment *experiment;
    int order[ENG_MAX_AXES];
} EngKeyText;
void eng_key_text_free(EngKeyText *text);

/* Fills config_key and point_key from values, variant and digests. */
EngStatus eng_plan_keys(EngPlanPoint *point, const char *machine_id, EngKeyText *text, EngErr *err);

/* Key of every axis value (canonical text, defaults included) but those of `without` (a bit per
 * axis), and `rest`. */
EngStatus eng_plan_axes_key(const EngPlanPoint *point, EngAxisMask without, const char *rest,
                            EngKeyText *text, char key[ENG_KEY_HEX], EngErr *err);

/* Keys of all points anew, and the plan's: for hooks that change points or their digests. */
EngStatus eng_plan_rekey(EngPlan *plan, EngErr *err);

/* plan->plan_key from the settings and point keys of all named points. */
EngStatus eng_plan_settings_key(EngPlan *plan, EngErr *err);

/* Name of a kernel's backend; "cpu" without a kernel. Equal backends give equal pointers. */
const char *eng_plan_backend(const EngKernel *kernel);

#endif
