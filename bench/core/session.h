/* What a run knows before it touches a database: machine, build, resources, plan. Shared by runner
 * and dry run. */
#ifndef ENG_BENCH_SESSION_H
#define ENG_BENCH_SESSION_H

#include "bench/core/machine.h"
#include "bench/core/plan.h"
#include "bench/core/resources.h"
#include "bench/core/runner.h"

#define ENG_SESSION_PRESETS  32
#define ENG_SESSION_VARIANTS 512
#define ENG_SESSION_DEFAULTS 5 /* axes whose default a preset gives */

struct EngSession {
    EngMachine machine;
    EngBuild build;
    EngResources *resources;
    EngIdentity identity;
    EngPlan *plan;
    /* Caches behind the identity's callbacks. */
    EngPreset presets[ENG_SESSION_PRESETS];
    char defaults[ENG_SESSION_PRESETS][ENG_SESSION_DEFAULTS][24]; /* texts of axis_default */
    int n_presets;
    struct {
        const EngExperiment *experiment;
        char variant[64];
        char digest[ENG_KEY_HEX];
    } variants[ENG_SESSION_VARIANTS];
    int n_variants;
    char stores[ENG_ROW_FORMAT_COUNT][ENG_KEY_HEX];
};

/* Bytes that a point needs in memory: table with scales, weights, what its worker allocates. */
size_t eng_need_bytes(const EngNeed *need);

#endif
