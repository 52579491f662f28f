/* Verdicts: known answers of the signed-rank test and of Holm's correction, the rules one by one,
 * and recorded noise replayed: identical builds must not be called different more often than
 * promised, and what is slower must be found. tests/data/noise_pairs.csv holds times of identical
 * kernels in pairs over segments, taken by `engram ab FILE FILE --samples=` on a busy two-core
 * machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/core/stats.h"
#include "bench/core/verdict.h"

#define SEGMENTS     20
#define PAIRS        12 /* of a recorded segment */
#define RUN_SEGMENTS 3  /* of a finished run, as by default: 36 pairs */
#define FAMILY       4
#define FAMILIES     1000
#define MAX_SAMPLES  20000
#define MAX_SEGMENTS 600

/* ---- signed ranks ---- */

static void test_signed_rank_known(void **state)
{
    (void)state;
    /* All six positive: p = 2 / 2^6; the interval is the whole range of the values. */
    double six[] = {0.06, 0.01, 0.05, 0.02, 0.04, 0.03}, scratch[300];
    EngRatio r = eng_signed_rank(six, 6, scratch);
    assert_float_equal(r.p, 2.0 / 64, 1e-12);
    assert_float_equal(log(r.lo), 0.01, 1e-12);
    assert_float_equal(log(r.hi), 0.06, 1e-12);
    assert_float_equal(log(r.ratio), 0.035, 1e-12);
    /* Ten values, sum of negative ranks 1 + 2 = 3: P(T <= 3) = 5 / 1024. */
    double ten[] = {-1, -2, 3, 4, 5, 6, 7, 8, 9, 10};
    r = eng_signed_rank(ten, 10, scratch);
    assert_float_equal(r.p, 2 * 5.0 / 1024, 1e-12);
    /* Five: an estimate, no interval. */
    double five[] = {1, 2, 3, 4, 5};
    r = eng_signed_rank(five, 5, scratch);
    assert_float_equal(log(r.ratio), 3, 1e-12);
    assert_true(isnan(r.p) && isnan(r.lo));
    /* Zeros and ties stay on the safe side. */
    double zeros[8] = {0};
    r = eng_signed_rank(zeros, 8, scratch);
    assert_float_equal(r.p, 1, 0);
    assert_float_equal(r.ratio, 1, 0);
}

static void test_holm(void **state)
{
    (void)state;
    double p[] = {0.01, NAN, 0.04, 0.03, 0.005}, out[5];
    assert_int_equal(eng_holm(p, 5, out, NULL), ENG_OK);
    assert_float_equal(out[4], 0.02, 1e-12);
    assert_float_equal(out[0], 0.03, 1e-12);
    assert_float_equal(out[3], 0.06, 1e-12);
    assert_float_equal(out[2], 0.06, 1e-12);
    assert_true(isnan(out[1]));
    assert_int_equal(eng_holm(p, 5, p, NULL), ENG_OK); /* in place */
    for (int i = 0; i < 5; i++) assert_true(p[i] == out[i] || (i == 1 && isnan(p[i])));
}

/* ---- rules ---- */

static EngVerdict judge_one(double ratio, double lo, double hi, double p, double control,
                            double sample_ns, double resolution_ns)
{
    EngVerdict verdict;
    EngVerdictRules rules = eng_verdict_rules;
    EngEffect e = {.ratio = {20, 80, ratio, lo, hi, p},
                   .control = {20, 80, control, control, control, 0.5},
                   .sample_ns = sample_ns};
    rules.resolution_ns = resolution_ns;
    assert_int_equal(eng_verdicts(&rules, &e, 1, &verdict, NULL), ENG_OK);
    return verdict;
}

