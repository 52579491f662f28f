/* Measuring one point with two builds: three paced workers at a time; see ab.h. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/core/ab_parts.h"
#include "bench/core/counters.h"
#include "bench/core/db_verdicts.h"
#include "bench/core/machine.h"
#include "bench/core/plugin.h"
#include "bench/core/sampling.h"
#include "bench/core/worker.h"

#define ORDERS 6 /* of three arms */

static const char *const g_arm_names[ENG_AB_ARMS] = {"old build", "old build (control)",
                                                     "new build"};

typedef struct Arm {
    EngWorker worker;
    int64_t n_samples;
    bool failed;
} Arm;

/* A sample not yet stored: the database rests while a segment runs. */
typedef struct Taken {
    EngTiming timing;
    double values[ENG_MAX_METRICS], counters[ENG_COUNTER_COUNT];
    int position;
} Taken;

typedef struct Block {
    const EngAbTask *task;
    const EngBlockContext *where;
    const EngLedgerBlock *ledger;
    Arm arms[ENG_AB_ARMS];
    Taken *taken; /* [pairs, ENG_AB_ARMS] of the segment */
    int orders[ORDERS];
    EngWorkerMessage message;
    EngRng rng;
    int64_t inner;
    int segment, cpu;
    bool failed, on_wall;
    EngOutcome outcome; /* when failed, with the reason */
    char phase[64], reason[256];
} Block;

/* ---- a worker of one arm -----------------------------------------------------------------------
 */

typedef struct InChild {
    EngDb *db;
    const char *path;
    int cpu; /* -1: any */
} InChild;

/* Takes the build's kernels in place of those of the same names. */
static void load_build(void *context)
{
    const InChild *in = context;
    const EngPlugin *plugin;
    EngErr err = {0};
    eng_db_forget_in_child(in->db);
    if (in->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)in->cpu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    EngStatus status = eng_plugin_open(in->path, &plugin, &err);
    if (!status) status = eng_kernels_add(plugin->kernels, true, &err);
    if (!status) return;
    eng_error("ab", "%s", err.text);
    _exit(eng_status_exit_code(status));
}

static void fail(Block *b, int arm, EngOutcome outcome, const char *text)
{
    b->arms[arm].failed = b->failed = true;
    b->outcome = outcome;
    snprintf(b->reason, sizeof b->reason, "%s: %.220s", g_arm_names[arm], text);
    eng_warn("ab", "%s %s: %s: %s", b->ledger->experiment->name,
             b->ledger->points[arm].plan->variant, eng_outcome_name(outcome), b->reason);
}

static EngStatus start(Block *b, int arm, int place, bool check, EngErr *err)
{
    const EngPoint *points[1] = {&b->ledger->points[arm].plan->point};
    InChild in = {b->where->db, b->task->paths[arm], b->cpu};
    /* One seed for all arms: the same layout, inputs and windows. */
    EngWorkerTask task = {.resources = b->where->resources,
                          .points = points,
                          .n_points = 1,
                          .verify = check,
                          .seed = b->ledger->seed + 1000003u * (uint64_t)b->segment,
                          .pairs = b->ledger->pairs_wanted,
                          .target_ns = ENG_SAMPLE_TARGET_NS,
                          .paced = true,
                          .inner = b->inner,
                          .skip = place * 2 * b->ledger->pairs_wanted};
    snprintf(b->phase, sizeof b->phase, "start");
    return eng_worker_start(&b->arms[arm].worker, &task, load_build, &in, err);
}

static void end(Block *b, int arm, bool kill_it, char *how, size_t size)
{
    eng_worker_end(&b->arms[arm].worker, kill_it, how, size);
}

static void lose(Block *b, int arm, bool silent)
{
    char how[96] = "", text[224];
    end(b, arm, true, how, sizeof how);
    if (silent) snprintf(how, sizeof how, "no answer (killed)");
    snprintf(text, sizeof text, "worker ended with %s in %.63s", how, b->phase);
    fail(b, arm, ENG_OUTCOME_FAILED, text);
}

