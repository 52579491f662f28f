/* Signed ranks over segments, Holm's correction, and the rules that make a word; see verdict.h. */
#include "bench/core/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/core/stats.h"

#define EXACT_SEGMENTS 60 /* more: the normal approximation is good to four digits */
#define CONFIDENCE     0.95

/* Margins of roof-normalized medians that mean nothing between runs, by what was seen here. */
#define FLOOR_ONE_THREAD   0.05
#define FLOOR_MORE_THREADS 0.10

const EngVerdictRules eng_verdict_rules = {
    .alpha = 0.05, .threshold = 0.02, .band = 0.02, .resolution_ns = 0};

const char *eng_verdict_name(EngVerdictWord word)
{
    static const char *const names[] = {"unclear", "same", "faster", "slower"};
    return names[word];
}

/* ---- signed ranks ------------------------------------------------------------------------------
 */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_magnitudes(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

/* P(T <= t) for the sum T of the ranks 1..n that fair coins pick. */
static double signed_rank_below(int n, double t)
{
    double mean = n * (n + 1) / 4.0;
    if (t < 0) return 0;
    if (n > EXACT_SEGMENTS) {
        double sd = sqrt(n * (n + 1) * (2.0 * n + 1) / 24.0);
        return 0.5 * erfc((mean - t - 0.5) / (sd * M_SQRT2));
    }
    double chance[EXACT_SEGMENTS * (EXACT_SEGMENTS + 1) / 2 + 1] = {1};
    int most = 0;
    for (int rank = 1; rank <= n; rank++) {
        most += rank;
        for (int s = most; s >= 0; s--)
            chance[s] = 0.5 * (chance[s] + (s >= rank ? chance[s - rank] : 0));
    }
    double sum = 0;
    for (int s = 0; s <= most && s <= t; s++) sum += chance[s];
    return sum;
}

/* Two-sided. Ties of magnitude share their mean rank, zeros count half to each side: both make the
 * p larger than it need be at most by the rounding to whole ranks. */
static double signed_rank_p(double *values, int n)
{
    double positive = 0;
    qsort(values, (size_t)n, sizeof *values, compare_magnitudes);
    for (int i = 0; i < n;) {
        int end = i + 1;
        while (end < n && fabs(values[end]) == fabs(values[i])) end++;
        double rank = (i + 1 + end) / 2.0;
        for (int k = i; k < end; k++)
            positive += values[k] > 0 ? rank : values[k] == 0 ? rank / 2 : 0;
        i = end;
    }
    double total = n * (n + 1) / 2.0;
    double smaller = positive < total - positive ? positive : total - positive;
    double p = 2 * signed_rank_below(n, ceil(smaller));
    return p < 1 ? p : 1;
}

EngRatio eng_signed_rank(double *values, int n, double *means)
{
    EngRatio out = {n, n, NAN, NAN, NAN, NAN};
    int n_means = 0, rank = 0;
    if (n < 1 || n > ENG_VERDICT_MAX_SEGMENTS) return out;
    for (int i = 0; i < n; i++)
        for (int k = i; k < n; k++) means[n_means++] = (values[i] + values[k]) / 2;
    qsort(means, (size_t)n_means, sizeof *means, compare_doubles);
    out.ratio = exp(eng_quantile_sorted(means, (size_t)n_means, 0.5));
    while (signed_rank_below(n, rank) <= (1 - CONFIDENCE) / 2) rank++;
    if (rank < 1) return out; /* fewer than six: no interval has 95 % */
    out.lo = exp(means[rank - 1]);
    out.hi = exp(means[n_means - rank]);
    out.p = signed_rank_p(values, n);
    return out;
}

/* ---- one point ---------------------------------------------------------------------------------
 */

typedef struct Scratch {
    double *pairs, *segments, *controls, *means; /* pairs: [3 n] */
} Scratch;

static double median_of(double *values, int n)
{
    return eng_median_in_place(values, (size_t)n).median;
}

/* What a segment's number is made of. */
typedef enum Kind {
    OF_PAIRS = 0, /* median over pairs of the log ratio */
    OF_QUARTERS,  /* log ratio of the arms' lower quartiles */
    OF_FASTEST,   /* log ratio of the arms' fastest samples */
    KINDS
} Kind;

static double low_of(double *logs, int n, Kind kind)
{
    qsort(logs, (size_t)n, sizeof *logs, compare_doubles);
    return kind == OF_FASTEST ? logs[0] : eng_quantile_sorted(logs, (size_t)n, 0.25);
}

/* One segment: effect new / mean of both old, control old / old. */
static void contrast(const EngAbSample *s, int n, Kind kind, double *scratch, double *effect,
                     double *control)
{
    double *other = scratch + n, low[3];
    if (kind == OF_PAIRS) {
        for (int i = 0; i < n; i++) {
            double old = log(s[i].old_ns), again = log(s[i].control_ns);
            scratch[i] = log(s[i].new_ns) - (old + again) / 2;
            other[i] = again - old;
        }
        *effect = median_of(scratch, n);
        *control = median_of(other, n);
        return;
    }
    for (int arm = 0; arm < 3; arm++) {
        for (int i = 0; i < n; i++)
            scratch[i] = log(arm == 0 ? s[i].old_ns : arm == 1 ? s[i].control_ns : s[i].new_ns);
        low[arm] = low_of(scratch, n, kind);
    }
    *effect = low[2] - (low[0] + low[1]) / 2;
    *control = low[1] - low[0];
}

/* Gives the number of segments. */
static int contrasts(const EngAbSample *samples, int n, Kind kind, Scratch *scratch)
{
    int n_segments = 0;
    for (int i = 0; i < n; n_segments++) {
        int end = i;
        while (end < n && samples[end].segment == samples[i].segment) end++;
        contrast(samples + i, end - i, kind, scratch->pairs, &scratch->segments[n_segments],
                 &scratch->controls[n_segments]);
        i = end;
    }
    return n_segments;
}

static double spread_of(const double *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += fabs(values[i]);
    return sum;
}

/* The kind of contrast whose A/A control spreads least: a machine that others disturb in bursts
 * leaves some samples of a segment in peace, memory that drifts leaves none. The new build has no
 * say in the choice. */
static int segment_contrasts(const EngAbSample *samples, int n, Scratch *scratch)
{
    Kind best = OF_PAIRS;
    double least = INFINITY;
    for (Kind kind = OF_PAIRS; kind < KINDS; kind++) {
        int n_segments = contrasts(samples, n, kind, scratch);
        double spread = spread_of(scratch->controls, n_segments);
        if (spread >= least) continue;
        least = spread;
        best = kind;
    }
    return contrasts(samples, n, best, scratch);
}

EngStatus eng_effect_of(const EngAbSample *samples, int n, EngEffect *effect, EngErr *err)
{
    int n_segments = 0;
    void *memory = NULL;
    for (int i = 0; i < n; i++)
        n_segments += i == 0 || samples[i].segment != samples[i - 1].segment;
    *effect = (EngEffect){.ratio = {0, n, NAN, NAN, NAN, NAN}, .old_ns = NAN, .new_ns = NAN};
    effect->control = effect->ratio;
    if (!n) return ENG_OK;
    if (n_segments > ENG_VERDICT_MAX_SEGMENTS)
        return ENG_FAIL(err, ENG_USAGE, "%d segments, at most %d can be judged", n_segments,
                        ENG_VERDICT_MAX_SEGMENTS);
    size_t means = (size_t)n_segments * ((size_t)n_segments + 1) / 2;
    EngStatus status = eng_alloc_or(&memory, 2 * (size_t)n + 2 * (size_t)n_segments + means,
                                    sizeof(double), "a verdict", err);
    if (status) return status;
    Scratch scratch = {.pairs = memory};
    scratch.segments = scratch.pairs + 2 * (size_t)n;
    scratch.controls = scratch.segments + n_segments;
    scratch.means = scratch.controls + n_segments;
    for (int i = 0; i < n; i++) scratch.pairs[i] = samples[i].old_ns;
    effect->old_ns = median_of(scratch.pairs, n);
    for (int i = 0; i < n; i++) scratch.pairs[i] = samples[i].new_ns;
    effect->new_ns = median_of(scratch.pairs, n);
    segment_contrasts(samples, n, &scratch);
    effect->ratio = eng_signed_rank(scratch.segments, n_segments, scratch.means);
    effect->control = eng_signed_rank(scratch.controls, n_segments, scratch.means);
    effect->ratio.n_pairs = effect->control.n_pairs = n;
    eng_free(memory);
    return ENG_OK;
}

/* ---- two runs ----------------------------------------------------------------------------------
 */

/* Largest rank k with P(Binomial(n, 1/2) < k) <= tail; 0: none. */
static int rank_of_tail(int n, double tail)
{
    double log_at = -n * M_LN2, below = 0; /* 2^-n itself is 0 from 1,075 samples on */
    int k = 0;
    while (k < n && below + exp(log_at) <= tail) {
        below += exp(log_at);
        log_at += log((double)(n - k) / (k + 1));
        k++;
    }
    return k;
}

/* Interval of log(b / a) whose ends miss with at most `tail` on each side and run. */
static bool interval_of(const double *a, int n_a, const double *b, int n_b, double tail, double *lo,
                        double *hi)
{
    int ka = rank_of_tail(n_a, tail), kb = rank_of_tail(n_b, tail);
    if (!ka || !kb) return false;
    *lo = b[kb - 1] - a[n_a - ka];
    *hi = b[n_b - kb] - a[ka - 1];
    return true;
}

EngRatio eng_two_runs(double *a, int n_a, double *b, int n_b)
{
    EngRatio out = {0, n_a < n_b ? n_a : n_b, NAN, NAN, NAN, NAN};
    double lo, hi;
    if (n_a < 1 || n_b < 1 || n_a > 100000 || n_b > 100000) return out;
    double from = eng_median_in_place(a, (size_t)n_a).median;
    out.ratio = exp(eng_median_in_place(b, (size_t)n_b).median - from);
    if (!interval_of(a, n_a, b, n_b, (1 - CONFIDENCE) / 4, &lo, &hi)) return out;
    out.lo = exp(lo);
    out.hi = exp(hi);
    out.p = 1;
    /* Both runs and both sides: four tails. */
    for (double tail = 0.25; tail > 1e-12; tail *= 0.8) {
        if (!interval_of(a, n_a, b, n_b, tail, &lo, &hi) || (lo <= 0 && hi >= 0)) break;
        out.p = 4 * tail;
    }
    return out;
}

double eng_two_runs_floor(int threads, double roof_a_ns, double roof_b_ns, double range)
{
    double rule = threads > 1 ? FLOOR_MORE_THREADS : FLOOR_ONE_THREAD;
    return fmax(rule, exp(fmax(fabs(log(roof_b_ns / roof_a_ns)), range)) - 1);
}

double eng_segment_range(double *log_ratios, const int *segments, int n)
{
    double least = INFINITY, most = -INFINITY;
    int fullest = 0;
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && segments[end] == segments[i];) end++;
        if (end - i > fullest) fullest = end - i;
    }
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && segments[end] == segments[i];) end++;
        if (2 * (end - i) < fullest) continue; /* cut short: its median is a few samples' noise */
        double median = median_of(log_ratios + i, end - i);
        least = fmin(least, median);
        most = fmax(most, median);
    }
    return n ? most - least : 0;
}

