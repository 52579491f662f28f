/* The plan: a sweep expanded into points and blocks, before anything is opened or run.
 *
 * Expansion does no input or output: what identifies streams, presets, stores, kernels and the
 * machine comes from the caller (EngIdentity). Points named twice are merged. A point whose
 * check() says ENG_UNSUPPORTED stays, with the reason: it becomes a skipped row.
 *
 * Keys (design section 4). The config key hashes experiment, every axis not at its default (sorted
 * by name, the variant axis left out), kernel variant, and the digests of token stream, preset and
 * store; the point key adds variant digest (of a trained model: the key of its manifest) and
 * machine id. A new axis at its default changes no key.
 */
#ifndef ENG_BENCH_PLAN_H
#define ENG_BENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/core/experiment.h"
#include "bench/core/key_table.h"
#include "bench/core/sweep.h"

/* Where digests come from. Digests are texts of any length that live as long as the plan (the
 * callback may return a pointer into its own cache; it is called once per point, so it should be
 * quick). A callback that is NULL gives no digest. */
typedef struct EngIdentity {
    void *context;
    const char *machine_id;
    /* Of the original token stream of a corpus; *digest NULL: none. */
    EngStatus (*stream_digest)(void *context, const char *preset, const char *corpus,
                               const char **digest, EngErr *err);
    EngStatus (*preset_digest)(void *context, const char *preset, const char **digest, EngErr *err);
    /* Called when the point needs a table (need->table). */
    EngStatus (*store_digest)(void *context, const EngPoint *point, const EngNeed *need,
                              const char **digest, EngErr *err);
    /* Object code, compiler, flags, libraries; variant is "" for experiments without one. */
    EngStatus (*variant_digest)(void *context, const EngExperiment *experiment, const char *variant,
                                const char **digest, EngErr *err);
    /* Default of an axis under a preset: *text (living as long as the plan), or NULL for the axis's
     * own. It stands for every axis that the sweep does not name, and is what "at its default"
     * means. */
    EngStatus (*axis_default)(void *context, const char *preset, const char *axis,
                              const char **text, EngErr *err);
    /* false: the corpus axis of such points becomes "synthetic" (see EngPlan.missing_corpora).
     * NULL: every corpus exists. */
    bool (*corpus_exists)(void *context, const char *corpus);
} EngIdentity;

typedef struct EngPlanPoint {
    EngPoint point; /* the variant axis, if there is one, holds the variant itself, never "all" */
    char config_key[ENG_KEY_HEX], point_key[ENG_KEY_HEX];
    const char *variant;     /* "" when the experiment has none */
    const EngKernel *kernel; /* NULL when the experiment has no operation */
    const char *backend;     /* "cpu", "cuda" */
    bool is_roof;            /* joined by the plan: a sweep names no roofs */
    int shape; /* same number: same axes but the variant; a roof is the limit of its shape */
    EngAxisMask at_default; /* bit per axis of the experiment */
    const char *skip;       /* why it cannot run here, NULL: it can */
    EngNeed need;           /* zeros when skipped */
    double estimate_ns;     /* of one run(); 0 when skipped or unknown */
    const char *stream_digest, *preset_digest, *store_digest; /* NULL: none */
    const char *variant_digest;
    const char *kind;       /* NULL: "measured" */
    const char *provenance; /* NULL: "engram run" */
} EngPlanPoint;

/* Points that differ only in the compare axis, and the roofs of their shapes. */
typedef struct EngPlanBlock {
    const EngExperiment *experiment;
    const char *compare_axis; /* "" when the experiment has no variant axis and none is named */
    EngSweepSettings settings;
    uint64_t seed;         /* of this block, from the sweep's seed and the points: order-free */
    double estimate_ns;    /* of one run() of each point that can run */
    EngPlanPoint **points; /* named points first, then roofs */
    int n_points;
    bool table; /* points of it need one of this format, and of these dims where rows hold their
                   scales */
    EngRowFormat row_format;
    int row_dims;
} EngPlanBlock;

typedef struct EngPlan {
    EngArena *arena;       /* owns everything below; strings of values may belong to the sweep */
    const EngSweep *sweep; /* must outlive the plan */
    const EngIdentity *identity;
    EngPlanPoint **points; /* named points in sweep order, then one of each roof */
    int n_points;
    int n_named;          /* leading points that are no roofs */
    int n_skipped;        /* of the named ones */
    int n_merged;         /* named again and dropped */
    int n_excluded;       /* by `where` */
    EngPlanBlock *blocks; /* in the order to run: by row format, seeded random order within */
    int n_blocks;
    const char **missing_corpora; /* NULL-terminated: replaced by "synthetic"; warn about them */
    EngKeyTable index;            /* of points, by point key: eng_plan_find */
    char plan_key[ENG_KEY_HEX];   /* over settings and named point keys, whatever their order */
} EngPlan;

/* ENG_USAGE: a value no machine could run (from check()), or a where expression that overflows;
 * ENG_NOT_FOUND: no point is left. Other statuses come from the callbacks. */
EngStatus eng_plan_expand(const EngSweep *sweep, const EngIdentity *identity, EngPlan **plan,
                          EngErr *err);
void eng_plan_free(EngPlan *plan); /* accepts NULL */

/* A point by key, roofs included; NULL when the plan has none. */
const EngPlanPoint *eng_plan_find(const EngPlan *plan, const char *point_key);

/* Every axis of a point as a JSON object, defaults included, keys sorted. */
EngStatus eng_plan_axes_json(const EngPlanPoint *point, EngStr *out, EngErr *err);
/* "tokens=4 heads=8 variant=portable": axes that are not at their default, for messages. */
EngStatus eng_plan_label(const EngPlanPoint *point, EngStr *out, EngErr *err);
/* Puts experiment and label in front of an error that the point met; returns status. */
EngStatus eng_plan_blame(const EngPlanPoint *point, EngStatus status, EngErr *err);

#endif
