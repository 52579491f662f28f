/* Paired statistics against known answers, and their error rates and power by simulation (the
 * known answers are the power table of the paper notes, 8.5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/rng.h"
#include "bench/core/paired.h"
#include "bench/core/student.h"
#include "bench/core/verdict.h"

#define STUDIES 4000

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) fail_msg("got %.6g, want %.6g", got, want);
}

/* Printed tables: t of 5 % one-sided and 2.5 %, chi-square of 5 %. */
static void test_distributions(void **state)
{
    (void)state;
    near(eng_student_quantile_upper(0.05, 1), 6.31375, 1e-4);
    near(eng_student_quantile_upper(0.025, 3), 3.18245, 1e-4);
    near(eng_student_quantile_upper(0.025, 7), 2.36462, 1e-4);
    near(eng_student_quantile_upper(0.975, 7), -2.36462, 1e-4);
    near(eng_student_upper(0, 5), 0.5, 1e-12);
    near(eng_student_upper(-2.0150, 5), 0.95, 1e-5);
    near(eng_student_upper(1.6449, 1e6), 0.05, 1e-5);
    near(eng_chi_square_upper(3.84146, 1), 0.05, 1e-6);
    near(eng_chi_square_quantile_upper(0.05, 10), 18.3070, 1e-3);
    near(eng_chi_square_quantile_upper(0.975, 8), 2.17973, 1e-4);
}

/* scipy.stats.ttest_rel([3.1, 2.9, 3.4, 3.3], [3.0, 2.7, 3.1, 3.2]): t 3.65563, two-sided .03535.
 */
static void test_paired_known_answer(void **state)
{
    (void)state;
    const double a[] = {3.1, 2.9, NAN, 3.4, 3.3}, b[] = {3.0, 2.7, 9, 3.1, 3.2};
    EngPaired got = eng_paired(a, b, 5);
    assert_int_equal(got.n, 4);
    near(got.mean, 0.175, 1e-12);
    near(got.sd, 0.0957427, 1e-6);
    near(got.p_two, 0.0353535, 1e-5);
    near(got.p_greater, 0.0176767, 1e-5);
    near(got.lo, 0.0226527, 1e-5);
    near(got.hi, 0.3273473, 1e-5);
    assert_true(isnan(eng_paired(a, b, 1).p_two));
    const double same[] = {1, 2, 3}, less[] = {0.5, 1.5, 2.5};
    near(eng_paired(same, less, 3).p_greater, 0, 0);
    near(eng_paired(same, same, 3).p_greater, 0.5, 0);
}

/* ---- simulated studies ---- */

typedef struct Study {
    int n_x, n_seeds;
    const double *x, *truth;
    double sigma;
} Study;

/* Seeds differ by far more than runs do: pairing has to take that out. */
static void draw(const Study *study, EngRng *rng, double *loss)
{
    for (int s = 0; s < study->n_seeds; s++) {
        double shared = 0.03 * eng_rng_normal(rng);
        for (int x = 0; x < study->n_x; x++)
            loss[x * study->n_seeds + s] =
                study->truth[x] + shared + study->sigma * eng_rng_normal(rng);
    }
}

static double claim_rate(const Study *study, bool split)
{
    double loss[ENG_CURVE_MAX_X * ENG_CURVE_MAX_SEEDS];
    EngRng rng;
    int claims = 0;
    EngCurve curve = {study->n_x, study->n_seeds, study->x, loss};
    eng_rng_seed(&rng, 20);
    for (int i = 0; i < STUDIES; i++) {
        EngValley valley;
        draw(study, &rng, loss);
        EngStatus status = split ? eng_valley_split(&curve, &valley, NULL)
                                 : eng_valley_fixed(&curve, 0.4, 0.8, 1, &valley, NULL);
        assert_int_equal(status, ENG_OK);
        claims += valley.claimed;
    }
    return (double)claims / STUDIES;
}

static const double g_three[] = {0.4, 0.8, 1};

static void test_power_of_contrasts(void **state)
{
    (void)state;
    /* .0133 above the valley at .4 and .0131 at 1. */
    static const double truth[] = {1.7133, 1.7, 1.7131};
    static const struct {
        double sigma;
        int seeds;
        double power;
    } table[] = {{0.001, 2, 0.90}, {0.002, 2, 0.51}, {0.004, 2, 0.19}, {0.004, 3, 0.68},
                 {0.004, 4, 0.92}, {0.008, 4, 0.36}, {0.008, 6, 0.67}, {0.008, 8, 0.84}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        Study study = {3, table[i].seeds, g_three, truth, table[i].sigma};
        near(claim_rate(&study, false), table[i].power, 0.04);
    }
}

