/* Profiles of token streams: counted against plain searches, kept as text, asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sim/cache/profile.h"

#define TOKENS 3000
#define ORDERS 3
#define SIZE   256

/* Text of few words that come in bursts. */
static void make_stream(int32_t *ids, int64_t n, uint64_t seed)
{
    EngRng rng;
    eng_rng_seed(&rng, seed);
    for (int64_t i = 0; i < n; i++)
        ids[i] = i > 50 && eng_rng_below(&rng, 10) < 8
                     ? ids[i - 1 - (int64_t)eng_rng_below(&rng, 40)]
                     : (int32_t)eng_rng_below(&rng, 500);
}

static int32_t token_at(const int32_t *ids, int64_t at)
{
    return at < 0 ? -1 : ids[at];
}

static bool same_gram(const int32_t *ids, int64_t a, int64_t b, int order)
{
    for (int i = 0; i < order; i++)
        if (token_at(ids, a - i) != token_at(ids, b - i)) return false;
    return true;
}

/* Look-up x is token x / ORDERS, order 2 + x % ORDERS. */
static bool same_key(const int32_t *ids, int64_t x, int64_t y)
{
    return x % ORDERS == y % ORDERS &&
           same_gram(ids, x / ORDERS, y / ORDERS, 2 + (int)(x % ORDERS));
}

/* Whether an LRU cache of SIZE keys answers look-up x: fewer distinct keys since its last use. */
static bool hits(const int32_t *ids, int64_t x)
{
    int distinct = 0;
    for (int64_t y = x - 1; y >= 0; y--) {
        if (same_key(ids, x, y)) return distinct < SIZE;
        bool again = false;
        for (int64_t z = y + 1; z < x && !again; z++) again = same_key(ids, y, z);
        distinct += !again;
        if (distinct >= SIZE) return false;
    }
    return false;
}

static void test_against_searches(void **state)
{
    (void)state;
    static int32_t ids[TOKENS];
    EngErr err = {0};
    EngProfile p;
    const int64_t checked = 600;
    make_stream(ids, TOKENS, 1);
    if (eng_profile_build("t", "d", ids, checked, 2, 4, &p, &err)) fail_msg("%s", err.text);
    int64_t n = 0, distinct[ORDERS] = {0};
    for (int64_t x = 0; x < checked * ORDERS; x++) {
        bool seen = false;
        n += hits(ids, x);
        for (int64_t y = x % ORDERS; y < x && !seen; y += ORDERS) seen = same_key(ids, x, y);
        distinct[x % ORDERS] += !seen;
    }
    double rate;
    bool known;
    assert_int_equal(eng_profile_hits(&p, SIZE, &rate, &known, &err), ENG_OK);
    assert_true(known);
    assert_true(fabs(rate * (double)(checked * ORDERS) - (double)n) < 1e-6);
    int64_t all = 0;
    for (int o = 0; o < ORDERS; o++) {
        assert_int_equal(p.distinct[o], distinct[o]);
        all += distinct[o];
    }
    assert_int_equal(eng_profile_hits(&p, 1e9, &rate, &known, &err), ENG_OK);
    assert_false(known);
    assert_true(fabs(rate - (1 - (double)all / (double)(checked * ORDERS))) < 1e-12);
}

/* The filler of a benchmark looks up the same keys again and again. */
static void test_one_token(void **state)
{
    (void)state;
    static int32_t ids[TOKENS];
    EngErr err = {0};
    EngProfile p;
    double share;
    memset(ids, 0, sizeof ids);
    assert_int_equal(eng_profile_build("filler", "d", ids, TOKENS, 2, 4, &p, &err), ENG_OK);
    /* The first keys reach back before the stream. */
    assert_int_equal(p.distinct[0] + p.distinct[1] + p.distinct[2], 2 + 3 + 4);
    assert_int_equal(eng_profile_unique(&p, false, 1024, &share, &err), ENG_OK);
    assert_true(share < 0.005);
    assert_int_equal(eng_profile_unique(&p, true, 1024, &share, &err), ENG_OK);
    assert_true(share < 0.005);
    assert_int_equal(eng_profile_unique(&p, true, 1, &share, &err), ENG_OK);
    assert_true(share == 1);
    assert_int_equal(eng_profile_unique(&p, true, 16384, &share, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "filler"));
}

