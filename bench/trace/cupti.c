/* See cupti.h. CUPTI gives its callbacks no argument of ours, so the pool of buffers and the
 * running collector belong to the process. No lock of ours is held while CUPTI is called: it may
 * call back from within, or wait for a thread that does. */
#include "bench/trace/cupti.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "bench/trace/cupti_decode.h"

#ifndef ENG_HAVE_CUPTI

EngStatus eng_cupti_start(const EngCuptiOptions *options, EngCupti **cupti, EngErr *err)
{
    (void)options;
    *cupti = NULL;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "built without the CUPTI decoder: %s",
                    eng_cupti_not_built());
}

/* Nobody has a collector to hand in. */
void eng_cupti_push(EngCupti *cupti, uint64_t point, uint64_t sample)
{
    (void)cupti, (void)point, (void)sample;
}
void eng_cupti_pop(EngCupti *cupti)
{
    (void)cupti;
}
void eng_cupti_stop(EngCupti *cupti, int64_t origin_ns)
{
    (void)cupti, (void)origin_ns;
}
const EngCuptiRows *eng_cupti_rows(const EngCupti *cupti)
{
    (void)cupti;
    return NULL;
}
const EngCuptiClock *eng_cupti_clocks(const EngCupti *cupti)
{
    (void)cupti;
    return NULL;
}
const char *eng_cupti_notes(const EngCupti *cupti)
{
    (void)cupti;
    return "";
}
void eng_cupti_library(const EngCupti *cupti, char *out, size_t size)
{
    (void)cupti;
    if (size) *out = 0;
}
void eng_cupti_free(EngCupti *cupti)
{
    (void)cupti;
}
EngStatus eng_cupti_probe(char *out, size_t size, EngErr *err)
{
    EngCupti *none;
    if (size) *out = 0;
    return eng_cupti_start(NULL, &none, err);
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "bench/trace/cupti_api.h"

typedef struct Buffer {
    struct Buffer *next;  /* in the list it is in */
    struct Buffer *older; /* all that were ever made */
    uint8_t *bytes;
    size_t size, valid;
} Buffer;

struct EngCupti {
    EngCuptiApi api;
    EngCuptiSource source;
    EngCuptiRows rows;
    EngCuptiClock clocks[2];
    EngStr notes;
    pthread_t writer;
    bool has_writer, stopped;
    int n_enabled;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Buffer *all, *unused;
    Buffer *done, **done_tail; /* for the writer, in order of arrival */
    EngCupti *collector;       /* NULL: buffers that come back are counted only */
    int n_inside;              /* callbacks that use the collector right now */
    bool last_call;            /* the writer ends when nothing is left */
    int64_t n_late, n_refused, n_dropped;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* What is recorded. Kernels must be; CUPTI may do without the rest. GRAPH_TRACE is left out: with
 * it the kernels within graphs are hidden. */
static const struct {
    CUpti_ActivityKind kind;
    const char *name;
    bool needed;
} g_kinds[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL", true},
    {CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY", false},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "MEMCPY2", false},
    {CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET", false},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, "EXTERNAL_CORRELATION", false},
    {CUPTI_ACTIVITY_KIND_RUNTIME, "RUNTIME", false},
    {CUPTI_ACTIVITY_KIND_DRIVER, "DRIVER", false},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "SYNCHRONIZATION", false},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD", false},
    {CUPTI_ACTIVITY_KIND_ENVIRONMENT, "ENVIRONMENT", false},
    {CUPTI_ACTIVITY_KIND_DEVICE, "DEVICE", false},
    {CUPTI_ACTIVITY_KIND_CONTEXT, "CONTEXT", false},
    {CUPTI_ACTIVITY_KIND_STREAM, "STREAM", false},
};
#define N_KINDS ((int)(sizeof g_kinds / sizeof *g_kinds))

/* ---- buffers ---------------------------------------------------------------------------------*/

static void give_buffer(uint8_t **bytes, size_t *size, size_t *max_records)
{
    pthread_mutex_lock(&g.lock);
    Buffer *buffer = g.unused;
    if (buffer) g.unused = buffer->next;
    if (!buffer) g.n_refused++;
    pthread_mutex_unlock(&g.lock);
    *bytes = buffer ? buffer->bytes : NULL;
    *size = buffer ? buffer->size : 0;
    *max_records = 0; /* as many as fit */
}

/* The buffer goes to the writer, or back to the pool when nobody collects. Lock held. */
static void hand_over(Buffer *buffer, bool collected)
{
    buffer->next = NULL;
    if (collected) {
        *(g.done ? g.done_tail : &g.done) = buffer;
        g.done_tail = &buffer->next;
    } else {
        buffer->next = g.unused;
        g.unused = buffer;
        if (buffer->valid) g.n_late++;
    }
}

static void take_buffer(CUcontext context, uint32_t stream, uint8_t *bytes, size_t size,
                        size_t valid)
{
    pthread_mutex_lock(&g.lock);
    Buffer *buffer = g.all;
    while (buffer && buffer->bytes != bytes) buffer = buffer->older;
    EngCupti *cupti = buffer ? g.collector : NULL; /* no buffer: a refused request, handed back */
    if (cupti) g.n_inside++;
    pthread_mutex_unlock(&g.lock);
    if (!buffer) return;
    (void)size;
    size_t dropped = 0;
    if (cupti) {
        eng_cupti_keep_names(&cupti->rows, &cupti->source, bytes, valid);
        if (cupti->api.ActivityGetNumDroppedRecords(context, stream, &dropped)) dropped = 0;
    }
    pthread_mutex_lock(&g.lock);
    buffer->valid = valid;
    g.n_dropped += (int64_t)dropped;
    hand_over(buffer, cupti != NULL);
    if (cupti) g.n_inside--;
    pthread_cond_broadcast(&g.changed);
    pthread_mutex_unlock(&g.lock);
}

static void *write_rows(void *argument)
{
    EngCupti *cupti = argument;
    pthread_mutex_lock(&g.lock);
    for (;;) {
        while (!g.done && !g.last_call) pthread_cond_wait(&g.changed, &g.lock);
        Buffer *buffer = g.done;
        if (!buffer) break;
        g.done = buffer->next;
        pthread_mutex_unlock(&g.lock);
        eng_cupti_decode(&cupti->rows, &cupti->source, buffer->bytes, buffer->valid);
        pthread_mutex_lock(&g.lock);
        buffer->next = g.unused;
        g.unused = buffer;
    }
    pthread_mutex_unlock(&g.lock);
    return NULL;
}

/* Brings the pool to n unused buffers of this size; those of an earlier collector are kept when
 * they are as large, and those that CUPTI still holds are left alone. */
static EngStatus make_buffers(int n, size_t size, EngErr *err)
{
    int usable = 0;
    EngStatus status = ENG_OK;
    pthread_mutex_lock(&g.lock);
    for (Buffer **link = &g.unused; *link;) {
        Buffer *buffer = *link;
        if (buffer->size == size && usable < n) {
            usable++;
            link = &buffer->next;
            continue;
        }
        *link = buffer->next;
        Buffer **older = &g.all;
        while (*older != buffer) older = &(*older)->older;
        *older = buffer->older;
        eng_free(buffer->bytes);
        eng_free(buffer);
    }
    while (!status && usable < n) {
        void *bytes = NULL;
        Buffer *buffer = eng_alloc(sizeof *buffer);
        status = buffer ? eng_alloc_or(&bytes, 1, size, "a buffer of CUPTI", err)
                        : ENG_FAIL(err, ENG_NO_MEMORY, "no memory for a buffer of CUPTI");
        if (status) {
            eng_free(buffer);
            break;
        }
        *buffer = (Buffer){.next = g.unused, .older = g.all, .bytes = bytes, .size = size};
        g.unused = g.all = buffer;
        usable++;
    }
    pthread_mutex_unlock(&g.lock);
    return status;
}

/* ---- start and stop --------------------------------------------------------------------------*/

/* The pair read in the shortest time of several tries. */
static EngCuptiClock read_clocks(const EngCuptiApi *api)
{
    EngCuptiClock best = {.uncertainty_ns = INT64_MAX};
    for (int i = 0; i < 16; i++) {
        uint64_t cupti_ns = 0;
        int64_t before = eng_now_ns();
        if (api->GetTimestamp(&cupti_ns)) continue;
        int64_t after = eng_now_ns();
        if (after - before >= best.uncertainty_ns) continue;
        best = (EngCuptiClock){(int64_t)cupti_ns, before + (after - before) / 2, after - before};
    }
    return best;
}

/* One client a process: under another profiler calls fail or hang. */
static EngStatus refuse_second_client(EngErr *err)
{
    static const char *const signs[] = {"NSYS_PROFILING_SESSION_ID",
                                        "NV_COMPUTE_PROFILER_PERFWORKS_DIR",
                                        "NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i]))
            return ENG_FAIL(err, ENG_UNSUPPORTED, "another profiler is at work (%s is set)",
                            signs[i]);
    return ENG_OK;
}

static EngStatus refused(const EngCupti *cupti, const char *what, CUptiResult result, EngErr *err)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    EngStatus status = ENG_FAIL(err, ENG_NO_DEVICE, "CUPTI %u refuses %s: %s%s", cupti->api.version,
                                what, eng_cupti_result_name(&cupti->api, result),
                                driver ? "" : " (no NVIDIA driver: libcuda.so.1 is not there)");
    if (driver) dlclose(driver);
    return status;
}

static EngStatus enable(EngCupti *cupti, EngErr *err)
{
    for (int i = 0; i < N_KINDS; i++) {
        CUptiResult result = cupti->api.ActivityEnable(g_kinds[i].kind);
        if (result && g_kinds[i].needed) return refused(cupti, g_kinds[i].name, result, err);
        if (result)
            eng_str_printf(&cupti->notes, "%s%s: %s", cupti->notes.n ? "; " : "", g_kinds[i].name,
                           eng_cupti_result_name(&cupti->api, result));
        cupti->n_enabled = i + 1;
    }
    return ENG_OK;
}

static EngStatus begin(EngCupti *cupti, const EngCuptiOptions *options, EngErr *err)
{
    size_t size = options->buffer_bytes ? options->buffer_bytes : (size_t)2 << 20;
    EngStatus status = refuse_second_client(err);
    if (!status) status = eng_cupti_load(options->library, &cupti->api, err);
    if (!status) status = eng_cupti_rows_init(&cupti->rows, err);
    if (!status) status = make_buffers(options->n_buffers ? options->n_buffers : 32, size, err);
    if (status) return status;
    cupti->source = (EngCuptiSource){getpid(), &cupti->api};
    cupti->clocks[0] = cupti->clocks[1] = read_clocks(&cupti->api);
    CUptiResult result = cupti->clocks[0].uncertainty_ns == INT64_MAX ? CUPTI_ERROR_UNKNOWN : 0;
    if (result) return refused(cupti, "the time", result, err);
    result = cupti->api.SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    if (result) return refused(cupti, "system thread ids", result, err);
    result = cupti->api.ActivityRegisterCallbacks(give_buffer, take_buffer);
    if (result) return refused(cupti, "buffers", result, err);
    /* What an earlier collector left behind comes back now: counted (n_late), no rows of this
     * trace. */
    cupti->api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&g.lock);
    g.collector = cupti;
    g.last_call = false;
    g.n_refused = g.n_dropped = 0;
    pthread_mutex_unlock(&g.lock);
    if (pthread_create(&cupti->writer, NULL, write_rows, cupti))
        return ENG_FAIL(err, ENG_INTERNAL, "no thread for the rows of CUPTI");
    cupti->has_writer = true;
    return enable(cupti, err);
}

EngStatus eng_cupti_start(const EngCuptiOptions *options, EngCupti **out, EngErr *err)
{
    static const EngCuptiOptions usual = {0};
    *out = NULL;
    pthread_mutex_lock(&g.lock);
    bool running = g.collector != NULL;
    pthread_mutex_unlock(&g.lock);
    if (running) return ENG_FAIL(err, ENG_UNSUPPORTED, "CUPTI is collecting already");
    EngCupti *cupti = eng_alloc(sizeof *cupti);
    if (!cupti) return ENG_FAIL(err, ENG_NO_MEMORY, "no memory for a collector");
    EngStatus status = begin(cupti, options ? options : &usual, err);
    if (status)
        eng_cupti_free(cupti);
    else
        *out = cupti;
    return status;
}

void eng_cupti_push(EngCupti *cupti, uint64_t point, uint64_t sample)
{
    cupti->api.ActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, point);
    cupti->api.ActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, sample);
}

