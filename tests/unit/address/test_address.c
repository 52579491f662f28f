/* Addressing: the published multipliers, primes and offsets; the general rule by a plain walk with
 * a set of used primes; the bound that keeps products in 63 bits; refused specifications. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/rng.h"
#include "kernels/address/address.h"
#include "kernels/address/preset.h"
#include "kernels/address/primes.h"

static json_t *g_golden;

static int setup(void **state)
{
    (void)state;
    g_golden = json_load_file(ENG_SOURCE_DIR "/tests/data/golden_hash.json", 0, NULL);
    return g_golden ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(g_golden);
    return 0;
}

static int64_t number_at(const json_t *list, size_t i)
{
    return json_integer_value(json_array_get(list, i));
}

static void check_golden(const EngAddress *address, const json_t *want)
{
    for (int layer = 0; layer < address->n_layers; layer++) {
        const json_t *mult = json_array_get(json_object_get(want, "mult"), (size_t)layer);
        const json_t *primes = json_array_get(json_object_get(want, "primes"), (size_t)layer);
        assert_int_equal(json_array_size(mult), address->max_order);
        for (int lag = 0; lag < address->max_order; lag++)
            assert_int_equal(address->multipliers[layer][lag], number_at(mult, (size_t)lag));
        for (int c = 0; c < address->n_columns; c++) {
            const json_t *order = json_array_get(primes, (size_t)(c / address->heads));
            assert_int_equal(address->primes[layer][c],
                             number_at(order, (size_t)(c % address->heads)));
        }
    }
}

static void test_published(void **state)
{
    (void)state;
    EngPreset preset;
    EngAddress address;
    EngErr err;
    assert_int_equal(eng_preset_find("v41-flash", &preset, &err), ENG_OK);
    assert_int_equal(eng_address_build(&preset.address, &address, &err), ENG_OK);
    check_golden(&address, json_object_get(g_golden, "B"));
    assert_int_equal(address.n_columns, 24);
    assert_int_equal(address.rows[0], 384006168);
    assert_int_equal(address.rows[1], 384016682);
    assert_int_equal(address.offsets[0][0], 0);
    assert_int_equal(address.offsets[0][6], 96000564);
    assert_int_equal(address.offsets[0][23], 368005705);
    assert_int_equal(address.offsets[1][1], 16000477);
    assert_int_equal(address.offsets[1][23], 368015793);

    assert_int_equal(eng_preset_find("engram-demo", &preset, &err), ENG_OK);
    assert_int_equal(eng_address_build(&preset.address, &address, &err), ENG_OK);
    check_golden(&address, json_object_get(g_golden, "A"));
    assert_int_equal(address.rows[0], 10344164);
    assert_int_equal(address.rows[1], 10348242);

    assert_int_equal(eng_preset_find("tiny", &preset, &err), ENG_OK);
    assert_int_equal(eng_address_build(&preset.address, &address, &err), ENG_OK);
    check_golden(&address, json_object_get(g_golden, "tiny"));
}

/* The rule as published: every order of every layer restarts at `start` and takes the next primes
 * that nobody has used. */
static void check_primes_by_rule(const EngAddress *address)
{
    static int64_t used[ENG_MAX_LAYERS * ENG_MAX_COLUMNS];
    int n_used = 0;
    for (int layer = 0; layer < address->n_layers; layer++) {
        int64_t rows = 0;
        for (int column = 0; column < address->n_columns; column++) {
            int64_t candidate =
                column % address->heads ? address->primes[layer][column - 1] + 1 : address->start;
            for (bool taken = true; taken; candidate++) {
                taken = !eng_is_prime((uint64_t)candidate);
                for (int i = 0; i < n_used && !taken; i++) taken = used[i] == candidate;
            }
            assert_int_equal(address->primes[layer][column], candidate - 1);
            assert_int_equal(address->offsets[layer][column], rows);
            rows += candidate - 1;
            used[n_used++] = candidate - 1;
        }
        assert_int_equal(address->rows[layer], rows);
    }
}

static EngAddressSpec random_spec(EngRng *rng)
{
    EngAddressSpec spec = {.n_layers = 1 + (int)eng_rng_below(rng, 4)};
    for (int i = 0; i < spec.n_layers; i++) spec.layer_ids[i] = i * 7 + (int)eng_rng_below(rng, 7);
    spec.min_order = 1 + (int)eng_rng_below(rng, 3);
    spec.max_order = spec.min_order + (int)eng_rng_below(rng, 4);
    spec.heads = 1 + (int)eng_rng_below(rng, 16);
    spec.vocab = (int64_t)1 << eng_rng_below(rng, 31);
    spec.vocab += (int64_t)eng_rng_below(rng, (uint64_t)spec.vocab);
    spec.pad = (int32_t)eng_rng_below(rng, (uint64_t)spec.vocab);
    spec.start = 2 + (int64_t)eng_rng_below(rng, (uint64_t)1 << eng_rng_below(rng, 24));
    return spec;
}

