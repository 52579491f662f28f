/* Linear CKA on representations whose likeness is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/core/cka.h"

enum { N = 512, D = 6 };
static float g_x[N * D], g_y[N * D], g_z[N * D];

static void fill(void)
{
    EngRng rng;
    eng_rng_seed(&rng, 3);
    for (int i = 0; i < N * D; i++) g_x[i] = (float)eng_rng_normal(&rng);
    for (int i = 0; i < N * D; i++) g_z[i] = (float)eng_rng_normal(&rng);
}

static double cka(const float *x, const float *y, int batch)
{
    double value;
    assert_int_equal(eng_cka(x, D, y, D, N, batch, &value, NULL), ENG_OK);
    return value;
}

static void test_rotation_and_scale_do_not_matter(void **state)
{
    (void)state;
    fill();
    for (int i = 0; i < N; i++) /* rotate two axes, permute, scale and shift */
        for (int d = 0; d < D; d++) {
            const float *row = g_x + i * D;
            float a = row[d], b = row[(d + 1) % D];
            g_y[i * D + (d + 2) % D] = 3 * (d == 0   ? 0.6f * a - 0.8f * b
                                            : d == 1 ? 0.8f * row[0] + 0.6f * a
                                                     : a) +
                                       5;
        }
    assert_true(fabs(cka(g_x, g_x, 64) - 1) < 1e-9);
    assert_true(fabs(cka(g_x, g_y, 64) - 1) < 1e-4);
}

/* The unbiased estimator is near 0 for independent ones, where the biased one is not. */
static void test_independent_is_zero(void **state)
{
    (void)state;
    fill();
    assert_true(fabs(cka(g_x, g_z, 16)) < 0.05);
    for (int i = 0; i < N * D; i++) g_y[i] = g_x[i] + g_z[i];
    /* K and L share half of the variance of L: the square of .5 over .5. */
    assert_true(fabs(cka(g_x, g_y, 64) - 0.5) < 0.06);
}

/* By hand: X = (0, 1, 2, 4), Y = (1, 0, 1, 3), one batch of 4. */
static void test_by_hand(void **state)
{
    (void)state;
    const float x[] = {0, 1, 2, 4}, y[] = {1, 0, 1, 3};
    /* K: 12 -> 2, 13 -> 4, 23 -> 8; L: 02 -> 1, 03 -> 3, 23 -> 3 (pairs, symmetric). */
    double kl = 2 * (8 * 3), k1 = 28, l1 = 14;
    double rows_k[4] = {0, 6, 10, 12}, rows_l[4] = {4, 0, 4, 6};
    double cross = 0, ck = 0, cl = 0;
    for (int i = 0; i < 4; i++) {
        cross += rows_k[i] * rows_l[i];
        ck += rows_k[i] * rows_k[i];
        cl += rows_l[i] * rows_l[i];
    }
    double both = (kl + k1 * l1 / 6 - cross) / 4;
    double of_x = (2 * (4 + 16 + 64) + k1 * k1 / 6 - ck) / 4;
    double of_y = (2 * (1 + 9 + 9) + l1 * l1 / 6 - cl) / 4;
    double got;
    assert_int_equal(eng_cka(x, 1, y, 1, 4, 4, &got, NULL), ENG_OK);
    assert_true(fabs(got - both / sqrt(of_x * of_y)) < 1e-12);
    EngErr err = {0};
    assert_int_equal(eng_cka(x, 1, y, 1, 4, 5, &got, &err), ENG_USAGE);
    eng_mem_fail_at(2);
    assert_int_equal(eng_cka(x, 1, y, 1, 4, 4, &got, &err), ENG_NO_MEMORY);
    eng_mem_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotation_and_scale_do_not_matter),
        cmocka_unit_test(test_independent_is_zero),
        cmocka_unit_test(test_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
