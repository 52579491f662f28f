/* See stopping.h. */
#include "bench/core/stopping.h"

#include <math.h>

#include "base/mem.h"
#include "bench/core/stats.h"

const char *eng_stop_name(EngStop stop)
{
    return stop == ENG_STOP_PRECISE ? "precise" : stop == ENG_STOP_SETTLED ? "noise settled" : "";
}

static double width_of(const EngMedian *median)
{
    if (isnan(median->ci_lo) || !(median->median > 0)) return INFINITY;
    return fmax(median->ci_hi / median->median - 1, 1 - median->ci_lo / median->median);
}

/* The wider of the two intervals over the first n samples; scratch [n]. */
static double widest(const EngStopSamples *samples, int n, double *scratch)
{
    for (int i = 0; i < n; i++) scratch[i] = samples->times[i];
    EngMedian median = eng_median_in_place(scratch, (size_t)n);
    double width = width_of(&median);
    size_t paired = 0;
    for (int i = 0; samples->ratios && i < n; i++)
        if (!isnan(samples->ratios[i])) scratch[paired++] = samples->ratios[i];
    if (!paired) return width;
    median = eng_median_in_place(scratch, paired);
    return fmax(width, width_of(&median));
}

/* Samples of the first half of the lifetimes (rounded down); *count: all lifetimes. */
static int first_half(const EngStopSamples *samples, int *count)
{
    int seen = 0, half = 0;
    *count = 0;
    for (int i = 0; i < samples->n; i++)
        *count += !i || samples->segments[i] != samples->segments[i - 1];
    for (int i = 0; i < samples->n; i++) {
        seen += !i || samples->segments[i] != samples->segments[i - 1];
        if (seen <= *count / 2) half = i + 1;
    }
    return half;
}

EngStatus eng_stop_decide(const EngStopRule *rule, const EngStopSamples *samples, EngStop *stop,
                          EngErr *err)
{
    int lifetimes, half = first_half(samples, &lifetimes);
    double *scratch;
    *stop = ENG_STOP_NOT;
    if (samples->n < ENG_STOP_MIN_PAIRS || lifetimes < ENG_STOP_MIN_SEGMENTS) return ENG_OK;
    EngStatus status = eng_alloc_or((void **)&scratch, (size_t)samples->n, sizeof *scratch,
                                    "the samples of a point", err);
    if (status) return status;
    double width = widest(samples, samples->n, scratch);
    if (width <= rule->precision)
        *stop = ENG_STOP_PRECISE;
    else if (lifetimes >= ENG_STOP_SETTLED_SEGMENTS &&
             width > (1 - rule->settled) * widest(samples, half, scratch))
        *stop = rule->settled > 0 ? ENG_STOP_SETTLED : ENG_STOP_NOT;
    eng_free(scratch);
    return ENG_OK;
}
