/* Outputs of a run compared with the oracles of kernels/ref: what experiments store as residual.
 *
 * Limits are the derived ones of kernels/ref (worst case of an f32 implementation, 0 for copies and
 * integers); max_share tells how much of its limit the worst element used. Large results are
 * sampled: seeded elements are compared, all are scanned for NaN and infinity.
 */
#ifndef ENG_EXPERIMENTS_ORACLE_H
#define ENG_EXPERIMENTS_ORACLE_H

#include <engram/kernels.h>

typedef struct EngCheck {
    int64_t n_checked, n_outputs;
    int64_t n_failed;    /* beyond the limit, or not finite where the oracle is */
    int64_t n_marginal;  /* within the worst case, beyond the statistical estimate */
    int64_t n_nonfinite; /* over all outputs, unless the oracle says so too */
    double max_abs, max_rel, max_share;
} EngCheck;

/* Every row index of a window (the kernel's, in args->rows) against the oracle. */
EngStatus eng_check_hash(const EngAddress *address, const EngHashArgs *args, EngCheck *check,
                         EngErr *err);
/* Every output of a gather, bit for bit; scales of fp8 output too. */
EngStatus eng_check_gather(const EngGatherProblem *problem, const EngGatherArgs *args,
                           EngCheck *check, EngErr *err);
/* n seeded outputs of a projection, and a scan of the rest. */
EngStatus eng_check_project(const EngProjectProblem *problem, const EngProjectArgs *args,
                            uint64_t seed, int64_t n, EngCheck *check, EngErr *err);
/* The same of a look-up. */
EngStatus eng_check_lookup(const EngLookupProblem *problem, const EngLookupArgs *args,
                           uint64_t seed, int64_t n, EngCheck *check, EngErr *err);
/* All outputs, gates and scores of up to n_tokens seeded tokens (all when there are no more), and a
 * scan of the other streams. args as given to the kernel, but with streams_in as it was before. */
EngStatus eng_check_gate(const EngGateProblem *problem, const EngGateArgs *args, uint64_t seed,
                         int64_t n_tokens, EngCheck *check, EngErr *err);
/* The oracle's outputs of the first n_tokens tokens, before the kernel moves the state in args:
 * outputs, then sums of absolute terms, [2, tokens, streams, hidden]; free with eng_free. */
EngStatus eng_want_conv(const EngConvProblem *problem, const EngConvArgs *args, int64_t n_tokens,
                        double **want, EngErr *err);
/* Those outputs, and a scan of the rest. */
void eng_check_conv(const EngConvProblem *problem, const EngConvArgs *args, int64_t n_tokens,
                    const double *want, EngCheck *check);
/* A gate's value by the oracle's formula, and its slope d gate / d score (0 where the clamp holds).
 */
double eng_gate_value(EngGateFormula formula, double score);
double eng_gate_slope(EngGateFormula formula, double score);

#endif
