/* The traced pass of a block; see tracer.h. A worker lifetime of its own, so that nothing of
 * tracing is in the process that is timed. */
#include "bench/core/tracer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/core/block.h"
#include "bench/core/worker.h"

#define FOLDER "traces"

typedef struct Pass {
    const EngBlockContext *context;
    const EngLedgerBlock *block;
    const EngLedgerPoint **points; /* [n] of the pass */
    EngTracePoint *traced;         /* [n] */
    int n;
    int folder; /* so many characters of the database's path, with the slash */
    int segment;
    EngWorkerMessage message;
} Pass;

/* traces/<point key>-<block>.sqlite in the database's folder: what another run traced stays, and
 * files of merged databases can lie together. */
static EngStatus place_file(const Pass *pass, int i, EngErr *err)
{
    EngTracePoint *traced = &pass->traced[i];
    const char *key = pass->points[i]->plan->point_key, *db = eng_db_path(pass->context->db);
    size_t size = (size_t)pass->folder + sizeof FOLDER + ENG_KEY_HEX + sizeof "-12345678.sqlite";
    EngStatus status = eng_alloc_or((void **)&traced->path, size, 1, "a trace's path", err);
    if (status) return status;
    int n = snprintf(traced->path, size, "%.*s" FOLDER, pass->folder, db);
    status = eng_make_dirs(traced->path, err);
    snprintf(traced->path + n, size - (size_t)n, "/%s-%.8s.sqlite", key, pass->block->block_id);
    traced->id = 0;
    sscanf(key, "%16" SCNx64, &traced->id);
    return status;
}

static EngStatus choose_points(Pass *pass, EngErr *err)
{
    const EngLedgerBlock *block = pass->block;
    EngStatus status = eng_alloc_or((void **)&pass->points, (size_t)block->n_points,
                                    sizeof *pass->points, "a traced pass", err);
    for (int i = 0; i < block->n_points && !status; i++) {
        bool wanted = false;
        if (block->points[i].plan->is_roof) continue;
        status = eng_db_wants_trace(pass->context->db, block->block_id,
                                    block->points[i].plan->point_key, &wanted, err);
        if (wanted) pass->points[pass->n++] = &block->points[i];
    }
    if (status || !pass->n) return status;
    const char *db = eng_db_path(pass->context->db), *slash = strrchr(db, '/');
    pass->folder = slash ? (int)(slash - db) + 1 : 0;
    status = eng_alloc_or((void **)&pass->traced, (size_t)pass->n, sizeof *pass->traced,
                          "a traced pass", err);
    for (int i = 0; i < pass->n && !status; i++) status = place_file(pass, i, err);
    return status;
}

static EngSampleId sample_id(const Pass *pass)
{
    return (EngSampleId){.block_id = pass->block->block_id,
                         .point_key = pass->points[pass->message.point]->plan->point_key,
                         .segment = pass->segment,
                         .pair = pass->message.pair};
}

static EngStatus end_transaction(EngDb *db, EngStatus status, EngErr *err)
{
    if (!status) status = eng_db_commit(db, err);
    if (status) eng_db_rollback(db);
    return status;
}

static EngStatus store_sample(Pass *pass, EngErr *err)
{
    EngSampleId id = sample_id(pass);
    EngDb *db = pass->context->db;
    EngStatus status = eng_db_begin(db, err);
    if (status) return status;
    status = eng_db_put_sample(db, &id, pass->message.position, true, &pass->message.timing,
                               pass->block->experiment, pass->message.values, err);
    return end_transaction(db, status, err);
}

static EngStatus digest_of(const char *path, char hex[ENG_DIGEST_HEX], EngErr *err)
{
    EngMapping map;
    EngStatus status = eng_file_map(path, &map, err);
    if (status) return status;
    status = eng_digest(map.data, map.bytes, hex, err);
    eng_file_unmap(&map);
    return status;
}

static EngStatus save_trace(Pass *pass, EngErr *err)
{
    char hex[ENG_DIGEST_HEX];
    struct stat st;
    EngTraceSaved saved;
    EngSampleId id = sample_id(pass);
    EngDb *db = pass->context->db;
    const EngTracer *tracer = pass->context->tracer;
    const EngTracePoint *traced = &pass->traced[pass->message.point];
    EngStatus status = tracer->save(tracer->context, traced, &saved, err);
    if (!status) status = digest_of(traced->path, hex, err);
    if (!status && stat(traced->path, &st))
        status = ENG_FAIL(err, ENG_IO, "%s: is gone", traced->path);
    eng_kill_point("trace");
    if (!status) status = eng_db_begin(db, err);
    if (status) return status;
    status = eng_db_put_artifact(db, &id, "trace", traced->path + pass->folder, (int64_t)st.st_size,
                                 hex, err);
    if (!status) status = eng_db_put_drops(db, &id, "trace events", saved.dropped, err);
    status = end_transaction(db, status, err);
    eng_kill_point("trace");
    if (!status && saved.dropped)
        eng_warn("trace", "%s: %lld events were dropped", traced->path, (long long)saved.dropped);
    return status;
}