static EngOutcome outcome_of(EngStatus status)
{
    return status == ENG_UNSUPPORTED ? ENG_OUTCOME_SKIPPED
           : status == ENG_MISMATCH  ? ENG_OUTCOME_WRONG
                                     : ENG_OUTCOME_FAILED;
}

static EngSampleId sample_id(const Block *b, int arm, int pair)
{
    return (EngSampleId){.block_id = b->ledger->block_id,
                         .point_key = b->ledger->points[arm].plan->point_key,
                         .segment = b->segment,
                         .pair = pair};
}

/* Handles messages of an arm until `wanted`, or until the arm has failed (b->failed). */
static EngStatus wait_for(Block *b, int arm, EngWorkerEvent wanted, EngErr *err)
{
    EngWorkerMessage *m = &b->message;
    EngWorker *worker = &b->arms[arm].worker;
    for (;;) {
        EngStatus status = eng_worker_receive(worker, m, eng_worker_hang_ns(), err);
        if (b->where->interrupted && *b->where->interrupted)
            return ENG_FAIL(err, ENG_INTERRUPTED, "interrupted");
        if (status == ENG_INTERRUPTED) continue;
        if (status == ENG_NOT_FOUND || status == ENG_IO) {
            lose(b, arm, status == ENG_IO);
            return ENG_OK;
        }
        if (status) return status;
        EngSampleId id = sample_id(b, arm, m->pair);
        if (m->event == wanted) return ENG_OK;
        switch (m->event) {
        case ENG_WORKER_ENTER:
            snprintf(b->phase, sizeof b->phase, "%.63s", m->text);
            continue;
        case ENG_WORKER_RESIDUAL:
            status = eng_db_put_residual(b->where->db, &id, &m->residual, err);
            if (status) return status;
            eng_worker_acknowledge(worker, NULL);
            continue;
        case ENG_WORKER_POINT_ENDED:
            fail(b, arm, outcome_of(m->status), m->text);
            return ENG_OK;
        default: /* histograms are of no use here, and nothing else comes out of turn */
            continue;
        }
    }
}

static void end_all(Block *b)
{
    char how[96];
    for (int arm = 0; arm < ENG_AB_ARMS; arm++)
        if (b->arms[arm].worker.pid > 0) end(b, arm, true, how, sizeof how);
}

/* ---- samples -----------------------------------------------------------------------------------
 */

static double time_of(const Block *b, int pair, int arm)
{
    const EngTiming *t = &b->taken[pair * ENG_AB_ARMS + arm].timing;
    return (double)(b->on_wall ? t->wall_ns : t->cpu_ns);
}

/* A time of 0, which has no ratio, is stored and counted as dropped from the verdict. */
static EngStatus store_pair(Block *b, int pair, EngErr *err)
{
    EngDb *db = b->where->db;
    EngStatus status = ENG_OK;
    for (int arm = 0; arm < ENG_AB_ARMS && !status; arm++) {
        const Taken *taken = &b->taken[pair * ENG_AB_ARMS + arm];
        EngSampleId id = sample_id(b, arm, pair);
        bool zero = time_of(b, pair, arm) <= 0;
        status = eng_db_put_sample(db, &id, taken->position, false, &taken->timing,
                                   b->ledger->experiment, taken->values, err);
        if (!status) status = eng_db_put_counters(db, &id, taken->counters, err);
        if (!status && zero) status = eng_db_put_drops(db, &id, "pairs without a time", 1, err);
        b->arms[arm].n_samples++;
    }
    return status;
}

static EngStatus store_segment(Block *b, EngErr *err)
{
    EngStatus status = eng_db_begin(b->where->db, err);
    if (status) return status;
    for (int pair = 0; pair < b->ledger->pairs_wanted && !status; pair++)
        status = store_pair(b, pair, err);
    if (!status) status = eng_db_commit(b->where->db, err);
    if (status) eng_db_rollback(b->where->db);
    for (int i = 0; i < b->ledger->pairs_wanted * ENG_AB_ARMS && b->where->tick && !status; i++)
        b->where->tick(b->where->tick_context);
    return status;
}

