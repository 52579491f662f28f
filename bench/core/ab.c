/* The A/B run: what two builds have in common, the plan cut into arms, and the verdicts; see ab.h.
 */
#include "bench/core/ab.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/core/ab_parts.h"
#include "bench/core/machine.h"
#include "bench/core/plan_keys.h"
#include "bench/core/plugin.h"
#include "bench/core/sampling.h"
#include "bench/core/session.h"

#define MAX_COMMON  128
#define RESOLUTIONS 4 /* steps of the clock that a difference must have */

struct EngAb {
    EngArena *arena;
    EngAbBuild builds[2]; /* old, new */
    EngStr not_compared;
    const EngAbOptions *options;
    const EngRunOptions *run;
    EngAbPoint *points;
    EngAbMeasured *measured;
    const char **block_keys; /* point key of the old arm */
    int n_points;
};

static const EngKernel *g_common[ENG_OP_COUNT][MAX_COMMON];
static int g_n_common[ENG_OP_COUNT];

const EngKernel *const *eng_ab_kernels(EngOp op, int *n)
{
    *n = 0;
    if ((unsigned)op >= ENG_OP_COUNT) return NULL;
    *n = g_n_common[op];
    return g_common[op];
}

static EngStatus no_memory(EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for an A/B run");
}

/* ---- builds ------------------------------------------------------------------------------------
 */

static const EngKernel *find_in(const EngAbBuild *build, const EngKernel *like)
{
    for (const EngKernel *const *k = build->kernels; *k; k++)
        if ((*k)->op == like->op && !strcmp((*k)->name, like->name)) return *k;
    return NULL;
}

static EngStatus open_build(EngAb *ab, EngAbBuild *build, const char *path, EngErr *err)
{
    EngStatus status = eng_plugin_resolve(path, build->path, err);
    if (!status) status = eng_plugin_digest(build->path, build->digest, err);
    if (!status) status = eng_plugin_list(build->path, ab->arena, &build->kernels, err);
    return status;
}

/* Planning wants a kernel behind every name: ours of that name, which knows what it supports, or
 * the stand-in, and then the worker finds out. */
static EngStatus register_common(const EngKernel *kernel, EngErr *err)
{
    const EngKernel *const one[] = {kernel, NULL};
    const EngKernel *known = eng_kernel_find(kernel->op, kernel->name);
    EngStatus status = known ? ENG_OK : eng_kernels_add(one, false, err);
    if (!status && g_n_common[kernel->op] < MAX_COMMON)
        g_common[kernel->op][g_n_common[kernel->op]++] = known ? known : kernel;
    return status;
}

static EngStatus find_common(EngAb *ab, EngErr *err)
{
    int n = 0;
    for (int b = 0; b < 2; b++)
        for (const EngKernel *const *k = ab->builds[b].kernels; *k; k++) {
            EngStatus status = ENG_OK;
            if ((*k)->roof) continue;
            if (!find_in(&ab->builds[!b], *k))
                eng_str_printf(&ab->not_compared, "%s%s/%s", ab->not_compared.n ? " " : "",
                               eng_op_name((*k)->op), (*k)->name);
            else if (b == 0)
                n++, status = register_common(*k, err);
            if (status) return status;
        }
    if (n) return eng_str_status(&ab->not_compared, err);
    return ENG_FAIL(err, ENG_NOT_FOUND, "%s and %s have no variant in common", ab->builds[0].path,
                    ab->builds[1].path);
}

EngStatus eng_ab_open(const char *old_path, const char *new_path, EngAb **out, EngErr *err)
{
    EngAb *ab;
    *out = NULL;
    EngStatus status = eng_alloc_or((void **)&ab, 1, sizeof *ab, "an A/B run", err);
    if (status) return status;
    ab->arena = eng_arena_create();
    if (!ab->arena) status = no_memory(err);
    if (!status) status = open_build(ab, &ab->builds[0], old_path, err);
    if (!status) status = open_build(ab, &ab->builds[1], new_path, err);
    if (!status) status = find_common(ab, err);
    if (status)
        eng_ab_free(ab);
    else
        *out = ab;
    return status;
}

void eng_ab_free(EngAb *ab)
{
    if (!ab) return;
    for (int i = 0; i < ab->n_points; i++) eng_free(ab->measured[i].samples);
    eng_str_free(&ab->not_compared);
    eng_arena_destroy(ab->arena);
    eng_free(ab);
}

bool eng_ab_identical(const EngAb *ab)
{
    return !strcmp(ab->builds[0].digest, ab->builds[1].digest);
}

const char *eng_ab_not_compared(const EngAb *ab)
{
    return ab->not_compared.n ? ab->not_compared.text : "";
}

