/* Rate of a device with N requests under way: N / L while it is idle, X_max when it is full, and in
 * between less than either. A soft minimum joins the two asymptotes,
 *   X(N) = ((L / N)^s + (1 / X_max)^s)^(-1/s),
 * with an exponent s that belongs to the device: it is fitted at a point near N = L * X_max
 * (calibration.c) and does not carry over to another device (two drives measured: 1.5 and 2). Past
 * the knee real devices get slower again, which this does not model: recommend no more requests
 * than measured.
 */
#ifndef ENG_SIM_PLANNER_KNEE_H
#define ENG_SIM_PLANNER_KNEE_H

/* Requests per second; latency in s, most in requests/s; exponent INFINITY: the hard minimum. */
double eng_knee_rate(double outstanding, double latency, double most, double exponent);

/* Requests under way that reach a share, in (0, 1), of the most. */
double eng_knee_outstanding(double latency, double most, double exponent, double share);

#endif
