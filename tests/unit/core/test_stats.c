/* Order statistics against exact binomial sums and known values. */
#include "ledger_fixture.h"

#include "base/rng.h"
#include "bench/core/stats.h"

/* Integer arithmetic: sum of C(n, k) for k < lo, against 2^n / 40. */
static void exact_ranks(int n, int *lo, int *hi)
{
    unsigned __int128 term = 1, sum = 0, whole = (unsigned __int128)1 << n;
    int k = 0;
    for (;; k++) {
        sum += term;
        if (sum * 40 > whole) break;
        term = term * (unsigned)(n - k) / (unsigned)(k + 1);
    }
    *lo = k;
    *hi = k ? n + 1 - k : 0;
}

static void test_ranks_exact(void **state)
{
    (void)state;
    EngRankWalk walk = {0};
    for (int n = 1; n <= 100; n++) {
        int lo, hi, exact_lo, exact_hi;
        exact_ranks(n, &exact_lo, &exact_hi);
        assert_int_equal(eng_median_ranks(n, &lo, &hi), n >= 6);
        assert_int_equal(lo, exact_lo);
        assert_int_equal(hi, exact_hi);
        eng_rank_walk_next(&walk);
        eng_rank_walk_ranks(&walk, &lo, &hi);
        assert_int_equal(walk.n, n);
        assert_int_equal(lo, exact_lo);
    }
}

static void test_ranks_known(void **state)
{
    (void)state;
    /* From exact rational sums. */
    static const int known[][3] = {{6, 1, 6},         {8, 1, 8},          {9, 2, 8},
                                   {10, 2, 9},        {15, 4, 12},        {20, 6, 15},
                                   {30, 10, 21},      {100, 40, 61},      {1000, 469, 532},
                                   {2000, 956, 1045}, {10000, 4902, 5099}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int lo, hi;
        assert_true(eng_median_ranks(known[i][0], &lo, &hi));
        assert_int_equal(lo, known[i][1]);
        assert_int_equal(hi, known[i][2]);
    }
    int lo, hi;
    assert_false(eng_median_ranks(5, &lo, &hi));
    assert_false(eng_median_ranks(0, &lo, &hi));
}

static void test_median(void **state)
{
    (void)state;
    EngMedian m;
    EngErr err = {0};
    const double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    assert_int_equal(eng_median(odd, 3, &m, &err), ENG_OK);
    assert_true(m.median == 3 && m.n == 3 && isnan(m.ci_lo));
    assert_int_equal(eng_median(even, 4, &m, &err), ENG_OK);
    assert_true(m.median == 2.5);
    assert_int_equal(eng_median(NULL, 0, &m, &err), ENG_OK);
    assert_true(isnan(m.median) && m.n == 0);
    double six[] = {6, 5, 4, 3, 2, 1};
    m = eng_median_in_place(six, 6);
    assert_true(m.median == 3.5 && m.ci_lo == 1 && m.ci_hi == 6);
    eng_mem_fail_at(1);
    assert_int_equal(eng_median(odd, 3, &m, &err), ENG_NO_MEMORY);
    eng_mem_fail_at(0);
}

/* The interval covers the true median of a skewed distribution at least 95 % of the time. */
static void test_coverage(void **state)
{
    (void)state;
    EngRng rng;
    int covered = 0, trials = 4000;
    eng_rng_seed(&rng, 3);
    for (int t = 0; t < trials; t++) {
        double values[15];
        for (int i = 0; i < 15; i++) values[i] = exp(eng_rng_normal(&rng));
        EngMedian m = eng_median_in_place(values, 15);
        covered += m.ci_lo <= 1 && 1 <= m.ci_hi;
    }
    assert_in_range(covered, trials * 945 / 1000, trials * 985 / 1000); /* exact: 96.5 % */
}

static void test_quantile(void **state)
{
    (void)state;
    const double v[] = {1, 2, 4, 8};
    assert_true(eng_quantile_sorted(v, 4, 0) == 1);
    assert_true(eng_quantile_sorted(v, 4, 1) == 8);
    assert_true(eng_quantile_sorted(v, 4, 0.5) == 3);
    assert_true(fabs(eng_quantile_sorted(v, 4, 0.9) - 6.8) < 1e-12);
    assert_true(eng_quantile_sorted(v, 1, 0.7) == 1);
    assert_true(isnan(eng_quantile_sorted(v, 0, 0.7)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_exact), cmocka_unit_test(test_ranks_known),
        cmocka_unit_test(test_median),      cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_quantile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
