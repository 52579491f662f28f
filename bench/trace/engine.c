/* Kernels by name, and which lookup a consumer waits for; see engine.h. */
#include "bench/trace/engine.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const struct {
    const char *name, *pattern;
} g_classes[ENG_CLASS_COUNT] = {
    [ENG_CLASS_HASH] = {"hash", "engram_hash|hash_ids_kernel|write_hash_cache|"
                                "engram_commit_history|fused_n_?gram"},
    [ENG_CLASS_LOOKUP] = {"lookup", "engram_lookup|engram_gather|engram_dequant"},
    [ENG_CLASS_GATE] = {"gate", "engram_.*gate|engram_fused"},
    [ENG_CLASS_COLLECTIVE] = {"collective", "ncclDevKernel|ncclKernel|cross_device_reduce|"
                                            "all_?reduce|all_?gather"},
    [ENG_CLASS_PROJECTION] = {"projection", "nvjet|cutlass|deep_gemm|fp8_gemm|gemm"},
    [ENG_CLASS_OTHER] = {"other", ""},
};

const char *eng_class_name(EngKernelClass kernel_class)
{
    return (unsigned)kernel_class < ENG_CLASS_COUNT ? g_classes[kernel_class].name : "unknown";
}

const char *eng_class_pattern(EngKernelClass kernel_class)
{
    return (unsigned)kernel_class < ENG_CLASS_COUNT ? g_classes[kernel_class].pattern : "";
}

/* ---- classes -----------------------------------------------------------------------------------
 */

/* GPU work of one device, by start. */
typedef struct Item {
    const EngTraceEvent *event;
    int64_t device, step; /* step: place in Engine.steps, -1: in none of them */
    EngKernelClass kind;
} Item;

#define NEAR 4096 /* items in which a consumer without a name is looked for */

typedef struct Engine {
    const EngTrace *trace;
    const EngEngineOptions *options;
    regex_t patterns[ENG_CLASS_OTHER], step;
    int n_patterns;
    bool has_step;
    Item *items;
    int64_t n;
    /* Step ranges by thread and start, and API calls by correlation. */
    const EngTraceEvent **steps, **calls;
    int64_t n_steps, n_calls;
    bool *taken;                   /* [n]: consumer of a group already */
    int64_t next[ENG_CLASS_COUNT]; /* where the search for a consumer of that class goes on */
    EngEngine *out;
    EngErr *err;
} Engine;

static EngStatus compile(Engine *e, const char *option, const char *pattern, regex_t *regex)
{
    char why[128];
    if (!*pattern) return ENG_FAIL(e->err, ENG_USAGE, "--%s= would match every name", option);
    int rc = regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (!rc) return ENG_OK;
    regerror(rc, regex, why, sizeof why);
    return ENG_FAIL(e->err, ENG_USAGE, "--%s=%s: no regular expression: %s", option, pattern, why);
}

static EngStatus compile_all(Engine *e)
{
    EngStatus status = ENG_OK;
    for (int c = 0; c < ENG_CLASS_OTHER && !status; c++) {
        const char *given = e->options->patterns[c];
        status =
            compile(e, g_classes[c].name, given ? given : g_classes[c].pattern, &e->patterns[c]);
        e->n_patterns += !status;
    }
    if (!status && e->options->step) status = compile(e, "step", e->options->step, &e->step);
    e->has_step = !status && e->options->step;
    return status;
}

static bool matches(const regex_t *regex, const EngTraceEvent *event)
{
    return !regexec(regex, event->name, 0, NULL, 0) ||
           (event->full != event->name && !regexec(regex, event->full, 0, NULL, 0));
}

static EngKernelClass classify(const Engine *e, const EngTraceEvent *event)
{
    for (int c = 0; c < ENG_CLASS_OTHER; c++)
        if (matches(&e->patterns[c], event)) return (EngKernelClass)c;
    return ENG_CLASS_OTHER;
}

static int by_device(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->event->start_ns != y->event->start_ns)
        return x->event->start_ns < y->event->start_ns ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* Names repeat: an event that has the same texts as the one before has its class. */
