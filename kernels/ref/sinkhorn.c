/* Sinkhorn-balanced update, as written; see sinkhorn.h. */
#include "kernels/ref/sinkhorn.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define U 0x1p-24 /* unit roundoff of f32 */

static double row_norm(const double *row, size_t dims)
{
    double squares = 0;
    for (size_t j = 0; j < dims; j++) squares += row[j] * row[j];
    return sqrt(squares);
}

/* Momentum and the look-ahead, and the size of what went into it. */
static void look_ahead(const EngSinkhornProblem *problem, size_t n, const double *grad,
                       double *momentum, double *u, double *sizes)
{
    double beta = problem->beta;
    for (size_t i = 0; i < n; i++) {
        double size = fabs(beta * momentum[i]) + fabs((1 - beta) * grad[i]);
        momentum[i] = beta * momentum[i] + (1 - beta) * grad[i];
        u[i] = beta * momentum[i] + (1 - beta) * grad[i];
        if (sizes) sizes[i] = beta * size + fabs((1 - beta) * grad[i]);
    }
}

static void drop_small_rows(const EngSinkhornProblem *problem, size_t rows, size_t dims, double *u,
                            double *ratios)
{
    double sum = 0;
    for (size_t i = 0; i < rows; i++) sum += row_norm(u + i * dims, dims);
    for (size_t i = 0; i < rows; i++) {
        double norm = row_norm(u + i * dims, dims), mean = sum / (double)rows;
        if (ratios) ratios[i] = mean > 0 ? norm / mean : 0;
        if (norm <= problem->tau * mean) memset(u + i * dims, 0, dims * sizeof *u);
    }
}

/* sizes, where given, are divided by the same norms. */
static void balance_rows(double eps, size_t rows, size_t dims, double *u, double *sizes)
{
    for (size_t i = 0; i < rows; i++) {
        double norm = row_norm(u + i * dims, dims) + eps;
        for (size_t j = 0; j < dims; j++) {
            u[i * dims + j] /= norm;
            if (sizes) sizes[i * dims + j] /= norm;
        }
    }
}

static void balance_columns(double eps, size_t rows, size_t dims, double *u, double *sizes)
{
    for (size_t j = 0; j < dims; j++) {
        double squares = 0;
        for (size_t i = 0; i < rows; i++) squares += u[i * dims + j] * u[i * dims + j];
        double norm = sqrt(squares) + eps;
        for (size_t i = 0; i < rows; i++) {
            u[i * dims + j] /= norm;
            if (sizes) sizes[i * dims + j] /= norm;
        }
    }
}

/* With scale vectors each norm is a fresh function of the other vector: errors add up over the
 * steps, one sum over a row or a column each. Columns are summed in blocks of 1024 rows at most. */
static double scale_error(const EngSinkhornProblem *problem, size_t rows)
{
    double column = rows < 1024 ? (double)rows : 1024;
    return U * problem->balance * (problem->row_dims / 2.0 + column / 2 + 8);
}

void eng_ref_sinkhorn_step(const EngSinkhornProblem *problem, int64_t rows, const double *grad,
                           double *momentum, double *step, double *ratios, double *errors)
{
    size_t dims = (size_t)problem->row_dims, m = (size_t)rows;
    double relative = scale_error(problem, m), root = sqrt(problem->row_dims);
    double *sizes = errors; /* the same array, until its last use */
    look_ahead(problem, m * dims, grad, momentum, step, sizes);
    drop_small_rows(problem, m, dims, step, ratios);
    for (int q = 1; q <= problem->balance; q++) {
        if (q % 2)
            balance_rows(problem->eps, m, dims, step, sizes);
        else
            balance_columns(problem->eps, m, dims, step, sizes);
    }
    for (size_t i = 0; i < m * dims; i++) {
        step[i] *= root;
        /* A row that was dropped has sizes divided by eps, and a step of exactly 0. A stored
         * momentum carries the roundings of some 1 / (1 - beta) steps. */
        if (errors) errors[i] = step[i] == 0 ? 0 : 64 * U * root * sizes[i];
        if (errors) errors[i] += relative * fabs(step[i]);
    }
}

bool eng_ref_sinkhorn(const EngSinkhornProblem *problem, double *w, const double *grad,
                      double *momentum, double rate, double *ratios, double *errors)
{
    size_t dims = (size_t)problem->row_dims, n = (size_t)problem->rows * dims;
    const int64_t whole[] = {0, problem->rows};
    const int64_t *bounds = problem->bounds ? problem->bounds : whole;
    double *step = eng_alloc_array(n, sizeof *step), scale = problem->gamma * rate;
    if (!step) return false;
    for (int g = 0; g < (problem->bounds ? problem->n_groups : 1); g++) {
        size_t from = (size_t)bounds[g] * dims;
        eng_ref_sinkhorn_step(problem, bounds[g + 1] - bounds[g], grad + from, momentum + from,
                              step + from, ratios ? ratios + bounds[g] : NULL,
                              errors ? errors + from : NULL);
    }
    for (size_t i = 0; i < n; i++) {
        w[i] -= scale * step[i];
        if (errors) errors[i] = scale * errors[i] + 4 * U * fabs(scale * step[i]) + U * fabs(w[i]);
    }
    eng_free(step);
    return true;
}