static void test_contrasts_keep_their_level(void **state)
{
    (void)state;
    /* Convex and falling to the pure MoE: there is no valley. */
    static const double falling[] = {1.720, 1.7025, 1.700};
    /* The worst case: one flank is enormous, the other exactly flat. */
    static const double edge[] = {1.9, 1.7, 1.7};
    for (int seeds = 2; seeds <= 8; seeds *= 2) {
        Study study = {3, seeds, g_three, falling, 0.004};
        assert_true(claim_rate(&study, false) <= 0.045);
        study.truth = edge;
        near(claim_rate(&study, false), 0.05, 0.012);
    }
}

static void test_split_keeps_its_level(void **state)
{
    (void)state;
    static const double x[] = {0.2, 0.4, 0.6, 0.8, 1};
    static const double flat[] = {1.7, 1.7, 1.7, 1.7, 1.7};
    static const double falling[] = {1.74, 1.72, 1.71, 1.703, 1.7};
    static const double edge[] = {1.9, 1.75, 1.72, 1.7, 1.7};
    static const double valley[] = {1.73, 1.715, 1.7, 1.715, 1.73};
    Study study = {5, 8, x, flat, 0.004};
    assert_true(claim_rate(&study, true) <= 0.05);
    study.truth = falling;
    assert_true(claim_rate(&study, true) <= 0.05);
    study.truth = edge;
    assert_true(claim_rate(&study, true) <= 0.062);
    study.truth = valley;
    assert_true(claim_rate(&study, true) >= 0.95);
}

/* ---- one curve ---- */

static void test_argmin(void **state)
{
    (void)state;
    static const double x[] = {0.2, 0.4, 0.6, 1};
    /* .4 and .6 cross from seed to seed; the ends are clearly higher. Seed 4 lacks a run. */
    static const double loss[] = {3.06, 3.15, 3.36, 3.27, 3.00, /* .2 */
                                  3.00, 3.12, 3.30, 3.22, 3.00, /* .4 */
                                  3.01, 3.10, 3.31, 3.20, NAN,  /* .6 */
                                  3.20, 3.31, 3.49, 3.42, 3.20};
    EngCurve curve = {4, 5, x, loss};
    EngArgmin got;
    EngErr err = {0};
    assert_int_equal(eng_argmin(&curve, 1, &got, &err), ENG_OK);
    assert_int_equal(got.n_seeds, 4);
    assert_int_equal(got.best, 2);
    near(got.lo, 0.4, 0);
    near(got.hi, 0.6, 0);
    near(got.share[1] + got.share[2], 1, 1e-9);
    assert_false(got.tied[0]);
    assert_true(got.tied[1] && got.tied[2]);
    assert_false(got.tied[3]);
    curve.n_seeds = 1;
    assert_int_equal(eng_argmin(&curve, 1, &got, &err), ENG_UNSUPPORTED);
}

static void test_valley_at_an_end_is_none(void **state)
{
    (void)state;
    static const double x[] = {0.4, 0.8, 1};
    static const double loss[] = {3, 3.1, 3.2, 3.3, 2, 2.1, 2.2, 2.3, 1, 1.1, 1.2, 1.3};
    EngCurve curve = {3, 4, x, loss};
    EngValley valley;
    EngErr err = {0};
    assert_int_equal(eng_valley_split(&curve, &valley, &err), ENG_OK);
    assert_int_equal(valley.valley, -1);
    assert_false(valley.claimed);
    assert_int_equal(eng_valley_fixed(&curve, 0.4, 0.7, 1, &valley, &err), ENG_NOT_FOUND);
    curve.n_seeds = 3;
    assert_int_equal(eng_valley_split(&curve, &valley, &err), ENG_UNSUPPORTED);
}

/* Seven seeds at .4, .8 and 1, four at the other places, of which .6 is lowest: it is chosen by the
 * seeds that have all places. Pairs of a flank are counted without the seeds it lacks. */
