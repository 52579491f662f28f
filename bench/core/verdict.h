/* Verdicts: is one build faster, slower or the same? Pure functions of sample times, so that
 * recorded noise can be replayed through them (tests/unit/core/test_verdict.c).
 *
 * The unit is the segment (a worker lifetime), not the sample: samples of one lifetime share memory
 * layout and moment and may be correlated in any way. Each segment gives one number: the median
 * over its pairs of log(new / mean of both old), or the same of the arms' lower quartiles or
 * fastest samples, whichever spreads least between the two old arms. When nothing differs it
 * scatters around 0, closely symmetric since the arms are exchangeable, and Wilcoxon's signed-rank
 * test over segments applies; how well it keeps its promise is tested on recorded noise. The
 * estimate is the Hodges-Lehmann median of pairwise means, the interval that of the same test.
 *
 * The old build is measured by two workers. Their mean is what the new one is compared with, and
 * their difference is the A/A control: what two identical builds look like in the same blocks.
 *
 * A difference is called when four things hold: it is significant after Holm's correction over all
 * points compared; it is beyond the relative threshold; beyond the point's own A/A floor; and
 * beyond what the clock resolves. `same` means that the whole interval lies inside the band.
 */
#ifndef ENG_BENCH_VERDICT_H
#define ENG_BENCH_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include <engram/status.h>

#define ENG_VERDICT_MAX_SEGMENTS 200
#define ENG_VERDICT_MIN_SEGMENTS 6 /* below, no interval of 95 % exists */

typedef enum EngVerdictWord {
    ENG_VERDICT_UNCLEAR = 0,
    ENG_VERDICT_SAME,
    ENG_VERDICT_FASTER,
    ENG_VERDICT_SLOWER
} EngVerdictWord;
const char *eng_verdict_name(EngVerdictWord word);

/* Times of one round, per run() of the kernel, in nanoseconds, all > 0. */
typedef struct EngAbSample {
    int segment; /* ascending over an array */
    double old_ns, control_ns, new_ns;
} EngAbSample;

/* A ratio new / old with its 95 % interval and the two-sided p of "nothing differs". NAN where
 * there are too few segments. */
typedef struct EngRatio {
    int n_segments, n_pairs;
    double ratio, lo, hi, p;
} EngRatio;

/* Hodges-Lehmann estimate, interval and exact signed-rank p of n log ratios; `scratch` holds
 * n (n + 1) / 2 doubles. n <= ENG_VERDICT_MAX_SEGMENTS. The values are reordered. */
EngRatio eng_signed_rank(double *log_ratios, int n, double *scratch);

/* One point of a comparison. */
typedef struct EngEffect {
    EngRatio ratio;        /* new / mean of both old */
    EngRatio control;      /* old / old */
    double old_ns, new_ns; /* medians of run() */
    double sample_ns;      /* median length of a sample of the old build, 0: unknown */
} EngEffect;

/* From the samples of one point. ENG_NO_MEMORY; ENG_USAGE: more segments than allowed. */
EngStatus eng_effect_of(const EngAbSample *samples, int n, EngEffect *effect, EngErr *err);

/* Two finished runs, which share no pairs: ratio of the medians of b and a (logs of times over
 * their block's roof), with an interval made of the exact order-statistic intervals of both (97.5 %
 * each), and as p twice the least tail at which those are apart. Finished runs have few segments,
 * so the unit is the sample; what that leaves out, the drift between runs, is what a wider floor is
 * for. Both arrays are sorted. n_segments stays 0. */
EngRatio eng_two_runs(double *a, int n_a, double *b, int n_b);
/* The least difference of such a ratio that means anything, for a control of 1 + this: how far
 * medians over roofs moved between runs of the same code here, and at least what the roof itself
 * moved by, since a machine that slows a roof slows other kernels too, by another share; and what
 * segments of one run differ by (range: the greater of both runs). */
double eng_two_runs_floor(int threads, double roof_a_ns, double roof_b_ns, double range);
/* How far the medians of a run's segments lie apart (greatest less least), 0 for a single one;
 * segments of fewer than half the samples of the fullest are left out.
 * segments: [n] ascending. The values are reordered within segments. */
double eng_segment_range(double *log_ratios, const int *segments, int n);

typedef struct EngVerdictRules {
    double alpha;         /* family-wise error, 0.05 */
    double threshold;     /* relative: 0.02 */
    double band;          /* `same` lies within 1 +- this: 0.02 */
    double resolution_ns; /* least difference of two samples that the clock tells apart */
} EngVerdictRules;
extern const EngVerdictRules eng_verdict_rules;

typedef struct EngVerdict {
    EngVerdictWord word;
    double p_corrected; /* Holm */
    double floor;       /* relative difference that the A/A control reaches */
    char reason[96];
} EngVerdict;

/* Verdicts of all points of one comparison together. */
EngStatus eng_verdicts(const EngVerdictRules *rules, const EngEffect *effects, int n,
                       EngVerdict *verdicts, EngErr *err);

/* Holm's step-down: corrected[i] for p[i]; NAN stays and is not counted. corrected may be p.
 * ENG_NO_MEMORY. */
EngStatus eng_holm(const double *p, int n, double *corrected, EngErr *err);

/* Counts of words, and the exit code they mean: 3 something slower, 4 something unclear and strict,
 * else 0. */
typedef struct EngVerdictCounts {
    int by_word[ENG_VERDICT_SLOWER + 1];
} EngVerdictCounts;
int eng_verdict_exit_code(const EngVerdictCounts *counts, bool strict);

#endif
