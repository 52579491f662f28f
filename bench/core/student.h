/* Two distributions that small studies need: Student's t and chi-square. */
#ifndef ENG_BENCH_STUDENT_H
#define ENG_BENCH_STUDENT_H

/* P(T > t) with `df` > 0 degrees of freedom; NAN for a t that is NAN. */
double eng_student_upper(double t, double df);
/* The t with P(T > t) = p, for 0 < p < 1. */
double eng_student_quantile_upper(double p, double df);
/* P(X > x) of chi-square, x >= 0; and the x with P(X > x) = p. */
double eng_chi_square_upper(double x, double df);
double eng_chi_square_quantile_upper(double p, double df);

#endif
