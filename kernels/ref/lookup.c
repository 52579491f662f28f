/* Look-up, one output element at a time; see lookup.h. */
#include "kernels/ref/lookup.h"

#include "kernels/ref/fp8.h"
#include "kernels/ref/gather.h"
#include "kernels/ref/project.h"

#include <math.h>

/* Input i of token t. */
static double input(const EngLookupProblem *problem, const EngLookupArgs *args, int64_t t, int i)
{
    const EngTable *table = &problem->table;
    int column = i / table->row_dims;
    double value =
        eng_ref_table_value(table, args->rows[t * args->row_stride + column], i % table->row_dims);
    if (table->format == ENG_ROW_F32 || table->format == ENG_ROW_INT4)
        return eng_ref_bf16(eng_ref_bf16_round(value));
    return value;
}

void eng_ref_lookup_at(const EngLookupProblem *problem, const EngLookupArgs *args, int64_t t, int j,
                       double *value, double *abs_sum)
{
    EngProjectProblem project = {.n = problem->n,
                                 .k = problem->columns * problem->table.row_dims,
                                 .weights = problem->weights,
                                 .w = problem->w,
                                 .w_scales = problem->w_scales};
    double sum = 0, sum_of_abs = 0;
    for (int i = 0; i < project.k; i++) {
        double term = input(problem, args, t, i) * eng_ref_project_w(&project, j, i);
        sum += term;
        sum_of_abs += fabs(term);
    }
    *value = sum;
    if (abs_sum) *abs_sum = sum_of_abs;
}

void eng_ref_lookup(const EngLookupProblem *problem, const EngLookupArgs *args, double *out,
                    double *abs_sums)
{
    for (int64_t t = 0; t < problem->tokens; t++)
        for (int j = 0; j < problem->n; j++) {
            size_t at = (size_t)t * (size_t)problem->n + (size_t)j;
            eng_ref_lookup_at(problem, args, t, j, &out[at], abs_sums ? &abs_sums[at] : NULL);
        }
}
