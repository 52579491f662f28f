/* The life of a block: segments, samples into the ledger, outcomes, roofs. See block.h.
 *
 * A worker that dies takes the point it was in with it (failed, with the reason); the others go on
 * in a new segment. Samples of a broken segment stay: pairs never cross segments, so they are as
 * good as others.
 */
#include "bench/core/block.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/core/db_stopping.h"
#include "bench/core/machine.h"
#include "bench/core/stats.h"
#include "bench/core/worker.h"

typedef struct Active {
    const EngLedgerPoint *ledger;
    bool ended;
    EngStop stop; /* it has enough samples */
    int64_t n_samples;
    double *cpu_ns, *wall_ns; /* per inner iteration, of this call's samples: for the roof */
    int n_times, room;
} Active;

typedef struct Block {
    const EngBlockContext *context;
    const EngLedgerBlock *ledger;
    Active *active;
    int n_active;
    EngWorkerMessage message;
    EngWorkerNote note; /* of the last whole segment */
    bool verified;      /* once per block and call: the code is the same in every lifetime */
    int current;        /* point the worker is in, -1: none */
    char phase[64];
} Block;

static bool is_interrupted(const Block *block)
{
    const EngBlockContext *context = block->context;
    if (context->interrupted && *context->interrupted) return true;
    return context->deadline_ns && eng_now_ns() >= context->deadline_ns;
}

static EngSampleId sample_id(const Block *block, const Active *active, int segment, int pair)
{
    return (EngSampleId){.block_id = block->ledger->block_id,
                         .point_key = active->ledger->plan->point_key,
                         .segment = segment,
                         .pair = pair};
}

/* ---- outcomes ----------------------------------------------------------------------------------
 */

/* reason: why skipped, failed or wrong; of a measured point, why sampling ended. */
static EngStatus end_point(Block *block, Active *active, EngOutcome outcome, const char *reason,
                           EngErr *err)
{
    EngRunResult *result = block->context->result;
    bool measured = outcome == ENG_OUTCOME_MEASURED;
    active->ended = true;
    if (!active->ledger->plan->is_roof) {
        result->measured += measured;
        result->skipped += outcome == ENG_OUTCOME_SKIPPED;
        result->failed += outcome == ENG_OUTCOME_FAILED;
        result->wrong += outcome == ENG_OUTCOME_WRONG;
    }
    if (outcome == ENG_OUTCOME_FAILED || outcome == ENG_OUTCOME_WRONG)
        eng_warn("run", "%s%s%s: %s: %s", block->ledger->experiment->name,
                 *active->ledger->plan->variant ? " " : "", active->ledger->plan->variant,
                 eng_outcome_name(outcome), reason);
    return eng_db_point_done(block->context->db, block->ledger->block_id,
                             active->ledger->plan->point_key, outcome, measured ? NULL : reason,
                             measured ? reason : NULL, err);
}

