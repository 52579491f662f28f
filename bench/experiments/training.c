/* Shared pieces of experiments on training operations; see training.h. */
#include "bench/experiments/training.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/experiments/shape.h"
#include "kernels/ref/compare.h"

/* Of synthetic numbers: a normal one costs more to make than to copy. */
#define PERIOD ((size_t)1 << 18)

EngStatus eng_training_check(const EngPoint *point, EngProblem *problem, EngErr *why)
{
    const EngKernel *kernel;
    EngStatus status = eng_point_kernel(point, problem->op, &kernel, why);
    if (!status) status = eng_point_settings(point, kernel, problem, why);
    return status ? status : eng_kernel_supports(kernel, problem, why);
}

EngStatus eng_training_open(EngTraining *training, const EngPoint *point, EngProblem *problem,
                            int64_t windows, EngErr *err)
{
    const EngKernel *kernel;
    training->windows = windows;
    EngStatus status = eng_point_kernel(point, problem->op, &kernel, err);
    if (!status) status = eng_point_settings(point, kernel, problem, err);
    return status ? status : eng_runner_open(&training->runner, kernel, problem, err);
}

void eng_training_close(EngTraining *training)
{
    eng_runner_close(&training->runner);
    for (int i = 0; i < training->n_arrays; i++) eng_free(training->arrays[i]);
    training->n_arrays = 0;
}

EngStatus eng_training_array(EngTraining *training, size_t n, size_t each, double mean,
                             double deviation, float **out, EngErr *err)
{
    if (training->n_arrays == ENG_TRAINING_ARRAYS)
        return ENG_FAIL(err, ENG_INTERNAL, "more than %d arrays", ENG_TRAINING_ARRAYS);
    EngStatus status = eng_alloc_or((void **)out, n, each * sizeof(float), "training data", err);
    if (status) return status;
    size_t all = n * each;
    training->array_bytes[training->n_arrays] = all * sizeof(float);
    training->arrays[training->n_arrays++] = *out;
    training->bytes += all * sizeof(float);
    if (mean == 0 && deviation == 0) return ENG_OK;
    EngRng rng;
    eng_rng_seed_at(&rng, training->seed, (uint64_t)training->n_arrays);
    for (size_t i = 0; i < all && i < PERIOD; i++)
        (*out)[i] = (float)(mean + deviation * eng_rng_normal(&rng));
    for (size_t i = PERIOD; i < all; i += PERIOD)
        memcpy(*out + i, *out, (all - i < PERIOD ? all - i : PERIOD) * sizeof(float));
    return ENG_OK;
}

EngStatus eng_training_cover(EngTraining *training, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; i < training->n_arrays && !status; i++)
        status =
            eng_runner_cover(&training->runner, training->arrays[i], training->array_bytes[i], err);
    return status;
}

int64_t eng_training_next(EngTraining *training)
{
    int64_t window = training->next;
    training->next = window + 1 == training->windows ? 0 : window + 1;
    return window;
}

void eng_training_observe(const EngTraining *training, const EngTiming *timing, double count,
                          double *values)
{
    double cpu_ns = eng_cpu_ns(timing), flops, moved;
    eng_runner_cost(&training->runner, &flops, &moved);
    values[0] = moved / cpu_ns;
    values[1] = flops / cpu_ns;
    values[2] = cpu_ns / count;
    values[3] = cpu_ns * 1e-3;
    values[4] = eng_wall_ns(timing) * 1e-3;
    values[5] = flops;
    values[6] = moved;
    values[7] = (double)training->bytes;
}

/* ---- comparison with oracles ---- */

double *eng_doubles(EngDoubles *doubles, size_t n)
{
    double *block = NULL;
    if (doubles->n < (int)(sizeof doubles->blocks / sizeof *doubles->blocks))
        block = eng_alloc_array(n, sizeof *block);
    if (!block) {
        doubles->failed = true;
        return NULL;
    }
    return doubles->blocks[doubles->n++] = block;
}

double *eng_widened(EngDoubles *doubles, const float *from, size_t n)
{
    double *to = eng_doubles(doubles, n);
    for (size_t i = 0; to && i < n; i++) to[i] = from[i];
    return to;
}

EngStatus eng_doubles_status(const EngDoubles *doubles, EngErr *err)
{
    return doubles->failed ? ENG_FAIL(err, ENG_NO_MEMORY, "no memory for the oracle") : ENG_OK;
}

void eng_doubles_free(EngDoubles *doubles)
{
    for (int i = 0; i < doubles->n; i++) eng_free(doubles->blocks[i]);
    doubles->n = 0;
}

void eng_training_compare(EngCheck *check, const float *got, const double *want,
                          const double *errors, size_t n)
{
    EngComparison part;
    eng_residual_start(&part);
    for (size_t i = 0; i < n; i++)
        eng_residual_add(&part, ENG_F32, got[i], want[i], (EngLimit){errors[i], errors[i]});
    check->n_checked += part.count;
    check->n_outputs += part.count;
    check->n_failed += part.failed;
    check->n_nonfinite += part.nonfinite;
    check->max_abs = fmax(check->max_abs, part.max_abs);
    check->max_rel = fmax(check->max_rel, part.max_rel);
    check->max_share = fmax(check->max_share, part.max_share);
}
