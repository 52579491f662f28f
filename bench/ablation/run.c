/* Training one arm; see run.h. What is looked at afterwards is in judge.c. */
#include "bench/ablation/run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/ablation/gates.h"
#include "bench/ablation/judge.h"

const EngMetricDef eng_train_metrics[ENG_TM_COUNT] = {
    {"loss", "nats/token", -1, "none", "held-out cross-entropy"},
    {"bits_per_byte", "bit/B", -1, "none", "the same per byte of text"},
    {"suppressed_loss", "nats/token", -1, "none", "the same with Engram's output at zero"},
    {"train_loss", "nats/token", -1, "none", "mean over the last twentieth of training"},
    {"load_max", "", -1, "none", "busiest expert over the mean, worst layer, last quarter"},
    {"dead_share", "", -1, "none",
     "experts below a tenth of the mean load, worst layer, last quarter"},
    {"collapsed", "", -1, "none", "1: the router has collapsed by either of these"},
    {"experts", "", 0, "none", "routed experts per layer"},
    {"table_rows", "rows", 0, "none", "of all modules and heads"},
    {"table_parameters", "", 0, "none", "of all tables"},
    {"p_total", "", 0, "none", "parameters without embedding and head"},
    {"p_active", "", 0, "none", "of these, used by a token"},
    {"residual", "", 0, "none", "p_total over that at rho = 1, less 1"},
    {"rho_actual", "", 0, "none", "rho as it came out with whole experts"},
    {"tokens", "tokens", 0, "none", "trained on"},
    {"flops_per_token", "flop", 0, "none", "forward and backward"},
    {"cpu_s", "s", -1, "cpu", "CPU time of training"},
    {"tokens_per_cpu_s", "tokens/s", +1, "cpu", "rate of training"},
    {"threads_used", "", 0, "none", "that it ended with"},
    {"other_threads", "", 0, "none", "that an earlier part ran with, 0: the same throughout"},
};

/* ---- a record per step ---- */

typedef struct Step {
    int64_t tokens;
    float loss, load_max, grad_norm;
    int32_t unused;
} Step;

typedef struct Job {
    const EngTrainRun *run;
    EngTrainer *trainer;
    EngArena *arena;
    char *checkpoint, *steps_path, *gates_path, *states, *result;
    Step *steps;
    int64_t n_steps, max_steps;
    int64_t saved_ns, quarter; /* quarter: tokens from which on loads are counted */
    bool stopped, due;
    int other_threads;
    json_t *looks; /* at gates: [{tokens, series, histograms}, ..] */
    char failed[160];
    EngTrainPoint last;
} Job;

static bool on_step(void *context, const EngTrainPoint *point)
{
    Job *job = context;
    const EngTrainRun *run = job->run;
    if (job->n_steps < job->max_steps)
        job->steps[job->n_steps++] = (Step){.tokens = point->tokens,
                                            .loss = (float)point->loss,
                                            .load_max = (float)point->load_max,
                                            .grad_norm = (float)point->grad_norm,
                                            .unused = point->unused};
    if (run->progress) {
        run->progress->tokens = point->tokens;
        run->progress->loss = point->loss;
    }
    job->stopped = run->stop && *run->stop;
    job->due = eng_now_ns() - job->saved_ns >= run->checkpoint_ns;
    return !job->stopped && !job->due;
}

/* The records go first: a checkpoint without them could not be gone on with. */
static EngStatus save(Job *job, EngErr *err)
{
    EngStatus status =
        eng_file_write(job->steps_path, job->steps, (size_t)job->n_steps * sizeof *job->steps, err);
    if (!status) status = eng_trainer_save(job->trainer, job->checkpoint, err);
    job->saved_ns = eng_now_ns();
    return status;
}

static int64_t tokens_done(const Job *job)
{
    return job->n_steps ? job->steps[job->n_steps - 1].tokens : 0;
}

/* Steps up to the checkpoint, which may be older than the records. */
static EngStatus read_steps(Job *job, int64_t step, EngErr *err)
{
    char *bytes = NULL;
    size_t n = 0;
    EngStatus status = eng_file_read(job->steps_path, &bytes, &n, err);
    if (!status &&
        (n % sizeof(Step) || (int64_t)(n / sizeof(Step)) < step || step > job->max_steps))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: %zu bytes, too few for the %lld steps of %s",
                          job->steps_path, n, (long long)step, job->checkpoint);
    if (!status) {
        memcpy(job->steps, bytes, (size_t)step * sizeof(Step));
        job->n_steps = step;
    }
    eng_free(bytes);
    return status;
}

