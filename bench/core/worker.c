/* The worker process and its pipe; see worker.h. */
#include "bench/core/worker.h"

#include <alloca.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "base/rng.h"
#include "base/str.h"
#include "bench/core/flush.h"
#include "bench/core/placement.h"
#include "kernels/cuda/queue.h"

#define HANG_S             300
#define LOST_DEVICE        70    /* exit status, for the log */
#define NO_MEMORY          71    /* likewise, where a message could not be made */
#define LAYOUT_STACK_BYTES 65536 /* the stack starts up to this much lower, in steps of 16 */

/* ---- pipe --------------------------------------------------------------------------------------
 */

static bool write_all(int fd, const void *bytes, size_t n)
{
    for (const char *p = bytes; n;) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

/* 1: read whole, 0: end of file, -1: error (errno). */
static int read_all(int fd, void *bytes, size_t n)
{
    for (char *p = bytes; n;) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return (int)got;
        p += got;
        n -= (size_t)got;
    }
    return 1;
}

/* ---- child -------------------------------------------------------------------------------------
 */

typedef struct Slot {
    const EngPoint *point;
    void *state;
    bool active, cold;
    int64_t inner;
} Slot;

typedef struct Child {
    const EngWorkerTask *task;
    const EngExperiment *experiment;
    Slot *slots;
    int to_parent, from_parent;
    EngPlacement placement;
    EngCounters counters;
    EngFlush flush;
    EngWorkerNote note;
    EngWorkerMessage message; /* too large for a stack frame that is re-entered often */
    EngWorkerMessage histogram_message;
} Child;

/* The parent is gone when the pipe breaks: nothing is left to do. */
static void send_message(Child *child, const EngWorkerMessage *message)
{
    if (!write_all(child->to_parent, message, sizeof *message)) _exit(0);
}

static void wait_until_stored(Child *child)
{
    char ack;
    if (read_all(child->from_parent, &ack, 1) <= 0) _exit(0);
}

static EngWorkerMessage *new_message(Child *child, EngWorkerEvent event, int point)
{
    memset(&child->message, 0, sizeof child->message);
    child->message.event = event;
    child->message.point = point;
    return &child->message;
}

static void enter(Child *child, int point, const char *phase)
{
    EngWorkerMessage *m = new_message(child, ENG_WORKER_ENTER, point);
    snprintf(m->text, sizeof m->text, "%s", phase);
    send_message(child, m);
}

static void end_point(Child *child, int point, EngStatus status, const char *text)
{
    Slot *slot = &child->slots[point];
    child->experiment->teardown(slot->state);
    slot->state = NULL;
    slot->active = false;
    EngWorkerMessage *m = new_message(child, ENG_WORKER_POINT_ENDED, point);
    m->status = status;
    snprintf(m->text, sizeof m->text, "%s", text);
    send_message(child, m);
    wait_until_stored(child);
    /* Nothing works on the device any more in this process: the other points get a new one. */
    if (eng_cuda_lost()) _exit(LOST_DEVICE);
}

static void verify_point(Child *child, int i)
{
    EngErr err = {0};
    EngResidual residual = {.of = "exact"};
    enter(child, i, "verify");
    EngStatus status = child->experiment->verify(child->slots[i].state, &residual, &err);
    if (status && status != ENG_MISMATCH) {
        end_point(child, i, status, err.text);
        return;
    }
    EngWorkerMessage *m = new_message(child, ENG_WORKER_RESIDUAL, i);
    m->residual = residual;
    send_message(child, m);
    wait_until_stored(child);
    if (!residual.pass) {
        char text[256];
        snprintf(text, sizeof text, "residual %.3g (%s) beyond %.3g, %lld not finite: %.120s",
                 residual.max_rel, residual.of, residual.limit, (long long)residual.n_nonfinite,
                 residual.note);
        end_point(child, i, ENG_MISMATCH, text);
    }
}

static void set_up_points(Child *child)
{
    const EngWorkerTask *task = child->task;
    EngBench bench = {.resources = task->resources, .seed = task->seed};
    for (int i = 0; i < task->n_points; i++) {
        EngErr err = {0};
        Slot *slot = &child->slots[i];
        slot->point = task->points[i];
        enter(child, i, "set-up");
        EngStatus status = child->experiment->setup(&bench, slot->point, &slot->state, &err);
        slot->active = !status;
        slot->cold = eng_point_cache_is(slot->point, ENG_CACHE_COLD);
        if (!status && slot->cold && !child->flush.buffer)
            status = eng_flush_create(&child->flush, &err);
        if (status) {
            end_point(child, i, status, err.text);
            continue;
        }
        if (child->experiment->verify && task->verify) verify_point(child, i);
    }
}