static void test_rules(void **state)
{
    (void)state;
    assert_int_equal(judge_one(1.05, 1.03, 1.07, 0.001, 1.0, 1e6, 100).word, ENG_VERDICT_SLOWER);
    assert_int_equal(judge_one(0.95, 0.93, 0.97, 0.001, 1.0, 1e6, 100).word, ENG_VERDICT_FASTER);
    assert_int_equal(judge_one(1.00, 0.981, 1.019, 0.9, 1.0, 1e6, 100).word, ENG_VERDICT_SAME);
    assert_int_equal(judge_one(1.00, 0.97, 1.03, 0.9, 1.0, 1e6, 100).word, ENG_VERDICT_UNCLEAR);
    /* Significant, and yet: below the threshold, within the A/A floor, below the clock's step. */
    EngVerdict v = judge_one(1.019, 1.01, 1.03, 0.001, 1.0, 1e6, 100);
    assert_int_equal(v.word, ENG_VERDICT_UNCLEAR);
    assert_non_null(strstr(v.reason, "threshold"));
    v = judge_one(1.05, 1.03, 1.07, 0.001, 0.94, 1e6, 100);
    assert_int_equal(v.word, ENG_VERDICT_UNCLEAR);
    assert_non_null(strstr(v.reason, "within the floor of 6.4 %"));
    v = judge_one(1.05, 1.03, 1.07, 0.001, 1.0, 1000, 100);
    assert_int_equal(v.word, ENG_VERDICT_UNCLEAR);
    assert_non_null(strstr(v.reason, "clock"));
    /* A whole family: 0.02 alone is significant, among three it is not. */
    EngEffect e[3] = {{.ratio = {20, 80, 1.05, 1.01, 1.09, 0.02}, .control.ratio = 1}};
    EngVerdict out[3];
    e[1] = e[2] = e[0];
    assert_int_equal(eng_verdicts(&eng_verdict_rules, e, 1, out, NULL), ENG_OK);
    assert_int_equal(out[0].word, ENG_VERDICT_SLOWER);
    assert_int_equal(eng_verdicts(&eng_verdict_rules, e, 3, out, NULL), ENG_OK);
    assert_int_equal(out[0].word, ENG_VERDICT_UNCLEAR);
}

static void test_exit_codes(void **state)
{
    (void)state;
    EngVerdictCounts fine = {{[ENG_VERDICT_SAME] = 2, [ENG_VERDICT_FASTER] = 1}};
    EngVerdictCounts open = {{[ENG_VERDICT_UNCLEAR] = 1}};
    EngVerdictCounts bad = {{[ENG_VERDICT_UNCLEAR] = 1, [ENG_VERDICT_SLOWER] = 1}};
    assert_int_equal(eng_verdict_exit_code(&fine, true), 0);
    assert_int_equal(eng_verdict_exit_code(&open, false), 0);
    assert_int_equal(eng_verdict_exit_code(&open, true), 4);
    assert_int_equal(eng_verdict_exit_code(&bad, true), 3);
}