/* What was seen of gates before; an earlier build did not look. What lies behind the checkpoint is
 * looked at again. */
static EngStatus read_looks(Job *job, int64_t tokens, EngErr *err)
{
    char *text = NULL;
    size_t n = 0;
    EngStatus status = eng_file_read(job->gates_path, &text, &n, err);
    if (status == ENG_NOT_FOUND) return ENG_OK;
    if (status) return status;
    json_t *looks = json_loadb(text, n, 0, NULL);
    eng_free(text);
    if (!json_is_array(looks))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: cannot be read", job->gates_path);
    for (size_t i = 0; i < json_array_size(looks) && !status; i++) {
        json_t *one = json_array_get(looks, i);
        if (json_integer_value(json_object_get(one, "tokens")) > tokens) continue;
        if (json_array_append(job->looks, one))
            status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for gates");
    }
    json_decref(looks);
    return status;
}

static EngStatus resume(Job *job, EngErr *err)
{
    EngTrainResult at;
    if (!eng_file_exists(job->checkpoint)) return ENG_OK;
    EngStatus status = eng_trainer_load(job->trainer, job->checkpoint, &job->other_threads, err);
    /* Where the checkpoint stands is told by a run that ends at once. */
    if (!status) status = eng_trainer_run(job->trainer, 1, NULL, NULL, &at, err);
    if (!status) status = read_steps(job, at.last.step, err);
    if (!status) status = read_looks(job, tokens_done(job), err);
    if (status) {
        char why[ENG_ERR_TEXT_BYTES];
        snprintf(why, sizeof why, "%s", err ? err->text : "");
        return ENG_FAIL(err, status, "%s; without %s it starts over", why, job->checkpoint);
    }
    job->last = at.last;
    if (job->other_threads)
        eng_warn("train", "%s: went on with %d threads after %d: sums round differently",
                 job->run->who, job->run->arm->config.model.threads, job->other_threads);
    return ENG_OK;
}

/* ---- training ---- */

static EngStatus train_until(Job *job, int64_t until, EngErr *err)
{
    EngStatus status = ENG_OK;
    while (!status && !job->failed[0] && tokens_done(job) < until) {
        EngTrainResult result;
        status = eng_trainer_run(job->trainer, until, on_step, job, &result, err);
        if (status) return status;
        job->last = result.last;
        snprintf(job->failed, sizeof job->failed, "%s", result.failed);
        if (job->stopped || job->due) status = save(job, err);
        if (!status && job->stopped)
            status = ENG_FAIL(err, ENG_INTERRUPTED, "stopped at %lld of %lld tokens",
                              (long long)tokens_done(job), (long long)job->run->arm->config.tokens);
        if (!job->due && !job->stopped && tokens_done(job) < until && !job->failed[0])
            return ENG_FAIL(err, ENG_INTERNAL, "training ended at %lld of %lld tokens",
                            (long long)tokens_done(job), (long long)until);
        job->due = false;
    }
    return status;
}

static bool is_looked(const Job *job, int64_t tokens)
{
    for (size_t i = 0; i < json_array_size(job->looks); i++)
        if (json_integer_value(json_object_get(json_array_get(job->looks, i), "tokens")) == tokens)
            return true;
    return false;
}

static EngStatus look_at_gates(Job *job, int percent, EngErr *err)
{
    EngTrainResultText out = {0};
    EngStatus status = eng_train_result_begin(&out, err);
    if (!status) status = eng_train_gates_at(job->trainer, job->run->data, percent, &out, err);
    if (!status) {
        json_t *look = json_pack("{s:I, s:O, s:O}", "tokens", (json_int_t)tokens_done(job),
                                 "series", out.series, "histograms", out.histograms);
        char *text = NULL;
        if (!json_array_append_new(job->looks, look)) text = json_dumps(job->looks, JSON_COMPACT);
        status = text ? eng_file_write(job->gates_path, text, strlen(text), err)
                      : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for gates");
        free(text);
    }
    eng_train_result_free(&out);
    return status;
}

