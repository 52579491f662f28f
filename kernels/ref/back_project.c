/* Backward of the projection; see back_project.h. */
#include "kernels/ref/back_project.h"

#include "kernels/ref/fp8.h"

#include <math.h>

static double operand(const EngBackProjectProblem *problem, const float *base, size_t at)
{
    return problem->type == ENG_BF16 ? eng_ref_bf16(eng_ref_bf16_round(base[at])) : base[at];
}

static size_t index_of(int64_t row, int columns, int64_t column)
{
    return (size_t)row * (size_t)columns + (size_t)column;
}

void eng_ref_back_project_x(const EngBackProjectProblem *problem, const EngBackProjectArgs *args,
                            int64_t t, int i, double *value, double *abs_sum)
{
    *value = *abs_sum = 0;
    for (int j = 0; j < problem->n; j++) {
        double term = operand(problem, args->d_out, index_of(t, problem->n, j)) *
                      operand(problem, args->w, index_of(j, problem->k, i));
        *value += term;
        *abs_sum += fabs(term);
    }
}

void eng_ref_back_project_w(const EngBackProjectProblem *problem, const EngBackProjectArgs *args,
                            int j, int i, double *value, double *abs_sum)
{
    *value = *abs_sum = 0;
    for (int64_t t = 0; t < problem->tokens; t++) {
        double term = operand(problem, args->d_out, index_of(t, problem->n, j)) *
                      operand(problem, args->x, index_of(t, problem->k, i));
        *value += term;
        *abs_sum += fabs(term);
    }
}

void eng_ref_back_project_bias(const EngBackProjectProblem *problem, const EngBackProjectArgs *args,
                               int j, double *value, double *abs_sum)
{
    *value = *abs_sum = 0;
    for (int64_t t = 0; t < problem->tokens; t++) {
        double term = args->d_out[index_of(t, problem->n, j)];
        *value += term;
        *abs_sum += fabs(term);
    }
}
