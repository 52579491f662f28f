/* Opening a session: identities for the plan, and the memory check. See session.h and runner.h. */
#include "bench/core/session.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/core/placement.h"

static EngStatus find_preset(EngSession *session, const char *name, const EngPreset **out,
                             EngErr *err)
{
    for (int i = 0; i < session->n_presets; i++)
        if (!strcmp(session->presets[i].name, name)) {
            *out = &session->presets[i];
            return ENG_OK;
        }
    if (session->n_presets == ENG_SESSION_PRESETS)
        return ENG_FAIL(err, ENG_USAGE, "more than %d presets in one sweep", ENG_SESSION_PRESETS);
    EngPreset *preset = &session->presets[session->n_presets];
    EngStatus status = eng_preset_find(name, preset, err);
    if (status) return status;
    session->n_presets++;
    *out = preset;
    return ENG_OK;
}

/* ---- the plan's callbacks ----------------------------------------------------------------------
 */

static EngStatus stream_digest(void *context, const char *preset, const char *corpus,
                               const char **digest, EngErr *err)
{
    EngSession *session = context;
    EngNeed need = {.corpus = corpus, .preset = preset};
    EngTokens tokens;
    EngStatus status = eng_resources_add(session->resources, &need, err);
    if (!status) status = eng_resources_tokens(session->resources, preset, corpus, &tokens, err);
    if (!status) *digest = tokens.digest;
    return status;
}

static EngStatus preset_digest(void *context, const char *name, const char **digest, EngErr *err)
{
    const EngPreset *preset = NULL;
    EngStatus status = find_preset(context, name, &preset, err);
    if (!status) *digest = preset->digest;
    return status;
}

/* Axes that a preset fixes. Table rows are capped: the published tables fit few machines. */
static EngStatus axis_default(void *context, const char *name, const char *axis, const char **text,
                              EngErr *err)
{
    static const char *const axes[ENG_SESSION_DEFAULTS] = {"orders", "heads", "rows", "row_dims",
                                                           "row_format"};
    const int64_t most_rows = 131072;
    EngSession *session = context;
    const EngPreset *p = NULL;
    int which = 0;
    while (which < ENG_SESSION_DEFAULTS && strcmp(axes[which], axis)) which++;
    *text = NULL;
    if (which == ENG_SESSION_DEFAULTS) return ENG_OK;
    EngStatus status = find_preset(session, name, &p, err);
    if (status) return status;
    char *out = session->defaults[p - session->presets][which];
    size_t size = sizeof session->defaults[0][0];
    int64_t rows = p->address.start < most_rows ? p->address.start : most_rows;
    switch (which) {
    case 0:
        snprintf(out, size, "%d-%d", p->address.min_order, p->address.max_order);
        break;
    case 1:
        snprintf(out, size, "%d", p->address.heads);
        break;
    case 2:
        snprintf(out, size, "%lld", (long long)rows);
        break;
    case 3:
        snprintf(out, size, "%d", p->row_dims);
        break;
    default:
        snprintf(out, size, "%s", eng_row_format_name(p->row_format));
    }
    *text = out;
    return ENG_OK;
}

static EngStatus store_digest(void *context, const EngPoint *point, const EngNeed *need,
                              const char **digest, EngErr *err)
{
    EngSession *session = context;
    char *cached = session->stores[need->row_format];
    (void)point;
    *digest = cached;
    if (cached[0]) return ENG_OK;
    return eng_resources_store_digest(session->resources, need->row_format, cached, err);
}

static EngStatus variant_digest(void *context, const EngExperiment *experiment, const char *variant,
                                const char **digest, EngErr *err)
{
    EngSession *session = context;
    for (int i = 0; i < session->n_variants; i++)
        if (session->variants[i].experiment == experiment &&
            !strcmp(session->variants[i].variant, variant)) {
            *digest = session->variants[i].digest;
            return ENG_OK;
        }
    if (session->n_variants == ENG_SESSION_VARIANTS)
        return ENG_FAIL(err, ENG_USAGE, "more than %d kernel variants in one sweep",
                        ENG_SESSION_VARIANTS);
    const EngKernel *kernel =
        experiment->op < 0 ? NULL : eng_kernel_find((EngOp)experiment->op, variant);
    char *out = session->variants[session->n_variants].digest;
    EngStatus status = eng_variant_digest(kernel, experiment->name, out, err);
    if (status) return status;
    session->variants[session->n_variants].experiment = experiment;
    snprintf(session->variants[session->n_variants].variant, 64, "%s", variant);
    session->n_variants++;
    *digest = out;
    return ENG_OK;
}

