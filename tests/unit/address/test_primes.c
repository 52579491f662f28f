/* Primes: against a sieve, and on numbers that fool weaker tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/address/primes.h"

#define SIEVE 200000

static void test_sieve(void **state)
{
    (void)state;
    static uint8_t composite[SIEVE];
    for (uint64_t i = 2; i * i < SIEVE; i++)
        if (!composite[i])
            for (uint64_t j = i * i; j < SIEVE; j += i) composite[j] = 1;
    uint64_t next = 0;
    for (uint64_t i = SIEVE - 1; i > 1; i--) {
        assert_int_equal(eng_is_prime(i), !composite[i]);
        if (!composite[i]) next = i;
        if (next) assert_int_equal(eng_prime_from(i), next);
    }
    assert_false(eng_is_prime(0));
    assert_false(eng_is_prime(1));
    assert_int_equal(eng_prime_from(0), 2);
}

/* Carmichael numbers, strong pseudoprimes to the first bases, squares of primes, and the largest
 * primes below 2^32, 2^61, 2^62, 2^63, 2^64. */
static void test_known(void **state)
{
    (void)state;
    static const uint64_t composites[] = {561,
                                          1729,
                                          2047,
                                          3215031751u,
                                          3474749660383u,
                                          341550071728321u,
                                          3825123056546413051u,
                                          4294836225u,
                                          18446744030759878681u,
                                          4611686014132420609u};
    static const uint64_t primes[] = {4294967291u,
                                      2305843009213693951u,
                                      4611686018427387847u,
                                      9223372036854775783u,
                                      18446744073709551557u,
                                      16000057,
                                      16000889,
                                      646879};
    for (size_t i = 0; i < sizeof composites / sizeof *composites; i++)
        assert_false(eng_is_prime(composites[i]));
    for (size_t i = 0; i < sizeof primes / sizeof *primes; i++)
        assert_true(eng_is_prime(primes[i]));
}

static void test_limit(void **state)
{
    (void)state;
    assert_int_equal(eng_prime_from(4611686018427387847u), 4611686018427387847u);
    assert_int_equal(eng_prime_from(4611686018427387848u), 0);
    assert_int_equal(eng_prime_from(UINT64_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sieve), cmocka_unit_test(test_known),
                                       cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
