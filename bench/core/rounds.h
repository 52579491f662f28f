/* Rounds: times of several candidates that were sampled in turn, and what may be said of them. A
 * round is one pass over all candidates (a pair number within one worker lifetime); drift of the
 * machine hits a round as a whole, so all comparisons are made within rounds. Pure functions.
 */
#ifndef ENG_BENCH_ROUNDS_H
#define ENG_BENCH_ROUNDS_H

#include <engram/status.h>
#include "bench/core/stats.h"

/* times[r * n_candidates + c], in any unit; NAN: candidate c has no sample in round r. */
typedef struct EngRounds {
    int n_rounds, n_candidates;
    const int *segments; /* [n_rounds]: worker lifetime of each round, ascending */
    const double *times;
} EngRounds;

/* scores[c]: median over rounds of c's time as a multiple of the round's median time; NAN: no
 * sample in a round with another. With one candidate its score is 1. */
EngStatus eng_rounds_scores(const EngRounds *rounds, double *scores, EngErr *err);

/* order[0..n): candidates from the least score to the largest, those without a score last, equals
 * as they come. */
void eng_rounds_order(const double *scores, int n, int *order);

/* Median of time b / time a over the rounds that have both: above 1, a is faster. */
EngStatus eng_rounds_ratio(const EngRounds *rounds, int a, int b, EngMedian *ratio, EngErr *err);

/* The A/A floor: candidate c against itself, as ratios of one round to the round before it in the
 * same lifetime (each round used once). What a difference must exceed to be one: the largest
 * distance of that median's 95 % interval from 1, as a share. NAN: fewer than 6 such ratios.
 * *n_ratios may be NULL. */
EngStatus eng_rounds_floor(const EngRounds *rounds, int c, double *floor, int *n_ratios,
                           EngErr *err);

/* The verdict of a ratio (b's time over a's) against a floor: 1 a is faster, -1 b is, 0 neither:
 * the interval holds 1, is not known, or the median is inside the floor. */
int eng_rounds_verdict(const EngMedian *ratio, double floor);

/* ---- successive halving ------------------------------------------------------------------------
 */

/* A stage samples `candidates` and hands the best `keep` on; the last keeps 1. */
typedef struct EngTuneStage {
    int candidates, keep;
    int segments, pairs; /* rounds = segments * pairs */
} EngTuneStage;

#define ENG_TUNE_MAX_STAGES   12
#define ENG_TUNE_FINAL_ROUNDS 99 /* of the last stage, in three lifetimes */

/* The ladder for n >= 1 candidates: each stage keeps a third and triples the rounds (to 54 at
 * most), until three or fewer are left, which meet in the last. It depends on n alone, so that a
 * search that ran out of time is continued by any later one. Returns the number of stages. */
int eng_tune_ladder(int n_candidates, EngTuneStage stages[ENG_TUNE_MAX_STAGES]);

#endif
