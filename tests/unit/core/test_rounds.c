/* Comparisons within rounds on times whose answer is known, the ladder, and Amdahl's arithmetic. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "bench/core/amdahl.h"
#include "bench/core/rounds.h"

enum { R = 60, C = 4 };

typedef struct Case {
    int segments[R];
    double times[R * C];
    EngRounds rounds;
} Case;

/* Candidate c takes factor[c] of a time that drifts threefold over the rounds, +- noise. */
static void make_case(Case *k, const double *factor, double noise)
{
    EngRng rng;
    eng_rng_seed(&rng, 7);
    for (int r = 0; r < R; r++) {
        k->segments[r] = r / 20;
        for (int c = 0; c < C; c++) {
            double jitter = noise * ((double)eng_rng_below(&rng, 2001) / 1000 - 1);
            k->times[r * C + c] = 100 * (1 + 2.0 * r / R) * factor[c] * (1 + jitter);
        }
    }
    k->rounds = (EngRounds){R, C, k->segments, k->times};
}

/* Drift of 300 % does not hide a difference of 2 %: medians over all rounds would. */
static void test_scores_and_ratio(void **state)
{
    (void)state;
    Case k;
    const double factor[C] = {1.02, 1.0, 1.5, 1.04};
    double scores[C];
    int order[C];
    EngMedian ratio;
    make_case(&k, factor, 0.002);
    assert_int_equal(eng_rounds_scores(&k.rounds, scores, NULL), ENG_OK);
    eng_rounds_order(scores, C, order);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 3);
    assert_int_equal(order[3], 2);
    assert_int_equal(eng_rounds_ratio(&k.rounds, 1, 0, &ratio, NULL), ENG_OK);
    assert_true(fabs(ratio.median - 1.02) < 0.002);
    assert_int_equal(ratio.n, R);
    assert_true(ratio.ci_lo > 1.015 && ratio.ci_hi < 1.025);
}

static void test_missing_samples(void **state)
{
    (void)state;
    Case k;
    const double factor[C] = {1.2, 1.0, 1.0, 1.1};
    double scores[C];
    int order[C];
    EngMedian ratio;
    make_case(&k, factor, 0);
    for (int r = 0; r < R; r++) {
        k.times[r * C + 1] = NAN; /* never measured */
        if (r % 2) k.times[r * C + 0] = NAN;
    }
    assert_int_equal(eng_rounds_scores(&k.rounds, scores, NULL), ENG_OK);
    assert_true(isnan(scores[1]));
    eng_rounds_order(scores, C, order);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 3);
    assert_int_equal(order[3], 1); /* unknown ones last */
    assert_int_equal(eng_rounds_ratio(&k.rounds, 2, 0, &ratio, NULL), ENG_OK);
    assert_int_equal(ratio.n, R / 2);
    assert_int_equal(eng_rounds_ratio(&k.rounds, 2, 1, &ratio, NULL), ENG_OK);
    assert_int_equal(ratio.n, 0);
    assert_true(isnan(ratio.median));
    /* A round with one of several candidates compares nothing. */
    for (int r = 0; r < R; r++) k.times[r * C + 2] = k.times[r * C + 3] = NAN;
    assert_int_equal(eng_rounds_scores(&k.rounds, scores, NULL), ENG_OK);
    for (int c = 0; c < C; c++) assert_true(isnan(scores[c]));
}

static void test_order_keeps_equals(void **state)
{
    (void)state;
    const double scores[] = {NAN, 1, 1, 0.5, NAN, 1};
    int order[6];
    const int want[] = {3, 1, 2, 5, 0, 4};
    eng_rounds_order(scores, 6, order);
    assert_memory_equal(order, want, sizeof want);
}

static void test_floor(void **state)
{
    (void)state;
    Case k;
    const double factor[C] = {1, 1, 1, 1};
    double quiet, noisy, few;
    int n;
    make_case(&k, factor, 0);
    /* Without noise only the drift is left, and turning every second ratio cancels it. */
    assert_int_equal(eng_rounds_floor(&k.rounds, 0, &quiet, &n, NULL), ENG_OK);
    assert_int_equal(n, 30);
    assert_true(quiet < 0.04);
    make_case(&k, factor, 0.2);
    assert_int_equal(eng_rounds_floor(&k.rounds, 0, &noisy, &n, NULL), ENG_OK);
    assert_true(noisy > 0.04 && noisy < 0.4);
    k.rounds.n_rounds = 11; /* five ratios: no interval */
    assert_int_equal(eng_rounds_floor(&k.rounds, 0, &few, &n, NULL), ENG_OK);
    assert_int_equal(n, 5);
    assert_true(isnan(few));
    /* Pairs do not cross lifetimes: rounds 0..2 of three lifetimes give one ratio each. */
    for (int r = 0; r < 9; r++) k.segments[r] = r / 3;
    k.rounds.n_rounds = 9;
    assert_int_equal(eng_rounds_floor(&k.rounds, 0, &few, &n, NULL), ENG_OK);
    assert_int_equal(n, 3);
}

