/* Soft minimum of two asymptotes; see knee.h. */
#include "sim/planner/knee.h"

#include <math.h>

#define LEAST_EXPONENT 0.25
#define MOST_EXPONENT  64.0

double eng_knee_rate(double outstanding, double latency, double most, double exponent)
{
    double idle = outstanding / latency, low = fmin(idle, most), high = fmax(idle, most);
    if (isinf(exponent)) return low;
    /* Written around the lesser rate, so that powers stay below 1. */
    return low * pow(1 + pow(low / high, exponent), -1 / exponent);
}

EngStatus eng_knee_fit(double latency, double most, double outstanding, double rate,
                       double *exponent, EngErr *err)
{
    double low = LEAST_EXPONENT, high = MOST_EXPONENT;
    if (!(rate > eng_knee_rate(outstanding, latency, most, low) &&
          rate < eng_knee_rate(outstanding, latency, most, high)))
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "a rate of %g/s with %g requests tells no knee between %g/s and %g/s", rate,
                        outstanding, outstanding / latency, most);
    for (int i = 0; i < 100; i++) {
        *exponent = (low + high) / 2;
        if (eng_knee_rate(outstanding, latency, most, *exponent) < rate)
            low = *exponent;
        else
            high = *exponent;
    }
    return ENG_OK;
}

double eng_knee_outstanding(double latency, double most, double exponent, double share)
{
    if (isinf(exponent)) return share * latency * most;
    return latency * most * pow(pow(share, -exponent) - 1, -1 / exponent);
}
