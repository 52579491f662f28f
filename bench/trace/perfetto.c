/* Chrome trace JSON; see perfetto.h. */
#include "bench/trace/perfetto.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8 /* tracks that overlapping slices of one stream spread over; then asynchronous */

typedef struct Lane {
    int64_t ends[64];
    int depth;
} Lane;

typedef struct Perfetto {
    const EngTrace *trace;
    EngRowsSink sink;
    void *context;
    EngStr line;
    uint8_t *lanes; /* [n_events]: which lane a slice is on */
    int64_t n_written;
    const char *name; /* quoted last, and as JSON */
    char *quoted;
    EngErr *err;
} Perfetto;

/* JSON text of a name: control characters escaped, bytes that are no UTF-8 made '?'. */
static const char *quote(Perfetto *p, const char *name)
{
    if (p->quoted && p->name == name) return p->quoted;
    json_t *value = json_string(name);
    char *plain = value ? NULL : eng_strdup(name);
    for (char *c = plain; c && *c; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    if (plain) value = json_string(plain);
    free(p->quoted);
    p->quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    p->name = name;
    json_decref(value);
    eng_free(plain);
    p->line.failed = p->line.failed || !p->quoted;
    return p->quoted ? p->quoted : "\"\"";
}

static EngStatus flush(Perfetto *p)
{
    EngStatus status = eng_str_status(&p->line, p->err);
    if (!status) status = p->sink(p->context, p->line.text, p->line.n, p->err);
    p->line.n = 0;
    return status;
}

static void begin(Perfetto *p)
{
    eng_str_add(&p->line, p->n_written++ ? ",\n" : "\n");
}

/* Microseconds from the first event, exactly: a double of the epoch would lose nanoseconds. */
static void add_time(Perfetto *p, const char *key, int64_t ns)
{
    eng_str_printf(&p->line, ",\"%s\":%s%lld.%03lld", key, ns < 0 ? "-" : "",
                   (long long)(llabs(ns) / 1000), (long long)(llabs(ns) % 1000));
}

static int process_of(const EngTrace *t, int track)
{
    const EngTraceTrack *k = &t->tracks[track];
    return k->gpu ? (int)k->device + 1 : 1000 + (int)(k->global >> 24 & 0xffffff);
}

static int thread_of(int track, int lane)
{
    return track * (LANES + 1) + lane + 1;
}

static void add_place(Perfetto *p, int track, int lane)
{
    eng_str_printf(&p->line, ",\"pid\":%d,\"tid\":%d", process_of(p->trace, track),
                   thread_of(track, lane));
}

/* ---- slices ------------------------------------------------------------------------------------
 */

static bool fits(Lane *lane, const EngTraceEvent *e)
{
    while (lane->depth && lane->ends[lane->depth - 1] <= e->start_ns) lane->depth--;
    return lane->depth < 64 && (!lane->depth || lane->ends[lane->depth - 1] >= e->end_ns);
}

static bool is_slice(const EngTraceEvent *e)
{
    return e->what != ENG_TRACE_MARK;
}

/* Each slice on the first lane where it nests; LANES: on none. */
static void choose_lanes(Perfetto *p)
{
    static const Lane none[LANES];
    Lane lanes[LANES];
    memcpy(lanes, none, sizeof lanes);
    for (int64_t i = 0; i < p->trace->n_events; i++) {
        const EngTraceEvent *e = &p->trace->events[i];
        int lane = 0;
        if (i && p->trace->events[i - 1].track != e->track)
            for (int k = 0; k < LANES; k++) lanes[k].depth = 0;
        if (!is_slice(e)) continue;
        while (lane < LANES && !fits(&lanes[lane], e)) lane++;
        p->lanes[i] = (uint8_t)lane;
        if (lane < LANES) lanes[lane].ends[lanes[lane].depth++] = e->end_ns;
    }
}

static void add_args(Perfetto *p, const EngTraceEvent *e)
{
    const struct {
        const char *key;
        int64_t value;
        bool known;
    } all[] = {{"step", e->step, e->step >= 0},
               {"layer", e->layer, e->layer >= 0},
               {"tokens", e->tokens, e->tokens >= 0},
               {"bytes", e->bytes, e->bytes >= 0},
               {"correlation", e->correlation, e->correlation >= 0},
               {"graph_node", e->graph_node, e->graph_node != 0}};
    int n = 0;
    eng_str_add(&p->line, ",\"args\":{");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].known)
            eng_str_printf(&p->line, "%s\"%s\":%lld", n++ ? "," : "", all[i].key,
                           (long long)all[i].value);
    eng_str_add(&p->line, "}");
}

static void add_slice(Perfetto *p, int64_t i)
{
    static const char *const categories[] = {"kernel", "copy", "set", "range", "mark", "api"};
    const EngTraceEvent *e = &p->trace->events[i];
    int lane = p->lanes[i];
    for (int half = 0; half < (lane < LANES ? 1 : 2); half++) {
        int64_t at = (half ? e->end_ns : e->start_ns) - p->trace->first_ns;
        begin(p);
        eng_str_printf(&p->line, "{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":%s",
                       lane < LANES ? "X"
                       : half       ? "e"
                                    : "b",
                       categories[e->what], quote(p, e->name));
        add_place(p, e->track, lane);
        add_time(p, "ts", at);
        if (lane < LANES) add_time(p, "dur", e->end_ns - e->start_ns);
        if (lane == LANES) eng_str_printf(&p->line, ",\"id\":%lld", (long long)i);
        if (!half) add_args(p, e);
        eng_str_add(&p->line, "}");
    }
}