static void test_verdict(void **state)
{
    (void)state;
    const EngMedian clear = {60, 1.05, 1.04, 1.06}, holds_one = {60, 1.05, 0.99, 1.1},
                    slower = {60, 0.9, 0.88, 0.92}, unknown = {5, 1.5, NAN, NAN};
    assert_int_equal(eng_rounds_verdict(&clear, 0.01), 1);
    assert_int_equal(eng_rounds_verdict(&clear, 0.06), 0);
    assert_int_equal(eng_rounds_verdict(&clear, NAN), 0);
    assert_int_equal(eng_rounds_verdict(&holds_one, 0.01), 0);
    assert_int_equal(eng_rounds_verdict(&slower, 0.01), -1);
    assert_int_equal(eng_rounds_verdict(&slower, 0.12), 0);
    assert_int_equal(eng_rounds_verdict(&unknown, 0.01), 0);
}

/* The same variant twice is hardly ever told apart: that is what the floor is for. */
static void test_aa_has_no_winner(void **state)
{
    (void)state;
    int wrong = 0;
    for (int trial = 0; trial < 200; trial++) {
        Case k;
        EngRng rng;
        EngMedian ratio;
        double floor;
        eng_rng_seed(&rng, (uint64_t)trial + 1);
        for (int r = 0; r < R; r++) {
            k.segments[r] = r / 20;
            for (int c = 0; c < C; c++)
                k.times[r * C + c] = 100 + (double)eng_rng_below(&rng, 1000) / 100;
        }
        k.rounds = (EngRounds){R, C, k.segments, k.times};
        assert_int_equal(eng_rounds_ratio(&k.rounds, 0, 1, &ratio, NULL), ENG_OK);
        assert_int_equal(eng_rounds_floor(&k.rounds, 0, &floor, NULL, NULL), ENG_OK);
        wrong += eng_rounds_verdict(&ratio, floor) != 0;
    }
    assert_true(wrong <= 4);
}

static void test_ladder(void **state)
{
    (void)state;
    EngTuneStage s[ENG_TUNE_MAX_STAGES];
    for (int n = 1; n <= 400; n++) {
        int count = eng_tune_ladder(n, s);
        assert_true(count >= 1 && count <= ENG_TUNE_MAX_STAGES);
        assert_int_equal(s[0].candidates, n);
        for (int i = 0; i < count; i++) {
            bool last = i + 1 == count;
            assert_true(s[i].pairs > 0 && s[i].segments > 0);
            assert_true(last ? s[i].keep == 1 : s[i].keep < s[i].candidates);
            if (!last) assert_int_equal(s[i].keep, s[i + 1].candidates);
            if (!last)
                assert_true(s[i + 1].pairs * s[i + 1].segments >= s[i].pairs * s[i].segments);
        }
        assert_true(s[count - 1].candidates <= 3);
        assert_true(s[count - 1].pairs * s[count - 1].segments >= 61);
    }
    assert_int_equal(eng_tune_ladder(1, s), 1);
    assert_int_equal(eng_tune_ladder(3, s), 1);
    assert_int_equal(eng_tune_ladder(4, s), 2);
    assert_int_equal(eng_tune_ladder(27, s), 3);
}

static void test_amdahl(void **state)
{
    (void)state;
    char text[512];
    assert_true(fabs(eng_amdahl_gain(0.5, 2) - 1.0 / 3) < 1e-12);
    assert_true(eng_amdahl_gain(0.5, 1) == 0);
    assert_true(fabs(eng_amdahl_gain(1, 3) - 2) < 1e-12);
    assert_true(eng_amdahl_gain(0, 3) == 0);
    assert_true(eng_amdahl_gain(0.5, 0.5) < 0);
    assert_true(fabs(eng_amdahl_ceiling(0.2) - 0.25) < 1e-12);
    assert_true(isinf(eng_amdahl_ceiling(1)));
    assert_true(eng_amdahl_gain(0.2, 1e9) < eng_amdahl_ceiling(0.2));
    /* Half the floor wants four times the pairs. */
    assert_true(eng_amdahl_pairs(0.005, 0.01, 30) == 120);
    assert_true(isinf(eng_amdahl_pairs(0, 0.01, 30)));
    EngAmdahl a = {.found = true, .share = 0.007, .floor = 0.009, .pairs = 30, .tokens = 64};
    eng_amdahl_text(&a, "gather", 1.8, text, sizeof text);
    assert_string_equal(text,
                        "x1.8 on gather = +0.31 % of the chain at 64 tokens (gather is 0.7 % of "
                        "it; below the chain's A/A floor of 0.9 %: not detectable in 30 pairs, "
                        "about 2.5e+02 would tell)");
    a.floor = 0.001;
    eng_amdahl_text(&a, "gather", 1.8, text, sizeof text);
    assert_non_null(strstr(text, "above the chain's A/A floor of 0.1 %: detectable"));
    a.floor = NAN;
    eng_amdahl_text(&a, "gather", 1.8, text, sizeof text);
    assert_non_null(strstr(text, "too few chain samples"));
    char small[16];
    eng_amdahl_text(&a, "gather", 1.8, small, sizeof small);
    assert_true(strlen(small) < sizeof small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores_and_ratio),
        cmocka_unit_test(test_missing_samples),
        cmocka_unit_test(test_order_keeps_equals),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_aa_has_no_winner),
        cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_amdahl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