/* Runs `inner` iterations with the clocks read around them; nothing else is in the window. Work on
 * a device is waited for once, at its end. */
static EngStatus time_run(const Child *child, Slot *slot, EngTiming *timing, EngErr *err)
{
    EngTeamClock team;
    EngCudaWindow device;
    EngErr later;
    EngStatus status = ENG_OK;
    if (child->experiment->prepare) status = child->experiment->prepare(slot->state, err);
    if (!status) status = eng_cuda_window_open(err);
    if (status) return status;
    eng_team_clock_start(&team);
    int64_t wall = eng_now_ns();
    for (int64_t i = 0; i < slot->inner && !status; i++)
        status = child->experiment->run(slot->state, err);
    EngStatus closed = eng_cuda_window_close(&device, status ? &later : err);
    timing->wall_ns = eng_now_ns() - wall;
    timing->cpu_ns = eng_team_clock_stop(&team);
    if (device.ns > 0) timing->cpu_ns = (int64_t)device.ns;
    timing->launches = device.launches;
    timing->inner = slot->inner;
    return status ? status : closed;
}

/* Binds the point's threads as its axis `pin` wants; false: it cannot be, and the point has ended.
 */
static bool place(Child *child, int i)
{
    EngErr err = {0};
    EngStatus status = eng_placement_apply(&child->placement, child->slots[i].point, &err);
    if (status) end_point(child, i, status, err.text);
    return !status;
}

/* A sample of the slot's inner iterations, after the caches are flushed where it is to be cold. */
static EngStatus time_sample(const Child *child, Slot *slot, EngTiming *timing, EngErr *err)
{
    if (slot->cold) eng_flush_run(&child->flush);
    return time_run(child, slot, timing, err);
}

/* Warm-up: repeats until three times in a row agree within 10 %, and sizes the inner iterations on
 * the way. */
static void warm_up(Child *child, int i)
{
    enum { MAX_TRIES = 12, STABLE = 3 };
    Slot *slot = &child->slots[i];
    int64_t length_ns = child->note.length_ns;
    double last = 0, least = INFINITY;
    int stable = 0;
    slot->inner = 1;
    child->note.points++;
    child->note.unstable++; /* until it is stable */
    enter(child, i, "warm-up");
    if (!place(child, i)) return;
    for (int attempt = 0; attempt < MAX_TRIES && stable < STABLE; attempt++) {
        EngErr err = {0};
        EngTiming timing = {0};
        EngStatus status = time_sample(child, slot, &timing, &err);
        if (status) {
            end_point(child, i, status, err.text);
            return;
        }
        double each = (double)timing.wall_ns / (double)timing.inner;
        stable = last > 0 && fabs(each - last) <= 0.1 * last ? stable + 1 : 0;
        last = each;
        least = fmin(least, each);
        /* Workers that are compared share one count: on a busy machine the least is the truth. */
        if (child->task->paced) each = least;
        if (!slot->cold && !child->experiment->once)
            slot->inner = eng_inner_iterations(each, length_ns);
        /* One run longer than a sample is its own warm-up after a second look. */
        if (each > (double)length_ns && attempt >= 1) stable = STABLE;
    }
    child->note.unstable -= stable >= STABLE;
}

/* With the inner iterations given; `skip` more samples move on to windows that no other worker of
 * the segment times, whose rows would be in the shared cache already. */
static void warm_up_fixed(Child *child, int i)
{
    enum { SAMPLES = 3, MOST_NS = 50000000 };
    Slot *slot = &child->slots[i];
    int64_t begin = eng_now_ns();
    slot->inner = child->task->inner;
    enter(child, i, "warm-up");
    if (!place(child, i)) return;
    for (int sample = 0; sample < SAMPLES + child->task->skip; sample++) {
        EngErr err = {0};
        if (sample >= SAMPLES && eng_now_ns() - begin > MOST_NS) break;
        EngTiming timing = {0};
        EngStatus status = time_run(child, slot, &timing, &err);
        if (status) {
            end_point(child, i, status, err.text);
            return;
        }
    }
}

