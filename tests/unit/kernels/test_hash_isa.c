/* Hash variants of single instruction sets: remainders at their limits for every kind of prime,
 * all heads and orders, odd token counts, unaligned and exactly sized buffers, threads, and the
 * reasons given on lesser processors. The modes of a batch are in test_hash.c. */
#include "kernels_test.h"

#include "kernels/cpu/hash.h"
#include "kernels/cpu/isa.h"
#include "kernels/ref/hash.h"

static const EngKernel *const g_variants[] = {&eng_cpu_hash_naive, &eng_cpu_hash_portable,
                                              &eng_cpu_hash_avx2, &eng_cpu_hash_avx512,
                                              &eng_cpu_hash_avx512_ifma};

/* Rows of every variant this machine has against the oracle's; tokens and rows lie `offset`
 * elements into blocks that end with them. */
static void check(const EngAddress *address, const int32_t *ids, int64_t n, int threads,
                  size_t offset)
{
    size_t count = (size_t)n * (size_t)address->n_layers * (size_t)address->n_columns;
    int64_t *want = malloc(count * sizeof *want + 1);
    EngHashArgs hash = {.tokens = ids, .n_tokens = n, .n_live = n, .rows = want};
    eng_ref_hash(address, &hash);
    for (int v = 0; v < LENGTH_OF(g_variants); v++) {
        Unaligned tokens = unaligned_copy(ids, (size_t)n * sizeof *ids, 4 * offset);
        Unaligned got = unaligned_copy(NULL, count * sizeof *want, 8 * offset);
        EngProblem problem = {.op = ENG_OP_HASH, .threads = threads, .u.hash = {address, n}};
        EngArgs args = {.u.hash = hash};
        args.u.hash.tokens = (const int32_t *)(void *)tokens.bytes;
        args.u.hash.rows = (int64_t *)(void *)got.bytes;
        if (run_if_isa(g_variants[v], &problem, &args) &&
            memcmp(got.bytes, want, count * sizeof *want))
            fail_msg("%s: wrong rows (%lld tokens, orders %d-%d, %d heads, prime %lld, mix %lld)",
                     g_variants[v]->name, (long long)n, address->min_order, address->max_order,
                     address->heads, (long long)address->primes[0][0],
                     (long long)address->multipliers[0][0]);
        free(tokens.block), free(got.block);
    }
    free(want);
}

/* One order whose mix is the multiplier itself: the only id is 1. */
static void check_mix(int64_t prime, int64_t offset, int64_t mix)
{
    EngAddress address = {
        .n_layers = 1, .min_order = 1, .max_order = 1, .heads = 3, .n_columns = 3};
    address.multipliers[0][0] = mix;
    for (int c = 0; c < 3; c++) address.primes[0][c] = prime, address.offsets[0][c] = offset;
    int32_t ids[9];
    for (int i = 0; i < 9; i++) ids[i] = 1;
    check(&address, ids, 9, 1, 0);
    check(&address, ids, 1, 1, 0);
}

/* Where the ways of hash_block.h end: 2, primes around 2^29 and 2^35, the largest below 2^62. */
static const int64_t g_primes[] = {2,
                                   3,
                                   5,
                                   31,
                                   65521,
                                   16000057,
                                   16777213,
                                   536870909,
                                   536870923,
                                   2147483647,
                                   8589934583,
                                   34359738337,
                                   34359738421,
                                   INT64_C(2305843009213693951),
                                   INT64_C(4611686018427387847)};

/* Mixes next to multiples of the prime: a quotient off by one shows there and nowhere else. */
static void test_remainders(void **state)
{
    EngRng rng;
    (void)state;
    eng_rng_seed(&rng, 1);
    for (int p = 0; p < LENGTH_OF(g_primes); p++) {
        int64_t prime = g_primes[p], most = INT64_MAX / prime;
        for (int round = 0; round < 400; round++) {
            int64_t k = round == 0 ? most : (int64_t)eng_rng_below(&rng, (uint64_t)most + 1);
            if (round % 4 == 1) k >>= eng_rng_below(&rng, 63);
            int64_t mix = k * prime;
            int64_t offset = (int64_t)eng_rng_below(&rng, (uint64_t)1 << 40);
            if (round % 4 == 2 && mix <= INT64_MAX - prime) mix += prime / 2;
            if (round % 4 == 3 && mix <= INT64_MAX - prime) mix += prime / 2 + 1;
            check_mix(prime, offset, mix);
            if (mix) check_mix(prime, offset, mix - 1);
            if (mix < INT64_MAX) check_mix(prime, offset, mix + 1);
        }
        check_mix(prime, 0, INT64_MAX);
        check_mix(prime, 0, 0);
    }
}

