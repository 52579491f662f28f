/* Training runs side by side: a process each, their results into ledger file and database. See
 * sweep.h. */
#include "bench/ablation/jobs.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#define POLL_NS 100000000
#define BUSY_NS 2000000000

/* What a run and its parent tell each other while it lives: in memory that both see. */
typedef struct Shared {
    volatile sig_atomic_t stop; /* the parent's: save a checkpoint and end */
    EngTrainProgress progress;
    EngStatus status;
    char error[ENG_ERR_TEXT_BYTES];
} Shared;

typedef struct Job {
    pid_t pid; /* 0: free */
    int item;
    int64_t started_ns;
} Job;

typedef struct Runs {
    EngTrainSweep *sweep;
    const EngBlockContext *where;
    const EngLedgerBlock *block;
    int segment;
    Shared *shared; /* [jobs] */
    Job jobs[ENG_TRAIN_MAX_JOBS];
    bool *over;             /* [n_items] nothing is left to do, or nothing was */
    int *started;           /* [n_items] */
    int64_t *not_before_ns; /* [n_items] another process trains it: when to look again */
    int n_over, n_wanted, pair;
    int64_t begun_ns, shown_ns;
} Runs;

/* ---- the child ---- */

static void child_main(const Runs *runs, const EngTrainItem *item, Shared *shared)
{
    const EngTrainSweepOptions *options = &runs->sweep->options;
    EngErr err = {0};
    signal(SIGINT, SIG_IGN); /* signals are the parent's business, which sets `stop` */
    signal(SIGTERM, SIG_IGN);
    eng_db_forget_in_child(runs->where->db);
    EngTrainRun run = {.arm = &item->arm,
                       .data = item->data,
                       .folder = options->folder,
                       .key = item->key,
                       .who = item->who[0] ? item->who : "train",
                       .checkpoint_ns = options->checkpoint_ns,
                       .stop = &shared->stop,
                       .progress = &shared->progress};
    EngStatus status = eng_train_run(&run, &err);
    if (status) snprintf(shared->error, sizeof shared->error, "%s", err.text);
    shared->status = status;
    _exit(eng_status_exit_code(status));
}

static EngStatus start_job(Runs *runs, int slot, int item, EngErr *err)
{
    Shared *shared = &runs->shared[slot];
    const EngTrainItem *of = &runs->sweep->items[item];
    memset(shared, 0, sizeof *shared);
    EngStatus status =
        eng_db_point_start(runs->where->db, runs->block->block_id, of->point->point_key, err);
    if (status) return status;
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) return ENG_FAIL(err, ENG_NO_MEMORY, "cannot fork a run: %s", strerror(errno));
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        child_main(runs, of, shared);
    }
    runs->jobs[slot] = (Job){.pid = pid, .item = item, .started_ns = eng_now_ns()};
    runs->started[item] = 1;
    return ENG_OK;
}

/* ---- results ---- */

/* {name: [[step, value], ..]} */
static EngStatus put_series(const EngTrainSweep *sweep, EngDb *db, const EngSampleId *id,
                            const char *text, EngErr *err)
{
    json_t *series = json_loads(text, 0, NULL), *values;
    const char *name;
    EngStatus status =
        json_is_object(series)
            ? ENG_OK
            : ENG_FAIL(err, ENG_BAD_DATA, "%s: column series of %.8s is no JSON object",
                       sweep->ledger.path, id->point_key);
    json_object_foreach(series, name, values)
    {
        for (size_t i = 0; i < json_array_size(values) && !status; i++) {
            const json_t *pair = json_array_get(values, i);
            status = eng_db_put_series(db, id, name, json_integer_value(json_array_get(pair, 0)),
                                       json_number_value(json_array_get(pair, 1)), err);
        }
    }
    json_decref(series);
    return status;
}

#define MOST_BINS 256

/* [{name, layer, stream, scale, lo, hi, counts}, ..] */
static EngStatus put_histograms(const Runs *runs, const EngSampleId *id, const char *text,
                                EngErr *err)
{
    json_t *all = json_loads(text, 0, NULL), *one;
    size_t i;
    EngStatus status = ENG_OK;
    json_array_foreach(all, i, one)
    {
        int64_t counts[MOST_BINS];
        const json_t *bins = json_object_get(one, "counts");
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *scale = json_string_value(json_object_get(one, "scale"));
        int n = (int)json_array_size(bins);
        if (status || n > MOST_BINS || !name || !scale) continue;
        for (int b = 0; b < n; b++) counts[b] = json_integer_value(json_array_get(bins, (size_t)b));
        status = eng_db_put_histogram(
            runs->where->db, id, name, (int)json_integer_value(json_object_get(one, "layer")),
            (int)json_integer_value(json_object_get(one, "stream")), scale,
            json_number_value(json_object_get(one, "lo")),
            json_number_value(json_object_get(one, "hi")), counts, n, err);
    }
    json_decref(all);
    return status;
}

