/* engram trace saturation: the share of saturated gates over time, per layer. Each is a mark
 * "saturated" with a number on the thread of a gate; its layer is that of the range around it. */
#include "bench/cli/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct Mark {
    int64_t layer, step, at_ns;
    double share;
} Mark;

typedef struct Slice {
    int64_t n;
    double sum, lo, hi;
} Slice;

/* Ranges of a track come before the marks they hold: a stack of the open ones is enough. */
static int64_t collect(const EngTrace *trace, Mark *marks)
{
    const EngTraceEvent *open[64];
    int depth = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < trace->n_events; i++) {
        const EngTraceEvent *e = &trace->events[i];
        if (i && trace->events[i - 1].track != e->track) depth = 0;
        while (depth && open[depth - 1]->end_ns < e->start_ns) depth--;
        if (e->what == ENG_TRACE_RANGE && depth < 64) open[depth++] = e;
        if (e->what != ENG_TRACE_MARK || strcmp(e->name, "saturated") || isnan(e->value)) continue;
        Mark mark = {-1, -1, e->start_ns, e->value};
        for (int d = depth - 1; d >= 0 && (mark.layer < 0 || mark.step < 0); d--) {
            if (mark.layer < 0) mark.layer = open[d]->layer;
            if (mark.step < 0) mark.step = open[d]->step;
        }
        marks[n++] = mark;
    }
    return n;
}

static int by_layer(const void *a, const void *b)
{
    const Mark *x = a, *y = b;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* Marks of one layer into equal slices of the time from the first to the last mark of all. */
static void put_layer(EngTraceRows *rows, const Mark *marks, int64_t n, int64_t from, int64_t to,
                      int64_t n_slices)
{
    for (int64_t s = 0, i = 0; s < n_slices; s++) {
        int64_t end = s + 1 == n_slices ? to + 1 : from + (to - from) / n_slices * (s + 1);
        Slice slice = {0, 0, INFINITY, -INFINITY};
        int64_t at = from + (to - from) / n_slices * s, first = -1, last = -1;
        for (; i < n && marks[i].at_ns < end; i++) {
            slice.n++;
            slice.sum += marks[i].share;
            slice.lo = fmin(slice.lo, marks[i].share);
            slice.hi = fmax(slice.hi, marks[i].share);
            if (first < 0) first = marks[i].step;
            last = marks[i].step;
        }
        if (!slice.n) continue;
        eng_trace_rows_int(rows, marks[0].layer, marks[0].layer >= 0);
        eng_trace_rows_us(rows, at, true);
        eng_trace_rows_int(rows, first, first >= 0);
        eng_trace_rows_int(rows, last, last >= 0);
        eng_trace_rows_int(rows, slice.n, true);
        eng_trace_rows_real(rows, slice.sum / (double)slice.n);
        eng_trace_rows_real(rows, slice.lo);
        eng_trace_rows_real(rows, slice.hi);
    }
}

EngStatus eng_trace_saturation(EngCli *cli, const char *file, EngErr *err)
{
    EngTrace *trace = NULL;
    EngTraceRows rows;
    Mark *marks = NULL;
    bool table;
    int64_t n = 0, slices = 10, from = INT64_MAX, to = INT64_MIN;
    EngStatus status = eng_trace_is_table(cli, &table, err);
    if (!status) status = eng_cli_int(cli, "slices", 1, 100000, &slices, err);
    if (!status) status = eng_trace_open(file, &trace, err);
    if (status) return status;
    eng_trace_headline(trace, table ? stdout : stderr);
    status = eng_alloc_or((void **)&marks, (size_t)trace->n_by_what[ENG_TRACE_MARK] + 1,
                          sizeof *marks, "marks", err);
    if (!status) n = collect(trace, marks);
    if (!status && !n)
        status = ENG_FAIL(err, ENG_NOT_FOUND, "%s: no mark `saturated` with a number", file);
    if (!status)
        status = eng_trace_rows_begin(
            &rows, cli, "share of saturated gates (at most 0.05 or at least 0.95), by time",
            "+layer,+from_us,+first_step,+last_step,+marks,+mean,+min,+max", err);
    if (status) goto out;
    qsort(marks, (size_t)n, sizeof *marks, by_layer);
    for (int64_t i = 0; i < n; i++) {
        if (marks[i].at_ns < from) from = marks[i].at_ns;
        if (marks[i].at_ns > to) to = marks[i].at_ns;
    }
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && marks[end].layer == marks[i].layer;) end++;
        put_layer(&rows, marks + i, end - i, from, to, slices);
    }
    status = eng_trace_rows_end(&rows);
out:
    eng_free(marks);
    eng_trace_close(trace);
    return status;
}