/* ---- the family --------------------------------------------------------------------------------
 */

typedef struct Ranked {
    double p;
    int place;
} Ranked;

static int compare_ranked(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;
    return (x->p > y->p) - (x->p < y->p);
}

EngStatus eng_holm(const double *p, int n, double *corrected, EngErr *err)
{
    void *memory;
    int tests = 0;
    double least = 0;
    EngStatus status = eng_alloc_or(&memory, (size_t)n, sizeof(Ranked), "Holm's correction", err);
    if (status) return status;
    Ranked *ranked = memory;
    for (int i = 0; i < n; i++) {
        if (isnan(p[i]))
            corrected[i] = NAN;
        else
            ranked[tests++] = (Ranked){p[i], i};
    }
    qsort(ranked, (size_t)tests, sizeof *ranked, compare_ranked);
    for (int i = 0; i < tests; i++) {
        double now = ranked[i].p * (tests - i);
        least = now > least ? now : least;
        corrected[ranked[i].place] = least < 1 ? least : 1;
    }
    eng_free(memory);
    return ENG_OK;
}

/* How far the control gets from 1: where its estimate lies, on the scale of ratios. */
static double floor_of(const EngRatio *control)
{
    return isnan(control->ratio) ? 0 : exp(fabs(log(control->ratio))) - 1;
}

