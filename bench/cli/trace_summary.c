/* engram trace summary: what lies in a trace. Streams and threads with busy time and gaps, then
 * kernels, copies and ranges by name. */
#include "bench/cli/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/core/stats.h"

/* Of a table for people, which stays below 100 columns; CSV and JSON have all. */
#define MOST_NAMES      40
#define MOST_CHARACTERS 44

static EngStatus print_tracks(const EngCli *cli, const EngTrace *trace, EngErr *err)
{
    EngTraceRows rows;
    EngIntervals busy = {0}, gaps = {0};
    EngStatus status =
        eng_trace_rows_begin(&rows, cli, "busy time is the union; gaps lie between first and last",
                             "stream_or_thread,+events,+span_us,+sum_us,+busy_us,+busy_percent,"
                             "+gaps,+longest_gap_us",
                             err);
    for (int i = 0; i < trace->n_tracks && !status; i++) {
        EngTrackWork w;
        status = eng_trace_track_work(trace, i, &w, &busy, &gaps, err);
        if (status || !w.n) continue;
        int64_t span = w.last_ns - w.first_ns;
        eng_trace_rows_text(&rows, trace->tracks[i].name);
        eng_trace_rows_int(&rows, w.n, true);
        eng_trace_rows_us(&rows, span, true);
        eng_trace_rows_us(&rows, w.sum_ns, trace->tracks[i].gpu && w.kernel_ns >= 0);
        eng_trace_rows_us(&rows, w.busy_ns, true);
        eng_trace_rows_real(&rows, span ? 100.0 * (double)w.busy_ns / (double)span : NAN);
        eng_trace_rows_int(&rows, w.n_gaps, true);
        eng_trace_rows_us(&rows, w.longest_gap_ns, true);
    }
    eng_intervals_free(&busy);
    eng_intervals_free(&gaps);
    EngStatus ended = eng_trace_rows_end(&rows);
    return status ? status : ended;
}

/* ---- by name -----------------------------------------------------------------------------------
 */

typedef struct Name {
    EngTraceWhat what;
    const char *name, *domain;
    int64_t n, sum_ns;
    double median_ns, longest_ns;
} Name;

static int by_name(const void *a, const void *b)
{
    const EngTraceEvent *x = *(const EngTraceEvent *const *)a,
                        *y = *(const EngTraceEvent *const *)b;
    if (x->what != y->what) return x->what < y->what ? -1 : 1;
    if (x->domain != y->domain) return x->domain < y->domain ? -1 : 1;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    int64_t p = x->end_ns - x->start_ns, q = y->end_ns - y->start_ns;
    return (p > q) - (p < q);
}

static int by_time(const void *a, const void *b)
{
    const Name *x = a, *y = b;
    if ((x->what < ENG_TRACE_RANGE) != (y->what < ENG_TRACE_RANGE))
        return x->what < ENG_TRACE_RANGE ? -1 : 1;
    if (x->sum_ns != y->sum_ns) return x->sum_ns > y->sum_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Neighbours of equal name into one line; within it they ascend, so the median is in the middle. */
static Name take_name(const EngTraceEvent *const *e, int64_t n)
{
    Name name = {.what = e[0]->what, .name = e[0]->name, .domain = e[0]->domain, .n = n};
    for (int64_t i = 0; i < n; i++) name.sum_ns += e[i]->end_ns - e[i]->start_ns;
    const EngTraceEvent *lo = e[(n - 1) / 2], *hi = e[n / 2], *last = e[n - 1];
    name.median_ns = 0.5 * (double)(lo->end_ns - lo->start_ns + hi->end_ns - hi->start_ns);
    name.longest_ns = (double)(last->end_ns - last->start_ns);
    return name;
}

static EngStatus print_names(const EngCli *cli, Name *names, int64_t n, EngErr *err)
{
    static const char *const what[] = {"kernel", "copy", "set", "range"};
    EngTraceRows rows;
    bool table;
    int64_t gpu_ns = 0, shown = n;
    EngStatus status = eng_trace_is_table(cli, &table, err);
    if (!status)
        status =
            eng_trace_rows_begin(&rows, cli, "by name; share is of the time of all GPU work",
                                 "what,name,+n,+sum_us,+share_percent,+median_us,+longest_us", err);
    if (status) return status;
    EngStr label = {0};
    if (table && n > MOST_NAMES) shown = MOST_NAMES;
    for (int64_t i = 0; i < n; i++) gpu_ns += names[i].what < ENG_TRACE_RANGE ? names[i].sum_ns : 0;
    for (int64_t i = 0; i < shown; i++) {
        const Name *m = &names[i];
        bool gpu = m->what < ENG_TRACE_RANGE;
        label.n = 0;
        eng_str_printf(&label, "%s%s%s", m->domain, *m->domain ? ": " : "", m->name);
        if (table && !label.failed) label.text[eng_utf8_bytes(label.text, MOST_CHARACTERS)] = 0;
        eng_trace_rows_text(&rows, what[m->what]);
        eng_trace_rows_text(&rows, label.failed ? "" : label.text);
        eng_trace_rows_int(&rows, m->n, true);
        eng_trace_rows_us(&rows, m->sum_ns, true);
        eng_trace_rows_real(&rows,
                            gpu && gpu_ns ? 100.0 * (double)m->sum_ns / (double)gpu_ns : NAN);
        eng_trace_rows_real(&rows, m->median_ns * 1e-3);
        eng_trace_rows_real(&rows, m->longest_ns * 1e-3);
    }
    status = eng_trace_rows_end(&rows);
    if (!status) status = eng_str_status(&label, err);
    eng_str_free(&label);
    if (!status && shown < n) printf("%lld more; --format=csv has all\n", (long long)(n - shown));
    return status;
}

static EngStatus sum_names(const EngCli *cli, const EngTrace *trace, EngErr *err)
{
    const EngTraceEvent **all = NULL;
    Name *names = NULL;
    int64_t n = 0, n_names = 0;
    size_t room = (size_t)trace->n_events + 1;
    EngStatus status = eng_alloc_or((void **)&all, room, sizeof *all, "a summary", err);
    if (!status) status = eng_alloc_or((void **)&names, room, sizeof *names, "a summary", err);
    for (int64_t i = 0; i < trace->n_events && !status; i++)
        if (trace->events[i].what <= ENG_TRACE_RANGE) all[n++] = &trace->events[i];
    if (!status && n) qsort(all, (size_t)n, sizeof *all, by_name);
    for (int64_t i = 0, end; i < n && !status; i = end) {
        for (end = i + 1; end < n && all[end]->name == all[i]->name &&
                          all[end]->what == all[i]->what && all[end]->domain == all[i]->domain;)
            end++;
        names[n_names++] = take_name(all + i, end - i);
    }
    if (!status && n_names) qsort(names, (size_t)n_names, sizeof *names, by_time);
    if (!status) status = print_names(cli, names, n_names, err);
    eng_free(all);
    eng_free(names);
    return status;
}

EngStatus eng_trace_summary(EngCli *cli, const char *file, EngErr *err)
{
    EngTrace *trace = NULL;
    bool table;
    EngStatus status = eng_trace_is_table(cli, &table, err);
    if (!status) status = eng_trace_open(file, &trace, err);
    if (status) return status;
    eng_trace_headline(trace, table ? stdout : stderr);
    bool streams = eng_cli_flag(cli, "streams");
    if (table || streams) status = print_tracks(cli, trace, err);
    if (!status && (table || !streams)) status = sum_names(cli, trace, err);
    eng_trace_close(trace);
    return status;
}
