/* Number formats: the oracle against answers of the ml_dtypes package, then both CPU decoders
 * against the oracle on all 65,536 pairs of value and scale bytes, bit for bit.
 */
#include "kernels_test.h"

#include "kernels/cpu/common.h"
#include "kernels/cpu/decode.h"

#include <math.h>

static void test_published_answers(void **state)
{
    char line[128], kind[8], input[32], want[64];
    int seen[3] = {0};
    FILE *file = fopen(ENG_SOURCE_DIR "/tests/data/number_formats.txt", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') continue;
        assert_int_equal(sscanf(line, "%7s %31s %63s", kind, input, want), 3);
        uint32_t bits = (uint32_t)strtoul(input, NULL, 16);
        if (!strcmp(kind, "bf16")) {
            float value = eng_cpu_float_of(bits);
            uint16_t answer = (uint16_t)strtoul(want, NULL, 16);
            double decoded = eng_ref_bf16(answer);
            if (isnan(decoded)) {
                assert_true(isnan(eng_ref_bf16(eng_ref_bf16_round(value))));
                assert_true(isnan(eng_ref_bf16(eng_cpu_bf16_of(value))));
            } else {
                assert_int_equal(eng_ref_bf16_round(value), answer);
                assert_int_equal(eng_cpu_bf16_of(value), answer);
            }
            seen[2]++;
            continue;
        }
        bool is_e4m3 = !strcmp(kind, "e4m3");
        double answer = strtod(want, NULL);
        double got = is_e4m3 ? eng_ref_e4m3((uint8_t)bits) : eng_ref_e8m0((uint8_t)bits);
        if (isnan(answer)) {
            assert_true(isnan(got));
        } else {
            assert_true(got == answer);
            assert_int_equal(signbit(got) != 0, signbit(answer) != 0);
        }
        seen[is_e4m3 ? 0 : 1]++;
    }
    fclose(file);
    assert_int_equal(seen[0], 256);
    assert_int_equal(seen[1], 256);
    assert_true(seen[2] > 900);
}

/* Facts section 4, item 7. */
static void test_published_row_sample(void **state)
{
    static const uint8_t bytes[8] = {0xd8, 0x71, 0xf2, 0x79, 0x70, 0x69, 0xf0, 0xe5};
    static const double want[8] = {-0.00390625, 0.03515625,  -0.0390625, 0.0703125,
                                   0.03125,     0.017578125, -0.03125,   -0.0126953125};
    uint8_t group[32] = {0}, scale = 0x73;
    uint16_t bf16[32];
    float f32[32];
    (void)state;
    memcpy(group, bytes, sizeof bytes);
    eng_cpu_decode_bf16(group, &scale, 1, bf16);
    eng_cpu_decode_f32(group, &scale, 1, f32);
    for (int i = 0; i < 8; i++) {
        assert_true(eng_ref_e4m3(bytes[i]) * eng_ref_e8m0(scale) == want[i]);
        assert_true(eng_ref_bf16(bf16[i]) == want[i]);
        assert_true(f32[i] == want[i]);
    }
}

static void test_scale_edges(void **state)
{
    (void)state;
    assert_true(eng_ref_e8m0(0) == 0x1p-127);
    assert_true(isnan(eng_ref_e8m0(255)));
    assert_true(eng_ref_e8m0(254) == 0x1p127);
    assert_true(eng_ref_e4m3(0x7e) == 448);
    assert_true(isnan(eng_ref_e4m3(0x7f)) && isnan(eng_ref_e4m3(0xff)));
}

typedef void Decode(const uint8_t *values, const uint8_t *scales, int groups, void *out);

