/* Interval sets against a brute-force version on a line of cells, and what is computed from them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/trace/interval.h"

#define CELLS 96 /* the line; small, so that intervals touch, nest and repeat often */

static EngErr g_err;

static void add(EngIntervals *set, int64_t start, int64_t end)
{
    assert_int_equal(eng_intervals_add(set, start, end, &g_err), ENG_OK);
}

/* A random set, drawn into cells as well. */
static void draw(EngRng *rng, EngIntervals *set, bool cells[CELLS])
{
    int n = (int)eng_rng_below(rng, 14);
    memset(cells, 0, CELLS);
    for (int i = 0; i < n; i++) {
        int64_t start = (int64_t)eng_rng_below(rng, CELLS);
        int64_t end = start + (int64_t)eng_rng_below(rng, 12);
        if (end > CELLS) end = CELLS;
        add(set, start, end);
        for (int64_t c = start; c < end; c++) cells[c] = true;
    }
    eng_intervals_close(set);
}

/* The one form of a closed set: ascending, not touching, not empty, covering exactly the cells. */
static void assert_set(const EngIntervals *set, const bool cells[CELLS])
{
    bool covered[CELLS] = {false};
    for (int64_t i = 0; i < set->n; i++) {
        assert_true(set->items[i].start < set->items[i].end);
        if (i) assert_true(set->items[i].start > set->items[i - 1].end);
        for (int64_t c = set->items[i].start; c < set->items[i].end; c++) covered[c] = true;
    }
    assert_memory_equal(covered, cells, CELLS);
}

static int64_t count(const bool *cells, int64_t from, int64_t to)
{
    int64_t n = 0;
    for (int64_t c = from; c < to; c++) n += cells[c];
    return n;
}

static void test_properties(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 20261129);
    for (int round = 0; round < 20000; round++) {
        EngIntervals a = {0}, b = {0}, out = {0}, sum = {0};
        bool x[CELLS], y[CELLS], want[CELLS];
        draw(&rng, &a, x);
        draw(&rng, &b, y);
        assert_set(&a, x);
        assert_int_equal(eng_intervals_total(&a), count(x, 0, CELLS));

        for (int c = 0; c < CELLS; c++) want[c] = x[c] && y[c];
        assert_int_equal(eng_intervals_intersect(&a, &b, &out, &g_err), ENG_OK);
        assert_set(&out, want);
        assert_int_equal(eng_intervals_common(&a, &b), count(want, 0, CELLS));

        for (int c = 0; c < CELLS; c++) want[c] = x[c] && !y[c];
        assert_int_equal(eng_intervals_subtract(&a, &b, &out, &g_err), ENG_OK);
        assert_set(&out, want);

        for (int c = 0; c < CELLS; c++) want[c] = x[c] || y[c];
        assert_int_equal(eng_intervals_add_all(&sum, &a, &g_err), ENG_OK);
        assert_int_equal(eng_intervals_add_all(&sum, &b, &g_err), ENG_OK);
        eng_intervals_close(&sum);
        assert_set(&sum, want);

        int64_t from = (int64_t)eng_rng_below(&rng, CELLS);
        int64_t to = from + (int64_t)eng_rng_below(&rng, (uint64_t)(CELLS - from) + 1);
        assert_int_equal(eng_intervals_within(&a, from, to), count(x, from, to));
        for (int c = 0; c < CELLS; c++) want[c] = c >= from && c < to && !x[c];
        assert_int_equal(eng_intervals_gaps(&a, from, to, &out, &g_err), ENG_OK);
        assert_set(&out, want);
        eng_intervals_free(&a);
        eng_intervals_free(&b);
        eng_intervals_free(&out);
        eng_intervals_free(&sum);
    }
}

static void test_refuses_backwards(void **state)
{
    (void)state;
    EngIntervals set = {0};
    assert_int_equal(eng_intervals_add(&set, 5, 4, &g_err), ENG_BAD_DATA);
    assert_non_null(strstr(g_err.text, "ends at 4"));
    assert_int_equal(set.n, 0);
    add(&set, 7, 7);
    assert_int_equal(set.n, 0);
    eng_intervals_close(&set);
    assert_int_equal(eng_intervals_total(&set), 0);
    eng_intervals_free(&set);
}

