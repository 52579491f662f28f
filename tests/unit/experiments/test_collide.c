/* Collision counts: known answers, agreement with brute force, and the bound. */
#include "points.h"

#include "base/rng.h"
#include "bench/experiments/collide.h"
#include "kernels/address/address.h"

static EngAddress build(int min_order, int max_order, int heads, int64_t vocab, int64_t start,
                        int64_t seed)
{
    EngAddressSpec spec = {.n_layers = 1,
                           .layer_ids = {1},
                           .min_order = min_order,
                           .max_order = max_order,
                           .heads = heads,
                           .vocab = vocab,
                           .start = start,
                           .seed = seed};
    EngAddress address;
    EngErr err = {0};
    if (eng_address_build(&spec, &address, &err)) fail_msg("%s", err.text);
    return address;
}

static EngCollisions count(const EngAddress *address, int order, const int32_t *ids, int64_t n)
{
    EngCollideInput input = {.address = address, .order = order, .ids = ids, .n_ids = n};
    EngCollisions out;
    EngErr err = {0};
    if (eng_collide_count(&input, &out, &err)) fail_msg("%s", err.text);
    return out;
}

static void test_bound(void **unused)
{
    (void)unused;
    EngAddress v41 = build(2, 4, 8, 99092, 16000000, 0);
    assert_int_equal(eng_collide_bound(&v41, 2), 2); /* three primes exceed 2^63 */
    assert_int_equal(eng_collide_bound(&v41, 4), 2);
    EngAddress one = build(1, 1, 1, 10, 2, 0);
    assert_int_equal(eng_collide_bound(&one, 1), 62); /* 2^63 itself is out of reach */
    one.primes[0][0] = 2097143; /* largest prime below 2^21: its cube is just below 2^63 */
    assert_int_equal(eng_collide_bound(&one, 1), 3);
    one.primes[0][0] = 2097169; /* smallest above */
    assert_int_equal(eng_collide_bound(&one, 1), 2);
    one.primes[0][0] = 131101;
    assert_int_equal(eng_collide_bound(&one, 1), 3);
}

static void test_repeats_are_one_ngram(void **unused)
{
    (void)unused;
    const int32_t ids[] = {7, 8, 7, 8, 7, 8, 9};
    EngAddress address = build(2, 3, 4, 100, 1000003, 0);
    assert_int_equal(count(&address, 2, ids, 7).ngrams, 3); /* 78 87 89 */
    EngCollisions c = count(&address, 3, ids, 7);
    assert_int_equal(c.ngrams, 3); /* 787 878 789 */
    assert_true(c.alone_share == 1 && c.ngrams_per_row == 1);
    assert_int_equal(c.heads_shared_max, 0);
}

/* Multipliers of 1 make the mix of a pair its exclusive-or: (1,2) and (2,1) cannot be told apart.
 */
static void test_equal_mixes(void **unused)
{
    (void)unused;
    const int32_t ids[] = {1, 2, 1};
    EngAddress address = build(2, 2, 3, 100, 101, 0);
    address.multipliers[0][0] = address.multipliers[0][1] = 1;
    EngCollisions c = count(&address, 2, ids, 3);
    assert_int_equal(c.ngrams, 2);
    assert_int_equal(c.equal_mixes, 1);
    assert_int_equal(c.pairs_all_heads, 1);
    assert_int_equal(c.heads_shared_max, 0); /* there is one mix only */
    assert_true(c.alone_share == 0 && c.ngrams_per_row == 2);
}

/* Ids 0 and p1*p2 times a multiplier of p3*p4: they agree in exactly the four heads the bound
 * allows, of eight. */
static void test_bound_is_reached(void **unused)
{
    (void)unused;
    EngAddress address = build(1, 1, 8, INT32_MAX, 30000, 0);
    const int64_t *p = address.primes[0];
    address.multipliers[0][0] = p[2] * p[3];
    const int32_t ids[] = {0, (int32_t)(p[0] * p[1])};
    EngCollisions c = count(&address, 1, ids, 2);
    assert_int_equal(eng_collide_bound(&address, 1), 4);
    assert_int_equal(c.heads_shared_max, 4);
    assert_int_equal(c.pairs_all_heads, 0);
    assert_int_equal(c.equal_mixes, 0);
}