/* provenance NULL: it was trained here. */
static EngStatus store(Runs *runs, int i, const EngTrainRecord *record, const char *provenance,
                       int64_t wall_ns, EngErr *err)
{
    EngDb *db = runs->where->db;
    const EngTrainItem *item = &runs->sweep->items[i];
    EngSampleId id = {.block_id = runs->block->block_id,
                      .point_key = item->point->point_key,
                      .segment = runs->segment,
                      .pair = runs->pair++};
    double cpu_s = record->metrics[ENG_TM_CPU_S];
    EngTiming timing = {
        .inner = 1, .wall_ns = wall_ns, .cpu_ns = cpu_s > 0 ? (int64_t)(cpu_s * 1e9) : 0};
    bool measured = !strcmp(record->outcome, "measured");
    EngStatus status = eng_db_begin(db, err);
    if (status) return status;
    status =
        eng_db_put_sample(db, &id, 0, false, &timing, &eng_experiment_train, record->metrics, err);
    if (!status) status = put_series(runs->sweep, db, &id, record->series, err);
    if (!status && record->histograms) status = put_histograms(runs, &id, record->histograms, err);
    if (!status)
        status = eng_db_point_origin(db, id.point_key, provenance ? "imported" : "measured",
                                     provenance ? provenance : "engram run", err);
    if (!status)
        status = eng_db_point_done(
            db, id.block_id, id.point_key, measured ? ENG_OUTCOME_MEASURED : ENG_OUTCOME_FAILED,
            measured ? NULL : record->reason, measured ? "finished" : NULL, err);
    if (!status) status = eng_db_commit(db, err);
    if (status) {
        eng_db_rollback(db);
        return status;
    }
    runs->over[i] = true;
    runs->n_over++;
    EngRunResult *result = runs->where->result;
    if (result) measured ? result->measured++ : result->failed++;
    if (runs->where->tick) runs->where->tick(runs->where->tick_context);
    return ENG_OK;
}

/* A run that ended without a result: no fault of the model's, so the ledger does not hear of it.
 * Whoever started the sweep says why, when it is over. */
static EngStatus give_up(Runs *runs, int i, const char *reason, EngErr *err)
{
    const EngTrainItem *item = &runs->sweep->items[i];
    runs->over[i] = true;
    runs->n_over++;
    if (runs->where->result) runs->where->result->failed++;
    return eng_db_point_done(runs->where->db, runs->block->block_id, item->point->point_key,
                             ENG_OUTCOME_FAILED, reason, NULL, err);
}

/* The run's K.json into ledger file and database. */
static EngStatus take_result(Runs *runs, int i, int64_t wall_ns, EngErr *err)
{
    EngTrainSweep *sweep = runs->sweep;
    const EngTrainItem *item = &sweep->items[i];
    char utc[32];
    EngArena *arena = eng_arena_create();
    EngTrainRecord record = {.key = item->key,
                             .axes = item->who,
                             .finished_utc = utc,
                             .machine = sweep->session->machine.cpu_model,
                             .build = sweep->session->build.commit,
                             .data = item->data->digest,
                             .manifest = item->manifest};
    eng_utc_now(utc, sizeof utc);
    char *path =
        arena ? eng_arena_printf(arena, "%s/%s.json", sweep->options.folder, item->key) : NULL;
    EngStatus status = path ? eng_train_result_read(path, arena, &record, err)
                            : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a result");
    if (!status && !eng_train_ledger_find(&sweep->ledger, item->key))
        status = eng_train_ledger_append(&sweep->ledger, &record, err);
    if (!status) status = store(runs, i, &record, NULL, wall_ns, err);
    if (!status && record.metrics[ENG_TM_COLLAPSED] > 0)
        eng_warn("train",
                 "%s: the router has collapsed (busiest expert %.1f times the mean, %.0f %% "
                 "idle)",
                 item->who, record.metrics[ENG_TM_LOAD_MAX],
                 100 * record.metrics[ENG_TM_DEAD_SHARE]);
    eng_arena_destroy(arena);
    return status;
}

const char *eng_train_origin(EngTrainSweep *sweep, const EngTrainItem *item, EngErr *err)
{
    const EngTrainRecord *record = eng_train_ledger_find(&sweep->ledger, item->key);
    const char *origin =
        eng_arena_printf(sweep->arena, "%s: trained on %s, build %.12s", sweep->ledger.path,
                         record->machine, record->build[0] ? record->build : "unknown");
    if (!origin) ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a sweep");
    return origin;
}