static void judge(const EngVerdictRules *rules, const EngEffect *effect, EngVerdict *out)
{
    const EngRatio *r = &effect->ratio;
    double change = exp(fabs(log(r->ratio))) - 1;
    double delta_ns = effect->sample_ns * change;
    bool significant = out->p_corrected <= rules->alpha;
    bool inside = r->lo >= 1 - rules->band && r->hi <= 1 + rules->band;
    if (isnan(out->p_corrected))
        snprintf(out->reason, sizeof out->reason, "%d segments, %d are the least", r->n_segments,
                 ENG_VERDICT_MIN_SEGMENTS);
    else if (inside)
        out->word = ENG_VERDICT_SAME;
    else if (!significant)
        snprintf(out->reason, sizeof out->reason,
                 r->lo <= 1 && r->hi >= 1 ? "interval holds 1"
                                          : "not significant among all points");
    else if (change <= rules->threshold)
        snprintf(out->reason, sizeof out->reason, "below the threshold of %g %%",
                 100 * rules->threshold);
    else if (change <= out->floor)
        snprintf(out->reason, sizeof out->reason, "within the floor of %.1f %%", 100 * out->floor);
    else if (effect->sample_ns > 0 && delta_ns <= rules->resolution_ns)
        snprintf(out->reason, sizeof out->reason, "%.0f ns a sample: the clock cannot tell",
                 delta_ns);
    else
        out->word = r->ratio > 1 ? ENG_VERDICT_SLOWER : ENG_VERDICT_FASTER;
    if (out->word == ENG_VERDICT_SAME)
        snprintf(out->reason, sizeof out->reason, "inside +-%g %%", 100 * rules->band);
    else if (out->word != ENG_VERDICT_UNCLEAR)
        snprintf(out->reason, sizeof out->reason, "p %.2g, A/A %+.1f %%", out->p_corrected,
                 100 * (effect->control.ratio - 1));
}

EngStatus eng_verdicts(const EngVerdictRules *rules, const EngEffect *effects, int n,
                       EngVerdict *verdicts, EngErr *err)
{
    void *memory;
    EngStatus status = eng_alloc_or(&memory, (size_t)n * 2, sizeof(double), "verdicts", err);
    if (status) return status;
    double *p = memory, *corrected = p + n;
    for (int i = 0; i < n; i++) p[i] = effects[i].ratio.p;
    status = eng_holm(p, n, corrected, err);
    for (int i = 0; i < n && !status; i++) {
        verdicts[i] = (EngVerdict){.word = ENG_VERDICT_UNCLEAR,
                                   .p_corrected = corrected[i],
                                   .floor = floor_of(&effects[i].control)};
        judge(rules, &effects[i], &verdicts[i]);
    }
    eng_free(memory);
    return status;
}

int eng_verdict_exit_code(const EngVerdictCounts *counts, bool strict)
{
    if (counts->by_word[ENG_VERDICT_SLOWER]) return 3;
    return strict && counts->by_word[ENG_VERDICT_UNCLEAR] ? 4 : 0;
}