/* Consecutive tokens of a bursty text share more keys than tokens from all over it. */
static void test_bursts(void **state)
{
    (void)state;
    static int32_t ids[TOKENS];
    EngErr err = {0};
    EngProfile p;
    double together, apart;
    make_stream(ids, TOKENS, 2);
    assert_int_equal(eng_profile_build("t", "d", ids, TOKENS, 2, 4, &p, &err), ENG_OK);
    assert_int_equal(eng_profile_unique(&p, false, 256, &together, &err), ENG_OK);
    assert_int_equal(eng_profile_unique(&p, true, 256, &apart, &err), ENG_OK);
    assert_true(together < apart && apart <= 1);
    for (int i = 1; i < p.n_sizes; i++) assert_true(p.hits[i] >= p.hits[i - 1]);
    /* AET against exact, the gate of real corpora (test_sim_corpora). */
    double error = 0;
    for (int i = 0; i < p.n_sizes; i++) error += fabs(p.hits[i] - p.modelled[i]) / p.n_sizes;
    assert_true(error <= 0.01);
}

static void test_text(void **state)
{
    (void)state;
    static int32_t ids[TOKENS];
    EngErr err = {0};
    EngStr text = {0};
    EngProfile p, q;
    make_stream(ids, TOKENS, 3);
    assert_int_equal(eng_profile_build("prose", "abc", ids, TOKENS, 2, 4, &p, &err), ENG_OK);
    assert_int_equal(eng_profile_print(&p, &text, &err), ENG_OK);
    if (eng_profile_parse("p.json", text.text, &q, &err)) fail_msg("%s", err.text);
    assert_string_equal(q.corpus, "prose");
    assert_int_equal(q.accesses, p.accesses);
    assert_int_equal(q.n_sizes, p.n_sizes);
    assert_memory_equal(q.distinct, p.distinct, sizeof p.distinct);
    for (int i = 0; i < p.n_sizes; i++) assert_true(fabs(q.hits[i] - p.hits[i]) < 1e-8);
    for (int i = 0; i < p.n_batches; i++) assert_true(fabs(q.decode[i] - p.decode[i]) < 1e-8);
    for (size_t cut = 0; cut + 2 < text.n; cut += 97) { /* the end is a line feed */
        char kept = text.text[cut];
        text.text[cut] = 0;
        assert_int_equal(eng_profile_parse("p.json", text.text, &q, &err), ENG_BAD_DATA);
        assert_non_null(strstr(err.text, "p.json"));
        text.text[cut] = kept;
    }
    char *hits = strstr(text.text, "\"hits\":[0");
    assert_non_null(hits);
    hits[8] = '7';
    assert_int_equal(eng_profile_parse("p.json", text.text, &q, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "hits"));
    eng_str_free(&text);
    assert_int_equal(eng_profile_build("t", "d", ids, 0, 2, 4, &p, &err), ENG_USAGE);
    assert_int_equal(eng_profile_build("t", "d", ids, 9, 4, 2, &p, &err), ENG_USAGE);
}

static void test_keys_of_rows(void **state)
{
    (void)state;
    EngProfile p = {.min_order = 2, .max_order = 4};
    /* 24 heads of 16 M: few rows stand for as many keys, an eighth as many as heads. */
    assert_true(fabs(eng_profile_keys(&p, 24000, 16e6, 8) - 3000) < 1);
    assert_true(eng_profile_keys(&p, 192e6, 16e6, 8) > 24e6);
    assert_true(isinf(eng_profile_keys(&p, 384e6, 16e6, 8)));
}

static void test_no_memory(void **state)
{
    (void)state;
    static int32_t ids[TOKENS];
    EngErr err = {0};
    EngProfile p;
    int failed = 0;
    make_stream(ids, TOKENS, 4);
    for (uint64_t n = 1;; n++) {
        eng_mem_fail_at(n);
        EngStatus status = eng_profile_build("t", "d", ids, TOKENS, 2, 4, &p, &err);
        eng_mem_fail_at(0);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        failed++;
    }
    assert_true(failed > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_searches), cmocka_unit_test(test_one_token),
        cmocka_unit_test(test_bursts),           cmocka_unit_test(test_text),
        cmocka_unit_test(test_keys_of_rows),     cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
