/* See point_tracer.h. */
#include "bench/trace/point_tracer.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/trace/cupti.h"
#include "bench/trace/hook.h"
#include "bench/trace/recording.h"

#define CHUNKS 256 /* 64 MiB at most, made as threads need them */

/* What worker and parent share besides the recording. */
typedef struct Shared {
    bool written; /* by the worker, since it recorded GPU work */
    EngTraceSaved saved;
} Shared;

typedef struct Context {
    EngTracer tracer;
    EngRecordHead *head;
    Shared *shared;
    EngCupti *cupti; /* of the worker, NULL: none */
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
    if (!context->shared) {
        void *shared =
            mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared != MAP_FAILED) context->shared = shared;
    }
    return context->head && context->shared
               ? ENG_OK
               : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a trace");
}

/* ---- in the worker -----------------------------------------------------------------------------
 */

/* CUPTI is tried only where there is a device, or where a test brings a library of its own. */
static bool has_device(void)
{
    return !access("/dev/nvidiactl", R_OK) || getenv("ENG_CUPTI_LIBRARY");
}

/* CUPTI has to be there before the first CUDA call; it is started for each point. */
static void open_cupti(void *opaque)
{
    char library[600];
    (void)opaque;
    if (has_device()) (void)eng_cupti_probe(library, sizeof library, NULL);
}

static void start(void *opaque)
{
    Context *context = opaque;
    EngErr err = {0};
    *context->shared = (Shared){0};
    context->cupti = NULL;
    if (has_device() && eng_cupti_start(NULL, &context->cupti, &err))
        eng_warn("trace", "no GPU work in traces: %s", err.text);
    eng_hook_start(context->head);
}

static void sample(void *opaque, const EngTracePoint *point, int number)
{
    Context *context = opaque;
    if (context->cupti) eng_cupti_push(context->cupti, point->id, (uint64_t)number);
}

static void sample_over(void *opaque)
{
    Context *context = opaque;
    if (context->cupti) eng_cupti_pop(context->cupti);
}

static EngStatus write_file(Context *context, const char *path, EngTraceSaved *saved, EngErr *err)
{
    EngRecordHead *head = context->head;
    EngNsys *nsys;
    EngRecordingCounts counts;
    const EngNsysSession session = {.start_ns = head->start_ns,
                                    .utc_ns = head->utc_ns,
                                    .duration_ns = head->stop_ns - head->start_ns,
                                    .version = context->version,
                                    .argv = context->argv,
                                    .pid = head->pid,
                                    .cuda = context->cupti != NULL};
    EngStatus status = eng_nsys_create(path, &session, &nsys, err);
    if (status) return status;
    status = eng_recording_put(nsys, &head, 1, session.start_ns, &counts, err);
    if (!status && context->cupti) status = eng_cupti_write(context->cupti, NULL, nsys, err);
    if (status) {
        eng_nsys_abort(nsys);
        return status;
    }
    int64_t lost = context->cupti ? eng_cupti_dropped(eng_cupti_rows(context->cupti)) : 0;
    *saved = (EngTraceSaved){.ranges = counts.ranges, .dropped = counts.dropped + lost};
    return eng_nsys_commit(nsys, err);
}

static EngStatus stop(void *opaque, const EngTracePoint *point, EngErr *err)
{
    Context *context = opaque;
    eng_hook_stop(context->head);
    if (!context->cupti) return ENG_OK;
    eng_cupti_stop(context->cupti, context->head->start_ns);
    EngStatus status = write_file(context, point->path, &context->shared->saved, err);
    context->shared->written = !status;
    eng_cupti_free(context->cupti);
    context->cupti = NULL;
    return status;
}

/* ---- in the parent -----------------------------------------------------------------------------
 */

static EngStatus save(void *opaque, const EngTracePoint *point, EngTraceSaved *saved, EngErr *err)
{
    Context *context = opaque;
    if (!context->shared->written) return write_file(context, point->path, saved, err);
    *saved = context->shared->saved;
    return ENG_OK;
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
                                  .open = open_cupti,
                                  .start = start,
                                  .sample = sample,
                                  .sample_over = sample_over,
                                  .stop = stop,
                                  .save = save};
    return &context->tracer;
}

void eng_point_tracer_destroy(EngTracer *tracer)
{
    if (!tracer) return;
    Context *context = tracer->context;
    eng_record_unmap(context->head);
    if (context->shared) munmap(context->shared, sizeof(Shared));
    eng_free(context);
}