static void test_two_runs(void **state)
{
    (void)state;
    double a[40], b[40];
    for (int i = 0; i < 40; i++) a[i] = b[i] = 0.001 * ((i * 17) % 40);
    EngRatio r = eng_two_runs(a, 40, b, 40);
    assert_float_equal(r.ratio, 1, 1e-12);
    assert_true(r.lo < 1 && r.hi > 1 && r.p > 0.05);
    /* P(B(40) < 13) = 0.0083 <= 0.0125 < P(B < 14) = 0.0192: the 13th and the 28th of each run. */
    assert_float_equal(log(r.hi), 0.027 - 0.012, 1e-9);
    for (int i = 0; i < 40; i++) b[i] += 0.1;
    r = eng_two_runs(a, 40, b, 40);
    assert_float_equal(log(r.ratio), 0.1, 1e-9);
    assert_true(r.lo > 1 && r.p < 1e-6);
    /* So many that 2^-n is no number: P(B(3000) < 1439) <= 0.0125 < P(B < 1440). */
    static double many[2][3000];
    for (int i = 0; i < 3000; i++) many[0][i] = many[1][i] = 0.001 * ((i * 17) % 3000);
    r = eng_two_runs(many[0], 3000, many[1], 3000);
    assert_float_equal(log(r.hi), 0.001 * (3000 - 1439 - 1438), 1e-9);
    assert_float_equal(log(r.lo), -log(r.hi), 1e-9);
    assert_true(r.p > 0.05);
    /* Six samples have 2/64 on both sides together: too little for two runs at 95 %. */
    r = eng_two_runs(a, 6, b, 6);
    assert_true(isnan(r.p) && !isnan(r.ratio));
    /* The least difference that counts: the rule, or what the roof did. */
    assert_float_equal(eng_two_runs_floor(1, 100, 100, 0), 0.05, 1e-12);
    assert_float_equal(eng_two_runs_floor(2, 100, 104, 0.01), 0.10, 1e-12);
    assert_float_equal(eng_two_runs_floor(1, 100, 114, 0.1), 0.14, 1e-12);
    assert_float_equal(eng_two_runs_floor(2, 114, 100, 0), 0.14, 1e-12);
    assert_float_equal(eng_two_runs_floor(1, 100, 100, log(1.2)), 0.20, 1e-12);
    double ratios[] = {3, 1, 2, 8, 4, 5};
    const int segments[] = {0, 0, 0, 2, 2, 7}; /* medians 2 and 6; one sample of three is none */
    assert_float_equal(eng_segment_range(ratios, segments, 6), 4, 0);
    assert_float_equal(eng_segment_range(ratios, segments, 3), 0, 0);
    assert_float_equal(eng_segment_range(ratios, segments, 0), 0, 0);
}

static void test_too_few(void **state)
{
    (void)state;
    EngAbSample s[5];
    EngEffect e;
    EngVerdict v;
    for (int i = 0; i < 5; i++) s[i] = (EngAbSample){i, 100, 100, 200};
    assert_int_equal(eng_effect_of(s, 5, &e, NULL), ENG_OK);
    assert_float_equal(e.ratio.ratio, 2, 1e-9);
    assert_int_equal(eng_verdicts(&eng_verdict_rules, &e, 1, &v, NULL), ENG_OK);
    assert_int_equal(v.word, ENG_VERDICT_UNCLEAR);
    assert_non_null(strstr(v.reason, "segments"));
    assert_int_equal(eng_effect_of(s, 0, &e, NULL), ENG_OK);
    assert_true(isnan(e.ratio.p));
}

/* ---- recorded noise ---- */

typedef struct Noise {
    EngAbSample samples[MAX_SAMPLES];
    int first[MAX_SEGMENTS + 1]; /* sample that a recorded segment starts with */
    int point[MAX_SEGMENTS];
    int n_segments, n_points;
    int from[16], to[16]; /* segments of a point */
} Noise;

static Noise g_noise;

static int read_noise(void **state)
{
    int n = 0, point, segment, last_point = -1, last_segment = -1;
    double old, control, new;
    char line[256];
    FILE *file = fopen(ENG_SOURCE_DIR "/tests/data/noise_pairs.csv", "r");
    (void)state;
    if (!file) return -1;
    while (fgets(line, sizeof line, file) && n < MAX_SAMPLES) {
        if (sscanf(line, "%d,%d,%lf,%lf,%lf", &point, &segment, &old, &control, &new) != 5)
            continue;
        if (point != last_point || segment != last_segment) {
            if (point != last_point) g_noise.from[g_noise.n_points++] = g_noise.n_segments;
            g_noise.first[g_noise.n_segments++] = n;
            g_noise.to[g_noise.n_points - 1] = g_noise.n_segments;
        }
        last_point = point;
        last_segment = segment;
        g_noise.samples[n++] = (EngAbSample){segment, old, control, new};
    }
    fclose(file);
    g_noise.first[g_noise.n_segments] = n;
    return g_noise.n_points && n < MAX_SAMPLES ? 0 : -1;
}

/* SEGMENTS recorded segments in a row, from a random place of a point's recording (drift and all),
 * the first `pairs` of each; arms: 0 the recorded one, else new and control change places. `factor`
 * slows the new one. */
