/* Order statistics: medians with non-parametric intervals, used in the database, by verdicts and by
 * the tables that commands print. Nothing here assumes a distribution. */
#ifndef ENG_BENCH_STATS_H
#define ENG_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include <engram/status.h>

/* Ranks (from 1) of the order statistics that bound the median of n samples with at least 95 %
 * confidence: the largest lo with P(Binomial(n, 1/2) < lo) <= 0.025, hi = n + 1 - lo, by exact
 * binomial sums. false when there is none (n < 6). */
bool eng_median_ranks(int n, int *lo, int *hi);

/* The same for n = 1, 2, 3, ... in constant time each, for tables: start from zeros. */
typedef struct EngRankWalk {
    int n, first;          /* first: smallest k with P(B <= k) > 0.025, which is lo */
    long double below, at; /* P(B <= first) and P(B = first) */
} EngRankWalk;
void eng_rank_walk_next(EngRankWalk *walk);
bool eng_rank_walk_ranks(const EngRankWalk *walk, int *lo, int *hi);

typedef struct EngMedian {
    int n;
    double median;       /* NAN when n is 0; mean of the middle two when n is even */
    double ci_lo, ci_hi; /* NAN below 6 values */
} EngMedian;

/* Sorts a copy. ENG_NO_MEMORY. */
EngStatus eng_median(const double *values, size_t n, EngMedian *out, EngErr *err);
/* Sorts `values` itself: no allocation. */
EngMedian eng_median_in_place(double *values, size_t n);

/* Quantile q in [0, 1] of ascending values, linear between order statistics (numpy's default);
 * NAN for n = 0. */
double eng_quantile_sorted(const double *values, size_t n, double q);

#endif