static void test_missing_seeds(void **state)
{
    (void)state;
    static const double x[] = {0.4, 0.6, 0.8, 1};
    double loss[4 * 7];
    EngCurve curve = {4, 7, x, loss};
    EngValley valley;
    EngErr err = {0};
    for (int s = 0; s < 7; s++) {
        loss[s] = 3.1 + s + 0.001 * (s % 3);
        loss[7 + s] = s < 4 ? 2.9 + s : NAN;
        loss[14 + s] = 3 + s;
        loss[21 + s] = 3.2 + s + 0.001 * (s % 3);
    }
    assert_int_equal(eng_valley_split(&curve, &valley, &err), ENG_OK);
    assert_int_equal(valley.valley, 1);
    assert_int_equal(valley.n_choosing, 2); /* of the four at even places */
    assert_int_equal(valley.n_testing, 2);
    loss[21 + 1] = NAN;
    assert_int_equal(eng_valley_split(&curve, &valley, &err), ENG_OK);
    assert_int_equal(valley.left.n, 2);
    assert_int_equal(valley.n_testing, 1);
    assert_false(valley.claimed);
    loss[7] = loss[7 + 2] = NAN;
    assert_int_equal(eng_valley_split(&curve, &valley, &err), ENG_UNSUPPORTED);
}

static void test_few_seeds_have_no_interval(void **state)
{
    (void)state;
    static const double x[] = {0.4, 0.8, 1};
    static const double loss[] = {3.1, 4.1, 5.1, 6.1, 3, 4, 5, 6, 3.1, 4.1, 5.1, 6.1};
    double three[9];
    EngArgmin got;
    EngErr err = {0};
    EngCurve curve = {3, 4, x, loss};
    assert_int_equal(eng_argmin(&curve, 1, &got, &err), ENG_OK);
    near(got.lo, 0.8, 0);
    for (int i = 0; i < 9; i++) three[i] = loss[i / 3 * 4 + i % 3];
    curve = (EngCurve){3, 3, x, three};
    assert_int_equal(eng_argmin(&curve, 1, &got, &err), ENG_OK);
    assert_int_equal(got.best, 1);
    assert_true(isnan(got.lo) && isnan(got.hi));
}

/* Residuals of a 2 x 3 table with arm and seed effects taken out: all +-0.01. */
static void test_spread(void **state)
{
    (void)state;
    static const double x[] = {0.8, 1};
    static const double loss[] = {1.01, 2.00, 3.02 - 0.03, 1.09, 2.10 + 0.0, 3.11};
    EngCurve curve = {2, 3, x, loss};
    EngSpread got = eng_spread(&curve);
    assert_int_equal(got.df, 2);
    /* Differences .08, .10, .12 have deviation .02, sigma is that over the root of 2. */
    near(got.sigma, 0.02 / sqrt(2), 1e-9);
    /* Chi-square of 2 degrees of freedom: 7.3778 and .0506356. */
    near(got.lo, got.sigma * sqrt(2 / 7.37776), 1e-6);
    near(got.hi, got.sigma * sqrt(2 / 0.0506356), 1e-5);
}

static EngClaimWord judge_alone(const double *values, int n, double published, double margin)
{
    EngPaired ours = eng_arm_mean(values, n);
    return eng_claim_judge(eng_claim_p(&ours, published, margin));
}

/* scipy.stats: of four differences of mean .02 and deviation .004, t against 0 is 10, against .04
 * -10, against .022 -1; one-sided p of |t| 10 and 1 at 3 degrees of freedom: .00106, .19550. */
static void test_claims(void **state)
{
    (void)state;
    const double d = 0.004 * sqrt(0.75);
    const double seen[] = {0.02 - d, 0.02 + d, 0.02 - d, 0.02 + d};
    EngPaired ours = eng_arm_mean(seen, 4);
    near(ours.sd, 0.004, 1e-12);
    EngClaimP p = eng_claim_p(&ours, 0.04, 0);
    near(p.agrees, 2 * 0.00106, 1e-4);
    near(p.disagrees, 0.00106, 1e-4);
    near(eng_claim_p(&ours, 0.022, 0).disagrees, 0.19550, 1e-4);
    near(eng_claim_p(&ours, -0.04, 0).agrees, 1, 0);
    assert_int_equal(eng_claim_judge(p), ENG_CLAIM_CONFIRMED); /* smaller, but there */
    assert_int_equal(judge_alone(seen, 4, -0.04, 0), ENG_CLAIM_CONTRADICTED);
    const double none[] = {-0.001, 0.0014, 0.0008, -0.0004, 0.0002, 0.001, -0.0008, 0.0004};
    assert_int_equal(judge_alone(none, 8, 0.0046, 0), ENG_CLAIM_CONTRADICTED);
    assert_int_equal(judge_alone(none, 8, 0.0005, 0), ENG_CLAIM_NOT_DETECTABLE);
    assert_true(isnan(eng_claim_p(&(EngPaired){.n = 1, .mean = 0.1}, 0.1, 0).agrees));
    assert_int_equal(judge_alone(seen, 1, 0.1, 0), ENG_CLAIM_NOT_DETECTABLE);
    /* Farther from the paper is never less contradicted. */
    const double wrong[] = {-0.012, -0.002, -0.011, -0.001}; /* -.0065 (-.0156 to .0026) */
    assert_int_equal(judge_alone(wrong, 4, 0.0046, 0), ENG_CLAIM_CONTRADICTED);
}

