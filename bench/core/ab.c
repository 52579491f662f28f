/* The A/B run: what two builds have in common, the plan cut into arms, and the verdicts; see ab.h.
 */
#include "bench/core/ab.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/core/ab_parts.h"
#include "bench/core/db_pairs.h"
#include "bench/core/db_verdicts.h"
#include "bench/core/machine.h"
#include "bench/core/plan_keys.h"
#include "bench/core/plugin.h"
#include "bench/core/sampling.h"
#include "bench/core/session.h"
#include "bench/core/stats.h"
#include "kernels/store/memory.h"

#define MAX_COMMON  128
#define RESOLUTIONS 4 /* steps of the clock that a difference must have */

/* What the ledger knows a point by, and what it holds of it. */
typedef struct Compared {
    const char *keys[ENG_AB_ARMS]; /* NULL: it was skipped */
    const EngExperiment *experiment;
    EngAbSample *samples;
    int n;
} Compared;

struct EngAb {
    EngArena *arena;
    EngAbBuild builds[2]; /* old, new */
    EngStr not_compared;
    const EngAbOptions *options;
    EngAbPoint *points;
    Compared *compared; /* [n_points] */
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
    *n = ab->compared[point].n;
    return ab->compared[point].samples;
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

/* arms: [ENG_AB_ARMS] or NULL for a skipped point. */
static EngStatus note_point(EngAb *ab, const EngPlanPoint *point, EngPlanPoint *const *arms,
                            EngErr *err)
{
    EngStr axes = {0};
    EngAbPoint *p = &ab->points[ab->n_points];
    Compared *c = &ab->compared[ab->n_points++];
    EngStatus status = eng_plan_axes_json(point, &axes, err);
    if (status) return status;
    *p = (EngAbPoint){.experiment = point->point.experiment->name,
                      .axes_json = eng_arena_strdup(ab->arena, axes.text),
                      .variant = eng_arena_strdup(ab->arena, point->variant),
                      .outcome = point->skip ? ENG_OUTCOME_SKIPPED : ENG_OUTCOME_NONE,
                      .reason = point->skip ? eng_arena_strdup(ab->arena, point->skip) : ""};
    *c = (Compared){.experiment = point->point.experiment};
    eng_str_free(&axes);
    bool whole = p->axes_json && p->variant && p->reason;
    for (int arm = 0; arms && arm < ENG_AB_ARMS; arm++)
        whole &= (c->keys[arm] = eng_arena_strdup(ab->arena, arms[arm]->point_key)) != NULL;
    return whole ? ENG_OK : no_memory(err);
}

/* Three workers at a time share table and weights, and hold the rest each for itself. */
static EngStatus refuse_too_large(EngPlan *plan, EngPlanPoint *point, EngErr *err)
{
    const EngNeed *need = &point->need;
    size_t each = need->private_bytes + need->shared_bytes;
    size_t shared = eng_need_bytes(need) - each, available = eng_memory_available_bytes() / 10 * 9;
    if (!available || point->skip || shared + ENG_AB_ARMS * each <= available) return ENG_OK;
    point->skip =
        eng_arena_printf(plan->arena,
                         "needs %zu bytes of memory (table and weights %zu, shared by "
                         "%d workers, and %zu in each), %zu are free",
                         shared + ENG_AB_ARMS * each, shared, ENG_AB_ARMS, each, available);
    return point->skip ? ENG_OK : no_memory(err);
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
            status = refuse_too_large(plan, point, err);
            if (point->skip) {
                block->points = &from->points[k];
                block->n_points = 1;
            } else if (!status) {
                status = make_arms(ab, plan, point, block, &text, err);
            }
            for (int a = 0; a < block->n_points; a++) points[n_points++] = block->points[a];
            if (!status) status = note_point(ab, point, point->skip ? NULL : block->points, err);
            n_blocks++;
        }
    eng_key_text_free(&text);
    plan->blocks = blocks;
    plan->n_blocks = n_blocks;
    plan->points = points;
    plan->n_points = plan->n_named = n_points;
    return status;
}

