/* Comparison with the oracles; see oracle.h. */
#include "bench/experiments/oracle.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/ref/compare.h"
#include "kernels/ref/conv.h"
#include "kernels/ref/gate.h"
#include "kernels/ref/gather.h"
#include "kernels/ref/hash.h"
#include "kernels/ref/lookup.h"
#include "kernels/ref/project.h"

/* ---- adding up ---- */

static void merge(EngCheck *check, const EngComparison *part)
{
    check->n_checked += part->count;
    check->n_failed += part->failed;
    check->n_marginal += part->marginal;
    check->max_abs = fmax(check->max_abs, part->max_abs);
    check->max_rel = fmax(check->max_rel, part->max_rel);
    check->max_share = fmax(check->max_share, part->max_share);
}

/* A 16- or 32-bit float is not finite when its exponent bits are all set. */
static int64_t count_nonfinite(EngDtype type, const void *base, int64_t n)
{
    int64_t count = 0;
    const uint16_t *bf16 = base;
    const uint32_t *f32 = base;
    if (type == ENG_BF16)
        for (int64_t i = 0; i < n; i++) count += (bf16[i] & 0x7f80) == 0x7f80;
    else if (type == ENG_F32)
        for (int64_t i = 0; i < n; i++) count += (f32[i] & 0x7f800000) == 0x7f800000;
    return count;
}

/* Outputs outside the sample have no oracle beside them: with finite inputs none may be NaN. */
static void scan(EngCheck *check, EngDtype type, const void *base, int64_t n)
{
    check->n_nonfinite += count_nonfinite(type, base, n);
    check->n_outputs += n;
}

/* ---- exact operations ---- */

EngStatus eng_check_hash(const EngAddress *address, const EngHashArgs *args, EngCheck *check,
                         EngErr *err)
{
    size_t n = (size_t)args->n_tokens * (size_t)(address->n_layers * address->n_columns);
    EngHashArgs want = *args;
    EngStatus status =
        eng_alloc_or((void **)&want.rows, n, sizeof *want.rows, "rows of the oracle", err);
    if (status) return status;
    eng_ref_hash(address, &want);
    for (size_t i = 0; i < n; i++) {
        double error = fabs((double)args->rows[i] - (double)want.rows[i]);
        if (args->rows[i] == want.rows[i]) continue;
        check->n_failed++;
        check->max_abs = fmax(check->max_abs, error);
        check->max_share = INFINITY;
    }
    check->n_checked += (int64_t)n;
    check->n_outputs += (int64_t)n;
    eng_free(want.rows);
    return ENG_OK;
}

EngStatus eng_check_gather(const EngGatherProblem *problem, const EngGatherArgs *args,
                           EngCheck *check, EngErr *err)
{
    int dims = problem->table.row_dims;
    size_t value_bytes = eng_dtype_bytes(problem->out, (size_t)dims);
    size_t n_scales = problem->out == ENG_FP8 ? (size_t)dims / ENG_SCALE_GROUP : 0;
    uint8_t *want;
    EngStatus status =
        eng_alloc_or((void **)&want, value_bytes + n_scales, 1, "a row of the oracle", err);
    if (status) return status;
    for (int64_t t = 0; t < problem->tokens; t++)
        for (int c = 0; c < problem->columns; c++) {
            EngComparison part;
            size_t at = (size_t)t * (size_t)problem->columns + (size_t)c;
            eng_ref_gather_row(&problem->table, args->rows[t * args->row_stride + c], problem->out,
                               want, want + value_bytes);
            eng_compare_bits(&part, problem->out, (const uint8_t *)args->out + at * value_bytes,
                             want, dims);
            merge(check, &part);
            check->n_nonfinite += part.nonfinite;
            if (!n_scales) continue;
            eng_compare_bits(&part, ENG_FP8, args->out_scales + at * n_scales, want + value_bytes,
                             (int64_t)n_scales);
            merge(check, &part);
        }
    check->n_outputs += problem->tokens * problem->columns * (dims + (int64_t)n_scales);
    eng_free(want);
    return ENG_OK;
}

/* ---- sampled operations ---- */

/* A product [tokens, n] over k terms; want() is its oracle. */
typedef struct Product {
    const void *problem, *args;
    void (*want)(const void *problem, const void *args, int64_t t, int j, double *value,
                 double *abs_sum);
    const void *out;
    EngDtype type;
    int64_t tokens;
    int n, k;
} Product;

static void check_product(const Product *p, uint64_t seed, int64_t n, EngCheck *check)
{
    EngRng rng;
    EngComparison part;
    eng_rng_seed(&rng, seed);
    eng_residual_start(&part);
    for (int64_t i = 0; i < n; i++) {
        int64_t t = (int64_t)eng_rng_below(&rng, (uint64_t)p->tokens);
        int j = (int)eng_rng_below(&rng, (uint64_t)p->n);
        size_t at = (size_t)t * (size_t)p->n + (size_t)j;
        double want, abs_sum, got;
        p->want(p->problem, p->args, t, j, &want, &abs_sum);
        if (p->type == ENG_BF16) {
            uint32_t bits = (uint32_t)((const uint16_t *)p->out)[at] << 16;
            float value;
            memcpy(&value, &bits, sizeof value);
            got = value;
        } else {
            got = ((const float *)p->out)[at];
        }
        eng_residual_add(&part, p->type, got, want, eng_limit_sum(p->type, want, p->k, abs_sum));
    }
    merge(check, &part);
    scan(check, p->type, p->out, p->tokens * p->n);
}

