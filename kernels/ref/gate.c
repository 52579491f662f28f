/* Gate and write-back, one stream at a time; see gate.h. */
#include "kernels/ref/gate.h"

#include "kernels/ref/fp8.h"

#include <math.h>
#include <string.h>

static double bf16_at(const uint16_t *base, size_t i)
{
    uint16_t bits;
    memcpy(&bits, (const uint8_t *)base + 2 * i, sizeof bits); /* buffers may be unaligned */
    return eng_ref_bf16(bits);
}

double eng_ref_gate_formula(EngGateFormula formula, double score)
{
    double z = score;
    if (formula != ENG_GATE_PLAIN && !isnan(score)) {
        double root = sqrt(fmax(fabs(score), 1e-6)); /* the clamp lies inside the root */
        z = copysign(root, score);
        if (formula == ENG_GATE_SIGN && score == 0) z = 0;
    }
    return 1 / (1 + exp(-z));
}

static bool is_dead(const EngGateArgs *args, int64_t t)
{
    return args->dead && args->dead[t];
}

/* Where (t, stream) lies in the streams, its key and its value in kv. */
static size_t stream_at(const EngGateProblem *problem, int64_t t, int stream)
{
    return ((size_t)t * (size_t)problem->streams + (size_t)stream) * (size_t)problem->hidden;
}

static size_t kv_at(const EngGateProblem *problem, int64_t t, int stream)
{
    return ((size_t)t * (size_t)(problem->streams + 1) + (size_t)stream) * (size_t)problem->hidden;
}

void eng_ref_gate_add(EngRefGateSums *sums, double x, double w, double k)
{
    sums->xx += x * x;
    sums->kk += k * k;
    sums->dot += x * w * k;
    sums->abs_dot += fabs(x * w * k);
}

EngRefGate eng_ref_gate_finish(const EngRefGateSums *sums, int hidden, double eps,
                               EngGateFormula formula)
{
    double n = hidden;
    double rstd = 1 / sqrt(sums->xx / n + eps) / sqrt(sums->kk / n + eps) / sqrt(n);
    double score = sums->dot * rstd;
    return (EngRefGate){.score = score,
                        .abs_score = sums->abs_dot * rstd,
                        .gate = eng_ref_gate_formula(formula, score)};
}

static EngRefGate gate_of(const EngGateProblem *problem, const EngGateArgs *args, int64_t t,
                          int stream)
{
    size_t hidden = (size_t)problem->hidden, w0 = (size_t)stream * hidden;
    size_t x0 = stream_at(problem, t, stream), k0 = kv_at(problem, t, stream);
    EngRefGateSums sums = {0, 0, 0, 0};
    for (size_t i = 0; i < hidden; i++) {
        double w = bf16_at(problem->q_weight, w0 + i) * bf16_at(problem->k_weight, w0 + i);
        eng_ref_gate_add(&sums, bf16_at(args->streams_in, x0 + i), w, bf16_at(args->kv, k0 + i));
    }
    return eng_ref_gate_finish(&sums, problem->hidden, problem->eps, problem->formula);
}

void eng_ref_gate_token(const EngGateProblem *problem, const EngGateArgs *args, int64_t t,
                        double *out, EngRefGate *gates)
{
    size_t hidden = (size_t)problem->hidden;
    size_t value0 = kv_at(problem, t, problem->streams);
    for (int s = 0; s < problem->streams; s++) {
        EngRefGate gate = {0, 0, 0};
        if (!is_dead(args, t)) gate = gate_of(problem, args, t, s);
        if (gates) gates[s] = gate;
        for (size_t i = 0; out && i < hidden; i++) {
            double x = bf16_at(args->streams_in, stream_at(problem, t, s) + i);
            double add = is_dead(args, t) ? 0 : gate.gate * bf16_at(args->kv, value0 + i);
            out[(size_t)s * hidden + i] = x + add;
        }
    }
}

void eng_ref_gate(const EngGateProblem *problem, const EngGateArgs *args, double *out,
                  EngRefGate *gates)
{
    for (int64_t t = 0; t < problem->tokens; t++)
        eng_ref_gate_token(problem, args, t, out ? out + stream_at(problem, t, 0) : NULL,
                           gates ? gates + (size_t)t * (size_t)problem->streams : NULL);
}

/* Roundings on the way to a score: each of the D products x*w*k takes three (w is itself a rounded
 * product) and D additions follow; the two mean squares err by D + 2 each, halved by the root; a
 * few more for roots, divisions and the last products. */
