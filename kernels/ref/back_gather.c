/* Scatter-add, one row at a time; see back_gather.h. */
#include "kernels/ref/back_gather.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t row_at(const EngBackGatherArgs *args, int64_t t, int c)
{
    return args->rows[t * args->row_stride + c];
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

bool eng_ref_touched(const EngBackGatherProblem *problem, const EngBackGatherArgs *args,
                     int64_t *touched, int64_t *n_touched)
{
    size_t n = 0, distinct = 0, all = (size_t)problem->tokens * (size_t)problem->columns;
    int64_t *sorted = eng_alloc_array(all, sizeof *sorted);
    if (!sorted) return false;
    for (int64_t t = 0; t < problem->tokens; t++)
        for (int c = 0; c < problem->columns; c++) sorted[n++] = row_at(args, t, c);
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t i = 0; i < n; i++)
        if (!i || sorted[i] != sorted[i - 1]) touched[distinct++] = sorted[i];
    *n_touched = (int64_t)distinct;
    eng_free(sorted);
    return true;
}

void eng_ref_back_gather_row(const EngBackGatherProblem *problem, const EngBackGatherArgs *args,
                             int64_t row, double *sum, double *abs_sum, int64_t *n)
{
    size_t dims = (size_t)problem->row_dims;
    memset(sum, 0, dims * sizeof *sum);
    memset(abs_sum, 0, dims * sizeof *abs_sum);
    *n = 0;
    for (int64_t t = 0; t < problem->tokens; t++)
        for (int c = 0; c < problem->columns; c++) {
            if (row_at(args, t, c) != row) continue;
            size_t slot = (size_t)t * (size_t)problem->columns + (size_t)c;
            for (size_t i = 0; i < dims; i++) {
                double term = args->d_out[slot * dims + i];
                sum[i] += term;
                abs_sum[i] += fabs(term);
            }
            ++*n;
        }
}
