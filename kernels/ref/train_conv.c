/* The short convolution for training, one channel at a time; see train_conv.h. */
#include "kernels/ref/train_conv.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define U 0x1p-24 /* unit roundoff of f32 */

/* First token of the sequence that token t is in, and the first behind it. */
static void sequence_of(const int64_t *starts, int64_t n_seqs, int64_t tokens, int64_t t,
                        int64_t *first, int64_t *end)
{
    *first = 0;
    *end = tokens;
    for (int64_t s = 0; starts && s < n_seqs; s++) {
        if (starts[s] > t || starts[s + 1] <= t) continue;
        *first = starts[s];
        *end = starts[s + 1];
    }
}

static size_t width_of(const EngTrainConvProblem *problem)
{
    return (size_t)problem->streams * (size_t)problem->hidden;
}

/* 1 / rms of (token, stream). */
static double rstd_of(const EngTrainConvProblem *problem, const double *branch)
{
    double squares = 0;
    for (int i = 0; i < problem->hidden; i++) squares += branch[i] * branch[i];
    return 1 / sqrt(squares / problem->hidden + problem->eps);
}

static double normalised(const EngTrainConvProblem *problem, const EngRefConvInputs *inputs,
                         int64_t t, size_t c)
{
    size_t hidden = (size_t)problem->hidden;
    const double *token = inputs->value + (size_t)t * width_of(problem);
    return token[c] * rstd_of(problem, token + c / hidden * hidden) * inputs->norm_weight[c];
}

/* The sum before silu of (t, c), and of absolute terms. */
static double convolve(const EngTrainConvProblem *problem, const EngRefConvInputs *inputs,
                       int64_t t, size_t c, double *abs_sum)
{
    int64_t first, end;
    double sum = 0;
    sequence_of(inputs->starts, inputs->n_seqs, problem->tokens, t, &first, &end);
    *abs_sum = 0;
    for (int tap = 0; tap < problem->kernel; tap++) {
        int64_t at = t - (int64_t)(problem->kernel - 1 - tap) * problem->dilation;
        if (at < first) continue;
        double term = inputs->conv_weight[c * (size_t)problem->kernel + (size_t)tap] *
                      normalised(problem, inputs, at, c);
        sum += term;
        *abs_sum += fabs(term);
    }
    return sum;
}

/* Relative error of a normalised value, and of a sum of taps over its absolute terms. */
static double norm_error(const EngTrainConvProblem *problem)
{
    return U * (problem->hidden / 2.0 + 8);
}

static double sum_error(const EngTrainConvProblem *problem)
{
    return norm_error(problem) + U * (problem->kernel + 1);
}

void eng_ref_train_conv(const EngTrainConvProblem *problem, const EngRefConvInputs *inputs,
                        double *out, double *errors)
{
    size_t width = width_of(problem);
    for (int64_t t = 0; t < problem->tokens; t++)
        for (size_t c = 0; c < width; c++) {
            size_t at = (size_t)t * width + c;
            double abs_sum, sum = convolve(problem, inputs, t, c, &abs_sum);
            double value = inputs->value[at], silu = sum / (1 + exp(-sum));
            out[at] = value + silu;
            if (!errors) continue;
            /* silu has a slope below 1.1; the exponential multiplies its argument's rounding. */
            errors[at] = 1.1 * sum_error(problem) * abs_sum +
                         U * ((8 + 2 * fabs(sum)) * fabs(silu) + fabs(out[at]));
        }
}

/* ---- backward ---------------------------------------------------------------------------------
 */

static double silu_slope(double z)
{
    double s = 1 / (1 + exp(-z));
    return s * (1 + z * (1 - s));
}

typedef struct Pass {
    const EngTrainConvProblem *problem;
    const EngRefConvInputs *inputs;
    const EngRefConvGradients *g, *e;
    double *dz, *ez; /* gradient of the sum before silu, and its error */
} Pass;

/* dz of every (t, c), and the taps' gradients. */
static void back_taps(const Pass *p, const double *d_out)
{
    const EngTrainConvProblem *problem = p->problem;
    size_t width = width_of(problem);
    for (int64_t t = 0; t < problem->tokens; t++) {
        int64_t first, end;
        sequence_of(p->inputs->starts, p->inputs->n_seqs, problem->tokens, t, &first, &end);
        for (size_t c = 0; c < width; c++) {
            size_t at = (size_t)t * width + c;
            double abs_sum, z = convolve(problem, p->inputs, t, c, &abs_sum);
            p->dz[at] = d_out[at] * silu_slope(z);
            /* The slope's own slope is at most 1/2, its value at most 1.1. */
            p->ez[at] = fabs(d_out[at]) *
                        (0.5 * sum_error(problem) * abs_sum + U * (12 + 2 * fabs(z)) * 1.1);
            for (int tap = 0; tap < problem->kernel; tap++) {
                int64_t source = t - (int64_t)(problem->kernel - 1 - tap) * problem->dilation;
                size_t w = c * (size_t)problem->kernel + (size_t)tap;
                if (source < first) continue;
                double n = normalised(problem, p->inputs, source, c);
                p->g->conv_weight[w] += p->dz[at] * n;
                if (p->e)
                    p->e->conv_weight[w] +=
                        fabs(n) *
                        (p->ez[at] + fabs(p->dz[at]) *
                                         (norm_error(problem) + U * ((double)problem->tokens + 4)));
            }
        }
    }
}