/* As for a plain run: what memory leaves nothing of is an error, not an empty table. */
static EngStatus check_any_fits(const EngAb *ab, EngErr *err)
{
    const char *refused = NULL;
    for (int i = 0; i < ab->n_points; i++) {
        if (ab->points[i].outcome != ENG_OUTCOME_SKIPPED) return ENG_OK;
        if (strstr(ab->points[i].reason, " bytes of memory")) refused = ab->points[i].reason;
    }
    if (!refused) return ENG_OK;
    return ENG_FAIL(err, ENG_NO_MEMORY, "no point fits this machine: %s", refused);
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
    ab->compared = eng_arena_alloc(ab->arena, n * sizeof *ab->compared);
    if (!blocks || !points || !ab->points || !ab->compared) return no_memory(err);
    EngStatus status = split_plan(ab, plan, blocks, points, err);
    if (!status) status = check_any_fits(ab, err);
    return status ? status : eng_plan_settings_key(plan, err);
}

/* ---- measuring ---------------------------------------------------------------------------------
 */

static EngStatus measure(void *context, const EngBlockContext *where, const EngLedgerBlock *block,
                         EngErr *err)
{
    const EngAb *ab = context;
    int64_t budget_ns = ab->options->budget_ms * 1000000 / ab->n_points;
    EngAbTask task = {.paths = {ab->builds[0].path, ab->builds[0].path, ab->builds[1].path},
                      .budget_ns = budget_ns};
    return eng_ab_block(&task, where, block, err);
}

/* ---- judging -----------------------------------------------------------------------------------
 */

static double time_of(const EngPairSample *sample, bool on_wall)
{
    return on_wall ? sample->wall_ns : sample->cpu_ns;
}

/* The arms' samples of one segment and pair, side by side. A time of 0 has no ratio. */
static EngStatus join_arms(EngAb *ab, Compared *c, EngPairPoint *const arms[ENG_AB_ARMS],
                           double *sample_ns, EngErr *err)
{
    bool on_wall = !strcmp(eng_judging_clock(c->experiment), "wall");
    const EngPairPoint *old = arms[ENG_AB_OLD];
    int at[ENG_AB_ARMS] = {0};
    c->samples = eng_arena_alloc(ab->arena, (size_t)old->n * sizeof *c->samples);
    double *lengths = eng_arena_alloc(ab->arena, (size_t)old->n * sizeof *lengths);
    if (!c->samples || !lengths) return no_memory(err);
    for (int i = 0; i < old->n; i++) {
        double times[ENG_AB_ARMS];
        bool whole = true;
        for (int arm = 0; arm < ENG_AB_ARMS; arm++) {
            const EngPairSample *want = &old->samples[i], *s = arms[arm]->samples;
            int n = arms[arm]->n, *k = &at[arm];
            while (*k < n && (s[*k].segment < want->segment ||
                              (s[*k].segment == want->segment && s[*k].pair < want->pair)))
                ++*k;
            whole &= *k < n && s[*k].segment == want->segment && s[*k].pair == want->pair;
            times[arm] = whole ? time_of(&s[*k], on_wall) : 0;
            whole &= times[arm] > 0;
        }
        if (!whole) continue;
        lengths[c->n] = times[ENG_AB_OLD] * (double)old->samples[i].inner;
        c->samples[c->n++] = (EngAbSample){.segment = old->samples[i].segment,
                                           .old_ns = times[ENG_AB_OLD],
                                           .control_ns = times[ENG_AB_CONTROL],
                                           .new_ns = times[ENG_AB_NEW]};
    }
    *sample_ns = eng_median_in_place(lengths, (size_t)c->n).median;
    return ENG_OK;
}

/* The worst of the arms' outcomes is the point's. */
static EngStatus read_ends(EngAb *ab, EngDb *db, const char *run_id, int i, EngErr *err)
{
    EngAbPoint *point = &ab->points[i];
    for (int arm = 0; arm < ENG_AB_ARMS; arm++) {
        EngPointEnd end;
        EngStatus status =
            eng_db_point_end(db, run_id, ab->compared[i].keys[arm], ab->arena, &end, err);
        if (status) return status;
        point->cut_short |= !strcmp(end.stop_reason, ENG_AB_CUT_SHORT);
        if (end.outcome <= point->outcome) continue;
        point->outcome = end.outcome;
        point->reason = end.reason;
    }
    return ENG_OK;
}

