/* SGD with momentum: one pass over weights, gradients and momentum, cut among threads. */
#include "kernels/cpu/common.h"
#include "kernels/cpu/optimizers.h"

#include <omp.h>

EngStatus eng_cpu_optimizer_supports(const EngProblem *problem, int64_t n, int64_t each,
                                     EngErr *why)
{
    if (problem->threads < 1)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "threads = %d, must be 1 or more", problem->threads);
    if (n < 0 || each < 1 || n > PTRDIFF_MAX / (int64_t)sizeof(float) / each)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%lld x %lld weights: out of range", (long long)n,
                        (long long)each);
    return ENG_OK;
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    return eng_cpu_optimizer_supports(problem, problem->u.sgd.n, 1, why);
}

static void cost_of(const EngProblem *problem, EngCost *cost)
{
    const EngSgdProblem *p = &problem->u.sgd;
    double n = (double)p->n, arrays = p->momentum > 0 ? 2 : 1;
    cost->flops = n * (p->momentum > 0 ? 6 : 4);
    cost->read_bytes = 4 * n * (arrays + 1);
    cost->write_bytes = 4 * n * arrays;
}

ENG_CLONES static void step_plain(const EngSgdProblem *p, const EngSgdArgs *a, int64_t from,
                                  int64_t to)
{
    float *restrict w = a->w;
    const float *restrict grad = a->grad;
    float decay = p->decay, rate = a->rate;
    for (int64_t i = from; i < to; i++) w[i] -= rate * (grad[i] + decay * w[i]);
}

ENG_CLONES static void step_momentum(const EngSgdProblem *p, const EngSgdArgs *a, int64_t from,
                                     int64_t to)
{
    float *restrict w = a->w, *restrict buffer = a->buffer;
    const float *restrict grad = a->grad;
    float decay = p->decay, rate = a->rate, momentum = p->momentum;
    bool nesterov = p->nesterov;
    for (int64_t i = from; i < to; i++) {
        float g = grad[i] + decay * w[i], b = momentum * buffer[i] + g;
        buffer[i] = b;
        w[i] -= rate * (nesterov ? g + momentum * b : b);
    }
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngSgdProblem *p = &problem->u.sgd;
    const EngSgdArgs *a = &args->u.sgd;
    int threads = problem->threads;
    (void)opaque;
    (void)err;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(p->n, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        if (p->momentum > 0)
            step_momentum(p, a, from, to);
        else
            step_plain(p, a, from, to);
    }
    return ENG_OK;
}

const EngKernel eng_cpu_sgd_portable = {
    .op = ENG_OP_SGD,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "one pass over weights, gradients and momentum",
    .supports = supports,
    .cost = cost_of,
    .run = run,
};
