/* Overlap from NVTX ranges, and what both sources share; see overlap.h. */
#include "bench/trace/overlap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nvtx.h"

const char *eng_wait_cause_name(EngWaitCause cause)
{
    static const char *const names[] = {"read", "collective", "hash", "copy", "queue"};
    return (unsigned)cause < ENG_WAIT_COUNT ? names[cause] : "unknown";
}

EngStatus eng_overlap_add(EngOverlap *overlap, const EngFetch *fetch, EngErr *err)
{
    if (overlap->n == overlap->room) {
        int64_t room = overlap->room ? 2 * overlap->room : 64;
        EngFetch *grown = eng_realloc(overlap->fetches, (size_t)overlap->n * sizeof *grown,
                                      (size_t)room * sizeof *grown);
        if (!grown) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for fetches");
        overlap->fetches = grown;
        overlap->room = room;
    }
    overlap->fetches[overlap->n++] = *fetch;
    overlap->n_without_consumer += fetch->stall_ns < 0;
    return ENG_OK;
}

void eng_overlap_free(EngOverlap *overlap)
{
    eng_free(overlap->fetches);
    *overlap = (EngOverlap){0};
}

static int by_step(const void *a, const void *b)
{
    const EngFetch *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void eng_overlap_sort(EngOverlap *overlap)
{
    if (overlap->n) qsort(overlap->fetches, (size_t)overlap->n, sizeof *overlap->fetches, by_step);
}

EngStatus eng_overlap_divide(EngFetch *fetch, const EngIntervals *waits,
                             const EngIntervals sets[ENG_WAIT_QUEUE], EngErr *err)
{
    EngIntervals rest = {0}, less = {0};
    fetch->stall_ns = eng_intervals_total(waits);
    EngStatus status = eng_intervals_add_all(&rest, waits, err);
    for (int c = 0; !status && c < ENG_WAIT_QUEUE; c++) {
        fetch->wait_ns[c] = eng_intervals_common(&rest, &sets[c]);
        status = eng_intervals_subtract(&rest, &sets[c], &less, err);
        EngIntervals swap = rest;
        rest = less;
        less = swap;
    }
    fetch->wait_ns[ENG_WAIT_QUEUE] = eng_intervals_total(&rest);
    fetch->hidden = eng_hidden_fraction(fetch->fetch_ns, fetch->stall_ns);
    eng_intervals_free(&rest);
    eng_intervals_free(&less);
    return status;
}

/* ---- ranges ------------------------------------------------------------------------------------
 */

static bool is_ours(const EngTraceEvent *e, EngRange range)
{
    return e->what == ENG_TRACE_RANGE && !strcmp(e->domain, "engram") &&
           !strcmp(e->name, eng_range_name(range));
}

static int64_t process_of(const EngTrace *trace, const EngTraceEvent *e)
{
    return trace->tracks[e->track].global & ~INT64_C(0xffffff);
}

static int by_group(const void *a, const void *b, void *trace)
{
    const EngTraceEvent *x = *(const EngTraceEvent *const *)a,
                        *y = *(const EngTraceEvent *const *)b;
    int64_t p = process_of(trace, x), q = process_of(trace, y);
    if (p != q) return p < q ? -1 : 1;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Fetches and waits of one step and layer of a process, found[0..n). */
static EngStatus take_group(const EngTraceEvent *const *found, int64_t n, int64_t process,
                            const EngIntervals *hash, EngOverlap *out, EngErr *err)
{
    EngIntervals sets[ENG_WAIT_QUEUE] = {0}, waits = {0};
    EngFetch fetch = {.device = -1,
                      .process = process,
                      .step = found[0]->step,
                      .layer = found[0]->layer,
                      .tokens = -1,
                      .bytes = -1,
                      .start_ns = found[0]->start_ns,
                      .step_ns = -1,
                      .ready_ns = INT64_MIN,
                      .consumer_ns = -1,
                      .hidden = NAN};
    EngStatus status = ENG_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        const EngTraceEvent *e = found[i];
        bool wait = is_ours(e, ENG_RANGE_WAIT);
        EngIntervals *set = wait ? &waits : &sets[ENG_WAIT_READ];
        status = eng_intervals_add(set, e->start_ns, e->end_ns, err);
        if (wait) {
            if (e->end_ns >= fetch.consumer_ns) {
                fetch.consumer_ns = e->end_ns;
                fetch.consumer = e;
            }
            continue;
        }
        if (!fetch.read) fetch.read = e;
        if (e->tokens > fetch.tokens) fetch.tokens = e->tokens;
        if (e->bytes >= 0) fetch.bytes = (fetch.bytes < 0 ? 0 : fetch.bytes) + e->bytes;
        if (e->end_ns > fetch.ready_ns) fetch.ready_ns = e->end_ns;
    }
    eng_intervals_close(&sets[ENG_WAIT_READ]);
    eng_intervals_close(&waits);
    fetch.fetch_ns = eng_intervals_total(&sets[ENG_WAIT_READ]);
    sets[ENG_WAIT_HASH] = *hash;
    if (!status) status = eng_overlap_divide(&fetch, &waits, sets, err);
    if (!status) status = eng_overlap_add(out, &fetch, err);
    eng_intervals_free(&sets[ENG_WAIT_READ]);
    eng_intervals_free(&waits);
    return status;
}

/* Durations of the steps; fetches are sorted by step. */
static void set_steps(const EngTrace *trace, EngOverlap *out)
{
    for (int64_t i = 0; i < trace->n_events; i++) {
        const EngTraceEvent *e = &trace->events[i];
        int64_t lo = 0, hi = out->n;
        if (e->step < 0 || !is_ours(e, ENG_RANGE_STEP)) continue;
        while (lo < hi) {
            int64_t middle = lo + (hi - lo) / 2;
            if (out->fetches[middle].step < e->step)
                lo = middle + 1;
            else
                hi = middle;
        }
        for (; lo < out->n && out->fetches[lo].step == e->step; lo++)
            if (out->fetches[lo].process == process_of(trace, e))
                out->fetches[lo].step_ns = e->end_ns - e->start_ns;
    }
}

static EngStatus find_hashes(const EngTrace *trace, int64_t process, EngIntervals *hash,
                             EngErr *err)
{
    EngStatus status = ENG_OK;
    eng_intervals_clear(hash);
    for (int64_t i = 0; i < trace->n_events && !status; i++) {
        const EngTraceEvent *e = &trace->events[i];
        if (is_ours(e, ENG_RANGE_HASH) && process_of(trace, e) == process)
            status = eng_intervals_add(hash, e->start_ns, e->end_ns, err);
    }
    eng_intervals_close(hash);
    return status;
}

EngStatus eng_overlap_from_ranges(const EngTrace *trace, EngOverlap *out, EngErr *err)
{
    EngIntervals hash = {0};
    const EngTraceEvent **found = NULL;
    int64_t n = 0;
    *out = (EngOverlap){0};
    EngStatus status = eng_alloc_or((void **)&found, (size_t)trace->n_events + 1, sizeof *found,
                                    "the ranges of a trace", err);
    for (int64_t i = 0; i < trace->n_events && !status; i++) {
        const EngTraceEvent *e = &trace->events[i];
        if (is_ours(e, ENG_RANGE_FETCH) || is_ours(e, ENG_RANGE_WAIT)) found[n++] = e;
    }
    if (n) qsort_r(found, (size_t)n, sizeof *found, by_group, (void *)(uintptr_t)trace);
    for (int64_t i = 0, end; i < n && !status; i = end) {
        int64_t process = process_of(trace, found[i]);
        for (end = i + 1; end < n && found[end]->step == found[i]->step &&
                          found[end]->layer == found[i]->layer &&
                          process_of(trace, found[end]) == process;)
            end++;
        if (!i || process_of(trace, found[i - 1]) != process)
            status = find_hashes(trace, process, &hash, err);
        if (!status) status = take_group(found + i, end - i, process, &hash, out, err);
    }
    if (!status) {
        eng_overlap_sort(out);
        set_steps(trace, out);
    }
    eng_intervals_free(&hash);
    eng_free(found);
    if (status) eng_overlap_free(out);
    return status;
}

/* ---- sums --------------------------------------------------------------------------------------
 */

static bool is_of(const EngFetch *f, const EngLayerOverlap *sum)
{
    return sum->all_layers || (f->device == sum->device && f->layer == sum->layer);
}

/* All sums over the same fetches: those whose consumer is in the trace, else all. One that does not
 * tell its bytes leaves theirs untold. */
static void sum_layer(const EngOverlap *overlap, EngLayerOverlap *sum)
{
    bool stalls = false, told = true;
    for (int64_t i = 0; i < overlap->n && !stalls; i++)
        stalls = is_of(&overlap->fetches[i], sum) && overlap->fetches[i].stall_ns >= 0;
    for (int64_t i = 0; i < overlap->n; i++) {
        const EngFetch *f = &overlap->fetches[i];
        if (!is_of(f, sum) || (stalls && f->stall_ns < 0)) continue;
        sum->n_steps++;
        sum->fetch_ns += f->fetch_ns;
        sum->bytes += f->bytes >= 0 ? f->bytes : 0;
        told = told && (f->bytes >= 0 || !f->fetch_ns);
        sum->stall_ns += stalls ? f->stall_ns : 0;
        for (int c = 0; c < ENG_WAIT_COUNT; c++) sum->wait_ns[c] += f->wait_ns[c];
    }
    sum->hidden = stalls ? eng_hidden_fraction(sum->fetch_ns, sum->stall_ns) : NAN;
    if (!stalls) sum->stall_ns = -1;
    if (!told) sum->bytes = -1;
}

EngStatus eng_overlap_by_layer(const EngOverlap *overlap, EngLayerOverlap **layers, int *n,
                               EngErr *err)
{
    *n = 0;
    EngStatus status =
        eng_alloc_or((void **)layers, (size_t)overlap->n + 1, sizeof **layers, "layers", err);
    if (status) return status;
    for (int64_t i = 0; i < overlap->n; i++) {
        const EngFetch *f = &overlap->fetches[i];
        bool known = false;
        for (int k = 0; k < *n && !known; k++) known = is_of(f, &(*layers)[k]);
        if (known) continue;
        EngLayerOverlap *sum = &(*layers)[(*n)++];
        *sum = (EngLayerOverlap){.device = f->device, .layer = f->layer};
        sum_layer(overlap, sum);
    }
    if (overlap->n) {
        EngLayerOverlap *all = &(*layers)[(*n)++];
        *all = (EngLayerOverlap){.all_layers = true, .device = -1, .layer = -1};
        sum_layer(overlap, all);
    }
    return ENG_OK;
}

/* ---- interference ------------------------------------------------------------------------------
 */

EngStatus eng_overlap_victims(const EngTrace *trace, EngVictim victims[4], int *n, EngErr *err)
{
    static const EngRange kinds[] = {ENG_RANGE_LAYER, ENG_RANGE_PROJECT, ENG_RANGE_GATE,
                                     ENG_RANGE_CONV};
    EngInterval *found = NULL;
    EngIntervals fetch = {0};
    bool *fetches = NULL;
    *n = 0;
    EngStatus status =
        eng_alloc_or((void **)&found, (size_t)trace->n_events + 1, sizeof *found, "ranges", err);
    if (!status)
        status = eng_alloc_or((void **)&fetches, (size_t)trace->n_tracks + 1, sizeof *fetches,
                              "tracks", err);
    for (int64_t i = 0; i < trace->n_events && !status; i++) {
        const EngTraceEvent *e = &trace->events[i];
        if (!is_ours(e, ENG_RANGE_FETCH)) continue;
        fetches[e->track] = true;
        status = eng_intervals_add(&fetch, e->start_ns, e->end_ns, err);
    }
    eng_intervals_close(&fetch);
    for (int k = 0; k < 4 && !status && fetch.n; k++) {
        int64_t n_found = 0;
        for (int64_t i = 0; i < trace->n_events; i++) {
            const EngTraceEvent *e = &trace->events[i];
            if (is_ours(e, kinds[k]) && !fetches[e->track])
                found[n_found++] = (EngInterval){e->start_ns, e->end_ns};
        }
        if (!n_found) continue;
        victims[*n].name = eng_range_name(kinds[k]);
        status = eng_interference(found, n_found, &fetch, &victims[(*n)++].effect, err);
    }
    eng_intervals_free(&fetch);
    eng_free(found);
    eng_free(fetches);
    return status;
}
