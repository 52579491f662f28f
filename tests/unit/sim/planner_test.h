/* What tests of planner and models share. */
#ifndef ENG_TESTS_UNIT_SIM_PLANNER_TEST_H
#define ENG_TESTS_UNIT_SIM_PLANNER_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))

static inline void assert_near(double got, double want, double within, const char *what)
{
    if (!(fabs(got - want) <= within)) fail_msg("%s: %.12g, not %.12g", what, got, want);
}

#endif
