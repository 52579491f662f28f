/* Numbers as text: what is read must be a whole number, and what is small must not print as 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <math.h>

#include "base/str.h"

static void test_decimals(void **state)
{
    (void)state;
    static const struct {
        double value;
        int least;
        const char *text;
    } cases[] = {{188.8349, 2, "188.83"},        {0.25, 4, "0.2500"},
                 {0.049, 2, "0.0490"},           {0.0000388, 4, "0.0000388"},
                 {-0.0012345, 2, "-0.00123"},    {0, 4, "0.0000"},
                 {0.0999, 2, "0.0999"},          {1, 3, "1.000"},
                 {1e-30, 2, "0.000000000000000"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.*f", eng_decimals(cases[i].value, cases[i].least),
                 cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
    assert_int_equal(eng_decimals(NAN, 3), 3);
    assert_int_equal(eng_decimals(INFINITY, 3), 3);
}

static void test_numbers(void **state)
{
    (void)state;
    int64_t whole;
    double real;
    assert_true(eng_parse_i64("2^20", &whole) && whole == 1 << 20);
    assert_true(eng_parse_i64("-3", &whole) && whole == -3);
    assert_true(eng_parse_f64("0.5", &real) && real == 0.5);
    static const char *const bad[] = {"", "x", "1x", "1 2", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(eng_parse_i64(bad[i], &whole));
}

static void test_utf8(void **state)
{
    (void)state;
    assert_int_equal(eng_utf8_bytes("abc", 2), 2);
    assert_int_equal(eng_utf8_bytes("abc", 9), 3);
    assert_int_equal(eng_utf8_bytes("aé→z", 0), 0);
    assert_int_equal(eng_utf8_bytes("aé→z", 1), 1);
    assert_int_equal(eng_utf8_bytes("aé→z", 2), 3);
    assert_int_equal(eng_utf8_bytes("aé→z", 3), 6);
    assert_int_equal(eng_utf8_bytes("aé→z", 4), 7);
    assert_int_equal(eng_utf8_bytes("", 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
