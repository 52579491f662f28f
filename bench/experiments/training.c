/* The life of experiments on training operations; see training.h. */
#include "bench/experiments/training.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/ref/compare.h"

/* Of synthetic numbers: a normal one costs more to make than to copy. */
#define PERIOD ((size_t)1 << 18)

/* ---- from a point to its problem ---- */

static const EngTrainingKind *kind_of(const EngPoint *point)
{
    return point->experiment->family;
}

static int64_t windows_of(const EngPoint *point)
{
    const EngTrainingKind *kind = kind_of(point);
    if (!kind->rotated_tokens) return kind->windows ? kind->windows : 1;
    int64_t tokens = eng_point_int(point, "tokens");
    return (kind->rotated_tokens + tokens - 1) / tokens;
}

static EngStatus describe(const EngPoint *point, EngTouched *touched, EngProblem *problem,
                          EngErr *err)
{
    const EngTrainingKind *kind = kind_of(point);
    *touched = (EngTouched){0};
    if (kind->touches) {
        EngStatus status = eng_touched_shape(point, &touched->shape, &touched->table_rows, err);
        if (status) return status;
        touched->per_window = touched->shape.tokens * touched->shape.columns;
    }
    kind->problem(point, touched, problem);
    return ENG_OK;
}

/* The kernel of the point's `variant` axis, and its settings into problem. */
static EngStatus find_kernel(const EngPoint *point, EngProblem *problem, const EngKernel **kernel,
                             EngErr *err)
{
    EngStatus status = eng_point_kernel(point, problem->op, kernel, err);
    return status ? status : eng_point_settings(point, *kernel, problem, err);
}

EngStatus eng_training_check(const EngPoint *point, EngErr *why)
{
    EngTouched touched;
    EngProblem problem;
    const EngKernel *kernel;
    EngStatus status = describe(point, &touched, &problem, why);
    if (!status) status = find_kernel(point, &problem, &kernel, why);
    return status ? status : eng_kernel_supports(kernel, &problem, why);
}

static size_t value_bytes(const EngTrainingArray *array)
{
    return array->size ? array->size : sizeof(float);
}

EngStatus eng_training_need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngTouched touched;
    EngProblem problem;
    EngTrainingArray list[ENG_TRAINING_ARRAYS + 1] = {0};
    const EngTrainingKind *kind = kind_of(point);
    EngStatus status = describe(point, &touched, &problem, err);
    if (status) return status;
    *need = (EngNeed){0};
    if (kind->touches) eng_touched_need(point, &touched.shape, windows_of(point), need);
    kind->arrays(&problem, &touched, (size_t)windows_of(point), list);
    for (const EngTrainingArray *a = list; a->n; a++)
        need->private_bytes += a->n * a->each * value_bytes(a);
    if (kind->scratch) need->private_bytes += kind->scratch(&problem);
    return ENG_OK;
}

double eng_training_estimate(const EngPoint *point)
{
    EngTouched touched;
    EngProblem problem;
    if (describe(point, &touched, &problem, NULL)) return 0;
    return kind_of(point)->estimate_ns(&problem, &touched) / problem.threads;
}

/* ---- set-up ---- */

static void fill(EngTraining *t, float *to, size_t n, double mean, double deviation)
{
    EngRng rng;
    eng_rng_seed_at(&rng, t->seed, (uint64_t)t->n_blocks);
    for (size_t i = 0; i < n && i < PERIOD; i++)
        to[i] = (float)(mean + deviation * eng_rng_normal(&rng));
    for (size_t i = PERIOD; i < n; i += PERIOD)
        memcpy(to + i, to, (n - i < PERIOD ? n - i : PERIOD) * sizeof *to);
}

static EngStatus make_array(EngTraining *t, const EngTrainingArray *array, EngErr *err)
{
    void *block;
    size_t size = value_bytes(array), n;
    if (t->n_blocks == ENG_TRAINING_ARRAYS)
        return ENG_FAIL(err, ENG_INTERNAL, "more than %d arrays", ENG_TRAINING_ARRAYS);
    EngStatus status = eng_alloc_or(&block, array->n, array->each * size, "training data", err);
    if (status) return status;
    n = array->n * array->each;
    t->block_bytes[t->n_blocks] = n * size;
    t->blocks[t->n_blocks++] = block;
    t->bytes += n * size;
    memcpy((char *)t + array->at, &block, sizeof block);
    if (array->mean != 0 || array->deviation != 0) fill(t, block, n, array->mean, array->deviation);
    return ENG_OK;
}

