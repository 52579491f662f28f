/* The gate for training, one stream at a time; see train_gate.h. */
#include "kernels/ref/train_gate.h"

#include "kernels/ref/gate.h"

#include <math.h>
#include <string.h>

#define CLAMP 1e-6
#define U     0x1p-24 /* unit roundoff of f32 */

double eng_ref_gate_slope(EngGateFormula formula, double score)
{
    if (formula != ENG_GATE_PLAIN && fabs(score) < CLAMP) return 0;
    double gate = eng_ref_gate_formula(formula, score);
    double slope = gate * (1 - gate);
    return formula == ENG_GATE_PLAIN ? slope : slope / (2 * sqrt(fabs(score)));
}

/* One (token, stream): where it lies, and what the forward computes. */
typedef struct Stream {
    const double *x, *k, *v, *q_weight, *k_weight;
    size_t x_at, k_at, v_at, w_at; /* first elements in streams, kv, kv and weights */
    double rx, rk;
    EngRefGate gate;
} Stream;

static Stream stream_of(const EngTrainGateProblem *problem, const EngRefGateInputs *inputs,
                        int64_t t, int s)
{
    size_t hidden = (size_t)problem->hidden, streams = (size_t)problem->streams;
    Stream one = {.x_at = ((size_t)t * streams + (size_t)s) * hidden,
                  .k_at = ((size_t)t * (streams + 1) + (size_t)s) * hidden,
                  .v_at = ((size_t)t * (streams + 1) + streams) * hidden,
                  .w_at = (size_t)s * hidden};
    one.x = inputs->streams + one.x_at;
    one.k = inputs->kv + one.k_at;
    one.v = inputs->kv + one.v_at;
    one.q_weight = inputs->q_weight + one.w_at;
    one.k_weight = inputs->k_weight + one.w_at;
    EngRefGateSums sums = {0, 0, 0, 0};
    for (size_t i = 0; i < hidden; i++)
        eng_ref_gate_add(&sums, one.x[i], one.q_weight[i] * one.k_weight[i], one.k[i]);
    one.rx = 1 / sqrt(sums.xx / problem->hidden + problem->eps);
    one.rk = 1 / sqrt(sums.kk / problem->hidden + problem->eps);
    one.gate = eng_ref_gate_finish(&sums, problem->hidden, problem->eps, problem->formula);
    return one;
}

static bool is_dead(const EngRefGateInputs *inputs, int64_t t)
{
    return inputs->dead && inputs->dead[t];
}

static EngGateProblem limits_of(const EngTrainGateProblem *problem)
{
    return (EngGateProblem){.streams = problem->streams,
                            .hidden = problem->hidden,
                            .formula = problem->formula,
                            .eps = problem->eps};
}

static double score_error(const EngTrainGateProblem *problem, const EngRefGate *gate)
{
    EngGateProblem plain = limits_of(problem);
    return eng_ref_gate_score_limit(&plain, gate).pass;
}

static double gate_error(const EngTrainGateProblem *problem, const EngRefGate *gate)
{
    EngGateProblem plain = limits_of(problem);
    return eng_ref_gate_gate_limit(&plain, gate).pass;
}

/* ---- forward ----------------------------------------------------------------------------------
 */

void eng_ref_train_gate(const EngTrainGateProblem *problem, const EngRefGateInputs *inputs,
                        double *out, double *kept, double *out_errors, double *kept_errors)
{
    size_t hidden = (size_t)problem->hidden;
    for (int64_t t = 0; t < problem->tokens; t++) {
        for (int s = 0; s < problem->streams; s++) {
            size_t slot = ((size_t)t * (size_t)problem->streams + (size_t)s) * ENG_GATE_KEPT;
            Stream one = stream_of(problem, inputs, t, s);
            bool dead = is_dead(inputs, t);
            double gate = dead ? 0 : one.gate.gate;
            double error = dead ? 0 : gate_error(problem, &one.gate);
            double rms_error = U * ((double)hidden / 2 + 8);
            double values[ENG_GATE_KEPT] = {one.gate.score, gate, one.rx, one.rk};
            double limits[ENG_GATE_KEPT] = {score_error(problem, &one.gate), error,
                                            one.rx * rms_error, one.rk * rms_error};
            for (int i = 0; i < ENG_GATE_KEPT; i++) {
                if (kept) kept[slot + (size_t)i] = dead ? 0 : values[i];
                if (kept_errors) kept_errors[slot + (size_t)i] = dead ? 0 : limits[i];
            }
            for (size_t i = 0; i < hidden; i++) {
                double want = one.x[i] + gate * one.v[i];
                if (out) out[one.x_at + i] = want;
                if (out_errors)
                    out_errors[one.x_at + i] =
                        dead ? 0
                             : error * fabs(one.v[i]) + U * (fabs(gate * one.v[i]) + fabs(want));
            }
        }
    }
}

/* ---- backward ---------------------------------------------------------------------------------
 */

/* How far the slope moves when the score moves by `error`. On each side of the clamp it falls with
 * |score|, so its extremes over the span lie at the ends, or at the clamp where that is inside. */
