/* Backward of the projection in plain loops: what the library is compared with, and what runs
 * without it. Four rows are added at a time, so that a sum is loaded and stored once for four
 * products.
 */
#include "kernels/cpu/back_project.h"
#include "kernels/cpu/common.h"

#include "base/mem.h"

#include <omp.h>

EngStatus eng_cpu_back_project_supports(const EngProblem *problem, EngErr *why)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    EngProblem plain = {.op = ENG_OP_PROJECT, .threads = problem->threads};
    if (p->type != ENG_F32 && p->type != ENG_BF16)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "operand type %s: must be f32 or bf16",
                        eng_dtype_name(p->type));
    plain.u.project = (EngProjectProblem){.tokens = p->tokens,
                                          .n = p->n,
                                          .k = p->k,
                                          .x = ENG_BF16,
                                          .weights = ENG_BF16,
                                          .out = ENG_F32};
    return eng_cpu_project_supports(&plain, why);
}

void eng_cpu_back_project_cost(const EngProblem *problem, EngCost *cost)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    double m = (double)p->tokens, n = p->n, k = p->k;
    cost->flops = 4 * m * n * k;
    cost->read_bytes = 4 * (m * n + m * k + 2 * n * k); /* d_w is added to */
    cost->write_bytes = 4 * (m * k + n * k);
}

ENG_CLONES static void add_row(const float *restrict from, size_t n, float *restrict sum)
{
    for (size_t i = 0; i < n; i++) sum[i] += from[i];
}

void eng_cpu_back_project_bias(const EngProblem *problem, const EngBackProjectArgs *args)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    size_t n = (size_t)p->n;
    int threads = problem->threads;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(p->n, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t t = 0; t < p->tokens; t++)
            add_row(args->d_out + (size_t)t * n + from, (size_t)(to - from), args->d_bias + from);
    }
}

/* sum += a[0] * rows[0] + a[1] * rows[1] + .. of up to four rows, in order. */
ENG_CLONES static void add_four(const float *restrict a, size_t a_step, const float *restrict rows,
                                size_t row_step, size_t n, float *restrict sum)
{
    float a0 = a[0], a1 = a[a_step], a2 = a[2 * a_step], a3 = a[3 * a_step];
    const float *r1 = rows + row_step, *r2 = r1 + row_step, *r3 = r2 + row_step;
    for (size_t i = 0; i < n; i++) {
        float s = sum[i] + a0 * rows[i];
        s += a1 * r1[i];
        s += a2 * r2[i];
        sum[i] = s + a3 * r3[i];
    }
}

ENG_CLONES static void add_one(float a, const float *restrict row, size_t n, float *restrict sum)
{
    for (size_t i = 0; i < n; i++) sum[i] += a * row[i];
}

/* sum[n] += over `count` of a[i * a_step] * rows[i * n ..]. */
static void add_weighted(const float *a, size_t a_step, const float *rows, size_t count, size_t n,
                         float *sum)
{
    size_t i = 0;
    for (; i + 4 <= count; i += 4) add_four(a + i * a_step, a_step, rows + i * n, n, n, sum);
    for (; i < count; i++) add_one(a[i * a_step], rows + i * n, n, sum);
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    const EngBackProjectArgs *a = &args->u.back_project;
    size_t n = (size_t)p->n, k = (size_t)p->k, tokens = (size_t)p->tokens;
    int threads = problem->threads;
    (void)opaque;
    (void)err;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static) nowait
        for (int64_t t = 0; t < p->tokens; t++) {
            if (!a->d_x) continue;
            float *d_x = a->d_x + (size_t)t * k;
            memset(d_x, 0, k * sizeof *d_x);
            add_weighted(a->d_out + (size_t)t * n, 1, a->w, n, k, d_x);
        }
#pragma omp for schedule(static)
        for (int j = 0; j < p->n; j++)
            add_weighted(a->d_out + j, n, a->x, tokens, k, a->d_w + (size_t)j * k);
    }
    if (a->d_bias) eng_cpu_back_project_bias(problem, a);
    return ENG_OK;
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cpu_back_project_supports(problem, why);
    if (!status && problem->u.back_project.type != ENG_F32)
        status = ENG_FAIL(why, ENG_UNSUPPORTED, "f32 operands only");
    return status;
}

const EngKernel eng_cpu_back_project_portable = {
    .op = ENG_OP_BACK_PROJECT,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "plain loops over rows, f32",
    .supports = supports,
    .cost = eng_cpu_back_project_cost,
    .run = run,
};