const EngAbPoint *eng_ab_points(const EngAb *ab, int *n)
{
    *n = ab->n_points;
    return ab->points;
}

const EngAbSample *eng_ab_samples(const EngAb *ab, int point, int *n)
{
    *n = ab->measured[point].n;
    return ab->measured[point].samples;
}

/* ---- plan --------------------------------------------------------------------------------------
 */

/* Code that runs in an arm: the object, and our experiment around it. */
static EngStatus arm_digest(const EngAb *ab, const EngPlanPoint *point, EngAbArm arm,
                            EngArena *arena, const char **digest, EngErr *err)
{
    static const char *const names[ENG_AB_ARMS] = {"old", "control", "new"};
    char text[160], around[ENG_KEY_HEX], key[ENG_KEY_HEX];
    EngStatus status = eng_experiment_digest(point->point.experiment->name, around, err);
    snprintf(text, sizeof text, "ab %s\n%s\n%s\n", names[arm], ab->builds[arm == ENG_AB_NEW].digest,
             around);
    if (!status) status = eng_key_of(text, key, err);
    if (status) return status;
    *digest = eng_arena_strdup(arena, key);
    return *digest ? ENG_OK : no_memory(err);
}

static EngStatus make_arms(const EngAb *ab, EngPlan *plan, const EngPlanPoint *point,
                           EngPlanBlock *block, EngKeyText *text, EngErr *err)
{
    static const char *const provenance[ENG_AB_ARMS] = {"engram ab: old", "engram ab: control",
                                                        "engram ab: new"};
    EngPlanPoint *arms = eng_arena_alloc(plan->arena, ENG_AB_ARMS * sizeof *arms);
    block->points = eng_arena_alloc(plan->arena, ENG_AB_ARMS * sizeof *block->points);
    if (!arms || !block->points) return no_memory(err);
    for (int arm = 0; arm < ENG_AB_ARMS; arm++) {
        EngPlanPoint *p = &arms[arm];
        *p = *point;
        p->provenance = provenance[arm];
        EngStatus status =
            arm_digest(ab, point, (EngAbArm)arm, plan->arena, &p->variant_digest, err);
        if (!status) status = eng_plan_keys(p, plan->identity->machine_id, text, err);
        if (status) return status;
        if (!eng_key_table_put(&plan->index, p->point_key, p)) return no_memory(err);
        block->points[block->n_points++] = p;
        block->estimate_ns += p->estimate_ns;
    }
    return ENG_OK;
}

static EngStatus note_point(EngAb *ab, const EngPlanPoint *point, const EngPlanPoint *arm,
                            EngErr *err)
{
    EngStr axes = {0};
    EngAbPoint *p = &ab->points[ab->n_points];
    EngStatus status = eng_plan_axes_json(point, &axes, err);
    if (status) return status;
    *p = (EngAbPoint){.experiment = point->point.experiment->name,
                      .axes_json = eng_arena_strdup(ab->arena, axes.text),
                      .variant = eng_arena_strdup(ab->arena, point->variant),
                      .outcome = point->skip ? ENG_OUTCOME_SKIPPED : ENG_OUTCOME_NONE,
                      .reason = point->skip ? eng_arena_strdup(ab->arena, point->skip) : ""};
    eng_str_free(&axes);
    ab->block_keys[ab->n_points++] = arm ? eng_arena_strdup(ab->arena, arm->point_key) : "";
    return p->axes_json && p->variant && p->reason && ab->block_keys[ab->n_points - 1]
               ? ENG_OK
               : no_memory(err);
}

/* One block of three arms for each named point that can run; a block of one for the others. */
static EngStatus split_plan(EngAb *ab, EngPlan *plan, EngPlanBlock *blocks, EngPlanPoint **points,
                            EngErr *err)
{
    EngKeyText text = {0};
    int n_blocks = 0, n_points = 0;
    EngStatus status = ENG_OK;
    for (int i = 0; i < plan->n_blocks; i++)
        for (int k = 0; k < plan->blocks[i].n_points && !status; k++) {
            const EngPlanBlock *from = &plan->blocks[i];
            EngPlanPoint *point = from->points[k];
            EngPlanBlock *block = &blocks[n_blocks];
            EngRng rng;
            if (point->is_roof) continue;
            *block = *from;
            block->n_points = 0;
            block->estimate_ns = 0;
            block->settings.segments = ab->options->segments;
            block->settings.pairs = ab->options->pairs;
            block->settings.budget_ms = 0;
            eng_rng_seed_at(&rng, from->seed, (uint64_t)k);
            block->seed = eng_rng_u64(&rng) >> 1;
            if (point->skip) {
                block->points = &from->points[k];
                block->n_points = 1;
            } else {
                status = make_arms(ab, plan, point, block, &text, err);
            }
            for (int a = 0; a < block->n_points; a++) points[n_points++] = block->points[a];
            if (!status) status = note_point(ab, point, point->skip ? NULL : block->points[0], err);
            n_blocks++;
        }
    eng_key_text_free(&text);
    plan->blocks = blocks;
    plan->n_blocks = n_blocks;
    plan->points = points;
    plan->n_points = plan->n_named = n_points;
    return status;
}