/* "Hardly an effect": within the margin confirms, beyond it contradicts, on either side. */
static void test_claims_of_no_effect(void **state)
{
    (void)state;
    const double none[] = {-0.001, 0.0014, 0.0008, -0.0004};
    const double large[] = {0.05, 0.052, 0.049, 0.051}, fall[] = {-0.05, -0.052, -0.049, -0.051};
    const double noisy[] = {-0.01, 0.02, 0.03, -0.02};
    assert_int_equal(judge_alone(none, 4, 0.0005, 0.0046), ENG_CLAIM_CONFIRMED);
    assert_int_equal(judge_alone(large, 4, 0.0005, 0.0046), ENG_CLAIM_CONTRADICTED);
    assert_int_equal(judge_alone(fall, 4, 0.0005, 0.0046), ENG_CLAIM_CONTRADICTED);
    assert_int_equal(judge_alone(noisy, 4, 0.0005, 0.0046), ENG_CLAIM_NOT_DETECTABLE);
}

/* Studies in which the paper is right twelve times: some claim is called contradicted in at most 5
 * %. */
static void test_contradictions_keep_their_level(void **state)
{
    (void)state;
    static const double truth[] = {.0139, .0138, .0284, .0125, .0117, .0025,
                                   .0027, .0046, .0065, .0057, .0017, .0005};
    static const double sigma[] = {0.0014, 0.0028, 0.0057};
    enum { CLAIMS = sizeof truth / sizeof *truth };
    EngRng rng;
    eng_rng_seed(&rng, 7);
    for (int at = 0; at < 6; at++) {
        int seeds = at < 3 ? 4 : 8, studies = 0;
        for (int i = 0; i < STUDIES; i++) {
            EngClaimP p[CLAIMS];
            double agrees[CLAIMS], disagrees[CLAIMS], values[8];
            bool any = false;
            for (int c = 0; c < CLAIMS; c++) {
                for (int s = 0; s < seeds; s++)
                    values[s] = truth[c] + sigma[at % 3] * eng_rng_normal(&rng);
                EngPaired ours = eng_arm_mean(values, seeds);
                p[c] = eng_claim_p(&ours, truth[c], c < 10 ? 0 : 0.0046);
                agrees[c] = p[c].agrees;
                disagrees[c] = p[c].disagrees;
            }
            assert_int_equal(eng_holm(agrees, CLAIMS, agrees, NULL), ENG_OK);
            assert_int_equal(eng_holm(disagrees, CLAIMS, disagrees, NULL), ENG_OK);
            for (int c = 0; c < CLAIMS; c++)
                any |=
                    eng_claim_judge((EngClaimP){agrees[c], disagrees[c]}) == ENG_CLAIM_CONTRADICTED;
            studies += any;
        }
        if (studies > 0.058 * STUDIES) fail_msg("%d: %g", at, (double)studies / STUDIES);
        if (at % 3 == 2 && !studies) fail_msg("%d: nothing is ever called contradicted", at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_paired_known_answer),
        cmocka_unit_test(test_power_of_contrasts),
        cmocka_unit_test(test_contrasts_keep_their_level),
        cmocka_unit_test(test_split_keeps_its_level),
        cmocka_unit_test(test_argmin),
        cmocka_unit_test(test_valley_at_an_end_is_none),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_missing_seeds),
        cmocka_unit_test(test_few_seeds_have_no_interval),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_claims_of_no_effect),
        cmocka_unit_test(test_contradictions_keep_their_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