static EngOutcome outcome_of(EngStatus status)
{
    return status == ENG_UNSUPPORTED ? ENG_OUTCOME_SKIPPED
           : status == ENG_MISMATCH  ? ENG_OUTCOME_WRONG
                                     : ENG_OUTCOME_FAILED;
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static EngStatus keep_time(Active *active, const EngTiming *timing, EngErr *err)
{
    if (active->n_times == active->room) {
        int room = active->room ? active->room * 2 : 64;
        size_t old = (size_t)active->room * sizeof(double), bytes = (size_t)room * sizeof(double);
        double *cpu = eng_realloc(active->cpu_ns, old, bytes);
        if (cpu) active->cpu_ns = cpu;
        double *wall = cpu ? eng_realloc(active->wall_ns, old, bytes) : NULL;
        if (!wall) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for sample times");
        active->wall_ns = wall;
        active->room = room;
    }
    active->cpu_ns[active->n_times] = (double)timing->cpu_ns / (double)timing->inner;
    active->wall_ns[active->n_times++] = (double)timing->wall_ns / (double)timing->inner;
    return ENG_OK;
}

static EngStatus store_sample(Block *block, Active *active, int segment, EngErr *err)
{
    const EngWorkerMessage *m = &block->message;
    EngSampleId id = sample_id(block, active, segment, m->pair);
    EngDb *db = block->context->db;
    EngStatus status = eng_db_begin(db, err);
    if (status) return status;
    status = eng_db_put_sample(db, &id, m->position, false, &m->timing, block->ledger->experiment,
                               m->values, err);
    if (!status) status = eng_db_put_counters(db, &id, m->counters, err);
    if (!status) status = eng_db_commit(db, err);
    if (status) {
        eng_db_rollback(db);
        return status;
    }
    status = keep_time(active, &m->timing, err);
    active->n_samples++;
    if (!status && block->context->tick) block->context->tick(block->context->tick_context);
    return status;
}

/* Stores what a message says. *done: the worker has finished its rounds. */
static EngStatus handle_message(Block *block, EngWorker *worker, Active **points, int segment,
                                bool *done, EngErr *err)
{
    EngWorkerMessage *m = &block->message;
    Active *active = m->point >= 0 ? points[m->point] : NULL;
    EngSampleId id = active ? sample_id(block, active, segment, m->pair) : (EngSampleId){0};
    EngStatus status = ENG_OK;
    switch (m->event) {
    case ENG_WORKER_ENTER:
        block->current = m->point;
        snprintf(block->phase, sizeof block->phase, "%.*s", (int)sizeof block->phase - 1, m->text);
        return ENG_OK;
    case ENG_WORKER_HISTOGRAM:
        return eng_db_put_histogram(block->context->db, &id, m->histogram.name, m->histogram.layer,
                                    m->histogram.stream, m->histogram.scale, m->histogram.lo,
                                    m->histogram.hi, m->histogram.counts, m->histogram.n_bins, err);
    case ENG_WORKER_DONE:
        block->note = m->note;
        *done = true;
        return ENG_OK;
    case ENG_WORKER_READY:  /* of paced workers only */
    case ENG_WORKER_TRACED: /* of traced passes only (block_trace.c) */
        return ENG_OK;
    case ENG_WORKER_RESIDUAL:
        status = eng_db_put_residual(block->context->db, &id, &m->residual, err);
        break;
    case ENG_WORKER_SAMPLE:
        status = store_sample(block, active, segment, err);
        break;
    case ENG_WORKER_POINT_ENDED:
        status = end_point(block, active, outcome_of(m->status), m->text, err);
        break;
    }
    if (status) return status;
    /* A worker that died before it could read this is noticed at the next receive. */
    eng_worker_acknowledge(worker, NULL);
    return ENG_OK;
}

/* ---- segments ----------------------------------------------------------------------------------
 */

static void forget_database(void *context)
{
    eng_db_forget_in_child(context);
}

/* Until the worker has finished (*done), is lost (*lost says how: it ended, or does not answer), or
 * an error that is none of the worker's: of the database, or an interruption. */
static EngStatus receive_all(Block *block, EngWorker *worker, Active **points, int segment,
                             bool *done, EngStatus *lost, EngErr *err)
{
    EngStatus status = ENG_OK;
    *lost = ENG_OK;
    while (!status && !*done) {
        EngStatus reply = eng_worker_receive(worker, &block->message, eng_worker_hang_ns(), err);
        if (reply == ENG_NOT_FOUND || reply == ENG_IO) {
            *lost = reply;
            return ENG_OK;
        }
        if (!reply)
            status = handle_message(block, worker, points, segment, done, err);
        else if (reply != ENG_INTERRUPTED) /* else a signal; a window resize is one too */
            status = reply;
        if (!status && is_interrupted(block))
            status = ENG_FAIL(err, ENG_INTERRUPTED, "interrupted");
    }
    return status;
}

/* A worker that died or hung: the point it was in fails, or all of them when it was in none, or
 * nothing more when that point has ended before (an error of the device that stays). At least one
 * ends, so that broken segments of a block cannot go on without end. */
static EngStatus blame(Block *block, Active **points, int n, const char *how, EngErr *err)
{
    char reason[256];
    EngStatus status = ENG_OK;
    snprintf(reason, sizeof reason, "worker ended with %s in %s", how,
             block->phase[0] ? block->phase : "start");
    if (block->current >= 0 && points[block->current]->ended) return ENG_OK;
    for (int i = 0; i < n && !status; i++)
        if (!points[i]->ended && (block->current < 0 || block->current == i))
            status = end_point(block, points[i], ENG_OUTCOME_FAILED, reason, err);
    return status;
}

/* What the device was like, "" where none was used; a clock that nobody told is null. */
static void device_json(const EngDeviceNote *note, char *out, size_t size)
{
    char clocks[160];
    out[0] = 0;
    if (!note->used) return;
    if (note->why_no_clocks[0])
        snprintf(clocks, sizeof clocks, "null,\"why\":\"%s\"", note->why_no_clocks);
    else
        snprintf(clocks, sizeof clocks, "%d,\"memory_mhz\":%d,\"slow\":%llu", note->clocks.sm_mhz,
                 note->clocks.memory_mhz, note->clocks.slow);
    snprintf(out, size, ",\"device\":{\"floor_ns\":%.0f,\"l2_bytes\":%lld,\"sm_mhz\":%s}",
             note->floor_ns, (long long)note->l2_bytes, clocks);
}

/* How the worker sampled joins the evidence, a JSON object. */
static void add_note(const EngWorkerNote *note, char *evidence, size_t size)
{
    char device[256];
    device_json(&note->device, device, sizeof device);
    size_t used = strlen(evidence);
    if (used < 3) return; /* "{}": it did not fit */
    int n = snprintf(evidence + used - 1, size - used + 1,
                     ",\"sampling\":{\"clock_step_ns\":%lld,\"empty_window_ns\":%lld,"
                     "\"sample_ns\":%lld,\"flush_bytes\":%lld,\"warmed_up\":%d,"
                     "\"unstable\":%d,\"cpu\":%d,\"numa_node\":%d%s}}",
                     (long long)note->timer.step_ns, (long long)note->timer.empty_ns,
                     (long long)note->length_ns, (long long)note->flush_bytes, note->points,
                     note->unstable, note->cpu, note->node, device);
    if (n < 0 || (size_t)n > size - used) snprintf(evidence + used - 1, 2, "}");
}

/* One worker lifetime; `ordinal` counts them, and *whole says that the worker reached its end. */
static EngStatus run_segment(Block *block, int ordinal, int pairs, bool *whole, EngErr *err)
{
    const EngLedgerBlock *ledger = block->ledger;
    EngDb *db = block->context->db;
    Active **points = eng_alloc_array((size_t)block->n_active, sizeof *points);
    const EngPoint **task_points = eng_alloc_array((size_t)block->n_active, sizeof *task_points);
    int n = 0, segment = 0;
    EngStatus status = ENG_OK, lost;
    EngEvidence before, after;
    EngWorker worker = {.pid = -1};
    char how[96] = "", evidence[ENG_EVIDENCE_BYTES];
    *whole = false;
    if (!points || !task_points) {
        status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a block");
        goto out;
    }
    for (int i = 0; i < block->n_active; i++) {
        if (block->active[i].ended) continue;
        points[n] = &block->active[i];
        task_points[n++] = &block->active[i].ledger->plan->point;
    }
    EngWorkerTask task = {.resources = block->context->resources,
                          .points = task_points,
                          .n_points = n,
                          .verify = !block->verified,
                          .seed = ledger->seed + 1000003u * (uint64_t)ordinal,
                          .pairs = pairs,
                          .budget_ns =
                              ledger->settings.budget_ms * 1000000 / ledger->segments_wanted,
                          .target_ns = ENG_SAMPLE_TARGET_NS};
    status = eng_db_segment_start(db, ledger->block_id, task.seed, &segment, err);
    if (status) goto out;
    block->current = -1;
    block->phase[0] = 0;
    eng_evidence_read(&before);
    status = eng_worker_start(&worker, &task, forget_database, db, err);
    if (status) goto out;
    status = receive_all(block, &worker, points, segment, whole, &lost, err);
    eng_worker_end(&worker, status || lost, how, sizeof how);
    /* The segment stays open, and is broken when the run is resumed. */
    if (status) goto out;
    eng_evidence_read(&after);
    eng_evidence_delta_json(&before, &after, evidence, sizeof evidence);
    if (*whole) add_note(&block->note, evidence, sizeof evidence);
    if (lost == ENG_IO)
        snprintf(how, sizeof how, "no answer for %lld s (killed)",
                 (long long)(eng_worker_hang_ns() / 1000000000));
    if (lost) status = blame(block, points, n, how, err);
    if (!status)
        status = eng_db_segment_finish(db, ledger->block_id, segment, !*whole, evidence, err);
    block->verified |= *whole;
out:
    eng_free(task_points);
    eng_free(points);
    return status;
}

/* ---- roofs -------------------------------------------------------------------------------------
 */

const char *eng_judging_clock(const EngExperiment *experiment)
{
    for (int i = 0; i < experiment->n_metrics; i++)
        if (strcmp(experiment->metrics[i].clock, "none")) return experiment->metrics[i].clock;
    return NULL;
}

static bool same_limit(const EngPlanPoint *a, const EngPlanPoint *b)
{
    return a->shape == b->shape && !strcmp(a->backend, b->backend);
}

/* The fastest of the roof family of one shape and backend, with the medians of all that were tried.
 */
static EngStatus store_roof(Block *block, const EngPlanPoint *of, const char *clock, EngErr *err)
{
    const Active *best = NULL;
    double best_ns = INFINITY;
    json_t *family = json_array();
    for (int i = 0; i < block->n_active; i++) {
        Active *a = &block->active[i];
        if (!a->ledger->plan->is_roof || !same_limit(a->ledger->plan, of) || !a->n_times) continue;
        double *times = strcmp(clock, "cpu") ? a->wall_ns : a->cpu_ns;
        EngMedian m = eng_median_in_place(times, (size_t)a->n_times);
        json_array_append_new(family, json_pack("{s:s, s:f}", "variant", a->ledger->plan->variant,
                                                "median_ns", m.median));
        if (m.median >= best_ns) continue;
        best_ns = m.median;
        best = a;
    }
    EngStatus status = ENG_OK;
    json_t *tuned = json_pack("{s:o, s:s}", "family", family, "chosen",
                              best ? best->ledger->plan->variant : "");
    char *text = tuned ? json_dumps(tuned, JSON_COMPACT) : NULL;
    if (!text)
        status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a roof");
    else if (best)
        status = eng_db_put_roof(block->context->db, block->ledger->block_id,
                                 best->ledger->plan->point_key, clock, text, err);
    free(text);
    json_decref(tuned);
    return status;
}

static EngStatus store_roofs(Block *block, EngErr *err)
{
    const char *clock = eng_judging_clock(block->ledger->experiment);
    EngStatus status = ENG_OK;
    for (int i = 0; clock && i < block->n_active && !status; i++) {
        const EngPlanPoint *of = block->active[i].ledger->plan;
        bool first = true;
        for (int k = 0; k < i; k++) first = first && !same_limit(block->active[k].ledger->plan, of);
        if (first) status = store_roof(block, of, clock, err);
    }
    return status;
}

/* ---- block -------------------------------------------------------------------------------------
 */

static bool has_named(const Block *block)
{
    for (int i = 0; i < block->n_active; i++)
        if (!block->active[i].ended && !block->active[i].ledger->plan->is_roof) return true;
    return false;
}

/* Ends the points that have enough samples by the block's rule; the others go on, with the roofs.
 * When that is all of them, finish() ends them, after the roofs are stored: *over. */
static EngStatus apply_rule(Block *block, bool *over, EngErr *err)
{
    const char *clock = eng_judging_clock(block->ledger->experiment);
    EngStatus status = ENG_OK;
    if (!block->ledger->settings.precision || !clock) return ENG_OK;
    *over = true;
    for (int i = 0; i < block->n_active && !status; i++) {
        Active *a = &block->active[i];
        if (a->ended || a->ledger->plan->is_roof) continue;
        status =
            eng_db_stop(block->context->db, block->ledger, a->ledger->plan, clock, &a->stop, err);
        *over = *over && a->stop;
    }
    for (int i = 0; i < block->n_active && !status && !*over; i++) {
        Active *a = &block->active[i];
        if (!a->ended && a->stop)
            status = end_point(block, a, ENG_OUTCOME_MEASURED, eng_stop_name(a->stop), err);
    }
    return status;
}

/* Only the budget keeps a point from its pairs: a broken segment's are taken anew. */
static const char *stop_reason(const Block *block, const Active *active)
{
    const EngLedgerBlock *l = block->ledger;
    if (active->stop) return eng_stop_name(active->stop);
    bool all = l->experiment->counted ||
               active->n_samples >= (int64_t)l->segments_wanted * l->pairs_wanted;
    return all || !l->settings.budget_ms ? "pairs reached" : "time budget";
}

static EngStatus finish(Block *block, EngErr *err)
{
    EngStatus status = store_roofs(block, err);
    for (int i = 0; i < block->n_active && !status; i++) {
        Active *a = &block->active[i];
        if (a->ended || a->ledger->plan->is_roof) continue;
        status = a->n_samples
                     ? end_point(block, a, ENG_OUTCOME_MEASURED, stop_reason(block, a), err)
                     : end_point(block, a, ENG_OUTCOME_FAILED, "no sample was taken", err);
    }
    return status ? status : eng_db_block_done(block->context->db, block->ledger->block_id, err);
}

/* Of the named points still being measured. */
static int64_t fewest_samples(const Block *block)
{
    int64_t fewest = -1;
    for (int i = 0; i < block->n_active; i++) {
        const Active *a = &block->active[i];
        if (a->ended || a->ledger->plan->is_roof) continue;
        if (fewest < 0 || a->n_samples < fewest) fewest = a->n_samples;
    }
    return fewest < 0 ? 0 : fewest;
}

/* Pairs still to take: those of a broken segment count, and a whole segment counts even where its
 * time budget cut it short. Never none: after a kill between last sample and end the roofs are
 * measured anew. */
static int64_t pairs_owed(const Block *block)
{
    const EngLedgerBlock *ledger = block->ledger;
    if (ledger->experiment->counted) return 1;
    int64_t pairs = ledger->pairs_wanted, taken = fewest_samples(block);
    if (ledger->segments_done * pairs > taken) taken = ledger->segments_done * pairs;
    int64_t owed = ledger->segments_wanted * pairs - taken;
    return owed > 0 ? owed : pairs;
}

EngStatus eng_block_run(const EngBlockContext *context, const EngLedgerBlock *ledger, EngErr *err)
{
    Block *block;
    EngStatus status = eng_alloc_or((void **)&block, 1, sizeof *block, "a block", err);
    if (status) return status;
    block->context = context;
    block->ledger = ledger;
    status = eng_alloc_or((void **)&block->active, (size_t)ledger->n_points, sizeof(Active),
                          "a block's points", err);
    if (status) goto out;
    for (int i = 0; i < ledger->n_points; i++) {
        if (ledger->points[i].state == ENG_POINT_DONE) continue;
        block->active[block->n_active++] =
            (Active){.ledger = &ledger->points[i], .n_samples = ledger->points[i].n_samples};
    }
    status = eng_db_block_start(context->db, ledger->block_id, err);
    int pairs = ledger->experiment->counted ? 1 : ledger->pairs_wanted;
    int64_t owed = pairs_owed(block);
    int ordinal = ledger->segments_done + ledger->segments_broken;
    bool over = false;
    for (; owed > 0 && !over && !status && has_named(block); ordinal++) {
        bool whole;
        int64_t before = fewest_samples(block);
        int n = owed < pairs ? (int)owed : pairs;
        status = run_segment(block, ordinal, n, &whole, err);
        owed -= whole ? n : fewest_samples(block) - before;
        if (!status && owed > 0) status = apply_rule(block, &over, err);
    }
    if (!status) status = eng_block_trace(context, ledger, err);
    if (!status) status = finish(block, err);
out:
    for (int i = 0; i < block->n_active; i++) {
        eng_free(block->active[i].cpu_ns);
        eng_free(block->active[i].wall_ns);
    }
    eng_free(block->active);
    eng_free(block);
    return status;
}
