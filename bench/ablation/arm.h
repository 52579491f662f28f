/* Arms of ablations: what the axes of experiment `train` mean as a model, and the manifest that
 * makes a run what it is.
 *
 * An arm is a rung of the ladder (paper notes 8.3) with variables changed. Experts and table rows
 * follow from rho as in the paper: both share what is left of P_total when the active parameters
 * are taken out. The number of tokens is that of the rung at rho = 1, so that all arms of a budget
 * see the same text. A comparison may change one variable: eng_arm_check_sweep refuses more.
 */
#ifndef ENG_ABLATION_ARM_H
#define ENG_ABLATION_ARM_H

#include "base/digest.h"
#include "bench/ablation/data.h"
#include "bench/backbone/train.h"
#include "bench/core/sweep.h"

/* Raised when training or judging changes what a run of the same manifest gives. */
#define ENG_TRAIN_RECIPE  1

#define ENG_ARM_AXIS_SEED "model_seed" /* a sweep has a `seed` of its own */

typedef struct EngArm {
    EngTrainConfig config; /* token_map and vocab_compressed come with the data */
    EngTrainAccount account;
    double residual; /* P_total / P_total at rho = 1, less 1 */
    double rho;      /* as it came out: experts are whole */
    int64_t threads;
    const char *text; /* "training" or "synthetic" */
} EngArm;

/* ENG_USAGE: a value no model could have (layer out of range, ..); ENG_UNSUPPORTED: a combination
 * that this rung cannot have (fewer experts than top_k, K that does not divide, ..). Both name the
 * axis. Allocates nothing. */
EngStatus eng_arm_resolve(const EngPoint *point, EngArm *arm, EngErr *err);

/* The manifest: every field of the configuration that counts, data and recipe, a line each; its key
 * names the run's result. data's map and digest enter, its ids are not read. */
EngStatus eng_arm_manifest(const EngArm *arm, const EngTrainData *data, EngStr *text,
                           char key[ENG_KEY_HEX], EngErr *err);

/* Axes that are not at their default, "rho=0.8 seed=1"; "" for none. */
EngStatus eng_arm_label(const EngPoint *point, EngStr *out, EngErr *err);

/* ENG_USAGE unless each section lists several values for at most one variable beside the seed. */
EngStatus eng_arm_check_sweep(const EngSweep *sweep, EngErr *err);

#define ENG_ARM_AXES 31
extern const EngAxisDef eng_arm_axes[ENG_ARM_AXES];
/* Whether an axis says how models are trained, not what they are. Arms that share all of these (and
 * the seed aside) are a family: a report compares within the largest one. */
bool eng_arm_is_training(const char *axis);

#endif