/* To `until`, with looks at gates on the way. A point of a shorter run may be that before it. */
static EngStatus train_looking(Job *job, int64_t until, EngErr *err)
{
    const EngTrainConfig *config = &job->run->arm->config;
    EngStatus status = ENG_OK;
    for (int i = 0; i < ENG_GATE_POINTS && !status && eng_train_has_gates(config); i++) {
        int64_t step = (job->max_steps * eng_gate_points[i] + 99) / 100;
        int64_t mark = step * config->batch_tokens;
        if (mark > until) break;
        if (mark < tokens_done(job) || is_looked(job, mark)) continue;
        status = train_until(job, mark, err);
        if (!status && !job->failed[0]) status = look_at_gates(job, eng_gate_points[i], err);
    }
    return status ? status : train_until(job, until, err);
}

static EngStatus train(Job *job, EngErr *err)
{
    int64_t done = tokens_done(job);
    EngStatus status = train_looking(job, job->quarter, err);
    /* A checkpoint past the mark has the counts since the mark already. */
    if (!status && done <= job->quarter) eng_trainer_reset_counts(job->trainer);
    int64_t whole = job->max_steps * job->run->arm->config.batch_tokens;
    if (!status) status = train_looking(job, whole, err);
    return status;
}

/* ---- result ---- */

/* Means over at most this many stretches of training. */
#define CURVE_POINTS 40

static EngStatus put_curve(const Job *job, EngTrainResultText *out, EngErr *err)
{
    int64_t n = job->n_steps, points = n < CURVE_POINTS ? n : CURVE_POINTS;
    EngStatus status = ENG_OK;
    for (int64_t p = 0; p < points && !status; p++) {
        int64_t from = n * p / points, to = n * (p + 1) / points;
        double loss = 0, load = 0, norm = 0, unused = 0;
        for (int64_t i = from; i < to; i++) {
            loss += job->steps[i].loss;
            load += job->steps[i].load_max;
            norm += job->steps[i].grad_norm;
            unused += job->steps[i].unused;
        }
        double steps = (double)(to - from);
        int64_t at = job->steps[to - 1].tokens;
        status = eng_train_put(out, "train_loss", at, loss / steps, err);
        if (!status) status = eng_train_put(out, "load_max", at, load / steps, err);
        if (!status) status = eng_train_put(out, "grad_norm", at, norm / steps, err);
        if (!status) status = eng_train_put(out, "unused_experts", at, unused / steps, err);
    }
    return status;
}

static double late_loss(const Job *job)
{
    int64_t from = job->n_steps - job->n_steps / 20 - 1;
    double sum = 0;
    for (int64_t i = from < 0 ? 0 : from; i < job->n_steps; i++) sum += job->steps[i].loss;
    return job->n_steps ? sum / (double)(job->n_steps - (from < 0 ? 0 : from)) : NAN;
}

static void count_metrics(const Job *job, double *m)
{
    const EngArm *arm = job->run->arm;
    for (int i = 0; i < ENG_TM_COUNT; i++) m[i] = NAN;
    m[ENG_TM_TRAIN_LOSS] = late_loss(job);
    m[ENG_TM_EXPERTS] = arm->config.model.experts;
    m[ENG_TM_TABLE_ROWS] = (double)arm->account.table_rows;
    m[ENG_TM_TABLE_PARAMETERS] = (double)arm->account.tables;
    m[ENG_TM_P_TOTAL] = (double)arm->account.total;
    m[ENG_TM_P_ACTIVE] = (double)arm->account.active;
    m[ENG_TM_RESIDUAL] = arm->residual;
    m[ENG_TM_RHO] = arm->rho;
    m[ENG_TM_TOKENS] = (double)tokens_done(job);
    m[ENG_TM_FLOPS_PER_TOKEN] = arm->account.flops_per_token;
    m[ENG_TM_CPU_S] = job->last.cpu_s;
    if (job->last.cpu_s > 0)
        m[ENG_TM_TOKENS_PER_CPU_S] = (double)tokens_done(job) / job->last.cpu_s;
    m[ENG_TM_THREADS] = arm->config.model.threads;
    m[ENG_TM_OTHER_THREADS] = job->other_threads;
}