static int draw(EngRng *rng, int point, int pairs, double factor, EngAbSample *out)
{
    int room = g_noise.to[point] - g_noise.from[point] - SEGMENTS + 1, n = 0;
    assert_true(room > 0);
    int at = g_noise.from[point] + (int)eng_rng_below(rng, (uint64_t)room);
    int swap = (int)eng_rng_below(rng, 3);
    for (int s = at; s < at + SEGMENTS; s++)
        for (int i = g_noise.first[s]; i < g_noise.first[s] + pairs; i++) {
            EngAbSample x = g_noise.samples[i];
            double t[3] = {x.old_ns, x.control_ns, x.new_ns};
            out[n++] = (EngAbSample){s, t[swap], t[(swap + 1) % 3], t[(swap + 2) % 3] * factor};
        }
    return n;
}

static EngEffect ab_effect(EngRng *rng, int point, int pairs, double factor)
{
    static EngAbSample samples[MAX_SAMPLES];
    EngEffect effect;
    int n = draw(rng, point, pairs, factor, samples);
    assert_int_equal(n, SEGMENTS * pairs);
    assert_int_equal(eng_effect_of(samples, n, &effect, NULL), ENG_OK);
    return effect;
}

/* One finished run: a stretch of a recording, one arm as the roof of another. */
static double draw_run(int at, int roof, double factor, double *log_ratios, int *n, double *range)
{
    double roofs[RUN_SEGMENTS * PAIRS];
    int segments[RUN_SEGMENTS * PAIRS];
    *n = 0;
    for (int i = g_noise.first[at]; i < g_noise.first[at + RUN_SEGMENTS]; i++, ++*n) {
        EngAbSample x = g_noise.samples[i];
        double t[3] = {x.old_ns, x.control_ns, x.new_ns};
        segments[*n] = x.segment;
        roofs[*n] = t[roof];
        log_ratios[*n] = log(t[(roof + 1) % 3] * factor / t[roof]);
    }
    *range = fmax(*range, eng_segment_range(log_ratios, segments, *n));
    return eng_median_in_place(roofs, (size_t)*n).median;
}

/* Two of them that share no segment, any time apart, as `engram compare` takes them. */
static EngEffect compare_effect(EngRng *rng, int point, int pairs, double factor)
{
    double a[RUN_SEGMENTS * PAIRS], b[RUN_SEGMENTS * PAIRS];
    int n_a, n_b, starts = g_noise.to[point] - g_noise.from[point] - RUN_SEGMENTS + 1, at[2];
    assert_int_equal(pairs, PAIRS);
    do
        for (int i = 0; i < 2; i++) at[i] = (int)eng_rng_below(rng, (uint64_t)starts);
    while (abs(at[0] - at[1]) < RUN_SEGMENTS);
    int roof = (int)eng_rng_below(rng, 3);
    double range = 0, roof_a = draw_run(g_noise.from[point] + at[0], roof, 1, a, &n_a, &range);
    double roof_b = draw_run(g_noise.from[point] + at[1], roof, factor, b, &n_b, &range);
    EngEffect effect = {.ratio = eng_two_runs(a, n_a, b, n_b)};
    effect.control.ratio = 1 + eng_two_runs_floor(1, roof_a, roof_b, range);
    return effect;
}

typedef EngEffect Draw(EngRng *rng, int point, int pairs, double factor);

/* Upper end of the exact 95 % interval (one-sided) for a share of k in n: bisection on P(B <= k).
 */
static double upper_share(int k, int n)
{
    double lo = 0, hi = 1;
    for (int step = 0; step < 60; step++) {
        double share = (lo + hi) / 2, below = 0;
        for (int i = 0; i <= k; i++)
            below += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(share) +
                         (n - i) * log1p(-share));
        if (below > 0.05)
            lo = share;
        else
            hi = share;
    }
    return hi;
}

