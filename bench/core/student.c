/* Student's t by the regularized incomplete beta function, chi-square by the incomplete gamma
 * function, both as continued fractions or series; quantiles by bisection, since they are asked for
 * a few times a report. See student.h. */
#include "bench/core/student.h"

#include <math.h>
#include <stdbool.h>

#define TERMS 500
#define SMALL 1e-16
#define TINY  1e-300

static double away_from_zero(double x)
{
    return fabs(x) < TINY ? TINY : x;
}

/* One step of Lentz's method: b + a / ... ; true when it has settled. */
static bool lentz(double a, double b, double *c, double *d, double *value)
{
    *d = 1 / away_from_zero(b + a * *d);
    *c = away_from_zero(b + a / *c);
    *value *= *c * *d;
    return fabs(*c * *d - 1) < SMALL;
}

/* I_x(a, b); the fraction converges quickly for x < (a + 1) / (a + b + 2). */
static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
    double log_front = a * log(x) + b * log1p(-x) - (lgamma(a) + lgamma(b) - lgamma(a + b));
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m < TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        lentz(even, 1, &c, &d, &value);
        if (lentz(odd, 1, &c, &d, &value)) break;
    }
    return exp(log_front) * value / a;
}

double eng_student_upper(double t, double df)
{
    if (isnan(t)) return t;
    double tail = incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2;
    return t >= 0 ? tail : 1 - tail;
}

/* P(X > x) for X ~ Gamma(a, 1). */
static double gamma_upper(double a, double x)
{
    if (x <= 0) return 1;
    double front = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (int n = 1; n < TERMS && term > sum * SMALL; n++) sum += term *= x / (a + n);
        return 1 - front * sum;
    }
    double b = x + 1 - a, c = 1 / TINY, d = 1 / away_from_zero(b), value = d;
    for (int n = 1; n < TERMS; n++)
        if (lentz(-n * (n - a), b + 2 * n, &c, &d, &value)) break;
    return front * value;
}

double eng_chi_square_upper(double x, double df)
{
    return gamma_upper(df / 2, x / 2);
}

/* The x in [lo, hi] where a falling function crosses p. */
static double crossing(double (*upper)(double x, double df), double df, double p, double lo,
                       double hi)
{
    for (int i = 0; i < 100; i++) {
        double middle = (lo + hi) / 2;
        if (upper(middle, df) > p)
            lo = middle;
        else
            hi = middle;
    }
    return (lo + hi) / 2;
}

double eng_student_quantile_upper(double p, double df)
{
    double hi = 1;
    if (p > 0.5) return -eng_student_quantile_upper(1 - p, df);
    while (eng_student_upper(hi, df) > p && hi < 1e150) hi *= 2;
    return crossing(eng_student_upper, df, p, 0, hi);
}

double eng_chi_square_quantile_upper(double p, double df)
{
    double hi = df + 1;
    while (eng_chi_square_upper(hi, df) > p && hi < 1e150) hi *= 2;
    return crossing(eng_chi_square_upper, df, p, 0, hi);
}