static void say_ready(Child *child, int i)
{
    EngWorkerMessage *m = new_message(child, ENG_WORKER_READY, i);
    m->timing.inner = child->slots[i].inner;
    send_message(child, m);
    wait_until_stored(child);
}

static void histogram_sink(void *context, const char *name, int layer, int stream,
                           const char *scale, double lo, double hi, const int64_t *counts,
                           int n_bins)
{
    Child *child = context;
    EngWorkerMessage *m = &child->histogram_message;
    EngWorkerHistogram *h = &m->histogram;
    int room = (int)(sizeof h->counts / sizeof *h->counts);
    snprintf(h->name, sizeof h->name, "%s", name);
    snprintf(h->scale, sizeof h->scale, "%s", scale);
    h->layer = layer;
    h->stream = stream;
    h->lo = lo;
    h->hi = hi;
    h->n_bins = n_bins < room ? n_bins : room;
    memcpy(h->counts, counts, (size_t)h->n_bins * sizeof *counts);
    send_message(child, m);
}

static void take_sample(Child *child, int i, int pair, int position)
{
    EngErr err = {0};
    EngTiming timing = {0};
    Slot *slot = &child->slots[i];
    if (!child->task->paced) enter(child, i, "sample");
    if (!place(child, i)) return;
    EngStatus status = ENG_OK;
    /* Untimed: the caches may have been another worker's meanwhile. */
    if (child->task->paced) status = time_run(child, slot, &timing, &err);
    if (slot->cold) eng_flush_run(&child->flush);
    eng_counters_start(&child->counters);
    if (!status) status = time_run(child, slot, &timing, &err);
    double counted[ENG_COUNTER_COUNT];
    eng_counters_stop(&child->counters, counted);
    if (status) {
        end_point(child, i, status, err.text);
        return;
    }
    /* Histograms go first: the sample's acknowledgement then covers both. */
    if (child->experiment->histograms) {
        memset(&child->histogram_message, 0, sizeof child->histogram_message);
        child->histogram_message.event = ENG_WORKER_HISTOGRAM;
        child->histogram_message.point = i;
        child->histogram_message.pair = pair;
        status = child->experiment->histograms(slot->state, histogram_sink, child, &err);
        if (status) {
            end_point(child, i, status, err.text);
            return;
        }
    }
    EngWorkerMessage *m = new_message(child, ENG_WORKER_SAMPLE, i);
    m->pair = pair;
    m->position = position;
    m->timing = timing;
    memcpy(m->counters, counted, sizeof counted);
    for (int k = 0; k < ENG_MAX_METRICS; k++) m->values[k] = NAN;
    child->experiment->observe(slot->state, &timing, m->values);
    send_message(child, m);
    wait_until_stored(child);
}

static void run_rounds(Child *child)
{
    const EngWorkerTask *task = child->task;
    int64_t start = eng_now_ns();
    EngRng rng;
    int *order = eng_alloc_array((size_t)task->n_points, sizeof *order);
    if (!order) _exit(NO_MEMORY);
    eng_rng_seed(&rng, task->seed);
    for (int pair = task->first_pair; pair < task->first_pair + task->pairs; pair++) {
        eng_shuffle(&rng, order, task->n_points);
        for (int p = 0; p < task->n_points; p++)
            if (child->slots[order[p]].active) take_sample(child, order[p], pair, p);
        if (task->budget_ns && eng_now_ns() - start > task->budget_ns) break;
    }
    eng_free(order);
}

static void note_device(EngDeviceNote *note)
{
    EngErr err = {0};
    EngCudaInfo info;
    if (!eng_cuda_used()) return;
    note->used = true;
    if (eng_cuda_clocks(&note->clocks, &err))
        snprintf(note->why_no_clocks, sizeof note->why_no_clocks, "%.95s", err.text);
    if (!eng_cuda_info(&info, NULL)) note->l2_bytes = info.l2_bytes;
    (void)eng_cuda_floor_ns(&note->floor_ns, NULL);
}

/* ---- traced pass: none of its samples is a time ---- */

