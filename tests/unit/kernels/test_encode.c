/* Rows encoded by the oracle: what a format holds comes back exactly, the rest within its step. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/ref/encode.h"
#include "kernels/ref/fp8.h"
#include "kernels/ref/gather.h"

enum { DIMS = 64, MOST_BYTES = 512 };

static void round_trip(EngRowFormat format, const float *row, double *decoded)
{
    uint8_t values[MOST_BYTES], scales[DIMS / ENG_SCALE_GROUP];
    memset(values, 0xff, sizeof values);
    eng_ref_encode_row(format, DIMS, row, values, scales);
    EngTable table = {
        .format = format, .row_dims = DIMS, .rows = 1, .values = values, .scales = scales};
    for (int i = 0; i < DIMS; i++) decoded[i] = eng_ref_table_value(&table, 0, i);
}

static void fill(float *row, uint64_t seed, double size)
{
    EngRng rng;
    eng_rng_seed(&rng, seed);
    for (int i = 0; i < DIMS; i++) row[i] = (float)(size * eng_rng_normal(&rng));
}

/* Values that a format has come back as they are, and once decoded they encode to themselves. */
static void test_exact(void **unused)
{
    (void)unused;
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++)
        for (uint64_t seed = 1; seed <= 50; seed++) {
            float row[DIMS], again[DIMS];
            double decoded[DIMS], twice[DIMS];
            fill(row, seed, pow(10, (double)seed / 10 - 3));
            round_trip((EngRowFormat)f, row, decoded);
            for (int i = 0; i < DIMS; i++) again[i] = (float)decoded[i];
            round_trip((EngRowFormat)f, again, twice);
            for (int i = 0; i < DIMS; i++) {
                if (f == ENG_ROW_F32) assert_true(decoded[i] == (double)row[i]);
                if (f == ENG_ROW_BF16)
                    assert_true(decoded[i] == eng_ref_bf16(eng_ref_bf16_round(row[i])));
                if (f != ENG_ROW_INT4) assert_true(twice[i] == decoded[i]);
            }
        }
}

static double group_largest(const float *row, int i)
{
    double largest = 0;
    for (int k = i / ENG_SCALE_GROUP * ENG_SCALE_GROUP, n = 0; n < ENG_SCALE_GROUP; n++)
        largest = fmax(largest, fabs((double)row[k + n]));
    return largest;
}

static void test_steps(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        float row[DIMS];
        double fp8[DIMS], int4[DIMS];
        fill(row, seed, 3);
        round_trip(ENG_ROW_FP8_PAD272, row, fp8);
        round_trip(ENG_ROW_INT4, row, int4);
        for (int i = 0; i < DIMS; i++) {
            double largest = group_largest(row, i);
            /* e4m3: 4 significant bits, and subnormals of 2^-9 of a scale of at most largest/224.
             */
            double step = fmax(fabs((double)row[i]) / 16, largest / 224 / 1024);
            assert_true(fabs(fp8[i] - row[i]) <= step);
            assert_true(fabs(int4[i] - row[i]) <= largest / 14 * 1.06);
        }
    }
}

static void test_ends(void **unused)
{
    (void)unused;
    float row[DIMS] = {0};
    double decoded[DIMS];
    row[0] = 448;
    row[1] = -448;
    row[2] = 0.5f;
    row[32] = -7;
    row[33] = 3;
    round_trip(ENG_ROW_FP8, row, decoded);
    for (int i = 0; i < DIMS; i++) assert_true(decoded[i] == (double)row[i]);
    row[0] = row[1] = row[2] = 0;
    round_trip(ENG_ROW_INT4, row, decoded); /* a group of zeros, and one whose scale is 1 */
    for (int i = 0; i < DIMS; i++) assert_true(decoded[i] == (double)row[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