/* A run that the ledger file has, and this folder has not. */
static EngStatus take_record(Runs *runs, int i, const EngTrainRecord *record, EngErr *err)
{
    const char *origin = eng_train_origin(runs->sweep, &runs->sweep->items[i], err);
    return origin ? store(runs, i, record, origin, 0, err) : ENG_NO_MEMORY;
}

/* ---- side by side ---- */

bool eng_train_has_result(const EngTrainSweep *sweep, const EngTrainItem *item)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.json", sweep->options.folder, item->key);
    return eng_file_exists(path);
}

/* Two points may be one model (rho = 1 with any engram_at): it is trained once. */
static bool runs_already(const Runs *runs, int i)
{
    for (int slot = 0; slot < runs->sweep->options.jobs; slot++) {
        const Job *job = &runs->jobs[slot];
        if (job->pid && !strcmp(runs->sweep->items[job->item].key, runs->sweep->items[i].key))
            return true;
    }
    return false;
}

/* Fills free places; what needs no training is stored at once. */
static EngStatus fill(Runs *runs, EngErr *err)
{
    EngTrainSweep *sweep = runs->sweep;
    EngStatus status = ENG_OK;
    for (int i = 0; i < sweep->n_items && !status; i++) {
        const EngTrainItem *item = &sweep->items[i];
        int slot = 0;
        if (runs->over[i] || runs->started[i] || runs_already(runs, i)) continue;
        if (eng_now_ns() < runs->not_before_ns[i]) continue;
        if (eng_train_has_result(sweep, item)) { /* with histograms, which the ledger has not */
            status = take_result(runs, i, 0, err);
            continue;
        }
        const EngTrainRecord *record = eng_train_ledger_find(&sweep->ledger, item->key);
        if (record) {
            status = take_record(runs, i, record, err);
            continue;
        }
        while (slot < sweep->options.jobs && runs->jobs[slot].pid) slot++;
        if (slot == sweep->options.jobs) continue;
        status = start_job(runs, slot, i, err);
    }
    return status;
}

/* A run's error begins with its name, which the reason of a point need not say again. */
static const char *without_name(const char *error, const char *who)
{
    size_t n = strlen(who);
    return n && !strncmp(error, who, n) && !strncmp(error + n, ": ", 2) ? error + n + 2 : error;
}

static EngStatus reap(Runs *runs, int slot, EngErr *err)
{
    Job *job = &runs->jobs[slot];
    int how, item = job->item;
    if (!job->pid || waitpid(job->pid, &how, WNOHANG) != job->pid) return ENG_OK;
    job->pid = 0;
    if (WIFEXITED(how) && !WEXITSTATUS(how))
        return take_result(runs, item, eng_now_ns() - job->started_ns, err);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 130) {
        runs->started[item] = 0; /* stopped, or another process's: it can go on */
        runs->not_before_ns[item] = eng_now_ns() + BUSY_NS;
        return ENG_OK;
    }
    /* Disk or memory: no fault of this run's, and others would go the same way. */
    if (WIFEXITED(how) && WEXITSTATUS(how) == 7)
        return ENG_FAIL(err, runs->shared[slot].status, "%s", runs->shared[slot].error);
    char reason[ENG_ERR_TEXT_BYTES];
    if (WIFSIGNALED(how))
        snprintf(reason, sizeof reason, "the run ended with signal %d", WTERMSIG(how));
    else
        snprintf(reason, sizeof reason, "%s",
                 without_name(runs->shared[slot].error, runs->sweep->items[item].who));
    return give_up(runs, item, reason, err);
}

static void show(Runs *runs, bool force)
{
    int64_t now = eng_now_ns();
    bool line = runs->sweep->options.progress_line;
    if (!force && now - runs->shown_ns < (line ? 1000000000 : 60000000000)) return;
    runs->shown_ns = now;
    fprintf(stderr, line ? "\r[%d/%d]" : "[%d/%d]", runs->n_over, runs->n_wanted);
    for (int slot = 0; slot < runs->sweep->options.jobs; slot++) {
        const Job *job = &runs->jobs[slot];
        if (!job->pid) continue;
        const EngTrainItem *item = &runs->sweep->items[job->item];
        const EngTrainProgress *at = &runs->shared[slot].progress;
        fprintf(stderr, " | %s: %.0f %%, loss %.3f", item->who,
                100.0 * (double)at->tokens / (double)item->arm.config.tokens, at->loss);
    }
    fprintf(stderr, ", %.0f s%s", (double)(now - runs->begun_ns) * 1e-9, line ? "   " : "\n");
    fflush(stderr);
}