/* Place in a round decides something too (who comes after the pause, in whose caches), so each arm
 * must have each place equally often: all six orders in random sequence, then again. */
static const int *order_of(Block *b, int pair)
{
    static const int orders[ORDERS][ENG_AB_ARMS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    if (pair % ORDERS == 0) eng_shuffle(&b->rng, b->orders, ORDERS);
    return orders[b->orders[pair % ORDERS]];
}

static EngStatus take_pair(Block *b, int pair, EngErr *err)
{
    const int *order = order_of(b, pair);
    EngStatus status = ENG_OK;
    snprintf(b->phase, sizeof b->phase, "sample");
    for (int i = 0; i < ENG_AB_ARMS && !status && !b->failed; i++) {
        Arm *arm = &b->arms[order[i]];
        Taken *taken = &b->taken[pair * ENG_AB_ARMS + order[i]];
        eng_worker_acknowledge(&arm->worker, NULL); /* a dead one is noticed at once */
        status = wait_for(b, order[i], ENG_WORKER_SAMPLE, err);
        taken->timing = b->message.timing;
        taken->position = i;
        memcpy(taken->values, b->message.values, sizeof taken->values);
        memcpy(taken->counters, b->message.counters, sizeof taken->counters);
    }
    return status;
}

/* ---- segments ----------------------------------------------------------------------------------
 */

/* Once a block and call, by workers of their own: each arm against the oracle, which gives it its
 * residual, and the inner iterations of the old build, which all arms then use. */
static EngStatus check_builds(Block *b, EngErr *err)
{
    char how[96];
    EngStatus status = ENG_OK;
    int64_t inner = 0;
    for (int arm = 0; arm < ENG_AB_ARMS && !status && !b->failed; arm++) {
        status = start(b, arm, 0, true, err); /* b->inner is still 0: sized by the worker */
        if (!status) status = wait_for(b, arm, ENG_WORKER_READY, err);
        if (arm == ENG_AB_OLD) inner = b->message.timing.inner;
        if (b->arms[arm].worker.pid > 0) end(b, arm, true, how, sizeof how);
    }
    b->inner = inner;
    return status;
}

static EngStatus run_pairs(Block *b, EngErr *err)
{
    int order[ENG_AB_ARMS];
    char how[96];
    EngStatus status = ENG_OK;
    eng_shuffle(&b->rng, order, ENG_AB_ARMS);
    for (int i = 0; i < ENG_AB_ARMS && !status && !b->failed; i++) {
        status = start(b, order[i], i, false, err);
        if (!status) status = wait_for(b, order[i], ENG_WORKER_READY, err);
    }
    for (int pair = 0; pair < b->ledger->pairs_wanted && !status && !b->failed; pair++)
        status = take_pair(b, pair, err);
    for (int arm = 0; arm < ENG_AB_ARMS && !status && !b->failed; arm++) {
        eng_worker_acknowledge(&b->arms[arm].worker, NULL);
        status = wait_for(b, arm, ENG_WORKER_DONE, err);
        if (!status && !b->failed) end(b, arm, false, how, sizeof how);
    }
    return status;
}

static int choose_cpu(const Block *b)
{
    cpu_set_t set;
    const char *how = getenv("ENG_AB_PIN");
    if (!how || sched_getaffinity(0, sizeof set, &set)) return -1;
    int n = CPU_COUNT(&set), wanted = b->segment % n;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &set) && !wanted--) return cpu;
    return -1;
}

static EngStatus run_segment(Block *b, bool first, EngErr *err)
{
    EngDb *db = b->where->db;
    EngEvidence before, after;
    char evidence[ENG_EVIDENCE_BYTES];
    EngStatus status =
        eng_db_segment_start(db, b->ledger->block_id, b->ledger->seed, &b->segment, err);
    if (status) return status;
    eng_rng_seed_at(&b->rng, b->ledger->seed, (uint64_t)b->segment + 1);
    b->cpu = choose_cpu(b);
    eng_evidence_read(&before);
    if (first) status = check_builds(b, err);
    if (!status && !b->failed) status = run_pairs(b, err);
    end_all(b);
    if (!status && !b->failed) status = store_segment(b, err);
    if (status) return status;
    eng_evidence_read(&after);
    eng_evidence_delta_json(&before, &after, evidence, sizeof evidence);
    return eng_db_segment_finish(db, b->ledger->block_id, b->segment, b->failed, evidence, err);
}

