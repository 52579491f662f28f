/* Helpers of the tests of training operations: arrays in f32 and double, known answers made by
 * PyTorch (tests/oracle/training_case.py), finite differences, and buffers compared with limits.
 */
#ifndef ENG_TESTS_TRAINING_TEST_H
#define ENG_TESTS_TRAINING_TEST_H

#include "kernels_test.h"

#include <math.h>

static inline double *doubles(size_t n)
{
    double *values = calloc(n + 1, sizeof *values);
    assert_non_null(values);
    return values;
}

static inline float *floats(size_t n)
{
    float *values = calloc(n + 1, sizeof *values);
    assert_non_null(values);
    return values;
}

static inline double *widened(const float *from, size_t n)
{
    double *to = doubles(n);
    for (size_t i = 0; i < n; i++) to[i] = from[i];
    return to;
}

static inline float *narrowed(const double *from, size_t n)
{
    float *to = floats(n);
    for (size_t i = 0; i < n; i++) to[i] = (float)from[i];
    return to;
}

/* Normal numbers that f32 holds exactly. */
static inline double *normals(EngRng *rng, size_t n, double mean, double deviation)
{
    double *values = doubles(n);
    for (size_t i = 0; i < n; i++) values[i] = (float)(mean + deviation * eng_rng_normal(rng));
    return values;
}

/* Array `name` of tests/data/training_case.txt, n numbers; the caller frees it. */
#define known(name, n) known_in(ENG_SOURCE_DIR "/tests/data/training_case.txt", name, n)
static inline double *known_in(const char *path, const char *name, size_t n)
{
    FILE *file = fopen(path, "r");
    double *values = doubles(n), ignored;
    char word[64];
    size_t count;
    assert_non_null(file);
    assert_non_null(fgets((char[256]){0}, 256, file));
    while (fscanf(file, "%63s %zu", word, &count) == 2) {
        bool wanted = !strcmp(word, name);
        if (wanted) assert_int_equal(count, n);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(fscanf(file, "%la", wanted ? &values[i] : &ignored), 1);
        if (!wanted) continue;
        fclose(file);
        return values;
    }
    fail_msg("no %s in %s", name, path);
    return NULL;
}

static inline void assert_near(const double *got, const double *want, size_t n, double relative,
                               const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= relative * (1 + fabs(want[i]))))
            fail_msg("%s[%zu]: got %.17g, want %.17g", what, i, got[i], want[i]);
}

/* Compares with worst cases; NULL errors: 0. */
static inline void assert_within(const float *got, const double *want, const double *errors,
                                 size_t n, const char *what)
{
    EngComparison residual;
    eng_residual_start(&residual);
    for (size_t i = 0; i < n; i++) {
        double error = errors ? errors[i] : 0;
        eng_residual_add(&residual, ENG_F32, got[i], want[i], (EngLimit){error, error});
    }
    assert_residual(&residual, what);
}

/* A scalar function of numbers at `at`, and its derivative by central differences with one
 * extrapolation: errors of order h^4. */
typedef double LossFn(void *context);

static inline double difference(LossFn *loss, void *context, double *at, double h)
{
    double kept = *at;
    *at = kept + h;
    double up = loss(context);
    *at = kept - h;
    double down = loss(context);
    *at = kept;
    return (up - down) / (2 * h);
}

static inline double derivative(LossFn *loss, void *context, double *at)
{
    double h = 1e-3;
    return (4 * difference(loss, context, at, h / 2) - difference(loss, context, at, h)) / 3;
}

#endif