static bool is_stopped(const Runs *runs)
{
    const EngBlockContext *where = runs->where;
    if (where->interrupted && *where->interrupted) return true;
    return where->deadline_ns && eng_now_ns() >= where->deadline_ns;
}

/* Runs save a checkpoint and end. */
static void stop_all(Runs *runs)
{
    for (int slot = 0; slot < runs->sweep->options.jobs; slot++)
        if (runs->jobs[slot].pid) runs->shared[slot].stop = 1;
    for (int slot = 0; slot < runs->sweep->options.jobs; slot++)
        while (runs->jobs[slot].pid && waitpid(runs->jobs[slot].pid, NULL, 0) < 0 &&
               errno == EINTR) {
        }
}

static EngStatus run_all(Runs *runs, EngErr *err)
{
    EngStatus status = ENG_OK;
    while (runs->n_over < runs->n_wanted && !status) {
        struct timespec pause = {.tv_nsec = POLL_NS};
        status = fill(runs, err);
        if (!status && is_stopped(runs)) status = ENG_FAIL(err, ENG_INTERRUPTED, "interrupted");
        if (status || runs->n_over == runs->n_wanted) break;
        show(runs, false);
        nanosleep(&pause, NULL);
        for (int slot = 0; slot < runs->sweep->options.jobs && !status; slot++)
            status = reap(runs, slot, err);
    }
    return status;
}

/* Items that the database has already are over before they begin. */
static void mark_wanted(Runs *runs)
{
    const EngTrainSweep *sweep = runs->sweep;
    for (int i = 0; i < sweep->n_items; i++) {
        runs->over[i] = true;
        for (int k = 0; k < runs->block->n_points && runs->over[i]; k++) {
            const EngLedgerPoint *point = &runs->block->points[k];
            if (strcmp(point->plan->point_key, sweep->items[i].point->point_key)) continue;
            runs->over[i] = point->state == ENG_POINT_DONE;
        }
        runs->n_wanted += !runs->over[i];
    }
}

EngStatus eng_train_block(void *context, const EngBlockContext *where, const EngLedgerBlock *block,
                          EngErr *err)
{
    EngTrainSweep *sweep = context;
    size_t n = (size_t)sweep->n_items, bytes = (size_t)sweep->options.jobs * sizeof(Shared);
    Runs runs = {.sweep = sweep,
                 .where = where,
                 .block = block,
                 .begun_ns = eng_now_ns(),
                 .shown_ns = eng_now_ns()};
    runs.over = eng_arena_alloc(sweep->arena, (n + 1) * sizeof *runs.over);
    runs.started = eng_arena_alloc(sweep->arena, (n + 1) * sizeof *runs.started);
    runs.not_before_ns = eng_arena_alloc(sweep->arena, (n + 1) * sizeof *runs.not_before_ns);
    runs.shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EngStatus status = runs.over && runs.started && runs.not_before_ns && runs.shared != MAP_FAILED
                           ? ENG_OK
                           : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for training runs");
    if (status) return status;
    mark_wanted(&runs);
    status = eng_make_dirs(sweep->options.folder, err);
    if (!status) status = eng_db_block_start(where->db, block->block_id, err);
    if (!status)
        status = eng_db_segment_start(where->db, block->block_id, block->seed, &runs.segment, err);
    if (!status) status = run_all(&runs, err);
    if (status) stop_all(&runs);
    EngErr *later = status ? NULL : err;
    EngStatus closed =
        eng_db_segment_finish(where->db, block->block_id, runs.segment, status != 0, "{}", later);
    if (!status) status = closed;
    if (!status) status = eng_db_block_done(where->db, block->block_id, err);
    if (sweep->options.progress_line) fputc('\n', stderr);
    munmap(runs.shared, bytes);
    return status;
}

EngStatus eng_train_liken(void *context, EngDb *db, const char *run_id, EngErr *err)
{
    EngTrainSweep *sweep = context;
    EngStatus status = ENG_OK;
    for (int i = 0; i < sweep->n_items && !status; i++) {
        const char *series = NULL, *key = sweep->items[i].point->point_key;
        char home[ENG_KEY_HEX];
        EngSampleId id = {.block_id = home, .point_key = key};
        status = eng_db_point_lacks(db, run_id, key, "cka:*", home, err);
        if (status || !home[0]) continue;
        status = eng_train_likeness(sweep, i, &series, err);
        if (status || !series) continue;
        status = eng_db_begin(db, err);
        if (status) break;
        status = put_series(sweep, db, &id, series, err);
        if (!status) status = eng_db_commit(db, err);
        if (status) eng_db_rollback(db);
    }
    return status;
}
