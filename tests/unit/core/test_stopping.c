/* The stopping rule on samples whose answer is known, and what it does to the coverage of the
 * intervals: with recorded noise (tests/data/noise_pairs.csv) the 95 % interval must hold the true
 * median as often when the rule ends sampling as when the number of samples is fixed beforehand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/rng.h"
#include "bench/core/stats.h"
#include "bench/core/stopping.h"

enum { MOST = 300, ROUNDS = 12, TRIALS = 500, MAX_RECORDED = 4096, MAX_SEGMENTS = 512 };

static struct {
    int n, n_segments, first[MAX_SEGMENTS + 1]; /* of one point */
    double times[MAX_RECORDED], ratios[MAX_RECORDED];
} g_recorded[3];

typedef struct Drawn {
    int n, segments[MOST];
    double times[MOST], ratios[MOST];
} Drawn;

static int read_noise(void **state)
{
    int point, segment, last[3] = {-1, -1, -1};
    double old, control, new;
    char line[256];
    FILE *file = fopen(ENG_SOURCE_DIR "/tests/data/noise_pairs.csv", "r");
    (void)state;
    if (!file) return -1;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%d,%d,%lf,%lf,%lf", &point, &segment, &old, &control, &new) != 5)
            continue;
        if (point < 0 || point > 2 || g_recorded[point].n == MAX_RECORDED) return -1;
        int at = g_recorded[point].n++;
        if (segment != last[point]) g_recorded[point].first[g_recorded[point].n_segments++] = at;
        last[point] = segment;
        g_recorded[point].times[at] = old;
        g_recorded[point].ratios[at] = control / old;
    }
    fclose(file);
    for (int p = 0; p < 3; p++) g_recorded[p].first[g_recorded[p].n_segments] = g_recorded[p].n;
    return g_recorded[2].n ? 0 : -1;
}

/* ---- decisions ----------------------------------------------------------------------------------
 */

/* n samples in lifetimes of `per`, spread evenly over 100 +- spread / 2. */
static EngStop decide(int n, int per, double spread, double precision, double settled)
{
    static Drawn d;
    EngRng rng;
    EngStop stop;
    eng_rng_seed(&rng, 3);
    for (int i = 0; i < n; i++) {
        d.segments[i] = i / per;
        d.times[i] = 100 + spread * (eng_rng_unit(&rng) - 0.5);
    }
    const EngStopRule rule = {precision, settled};
    const EngStopSamples samples = {n, d.segments, d.times, NULL};
    assert_int_equal(eng_stop_decide(&rule, &samples, &stop, NULL), ENG_OK);
    return stop;
}

static void test_decisions(void **state)
{
    (void)state;
    assert_int_equal(decide(40, 10, 1, 0.01, 0), ENG_STOP_PRECISE);
    assert_int_equal(decide(40, 10, 40, 0.01, 0), ENG_STOP_NOT);
    assert_int_equal(decide(0, 10, 1, 0.01, 0), ENG_STOP_NOT);
    /* Too few pairs, or one lifetime's layout alone. */
    assert_int_equal(decide(30, 10, 1, 0.01, 0), ENG_STOP_NOT);
    assert_int_equal(decide(31, 10, 1, 0.01, 0), ENG_STOP_PRECISE);
    assert_int_equal(decide(40, 40, 1, 0.01, 0), ENG_STOP_NOT);
    /* Off. */
    assert_int_equal(decide(40, 10, 0, 0, 0), ENG_STOP_PRECISE); /* no noise at all */
    assert_int_equal(decide(40, 10, 1, 0, 0), ENG_STOP_NOT);
    /* Independent noise narrows by 29 % with twice the samples, which is not asked for here. */
    assert_int_equal(decide(300, 12, 40, 0.001, 0.05), ENG_STOP_NOT);
}

/* Lifetimes that differ from each other: more of them show more of the difference, and the interval
 * does not narrow. */
static void test_settled(void **state)
{
    (void)state;
    static Drawn d;
    static const double levels[8] = {100, 101, 130, 99, 131, 100, 129, 132};
    EngStop stop;
    for (int i = 0; i < 80; i++) {
        d.segments[i] = i / 10;
        d.times[i] = levels[i / 10] + 0.01 * (i % 10);
    }
    const EngStopSamples all = {80, d.segments, d.times, NULL};
    const EngStopRule on = {0.01, 0.1}, off = {0.01, 0};
    assert_int_equal(eng_stop_decide(&on, &all, &stop, NULL), ENG_OK);
    assert_int_equal(stop, ENG_STOP_SETTLED);
    assert_int_equal(eng_stop_decide(&off, &all, &stop, NULL), ENG_OK);
    assert_int_equal(stop, ENG_STOP_NOT);
    const EngStopSamples three = {30, d.segments, d.times, NULL};
    assert_int_equal(eng_stop_decide(&on, &three, &stop, NULL), ENG_OK);
    assert_int_equal(stop, ENG_STOP_NOT);
}

