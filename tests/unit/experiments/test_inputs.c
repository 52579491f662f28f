/* Synthetic inputs: normals, alignment of hidden states to keys, weights as bf16; and the oracle
 * comparisons, which must see a wrong result. */
#include "points.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/oracle.h"
#include "kernels/ref/fp8.h"
#include "kernels/ref/gather.h"

static EngNormals *make_normals(void)
{
    EngNormals *normals = eng_alloc(sizeof *normals);
    eng_normals_init(normals);
    return normals;
}

static void test_normals(void **unused)
{
    (void)unused;
    EngNormals *normals = make_normals();
    double sum = 0, squares = 0, fourths = 0, inside = 0;
    for (int i = 0; i < 4096; i++) {
        double q = normals->quantiles[i];
        if (i) assert_true(q > normals->quantiles[i - 1]);
        sum += q;
        squares += q * q;
        fourths += q * q * q * q;
        inside += fabs(q) < 1;
    }
    assert_true(fabs(sum) < 1e-3);
    assert_true(fabs(squares / 4096 - 1) < 2e-3);
    assert_true(fabs(fourths / 4096 - 3) < 0.05);
    assert_true(fabs(inside / 4096 - 0.682689) < 1e-3);
    /* Drawn values: the same from any place, and independent of how many are drawn. */
    uint16_t a[700], b[50];
    eng_normals_bf16(normals, 4, 9, 1, 0.25f, 700, a);
    eng_normals_bf16(normals, 4, 9, 1, 0.25f, 50, b);
    assert_memory_equal(a, b, sizeof b);
    double mean = 0;
    for (int i = 0; i < 700; i++) mean += eng_ref_bf16(a[i]) / 700;
    assert_true(fabs(mean - 1) < 0.05);
    eng_free(normals);
}

static double cosine(const uint16_t *a, const uint16_t *b, int n)
{
    double aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < n; i++) {
        double x = eng_ref_bf16(a[i]), y = eng_ref_bf16(b[i]);
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    return ab / sqrt(aa * bb);
}

static void test_alignment(void **unused)
{
    (void)unused;
    enum { TOKENS = 40, STREAMS = 4, HIDDEN = 640 };
    EngNormals *normals = make_normals();
    uint16_t *kv = eng_alloc(2 * TOKENS * (STREAMS + 1) * HIDDEN);
    uint16_t *states = eng_alloc(2 * TOKENS * STREAMS * HIDDEN);
    static const double alignments[] = {0, 0.1, 0.3, 0.9, 1};
    for (int a = 0; a < 5; a++) {
        double mean = 0, spread = 0;
        assert_int_equal(eng_synthetic_gate_inputs(normals, 3, 0, TOKENS, STREAMS, HIDDEN,
                                                   alignments[a], kv, states, NULL),
                         ENG_OK);
        for (int t = 0; t < TOKENS; t++)
            for (int s = 0; s < STREAMS; s++) {
                double c = cosine(states + (t * STREAMS + s) * HIDDEN,
                                  kv + (t * (STREAMS + 1) + s) * HIDDEN, HIDDEN);
                mean += c / (TOKENS * STREAMS);
                spread += (c - alignments[a]) * (c - alignments[a]) / (TOKENS * STREAMS);
            }
        double expected = pow(1 - alignments[a] * alignments[a], 1.5) / sqrt(HIDDEN);
        assert_true(fabs(mean - alignments[a]) < 0.012);
        assert_true(sqrt(spread) < 1.3 * expected + 1e-4);
        assert_true(sqrt(spread) > 0.7 * expected - 1e-4);
    }
    /* A token's content does not depend on the window it is made in. */
    uint16_t *other = eng_alloc(2 * STREAMS * HIDDEN), *kv_other = eng_alloc(2 * 5 * HIDDEN);
    assert_int_equal(
        eng_synthetic_gate_inputs(normals, 3, 7, 1, STREAMS, HIDDEN, 1, kv_other, other, NULL),
        ENG_OK);
    assert_memory_equal(other, states + 7 * STREAMS * HIDDEN, 2 * STREAMS * HIDDEN);
    eng_free(other);
    eng_free(kv_other);
    eng_free(kv);
    eng_free(states);
    eng_free(normals);
}

static void test_weights_to_bf16(void **unused)
{
    (void)unused;
    enum { ROWS = 64, K = 96 };
    uint8_t values[ROWS * K], scales[(ROWS / 32) * (K / 32)];
    uint16_t *bf16;
    EngRng rng;
    eng_rng_seed(&rng, 8);
    for (int i = 0; i < ROWS * K; i++) values[i] = (uint8_t)(eng_rng_below(&rng, 127) | (i & 128));
    for (size_t i = 0; i < sizeof scales; i++) scales[i] = (uint8_t)(120 + i);
    assert_int_equal(eng_weights_to_bf16(values, scales, ROWS, K, &bf16, NULL), ENG_OK);
    for (int j = 0; j < ROWS; j++)
        for (int i = 0; i < K; i++)
            assert_true(eng_ref_bf16(bf16[j * K + i]) ==
                        eng_ref_e4m3(values[j * K + i]) *
                            eng_ref_e8m0(scales[j / 32 * (K / 32) + i / 32]));
    eng_free(bf16);
}

