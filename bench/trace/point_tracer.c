/* See point_tracer.h. */
#include "bench/trace/point_tracer.h"

#include "base/mem.h"
#include "bench/trace/hook.h"
#include "bench/trace/recording.h"

#define CHUNKS 256 /* 64 MiB at most, made as threads need them */

typedef struct Context {
    EngTracer tracer;
    EngRecordHead *head;
    const char *const *argv;
    const char *version;
} Context;

static const char *refusal(void *opaque)
{
    (void)opaque;
    return eng_hook_refusal();
}

static EngStatus prepare(void *opaque, EngErr *err)
{
    Context *context = opaque;
    if (!context->head) context->head = eng_record_map(CHUNKS);
    return context->head ? ENG_OK : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a trace");
}

static void start(void *opaque)
{
    eng_hook_start(((Context *)opaque)->head);
}

static void stop(void *opaque)
{
    eng_hook_stop(((Context *)opaque)->head);
}

static EngStatus save(void *opaque, const char *path, EngTraceSaved *saved, EngErr *err)
{
    Context *context = opaque;
    EngRecordHead *head = context->head;
    EngNsys *nsys;
    EngRecordingCounts counts;
    const EngNsysSession session = {.start_ns = head->start_ns,
                                    .utc_ns = head->utc_ns,
                                    .duration_ns = head->stop_ns - head->start_ns,
                                    .version = context->version,
                                    .argv = context->argv,
                                    .pid = head->pid};
    EngStatus status = eng_nsys_create(path, &session, &nsys, err);
    if (status) return status;
    status = eng_recording_put(nsys, &head, 1, session.start_ns, &counts, err);
    if (status) {
        eng_nsys_abort(nsys);
        return status;
    }
    *saved = (EngTraceSaved){.ranges = counts.ranges, .dropped = counts.dropped};
    return eng_nsys_commit(nsys, err);
}

EngTracer *eng_point_tracer_create(const char *const *argv, const char *version)
{
    Context *context = eng_alloc(sizeof *context);
    if (!context) return NULL;
    context->argv = argv;
    context->version = version;
    context->tracer = (EngTracer){.context = context,
                                  .refusal = refusal,
                                  .prepare = prepare,
                                  .start = start,
                                  .stop = stop,
                                  .save = save};
    return &context->tracer;
}

void eng_point_tracer_destroy(EngTracer *tracer)
{
    if (!tracer) return;
    Context *context = tracer->context;
    eng_record_unmap(context->head);
    eng_free(context);
}