static double score_error(const EngRefGate *gate, double terms)
{
    double u = eng_unit_roundoff(ENG_F32);
    return u * ((terms + 4) * gate->abs_score + (terms + 16) * fabs(gate->score));
}

EngLimit eng_ref_gate_score_limit(const EngGateProblem *problem, const EngRefGate *gate)
{
    double hidden = problem->hidden;
    double pass = score_error(gate, hidden);
    return (EngLimit){.warn = fmin(score_error(gate, 4 * sqrt(hidden)), pass), .pass = pass};
}

/* How far the gate moves when the score moves by error, plus the roundings of root, exponential and
 * quotient. */
static double gate_span(EngGateFormula formula, const EngRefGate *gate, double error)
{
    if (isinf(gate->score)) return 0; /* the gate is 0 or 1 */
    double up = eng_ref_gate_formula(formula, gate->score + error) - gate->gate;
    double down = gate->gate - eng_ref_gate_formula(formula, gate->score - error);
    /* The exponential multiplies the rounding of its argument by the argument. */
    double z = formula == ENG_GATE_PLAIN ? fabs(gate->score) : sqrt(fabs(gate->score));
    return fmax(up, down) + eng_unit_roundoff(ENG_F32) * (8 + 2 * z) * gate->gate;
}

EngLimit eng_ref_gate_gate_limit(const EngGateProblem *problem, const EngRefGate *gate)
{
    EngLimit score = eng_ref_gate_score_limit(problem, gate);
    return (EngLimit){.warn = gate_span(problem->formula, gate, score.warn),
                      .pass = gate_span(problem->formula, gate, score.pass)};
}

EngLimit eng_ref_gate_out_limit(EngLimit gate_limit, double gate, double x, double value)
{
    double u = eng_unit_roundoff(ENG_F32);
    double want = fabs(x + gate * value);
    double maths = u * (fabs(gate * value) + want);
    double warn = gate_limit.warn * fabs(value) + maths;
    double pass = gate_limit.pass * fabs(value) + maths;
    return (EngLimit){.warn = warn + eng_rounding_error(ENG_BF16, want + warn),
                      .pass = pass + eng_rounding_error(ENG_BF16, want + pass)};
}

static void check_dead(const EngGateProblem *problem, const EngGateArgs *args, size_t at,
                       EngComparison *out)
{
    EngComparison one;
    eng_compare_bits(&one, ENG_BF16, args->streams_out + at, args->streams_in + at,
                     problem->hidden);
    /* A masked token keeps its bits, NaN payloads included. */
    bool same = !memcmp(args->streams_out + at, args->streams_in + at, 2 * (size_t)problem->hidden);
    EngLimit limit = {0, 0};
    eng_residual_add(out, ENG_BF16, same ? 0 : 1 + one.max_abs, 0, limit);
}

void eng_ref_gate_check_token(const EngGateProblem *problem, const EngGateArgs *args, int64_t t,
                              EngComparison *out, EngComparison *gates, EngComparison *scores)
{
    size_t hidden = (size_t)problem->hidden;
    size_t value0 = kv_at(problem, t, problem->streams);
    for (int s = 0; s < problem->streams; s++) {
        size_t at = stream_at(problem, t, s);
        size_t slot = (size_t)t * (size_t)problem->streams + (size_t)s;
        EngRefGate want = {0, 0, 0};
        if (!is_dead(args, t)) want = gate_of(problem, args, t, s);
        EngLimit score_limit = eng_ref_gate_score_limit(problem, &want);
        EngLimit gate_limit = eng_ref_gate_gate_limit(problem, &want);
        if (is_dead(args, t)) score_limit = gate_limit = (EngLimit){0, 0};
        if (scores && args->scores)
            eng_residual_add(scores, ENG_F32, args->scores[slot], want.score, score_limit);
        if (gates && args->gates)
            eng_residual_add(gates, ENG_F32, args->gates[slot], want.gate, gate_limit);
        if (out && is_dead(args, t)) check_dead(problem, args, at, out);
        for (size_t i = 0; out && !is_dead(args, t) && i < hidden; i++) {
            double x = bf16_at(args->streams_in, at + i);
            double value = bf16_at(args->kv, value0 + i);
            eng_residual_add(out, ENG_BF16, bf16_at(args->streams_out, at + i),
                             x + want.gate * value,
                             eng_ref_gate_out_limit(gate_limit, want.gate, x, value));
        }
    }
}
