/* Projection, one output element at a time; see project.h. */
#include "kernels/ref/project.h"

#include "kernels/ref/fp8.h"

#include <math.h>
#include <string.h>

/* bf16 buffers may be unaligned. */
static double bf16_at(const void *base, size_t i)
{
    uint16_t bits;
    memcpy(&bits, (const uint8_t *)base + 2 * i, sizeof bits);
    return eng_ref_bf16(bits);
}

double eng_ref_project_x(const EngProjectProblem *problem, const EngProjectArgs *args, int64_t t,
                         int i)
{
    size_t at = (size_t)t * (size_t)problem->k + (size_t)i;
    if (problem->x == ENG_BF16) return bf16_at(args->x, at);
    return eng_ref_e4m3(((const uint8_t *)args->x)[at]) *
           eng_ref_e8m0(args->x_scales[at / ENG_SCALE_GROUP]);
}

double eng_ref_project_w(const EngProjectProblem *problem, int j, int i)
{
    size_t at = (size_t)j * (size_t)problem->k + (size_t)i;
    if (problem->weights == ENG_BF16) return bf16_at(problem->w, at);
    size_t tiles_per_row = (size_t)problem->k / ENG_SCALE_GROUP;
    size_t tile = (size_t)j / ENG_SCALE_GROUP * tiles_per_row + (size_t)i / ENG_SCALE_GROUP;
    return eng_ref_e4m3(problem->w[at]) * eng_ref_e8m0(problem->w_scales[tile]);
}

void eng_ref_project_at(const EngProjectProblem *problem, const EngProjectArgs *args, int64_t t,
                        int j, double *value, double *abs_sum)
{
    double sum = 0, sum_of_abs = 0;
    for (int i = 0; i < problem->k; i++) {
        double term = eng_ref_project_x(problem, args, t, i) * eng_ref_project_w(problem, j, i);
        sum += term;
        sum_of_abs += fabs(term);
    }
    *value = sum;
    if (abs_sum) *abs_sum = sum_of_abs;
}

void eng_ref_project(const EngProjectProblem *problem, const EngProjectArgs *args, double *out,
                     double *abs_sums)
{
    for (int64_t t = 0; t < problem->tokens; t++) {
        for (int j = 0; j < problem->n; j++) {
            size_t at = (size_t)t * (size_t)problem->n + (size_t)j;
            eng_ref_project_at(problem, args, t, j, &out[at], abs_sums ? &abs_sums[at] : NULL);
        }
    }
}