static EngStatus trace_sample(Child *child, int i, int sample)
{
    EngErr err = {0};
    EngTiming timing = {.inner = 1};
    EngTeamClock team;
    EngCudaWindow device;
    const EngTracer *tracer = child->task->tracer;
    Slot *slot = &child->slots[i];
    EngStatus status = ENG_OK;
    if (child->experiment->prepare) status = child->experiment->prepare(slot->state, &err);
    if (slot->cold) eng_flush_run(&child->flush);
    eng_team_clock_start(&team);
    tracer->sample(tracer->context, &child->task->traced[i], sample);
    eng_nvtx_step = sample;
    eng_nvtx_push(ENG_RANGE_STEP, (EngRangeInfo){.tokens = -1, .layer = -1, .step = sample});
    int64_t wall = eng_now_ns();
    /* As in a timed window: work on a device is waited for once. */
    if (!status) status = eng_cuda_window_open(&err);
    if (!status) status = child->experiment->run(slot->state, &err);
    EngStatus closed = eng_cuda_window_close(&device, status ? NULL : &err);
    if (!status) status = closed;
    timing.wall_ns = eng_now_ns() - wall;
    eng_nvtx_pop();
    timing.cpu_ns = eng_team_clock_stop(&team);
    if (device.ns > 0) timing.cpu_ns = (int64_t)device.ns;
    timing.launches = device.launches;
    tracer->sample_over(tracer->context);
    eng_nvtx_step = -1;
    if (status) {
        end_point(child, i, status, err.text);
        return status;
    }
    EngWorkerMessage *m = new_message(child, ENG_WORKER_SAMPLE, i);
    m->pair = sample;
    m->timing = timing;
    for (int k = 0; k < ENG_MAX_METRICS; k++) m->values[k] = NAN;
    child->experiment->observe(slot->state, &timing, m->values);
    send_message(child, m);
    wait_until_stored(child);
    return ENG_OK;
}

static void trace_point(Child *child, int i)
{
    enum { WARM_UP = 3 };
    const EngTracer *tracer = child->task->tracer;
    Slot *slot = &child->slots[i];
    EngErr err = {0};
    EngTiming timing;
    EngStatus status = ENG_OK;
    slot->inner = 1;
    if (!place(child, i)) return;
    for (int k = 0; k < WARM_UP && !status; k++) status = time_sample(child, slot, &timing, &err);
    if (status) {
        end_point(child, i, status, err.text);
        return;
    }
    tracer->start(tracer->context);
    for (int k = 0; k < child->task->pairs && !status; k++) status = trace_sample(child, i, k);
    bool ended = status != ENG_OK;
    status = tracer->stop(tracer->context, &child->task->traced[i], &err);
    if (ended) return;
    if (status) {
        end_point(child, i, status, err.text);
        return;
    }
    send_message(child, new_message(child, ENG_WORKER_TRACED, i));
    wait_until_stored(child);
}

static void run_child(const EngWorkerTask *task, int to_parent, int from_parent)
{
    Child *child = eng_alloc(sizeof *child);
    if (!child) _exit(NO_MEMORY);
    child->task = task;
    child->experiment = task->points[0]->experiment;
    child->to_parent = to_parent;
    child->from_parent = from_parent;
    child->slots = eng_alloc_array((size_t)task->n_points, sizeof(Slot));
    if (!child->slots) _exit(NO_MEMORY);
    eng_counters_open(&child->counters); /* before threads are made, which inherit them */
    if (task->tracer) task->tracer->open(task->tracer->context);
    child->note.timer = eng_timer_measure();
    child->note.length_ns = eng_sample_length_ns(&child->note.timer, task->target_ns);
    set_up_points(child);
    if (task->tracer) {
        for (int i = 0; i < task->n_points; i++)
            if (child->slots[i].active) trace_point(child, i);
        send_message(child, new_message(child, ENG_WORKER_DONE, -1));
        _exit(0);
    }
    if (!child->experiment->counted)
        for (int i = 0; i < task->n_points; i++)
            if (child->slots[i].active) task->inner ? warm_up_fixed(child, i) : warm_up(child, i);
    for (int i = 0; i < task->n_points; i++)
        if (child->experiment->counted) child->slots[i].inner = 1;
    if (task->paced && child->slots[0].active) say_ready(child, 0);
    run_rounds(child);
    EngWorkerMessage *m = new_message(child, ENG_WORKER_DONE, -1);
    child->note.flush_bytes = (int64_t)child->flush.bytes;
    unsigned cpu, node;
    bool placed = !getcpu(&cpu, &node);
    child->note.cpu = placed ? (int)cpu : -1;
    child->note.node = placed ? (int)node : -1;
    note_device(&child->note.device);
    m->note = child->note;
    send_message(child, m);
    _exit(0);
}

