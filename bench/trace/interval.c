/* Interval sets by merging sorted arrays; see interval.h. */
#include "bench/trace/interval.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "bench/core/stats.h"

static EngStatus reserve(EngIntervals *set, int64_t more, EngErr *err)
{
    size_t room, bytes;
    if (set->n + more <= set->room) return ENG_OK;
    if (!eng_add_size((size_t)set->n, (size_t)more, &room)) room = SIZE_MAX;
    if (room < 16) room = 16;
    if (room < (size_t)set->room * 2) room = (size_t)set->room * 2;
    EngInterval *grown = NULL;
    if (eng_mul_size(room, sizeof *grown, &bytes))
        grown = eng_realloc(set->items, (size_t)set->n * sizeof *grown, bytes);
    if (!grown)
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for %lld intervals",
                        (long long)(set->n + more));
    set->items = grown;
    set->room = (int64_t)room;
    return ENG_OK;
}

EngStatus eng_intervals_add(EngIntervals *set, int64_t start, int64_t end, EngErr *err)
{
    if (end < start)
        return ENG_FAIL(err, ENG_BAD_DATA, "an interval ends at %lld, before its start at %lld",
                        (long long)end, (long long)start);
    if (end == start) return ENG_OK;
    EngStatus status = reserve(set, 1, err);
    if (!status) set->items[set->n++] = (EngInterval){start, end};
    return status;
}

EngStatus eng_intervals_add_all(EngIntervals *set, const EngIntervals *other, EngErr *err)
{
    EngStatus status = reserve(set, other->n, err);
    for (int64_t i = 0; !status && i < other->n; i++) set->items[set->n++] = other->items[i];
    return status;
}

static int by_start(const void *a, const void *b)
{
    const EngInterval *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

void eng_intervals_close(EngIntervals *set)
{
    int64_t last = 0;
    bool sorted = true;
    for (int64_t i = 1; i < set->n && sorted; i++)
        sorted = set->items[i - 1].start <= set->items[i].start;
    if (!sorted) qsort(set->items, (size_t)set->n, sizeof *set->items, by_start);
    if (!set->n) return;
    for (int64_t i = 1; i < set->n; i++) {
        EngInterval *end = &set->items[last], next = set->items[i];
        if (next.start > end->end)
            set->items[++last] = next;
        else if (next.end > end->end)
            end->end = next.end;
    }
    set->n = last + 1;
}

void eng_intervals_clear(EngIntervals *set)
{
    set->n = 0;
}

void eng_intervals_free(EngIntervals *set)
{
    eng_free(set->items);
    *set = (EngIntervals){0};
}

int64_t eng_intervals_total(const EngIntervals *set)
{
    int64_t total = 0;
    for (int64_t i = 0; i < set->n; i++) total += set->items[i].end - set->items[i].start;
    return total;
}

/* The first item that ends after `at`. */
static int64_t first_after(const EngIntervals *set, int64_t at)
{
    int64_t lo = 0, hi = set->n;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (set->items[middle].end > at)
            hi = middle;
        else
            lo = middle + 1;
    }
    return lo;
}

static int64_t overlap(EngInterval a, EngInterval b)
{
    int64_t start = a.start > b.start ? a.start : b.start, end = a.end < b.end ? a.end : b.end;
    return end > start ? end - start : 0;
}

int64_t eng_intervals_within(const EngIntervals *set, int64_t from, int64_t to)
{
    int64_t total = 0;
    for (int64_t i = first_after(set, from); i < set->n && set->items[i].start < to; i++)
        total += overlap(set->items[i], (EngInterval){from, to});
    return total;
}

int64_t eng_intervals_common(const EngIntervals *a, const EngIntervals *b)
{
    int64_t total = 0;
    for (int64_t i = 0, k = 0; i < a->n && k < b->n;) {
        total += overlap(a->items[i], b->items[k]);
        if (a->items[i].end < b->items[k].end)
            i++;
        else
            k++;
    }
    return total;
}

