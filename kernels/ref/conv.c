/* Short convolution, one channel at a time; see conv.h. */
#include "kernels/ref/conv.h"

#include <math.h>

static int history_of(const EngConvProblem *problem)
{
    return (problem->kernel - 1) * problem->dilation;
}

/* rmsnorm of channel i of the branch that starts at `branch`, or the state's value before t = 0. */
static double normalised(const EngConvProblem *problem, const float *value, const float *state,
                         int64_t t, int stream, int i)
{
    size_t hidden = (size_t)problem->hidden;
    size_t width = (size_t)problem->streams * hidden;
    size_t channel = (size_t)stream * hidden + (size_t)i;
    if (t < 0) return state[(size_t)(t + history_of(problem)) * width + channel];
    const float *branch = value + (size_t)t * width + (size_t)stream * hidden;
    double squares = 0;
    for (size_t j = 0; j < hidden; j++) squares += (double)branch[j] * branch[j];
    return branch[i] / sqrt(squares / problem->hidden + problem->eps) *
           problem->norm_weight[channel];
}

static double silu(double z)
{
    return z / (1 + exp(-z));
}

void eng_ref_conv(const EngConvProblem *problem, const float *value, const float *state_in,
                  double *out, double *state_out, double *abs_sums)
{
    size_t width = (size_t)problem->streams * (size_t)problem->hidden;
    int history = history_of(problem);
    for (int64_t t = 0; t < problem->tokens; t++) {
        for (size_t c = 0; c < width; c++) {
            int stream = (int)(c / (size_t)problem->hidden), i = (int)(c % (size_t)problem->hidden);
            double sum = 0, abs_sum = 0;
            for (int tap = 0; tap < problem->kernel; tap++) {
                int64_t at = t - (int64_t)(problem->kernel - 1 - tap) * problem->dilation;
                double term = problem->conv_weight[c * (size_t)problem->kernel + (size_t)tap] *
                              normalised(problem, value, state_in, at, stream, i);
                sum += term;
                abs_sum += fabs(term);
            }
            out[(size_t)t * width + c] = value[(size_t)t * width + c] + silu(sum);
            if (abs_sums) abs_sums[(size_t)t * width + c] = abs_sum;
        }
    }
    for (int slot = 0; state_out && slot < history; slot++)
        for (size_t c = 0; c < width; c++)
            state_out[(size_t)slot * width + c] =
                normalised(problem, value, state_in, problem->tokens - history + slot,
                           (int)(c / (size_t)problem->hidden), (int)(c % (size_t)problem->hidden));
}

EngLimit eng_ref_conv_limit(const EngConvProblem *problem, double want, double value,
                            double abs_sum)
{
    double u = eng_unit_roundoff(ENG_F32);
    double hidden = problem->hidden, taps = problem->kernel;
    double last = u * (fabs(want) + fabs(value)) + 0x1p-149;
    double pass = 1.1 * u * (hidden / 2 + taps + 12) * abs_sum + last;
    double warn = 1.1 * u * (2 * sqrt(hidden) + 2 * sqrt(taps) + 12) * abs_sum + last;
    return (EngLimit){.warn = fmin(warn, pass), .pass = pass};
}