static EngStatus read_point(EngAb *ab, EngDb *db, const char *run_id, int i, EngErr *err)
{
    Compared *c = &ab->compared[i];
    EngAbPoint *point = &ab->points[i];
    EngPairPoint *arms[ENG_AB_ARMS];
    double sample_ns = 0;
    if (!c->keys[0]) return ENG_OK;
    EngStatus status = read_ends(ab, db, run_id, i, err);
    if (status || point->outcome != ENG_OUTCOME_MEASURED) return status;
    for (int arm = 0; arm < ENG_AB_ARMS && !status; arm++) {
        int n;
        status = eng_db_pairs(db, run_id, c->keys[arm], ab->arena, &arms[arm], &n, err);
        if (!status && n != 1)
            status = ENG_FAIL(err, ENG_INTERNAL, "a measured arm without samples");
    }
    if (!status) status = join_arms(ab, c, arms, &sample_ns, err);
    if (!status) status = eng_effect_of(c->samples, c->n, &point->effect, err);
    point->effect.sample_ns = sample_ns;
    return status;
}

static EngStatus store_verdicts(EngAb *ab, EngDb *db, const char *run_id,
                                const EngVerdictRules *rules, EngErr *err)
{
    int n = 0;
    EngVerdictRow *rows = eng_arena_alloc(ab->arena, (size_t)ab->n_points * sizeof *rows);
    if (!rows) return no_memory(err);
    for (int i = 0; i < ab->n_points; i++)
        if (ab->points[i].outcome == ENG_OUTCOME_MEASURED)
            rows[n++] = (EngVerdictRow){.kind = "ab",
                                        .run_id = run_id,
                                        .base_run_id = run_id,
                                        .point_key = ab->compared[i].keys[ENG_AB_NEW],
                                        .base_point_key = ab->compared[i].keys[ENG_AB_OLD],
                                        .effect = &ab->points[i].effect,
                                        .verdict = &ab->points[i].verdict};
    return eng_db_put_verdicts(db, rules, rows, n, err);
}

static EngStatus judge(void *context, EngDb *db, const char *run_id, EngErr *err)
{
    EngAb *ab = context;
    int n = 0;
    EngStatus status = ENG_OK;
    EngEffect *effects = eng_arena_alloc(ab->arena, (size_t)ab->n_points * sizeof *effects);
    EngVerdict *verdicts = eng_arena_alloc(ab->arena, (size_t)ab->n_points * sizeof *verdicts);
    if (!effects || !verdicts) return no_memory(err);
    for (int i = 0; i < ab->n_points && !status; i++) status = read_point(ab, db, run_id, i, err);
    for (int i = 0; i < ab->n_points; i++)
        if (ab->points[i].outcome == ENG_OUTCOME_MEASURED) effects[n++] = ab->points[i].effect;
    EngVerdictRules rules = ab->options->rules;
    if (!rules.resolution_ns) rules.resolution_ns = RESOLUTIONS * (double)eng_cpu_clock_step_ns();
    if (!status) status = eng_verdicts(&rules, effects, n, verdicts, err);
    n = 0;
    for (int i = 0; i < ab->n_points && !status; i++)
        if (ab->points[i].outcome == ENG_OUTCOME_MEASURED) ab->points[i].verdict = verdicts[n++];
    return status ? status : store_verdicts(ab, db, run_id, &rules, err);
}

EngStatus eng_ab_run(EngAb *ab, EngSweep *sweep, const EngAbOptions *options,
                     const EngRunOptions *run, EngRunResult *result, EngErr *err)
{
    EngRunHooks hooks = {.context = ab, .planned = planned, .block = measure, .judge = judge};
    EngRunOptions with_hooks = *run;
    with_hooks.own_points = true;
    with_hooks.hooks = &hooks;
    ab->options = options;
    return eng_run_sweep(sweep, &with_hooks, result, err);
}
