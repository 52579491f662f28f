/* The search behind `engram tune`: which variant, with which settings of its parameters and of the
 * tunable axes, is fastest at one shape? Successive halving over all candidates (rounds.h has the
 * ladder): each stage is a generated sweep whose one block holds the candidates left, run by the
 * ordinary runner into the ordinary database. A stage is a run of its own; it is found by its
 * plan's key, so that a second search answers from the database and one that was cut short goes on.
 */
#ifndef ENG_BENCH_TUNE_H
#define ENG_BENCH_TUNE_H

#include "bench/core/rounds.h"
#include "bench/core/runner.h"
#include "bench/core/sweep.h"

#define ENG_TUNE_MAX_CANDIDATES 384

/* One choice: values of the space's axes. */
typedef struct EngTuneCandidate {
    const char **values; /* [n_axes] canonical texts */
    const char *skip;    /* why it cannot run here; NULL: it can, as far as known */
    char point_key[ENG_KEY_HEX];
} EngTuneCandidate;

typedef struct EngTuneSpace {
    EngArena *arena; /* owns everything below */
    const EngSweep *sweep;
    const EngExperiment *experiment;
    int axes[ENG_MAX_AXES]; /* that candidates differ in; the variant axis first */
    int n_axes;
    EngTuneCandidate *items;
    int n;
    const char *fixed; /* "tokens = 64\n": what the user fixed, as lines of a sweep */
    const char *clock; /* that judges: the experiment's, but "wall" when threads are searched */
} EngTuneSpace;

/* All candidates of an ad-hoc sweep (eng_sweep_adhoc), which must outlive the space. A tunable axis
 * or the variant may have several values; any other axis one: a search is for one shape. A variant
 * with settings stands as it is, a plain one for all combinations that its tunables list. cores:
 * CPUs that a search over threads may use. ENG_USAGE: several shapes, zip, where, compare, pairs,
 * segments or budget_ms, an experiment that is counted or has nothing to choose, more than
 * ENG_TUNE_MAX_CANDIDATES. */
EngStatus eng_tune_space_open(const EngSweep *sweep, int cores, EngTuneSpace **space, EngErr *err);
void eng_tune_space_free(EngTuneSpace *space); /* accepts NULL */

/* The sweep of a stage as text: candidates `chosen` of the space in one block. */
EngStatus eng_tune_stage_text(const EngTuneSpace *space, const int *chosen, int n,
                              const EngTuneStage *stage, int number, EngStr *out, EngErr *err);
/* "avx512@group=24 threads=2": axes that all candidates share are left out. */
void eng_tune_label(const EngTuneSpace *space, int candidate, char *out, size_t size);

typedef struct EngTuneStageResult {
    EngTuneStage stage;
    char run_id[ENG_KEY_HEX];
    bool found;    /* answered by the database, nothing measured */
    bool finished; /* false: cut short by the budget */
    int rounds;    /* that were taken */
    double seconds;
} EngTuneStageResult;

typedef struct EngTuneResult {
    EngTuneStageResult stages[ENG_TUNE_MAX_STAGES]; /* those begun */
    int n_stages;                                   /* begun */
    int n_ladder;                                   /* of the whole search */
    bool complete;
    int n_skipped; /* candidates that cannot run here */
    /* Of the last stage that has samples of two candidates (or of the only one): */
    int judged;     /* its index in stages; -1: nothing is known */
    int *order;     /* [n_order] candidates with a score, fastest first; owned, eng_free */
    double *scores; /* [space->n] time as a multiple of the round's median; owned, eng_free */
    double *ratios; /* [n_order] time over the fastest one's, median of pairs; owned, eng_free */
    int n_order;
    EngMedian margin; /* time of the second over that of the first, paired */
    double floor;     /* A/A: the larger of the first's and the second's own */
    int verdict;      /* as of eng_rounds_verdict: 1 clear, 0 none */
    char machine_id[ENG_KEY_HEX];
} EngTuneResult;

typedef struct EngTuneOptions {
    EngRunOptions run; /* fresh, own_points and deadline_ns are set by the search */
    bool fresh;        /* measure every stage again */
    double budget_s;   /* no stage begins, and none goes on, after so many seconds; 0: no limit */
    /* Called when a stage is begun and when it is over; may be NULL. */
    void (*report)(void *context, const EngTuneStageResult *stage, int number, int of);
    void *context;
} EngTuneOptions;

/* Searches. Out of budget is ENG_OK with complete false. ENG_NOT_FOUND: no candidate can run or
 * give a sample here, with the first reason; ENG_INTERRUPTED: by the caller's flag, resumable. */
EngStatus eng_tune_run(EngTuneSpace *space, const EngTuneOptions *options, EngTuneResult *result,
                       EngErr *err);
void eng_tune_result_free(EngTuneResult *result);

#endif