static void test_memory(void **state)
{
    (void)state;
    EngIntervals a = {0}, out = {0};
    for (int i = 0; i < 16; i++) add(&a, 10 * i, 10 * i + 5);
    eng_mem_fail_at(1);
    assert_int_equal(eng_intervals_add(&a, 500, 501, &g_err), ENG_NO_MEMORY);
    assert_int_equal(a.n, 16); /* what was there stays */
    eng_mem_fail_at(1);
    assert_int_equal(eng_intervals_gaps(&a, 0, 200, &out, &g_err), ENG_NO_MEMORY);
    EngInterference i;
    for (uint64_t n = 1; n <= 3; n++) {
        uint64_t live = eng_mem_live_blocks();
        eng_mem_fail_at(n);
        assert_int_equal(eng_interference(a.items, a.n, &a, &i, &g_err), ENG_NO_MEMORY);
        eng_mem_fail_at(0);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    eng_intervals_free(&a);
    eng_intervals_free(&out);
}

static void test_hidden(void **state)
{
    (void)state;
    assert_true(isnan(eng_hidden_fraction(0, 0)));
    assert_true(isnan(eng_hidden_fraction(0, 10)));
    assert_true(eng_hidden_fraction(100, 0) == 1);
    assert_true(eng_hidden_fraction(100, 25) == 0.75);
    assert_true(eng_hidden_fraction(100, 250) == 0); /* queueing can outlast the fetch */
}

static void test_interference(void **state)
{
    (void)state;
    EngIntervals fetch = {0};
    EngInterference i;
    const EngInterval victims[] = {{110, 122}, {10, 20}, {130, 145}, {195, 215}, {30, 40}};
    add(&fetch, 100, 200);
    eng_intervals_close(&fetch);
    assert_int_equal(eng_interference(victims, 5, &fetch, &i, &g_err), ENG_OK);
    assert_int_equal(i.window_ns, 12 + 15 + 5);
    assert_int_equal(i.n_inside, 2);
    assert_int_equal(i.n_apart, 2); /* the one across the border is neither */
    assert_true(i.inside_ns == 13.5 && i.apart_ns == 10);
    assert_true(fabs(i.slowdown - 0.35) < 1e-12);
    assert_int_equal(eng_interference(victims, 1, &fetch, &i, &g_err), ENG_OK);
    assert_true(isnan(i.slowdown)); /* nothing to compare with */
    eng_intervals_free(&fetch);
}

/* As many as asked for (ENG_TEST_INTERVALS: tests/cli/trace_bounds.sh), in random order: the time
 * is printed. */
static void test_many(void **state)
{
    (void)state;
    const char *asked = getenv("ENG_TEST_INTERVALS");
    int64_t n = asked ? atoll(asked) : 200000, sum = 0;
    EngIntervals a = {0}, b = {0}, both = {0}, rest = {0}, gaps = {0};
    EngRng rng;
    eng_rng_seed(&rng, 1);
    int64_t begin = eng_now_ns();
    for (int64_t i = 0; i < n; i++) { /* in slots of 100, every slot once or not at all */
        int64_t slot = 100 * (int64_t)eng_rng_below(&rng, (uint64_t)(4 * n));
        add(i % 2 ? &b : &a, slot, slot + 1 + (int64_t)eng_rng_below(&rng, 150));
    }
    int64_t made = eng_now_ns();
    eng_intervals_close(&a);
    eng_intervals_close(&b);
    assert_int_equal(eng_intervals_intersect(&a, &b, &both, &g_err), ENG_OK);
    assert_int_equal(eng_intervals_subtract(&a, &b, &rest, &g_err), ENG_OK);
    assert_int_equal(eng_intervals_gaps(&a, 0, 400 * n + 300, &gaps, &g_err), ENG_OK);
    sum = eng_intervals_total(&both) + eng_intervals_total(&rest);
    print_message(
        "%lld intervals: made in %.2f s, closed, intersected, subtracted and gaps in %.2f s"
        " (%lld items at the end)\n",
        (long long)n, (double)(made - begin) * 1e-9, (double)(eng_now_ns() - made) * 1e-9,
        (long long)(a.n + b.n + both.n + rest.n + gaps.n));
    assert_int_equal(sum, eng_intervals_total(&a));
    assert_int_equal(eng_intervals_total(&gaps) + sum, 400 * n + 300);
    EngIntervals *all[] = {&a, &b, &both, &rest, &gaps};
    for (int i = 0; i < 5; i++) eng_intervals_free(all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties),   cmocka_unit_test(test_refuses_backwards),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_interference), cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