static void check_false_alarms(const char *what, Draw *effect_of, int pairs)
{
    int alarms = 0, uncorrected = 0;
    EngRng rng;
    eng_rng_seed(&rng, 11);
    for (int f = 0; f < FAMILIES; f++) {
        EngEffect effects[FAMILY];
        EngVerdict verdicts[FAMILY];
        bool alarm = false;
        for (int i = 0; i < FAMILY; i++) {
            effects[i] = effect_of(&rng, i % g_noise.n_points, pairs, 1);
            uncorrected += effects[i].ratio.p <= 0.05;
        }
        assert_int_equal(eng_verdicts(&eng_verdict_rules, effects, FAMILY, verdicts, NULL), ENG_OK);
        for (int i = 0; i < FAMILY; i++)
            alarm |=
                verdicts[i].word == ENG_VERDICT_SLOWER || verdicts[i].word == ENG_VERDICT_FASTER;
        alarms += alarm;
    }
    print_message("%s: false alarms in %d of %d families of %d (at most %.1f %%); without "
                  "correction and thresholds %.1f %% of points\n",
                  what, alarms, FAMILIES, FAMILY, 100 * upper_share(alarms, FAMILIES),
                  100.0 * uncorrected / (FAMILIES * FAMILY));
    assert_true(alarms <= FAMILIES * 5 / 100);
    assert_true(upper_share(alarms, FAMILIES) <= 0.07);
}

static void test_false_alarms(void **state)
{
    (void)state;
    check_false_alarms("ab, 240 pairs", ab_effect, 12);
    check_false_alarms("ab, 80 pairs", ab_effect, 4);
    check_false_alarms("compare, 36 pairs", compare_effect, PAIRS);
}

/* Percent of draws that are called slower; none may be called faster. */
static double found_in(Draw *effect_of, int point, int pairs, double factor)
{
    int found = 0, tries = FAMILIES / g_noise.n_points;
    EngRng rng;
    eng_rng_seed(&rng, 12);
    for (int f = 0; f < tries; f++) {
        EngEffect effect = effect_of(&rng, point, pairs, factor);
        EngVerdict verdict;
        assert_int_equal(eng_verdicts(&eng_verdict_rules, &effect, 1, &verdict, NULL), ENG_OK);
        assert_int_not_equal(verdict.word, ENG_VERDICT_FASTER);
        found += verdict.word == ENG_VERDICT_SLOWER;
    }
    return 100.0 * found / tries;
}

/* The table of docs/method.md. ab promises something for 240 pairs alone: fewer find 3 % where the
 * noise lets them. compare is promised to find what is coarse. */
static void test_detection(void **state)
{
    (void)state;
    for (int p = 0; p < g_noise.n_points; p++) {
        double three = found_in(ab_effect, p, 12, 1.03);
        double five = found_in(ab_effect, p, 12, 1.05);
        double few_three = found_in(ab_effect, p, 4, 1.03);
        double few_five = found_in(ab_effect, p, 4, 1.05);
        print_message("recording %d, ab: 3 %% slower found in %.0f %%, 5 %% in %.0f %% (240 pairs);"
                      " %.0f and %.0f %% (80 pairs)\n",
                      p, three, five, few_three, few_five);
        assert_true(three >= 90); /* the noisiest recording too */
        assert_true(five == 100);
        double ten = found_in(compare_effect, p, PAIRS, 1.1);
        double twenty = found_in(compare_effect, p, PAIRS, 1.2);
        double fifty = found_in(compare_effect, p, PAIRS, 1.5);
        double twice = found_in(compare_effect, p, PAIRS, 2);
        print_message("recording %d, compare: 10 %% slower found in %.0f %%, 20 %% in %.0f %%, "
                      "50 %% in %.0f %%, 100 %% in %.0f %% (36 pairs)\n",
                      p, ten, twenty, fifty, twice);
        assert_true(twice >= 90);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_signed_rank_known),
                                       cmocka_unit_test(test_holm),
                                       cmocka_unit_test(test_rules),
                                       cmocka_unit_test(test_exit_codes),
                                       cmocka_unit_test(test_two_runs),
                                       cmocka_unit_test(test_too_few),
                                       cmocka_unit_test(test_false_alarms),
                                       cmocka_unit_test(test_detection)};
    return cmocka_run_group_tests(tests, read_noise, NULL);
}