/* Primes of one size each, so that every variant takes its own way for them. */
static void fill_address(EngRng *rng, EngAddress *address, int layers, int min_order, int max_order,
                         int heads, int64_t near)
{
    *address = (EngAddress){.n_layers = layers,
                            .min_order = min_order,
                            .max_order = max_order,
                            .heads = heads,
                            .n_columns = (max_order - min_order + 1) * heads,
                            .vocab = 99092,
                            .pad = 2};
    for (int layer = 0; layer < layers; layer++) {
        int64_t offset = 0;
        for (int lag = 0; lag < max_order; lag++)
            address->multipliers[layer][lag] =
                (int64_t)eng_rng_below(rng, (uint64_t)(INT64_MAX / 99092)) | 1;
        for (int c = 0; c < address->n_columns; c++) {
            /* Odd is all the reductions need. */
            address->primes[layer][c] = near + 2 * (int64_t)eng_rng_below(rng, 1000);
            address->offsets[layer][c] = offset;
            offset += address->primes[layer][c];
        }
    }
}

static void random_tokens(EngRng *rng, int32_t *ids, int64_t n, bool dead)
{
    for (int64_t i = 0; i < n; i++) {
        ids[i] = (int32_t)eng_rng_below(rng, 99092);
        if (eng_rng_below(rng, 16) == 0) ids[i] = eng_rng_below(rng, 2) ? 0 : 99091; /* both ends */
        if (dead && eng_rng_below(rng, 32) == 0) ids[i] = ENG_TOKEN_DEAD;
    }
}

static void test_heads_and_orders(void **state)
{
    static const int64_t near[] = {101, 16000057, 536870001, 34359730001, INT64_C(1) << 45 | 1};
    static EngAddress address;
    EngRng rng;
    int32_t ids[150];
    (void)state;
    eng_rng_seed(&rng, 2);
    for (int heads = 1; heads <= 16; heads++)
        for (int order = 2; order <= 5; order++)
            for (int i = 0; i < LENGTH_OF(near); i++) {
                fill_address(&rng, &address, 1 + heads % 3, 1 + (heads + i) % order, order, heads,
                             near[i]);
                random_tokens(&rng, ids, 150, i % 2);
                check(&address, ids, 150, 1, 0);
                check(&address, ids, 1 + heads, 1, 1);
            }
    fill_address(&rng, &address, 8, 1, ENG_MAX_ORDER, ENG_MAX_COLUMNS / ENG_MAX_ORDER, 16000057);
    random_tokens(&rng, ids, 150, true);
    check(&address, ids, 150, 1, 1);
    fill_address(&rng, &address, 1, 2, 4, ENG_MAX_HEADS, 16000057);
    check(&address, ids, 150, 1, 0);
}

static void test_token_counts(void **state)
{
    static const int64_t counts[] = {0,   1,   2,   3,   4,   5,    7,    8,    9,     31,
                                     32,  61,  63,  64,  65,  67,   71,   72,   127,   128,
                                     129, 251, 256, 257, 509, 1021, 4096, 4099, 20011, 100003};
    static int32_t ids[100003];
    static EngAddress address;
    EngRng rng;
    (void)state;
    eng_rng_seed(&rng, 3);
    fill_address(&rng, &address, 2, 2, 4, 8, 16000057);
    for (int i = 0; i < LENGTH_OF(counts); i++) {
        random_tokens(&rng, ids, counts[i], i % 2);
        for (int threads = 1; threads <= 3; threads++)
            check(&address, ids, counts[i], threads, (size_t)(i + threads) % 4);
    }
}

static void test_reasons(void **state)
{
    static EngAddress address;
    EngRng rng;
    EngErr why;
    (void)state;
    eng_rng_seed(&rng, 4);
    fill_address(&rng, &address, 1, 2, 4, 8, 16000057);
    EngProblem problem = {.op = ENG_OP_HASH, .threads = 1, .u.hash = {&address, 1}};
    eng_isa_limit(0);
    assert_int_equal(eng_cpu_hash_portable.supports(&problem, &why), ENG_OK);
    assert_int_equal(eng_cpu_hash_avx2.supports(&problem, &why), ENG_UNSUPPORTED);
    if (ENG_X86) assert_non_null(strstr(why.text, "needs AVX2"));
    eng_isa_limit(ENG_ISA_AVX2);
    assert_int_equal(eng_cpu_hash_avx512.supports(&problem, &why), ENG_UNSUPPORTED);
    if (ENG_X86 && (eng_isa_present() & ENG_ISA_AVX2))
        assert_non_null(strstr(why.text, "needs AVX-512 F"));
    eng_isa_limit(ENG_ISA_ALL & ~ENG_ISA_IFMA);
    assert_int_equal(eng_cpu_hash_avx512_ifma.supports(&problem, &why), ENG_UNSUPPORTED);
    if (eng_isa_present() & ENG_ISA_AVX512) assert_non_null(strstr(why.text, "IFMA"));
    eng_isa_limit(ENG_ISA_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remainders), cmocka_unit_test(test_heads_and_orders),
        cmocka_unit_test(test_token_counts), cmocka_unit_test(test_reasons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