EngStatus eng_intervals_intersect(const EngIntervals *a, const EngIntervals *b, EngIntervals *out,
                                  EngErr *err)
{
    EngStatus status = ENG_OK;
    out->n = 0;
    for (int64_t i = 0, k = 0; !status && i < a->n && k < b->n;) {
        EngInterval x = a->items[i], y = b->items[k];
        int64_t start = x.start > y.start ? x.start : y.start, end = x.end < y.end ? x.end : y.end;
        if (start < end) status = eng_intervals_add(out, start, end, err);
        if (x.end < y.end)
            i++;
        else
            k++;
    }
    return status;
}

/* What of [from, to) the items from *k on leave; *k moves to the first that may reach further. */
static EngStatus cut(const EngIntervals *set, int64_t from, int64_t to, int64_t *k,
                     EngIntervals *out, EngErr *err)
{
    EngStatus status = ENG_OK;
    while (*k < set->n && set->items[*k].end <= from) ++*k;
    while (!status && from < to && *k < set->n && set->items[*k].start < to) {
        EngInterval hole = set->items[*k];
        if (hole.start > from) status = eng_intervals_add(out, from, hole.start, err);
        from = hole.end;
        if (hole.end <= to) ++*k;
    }
    return status || from >= to ? status : eng_intervals_add(out, from, to, err);
}

EngStatus eng_intervals_subtract(const EngIntervals *a, const EngIntervals *b, EngIntervals *out,
                                 EngErr *err)
{
    EngStatus status = ENG_OK;
    int64_t k = 0;
    out->n = 0;
    for (int64_t i = 0; !status && i < a->n; i++)
        status = cut(b, a->items[i].start, a->items[i].end, &k, out, err);
    return status;
}

EngStatus eng_intervals_gaps(const EngIntervals *set, int64_t from, int64_t to, EngIntervals *out,
                             EngErr *err)
{
    int64_t k = first_after(set, from);
    out->n = 0;
    return cut(set, from, to, &k, out, err);
}

/* ---- meaning -----------------------------------------------------------------------------------
 */

double eng_hidden_fraction(int64_t fetch_ns, int64_t stall_ns)
{
    if (fetch_ns <= 0) return NAN;
    double hidden = 1 - (double)stall_ns / (double)fetch_ns;
    return hidden > 0 ? hidden : 0;
}

EngStatus eng_interference(const EngInterval *victims, int64_t n_victims, const EngIntervals *fetch,
                           EngInterference *out, EngErr *err)
{
    double *inside = NULL, *apart = NULL;
    EngIntervals all = {0};
    *out = (EngInterference){.inside_ns = NAN, .apart_ns = NAN, .slowdown = NAN};
    EngStatus status =
        eng_alloc_or((void **)&inside, (size_t)n_victims, sizeof *inside, "victims", err);
    if (!status)
        status = eng_alloc_or((void **)&apart, (size_t)n_victims, sizeof *apart, "victims", err);
    for (int64_t i = 0; !status && i < n_victims; i++) {
        int64_t length = victims[i].end - victims[i].start;
        int64_t covered = eng_intervals_within(fetch, victims[i].start, victims[i].end);
        if (length > 0 && covered == length) inside[out->n_inside++] = (double)length;
        if (length > 0 && covered == 0) apart[out->n_apart++] = (double)length;
        status = eng_intervals_add(&all, victims[i].start, victims[i].end, err);
    }
    if (!status) {
        eng_intervals_close(&all);
        out->window_ns = eng_intervals_common(&all, fetch);
        out->inside_ns = eng_median_in_place(inside, (size_t)out->n_inside).median;
        out->apart_ns = eng_median_in_place(apart, (size_t)out->n_apart).median;
        out->slowdown = out->inside_ns / out->apart_ns - 1;
    }
    eng_intervals_free(&all);
    eng_free(inside);
    eng_free(apart);
    return status;
}
