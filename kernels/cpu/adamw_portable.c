/* AdamW on an array, and Adam on the touched rows of a table: one pass over weights, gradients and
 * both means, cut among threads. Bias corrections are taken in double precision once a step (once a
 * row where rows count their own).
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/optimizers.h"

#include <math.h>
#include <omp.h>

/* One step's constants: w = keep * w - rate * m / (sqrt(v) * root_scale + eps). */
typedef struct Step {
    float beta1, beta2, eps, keep, rate, root_scale;
} Step;

static Step step_of(float beta1, float beta2, float eps, float decay, float rate, int64_t step)
{
    double correct1 = 1 - pow(beta1, (double)step), correct2 = 1 - pow(beta2, (double)step);
    return (Step){.beta1 = beta1,
                  .beta2 = beta2,
                  .eps = eps,
                  .keep = (float)(1 - (double)rate * decay),
                  .rate = (float)(rate / correct1),
                  .root_scale = (float)(1 / sqrt(correct2))};
}

ENG_CLONES static void step_values(const Step *step, float *restrict w, const float *restrict grad,
                                   float *restrict m, float *restrict v, size_t n)
{
    float beta1 = step->beta1, beta2 = step->beta2, rest1 = 1.0f - beta1, rest2 = 1.0f - beta2;
    float eps = step->eps, keep = step->keep, rate = step->rate, root_scale = step->root_scale;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i], mean = beta1 * m[i] + rest1 * g, square = beta2 * v[i] + rest2 * g * g;
        m[i] = mean;
        v[i] = square;
        w[i] = keep * w[i] - rate * mean / (sqrtf(square) * root_scale + eps);
    }
}

/* ---- AdamW ----
 */

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    return eng_cpu_optimizer_supports(problem, problem->u.adamw.n, 1, why);
}

#define FLOPS 14 /* a value: two means, root, quotient, decay */

static void cost_of(const EngProblem *problem, EngCost *cost)
{
    double n = (double)problem->u.adamw.n;
    *cost = (EngCost){FLOPS * n, 4 * 4 * n, 3 * 4 * n};
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngAdamWProblem *p = &problem->u.adamw;
    const EngAdamWArgs *a = &args->u.adamw;
    Step step = step_of(p->beta1, p->beta2, p->eps, p->decay, a->rate, a->step);
    int threads = problem->threads;
    (void)opaque;
    (void)err;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(p->n, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        step_values(&step, a->w + from, a->grad + from, a->m + from, a->v + from,
                    (size_t)(to - from));
    }
    return ENG_OK;
}

const EngKernel eng_cpu_adamw_portable = {
    .op = ENG_OP_ADAMW,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one pass over weights, gradients and both means",
    .supports = supports,
    .cost = cost_of,
    .run = run,
};

/* ---- sparse Adam ----
 */

static EngStatus sparse_supports(const EngProblem *problem, EngErr *why)
{
    const EngSparseAdamProblem *p = &problem->u.sparse_adam;
    return eng_cpu_optimizer_supports(problem, p->rows, p->row_dims, why);
}

/* Of all rows touched; how many are is the caller's. */
static void sparse_cost(const EngProblem *problem, EngCost *cost)
{
    double n = (double)problem->u.sparse_adam.rows * problem->u.sparse_adam.row_dims;
    *cost = (EngCost){FLOPS * n, 4 * 4 * n, 3 * 4 * n};
}

#define AHEAD 2 /* rows asked for early */

static void fetch_row(const EngSparseAdamArgs *a, size_t row, size_t dims)
{
    for (size_t j = 0; j < dims; j += 16) {
        __builtin_prefetch(a->w + row * dims + j, 1);
        __builtin_prefetch(a->m + row * dims + j, 1);
        __builtin_prefetch(a->v + row * dims + j, 1);
    }
}

static EngStatus sparse_run(void *opaque, const EngProblem *problem, const EngArgs *args,
                            EngErr *err)
{
    const EngSparseAdamProblem *p = &problem->u.sparse_adam;
    const EngSparseAdamArgs *a = &args->u.sparse_adam;
    size_t dims = (size_t)p->row_dims;
    Step shared = step_of(p->beta1, p->beta2, p->eps, 0, a->rate, a->step);
    int threads = problem->threads;
    (void)opaque;
    (void)err;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < a->n_touched; i++) {
        size_t row = (size_t)a->touched[i], at = row * dims;
        Step step = shared;
        if (i + AHEAD < a->n_touched) fetch_row(a, (size_t)a->touched[i + AHEAD], dims);
        if (a->row_steps)
            step = step_of(p->beta1, p->beta2, p->eps, 0, a->rate, ++a->row_steps[row]);
        step_values(&step, a->w + at, a->grad + (size_t)i * dims, a->m + at, a->v + at, dims);
    }
    return ENG_OK;
}

const EngKernel eng_cpu_sparse_adam_portable = {
    .op = ENG_OP_SPARSE_ADAM,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one pass over the touched rows",
    .supports = sparse_supports,
    .cost = sparse_cost,
    .run = sparse_run,
};