static EngStatus handle(Pass *pass, EngWorker *worker, bool *done, EngErr *err)
{
    EngStatus status = ENG_OK;
    switch (pass->message.event) {
    case ENG_WORKER_SAMPLE:
        status = store_sample(pass, err);
        break;
    case ENG_WORKER_TRACED:
        status = save_trace(pass, err);
        break;
    case ENG_WORKER_POINT_ENDED:
        eng_warn("trace", "%s %s is not traced: %s", pass->block->experiment->name,
                 pass->points[pass->message.point]->plan->variant, pass->message.text);
        break;
    case ENG_WORKER_DONE:
        *done = true;
        return ENG_OK;
    default: /* phases and histograms: nobody waits */
        return ENG_OK;
    }
    if (!status) eng_worker_acknowledge(worker, NULL);
    return status;
}

static bool is_interrupted(const EngBlockContext *context)
{
    return context->interrupted && *context->interrupted;
}

static void forget_database(void *context)
{
    eng_db_forget_in_child(context);
}

/* *how is not empty when the worker was lost. */
static EngStatus receive_all(Pass *pass, EngWorker *worker, bool *done, bool *lost, EngErr *err)
{
    EngStatus status = ENG_OK;
    while (!status && !*done) {
        EngStatus reply = eng_worker_receive(worker, &pass->message, eng_worker_hang_ns(), err);
        if (reply == ENG_NOT_FOUND || reply == ENG_IO) {
            *lost = true;
            return ENG_OK;
        }
        if (!reply)
            status = handle(pass, worker, done, err);
        else if (reply != ENG_INTERRUPTED)
            status = reply;
        if (!status && is_interrupted(pass->context))
            status = ENG_FAIL(err, ENG_INTERRUPTED, "interrupted");
    }
    return status;
}

static EngStatus run_pass(Pass *pass, EngErr *err)
{
    const EngLedgerBlock *block = pass->block;
    EngDb *db = pass->context->db;
    EngWorker worker = {.pid = -1};
    char how[96] = "";
    bool done = false, lost = false;
    const EngPoint **points = eng_alloc_array((size_t)pass->n, sizeof *points);
    if (!points) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a traced pass");
    for (int i = 0; i < pass->n; i++) points[i] = &pass->points[i]->plan->point;
    EngWorkerTask task = {.resources = pass->context->resources,
                          .points = points,
                          .n_points = pass->n,
                          .seed = block->seed,
                          .pairs = block->settings.trace,
                          .tracer = pass->context->tracer,
                          .traced = pass->traced};
    EngStatus status = eng_db_segment_start(db, block->block_id, task.seed, &pass->segment, err);
    if (!status) status = eng_worker_start(&worker, &task, forget_database, db, err);
    if (!status) status = receive_all(pass, &worker, &done, &lost, err);
    eng_worker_end(&worker, status || lost, how, sizeof how);
    if (lost) eng_warn("trace", "the traced worker ended with %s", how);
    if (!status)
        status = eng_db_segment_finish(db, block->block_id, pass->segment, !done,
                                       "{\"traced\":true}", err);
    eng_free(points);
    return status;
}

EngStatus eng_block_trace(const EngBlockContext *context, const EngLedgerBlock *block, EngErr *err)
{
    const EngTracer *tracer = context->tracer;
    Pass *pass;
    if (!tracer || !block->settings.trace || block->experiment->counted) return ENG_OK;
    const char *refusal = tracer->refusal(tracer->context);
    if (refusal) {
        eng_warn("trace", "%s: no traces: %s", block->experiment->name, refusal);
        return ENG_OK;
    }
    EngStatus status = eng_alloc_or((void **)&pass, 1, sizeof *pass, "a traced pass", err);
    if (status) return status;
    pass->context = context;
    pass->block = block;
    status = choose_points(pass, err);
    if (!status && pass->n) status = tracer->prepare(tracer->context, err);
    if (!status && pass->n) status = run_pass(pass, err);
    for (int i = 0; pass->traced && i < pass->n; i++) eng_free(pass->traced[i].path);
    eng_free(pass->traced);
    eng_free(pass->points);
    eng_free(pass);
    return status;
}