static EngStatus planned(void *context, EngSession *session, EngErr *err)
{
    EngAb *ab = context;
    EngPlan *plan = session->plan;
    size_t n = (size_t)plan->n_named;
    for (int i = 0; i < plan->n_blocks; i++) {
        const EngExperiment *e = plan->blocks[i].experiment;
        if (e->counted || eng_experiment_axis(e, ENG_AXIS_VARIANT) < 0)
            return ENG_FAIL(err, ENG_USAGE, "ab: experiment %s times no kernel variant", e->name);
    }
    EngPlanBlock *blocks = eng_arena_alloc(plan->arena, n * sizeof *blocks);
    EngPlanPoint **points = eng_arena_alloc(plan->arena, n * ENG_AB_ARMS * sizeof *points);
    ab->points = eng_arena_alloc(ab->arena, n * sizeof *ab->points);
    ab->measured = eng_arena_alloc(ab->arena, n * sizeof *ab->measured);
    ab->block_keys = eng_arena_alloc(ab->arena, n * sizeof *ab->block_keys);
    if (!blocks || !points || !ab->points || !ab->measured || !ab->block_keys)
        return no_memory(err);
    EngStatus status = split_plan(ab, plan, blocks, points, err);
    return status ? status : eng_plan_settings_key(plan, err);
}

/* ---- measuring ---------------------------------------------------------------------------------
 */

static EngStatus measure(void *context, const EngBlockContext *where, const EngLedgerBlock *block,
                         EngErr *err)
{
    EngAb *ab = context;
    int64_t budget_ns = ab->options->budget_ms * 1000000 / ab->n_points;
    EngAbTask task = {.paths = {ab->builds[0].path, ab->builds[0].path, ab->builds[1].path},
                      .budget_ns = budget_ns};
    int i = 0;
    while (i < ab->n_points && strcmp(ab->block_keys[i], block->points[0].plan->point_key)) i++;
    if (i == ab->n_points) return ENG_FAIL(err, ENG_INTERNAL, "a block that was not planned");
    EngAbMeasured *m = &ab->measured[i];
    EngAbPoint *point = &ab->points[i];
    EngStatus status = eng_ab_block(&task, where, block, m, err);
    if (status) return status;
    point->outcome = m->outcome;
    point->cut_short = m->cut_short;
    point->reason = eng_arena_strdup(ab->arena, m->reason);
    if (!point->reason) return no_memory(err);
    if (m->outcome != ENG_OUTCOME_MEASURED) return ENG_OK;
    status = eng_effect_of(m->samples, m->n, &point->effect, err);
    point->effect.sample_ns = m->sample_ns;
    return status;
}

static EngStatus judge(EngAb *ab, EngErr *err)
{
    int n = 0;
    EngEffect *effects = eng_arena_alloc(ab->arena, (size_t)ab->n_points * sizeof *effects);
    EngVerdict *verdicts = eng_arena_alloc(ab->arena, (size_t)ab->n_points * sizeof *verdicts);
    if (!effects || !verdicts) return no_memory(err);
    for (int i = 0; i < ab->n_points; i++)
        if (ab->points[i].outcome == ENG_OUTCOME_MEASURED) effects[n++] = ab->points[i].effect;
    EngVerdictRules rules = ab->options->rules;
    if (!rules.resolution_ns) rules.resolution_ns = RESOLUTIONS * (double)eng_cpu_clock_step_ns();
    EngStatus status = eng_verdicts(&rules, effects, n, verdicts, err);
    n = 0;
    for (int i = 0; i < ab->n_points && !status; i++)
        if (ab->points[i].outcome == ENG_OUTCOME_MEASURED) ab->points[i].verdict = verdicts[n++];
    return status;
}

EngStatus eng_ab_run(EngAb *ab, EngSweep *sweep, const EngAbOptions *options,
                     const EngRunOptions *run, EngRunResult *result, EngErr *err)
{
    EngRunHooks hooks = {.context = ab, .planned = planned, .block = measure};
    EngRunOptions with_hooks = *run;
    with_hooks.hooks = &hooks;
    with_hooks.fresh = true; /* pairs mean something within one run only */
    ab->options = options;
    ab->run = run;
    EngStatus status = eng_run_sweep(sweep, &with_hooks, result, err);
    return status ? status : judge(ab, err);
}
