/* Statistics of arms that share seeds: what a study with a handful of runs may claim.
 *
 * Runs of one seed share data order and initial tensors across arms, so arms are compared by
 * differences within a seed, by Student's t over seeds. Two tests of a valley in a curve over an
 * axis (rho) are fixed before any run is looked at; each claims a valley only when both of its
 * one-sided contrasts are significant at 5 % (an intersection-union test, which needs no
 * correction). A quadratic fit is no evidence of a valley: on a curve that only falls it claims one
 * in up to 100 % of studies (paper notes 8.5). tests/unit/core/test_paired.c checks power and error
 * rates by simulation.
 */
#ifndef ENG_BENCH_PAIRED_H
#define ENG_BENCH_PAIRED_H

#include <stdbool.h>
#include <stdint.h>

#include <engram/status.h>

#define ENG_PAIRED_ALPHA 0.05

/* Differences a - b of seeds that have both. NAN where there are too few (below 2). */
typedef struct EngPaired {
    int n;
    double mean, sd;  /* of the differences */
    double lo, hi;    /* 95 % interval of the mean, two-sided */
    double p_greater; /* one-sided p of "a is not above b" */
    double p_two;     /* two-sided p of "no difference" */
} EngPaired;

/* NAN entries of a or b leave their seed out. */
EngPaired eng_paired(const double *a, const double *b, int n_seeds);
/* Mean of one arm with its 95 % interval over seeds; mean, lo and hi only. */
EngPaired eng_arm_mean(const double *values, int n_seeds);

/* Losses of a curve: loss[x * n_seeds + seed], NAN where a run is missing or diverged; x ascends.
 * Runs with a collapsed router count like all others: leaving them out would choose by result. */
typedef struct EngCurve {
    int n_x, n_seeds;
    const double *x;
    const double *loss;
} EngCurve;

#define ENG_CURVE_MAX_X     32
#define ENG_CURVE_MAX_SEEDS 64

/* A claim of a valley at x[valley], between x[low] and x[high]. */
typedef struct EngValley {
    int low, valley, high; /* indices; valley -1: it lies at an end, no claim */
    EngPaired left, right; /* L(low) - L(valley), L(high) - L(valley) */
    double p;              /* the larger of both one-sided p: of "no valley"; 1 at an end */
    bool claimed;          /* p <= 5 % */
    int n_choosing;        /* seeds that chose the valley; 0: fixed beforehand */
    int n_testing;         /* pairs of the flank that has fewer */
} EngValley;

/* Test A: the three places are fixed beforehand (the paper's: .4, .8 and 1). ENG_NOT_FOUND: the
 * curve lacks one of them. */
EngStatus eng_valley_fixed(const EngCurve *curve, double low, double valley, double high,
                           EngValley *out, EngErr *err);
/* Test B: of the seeds at even places those that have all of the curve choose the valley (lowest
 * mean), the seeds at odd places test it against both ends. ENG_UNSUPPORTED: fewer than 4 seeds or
 * 3 places, or no seed to choose with. */
EngStatus eng_valley_split(const EngCurve *curve, EngValley *out, EngErr *err);

/* Seeds below which a bootstrap has too few different samples for an interval: 3 give 10. */
#define ENG_ARGMIN_SEEDS 4

/* Where the lowest mean lies. Seeds that lack an x are left out. */
typedef struct EngArgmin {
    int n_seeds, best;             /* best: index of the lowest mean */
    double lo, hi;                 /* 95 % bootstrap interval over seeds, as x, or NAN */
    double share[ENG_CURVE_MAX_X]; /* of bootstrap samples in which x was lowest */
    /* Those that are not told apart from the best: one-sided paired tests, Holm over the places. As
     * the best is chosen by the same runs, the set is a little too small. */
    bool tied[ENG_CURVE_MAX_X];
    double p[ENG_CURVE_MAX_X]; /* Holm-corrected, 1 at the best */
} EngArgmin;
EngStatus eng_argmin(const EngCurve *curve, uint64_t seed, EngArgmin *out, EngErr *err);

/* Spread of a run after pairing: residual deviation of loss = arm + seed, with its 95 % interval.
 * NAN below 2 arms or 2 complete seeds. */
typedef struct EngSpread {
    int df;
    double sigma, lo, hi;
} EngSpread;
EngSpread eng_spread(const EngCurve *curve);

/* What a study says of a published difference (ours and theirs are signed the same way). */
typedef enum EngClaimWord {
    ENG_CLAIM_NOT_DETECTABLE = 0,
    ENG_CLAIM_CONFIRMED,
    ENG_CLAIM_CONTRADICTED
} EngClaimWord;
const char *eng_claim_name(EngClaimWord word);

/* The two p-values of a claim; NAN with fewer than two seeds.
 *   margin 0, "there is an effect": agrees: of no effect or one of the other sign (twice the
 *     one-sided p). disagrees: one-sided, of an effect at least as large as the published one.
 *   margin > 0, "there is hardly an effect": agrees: of one beyond +-margin (two one-sided tests).
 *     disagrees: of one within (twice the smaller one-sided p). */
typedef struct EngClaimP {
    double agrees, disagrees;
} EngClaimP;
EngClaimP eng_claim_p(const EngPaired *ours, double published, double margin);
/* Each p corrected over all claims of a table: when the paper is right in all of them, a
 * contradiction is printed in at most 5 % of studies. */
EngClaimWord eng_claim_judge(EngClaimP corrected);

#endif
