/* Oracle of gate + write-back (engram_facts section 6, steps 3-6), in double precision, with the
 * error limits of an f32 implementation.
 *
 * abs_score is the score with every product taken absolute; the limit of a score scales with it.
 * All three gate formulas are monotone in the score, so the limit of a gate is the span it covers
 * when the score moves by its own limit: exact where the formula is steep (scores near 0).
 */
#ifndef ENG_KERNELS_REF_GATE_H
#define ENG_KERNELS_REF_GATE_H

#include "kernels/ref/compare.h"

#include <engram/kernels.h>

typedef struct EngRefGate {
    double score;     /* dot * rstd / sqrt(hidden), before the root; 0 for a masked token */
    double abs_score; /* the same with absolute products */
    double gate;      /* 0 for a masked token */
} EngRefGate;

/* sigmoid(copysign(sqrt(max(|s|, 1e-6)), s)), the same with sign(), or sigmoid(s). A NaN stays one.
 */
double eng_ref_gate_formula(EngGateFormula formula, double score);

/* The score of one stream by steps: start from zeros, add the hidden elements (w = q_weight *
 * k_weight), finish. */
typedef struct EngRefGateSums {
    double xx, kk, dot, abs_dot;
} EngRefGateSums;
void eng_ref_gate_add(EngRefGateSums *sums, double x, double w, double k);
EngRefGate eng_ref_gate_finish(const EngRefGateSums *sums, int hidden, double eps,
                               EngGateFormula formula);

/* Token t: out [streams, hidden] unrounded (a masked token: its input), gates [streams]; either may
 * be NULL. args->streams_in must still hold the inputs: keep a copy when the kernel runs in place.
 */
void eng_ref_gate_token(const EngGateProblem *problem, const EngGateArgs *args, int64_t t,
                        double *out, EngRefGate *gates);
/* All tokens: out [tokens, streams, hidden], gates [tokens, streams]; either may be NULL. */
void eng_ref_gate(const EngGateProblem *problem, const EngGateArgs *args, double *out,
                  EngRefGate *gates);

/* Limits for an f32 kernel: of its score, its gate, and one output element x + gate * value. */
EngLimit eng_ref_gate_score_limit(const EngGateProblem *problem, const EngRefGate *gate);
EngLimit eng_ref_gate_gate_limit(const EngGateProblem *problem, const EngRefGate *gate);
EngLimit eng_ref_gate_out_limit(EngLimit gate_limit, double gate, double x, double value);

/* Compares a kernel's streams_out (and its gates and scores where not NULL) of token t with the
 * oracle, adding to three residuals (each may be NULL). args as given to the kernel, but with
 * streams_in holding the inputs; masked tokens must have kept their bits. */
void eng_ref_gate_check_token(const EngGateProblem *problem, const EngGateArgs *args, int64_t t,
                              EngComparison *out, EngComparison *gates, EngComparison *scores);

#endif
