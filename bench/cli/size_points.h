/* Simulated and published points of a plan, gathered before they are stored. */
#ifndef ENG_BENCH_CLI_SIZE_POINTS_H
#define ENG_BENCH_CLI_SIZE_POINTS_H

#include "base/mem.h"
#include "bench/cli/size_parts.h"

/* Metrics of the experiment "size"; each figure has some of them. */
typedef enum EngSizeMetric {
    ENG_SIZE_BYTES = 0,
    ENG_SIZE_ROWS,
    ENG_SIZE_FETCH_US,
    ENG_SIZE_WINDOW_US,
    ENG_SIZE_STALL_US,
    ENG_SIZE_STEP_US,
    ENG_SIZE_TERM_US,
    ENG_SIZE_RATE_PER_S,
    ENG_SIZE_SHARE,
    ENG_SIZE_SHARE_LOW,
    ENG_SIZE_SHARE_HIGH,
    ENG_SIZE_COLD,
    ENG_SIZE_HOSTS,
    ENG_SIZE_GBPS,
    ENG_SIZE_REQUESTS_PER_S,
    ENG_SIZE_UNITS,
    ENG_SIZE_USD_LOW,
    ENG_SIZE_USD_HIGH,
    ENG_SIZE_VALUE,
    ENG_SIZE_METRICS
} EngSizeMetric;

typedef struct EngSizePoints EngSizePoints;

/* A point of figure `what`; what follows up to the next call belongs to it. Failures are sticky and
 * told by eng_size_points_status. */
void eng_size_point(EngSizePoints *points, const char *what);
void eng_size_published(EngSizePoints *points, const char *what, const char *source);
void eng_size_word(EngSizePoints *points, const char *axis, const char *value);
void eng_size_number(EngSizePoints *points, const char *axis, double value);
void eng_size_value(EngSizePoints *points, EngSizeMetric metric, double value);
void eng_size_rests(EngSizePoints *points, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
EngStatus eng_size_points_status(const EngSizePoints *points, EngErr *err);

/* Families of points. */
EngStatus eng_size_plan_points(const EngSize *size, EngSizePoints *points, EngErr *err);
EngStatus eng_size_fleet_points(const EngSize *size, EngSizePoints *points, EngErr *err);
EngStatus eng_size_trace_points(const EngSize *size, EngSizePoints *points, EngErr *err);
EngStatus eng_size_anchor_points(const EngSize *size, EngSizePoints *points, EngErr *err);

#endif