void eng_cupti_pop(EngCupti *cupti)
{
    uint64_t last;
    cupti->api.ActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, &last);
    cupti->api.ActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

/* Ends collection: from here on no callback touches cupti. */
static void end_collection(EngCupti *cupti)
{
    if (cupti->has_writer) {
        cupti->api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        for (int i = 0; i < cupti->n_enabled; i++) cupti->api.ActivityDisable(g_kinds[i].kind);
        cupti->api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    }
    pthread_mutex_lock(&g.lock);
    if (g.collector == cupti) g.collector = NULL;
    while (g.n_inside) pthread_cond_wait(&g.changed, &g.lock);
    g.last_call = true;
    pthread_cond_broadcast(&g.changed);
    pthread_mutex_unlock(&g.lock);
    if (cupti->has_writer) pthread_join(cupti->writer, NULL);
}

void eng_cupti_stop(EngCupti *cupti, int64_t origin_ns)
{
    if (cupti->stopped) return;
    cupti->stopped = true;
    EngCuptiClock last = read_clocks(&cupti->api);
    if (last.uncertainty_ns < INT64_MAX) cupti->clocks[1] = last;
    end_collection(cupti);
    pthread_mutex_lock(&g.lock);
    cupti->rows.drops[ENG_CUPTI_DROP_REQUEST] += g.n_refused;
    cupti->rows.drops[ENG_CUPTI_DROP_LIBRARY] += g.n_dropped;
    cupti->rows.drops[ENG_CUPTI_DROP_LATE] += g.n_late;
    g.n_refused = g.n_dropped = g.n_late = 0;
    pthread_mutex_unlock(&g.lock);
    eng_cupti_rows_finish(&cupti->rows, cupti->clocks, origin_ns);
}