/* Heads that are not different primes break the bound, and the count shows it. */
static void test_broken_primes_exceed_bound(void **unused)
{
    (void)unused;
    EngAddress address = build(1, 1, 8, INT32_MAX, 1000003, 0);
    for (int k = 0; k < 8; k++) address.primes[0][k] = 1000003;
    const int32_t ids[] = {5, 5 + 1000003};
    EngCollisions c = count(&address, 1, ids, 2);
    assert_int_equal(c.heads_shared_max, 8);
    assert_int_equal(c.pairs_all_heads, 1);
    assert_true(c.heads_shared_max > eng_collide_bound(&address, 1));
}

/* Seeded tiny configurations: every count against brute force, and the bound where it is below K.
 */
static void test_against_brute_force(void **unused)
{
    (void)unused;
    EngRng rng;
    eng_rng_seed(&rng, 20);
    int binding = 0, crowded = 0;
    for (int round = 0; round < 400; round++) {
        static const int64_t starts[] = {2, 11, 101, 251, 1009, 65537};
        int32_t ids[220];
        int order = 1 + (int)eng_rng_below(&rng, 4), heads = 1 + (int)eng_rng_below(&rng, 16);
        int64_t vocab = 2 + (int64_t)eng_rng_below(&rng, 60);
        int64_t start = starts[eng_rng_below(&rng, 6)];
        int64_t n = order + (int64_t)eng_rng_below(&rng, 200);
        EngAddress address = build(1, 4, heads, vocab, start, round);
        /* Small multipliers make equal mixes, which random ones never do. */
        if (round % 4 == 0)
            for (int lag = 0; lag < 4; lag++)
                address.multipliers[0][lag] = 1 + 2 * (int64_t)eng_rng_below(&rng, 3);
        for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)eng_rng_below(&rng, (uint64_t)vocab);
        EngCollideInput input = {.address = &address, .order = order, .ids = ids, .n_ids = n};
        EngCollisions slow, quick = count(&address, order, ids, n);
        assert_int_equal(eng_collide_brute_force(&input, &slow, NULL), ENG_OK);
        assert_int_equal(quick.ngrams, slow.ngrams);
        assert_int_equal(quick.heads_shared_max, slow.heads_shared_max);
        assert_int_equal(quick.pairs_all_heads, slow.pairs_all_heads);
        assert_int_equal(quick.equal_mixes, slow.equal_mixes);
        assert_true(quick.alone_share == slow.alone_share);
        assert_true(quick.rows_used == slow.rows_used);
        assert_true(quick.ngrams_per_row == slow.ngrams_per_row);
        int bound = eng_collide_bound(&address, order);
        assert_true(quick.heads_shared_max <= bound);
        binding += bound < heads;
        crowded += quick.equal_mixes > 0;
    }
    assert_true(binding > 50);
    assert_true(crowded > 20);
}

/* Many n-grams where the bound is below K. */
static void test_bound_on_crowded_tables(void **unused)
{
    (void)unused;
    EngRng rng;
    int32_t ids[6000];
    eng_rng_seed(&rng, 21);
    for (int round = 0; round < 12; round++) {
        static const int64_t starts[] = {211, 1009, 8191, 65537};
        EngAddress address = build(2, 4, 12, 99092, starts[round % 4], round);
        for (int i = 0; i < 6000; i++) ids[i] = (int32_t)eng_rng_below(&rng, 99092);
        for (int order = 2; order <= 4; order++) {
            EngCollisions c = count(&address, order, ids, 6000);
            int bound = eng_collide_bound(&address, order);
            assert_true(bound < 12);
            assert_true(c.heads_shared_max >= 1 && c.heads_shared_max <= bound);
            assert_int_equal(c.pairs_all_heads, c.equal_mixes);
        }
    }
}

static void test_too_short(void **unused)
{
    (void)unused;
    const int32_t ids[] = {1, 2, 3};
    EngAddress address = build(2, 4, 2, 100, 11, 0);
    EngCollideInput input = {.address = &address, .order = 4, .ids = ids, .n_ids = 3};
    EngCollisions out;
    assert_int_equal(eng_collide_count(&input, &out, NULL), ENG_UNSUPPORTED);
    assert_int_equal(eng_collide_brute_force(&input, &out, NULL), ENG_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_repeats_are_one_ngram),
        cmocka_unit_test(test_equal_mixes),
        cmocka_unit_test(test_bound_is_reached),
        cmocka_unit_test(test_broken_primes_exceed_bound),
        cmocka_unit_test(test_against_brute_force),
        cmocka_unit_test(test_bound_on_crowded_tables),
        cmocka_unit_test(test_too_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
