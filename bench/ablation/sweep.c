/* The experiment `train`, and what a plan of it means: arms, text, keys, what the ledger has.
 * Running them is in jobs.c. See sweep.h. */
#include "bench/ablation/sweep.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ablation/jobs.h"
#include "bench/core/plan_keys.h"

#define EST_TOKENS_PER_S 35000.0 /* R0c, f32, one thread, with its held-out text */
#define EST_FLOPS        3.75e6  /* of a token there */

/* ---- the experiment ---- */

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngArm arm;
    return eng_arm_resolve(point, &arm, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngArm arm;
    EngStatus status = eng_arm_resolve(point, &arm, err);
    if (status) return status;
    /* Values, gradients and two moments; activations of a batch. */
    int64_t parameters = arm.account.total + arm.account.vocabulary;
    *need = (EngNeed){.private_bytes = (size_t)parameters * 16 +
                                       (size_t)arm.config.batch_tokens *
                                           (size_t)arm.config.model.vocab * sizeof(float)};
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngArm arm;
    if (eng_arm_resolve(point, &arm, NULL)) return 0;
    double cost = arm.account.flops_per_token > 0 ? arm.account.flops_per_token / EST_FLOPS : 1;
    return (double)arm.config.tokens * cost / EST_TOKENS_PER_S * 1e9 / (double)arm.threads;
}

const EngExperiment eng_experiment_train = {
    .name = "train",
    .question = "What does a small model lose or gain when one variable of Engram changes?",
    .axes = eng_arm_axes,
    .n_axes = ENG_ARM_AXES,
    .metrics = eng_train_metrics,
    .n_metrics = ENG_TM_COUNT,
    .op = -1,
    .counted = true,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
};

static const EngExperiment *const g_items[] = {&eng_experiment_train};
const EngExperimentList eng_train_experiments = {
    .items = g_items, .n = 1, .hint = "`engram train` has train alone, `engram run` the others"};

/* ---- life ---- */

EngStatus eng_train_sweep_create(const EngTrainSweepOptions *options, EngTrainSweep **out,
                                 EngErr *err)
{
    EngTrainSweep *sweep;
    *out = NULL;
    EngStatus status = eng_alloc_or((void **)&sweep, 1, sizeof *sweep, "a sweep", err);
    if (status) return status;
    sweep->options = *options;
    sweep->arena = eng_arena_create();
    if (!sweep->arena) status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a sweep");
    if (!status) status = eng_train_ledger_open(options->ledger, &sweep->ledger, err);
    if (!status) {
        sweep->ledger_is_open = true;
        sweep->hooks = (EngRunHooks){.context = sweep,
                                     .planned = eng_train_planned,
                                     .references = eng_train_references,
                                     .block = eng_train_block,
                                     .judge = eng_train_liken};
        *out = sweep;
    } else {
        eng_train_sweep_destroy(sweep);
    }
    return status;
}

void eng_train_sweep_destroy(EngTrainSweep *sweep)
{
    if (!sweep) return;
    for (int i = 0; i < sweep->n_texts; i++) eng_train_data_close(&sweep->texts[i].data);
    if (sweep->ledger_is_open) eng_train_ledger_close(&sweep->ledger);
    eng_arena_destroy(sweep->arena);
    eng_free(sweep);
}

const EngRunHooks *eng_train_sweep_hooks(EngTrainSweep *sweep)
{
    return &sweep->hooks;
}

/* ---- plan ---- */

static EngStatus find_text(EngTrainSweep *sweep, const EngArm *arm, const EngTrainData **data,
                           EngErr *err)
{
    int vocab = arm->config.model.vocab;
    for (int i = 0; i < sweep->n_texts; i++) {
        const EngTrainOpenText *text = &sweep->texts[i];
        *data = &text->data;
        if (text->vocab == vocab && !strcmp(text->name, arm->text)) return ENG_OK;
    }
    if (sweep->n_texts == ENG_TRAIN_TEXTS)
        return ENG_FAIL(err, ENG_USAGE, "more than %d texts in one sweep", ENG_TRAIN_TEXTS);
    EngTrainOpenText *text = &sweep->texts[sweep->n_texts];
    EngStatus status = eng_train_data_open(sweep->options.data_dir, arm->text, vocab,
                                           ENG_TRAIN_SYNTHETIC_TOKENS, &text->data, err);
    if (status == ENG_NOT_FOUND && err) return err->status = ENG_BAD_DATA;
    if (status) return status;
    text->vocab = vocab;
    text->name = arm->text;
    sweep->n_texts++;
    *data = &text->data;
    return ENG_OK;
}