static EngStatus make_arrays(EngTraining *t, const EngProblem *problem, EngErr *err)
{
    EngStatus status = ENG_OK;
    EngTrainingArray list[ENG_TRAINING_ARRAYS + 1] = {0};
    t->kind->arrays(problem, &t->touched, (size_t)t->windows, list);
    for (const EngTrainingArray *a = list; a->n && !status; a++) status = make_array(t, a, err);
    return status;
}

/* For a kernel of a device, once the arrays have their content: windows are parts of them. */
static EngStatus cover(EngTraining *t, EngErr *err)
{
    const EngTouched *touched = &t->touched;
    size_t bytes = (size_t)(t->windows * touched->per_window) * sizeof(int64_t);
    EngStatus status = ENG_OK;
    for (int i = 0; i < t->n_blocks && !status; i++)
        status = eng_runner_cover(&t->runner, t->blocks[i], t->block_bytes[i], err);
    if (status || !t->kind->touches) return status;
    status = eng_runner_cover(&t->runner, touched->rows, bytes, err);
    return status ? status : eng_runner_cover(&t->runner, touched->lists, bytes, err);
}

static EngStatus make_ready(EngTraining *t, const EngBench *bench, const EngPoint *point,
                            EngErr *err)
{
    const EngKernel *kernel;
    EngProblem problem;
    EngStatus status = ENG_OK;
    if (t->kind->touches) status = eng_touched_create(&t->touched, bench, point, t->windows, err);
    if (status) return status;
    t->kind->problem(point, &t->touched, &problem);
    status = make_arrays(t, &problem, err);
    if (!status && t->kind->prepare) status = t->kind->prepare(t, point, &problem, err);
    if (!status) status = find_kernel(point, &problem, &kernel, err);
    if (!status) status = eng_runner_open(&t->runner, kernel, &problem, err);
    return status ? status : cover(t, err);
}

EngStatus eng_training_setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    EngTraining *t;
    const EngTrainingKind *kind = kind_of(point);
    EngStatus status =
        eng_alloc_or((void **)&t, 1, kind->state_bytes, point->experiment->name, err);
    if (status) return status;
    t->kind = kind;
    t->windows = windows_of(point);
    t->seed = bench->seed;
    if (kind->per) t->per = (double)eng_point_int(point, kind->per);
    status = make_ready(t, bench, point, err);
    if (status)
        eng_training_teardown(t);
    else
        *out = t;
    return status;
}

void eng_training_teardown(void *state)
{
    EngTraining *t = state;
    if (!t) return;
    eng_runner_close(&t->runner);
    eng_touched_destroy(&t->touched);
    for (int i = 0; i < t->n_blocks; i++) eng_free(t->blocks[i]);
    eng_free(t);
}

/* ---- samples ---- */

EngStatus eng_training_run(void *state, EngErr *err)
{
    EngTraining *t = state;
    EngArgs args;
    t->kind->args(t, (size_t)t->next, &args);
    t->next = t->next + 1 == t->windows ? 0 : t->next + 1;
    return eng_runner_run(&t->runner, &args, err);
}

void eng_training_observe(void *state, const EngTiming *timing, double *values)
{
    EngTraining *t = state;
    double cpu_ns = eng_cpu_ns(timing), flops, moved;
    eng_runner_cost(&t->runner, &flops, &moved);
    values[0] = moved / cpu_ns;
    values[1] = flops / cpu_ns;
    values[2] = cpu_ns / (t->kind->count ? t->kind->count(t) : t->per);
    values[3] = cpu_ns * 1e-3;
    values[4] = eng_wall_ns(timing) * 1e-3;
    values[5] = flops;
    values[6] = moved;
    values[7] = (double)t->bytes;
    if (t->kind->observe) t->kind->observe(t, timing, values);
}

