/* Models of caches: against the row cache of kernels/store, which is written independently, against
 * searches from end to end, and estimates against the exact ones. */
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
#include "kernels/store/cache_index.h"
#include "sim/cache/aet.h"
#include "sim/cache/curve.h"
#include "sim/cache/shards.h"
#include "sim/cache/zipf.h"

#define N          60000
#define LENGTH(a)  (int)(sizeof(a) / sizeof *(a))
#define TABLE_ROWS 768022

/* Texts differ in how rows come back; so do these traces. */
typedef enum Kind { UNIFORM, SKEWED, BURSTS, SCAN, ONE_ROW, KINDS } Kind;

static int64_t *make_trace(Kind kind, int64_t n, uint64_t seed)
{
    EngRng rng;
    int64_t *rows = malloc((size_t)n * sizeof *rows);
    eng_rng_seed(&rng, seed);
    for (int64_t i = 0; i < n; i++) {
        int64_t any = (int64_t)eng_rng_below(&rng, TABLE_ROWS);
        switch (kind) {
        case UNIFORM:
            rows[i] = any % 5000;
            break;
        case SKEWED:
            rows[i] = (int64_t)(TABLE_ROWS * pow(eng_rng_unit(&rng), 6));
            break;
        case BURSTS: /* most rows are those of a moment ago, some are old, some new */
            rows[i] =
                i && eng_rng_below(&rng, 10) < 7
                    ? rows[i - 1 - (int64_t)eng_rng_below(&rng, (uint64_t)(i < 999 ? i : 999))]
                    : any;
            break;
        case SCAN:
            rows[i] = i % 777;
            break;
        default:
            rows[i] = 5;
        }
    }
    return rows;
}

static const int64_t g_capacities[] = {1, 2, 3, 7, 16, 64, 250, 776, 777, 1000, 4096, 20000, 70000};

static void test_equals_store(void **state)
{
    (void)state;
    static const struct {
        EngCachePolicy policy;
        int ways;
    } caches[] = {{ENG_CACHE_LRU, 0},  {ENG_CACHE_SIEVE, 0}, {ENG_CACHE_DIRECT, 0},
                  {ENG_CACHE_WAYS, 2}, {ENG_CACHE_WAYS, 8},  {ENG_CACHE_WAYS, 16}};
    enum { COUNT = LENGTH(g_capacities) };
    for (int k = 0; k < KINDS; k++) {
        int64_t *rows = make_trace((Kind)k, N, (uint64_t)k);
        for (int c = 0; c < LENGTH(caches); c++) {
            EngErr err = {0};
            EngCurve curve;
            int64_t hits[COUNT];
            assert_int_equal(
                eng_curve_open(&curve, caches[c].policy, caches[c].ways, g_capacities, COUNT, &err),
                ENG_OK);
            /* In pieces: what one call ends with, the next goes on from. */
            assert_int_equal(eng_curve_add(&curve, rows, N / 3, &err), ENG_OK);
            assert_int_equal(eng_curve_add(&curve, rows + N / 3, N - N / 3, &err), ENG_OK);
            eng_curve_hits(&curve, hits);
            for (int i = 0; i < COUNT; i++) {
                EngCacheIndex index;
                EngCacheOptions options = {caches[c].policy, g_capacities[i], caches[c].ways};
                assert_int_equal(eng_cache_index_init(&index, &options, TABLE_ROWS, &err), ENG_OK);
                bool hit;
                for (int64_t r = 0; r < N; r++) eng_cache_index_access(&index, rows[r], &hit);
                assert_int_equal(curve.capacities[i], index.capacity);
                assert_int_equal(hits[i], index.hits);
                eng_cache_index_fini(&index);
            }
            assert_int_equal(curve.accesses, N);
            eng_curve_close(&curve);
        }
        free(rows);
    }
}

/* Every distance, by counting distinct rows between two uses. */
static void test_distances(void **state)
{
    (void)state;
    enum { SHORT = 3000, ROWS = 400 };
    EngErr err = {0};
    EngRng rng;
    EngStack stack;
    EngRowIds ids;
    static int64_t trace[SHORT];
    assert_int_equal(eng_stack_init(&stack, &err), ENG_OK);
    assert_int_equal(eng_row_ids_init(&ids, &err), ENG_OK);
    eng_rng_seed(&rng, 3);
    for (int i = 0; i < SHORT; i++) {
        uint32_t id, distance, want = 0;
        bool seen[ROWS] = {0};
        trace[i] = (int64_t)eng_rng_below(&rng, 1 + (uint64_t)i % ROWS);
        int back = i - 1;
        while (back >= 0 && trace[back] != trace[i]) seen[trace[back--]] = true;
        if (back >= 0) {
            want = 1;
            for (int r = 0; r < ROWS; r++) want += seen[r];
        }
        assert_int_equal(eng_row_ids_of(&ids, trace[i] * 1000003, &id, &err), ENG_OK);
        assert_int_equal(eng_stack_add(&stack, id, &distance, &err), ENG_OK);
        assert_int_equal(distance, want);
    }
    assert_int_equal(eng_stack_add(&stack, stack.distinct + 1, NULL, &err), ENG_INTERNAL);
    eng_stack_fini(&stack);
    eng_row_ids_fini(&ids);
}