static void test_rule(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 20);
    for (int i = 0; i < 200; i++) {
        EngAddressSpec spec = random_spec(&rng);
        EngAddress address;
        EngErr err;
        assert_int_equal(eng_address_build(&spec, &address, &err), ENG_OK);
        assert_int_equal(address.n_columns, spec.heads * (spec.max_order - spec.min_order + 1));
        check_primes_by_rule(&address);
        /* A valid id never wraps: the largest product fits in 63 bits. */
        for (int layer = 0; layer < spec.n_layers; layer++)
            for (int lag = 0; lag < spec.max_order; lag++) {
                int64_t multiplier = address.multipliers[layer][lag];
                assert_true(multiplier > 0 && multiplier % 2 == 1);
                assert_true((__int128)(spec.vocab - 1) * multiplier <= INT64_MAX);
            }
    }
}

/* numpy: 2 * default_rng(10007 * 5).integers(0, (2^63-1) // 4096 // 2, 5) + 1. */
static void test_override(void **state)
{
    (void)state;
    static const int64_t want[5] = {880642730940139, 748776018759203, 492716007871459,
                                    1594435947305671, 1780497674055567};
    EngAddressSpec spec = {1, {5}, 2, 5, 5, 4096, 7, 1000003, 0};
    EngAddress address;
    EngErr err;
    assert_int_equal(eng_address_build(&spec, &address, &err), ENG_OK);
    for (int lag = 0; lag < 5; lag++) assert_int_equal(address.multipliers[0][lag], want[lag]);
    assert_int_equal(address.primes[0][0], 1000003); /* start itself is a candidate */
    assert_int_equal(address.primes[0][1], 1000033);
}

static void test_refused(void **state)
{
    (void)state;
    const EngAddressSpec good = {2, {1, 14}, 2, 4, 8, 99092, 2, 16000000, 0};
    EngAddress address;
    EngErr err;
    struct {
        EngAddressSpec spec;
        const char *names;
    } bad[16];
    int n = 0;
#define BAD(field, value, text)                                                                    \
    do {                                                                                           \
        bad[n].spec = good;                                                                        \
        bad[n].spec.field = (value);                                                               \
        bad[n++].names = (text);                                                                   \
    } while (0)
    BAD(n_layers, 0, "layers");
    BAD(n_layers, ENG_MAX_LAYERS + 1, "layers");
    BAD(layer_ids[1], -1, "layers: id -1");
    BAD(layer_ids[1], 1, "layers: id 1");
    BAD(max_order, 0, "max-order: 0");
    BAD(max_order, 1, "min-order: 2");
    BAD(max_order, 1000000, "max-order: 1000000");
    BAD(min_order, 0, "min-order: 0");
    BAD(heads, 0, "heads: 0");
    BAD(heads, -3, "heads: -3");
    BAD(heads, 1000000, "heads: 1000000");
    BAD(vocab, 0, "vocab: 0");
    BAD(pad, 99092, "pad: 99092");
    BAD(start, 1, "start: 1");
    BAD(start, (int64_t)1 << 62, "start: 4611686018427387904");
    BAD(seed, -1, "seed: -1");
#undef BAD
    assert_int_equal(eng_address_build(&good, &address, &err), ENG_OK);
    for (int i = 0; i < n; i++) {
        assert_int_equal(eng_address_build(&bad[i].spec, &address, &err), ENG_USAGE);
        assert_non_null(strstr(err.text, bad[i].names));
    }
    /* 24 primes near 2^60 pass 2^62 rows although each of them is small enough. */
    EngAddressSpec large = good;
    large.start = (int64_t)1 << 60;
    assert_int_equal(eng_address_build(&large, &address, &err), ENG_USAGE);
}

static void test_check_ids(void **state)
{
    (void)state;
    EngAddress address = {.vocab = 97};
    EngErr err;
    const int32_t good[] = {0, -1, 96}, high[] = {0, 97}, low[] = {5, 5, -2};
    assert_int_equal(eng_address_check_ids(&address, good, 3, &err), ENG_OK);
    assert_int_equal(eng_address_check_ids(&address, high, 2, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "position 1: id 97"));
    assert_int_equal(eng_address_check_ids(&address, low, 3, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "position 2: id -2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published),
                                       cmocka_unit_test(test_rule), cmocka_unit_test(test_override),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_check_ids)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