void eng_training_scale_cost(double *values, double share)
{
    static const int of_cost[] = {0, 1, 5, 6}; /* rates, flops and bytes */
    for (size_t i = 0; i < sizeof of_cost / sizeof *of_cost; i++) values[of_cost[i]] *= share;
}

/* ---- comparison with oracles ---- */

double *eng_doubles(EngOracle *oracle, size_t n)
{
    double *block = NULL;
    if (oracle->n_blocks < (int)(sizeof oracle->blocks / sizeof *oracle->blocks))
        block = eng_alloc_array(n, sizeof *block);
    if (!block) {
        oracle->failed = true;
        return NULL;
    }
    return oracle->blocks[oracle->n_blocks++] = block;
}

double *eng_widened(EngOracle *oracle, const float *from, size_t n)
{
    double *to = eng_doubles(oracle, n);
    for (size_t i = 0; to && i < n; i++) to[i] = from[i];
    return to;
}

EngStatus eng_oracle_status(const EngOracle *oracle, EngErr *err)
{
    return oracle->failed ? ENG_FAIL(err, ENG_NO_MEMORY, "no memory for the oracle") : ENG_OK;
}

void eng_oracle_pair(EngOracle *oracle, const float *got, const double *want, const double *errors,
                     size_t n)
{
    if (oracle->n_pairs == ENG_ORACLE_PAIRS) {
        oracle->failed = true;
        return;
    }
    oracle->pairs[oracle->n_pairs].got = got;
    oracle->pairs[oracle->n_pairs].want = want;
    oracle->pairs[oracle->n_pairs].errors = errors;
    oracle->pairs[oracle->n_pairs++].n = n;
}

double *eng_oracle_want(EngOracle *oracle, const float *got, size_t n, double **errors)
{
    double *want = eng_doubles(oracle, n);
    *errors = eng_doubles(oracle, n);
    eng_oracle_pair(oracle, got, want, *errors, n);
    return want;
}

void eng_oracle_compare(EngOracle *oracle, const float *got, const double *want,
                        const double *errors, size_t n)
{
    EngComparison part;
    EngCheck *check = &oracle->check;
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

/* Runs `runner` and compares what it left. */
static EngStatus judge(EngTraining *t, EngRunner *runner, const EngArgs *args, EngOracle *oracle,
                       EngErr *err)
{
    const EngTrainingKind *kind = t->kind;
    EngStatus status = ENG_OK;
    if (kind->expect) status = kind->expect(t, &runner->problem, args, oracle, err);
    if (!status) status = eng_oracle_status(oracle, err);
    if (!status) status = eng_runner_run_whole(runner, args, err);
    for (int i = 0; i < oracle->n_pairs && !status; i++)
        eng_oracle_compare(oracle, oracle->pairs[i].got, oracle->pairs[i].want,
                           oracle->pairs[i].errors, oracle->pairs[i].n);
    if (!status && kind->compare) status = kind->compare(t, &runner->problem, args, oracle, err);
    if (oracle->n_outputs) oracle->check.n_outputs = oracle->n_outputs;
    return status;
}

/* A step, or gradients, from the state that earlier calls left. */
EngStatus eng_training_verify(void *state, EngResidual *residual, EngErr *err)
{
    EngTraining *t = state;
    EngRunner few = {0}, *runner = &t->runner;
    EngOracle oracle = {0};
    EngProblem problem = runner->problem;
    EngArgs args;
    t->kind->args(t, 0, &args);
    if (eng_kernel_unchecked(runner->kernel)) {
        eng_residual_of_roof(residual);
        return eng_runner_run(runner, &args, err);
    }
    EngStatus status = eng_runner_pull(runner, &args, err);
    if (!status && t->kind->few && t->kind->few(t, &problem, &args)) {
        status = eng_runner_open(&few, runner->kernel, &problem, err);
        runner = &few;
    }
    if (!status) status = judge(t, runner, &args, &oracle, err);
    eng_residual_of_check(&oracle.check, "rel", residual);
    eng_runner_close(&few);
    for (int i = 0; i < oracle.n_blocks; i++) eng_free(oracle.blocks[i]);
    return status;
}