/* A single pass: sequences of seq_len and the token after the last. */
static EngStatus check_length(const EngTrainItem *item, EngErr *err)
{
    int64_t needed = item->arm.config.tokens + 1, there = item->data->train.n;
    if (needed <= there) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE,
                    "%s: a single pass over %" PRId64
                    " tokens needs as many; text '%s' has %" PRId64
                    ": a smaller budget (%.3g at most), or a smaller rung",
                    item->who, needed, item->arm.text, there,
                    eng_point_real(&item->point->point, "budget") * (double)there / (double)needed);
}

static EngStatus describe_item(EngTrainSweep *sweep, EngPlanPoint *point, EngTrainItem *item,
                               EngErr *err)
{
    EngStr label = {0}, manifest = {0};
    char key[ENG_KEY_HEX] = "";
    *item = (EngTrainItem){.point = point};
    EngStatus status = eng_arm_resolve(&point->point, &item->arm, err);
    if (!status) status = find_text(sweep, &item->arm, &item->data, err);
    if (!status) status = eng_arm_label(&point->point, &label, err);
    if (!status) status = eng_arm_manifest(&item->arm, item->data, &manifest, key, err);
    if (!status) {
        for (char *p = manifest.text; *p; p++)
            if (*p == '\n') *p = p[1] ? ' ' : 0;
        item->who = eng_arena_strdup(sweep->arena, label.text);
        item->manifest = eng_arena_strdup(sweep->arena, manifest.text);
        item->key = eng_arena_strdup(sweep->arena, key);
        if (!item->who || !item->manifest || !item->key)
            status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a sweep");
    }
    if (!status) status = check_length(item, err);
    /* What axes leave open: the text, what "the rung's" stands for, the recipe. */
    point->stream_digest = item->data ? item->data->digest : NULL;
    point->variant_digest = item->key;
    eng_str_free(&label);
    eng_str_free(&manifest);
    return status;
}

