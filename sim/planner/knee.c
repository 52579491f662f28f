/* Soft minimum of two asymptotes; see knee.h. */
#include "sim/planner/knee.h"

#include <math.h>

double eng_knee_rate(double outstanding, double latency, double most, double exponent)
{
    double idle = outstanding / latency, low = fmin(idle, most), high = fmax(idle, most);
    if (isinf(exponent)) return low;
    /* Written around the lesser rate, so that powers stay below 1. */
    return low * pow(1 + pow(low / high, exponent), -1 / exponent);
}

double eng_knee_outstanding(double latency, double most, double exponent, double share)
{
    if (isinf(exponent)) return share * latency * most;
    return latency * most * pow(pow(share, -exponent) - 1, -1 / exponent);
}