/* Gradient of the normalised value of (t, c) from the later tokens that read it. */
static double back_normalised(const Pass *p, int64_t t, size_t c, double *error)
{
    const EngTrainConvProblem *problem = p->problem;
    size_t width = width_of(problem);
    int64_t first, end;
    double sum = 0;
    sequence_of(p->inputs->starts, p->inputs->n_seqs, problem->tokens, t, &first, &end);
    *error = 0;
    for (int tap = 0; tap < problem->kernel; tap++) {
        int64_t reader = t + (int64_t)(problem->kernel - 1 - tap) * problem->dilation;
        if (reader >= end) continue;
        double w = p->inputs->conv_weight[c * (size_t)problem->kernel + (size_t)tap];
        size_t at = (size_t)reader * width + c;
        sum += w * p->dz[at];
        *error += fabs(w) * (p->ez[at] + U * (problem->kernel + 1) * fabs(p->dz[at]));
    }
    return sum;
}

/* One (token, stream): through the norm to its values; dn and en hold `hidden` numbers each. */
static void back_norm(const Pass *p, const double *d_out, int64_t t, int s, double *dn, double *en)
{
    const EngTrainConvProblem *problem = p->problem;
    size_t hidden = (size_t)problem->hidden, c0 = (size_t)s * hidden;
    size_t at = (size_t)t * width_of(problem) + c0;
    const double *v = p->inputs->value + at, *weight = p->inputs->norm_weight + c0;
    double r = rstd_of(problem, v), dot = 0, dot_error = 0, n = problem->hidden;
    for (size_t i = 0; i < hidden; i++) {
        dn[i] = back_normalised(p, t, c0 + i, &en[i]);
        double term = dn[i] * weight[i] * v[i];
        dot += term;
        dot_error += en[i] * fabs(weight[i] * v[i]) + U * (n + 2) * fabs(term);
        p->g->norm_weight[c0 + i] += dn[i] * v[i] * r;
        if (p->e)
            p->e->norm_weight[c0 + i] +=
                fabs(v[i]) * r *
                (en[i] + fabs(dn[i]) * (norm_error(problem) + U * ((double)problem->tokens + 4)));
    }
    for (size_t i = 0; i < hidden; i++) {
        double own = r * weight[i] * dn[i], shared = v[i] * r * r * r / n;
        p->g->value[at + i] = d_out[at + i] + own - shared * dot;
        if (!p->e) continue;
        p->e->value[at + i] = r * fabs(weight[i]) * en[i] + fabs(shared) * dot_error +
                              (3 * norm_error(problem) + 8 * U) * (fabs(own) + fabs(shared * dot)) +
                              2 * U * (fabs(d_out[at + i]) + fabs(p->g->value[at + i]));
    }
}

static void clear(const EngTrainConvProblem *problem, const EngRefConvGradients *g)
{
    size_t width = width_of(problem);
    memset(g->norm_weight, 0, width * sizeof(double));
    memset(g->conv_weight, 0, width * (size_t)problem->kernel * sizeof(double));
}

bool eng_ref_back_conv(const EngTrainConvProblem *problem, const EngRefConvInputs *inputs,
                       const double *d_out, const EngRefConvGradients *gradients,
                       const EngRefConvGradients *errors)
{
    size_t n = (size_t)problem->tokens * width_of(problem), hidden = (size_t)problem->hidden;
    Pass p = {problem, inputs, gradients, errors, NULL, NULL};
    double *work = eng_alloc_array(2, (n + hidden) * sizeof *work);
    if (!work) return false;
    p.dz = work;
    p.ez = work + n;
    clear(problem, gradients);
    if (errors) clear(problem, errors);
    back_taps(&p, d_out);
    for (int64_t t = 0; t < problem->tokens; t++)
        for (int s = 0; s < problem->streams; s++)
            back_norm(&p, d_out, t, s, work + 2 * n, work + 2 * n + hidden);
    eng_free(work);
    return true;
}