/* Fork keeps the parent's addresses. A stack and a heap that start elsewhere in each lifetime bring
 * layout into the spread of the samples, as fresh processes would. */
static void __attribute__((noinline))
run_child_shifted(const EngWorkerTask *task, int to_parent, int from_parent)
{
    EngRng rng;
    eng_rng_seed_at(&rng, task->seed, 1);
    volatile char *pad = alloca(16 + 16 * (size_t)eng_rng_below(&rng, LAYOUT_STACK_BYTES / 16));
    pad[0] = 0;
    void *heap = eng_alloc((size_t)eng_rng_below(&rng, 64) * 4096 + 64);
    if (!heap) _exit(NO_MEMORY);
    run_child(task, to_parent, from_parent);
}

/* ---- parent ------------------------------------------------------------------------------------
 */

EngStatus eng_worker_start(EngWorker *worker, const EngWorkerTask *task,
                           void (*in_child)(void *context), void *context, EngErr *err)
{
    int up[2] = {-1, -1}, down[2] = {-1, -1};
    *worker = (EngWorker){.pid = -1, .from_fd = -1, .to_fd = -1};
    if (pipe(up)) return ENG_FAIL(err, ENG_IO, "cannot make a pipe: %s", strerror(errno));
    if (pipe(down)) {
        close(up[0]);
        close(up[1]);
        return ENG_FAIL(err, ENG_IO, "cannot make a pipe: %s", strerror(errno));
    }
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0); /* the parent died before prctl took effect */
        signal(SIGINT, SIG_IGN);           /* a terminal's interrupt is the parent's business */
        signal(SIGTERM, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        close(up[0]);
        close(down[1]);
        if (in_child) in_child(context);
        run_child_shifted(task, up[1], down[0]);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    if (pid < 0) {
        close(up[0]);
        close(down[1]);
        return ENG_FAIL(err, ENG_NO_MEMORY, "cannot fork a worker: %s", strerror(errno));
    }
    *worker = (EngWorker){.pid = pid, .from_fd = up[0], .to_fd = down[1]};
    return ENG_OK;
}

EngStatus eng_worker_receive(EngWorker *worker, EngWorkerMessage *message, int64_t timeout_ns,
                             EngErr *err)
{
    struct pollfd ready = {.fd = worker->from_fd, .events = POLLIN};
    struct timespec ts = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    int n = ppoll(&ready, 1, &ts, NULL);
    if (n < 0 && errno == EINTR) return ENG_FAIL(err, ENG_INTERRUPTED, "interrupted");
    if (n < 0) return ENG_FAIL(err, ENG_INTERNAL, "poll on the worker failed: %s", strerror(errno));
    if (n == 0)
        return ENG_FAIL(err, ENG_IO, "no answer for %.0f s (ENG_WORKER_TIMEOUT_S)",
                        (double)timeout_ns * 1e-9);
    if (read_all(worker->from_fd, message, sizeof *message) == 1) return ENG_OK;
    return ENG_FAIL(err, ENG_NOT_FOUND, "the worker ended");
}

int64_t eng_worker_hang_ns(void)
{
    const char *text = getenv("ENG_WORKER_TIMEOUT_S");
    int64_t seconds;
    bool given = text && eng_parse_i64(text, &seconds) && seconds > 0 && seconds <= 86400;
    return (given ? seconds : HANG_S) * 1000000000;
}

EngStatus eng_worker_acknowledge(EngWorker *worker, EngErr *err)
{
    if (write_all(worker->to_fd, "k", 1)) return ENG_OK;
    return ENG_FAIL(err, ENG_NOT_FOUND, "the worker ended");
}

void eng_worker_end(EngWorker *worker, bool kill_it, char *how, size_t size)
{
    int wait_status = 0;
    if (worker->pid < 0) return;
    if (kill_it) kill(worker->pid, SIGKILL);
    close(worker->from_fd);
    close(worker->to_fd);
    while (waitpid(worker->pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(wait_status))
        snprintf(how, size, "signal %d (%s)", WTERMSIG(wait_status),
                 strsignal(WTERMSIG(wait_status)));
    else
        snprintf(how, size, "exit %d%s", WEXITSTATUS(wait_status),
                 WEXITSTATUS(wait_status) == NO_MEMORY ? " (out of memory)" : "");
    worker->pid = -1;
}
