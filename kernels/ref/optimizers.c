/* Optimizers, one weight at a time; see optimizers.h. */
#include "kernels/ref/optimizers.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define U 0x1p-24 /* unit roundoff of f32 */

void eng_ref_sgd(const EngSgdProblem *problem, double *w, const double *grad, double *buffer,
                 double rate, double *errors)
{
    double momentum = problem->momentum;
    for (int64_t i = 0; i < problem->n; i++) {
        double g = grad[i] + problem->decay * w[i], step = g;
        double size = fabs(grad[i]) + fabs(problem->decay * w[i]);
        if (buffer) {
            size += fabs(momentum * buffer[i]);
            buffer[i] = momentum * buffer[i] + g;
            step = problem->nesterov ? g + momentum * buffer[i] : buffer[i];
        }
        w[i] -= rate * step;
        if (errors) errors[i] = 8 * U * rate * 2 * size + U * fabs(w[i]);
    }
}

typedef struct Adam {
    double beta1, beta2, eps, decay, rate;
    double correct1, correct2; /* 1 - beta^step */
} Adam;

static double correction(double beta, int64_t step)
{
    return 1 - pow(beta, (double)step);
}

static void adam(const Adam *a, double *w, double g, double *m, double *v, double *error)
{
    double first = (1 - a->beta1) * g, size = fabs(a->beta1 * *m) + fabs(first);
    *m = a->beta1 * *m + first;
    *v = a->beta2 * *v + (1 - a->beta2) * g * g;
    double root = sqrt(*v / a->correct2) + a->eps;
    double step = a->rate / a->correct1 / root;
    *w = *w * (1 - a->rate * a->decay) - step * *m;
    if (error)
        *error = step * (4 * U * size + 0x1p-149) + 16 * U * fabs(step * *m) + 3 * U * fabs(*w);
}

void eng_ref_adamw(const EngAdamWProblem *problem, double *w, const double *grad, double *m,
                   double *v, double rate, int64_t step, double *errors)
{
    Adam a = {problem->beta1,
              problem->beta2,
              problem->eps,
              problem->decay,
              rate,
              correction(problem->beta1, step),
              correction(problem->beta2, step)};
    for (int64_t i = 0; i < problem->n; i++)
        adam(&a, &w[i], grad[i], &m[i], &v[i], errors ? &errors[i] : NULL);
}

void eng_ref_sparse_adam(const EngSparseAdamProblem *problem, double *w, const int64_t *touched,
                         int64_t n_touched, const double *grad, double *m, double *v,
                         int32_t *row_steps, double rate, int64_t step, double *errors)
{
    size_t dims = (size_t)problem->row_dims;
    if (errors) memset(errors, 0, (size_t)problem->rows * dims * sizeof *errors);
    for (int64_t n = 0; n < n_touched; n++) {
        size_t row = (size_t)touched[n];
        int64_t steps = row_steps ? ++row_steps[row] : step;
        Adam a = {problem->beta1,
                  problem->beta2,
                  problem->eps,
                  0,
                  rate,
                  correction(problem->beta1, steps),
                  correction(problem->beta2, steps)};
        for (size_t i = 0; i < dims; i++) {
            size_t at = row * dims + i;
            adam(&a, &w[at], grad[(size_t)n * dims + i], &m[at], &v[at],
                 errors ? &errors[at] : NULL);
        }
    }
}

/* ---- Muon -------------------------------------------------------------------------------------
 */

/* c [m, n] = a [m, k] . b [k, n], or b [n, k] transposed. */
static void multiply(const double *a, const double *b, double *c, size_t m, size_t n, size_t k,
                     bool transposed)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++)
                sum += a[i * k + l] * (transposed ? b[j * k + l] : b[l * n + j]);
            c[i * n + j] = sum;
        }
}

/* The Newton-Schulz iteration: x [rows, cols] in place. False: no memory. */
static bool orthogonalise(double *x, int rows, int cols, int steps)
{
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    size_t m = (size_t)rows, n = (size_t)cols;
    double *work = eng_alloc_array(2 * m * m + m * n, sizeof *work);
    if (!work) return false;
    double *gram = work, *mix = work + m * m, *next = work + 2 * m * m, squares = 0;
    for (size_t i = 0; i < m * n; i++) squares += x[i] * x[i];
    for (size_t i = 0; i < m * n; i++) x[i] /= sqrt(squares) + 1e-7;
    for (int step = 0; step < steps; step++) {
        multiply(x, x, gram, m, m, n, true);
        multiply(gram, gram, mix, m, m, m, false);
        for (size_t i = 0; i < m * m; i++) mix[i] = b * gram[i] + c * mix[i];
        multiply(mix, x, next, m, n, m, false);
        for (size_t i = 0; i < m * n; i++) x[i] = a * x[i] + next[i];
    }
    eng_free(work);
    return true;
}

bool eng_ref_muon(const EngMuonProblem *problem, double *w, const double *grad, double *buffer,
                  double rate, double *errors)
{
    size_t n = (size_t)problem->rows * (size_t)problem->cols;
    int largest = problem->rows > problem->cols ? problem->rows : problem->cols;
    double step = rate * problem->rms * sqrt(largest), momentum = problem->momentum;
    double grown = U * 4 * sqrt(problem->rows + problem->cols) * pow(3.4445, problem->ns_steps);
    double *x = eng_alloc_array(n, sizeof *x);
    if (!x) return false;
    bool ok = true;
    for (int64_t matrix = 0; ok && matrix < problem->count; matrix++) {
        size_t at = (size_t)matrix * n;
        for (size_t i = 0; i < n; i++) {
            buffer[at + i] = momentum * buffer[at + i] + grad[at + i];
            x[i] = momentum * buffer[at + i] + grad[at + i];
        }
        ok = orthogonalise(x, problem->rows, problem->cols, problem->ns_steps);
        for (size_t i = 0; ok && i < n; i++) {
            w[at + i] = w[at + i] * (1 - rate * problem->decay) - step * x[i];
            if (errors) errors[at + i] = step * grown + 4 * U * fabs(w[at + i]);
        }
    }
    eng_free(x);
    return ok;
}