/* Steady times against a roof that is not: the ratio's interval keeps sampling going. */
static void test_ratio_counts(void **state)
{
    (void)state;
    static Drawn d;
    EngStop stop;
    for (int i = 0; i < 60; i++) {
        d.segments[i] = i / 10;
        d.times[i] = 100;
        d.ratios[i] = i % 10 == 3 ? NAN : 0.5 + 0.3 * (i % 7) / 7;
    }
    const EngStopSamples samples = {60, d.segments, d.times, d.ratios};
    const EngStopSamples alone = {60, d.segments, d.times, NULL};
    const EngStopRule rule = {0.01, 0};
    assert_int_equal(eng_stop_decide(&rule, &samples, &stop, NULL), ENG_OK);
    assert_int_equal(stop, ENG_STOP_NOT);
    assert_int_equal(eng_stop_decide(&rule, &alone, &stop, NULL), ENG_OK);
    assert_int_equal(stop, ENG_STOP_PRECISE);
    for (int i = 0; i < 60; i++) d.ratios[i] = NAN; /* no round had both */
    assert_int_equal(eng_stop_decide(&rule, &samples, &stop, NULL), ENG_OK);
    assert_int_equal(stop, ENG_STOP_PRECISE);
}

/* ---- coverage -----------------------------------------------------------------------------------
 */

/* One more lifetime: recorded rounds drawn one by one, or a recorded lifetime as it is. */
static void add_segment(EngRng *rng, int point, bool whole, int number, Drawn *d)
{
    int s = (int)eng_rng_below(rng, (uint64_t)g_recorded[point].n_segments);
    int from = g_recorded[point].first[s], have = g_recorded[point].first[s + 1] - from;
    for (int i = 0; i < (whole ? have : ROUNDS) && d->n < MOST; i++) {
        int at = whole ? from + i : (int)eng_rng_below(rng, (uint64_t)g_recorded[point].n);
        d->segments[d->n] = number;
        d->times[d->n] = g_recorded[point].times[at];
        d->ratios[d->n++] = g_recorded[point].ratios[at];
    }
}

static bool holds(const double *values, int n, double truth)
{
    EngMedian m;
    assert_int_equal(eng_median(values, (size_t)n, &m, NULL), ENG_OK);
    return m.ci_lo <= truth && truth <= m.ci_hi;
}

typedef struct Coverage {
    double times, ratios, mean_n;
    int stops[3];
} Coverage;

/* fixed 0: until the rule ends it; else so many samples. */
static Coverage cover(int point, bool whole, const EngStopRule *rule, int fixed)
{
    static Drawn d;
    Coverage c = {0};
    EngMedian times, ratios;
    EngRng rng;
    eng_rng_seed_at(&rng, 11, (uint64_t)(point * 2 + whole));
    eng_median(g_recorded[point].times, (size_t)g_recorded[point].n, &times, NULL);
    eng_median(g_recorded[point].ratios, (size_t)g_recorded[point].n, &ratios, NULL);
    for (int trial = 0; trial < TRIALS; trial++) {
        EngStop stop = ENG_STOP_NOT;
        d.n = 0;
        for (int s = 0; d.n < (fixed ? fixed : MOST) && !stop; s++) {
            add_segment(&rng, point, whole, s, &d);
            const EngStopSamples samples = {d.n, d.segments, d.times, d.ratios};
            if (!fixed) assert_int_equal(eng_stop_decide(rule, &samples, &stop, NULL), ENG_OK);
        }
        c.stops[stop]++;
        c.times += holds(d.times, d.n, times.median);
        c.ratios += holds(d.ratios, d.n, ratios.median);
        c.mean_n += d.n;
    }
    c.times *= 100.0 / TRIALS;
    c.ratios *= 100.0 / TRIALS;
    c.mean_n /= TRIALS;
    return c;
}

static void print_coverage(int point, const EngStopRule *rule, const char *what, const Coverage *c,
                           const Coverage *fixed)
{
    print_message(
        "point %d, precision %.0f %%, settled %.0f %%, %s drawn: mean n %.0f, %d precise, %d "
        "settled; medians %.1f %%, ratios %.1f %%; n fixed: %.1f %%, %.1f %%\n",
        point, 100 * rule->precision, 100 * rule->settled, what, c->mean_n,
        c->stops[ENG_STOP_PRECISE], c->stops[ENG_STOP_SETTLED], c->times, c->ratios, fixed->times,
        fixed->ratios);
}

/* Independent rounds: 95 % as promised, less what the trials leave open (3 deviations). */
static void test_coverage(void **state)
{
    static const EngStopRule rules[] = {{0.01, 0}, {0.03, 0}, {0.01, 0.1}};
    (void)state;
    for (int point = 0; point < 3; point++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            Coverage c = cover(point, false, &rules[r], 0);
            Coverage f = cover(point, false, &rules[r], (int)c.mean_n);
            print_coverage(point, &rules[r], "rounds", &c, &f);
            assert_true(c.times >= 92 && c.ratios >= 92);
        }
}

/* Whole lifetimes: a machine that drifts between them moves the median of all samples, whatever
 * ends sampling. Ratios within rounds keep what they promise. */
static void test_coverage_of_lifetimes(void **state)
{
    static const EngStopRule rule = {0.03, 0};
    (void)state;
    for (int point = 0; point < 3; point++) {
        Coverage c = cover(point, true, &rule, 0);
        Coverage f = cover(point, true, &rule, (int)c.mean_n);
        print_coverage(point, &rule, "lifetimes", &c, &f);
        assert_true(c.ratios >= f.ratios - 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_settled),
        cmocka_unit_test(test_ratio_counts),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_coverage_of_lifetimes),
    };
    return cmocka_run_group_tests(tests, read_noise, NULL);
}