/* More moments than there is room for, with few and with many rows alive. */
static void test_renumbering(void **state)
{
    (void)state;
    EngErr err = {0};
    EngStack stack;
    const uint32_t rows = 30000;
    uint32_t distance;
    assert_int_equal(eng_stack_init(&stack, &err), ENG_OK);
    for (uint32_t pass = 0; pass < 4; pass++)
        for (uint32_t id = 0; id < rows; id++) {
            assert_int_equal(eng_stack_add(&stack, id, &distance, &err), ENG_OK);
            assert_int_equal(distance, pass ? rows : 0);
        }
    for (uint32_t i = 1; i < 100000; i++) {
        assert_int_equal(eng_stack_add(&stack, i % 2, &distance, &err), ENG_OK);
        if (i > 2) assert_int_equal(distance, 2);
    }
    assert_true(stack.size <= 4 * rows);
    eng_stack_fini(&stack);
}

/* One list of a set tells the hits of all ways. */
static void test_all_ways(void **state)
{
    (void)state;
    EngErr err = {0};
    EngSets all, one;
    int64_t *rows = make_trace(SKEWED, N, 11);
    assert_int_equal(eng_sets_init(&all, 37, 32, &err), ENG_OK);
    for (int64_t r = 0; r < N; r++) eng_sets_add(&all, rows[r]);
    for (int ways = 1; ways <= 32; ways++) {
        assert_int_equal(eng_sets_init(&one, 37, ways, &err), ENG_OK);
        for (int64_t r = 0; r < N; r++) eng_sets_add(&one, rows[r]);
        assert_int_equal(eng_sets_hits(&one, ways), eng_sets_hits(&all, ways));
        eng_sets_fini(&one);
    }
    eng_sets_fini(&all);
    free(rows);
}

/* Exact, sampled and modelled hit rates of one trace. */
static void compare_estimates(Kind kind, double rate, double sampled_within, double aet_within)
{
    enum { LONG = 400000 };
    static const int64_t capacities[] = {2000, 8000, 30000, 100000, 200000};
    enum { COUNT = LENGTH(capacities) };
    EngErr err = {0};
    EngCurve exact;
    EngShards shards;
    EngAet aet;
    int64_t hits[COUNT], *rows = make_trace(kind, LONG, 77);
    double sampled[COUNT], modelled[COUNT];
    assert_int_equal(eng_curve_open(&exact, ENG_CACHE_LRU, 0, capacities, COUNT, &err), ENG_OK);
    assert_int_equal(eng_shards_init(&shards, rate, &err), ENG_OK);
    assert_int_equal(eng_aet_init(&aet, &err), ENG_OK);
    assert_int_equal(eng_curve_add(&exact, rows, LONG, &err), ENG_OK);
    for (int64_t r = 0; r < LONG; r++) {
        uint32_t id;
        assert_int_equal(eng_row_ids_of(&exact.ids, rows[r], &id, &err), ENG_OK);
        assert_int_equal(eng_shards_add(&shards, rows[r], &err), ENG_OK);
        /* Ids in order of first use: the curve has them all by now, so they are its own. */
        assert_int_equal(eng_aet_add(&aet, id, &err), ENG_OK);
    }
    eng_curve_hits(&exact, hits);
    assert_int_equal(eng_shards_rates(&shards, capacities, COUNT, sampled, &err), ENG_OK);
    eng_aet_rates(&aet, capacities, COUNT, modelled);
    for (int i = 0; i < COUNT; i++) {
        double want = (double)hits[i] / LONG;
        if (!(fabs(sampled[i] - want) <= sampled_within && fabs(modelled[i] - want) <= aet_within))
            fail_msg("trace %d, %ld rows: exact %.4f, SHARDS %.4f, AET %.4f", kind,
                     (long)capacities[i], want, sampled[i], modelled[i]);
    }
    eng_curve_close(&exact);
    eng_shards_fini(&shards);
    eng_aet_fini(&aet);
    free(rows);
}

static void test_estimates(void **state)
{
    (void)state;
    compare_estimates(SKEWED, 0.1, 0.01, 0.01);
    compare_estimates(BURSTS, 0.1, 0.01, 0.01);
    compare_estimates(SKEWED, 1, 1e-12, 0.01); /* all of the rows: exact */
}

