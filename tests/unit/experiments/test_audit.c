/* Audits of streams whose answer is known, and verdicts at the edges. */
#include "points.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "bench/experiments/audit.h"
#include "kernels/address/address.h"

enum { N = 20000 };
static int32_t g_ids[N];
static uint32_t g_original[N];

static void audit(int64_t n, EngAudit *out)
{
    EngAddressSpec spec = {.n_layers = 1,
                           .layer_ids = {1},
                           .min_order = 2,
                           .max_order = 4,
                           .heads = 4,
                           .vocab = 100000,
                           .start = 16000000};
    EngAddress address;
    EngErr err = {0};
    assert_int_equal(eng_address_build(&spec, &address, &err), ENG_OK);
    EngAuditInput input = {.compressed = g_ids,
                           .ids = g_original,
                           .n_tokens = n,
                           .address = &address,
                           .original = &address};
    if (eng_audit_count(&input, -1, out, &err)) fail_msg("%s", err.text);
}

/* A phrase of ten ids: ten rows a column and batch, the same in every batch (but for the windows
 * that reach before the start). */
static void test_phrase(void **state)
{
    (void)state;
    EngAudit a;
    for (int i = 0; i < N; i++) {
        g_ids[i] = 100 + i % 10;
        g_original[i] = (uint32_t)(1000 + i % 20);
    }
    audit(N, &a);
    assert_int_equal(a.n_sizes, 4);
    for (int i = 0; i < 4; i++) {
        double want = 10.0 / (double)eng_audit_sizes[i];
        assert_true(fabs(a.counts[i].distinct_all - want) < 1e-3);
        assert_true(fabs(a.counts[i].distinct[2] - want) < 1e-3);
        assert_true(a.counts[i].repeat_prev == 1);
    }
    assert_true(fabs(a.uncompressed - 20.0 / 4096) < 1e-3);
    assert_int_equal(a.distinct_ids, 10);
    assert_int_equal(a.distinct_original, 20);
    for (int order = 2; order <= 4; order++) {
        assert_int_equal(a.n_top[order], ENG_AUDIT_TOP);
        assert_true(fabs(a.top[order][0].share - 0.1) < 1e-3);
        assert_true(a.top[order][0].at < 10); /* its first place */
    }
}

static void test_all_different(void **state)
{
    (void)state;
    EngAudit a;
    for (int i = 0; i < N; i++) g_ids[i] = (int32_t)(g_original[i] = (uint32_t)i);
    audit(N, &a);
    assert_true(a.counts[3].distinct_all > 0.999);
    assert_true(a.counts[3].repeat_prev < 0.001);
    assert_true(fabs(a.top[2][0].share - 1.0 / (N - 1)) < 1e-9);
}

/* One pair in every second place: half of all 2-grams but a quarter each way. */
static void test_top_ngram(void **state)
{
    (void)state;
    EngAudit a;
    for (int i = 0; i < N; i++)
        g_ids[i] = (int32_t)(g_original[i] = i % 4 < 2 ? 7 + (uint32_t)i % 4 : 100 + (uint32_t)i);
    audit(N, &a);
    assert_int_equal(a.top[2][0].at, 0);
    assert_true(fabs(a.top[2][0].share - 0.25) < 1e-3);
    assert_true(a.top[2][1].share < 0.001);
    assert_true(a.top[3][0].share < 0.001);
}

static void test_short_streams(void **state)
{
    (void)state;
    EngAudit a;
    EngErr err = {0};
    EngAuditInput input = {.compressed = g_ids, .n_tokens = 63, .address = &(EngAddress){0}};
    assert_int_equal(eng_audit_count(&input, -1, &a, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "63 tokens are fewer than a batch of 64"));
    for (int i = 0; i < N; i++) g_ids[i] = (int32_t)(g_original[i] = (uint32_t)i);
    audit(64, &a);
    assert_int_equal(a.n_sizes, 1);
    assert_true(isnan(a.counts[0].repeat_prev));
    audit(511, &a);
    assert_int_equal(a.n_sizes, 1);
    audit(512, &a);
    assert_int_equal(a.n_sizes, 2);
}

static void test_verdicts(void **state)
{
    (void)state;
    static const EngAuditCorpus corpora[] = {{"code", "real", 0.54, 0.11},
                                             {"prose", "real", 0.76, 0.08},
                                             {"multilingual", "real", 0.77, 0.06},
                                             {"filler", "filler", 0.004, 1},
                                             {"uniform", "uniform", 1.0, 0}};
    static const struct {
        double distinct, repeat;
        EngAuditVerdict verdict;
    } cases[] = {
        {0.76, 0.08, ENG_AUDIT_TEXT},  {0.54, 0.11, ENG_AUDIT_TEXT},
        {0.06, 0.5, ENG_AUDIT_FILLER}, {0.004, 1, ENG_AUDIT_FILLER},
        {0.75, 1, ENG_AUDIT_REPLAYED}, {0.35, 0.2, ENG_AUDIT_REPEATING},
        {1.0, 0, ENG_AUDIT_RANDOM},    {0.85, 0.05, ENG_AUDIT_TEXT},
        {0.76, NAN, ENG_AUDIT_TEXT},
    };
    char text[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngAuditVerdict got = eng_audit_judge(cases[i].distinct, cases[i].repeat, 4096, corpora, 5,
                                              text, sizeof text);
        if (got != cases[i].verdict)
            fail_msg("%g, %g: %s", cases[i].distinct, cases[i].repeat, text);
        assert_ptr_equal(strstr(text, eng_audit_verdict_name(got)), text);
    }
    eng_audit_judge(0.06, 0.9, 4096, corpora, 5, text, sizeof text);
    assert_string_equal(text,
                        "filler-like: 6 % distinct rows in batches of 4096 tokens where prose "
                        "has 76 %; gather numbers from it flatter by caches");
    assert_int_equal(eng_audit_judge(0.5, 0, 64, corpora + 3, 2, text, sizeof text),
                     ENG_AUDIT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phrase),    cmocka_unit_test(test_all_different),
        cmocka_unit_test(test_top_ngram), cmocka_unit_test(test_short_streams),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
