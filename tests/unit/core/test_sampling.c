/* The pieces of sampling: what the timer resolves and the lengths that follow, and the flush of the
 * caches, which allocates nothing and leaves the thread where it was. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/mem.h"
#include "bench/core/flush.h"
#include "bench/core/sampling.h"

static void test_lengths(void **state)
{
    (void)state;
    const EngTimer fine = {30, 600}, coarse = {4000, 1000}, jiffies = {10000000, 500};
    assert_int_equal(eng_sample_length_ns(&fine, 1000000), 1000000);
    assert_int_equal(eng_sample_length_ns(&fine, 1000), 300000);
    assert_int_equal(eng_sample_length_ns(&coarse, 1000000), 2000000);
    assert_int_equal(eng_sample_length_ns(&jiffies, 1000000), 20000000);
    assert_int_equal(eng_inner_iterations(300, 1000000), 3334);
    assert_int_equal(eng_inner_iterations(5e6, 1000000), 1);
    assert_int_equal(eng_inner_iterations(0, 1000000), 1000000);
}

static void test_timer(void **state)
{
    (void)state;
    EngTimer timer = eng_timer_measure();
    assert_true(timer.step_ns > 0);
    assert_true(timer.empty_ns >= 0);
}

static void test_flush(void **state)
{
    (void)state;
    EngFlush flush, none = {0};
    cpu_set_t before, after;
    size_t bytes = eng_flush_bytes();
    assert_true(bytes >= (size_t)64 << 20 && bytes <= (size_t)1 << 30);
    eng_flush_run(&none);
    eng_flush_destroy(&none);
    EngErr err = {0};
    eng_mem_fail_at(1);
    assert_int_equal(eng_flush_create(&flush, &err), ENG_NO_MEMORY);
    eng_mem_fail_at(0);
    eng_flush_destroy(&flush);
    assert_int_equal(eng_flush_create(&flush, &err), ENG_OK);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    eng_mem_fail_at(0);
    eng_flush_run(&flush);
    assert_int_equal(eng_mem_fail_at(0), 0); /* allocations since */
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    eng_flush_destroy(&flush);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_timer),
        cmocka_unit_test(test_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
