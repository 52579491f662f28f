/* Sets of half-open intervals [start, end) of nanoseconds: what overlap is computed from.
 *
 * A set is built by adding intervals in any order, then closed by eng_intervals_close, which sorts
 * and merges: after that the items are ascending, disjoint and do not touch, so that a set has one
 * form and its total is its length. All other calls want closed sets and give closed ones; each
 * takes time and memory linear in its inputs (closing: n log n and a second copy while it sorts).
 * Start from zeros; free with eng_intervals_free.
 */
#ifndef ENG_BENCH_TRACE_INTERVAL_H
#define ENG_BENCH_TRACE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/status.h>

typedef struct EngInterval {
    int64_t start, end;
} EngInterval;

typedef struct EngIntervals {
    EngInterval *items; /* [n], owned */
    int64_t n, room;
} EngIntervals;

/* An empty interval (start == end) covers nothing and is left out; ENG_BAD_DATA when end < start,
 * ENG_NO_MEMORY. */
EngStatus eng_intervals_add(EngIntervals *set, int64_t start, int64_t end, EngErr *err);
/* All of another set, closed or not. */
EngStatus eng_intervals_add_all(EngIntervals *set, const EngIntervals *other, EngErr *err);
/* Sorts and merges: the union of what was added. */
void eng_intervals_close(EngIntervals *set);
void eng_intervals_clear(EngIntervals *set); /* empty again, memory kept */
void eng_intervals_free(EngIntervals *set);

/* Sum of the lengths: busy time when the set is the union of a stream's work. */
int64_t eng_intervals_total(const EngIntervals *set);
/* Covered time within [from, to), by bisection. */
int64_t eng_intervals_within(const EngIntervals *set, int64_t from, int64_t to);
/* Length of the intersection, without making it. */
int64_t eng_intervals_common(const EngIntervals *a, const EngIntervals *b);

/* *out is replaced by a and b, a without b, or [from, to) without the set; it is neither input. */
EngStatus eng_intervals_intersect(const EngIntervals *a, const EngIntervals *b, EngIntervals *out,
                                  EngErr *err);
EngStatus eng_intervals_subtract(const EngIntervals *a, const EngIntervals *b, EngIntervals *out,
                                 EngErr *err);
EngStatus eng_intervals_gaps(const EngIntervals *set, int64_t from, int64_t to, EngIntervals *out,
                             EngErr *err);

/* ---- what the sets mean (definitions: design section 4) ----------------------------------------
 */

/* 1 - stall / fetch, not below 0; NAN when nothing was fetched. */
double eng_hidden_fraction(int64_t fetch_ns, int64_t stall_ns);

/* Computations of one kind (a victim) and the fetch that runs beside some of them. */
typedef struct EngInterference {
    int64_t window_ns;          /* time in which the victim and the fetch both run */
    int64_t n_inside, n_apart;  /* victims wholly inside the fetch; wholly outside */
    double inside_ns, apart_ns; /* median duration of each, NAN without any */
    double slowdown;            /* inside / apart - 1, NAN unless both are known */
} EngInterference;
/* victims: n_victims single intervals in any order (not merged: each is one computation); fetch:
 * closed. Those that a fetch covers in part count into the window alone. */
EngStatus eng_interference(const EngInterval *victims, int64_t n_victims, const EngIntervals *fetch,
                           EngInterference *out, EngErr *err);

#endif
