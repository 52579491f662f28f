/* Order statistics; see stats.h. */
#include "bench/core/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Outside coverage on each side: 95 % between the two ranks. */
#define TAIL 0.025L

void eng_rank_walk_next(EngRankWalk *walk)
{
    /* From n to n + 1 fair coins: P(B <= k) loses half of P(B = k). */
    int n = ++walk->n;
    if (n == 1) {
        *walk = (EngRankWalk){.n = 1, .first = 0, .below = 0.5L, .at = 0.5L};
        return;
    }
    walk->below -= walk->at / 2;
    walk->at *= (long double)n / (2 * (long double)(n - walk->first));
    while (walk->below <= TAIL) {
        walk->at *= (long double)(n - walk->first) / (long double)(walk->first + 1);
        walk->first++;
        walk->below += walk->at;
    }
}

bool eng_rank_walk_ranks(const EngRankWalk *walk, int *lo, int *hi)
{
    *lo = walk->first;
    *hi = walk->first ? walk->n + 1 - walk->first : 0;
    return walk->first > 0;
}

bool eng_median_ranks(int n, int *lo, int *hi)
{
    EngRankWalk walk = {0};
    while (walk.n < n) eng_rank_walk_next(&walk);
    return eng_rank_walk_ranks(&walk, lo, hi);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

EngMedian eng_median_in_place(double *values, size_t n)
{
    EngMedian out = {(int)n, NAN, NAN, NAN};
    int lo, hi;
    if (!n) return out;
    qsort(values, n, sizeof *values, compare_doubles);
    out.median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    if (eng_median_ranks((int)n, &lo, &hi)) {
        out.ci_lo = values[lo - 1];
        out.ci_hi = values[hi - 1];
    }
    return out;
}

EngStatus eng_median(const double *values, size_t n, EngMedian *out, EngErr *err)
{
    void *copy;
    *out = (EngMedian){0, NAN, NAN, NAN};
    EngStatus status = eng_alloc_or(&copy, n, sizeof *values, "the values of a median", err);
    if (status) return status;
    if (n) memcpy(copy, values, n * sizeof *values);
    *out = eng_median_in_place(copy, n);
    eng_free(copy);
    return ENG_OK;
}

double eng_quantile_sorted(const double *values, size_t n, double q)
{
    if (!n) return NAN;
    double place = q * (double)(n - 1);
    if (place <= 0) return values[0];
    size_t below = (size_t)place;
    if (below >= n - 1) return values[n - 1];
    return values[below] + (place - (double)below) * (values[below + 1] - values[below]);
}
