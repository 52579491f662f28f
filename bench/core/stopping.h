/* When has a point enough samples? Asked between worker lifetimes only, never after a single
 * sample, and answered from how wide the 95 % intervals are, never from where they lie: stopping
 * then says nothing about the value. Pure functions. */
#ifndef ENG_BENCH_STOPPING_H
#define ENG_BENCH_STOPPING_H

#include <engram/status.h>

/* No decision before these: an interval of few pairs, or of one lifetime's layout, is narrow by
 * accident too often. */
#define ENG_STOP_MIN_PAIRS    31
#define ENG_STOP_MIN_SEGMENTS 2
/* "Settled" compares with what half of the lifetimes gave, which needs a few of them. */
#define ENG_STOP_SETTLED_SEGMENTS 4

typedef struct EngStopRule {
    double precision; /* interval within this share of the median on both sides; 0: never */
    double settled; /* twice the samples narrowed the interval by less than this share; 0: never */
} EngStopRule;

/* Samples of one point in the order taken. ratios: time of the roof over time of the point, from
 * the same rounds; NAN where a round lacks one, NULL without a roof. */
typedef struct EngStopSamples {
    int n;
    const int *segments; /* [n] ascending */
    const double *times;
    const double *ratios;
} EngStopSamples;

typedef enum EngStop {
    ENG_STOP_NOT = 0,
    ENG_STOP_PRECISE, /* the intervals of the median and of the ratio are narrow enough */
    ENG_STOP_SETTLED  /* more samples do not narrow them */
} EngStop;
const char *eng_stop_name(EngStop stop); /* "precise", "noise settled", "" */

EngStatus eng_stop_decide(const EngStopRule *rule, const EngStopSamples *samples, EngStop *stop,
                          EngErr *err);

#endif