static double slope_error(EngGateFormula formula, double score, double error)
{
    double slope = eng_ref_gate_slope(formula, score);
    double least = fmax(fabs(score) - error, 0), most = fabs(score) + error;
    double sign = score < 0 ? -1 : 1;
    double near = eng_ref_gate_slope(formula, sign * least);
    double far = eng_ref_gate_slope(formula, sign * most);
    double span = fmax(fabs(near - slope), fabs(far - slope));
    if (formula != ENG_GATE_PLAIN && least <= CLAMP && most >= CLAMP)
        span = fmax(span, fmax(slope, eng_ref_gate_slope(formula, CLAMP) - slope));
    return span + 16 * U * slope;
}

/* d loss / d score of one stream, its error, and the factors that both gradients share. */
typedef struct Flow {
    double d_score, error;
    double scale; /* d score / d (sum of x w k) */
} Flow;

static Flow flow_of(const EngTrainGateProblem *problem, const Stream *one, const double *d_out)
{
    double d_gate = 0, abs_gate = 0, n = problem->hidden;
    for (int i = 0; i < problem->hidden; i++) {
        d_gate += d_out[i] * one->v[i];
        abs_gate += fabs(d_out[i] * one->v[i]);
    }
    double slope = eng_ref_gate_slope(problem->formula, one->gate.score);
    double span = slope_error(problem->formula, one->gate.score, score_error(problem, &one->gate));
    double sum_error = U * (n + 2) * abs_gate;
    return (Flow){.d_score = d_gate * slope,
                  .error = fabs(d_gate) * span + sum_error * (slope + span),
                  .scale = one->rx * one->rk / sqrt(n)};
}

/* Gradient of a normalised vector's element: of x with rstd rx and partner p = w k, or the other
 * way round. */
static void add_element(const EngTrainGateProblem *problem, const Flow *flow,
                        const EngRefGate *gate, double own, double rstd, double partner,
                        double *gradient, double *error)
{
    double n = problem->hidden;
    double inner = own * gate->score * rstd * rstd / n;
    double abs_inner = fabs(own) * (gate->abs_score + fabs(gate->score)) * rstd * rstd / n;
    double step = flow->scale * partner - inner;
    *gradient += flow->d_score * step;
    *error += flow->error * fabs(step) +
              fabs(flow->d_score) * U * (1.5 * n + 32) * (fabs(flow->scale * partner) + abs_inner);
}

static void back_stream(const EngTrainGateProblem *problem, const Stream *one, const double *d_out,
                        const EngRefGateGradients *g, const EngRefGateGradients *e)
{
    Flow flow = flow_of(problem, one, d_out + one->x_at);
    double gate_limit = gate_error(problem, &one->gate);
    double tokens = (double)problem->tokens, n = problem->hidden;
    for (size_t i = 0; i < (size_t)problem->hidden; i++) {
        double go = d_out[one->x_at + i], q = one->q_weight[i], kw = one->k_weight[i], w = q * kw;
        double dx = go, ex = U * fabs(go), dk = 0, ek = 0;
        add_element(problem, &flow, &one->gate, one->x[i], one->rx, one->k[i] * w, &dx, &ex);
        add_element(problem, &flow, &one->gate, one->k[i], one->rk, one->x[i] * w, &dk, &ek);
        double xk = one->x[i] * one->k[i] * flow.scale, dw = flow.d_score * xk;
        double ew = flow.error * fabs(xk) + U * (n + tokens + 32) * fabs(dw);
        g->streams[one->x_at + i] = dx;
        g->kv[one->k_at + i] = dk;
        g->kv[one->v_at + i] += go * one->gate.gate;
        g->q_weight[one->w_at + i] += dw * kw;
        g->k_weight[one->w_at + i] += dw * q;
        if (!e) continue;
        e->streams[one->x_at + i] = ex + U * fabs(dx);
        e->kv[one->k_at + i] = ek;
        e->kv[one->v_at + i] +=
            fabs(go) * gate_limit + U * (problem->streams + 2) * fabs(go * one->gate.gate);
        e->q_weight[one->w_at + i] += ew * fabs(kw);
        e->k_weight[one->w_at + i] += ew * fabs(q);
    }
}

static void clear(const EngTrainGateProblem *problem, const EngRefGateGradients *g)
{
    size_t width = (size_t)problem->streams * (size_t)problem->hidden;
    memset(g->kv, 0, (size_t)problem->tokens * (width + (size_t)problem->hidden) * sizeof(double));
    memset(g->q_weight, 0, width * sizeof(double));
    memset(g->k_weight, 0, width * sizeof(double));
}

void eng_ref_back_gate(const EngTrainGateProblem *problem, const EngRefGateInputs *inputs,
                       const double *d_out, const EngRefGateGradients *gradients,
                       const EngRefGateGradients *errors)
{
    clear(problem, gradients);
    if (errors) clear(problem, errors);
    for (int64_t t = 0; t < problem->tokens; t++) {
        for (int s = 0; s < problem->streams; s++) {
            Stream one = stream_of(problem, inputs, t, s);
            if (!is_dead(inputs, t)) {
                back_stream(problem, &one, d_out, gradients, errors);
                continue;
            }
            size_t bytes = (size_t)problem->hidden * sizeof(double);
            memcpy(gradients->streams + one.x_at, d_out + one.x_at, bytes);
            if (errors) memset(errors->streams + one.x_at, 0, bytes);
        }
    }
}