/* Che holds for the draws it is made for. */
static void test_zipf(void **state)
{
    (void)state;
    enum { ITEMS = 2000, DRAWS = 600000, WARM = 100000 };
    static double until[ITEMS];
    const double exponent = 0.9;
    EngErr err = {0};
    EngRng rng;
    double sum = 0, rate;
    for (int i = 0; i < ITEMS; i++) until[i] = sum += pow(i + 1, -exponent);
    eng_rng_seed(&rng, 1);
    static int64_t rows[DRAWS];
    for (int d = 0; d < DRAWS; d++) {
        double at = eng_rng_unit(&rng) * sum;
        int low = 0, high = ITEMS - 1;
        while (low < high) {
            int middle = (low + high) / 2;
            if (until[middle] < at)
                low = middle + 1;
            else
                high = middle;
        }
        rows[d] = low;
    }
    static const int64_t capacities[] = {20, 200, 1000};
    EngCurve curve;
    int64_t warm[3], hits[3];
    assert_int_equal(eng_curve_open(&curve, ENG_CACHE_LRU, 0, capacities, 3, &err), ENG_OK);
    assert_int_equal(eng_curve_add(&curve, rows, WARM, &err), ENG_OK);
    eng_curve_hits(&curve, warm);
    assert_int_equal(eng_curve_add(&curve, rows + WARM, DRAWS - WARM, &err), ENG_OK);
    eng_curve_hits(&curve, hits);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(eng_zipf_che_hit_rate(ITEMS, exponent, capacities[i], &rate, &err),
                         ENG_OK);
        double seen = (double)(hits[i] - warm[i]) / (DRAWS - WARM);
        if (!(fabs(seen - rate) <= 0.005))
            fail_msg("%ld: %.4f, Che %.4f", (long)capacities[i], seen, rate);
    }
    eng_curve_close(&curve);
    assert_int_equal(eng_zipf_che_hit_rate(100, 0, 25, &rate, &err), ENG_OK); /* uniform */
    assert_true(fabs(rate - 0.25) < 1e-9);
    assert_int_equal(eng_zipf_che_hit_rate(100, 1, 100, &rate, &err), ENG_OK);
    assert_true(rate == 1);
    assert_int_equal(eng_zipf_che_hit_rate(100, -1, 10, &rate, &err), ENG_USAGE);
    assert_int_equal(eng_zipf_che_hit_rate(0, 1, 10, &rate, &err), ENG_USAGE);
    assert_int_equal(eng_zipf_che_hit_rate(10, NAN, 1, &rate, &err), ENG_USAGE);
}

static EngStatus run_curve(EngCachePolicy policy, const int64_t *rows, EngErr *err)
{
    static const int64_t capacities[] = {10, 1000};
    EngCurve curve;
    EngStatus status = eng_curve_open(&curve, policy, 4, capacities, 2, err);
    if (!status) status = eng_curve_add(&curve, rows, 5000, err);
    eng_curve_close(&curve);
    return status;
}

static void test_refusals(void **state)
{
    (void)state;
    EngErr err = {0};
    EngCurve curve;
    EngShards shards;
    static const int64_t flat[] = {5, 5}, zero[] = {0}, fine[] = {5};
    assert_int_equal(eng_curve_open(&curve, ENG_CACHE_LRU, 0, flat, 2, &err), ENG_USAGE);
    assert_int_equal(eng_curve_open(&curve, ENG_CACHE_LRU, 0, zero, 1, &err), ENG_USAGE);
    assert_int_equal(eng_curve_open(&curve, ENG_CACHE_LRU, 0, fine, 0, &err), ENG_USAGE);
    assert_int_equal(eng_curve_open(&curve, ENG_CACHE_WAYS, 0, fine, 1, &err), ENG_USAGE);
    assert_int_equal(eng_curve_open(&curve, ENG_CACHE_WAYS, 65, fine, 1, &err), ENG_USAGE);
    assert_int_equal(eng_curve_open(&curve, (EngCachePolicy)9, 0, fine, 1, &err), ENG_USAGE);
    assert_int_equal(eng_shards_init(&shards, 0, &err), ENG_USAGE);
    assert_int_equal(eng_shards_init(&shards, 1.5, &err), ENG_USAGE);
    int64_t negative = -1;
    double rate;
    assert_int_equal(eng_curve_open(&curve, ENG_CACHE_LRU, 0, fine, 1, &err), ENG_OK);
    assert_int_equal(eng_curve_add(&curve, &negative, 1, &err), ENG_BAD_DATA);
    eng_curve_close(&curve);
    assert_int_equal(eng_shards_init(&shards, 0.5, &err), ENG_OK);
    assert_int_equal(eng_shards_rates(&shards, fine, 1, &rate, &err), ENG_UNSUPPORTED);
    eng_shards_fini(&shards);
}

static void test_memory(void **state)
{
    (void)state;
    EngErr err = {0};
    int64_t *rows = make_trace(UNIFORM, 5000, 1);
    uint64_t before = eng_mem_live_blocks();
    for (int policy = 0; policy < ENG_CACHE_POLICY_COUNT; policy++) {
        uint64_t n = 1;
        for (EngStatus status = ENG_NO_MEMORY; status; n++) {
            eng_mem_fail_at(n);
            status = run_curve((EngCachePolicy)policy, rows, &err);
            eng_mem_fail_at(0);
            assert_true(status == ENG_OK || status == ENG_NO_MEMORY);
            assert_int_equal(eng_mem_live_blocks(), before);
            assert_true(n < 100);
        }
        assert_true(n > 3);
    }
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_store), cmocka_unit_test(test_distances),
        cmocka_unit_test(test_renumbering),  cmocka_unit_test(test_all_ways),
        cmocka_unit_test(test_estimates),    cmocka_unit_test(test_zipf),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