static void want_project(const void *problem, const void *args, int64_t t, int j, double *value,
                         double *abs_sum)
{
    eng_ref_project_at(problem, args, t, j, value, abs_sum);
}

static void want_lookup(const void *problem, const void *args, int64_t t, int j, double *value,
                        double *abs_sum)
{
    eng_ref_lookup_at(problem, args, t, j, value, abs_sum);
}

EngStatus eng_check_project(const EngProjectProblem *problem, const EngProjectArgs *args,
                            uint64_t seed, int64_t n, EngCheck *check, EngErr *err)
{
    (void)err;
    Product product = {.problem = problem,
                       .args = args,
                       .want = want_project,
                       .out = args->out,
                       .type = problem->out,
                       .tokens = problem->tokens,
                       .n = problem->n,
                       .k = problem->k};
    check_product(&product, seed, n, check);
    return ENG_OK;
}

EngStatus eng_check_lookup(const EngLookupProblem *problem, const EngLookupArgs *args,
                           uint64_t seed, int64_t n, EngCheck *check, EngErr *err)
{
    (void)err;
    Product product = {.problem = problem,
                       .args = args,
                       .want = want_lookup,
                       .out = args->out,
                       .type = problem->out,
                       .tokens = problem->tokens,
                       .n = problem->n,
                       .k = problem->columns * problem->table.row_dims};
    check_product(&product, seed, n, check);
    return ENG_OK;
}

EngStatus eng_check_gate(const EngGateProblem *problem, const EngGateArgs *args, uint64_t seed,
                         int64_t n_tokens, EngCheck *check, EngErr *err)
{
    (void)err;
    EngRng rng;
    EngComparison out, gates, scores;
    bool all = n_tokens >= problem->tokens;
    int64_t n = all ? problem->tokens : n_tokens;
    eng_rng_seed(&rng, seed);
    eng_residual_start(&out);
    eng_residual_start(&gates);
    eng_residual_start(&scores);
    for (int64_t i = 0; i < n; i++) {
        int64_t t = all ? i : (int64_t)eng_rng_below(&rng, (uint64_t)problem->tokens);
        eng_ref_gate_check_token(problem, args, t, &out, &gates, &scores);
    }
    merge(check, &out);
    merge(check, &gates);
    merge(check, &scores);
    int64_t slots = problem->tokens * problem->streams;
    scan(check, ENG_BF16, args->streams_out, slots * problem->hidden);
    if (args->gates) scan(check, ENG_F32, args->gates, slots);
    if (args->scores) scan(check, ENG_F32, args->scores, slots);
    return ENG_OK;
}

static size_t conv_values(const EngConvProblem *problem, int64_t n_tokens)
{
    int64_t tokens = n_tokens < problem->tokens ? n_tokens : problem->tokens;
    return (size_t)tokens * (size_t)problem->streams * (size_t)problem->hidden;
}

EngStatus eng_want_conv(const EngConvProblem *problem, const EngConvArgs *args, int64_t n_tokens,
                        double **want, EngErr *err)
{
    EngConvProblem first = *problem; /* causal: later tokens change nothing */
    size_t n = conv_values(problem, n_tokens);
    if (first.tokens > n_tokens) first.tokens = n_tokens;
    EngStatus status =
        eng_alloc_or((void **)want, n, 2 * sizeof **want, "outputs of the oracle", err);
    if (!status) eng_ref_conv(&first, args->value, args->state, *want, NULL, *want + n);
    return status;
}

void eng_check_conv(const EngConvProblem *problem, const EngConvArgs *args, int64_t n_tokens,
                    const double *want, EngCheck *check)
{
    EngComparison out;
    size_t n = conv_values(problem, n_tokens);
    eng_residual_start(&out);
    for (size_t i = 0; i < n; i++)
        eng_residual_add(&out, ENG_F32, args->out[i], want[i],
                         eng_ref_conv_limit(problem, want[i], args->value[i], want[n + i]));
    merge(check, &out);
    scan(check, ENG_F32, args->out, (int64_t)conv_values(problem, problem->tokens));
}

/* ---- the gate's formula ---- */

double eng_gate_value(EngGateFormula formula, double score)
{
    return eng_ref_gate_formula(formula, score);
}

double eng_gate_slope(EngGateFormula formula, double score)
{
    double gate = eng_ref_gate_formula(formula, score), slope = gate * (1 - gate);
    if (formula == ENG_GATE_PLAIN) return slope;
    double size = fabs(score);
    return size < 1e-6 ? 0 : slope / (2 * sqrt(size));
}
