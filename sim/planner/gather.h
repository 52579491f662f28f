/* Time to gather rows from a tier, or through several in a row (a host's memory and the link to
 * it): T = issue + max over tiers of t + sum of latencies L. A tier takes t = R / X for R requests,
 * where X is its bandwidth over the bytes of a request or its request rate; where N requests may be
 * under way, the first N are sent at once and wait for the L of the sum only, and those behind them
 * for (R - N) L / N more, joined with R / X by the tier's soft knee (knee.h): ((R - N) L / N)^s +
 * (R / X)^s = t^s. Rows are what a batch reads after deduplication and caches; how many requests a
 * row is follows from the layout and the tier's granule, not from a mean.
 */
#ifndef ENG_SIM_PLANNER_GATHER_H
#define ENG_SIM_PLANNER_GATHER_H

#include <stdint.h>
#include <engram/types.h>

#include "sim/machine/machine.h"

#define ENG_MAX_STAGES 4

/* Limits of a tier: three of its rate, of which the slowest counts, and what the first row waits
 * for whatever the rate. */
typedef enum EngGatherTerm {
    ENG_GATHER_BANDWIDTH = 0,
    ENG_GATHER_REQUEST_RATE,
    ENG_GATHER_OUTSTANDING, /* of requests that wait until one before them is answered */
    ENG_GATHER_LATENCY,
    ENG_GATHER_COUNT
} EngGatherTerm;

/* Bytes of one row as they lie in a tier. */
typedef struct EngRowLayout {
    double value_bytes, value_stride;
    double scale_bytes, scale_stride; /* 0: none, or inside value_bytes */
    /* Holder of the scales; NULL: beside the values. On the path, tiers before it carry values
     * only; off it, all do, and it is a stage more. */
    const EngTier *scales;
    double scale_rows; /* scales read for each row of values; 0: 1 */
    int values_from;   /* the path's stages from this on carry values only; 0: all as said above */
} EngRowLayout;

EngRowLayout eng_row_layout(EngRowFormat format, int row_dims);

/* Mean blocks of `granule` bytes that a piece of `bytes` at multiples of `stride` touches, exact
 * over all rows of a table that starts at a block. */
double eng_blocks_touched(double bytes, double stride, double granule);

typedef struct EngStage {
    const EngTier *tier;
    double rows;                    /* that it carries */
    double requests, bytes;         /* of the gather */
    double terms[ENG_GATHER_COUNT]; /* s, each limit alone; 0: not a limit */
    double time;                    /* s, without latency */
    EngGatherTerm binding;          /* the longest of the terms */
    double crowd; /* fetches that share the tier on the mean, this one included; 1: alone */
    bool hard;    /* no exponent is known: the lesser of two asymptotes, which is optimistic */
} EngStage;

typedef struct EngGather {
    /* n_path: without one of scales that lie elsewhere, read meanwhile: with its own latency it may
     * take longer than the path, and is the slowest then. */
    int n_stages, n_path;
    EngStage stages[ENG_MAX_STAGES];
    int slowest;
    double issue, time; /* s */
} EngGather;

/* rows may be a mean. issue: s. ENG_USAGE: no tiers or too many, negative rows; ENG_UNSUPPORTED: a
 * tier without latency, without bandwidth and request rate, or whose bandwidth is a specification
 * and has no efficiency for random rows. */
EngStatus eng_gather_plan(const EngTier *const *tiers, int n_tiers, const EngRowLayout *layout,
                          double rows, double issue, EngGather *gather, EngErr *err);
/* The same where stages carry different numbers of rows: rows[n_tiers], and one more for a holder
 * of scales off the path. */
EngStatus eng_gather_plan_rows(const EngTier *const *tiers, int n_tiers, const EngRowLayout *layout,
                               const double *rows, double issue, EngGather *gather, EngErr *err);

/* Slowest stage and time of what the stages take. */
void eng_gather_sum(EngGather *gather);

/* B/s that a tier gives; of a specification, the share of it that efficiency says. ENG_UNSUPPORTED.
 */
EngStatus eng_tier_rate(const EngTier *tier, double *rate, EngErr *err);

const char *eng_gather_term_name(EngGatherTerm term);

#endif