static void make_items(Engine *e)
{
    const EngTraceEvent *last = NULL;
    EngKernelClass last_class = ENG_CLASS_OTHER;
    for (int64_t i = 0; i < e->trace->n_events; i++) {
        const EngTraceEvent *event = &e->trace->events[i];
        if (event->what > ENG_TRACE_SET) continue;
        if (!last || last->name != event->name || last->full != event->full)
            last_class = classify(e, event);
        last = event;
        e->items[e->n++] = (Item){.event = event,
                                  .device = e->trace->tracks[event->track].device,
                                  .step = -1,
                                  .kind = last_class};
    }
    if (e->n) qsort(e->items, (size_t)e->n, sizeof *e->items, by_device);
    for (int64_t i = 0; i < e->n; i++)
        e->out->n_devices += !i || e->items[i].device != e->items[i - 1].device;
}

/* ---- steps -------------------------------------------------------------------------------------
 */

static int by_thread(const void *a, const void *b)
{
    const EngTraceEvent *x = *(const EngTraceEvent *const *)a,
                        *y = *(const EngTraceEvent *const *)b;
    if (x->track != y->track) return x->track < y->track ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_correlation(const void *a, const void *b)
{
    const EngTraceEvent *x = *(const EngTraceEvent *const *)a,
                        *y = *(const EngTraceEvent *const *)b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* The API call of a piece of work: correlation ids belong to a process. NULL: not in the trace. */
static const EngTraceEvent *call_of(const Engine *e, const EngTraceEvent *work)
{
    int64_t lo = 0, hi = e->n_calls, process = e->trace->tracks[work->track].global;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (e->calls[middle]->correlation < work->correlation)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < e->n_calls && e->calls[lo]->correlation == work->correlation; lo++)
        if (!process ||
            (e->trace->tracks[e->calls[lo]->track].global & ~INT64_C(0xffffff)) == process)
            return e->calls[lo];
    return NULL;
}

/* Step ranges of the threads before this one, and of its own that begin at a moment or before. */
static int64_t steps_until(const Engine *e, int thread, int64_t at)
{
    int64_t lo = 0, hi = e->n_steps;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        const EngTraceEvent *s = e->steps[middle];
        if (s->track < thread || (s->track == thread && s->start_ns <= at))
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* Which step range of a thread holds a moment, the innermost of nested ones. */
static int64_t step_of_thread(const Engine *e, int64_t at, int thread)
{
    int64_t lo = steps_until(e, thread, at);
    for (int64_t i = lo - 1; i >= 0 && i >= lo - 16 && e->steps[i]->track == thread; i--)
        if (e->steps[i]->end_ns >= at) return i;
    return -1;
}

/* Its number in the file's terms: each thread counts its own, so that the same step of several
 * ranks has one. */
static int64_t step_number(const Engine *e, int64_t step)
{
    return step - steps_until(e, e->steps[step]->track, INT64_MIN);
}

/* Which step range holds a moment; thread -1: of the first thread that has one. */
static int64_t step_at(const Engine *e, int64_t at, int thread)
{
    if (thread >= 0) return step_of_thread(e, at, thread);
    int64_t found = -1;
    for (int i = 0; i < e->trace->n_tracks && found < 0; i++)
        if (!e->trace->tracks[i].gpu) found = step_of_thread(e, at, i);
    return found;
}

static void find_steps(Engine *e)
{
    for (int64_t i = 0; i < e->trace->n_events; i++) {
        const EngTraceEvent *event = &e->trace->events[i];
        if (event->what == ENG_TRACE_RANGE && e->has_step && matches(&e->step, event))
            e->steps[e->n_steps++] = event;
        if (event->what == ENG_TRACE_API && event->correlation >= 0) e->calls[e->n_calls++] = event;
    }
    if (e->n_steps) qsort(e->steps, (size_t)e->n_steps, sizeof *e->steps, by_thread);
    if (e->n_calls) qsort(e->calls, (size_t)e->n_calls, sizeof *e->calls, by_correlation);
    for (int64_t i = 0; i < e->n && e->n_steps; i++) {
        const EngTraceEvent *call = call_of(e, e->items[i].event);
        e->items[i].step = call ? step_at(e, call->start_ns, call->track)
                                : step_at(e, e->items[i].event->start_ns, -1);
    }
    e->out->n_steps = e->n_steps;
}

/* ---- times of classes --------------------------------------------------------------------------
 */

static EngStatus time_class(Engine *e, int64_t from, int64_t to, int kind)
{
    EngClassTime *time = &e->out->classes[kind];
    EngIntervals own = {0}, others = {0}, exposed = {0};
    EngStatus status = ENG_OK;
    for (int64_t i = from; i < to && !status; i++) {
        const EngTraceEvent *w = e->items[i].event;
        bool mine = (int)e->items[i].kind == kind;
        time->n += mine;
        time->sum_ns += mine ? w->end_ns - w->start_ns : 0;
        status = eng_intervals_add(mine ? &own : &others, w->start_ns, w->end_ns, e->err);
    }
    eng_intervals_close(&own);
    eng_intervals_close(&others);
    if (!status) status = eng_intervals_subtract(&own, &others, &exposed, e->err);
    time->busy_ns += eng_intervals_total(&own);
    time->exposed_ns += eng_intervals_total(&exposed);
    eng_intervals_free(&own);
    eng_intervals_free(&others);
    eng_intervals_free(&exposed);
    return status;
}

/* ---- groups ------------------------------------------------------------------------------------
 */

static bool is_copy_in(const Item *item)
{
    return item->event->what == ENG_TRACE_COPY &&
           !strcmp(item->event->name, "memcpy host-to-device");
}

/* What a consumer may wait for, as opposed to its own work. */
static bool is_wait_class(const Item *item)
{
    return item->kind == ENG_CLASS_HASH || item->kind == ENG_CLASS_LOOKUP ||
           item->kind == ENG_CLASS_COLLECTIVE || is_copy_in(item);
}

/* Lookups of one step and layer: items first..last of the device's list, those of class lookup. */
typedef struct Group {
    int64_t first, last;
    int64_t begin_ns, end_ns; /* begin: of the hash before it, if any */
    int64_t consumer;         /* item, -1 */
} Group;

static bool follows(const Engine *e, int64_t i, EngKernelClass kind, int64_t after)
{
    return e->items[i].kind == kind && !e->taken[i] && e->items[i].event->start_ns >= after;
}

/* The next kernel of a class that no group has, once the group's rows are read. Groups come in the
 * order of time, so what one has passed over is not for a later one: each item is seen once. */
static int64_t next_of(Engine *e, const Group *g, EngKernelClass kind, int64_t to)
{
    int64_t *i = &e->next[kind];
    if (*i <= g->last) *i = g->last + 1;
    while (*i < to && !follows(e, *i, kind, g->end_ns)) ++*i;
    return *i < to ? *i : -1;
}

/* See engine.h for the rule. */
static int64_t find_consumer(Engine *e, const Group *g, int64_t to)
{
    const Item *items = e->items;
    int64_t gate = next_of(e, g, ENG_CLASS_GATE, to), end = g->last + 1 + NEAR;
    if (gate >= 0) e->taken[gate] = true;
    for (int64_t i = gate - 1; i > g->last && items[i].event->start_ns >= g->end_ns; i--)
        if (items[i].event->track == items[gate].event->track && !e->taken[i] &&
            items[i].kind == ENG_CLASS_PROJECTION)
            return i;
    if (gate >= 0) return gate;
    int64_t projection = next_of(e, g, ENG_CLASS_PROJECTION, to);
    if (projection >= 0) return projection;
    for (int64_t i = g->last + 1; i < to && i < end; i++)
        if (items[i].event->track == items[g->last].event->track && !is_wait_class(&items[i]) &&
            follows(e, i, ENG_CLASS_OTHER, g->end_ns))
            return i;
    return -1;
}

/* End of the last own work before the consumer on its stream, at the earliest the group's begin. */
static int64_t needed_at(const Engine *e, const Group *g, int64_t from)
{
    int64_t needed = g->begin_ns;
    const EngTraceEvent *consumer = e->items[g->consumer].event;
    for (int64_t i = g->consumer - 1; i >= from; i--) {
        const Item *item = &e->items[i];
        if (item->event->track != consumer->track || is_wait_class(item)) continue;
        if (item->event->end_ns > needed) needed = item->event->end_ns;
        break;
    }
    return needed < consumer->start_ns ? needed : consumer->start_ns;
}

/* What runs between the group's first lookup and its consumer; *ready moves to the end of the last
 * read, collective or copy among it. */
static EngStatus add_causes(Engine *e, const Group *g, int64_t from, int64_t to,
                            EngIntervals sets[ENG_WAIT_QUEUE], int64_t *ready)
{
    EngStatus status = ENG_OK;
    int64_t start = g->consumer < 0 ? INT64_MAX : e->items[g->consumer].event->start_ns;
    int64_t i = g->first;
    while (i > from && e->items[i - 1].event->start_ns >= g->begin_ns) i--; /* the hash */
    for (; i < to && !status && e->items[i].event->start_ns < start; i++) {
        const Item *item = &e->items[i];
        int64_t end = item->event->end_ns < start ? item->event->end_ns : start;
        int cause = item->kind == ENG_CLASS_LOOKUP       ? ENG_WAIT_READ
                    : item->kind == ENG_CLASS_COLLECTIVE ? ENG_WAIT_COLLECTIVE
                    : item->kind == ENG_CLASS_HASH       ? ENG_WAIT_HASH
                                                         : ENG_WAIT_COPY;
        /* Other groups' lookups are queueing to this one. */
        if (!is_wait_class(item) || (cause == ENG_WAIT_READ && (i < g->first || i > g->last)))
            continue;
        status = eng_intervals_add(&sets[cause], item->event->start_ns, end, e->err);
        if (cause != ENG_WAIT_HASH && end > *ready) *ready = end;
    }
    for (int c = 0; c < ENG_WAIT_QUEUE; c++) eng_intervals_close(&sets[c]);
    return status;
}

/* Hash and lookups on the consumer's own stream: it does nothing else while they run, whatever it
 * does between them and the consumer. */
static EngStatus add_serial(Engine *e, const Group *g, int64_t from, EngIntervals *waits)
{
    EngStatus status = ENG_OK;
    int track = e->items[g->consumer].event->track;
    for (int64_t i = g->last; i >= from && !status; i--) {
        const EngTraceEvent *work = e->items[i].event;
        EngKernelClass kind = e->items[i].kind;
        if (work->start_ns < g->begin_ns) break;
        if (work->track == track &&
            (kind == ENG_CLASS_HASH || (kind == ENG_CLASS_LOOKUP && i >= g->first)))
            status = eng_intervals_add(waits, work->start_ns, work->end_ns, e->err);
    }
    return status;
}

/* Union of the group's reads, and who waited for them. */
static EngStatus measure(Engine *e, const Group *g, int64_t from, int64_t to, int64_t ordinal)
{
    const EngEngineOptions *o = e->options;
    const Item *first = &e->items[g->first];
    EngIntervals sets[ENG_WAIT_QUEUE] = {0}, waits = {0}, reads = {0};
    int n_layers = o->n_layers > 0 ? o->n_layers : 1;
    EngFetch fetch = {.device = first->device,
                      .step = first->step >= 0 ? step_number(e, first->step)
                              : e->n_steps     ? -1
                                               : ordinal / n_layers,
                      .layer = o->n_layers > 0 ? o->layers[ordinal % n_layers] : -1,
                      .tokens = o->tokens,
                      .bytes = o->tokens < 0 ? -1 : o->tokens * o->bytes_per_token,
                      .start_ns = first->event->start_ns,
                      .read = first->event,
                      .stall_ns = -1,
                      .step_ns = -1,
                      .ready_ns = g->end_ns,
                      .consumer_ns = -1,
                      .hidden = NAN};
    if (first->step >= 0)
        fetch.step_ns = e->steps[first->step]->end_ns - e->steps[first->step]->start_ns;
    EngStatus status = ENG_OK;
    for (int64_t i = g->first; i <= g->last && !status; i++)
        if (e->items[i].kind == ENG_CLASS_LOOKUP)
            status = eng_intervals_add(&reads, e->items[i].event->start_ns,
                                       e->items[i].event->end_ns, e->err);
    eng_intervals_close(&reads);
    fetch.fetch_ns = eng_intervals_total(&reads);
    if (!status && g->consumer >= 0) {
        int64_t needed = needed_at(e, g, from);
        fetch.consumer = e->items[g->consumer].event;
        fetch.consumer_ns = fetch.consumer->start_ns;
        status = add_causes(e, g, from, to, sets, &fetch.ready_ns);
        int64_t ready = fetch.ready_ns < fetch.consumer_ns ? fetch.ready_ns : fetch.consumer_ns;
        if (!status && ready > needed) status = eng_intervals_add(&waits, needed, ready, e->err);
        if (!status) status = add_serial(e, g, from, &waits);
        eng_intervals_close(&waits);
        if (!status) status = eng_overlap_divide(&fetch, &waits, sets, e->err);
    }
    if (!status) status = eng_overlap_add(&e->out->overlap, &fetch, e->err);
    for (int c = 0; c < ENG_WAIT_QUEUE; c++) eng_intervals_free(&sets[c]);
    eng_intervals_free(&waits);
    eng_intervals_free(&reads);
    return status;
}

static bool has_name(const Engine *e, const Group *g, const EngTraceEvent *event)
{
    for (int64_t i = g->first; i <= g->last; i++)
        if (e->items[i].kind == ENG_CLASS_LOOKUP && e->items[i].event->name == event->name)
            return true;
    return false;
}

/* The groups of one device, items from..to, each paired with its consumer in the same order. */
static EngStatus measure_device(Engine *e, int64_t from, int64_t to)
{
    EngStatus status = ENG_OK;
    int64_t hash_ns = -1, ordinal = 0, last_step = -1;
    Group g = {.first = -1};
    for (int64_t i = from; i <= to && !status; i++) {
        const Item *item = i < to ? &e->items[i] : NULL;
        bool lookup = item && item->kind == ENG_CLASS_LOOKUP;
        if (g.first >= 0 && (!item || (lookup && has_name(e, &g, item->event)))) {
            g.consumer = find_consumer(e, &g, to);
            if (g.consumer >= 0) e->taken[g.consumer] = true;
            int64_t step = e->items[g.first].step;
            if (e->n_steps && step != last_step) ordinal = 0;
            last_step = step;
            status = measure(e, &g, from, to, ordinal++);
            g = (Group){.first = -1};
        }
        if (item && item->kind == ENG_CLASS_HASH && hash_ns < 0) hash_ns = item->event->start_ns;
        if (!lookup) continue;
        if (g.first < 0) {
            g = (Group){
                .first = i, .begin_ns = item->event->start_ns, .end_ns = item->event->end_ns};
            if (hash_ns >= 0) g.begin_ns = hash_ns;
            hash_ns = -1;
        }
        g.last = i;
        if (item->event->end_ns > g.end_ns) g.end_ns = item->event->end_ns;
    }
    return status;
}

/* ---- all ---------------------------------------------------------------------------------------
 */

static EngStatus allocate(Engine *e)
{
    size_t n = (size_t)e->trace->n_events + 1;
    EngStatus status = eng_alloc_or((void **)&e->items, n, sizeof *e->items, "GPU work", e->err);
    if (!status) status = eng_alloc_or((void **)&e->steps, n, sizeof *e->steps, "steps", e->err);
    if (!status)
        status = eng_alloc_or((void **)&e->calls, n, sizeof *e->calls, "API calls", e->err);
    if (!status) status = eng_alloc_or((void **)&e->taken, n, sizeof *e->taken, "GPU work", e->err);
    return status;
}

EngStatus eng_engine_read(const EngTrace *trace, const EngEngineOptions *options, EngEngine *out,
                          EngErr *err)
{
    Engine e = {.trace = trace, .options = options, .out = out, .err = err};
    *out = (EngEngine){0};
    EngStatus status = compile_all(&e);
    if (!status) status = allocate(&e);
    if (!status) {
        make_items(&e);
        find_steps(&e);
    }
    for (int64_t from = 0, to; !status && from < e.n; from = to) {
        for (to = from + 1; to < e.n && e.items[to].device == e.items[from].device;) to++;
        for (int c = 0; c < ENG_CLASS_COUNT && !status; c++) status = time_class(&e, from, to, c);
        if (!status) status = measure_device(&e, from, to);
    }
    if (!status) eng_overlap_sort(&out->overlap);
    for (int c = 0; c < e.n_patterns; c++) regfree(&e.patterns[c]);
    if (e.has_step) regfree(&e.step);
    eng_free(e.items);
    eng_free(e.steps);
    eng_free(e.calls);
    eng_free(e.taken);
    if (status) eng_engine_free(out);
    return status;
}

void eng_engine_free(EngEngine *engine)
{
    eng_overlap_free(&engine->overlap);
}
