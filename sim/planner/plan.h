/* The plan of one step: rows of each Engram layer, their gather time through a path of tiers, the
 * window before the layer, and the stall; with a verdict that is explained term by term. Means
 * only: nothing here says how a tail behaves.
 */
#ifndef ENG_SIM_PLANNER_PLAN_H
#define ENG_SIM_PLANNER_PLAN_H

#include "base/str.h"
#include "kernels/address/preset.h"
#include "sim/planner/gather.h"
#include "sim/timeline/window.h"

typedef struct EngStepInput {
    const EngPreset *preset;
    EngRowFormat format;
    const EngTier *path[ENG_MAX_STAGES]; /* from the rows to who reads them */
    int n_path;
    const EngTier *scales; /* that holds them (EngRowLayout); NULL: beside the values */
    double scale_rows;     /* scales read for each row of values (EngRowLayout); 0: 1 */
    /* The last tier is the link to the other readers, who hold what each lacks of the rows of its
     * own tokens: all but 1 of `readers` parts. And they need send no scales, all have them. */
    bool peers, values_between_peers;
    double tokens; /* of the step; speculation: streams x (drafted + 1) */
    double unique; /* share of rows left by deduplication */
    double hits;   /* of these, share that a cache in path[cache] holds, which the tiers before it
                      do not carry; it reads them as its own, those behind it carry all. 0: none */
    int cache;
    const char *hits_label; /* words of a plan beside them; NULL: none */
    /* Devices that each take their columns through links of their own, and hosts that they are
     * evenly on: a tier in `shared` carries what all readers of its host take. 0: one. */
    int readers, hosts;
    const double *layers; /* [n_layers] s of each backbone layer, from measurements or given */
    int n_layers;
    double scheduling, hash, issue; /* s */
    double exchange; /* s behind each layer's gather, among holders of a shared table; 0: none */
    EngSlowdowns interference;
    /* Tiers of a host, which its readers and replicas share: bit i is path[i], bit n_path the
     * holder of scales off the path. And replicas like this one in a host, 0 or 1: it is alone. */
    unsigned shared;
    int replicas;
} EngStepInput;

typedef struct EngStepPlan {
    int n;
    int layers[ENG_MAX_LAYERS]; /* of the model, from 0 */
    EngGather gathers[ENG_MAX_LAYERS];
    EngQueuedFetch fetches[ENG_MAX_LAYERS];
    double looked_up;                   /* per layer, before deduplication and caches */
    double rows, all_rows;              /* per layer: that one reader reads, and all of them */
    double hash, exchange, step, added; /* s; step: without stalls */
    int replicas;                       /* that share tiers of the path */
    int readers, columns;               /* at least 1; rows of a token and layer */
    int cache, peers;                   /* of the input, as hits; the link's stage, or 0 */
    double hits;
} EngStepPlan;

/* Replicas that share a tier are not in step with each other. Of the R - 1 others as many are
 * fetching as the share of a step says that a fetch from that tier takes, so that one sees c = 1 +
 * (R - 1) min(1, modules x time / step) fetches on the mean and gets 1/c of the tier's bandwidth
 * and request rate; latency and requests under way stay its own. A tier that is always asked gives
 * each 1/R; one that is seldom asked, or whose limit is how many requests one replica has under
 * way, gives as if alone.
 *
 * ENG_USAGE: shares outside [0, 1], hits without a cache behind the first tier, peers without a
 * link or others, fewer layer times than the deepest Engram layer needs; ENG_UNSUPPORTED: a value
 * of a tier that nobody gave. */
EngStatus eng_step_plan(const EngStepInput *input, EngStepPlan *plan, EngErr *err);
/* Of the rows that are read, those that a stage carries: what the cache behind it lacks, what lies
 * with peers, or all. */
double eng_step_stage_share(const EngStepPlan *plan, int stage);
bool eng_step_hidden(const EngStepPlan *plan); /* nothing is added to the step */

/* What would hide a layer that waits, by planning the step again: the slowest tier of its fetch
 * alone so many times as fast, or so large a share of the rows. NAN: not in that way. */
typedef struct EngStepCure {
    double faster, rows;
    double time;   /* s of that tier then */
    EngStage then; /* the slowest with that, or without end faster */
    double late;   /* s that one row comes too late, where no share of the rows is a cure */
} EngStepCure;
/* plan: of this input. */
void eng_step_cure(const EngStepInput *input, const EngStepPlan *plan, int k, EngStepCure *cure);
void eng_step_print(const EngStepInput *input, const EngStepPlan *plan, EngStr *out);

/* Distinct rows of a head of `rows` that `ngrams` distinct n-grams touch: rows (1 - exp(-U / M)).
 */
double eng_rows_touched(double rows, double ngrams);
/* And back: distinct n-grams behind the rows that were touched; infinite when all were. */
double eng_ngrams_behind(double rows, double touched);

#endif