static bool corpus_exists(void *context, const char *corpus)
{
    const EngSession *session = context;
    return eng_resources_has_corpus(session->resources, corpus);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

static size_t table_bytes(const EngNeed *need)
{
    size_t scales = need->row_format == ENG_ROW_FP8 ? need->table_value_bytes / ENG_SCALE_GROUP : 0;
    return need->table ? need->table_value_bytes + scales : 0;
}

static size_t weight_bytes(const EngNeed *need)
{
    return need->weight_bytes + need->weight_bytes / ENG_SCALE_GROUP;
}

size_t eng_need_bytes(const EngNeed *need)
{
    return weight_bytes(need) + need->private_bytes + need->shared_bytes + table_bytes(need);
}

/* What a point adds to a worker that holds the block's points before it. */
static size_t own_bytes(const EngPlanBlock *block, int point)
{
    const EngNeed *need = &block->points[point]->need;
    for (int i = 0; i < point; i++) {
        const EngPlanPoint *other = block->points[i];
        if (!other->skip && other->need.shared_id == need->shared_id) return need->private_bytes;
    }
    return need->private_bytes + need->shared_bytes;
}

static EngStatus refuse(EngSession *session, EngPlanPoint *point, size_t bytes, size_t available,
                        const char *when, EngErr *err)
{
    EngPlan *plan = session->plan;
    point->skip = eng_arena_printf(plan->arena, "needs %zu bytes of memory%s, %zu are free", bytes,
                                   when, available);
    if (!point->skip) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the plan");
    if (!point->is_roof) plan->n_skipped++;
    return ENG_OK;
}

/* One worker holds all points of a block, beside table and weights as large as any point of the
 * run wants them: the points that are too much for that are refused, last ones first. */
static EngStatus refuse_of_block(EngSession *session, const EngPlanBlock *block,
                                 const size_t *tables, size_t weights, size_t available,
                                 const char **reason, EngErr *err)
{
    size_t sum = block->table ? tables[block->row_format] : 0;
    bool weighs = false;
    EngStatus status = ENG_OK;
    for (int i = 0; i < block->n_points && !status; i++) {
        EngPlanPoint *p = block->points[i];
        if (p->skip) continue;
        size_t more = own_bytes(block, i) + (p->need.weight_bytes && !weighs ? weights : 0);
        if (sum > available || more > available - sum) {
            status =
                refuse(session, p, sum + more, available, " with the others of its block", err);
            *reason = p->skip;
        } else {
            sum += more;
            weighs |= p->need.weight_bytes > 0;
        }
    }
    return status;
}

/* Points that would not fit are refused now, before anything large is allocated. */
static EngStatus refuse_too_large(EngSession *session, EngErr *err)
{
    size_t available = eng_memory_available_bytes() / 10 * 9, weights = 0;
    size_t tables[ENG_ROW_FORMAT_COUNT] = {0};
    EngPlan *plan = session->plan;
    int runnable = 0;
    const char *reason = NULL;
    EngStatus status = ENG_OK;
    if (!available) return ENG_OK; /* unknown */
    for (int i = 0; i < plan->n_points && !status; i++) {
        EngPlanPoint *p = plan->points[i];
        size_t bytes = eng_need_bytes(&p->need), table = table_bytes(&p->need);
        if (p->skip) continue;
        if (bytes > available) {
            status = refuse(session, p, bytes, available, "", err);
            reason = p->skip;
            continue;
        }
        if (table > tables[p->need.row_format]) tables[p->need.row_format] = table;
        if (weight_bytes(&p->need) > weights) weights = weight_bytes(&p->need);
    }
    for (int i = 0; i < plan->n_blocks && !status; i++)
        status =
            refuse_of_block(session, &plan->blocks[i], tables, weights, available, &reason, err);
    for (int i = 0; i < plan->n_points; i++)
        runnable += !plan->points[i]->skip && !plan->points[i]->is_roof;
    if (status) return status;
    if (reason && !runnable) {
        EngStr label = {0};
        const EngPlanPoint *first = plan->points[0]; /* named, and refused like all of them */
        eng_plan_label(first, &label, NULL);
        ENG_FAIL(err, ENG_NO_MEMORY, "no point fits this machine: %s %s: %s",
                 first->point.experiment->name, label.text ? label.text : "",
                 first->skip ? first->skip : reason);
        eng_str_free(&label);
        return ENG_NO_MEMORY;
    }
    if (reason) eng_warn("run", "points are skipped that do not fit this machine: %s", reason);
    return ENG_OK;
}

/* ---- session -----------------------------------------------------------------------------------
 */

static EngStatus add_needs(EngSession *session, EngErr *err)
{
    for (int i = 0; i < session->plan->n_points; i++) {
        const EngPlanPoint *p = session->plan->points[i];
        EngStatus status = p->skip ? ENG_OK : eng_resources_add(session->resources, &p->need, err);
        if (status) return status;
    }
    return ENG_OK;
}

/* More threads than processors wait for each other: allowed, but seldom meant. */
static void warn_of_threads(const EngSession *session)
{
    int64_t most = 0;
    for (int i = 0; i < session->plan->n_points; i++) {
        const EngPoint *point = &session->plan->points[i]->point;
        int axis = eng_experiment_axis(point->experiment, ENG_AXIS_THREADS);
        if (axis >= 0 && !session->plan->points[i]->skip && point->values[axis].i > most)
            most = point->values[axis].i;
    }
    if (most > session->machine.cores)
        eng_warn(
            "run",
            "threads=%lld: this machine has %d processors; threads that share one wait for each "
            "other, and their times say so",
            (long long)most, session->machine.cores);
}

EngStatus eng_session_open(const EngSweep *sweep, const char *data_dir, EngSession **out,
                           EngErr *err)
{
    EngSession *session;
    EngStatus status = eng_alloc_or((void **)&session, 1, sizeof *session, "a session", err);
    *out = NULL;
    if (status) return status;
    status = eng_machine_describe(&session->machine, err);
    if (!status) status = eng_build_describe(&session->build, err);
    if (!status) status = eng_resources_create(data_dir, ENG_DATA_SEED, &session->resources, err);
    if (status) goto out;
    session->identity = (EngIdentity){.context = session,
                                      .machine_id = session->machine.machine_id,
                                      .stream_digest = stream_digest,
                                      .preset_digest = preset_digest,
                                      .store_digest = store_digest,
                                      .variant_digest = variant_digest,
                                      .axis_default = axis_default,
                                      .corpus_exists = corpus_exists};
    status = eng_plan_expand(sweep, &session->identity, &session->plan, err);
    if (status) goto out;
    for (const char **corpus = session->plan->missing_corpora; corpus && *corpus; corpus++)
        eng_warn(
            "run",
            "%s: no stream for corpus %s, using the synthetic one (scripts/fetch_data gets text)",
            data_dir, *corpus);
    warn_of_threads(session);
    status = refuse_too_large(session, err);
    if (!status) status = add_needs(session, err);
out:
    if (status)
        eng_session_free(session);
    else
        *out = session;
    return status;
}

void eng_session_free(EngSession *session)
{
    if (!session) return;
    eng_plan_free(session->plan);
    eng_resources_destroy(session->resources);
    eng_build_free(&session->build);
    eng_machine_free(&session->machine);
    eng_free(session);
}

const EngPlan *eng_session_plan(const EngSession *session)
{
    return session->plan;
}

int64_t eng_block_setups(const EngPlanBlock *block)
{
    int64_t points = 0;
    for (int i = 0; i < block->n_points; i++) points += !block->points[i]->skip;
    return points * (block->experiment->counted ? 1 : block->settings.segments);
}

double eng_block_estimate_ns(const EngPlanBlock *block)
{
    double total = 0;
    for (int i = 0; i < block->n_points; i++) {
        const EngPlanPoint *p = block->points[i];
        if (p->skip) continue;
        double each = p->estimate_ns > (double)ENG_SAMPLE_TARGET_NS ? p->estimate_ns
                                                                    : (double)ENG_SAMPLE_TARGET_NS;
        total += each;
    }
    if (block->experiment->counted) return total;
    total *= (double)block->settings.pairs * block->settings.segments;
    double budget = (double)block->settings.budget_ms * 1e6;
    return budget > 0 && total > budget ? budget : total;
}