static int by_seed(const void *a, const void *b)
{
    const EngTrainItem *x = a, *y = b;
    int64_t p = eng_point_int(&x->point->point, ENG_ARM_AXIS_SEED);
    int64_t q = eng_point_int(&y->point->point, ENG_ARM_AXIS_SEED);
    if (p != q) return p < q ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* All points in one block, so that runs of different arms may go side by side. */
static EngStatus merge_blocks(EngTrainSweep *sweep, EngPlan *plan, EngErr *err)
{
    int n = 0;
    EngPlanBlock *block = eng_arena_alloc(plan->arena, sizeof *block);
    EngPlanPoint **points =
        eng_arena_alloc(plan->arena, ((size_t)plan->n_named + 1) * sizeof *points);
    if (!block || !points) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a sweep");
    *block = plan->blocks[0];
    block->estimate_ns = 0;
    for (int i = 0; i < sweep->n_items; i++) {
        points[n++] = sweep->items[i].point;
        block->estimate_ns += sweep->items[i].point->estimate_ns;
    }
    for (int i = 0; i < plan->n_named; i++)
        if (plan->points[i]->skip) points[n++] = plan->points[i];
    block->points = points;
    block->n_points = n;
    plan->blocks = block;
    plan->n_blocks = 1;
    plan->points = points;
    plan->n_points = plan->n_named = n;
    return eng_plan_rekey(plan, err);
}

EngStatus eng_train_planned(void *context, EngSession *session, EngErr *err)
{
    EngTrainSweep *sweep = context;
    EngPlan *plan = session->plan;
    EngStatus status = eng_arm_check_sweep(plan->sweep, err);
    sweep->session = session;
    if (status) return status;
    sweep->n_items = 0;
    sweep->items = eng_arena_alloc(sweep->arena, (size_t)plan->n_named * sizeof *sweep->items);
    if (!sweep->items) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a sweep");
    for (int i = 0; i < plan->n_named && !status; i++) {
        EngTrainItem *item = &sweep->items[sweep->n_items];
        if (plan->points[i]->skip) continue;
        status = describe_item(sweep, plan->points[i], item, err);
        item->recorded = !status && eng_train_ledger_find(&sweep->ledger, item->key);
        if (item->recorded && !eng_train_has_result(sweep, item)) {
            item->point->kind = "imported";
            item->point->provenance = eng_train_origin(sweep, item, err);
            if (!item->point->provenance) status = ENG_NO_MEMORY;
        }
        item->order = i;
        sweep->n_items += item->recorded || !sweep->options.recorded;
    }
    if (status) return status;
    if (!sweep->n_items && sweep->options.recorded)
        return ENG_FAIL(err, ENG_NOT_FOUND, "%s has none of the %d runs of %s", sweep->ledger.path,
                        plan->n_named, plan->sweep->source);
    qsort(sweep->items, (size_t)sweep->n_items, sizeof *sweep->items, by_seed);
    return merge_blocks(sweep, plan, err);
}

EngStatus eng_train_references(void *context, EngDb *db, EngErr *err)
{
    const EngTrainSweep *sweep = context;
    EngStatus status = ENG_OK;
    for (int i = 0; i < sweep->n_texts && !status; i++) {
        const EngTrainOpenText *text = &sweep->texts[i];
        const EngTrainData *data = &text->data;
        json_t *json = json_pack("{s:s, s:s, s:s}", "train", data->train.stream.digest, "heldout",
                                 data->heldout.stream.digest, "map", data->map.sha256_i32le);
        char *header = json ? json_dumps(json, JSON_COMPACT) : NULL;
        status = header ? eng_db_put_stream(db, data->digest, text->name, data->train.stream.kind,
                                            data->train.n, header, err)
                        : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a text's row");
        free(header);
        json_decref(json);
    }
    return status;
}

/* Arms that cannot be, and why. */
static int describe_skips(const EngPlan *plan, FILE *out)
{
    int n = 0;
    for (int i = 0; i < plan->n_named; i++) {
        const EngPlanPoint *point = plan->points[i];
        EngStr label = {0};
        if (!point->skip) continue;
        n++;
        if (!eng_arm_label(&point->point, &label, NULL))
            fprintf(out, "skipped: %s: %s\n", label.text, point->skip);
        eng_str_free(&label);
    }
    return n;
}

EngStatus eng_train_sweep_describe(EngTrainSweep *sweep, EngSession *session, FILE *out,
                                   int *n_runs, EngErr *err)
{
    double total_ns = 0;
    int missing = 0, skipped = 0;
    EngStatus status = eng_train_planned(sweep, session, err);
    for (int i = 0; i < sweep->n_items && !status; i++) {
        const EngTrainItem *item = &sweep->items[i];
        const EngTrainAccount *account = &item->arm.account;
        fprintf(out,
                "%.8s %s: E %d, rows %" PRId64 ", P_total %" PRId64 " (%+.3f %%), P_active %" PRId64
                ", rho %.3f, %" PRId64 " tokens%s\n",
                item->key, item->who[0] ? item->who : "(all at default)",
                item->arm.config.model.experts, account->table_rows, account->total,
                100 * item->arm.residual, account->active, item->arm.rho, item->arm.config.tokens,
                item->recorded ? ", recorded" : "");
        missing += !item->recorded;
        if (!item->recorded) total_ns += item->point->estimate_ns;
    }
    if (status) return status;
    skipped = describe_skips(session->plan, out);
    *n_runs = sweep->n_items;
    fprintf(out, "\n%d runs, %d of them to train", sweep->n_items, missing);
    if (skipped) fprintf(out, ", %d skipped", skipped);
    fprintf(out, ": about %.1f h with %d side by side\n",
            total_ns * 1e-9 / 3600 / sweep->options.jobs, sweep->options.jobs);
    return ENG_OK;
}