/* ---- comparisons must be able to fail ---- */

static void test_check_gather_sees_one_bit(void **unused)
{
    (void)unused;
    uint8_t values[64 * 10], scales[2 * 10], out[64 * 3], out_scales[2 * 3];
    for (size_t i = 0; i < sizeof values; i++) values[i] = (uint8_t)(i % 120);
    for (size_t i = 0; i < sizeof scales; i++) scales[i] = (uint8_t)(118 + i % 7);
    const int64_t rows[] = {3, 9, 0};
    EngGatherProblem problem = {
        .table = {ENG_ROW_FP8, 64, 10, values, scales}, .columns = 3, .tokens = 1, .out = ENG_FP8};
    EngGatherArgs args = {.rows = rows, .row_stride = 3, .out = out, .out_scales = out_scales};
    eng_ref_gather(&problem, &args);
    EngCheck check = {0};
    assert_int_equal(eng_check_gather(&problem, &args, &check, NULL), ENG_OK);
    assert_int_equal(check.n_failed, 0);
    assert_int_equal(check.n_checked, 3 * 66);
    assert_int_equal(check.n_outputs, 3 * 66);
    out_scales[5] ^= 1;
    check = (EngCheck){0};
    eng_check_gather(&problem, &args, &check, NULL);
    assert_int_equal(check.n_failed, 1);
    out_scales[5] ^= 1;
    out[100] ^= 128;
    check = (EngCheck){0};
    eng_check_gather(&problem, &args, &check, NULL);
    assert_int_equal(check.n_failed, 1);
}

static void test_check_project_sees_errors(void **unused)
{
    (void)unused;
    enum { T = 2, ROWS = 32, K = 64 };
    uint16_t x[T * K], w[ROWS * K];
    float out[T * ROWS];
    for (int i = 0; i < T * K; i++) x[i] = eng_ref_bf16_round(0.01 * (i % 17 - 8));
    for (int i = 0; i < ROWS * K; i++) w[i] = eng_ref_bf16_round(0.02 * (i % 13 - 6));
    EngProjectProblem problem = {.tokens = T,
                                 .n = ROWS,
                                 .k = K,
                                 .x = ENG_BF16,
                                 .weights = ENG_BF16,
                                 .out = ENG_F32,
                                 .w = (const uint8_t *)w};
    EngProjectArgs args = {.x = x, .out = out};
    for (int t = 0; t < T; t++)
        for (int j = 0; j < ROWS; j++) {
            double sum = 0;
            for (int i = 0; i < K; i++)
                sum += eng_ref_bf16(x[t * K + i]) * eng_ref_bf16(w[j * K + i]);
            out[t * ROWS + j] = (float)sum;
        }
    EngCheck check = {0};
    assert_int_equal(eng_check_project(&problem, &args, 1, 64, &check, NULL), ENG_OK);
    assert_true(check.n_failed == 0 && check.n_nonfinite == 0);
    assert_int_equal(check.n_checked, 64);
    assert_int_equal(check.n_outputs, T * ROWS);
    for (int i = 0; i < T * ROWS; i++) out[i] += 0.01f;
    check = (EngCheck){0};
    eng_check_project(&problem, &args, 1, 64, &check, NULL);
    assert_int_equal(check.n_failed, 64);
    assert_true(check.max_share > 1);
    /* One NaN anywhere is found, sampled or not. */
    out[37] = NAN;
    check = (EngCheck){0};
    eng_check_project(&problem, &args, 1, 1, &check, NULL);
    assert_int_equal(check.n_nonfinite, 1);
}

static void test_gate_slope(void **unused)
{
    (void)unused;
    static const double scores[] = {-40, -3, -0.5, -0.01, 0.002, 0.3, 2, 9, 60};
    for (int f = 0; f < ENG_GATE_FORMULA_COUNT; f++)
        for (int i = 0; i < 9; i++) {
            double s = scores[i], h = 1e-6 * fabs(s);
            double by_difference = (eng_gate_value(f, s + h) - eng_gate_value(f, s - h)) / (2 * h);
            assert_true(fabs(eng_gate_slope(f, s) - by_difference) <
                        1e-5 * fabs(by_difference) + 1e-9);
        }
    assert_true(eng_gate_slope(ENG_GATE_COPYSIGN, 0) == 0); /* the clamp holds it still */
    assert_true(eng_gate_slope(ENG_GATE_PLAIN, 0) == 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normals),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_weights_to_bf16),
        cmocka_unit_test(test_check_gather_sees_one_bit),
        cmocka_unit_test(test_check_project_sees_errors),
        cmocka_unit_test(test_gate_slope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