/* ---- block -------------------------------------------------------------------------------------
 */

/* All of it or nothing, so that a resumed block finds its points either open or over. */
static EngStatus finish(Block *b, const char *stop_reason, EngErr *err)
{
    EngRunResult *result = b->where->result;
    EngDb *db = b->where->db;
    EngStatus status = eng_db_begin(db, err);
    if (status) return status;
    for (int arm = 0; arm < ENG_AB_ARMS && !status; arm++) {
        const Arm *a = &b->arms[arm];
        EngOutcome outcome = a->failed      ? b->outcome
                             : a->n_samples ? ENG_OUTCOME_MEASURED
                                            : ENG_OUTCOME_SKIPPED;
        bool measured = outcome == ENG_OUTCOME_MEASURED;
        result->measured += measured;
        result->skipped += outcome == ENG_OUTCOME_SKIPPED;
        result->failed += outcome == ENG_OUTCOME_FAILED;
        result->wrong += outcome == ENG_OUTCOME_WRONG;
        status = eng_db_point_done(db, b->ledger->block_id, b->ledger->points[arm].plan->point_key,
                                   outcome, measured ? NULL : b->reason,
                                   measured ? stop_reason : NULL, err);
    }
    if (!status) status = eng_db_block_done(db, b->ledger->block_id, err);
    if (!status) status = eng_db_commit(db, err);
    if (status) eng_db_rollback(db);
    return status;
}

/* Segments still to take, until the budget is spent; *stop_reason says what ended them. */
static EngStatus run_segments(Block *b, const char **stop_reason, EngErr *err)
{
    int wanted = b->ledger->segments_wanted, have = 0;
    int64_t begin = eng_now_ns(), budget = b->task->budget_ns;
    EngStatus status = eng_db_whole_segments(b->where->db, b->ledger->block_id,
                                             b->ledger->pairs_wanted, &have, err);
    *stop_reason = "pairs reached";
    for (int s = have; s < wanted && !status && !b->failed; s++) {
        status = run_segment(b, s == have, err);
        if (!budget || eng_now_ns() - begin <= budget || s + 1 == wanted) continue;
        *stop_reason = ENG_AB_CUT_SHORT;
        break;
    }
    return status;
}

EngStatus eng_ab_block(const EngAbTask *task, const EngBlockContext *where,
                       const EngLedgerBlock *ledger, EngErr *err)
{
    Block *b;
    const char *stop_reason, *clock = eng_judging_clock(ledger->experiment);
    if (ledger->n_points != ENG_AB_ARMS || !clock)
        return ENG_FAIL(err, ENG_INTERNAL, "a block of %d points is none of an A/B run",
                        ledger->n_points);
    EngStatus status = eng_alloc_or((void **)&b, 1, sizeof *b, "a block", err);
    if (status) return status;
    *b = (Block){.task = task, .where = where, .ledger = ledger};
    b->on_wall = !strcmp(clock, "wall");
    for (int arm = 0; arm < ENG_AB_ARMS; arm++)
        b->arms[arm] = (Arm){.worker.pid = -1, .n_samples = ledger->points[arm].n_samples};
    status = eng_alloc_or((void **)&b->taken, (size_t)ledger->pairs_wanted * ENG_AB_ARMS,
                          sizeof(Taken), "a segment's samples", err);
    if (!status) status = eng_db_block_start(where->db, ledger->block_id, err);
    if (!status) status = run_segments(b, &stop_reason, err);
    if (!status) status = finish(b, stop_reason, err);
    eng_free(b->taken);
    eng_free(b);
    return status;
}