static void check_pairs(Decode *decode, EngDtype type, const char *what)
{
    uint8_t codes[256], scales[8];
    uint8_t got[256 * 4 + 1], want[256 * 4];
    EngComparison residual;
    size_t size = eng_dtype_bytes(type, 1);
    for (int i = 0; i < 256; i++) codes[i] = (uint8_t)i;
    for (int s = 0; s < 256; s++) {
        memset(scales, s, sizeof scales);
        for (int i = 0; i < 256; i++) {
            double value = eng_ref_e4m3((uint8_t)i) * eng_ref_e8m0((uint8_t)s);
            uint16_t bf16 = eng_ref_bf16_round(value);
            float f32 = eng_ref_f32_round(value);
            memcpy(want + (size_t)i * size, type == ENG_BF16 ? (void *)&bf16 : (void *)&f32, size);
        }
        decode(codes, scales, 8, got + 1); /* any alignment */
        eng_compare_bits(&residual, type, got + 1, want, 256);
        assert_int_equal(residual.count, 256);
        assert_residual(&residual, what);
    }
}

static void test_all_pairs(void **state)
{
    (void)state;
    check_pairs(eng_cpu_decode_f32, ENG_F32, "arithmetic to f32");
    check_pairs(eng_cpu_decode_bf16, ENG_BF16, "arithmetic to bf16");
    check_pairs(eng_cpu_decode_f32_table, ENG_F32, "table to f32");
    check_pairs(eng_cpu_decode_bf16_table, ENG_BF16, "table to bf16");
}

/* The decoded value of every pair that lies in the bf16 range is exact there: no rounding at all.
 */
static void test_bf16_is_exact(void **state)
{
    (void)state;
    for (int s = 10; s <= 246; s++) {
        for (int i = 0; i < 256; i++) {
            double value = eng_ref_e4m3((uint8_t)i) * eng_ref_e8m0((uint8_t)s);
            if (isnan(value)) continue;
            assert_true(eng_ref_bf16(eng_ref_bf16_round(value)) == value);
        }
    }
}

/* The comparison itself: limits, positions of NaN and infinity, signs of zero. */
static void test_compare(void **state)
{
    (void)state;
    EngComparison r;
    const double want[4] = {1.0, 2.0, NAN, INFINITY};
    float got[4] = {1.0f, 2.0f, NAN, INFINITY};
    eng_compare_f32(&r, got, want, NULL, 0, 4);
    assert_int_equal(r.verdict, ENG_RESIDUAL_PASS);
    assert_int_equal(r.count, 4);
    got[1] = 2.0000005f; /* two steps of f32: beyond one rounding */
    eng_compare_f32(&r, got, want, NULL, 0, 4);
    assert_int_equal(r.verdict, ENG_RESIDUAL_FAIL);
    assert_int_equal(r.worst, 1);
    got[1] = 2.0f;
    got[3] = -INFINITY;
    eng_compare_f32(&r, got, want, NULL, 0, 4);
    assert_int_equal(r.nonfinite, 1);
    assert_int_equal(r.verdict, ENG_RESIDUAL_FAIL);
    got[3] = INFINITY;
    got[0] = NAN;
    eng_compare_f32(&r, got, want, NULL, 0, 4);
    assert_int_equal(r.verdict, ENG_RESIDUAL_FAIL);

    /* An error between the statistical and the worst case is marginal. */
    EngLimit limit = eng_limit_sum(ENG_F32, 1.0, 10000, 50.0);
    assert_true(limit.warn < limit.pass);
    eng_residual_start(&r);
    eng_residual_add(&r, ENG_F32, 1.0 + 0.5 * (limit.warn + limit.pass), 1.0, limit);
    assert_int_equal(r.verdict, ENG_RESIDUAL_MARGINAL);
    eng_residual_add(&r, ENG_F32, 1.0 + 1.01 * limit.pass, 1.0, limit);
    assert_int_equal(r.verdict, ENG_RESIDUAL_FAIL);

    const float zero = 0.0f, minus = -0.0f;
    eng_compare_bits(&r, ENG_F32, &zero, &minus, 1);
    assert_int_equal(r.verdict, ENG_RESIDUAL_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_answers), cmocka_unit_test(test_published_row_sample),
        cmocka_unit_test(test_scale_edges),       cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_bf16_is_exact),     cmocka_unit_test(test_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
