/* Linear CKA; see cka.h. */
#include "bench/core/cka.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* gram [b, b] = rows of x times its transpose, diagonal zero. */
static void gram_of(const float *x, int d, int b, double *gram)
{
    for (int i = 0; i < b; i++)
        for (int k = 0; k <= i; k++) {
            double dot = 0;
            for (int c = 0; c < d; c++) dot += (double)x[i * d + c] * x[k * d + c];
            gram[i * b + k] = gram[k * b + i] = i == k ? 0 : dot;
        }
}

static double hsic(const double *k, const double *l, int b)
{
    double trace = 0, sum_k = 0, sum_l = 0, cross = 0;
    for (int i = 0; i < b; i++) {
        double row_k = 0, row_l = 0;
        for (int j = 0; j < b; j++) {
            trace += k[i * b + j] * l[i * b + j]; /* both are symmetric */
            row_k += k[i * b + j];
            row_l += l[i * b + j];
        }
        sum_k += row_k;
        sum_l += row_l;
        cross += row_k * row_l; /* 1'KL1 */
    }
    double m = b;
    return (trace + sum_k * sum_l / ((m - 1) * (m - 2)) - 2 / (m - 2) * cross) / (m * (m - 3));
}

EngStatus eng_cka(const float *x, int dx, const float *y, int dy, int64_t n, int batch, double *cka,
                  EngErr *err)
{
    double *k = NULL, *l = NULL, both = 0, of_x = 0, of_y = 0;
    if (batch < 4 || n < batch)
        return ENG_FAIL(err, ENG_USAGE, "likeness of %lld rows in batches of %d: 4 rows at least",
                        (long long)n, batch);
    size_t cells = (size_t)batch * (size_t)batch;
    EngStatus status = eng_alloc_or((void **)&k, cells, sizeof *k, "likeness", err);
    if (!status) status = eng_alloc_or((void **)&l, cells, sizeof *l, "likeness", err);
    for (int64_t at = 0; !status && at + batch <= n; at += batch) {
        gram_of(x + at * dx, dx, batch, k);
        gram_of(y + at * dy, dy, batch, l);
        both += hsic(k, l, batch);
        of_x += hsic(k, k, batch);
        of_y += hsic(l, l, batch);
    }
    *cka = of_x > 0 && of_y > 0 ? both / sqrt(of_x * of_y) : NAN;
    eng_free(k);
    eng_free(l);
    return status;
}