const EngCuptiRows *eng_cupti_rows(const EngCupti *cupti)
{
    return &cupti->rows;
}

const EngCuptiClock *eng_cupti_clocks(const EngCupti *cupti)
{
    return cupti->clocks;
}

const char *eng_cupti_notes(const EngCupti *cupti)
{
    return cupti->notes.text ? cupti->notes.text : "";
}

void eng_cupti_library(const EngCupti *cupti, char *out, size_t size)
{
    snprintf(out, size, "version %u (%s)", cupti->api.version, cupti->api.path);
}

void eng_cupti_free(EngCupti *cupti)
{
    if (!cupti) return;
    if (!cupti->stopped) end_collection(cupti);
    eng_cupti_rows_free(&cupti->rows);
    eng_str_free(&cupti->notes);
    eng_free(cupti);
}

EngStatus eng_cupti_probe(char *out, size_t size, EngErr *err)
{
    EngCupti *cupti;
    const EngCuptiOptions small = {.buffer_bytes = 1 << 16, .n_buffers = 2};
    if (size) *out = 0;
    EngStatus status = eng_cupti_start(&small, &cupti, err);
    if (!status) eng_cupti_library(cupti, out, size);
    if (!status) eng_cupti_free(cupti);
    return status;
}

#endif

static EngStatus put_property(EngNsys *nsys, const char *name, const char *value, EngErr *err)
{
    const EngNsysEnvironment row = {"CUPTI", name, 0, value};
    return *value ? eng_nsys_put_environment(nsys, &row, err) : ENG_OK;
}

static EngStatus put_clock(EngNsys *nsys, const char *name, const EngCuptiClock *clock, EngErr *err)
{
    char text[128];
    snprintf(text, sizeof text, "%" PRId64 " ns is %" PRId64 " ns monotonic, within %" PRId64 " ns",
             clock->cupti_ns, clock->monotonic_ns, clock->uncertainty_ns);
    return put_property(nsys, name, text, err);
}

EngStatus eng_cupti_write(const EngCupti *cupti, const char *why_not, EngNsys *nsys, EngErr *err)
{
    char library[600];
    if (!cupti) return put_property(nsys, "NotCollected", why_not, err);
    const EngCuptiClock *clocks = eng_cupti_clocks(cupti);
    eng_cupti_library(cupti, library, sizeof library);
    EngStatus status = put_property(nsys, "Library", library, err);
    if (!status) status = put_clock(nsys, "ClockAtStart", &clocks[0], err);
    if (!status) status = put_clock(nsys, "ClockAtStop", &clocks[1], err);
    if (!status) status = put_property(nsys, "NotRecorded", eng_cupti_notes(cupti), err);
    return status ? status : eng_cupti_rows_write(eng_cupti_rows(cupti), nsys, err);
}
