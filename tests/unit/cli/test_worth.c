/* What a ratio is worth for the chain: of CPU kernels alone, whose chain was measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/cli/worth.h"

static bool is_stage(const char *experiment, const char *axes)
{
    EngAmdahl amdahl = {0};
    EngErr err = {0};
    bool found = true;
    /* No database: only what is a stage would be looked up. */
    assert_int_equal(eng_worth_find(NULL, "m", experiment, axes, &amdahl, &found, &err), ENG_OK);
    return found;
}

static void test_what_is_no_stage(void **state)
{
    (void)state;
    assert_false(is_stage("ladder", "{\"bytes\":4096}"));
    assert_false(is_stage("gather", "{\"preset\":\"laptop\",\"variant\":\"portable\"}"));
    assert_false(
        is_stage("gather", "{\"preset\":\"laptop\",\"tokens\":16,\"variant\":\"cuda_decode\"}"));
    assert_false(
        is_stage("hash", "{\"preset\":\"laptop\",\"tokens\":16,\"variant\":\"cuda_reciprocal\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_no_stage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