static void add_mark(Perfetto *p, const EngTraceEvent *e)
{
    bool number = isfinite(e->value);
    begin(p);
    eng_str_printf(&p->line, "{\"ph\":\"%s\",\"name\":%s", number ? "C" : "i", quote(p, e->name));
    add_place(p, e->track, 0);
    add_time(p, "ts", e->start_ns - p->trace->first_ns);
    if (number)
        eng_str_printf(&p->line, ",\"args\":{\"value\":%.17g}}", e->value);
    else
        eng_str_add(&p->line, ",\"s\":\"t\"}");
}

/* ---- names, flows ------------------------------------------------------------------------------
 */

static void add_name(Perfetto *p, const char *what, int track, int lane, const char *name)
{
    begin(p);
    eng_str_printf(&p->line, "{\"ph\":\"M\",\"name\":\"%s\"", what);
    add_place(p, track, lane);
    eng_str_printf(&p->line, ",\"args\":{\"name\":%s}}", quote(p, name));
}

static EngStatus add_names(Perfetto *p)
{
    char process[64];
    for (int i = 0; i < p->trace->n_tracks; i++) {
        const EngTraceTrack *k = &p->trace->tracks[i];
        if (k->gpu)
            snprintf(process, sizeof process, "GPU %lld", (long long)k->device);
        else
            snprintf(process, sizeof process, "process %d", process_of(p->trace, i) - 1000);
        p->name = NULL; /* `process` is not one of the trace's texts */
        add_name(p, "process_name", i, 0, process);
        p->name = NULL;
        add_name(p, "thread_name", i, 0, k->name);
    }
    return flush(p);
}

static EngStatus add_overflow_names(Perfetto *p)
{
    for (int64_t i = 0; i < p->trace->n_events; i++) {
        int lane = p->lanes[i];
        char name[96];
        if (!lane || (i && p->trace->events[i - 1].track == p->trace->events[i].track &&
                      p->lanes[i - 1] == lane))
            continue;
        snprintf(name, sizeof name, "%.64s, overlapping %d",
                 p->trace->tracks[p->trace->events[i].track].name, lane);
        p->name = NULL;
        add_name(p, "thread_name", p->trace->events[i].track, lane, name);
    }
    p->name = NULL;
    return flush(p);
}

static void add_flow_end(Perfetto *p, const char *phase, const EngTraceEvent *e, int64_t at,
                         int64_t id)
{
    int lane = p->lanes[e - p->trace->events];
    begin(p);
    eng_str_printf(&p->line, "{\"ph\":\"%s\",\"cat\":\"rows\",\"name\":\"rows\",\"id\":%lld%s",
                   phase, (long long)id, *phase == 'f' ? ",\"bp\":\"e\"" : "");
    add_place(p, e->track, lane);
    add_time(p, "ts", at - p->trace->first_ns);
    eng_str_add(&p->line, "}");
}

/* From the begin of the read to the consumer's kernel, or to the last moment of its wait. */
static EngStatus add_flows(Perfetto *p, const EngOverlap *overlap)
{
    EngStatus status = ENG_OK;
    for (int64_t i = 0; i < overlap->n && !status; i++) {
        const EngTraceEvent *read = overlap->fetches[i].read, *to = overlap->fetches[i].consumer;
        if (!read || !to) continue;
        bool wait = to->what == ENG_TRACE_RANGE;
        int64_t at = wait && to->end_ns > to->start_ns ? to->end_ns - 1 : to->start_ns;
        if (at < read->start_ns) continue;
        add_flow_end(p, "s", read, read->start_ns, i + 1);
        add_flow_end(p, "f", to, at, i + 1);
        status = flush(p);
    }
    return status;
}

EngStatus eng_perfetto_write(const EngTrace *trace, const EngOverlap *overlap, EngRowsSink sink,
                             void *context, EngErr *err)
{
    Perfetto p = {.trace = trace, .sink = sink, .context = context, .err = err};
    EngStatus status = eng_alloc_or((void **)&p.lanes, (size_t)trace->n_events + 1, sizeof *p.lanes,
                                    "a trace's tracks", err);
    if (status) return status;
    choose_lanes(&p);
    eng_str_printf(&p.line, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"product\":%s,",
                   quote(&p, trace->product));
    eng_str_printf(&p.line, "\"schema\":%s,\"sha256\":\"%s\"},\"traceEvents\":[",
                   quote(&p, trace->schema), trace->sha256);
    status = add_names(&p);
    if (!status) status = add_overflow_names(&p);
    for (int64_t i = 0; i < trace->n_events && !status; i++) {
        if (is_slice(&trace->events[i]))
            add_slice(&p, i);
        else
            add_mark(&p, &trace->events[i]);
        if (p.line.n > 1 << 16) status = flush(&p);
    }
    if (!status && overlap) status = add_flows(&p, overlap);
    eng_str_add(&p.line, "\n]}\n");
    if (!status) status = flush(&p);
    free(p.quoted);
    eng_str_free(&p.line);
    eng_free(p.lanes);
    return status;
}