static EngStatus finish(Job *job, EngErr *err)
{
    EngTrainResultText out = {0};
    double metrics[ENG_TM_COUNT];
    count_metrics(job, metrics);
    EngStatus status = eng_train_result_begin(&out, err);
    if (!status) status = put_curve(job, &out, err);
    for (size_t i = 0; i < json_array_size(job->looks) && !status; i++)
        status = eng_train_result_add(&out, json_array_get(job->looks, i), err);
    if (!status && !job->failed[0])
        status = eng_train_judge(job->trainer, job->run, job->states, metrics, &out, err);
    if (!status && !job->failed[0] && !isfinite(metrics[ENG_TM_LOSS]))
        snprintf(job->failed, sizeof job->failed, "held-out loss is %g", metrics[ENG_TM_LOSS]);
    if (!status) status = eng_train_result_write(&out, job->failed, metrics, job->result, err);
    eng_train_result_free(&out);
    if (status) return status;
    unlink(job->checkpoint);
    unlink(job->steps_path);
    unlink(job->gates_path);
    return ENG_OK;
}

/* ---- from first to last ---- */

/* Two sweeps may want one model at the same time, and share a folder: the second leaves it to the
 * first. A lock per key, in one file: the byte whose number the key is. It goes with its
 * descriptor, however the process ends. */
static EngStatus lock_key(const EngTrainRun *run, int *fd, EngErr *err)
{
    char path[1024];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    snprintf(path, sizeof path, "%.15s", run->key); /* fits an offset */
    lock.l_start = (off_t)strtoull(path, NULL, 16);
    snprintf(path, sizeof path, "%s/lock", run->folder);
    EngStatus status = eng_make_dirs(run->folder, err);
    if (status) return status;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0) return ENG_FAIL(err, ENG_IO, "%s: cannot open: %s", path, strerror(errno));
    if (!fcntl(*fd, F_OFD_SETLK, &lock)) return ENG_OK;
    if (errno == EAGAIN || errno == EACCES)
        return ENG_FAIL(err, ENG_INTERRUPTED, "another process trains it");
    return ENG_FAIL(err, ENG_IO, "%s: cannot be locked: %s", path, strerror(errno));
}

static EngStatus open_job(Job *job, EngErr *err)
{
    const EngTrainRun *run = job->run;
    const EngTrainConfig *config = &run->arm->config;
    job->arena = eng_arena_create();
    const char *const endings[5] = {"ckpt", "steps", "gates", "states", "json"};
    char **const paths[5] = {&job->checkpoint, &job->steps_path, &job->gates_path, &job->states,
                             &job->result};
    job->looks = json_array();
    if (!job->looks) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a run");
    for (int i = 0; i < 5; i++) {
        if (job->arena)
            *paths[i] = eng_arena_printf(job->arena, "%s/%s.%s", run->folder, run->key, endings[i]);
        if (!*paths[i]) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a run");
    }
    job->max_steps = config->tokens / config->batch_tokens;
    job->quarter = job->max_steps * 3 / 4 * config->batch_tokens;
    EngTrainConfig whole = *config;
    whole.token_map = run->data->map.map;
    whole.vocab_compressed = run->data->map.n_compressed;
    EngStatus status = eng_alloc_or((void **)&job->steps, (size_t)job->max_steps + 1,
                                    sizeof *job->steps, "records of steps", err);
    for (int i = 0; i < 5; i++) eng_writer_sweep(*paths[i]);
    if (!status) status = eng_trainer_create(&whole, &job->trainer, err);
    if (!status)
        status = eng_trainer_data(job->trainer, run->data->train.ids, run->data->train.n, err);
    return status;
}

EngStatus eng_train_run(const EngTrainRun *run, EngErr *err)
{
    Job job = {.run = run, .saved_ns = eng_now_ns()};
    char result[1024];
    int lock = -1;
    snprintf(result, sizeof result, "%s/%s.json", run->folder, run->key);
    EngStatus status = lock_key(run, &lock, err);
    if (!status && !eng_file_exists(result)) {
        status = open_job(&job, err);
        if (!status) status = resume(&job, err);
        if (!status) status = train(&job, err);
        if (!status) status = finish(&job, err);
    }
    eng_trainer_destroy(job.trainer);
    eng_free(job.steps);
    json_decref(job.looks);
    eng_arena_destroy(job.arena);
    if (lock >= 0) close(lock);
    return status ? eng_err_prefix(err, "%s", run->who) : ENG_OK;
}
