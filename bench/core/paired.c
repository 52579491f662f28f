/* Paired comparisons of trained arms; see paired.h. */
#include "bench/core/paired.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "bench/core/student.h"
#include "bench/core/verdict.h"

#define BOOTSTRAPS 10000

static EngPaired of_values(const double *values, int n)
{
    EngPaired out = {.n = n, .mean = NAN, .sd = NAN, .lo = NAN, .hi = NAN};
    double sum = 0, squares = 0;
    out.p_greater = out.p_two = NAN;
    for (int i = 0; i < n; i++) sum += values[i];
    if (n) out.mean = sum / n;
    if (n < 2) return out;
    for (int i = 0; i < n; i++) squares += (values[i] - out.mean) * (values[i] - out.mean);
    out.sd = sqrt(squares / (n - 1));
    double error = out.sd / sqrt(n), df = n - 1;
    double half = error * eng_student_quantile_upper(0.025, df);
    out.lo = out.mean - half;
    out.hi = out.mean + half;
    /* Equal differences leave no spread: the sign alone decides. */
    double t = error > 0      ? out.mean / error
               : out.mean > 0 ? INFINITY
               : out.mean < 0 ? -INFINITY
                              : 0;
    out.p_greater = eng_student_upper(t, df);
    out.p_two = 2 * eng_student_upper(fabs(t), df);
    return out;
}

EngPaired eng_paired(const double *a, const double *b, int n_seeds)
{
    double differences[ENG_CURVE_MAX_SEEDS];
    int n = 0;
    for (int i = 0; i < n_seeds && n < ENG_CURVE_MAX_SEEDS; i++)
        if (!isnan(a[i]) && !isnan(b[i])) differences[n++] = a[i] - b[i];
    return of_values(differences, n);
}

EngPaired eng_arm_mean(const double *values, int n_seeds)
{
    double kept[ENG_CURVE_MAX_SEEDS];
    int n = 0;
    for (int i = 0; i < n_seeds && n < ENG_CURVE_MAX_SEEDS; i++)
        if (!isnan(values[i])) kept[n++] = values[i];
    return of_values(kept, n);
}

static const double *row(const EngCurve *curve, int x)
{
    return curve->loss + (size_t)x * (size_t)curve->n_seeds;
}

static bool has_all(const EngCurve *curve, int seed)
{
    for (int x = 0; x < curve->n_x; x++)
        if (isnan(row(curve, x)[seed])) return false;
    return true;
}

static EngStatus check_size(const EngCurve *curve, EngErr *err)
{
    if (curve->n_x <= ENG_CURVE_MAX_X && curve->n_seeds <= ENG_CURVE_MAX_SEEDS) return ENG_OK;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "a curve of %d places and %d seeds: at most %d and %d",
                    curve->n_x, curve->n_seeds, ENG_CURVE_MAX_X, ENG_CURVE_MAX_SEEDS);
}

static void judge_valley(const EngCurve *curve, const double *mask, EngValley *out)
{
    double low[ENG_CURVE_MAX_SEEDS], valley[ENG_CURVE_MAX_SEEDS], high[ENG_CURVE_MAX_SEEDS];
    for (int s = 0; s < curve->n_seeds; s++) { /* mask: 0 keeps, NAN drops a seed */
        low[s] = row(curve, out->low)[s] + mask[s];
        valley[s] = row(curve, out->valley)[s] + mask[s];
        high[s] = row(curve, out->high)[s] + mask[s];
    }
    out->left = eng_paired(low, valley, curve->n_seeds);
    out->right = eng_paired(high, valley, curve->n_seeds);
    out->n_testing = out->left.n < out->right.n ? out->left.n : out->right.n;
    out->p = fmax(out->left.p_greater, out->right.p_greater);
    if (isnan(out->left.p_greater) || isnan(out->right.p_greater)) out->p = 1;
    out->claimed = out->p <= ENG_PAIRED_ALPHA;
}

static int place_of(const EngCurve *curve, double x)
{
    for (int i = 0; i < curve->n_x; i++)
        if (fabs(curve->x[i] - x) < 1e-9) return i;
    return -1;
}

EngStatus eng_valley_fixed(const EngCurve *curve, double low, double valley, double high,
                           EngValley *out, EngErr *err)
{
    static const double keep_all[ENG_CURVE_MAX_SEEDS];
    const double wanted[3] = {low, valley, high};
    EngStatus status = check_size(curve, err);
    *out = (EngValley){.low = place_of(curve, low),
                       .valley = place_of(curve, valley),
                       .high = place_of(curve, high)};
    const int at[3] = {out->low, out->valley, out->high};
    for (int i = 0; i < 3 && !status; i++)
        if (at[i] < 0)
            status = ENG_FAIL(err, ENG_NOT_FOUND, "the curve has no place at %g", wanted[i]);
    if (status) return status;
    judge_valley(curve, keep_all, out);
    return ENG_OK;
}

/* Index of the lowest mean over seeds whose mask is 0, which have all places; -1: no such seed. */
static int lowest(const EngCurve *curve, const double *mask)
{
    int best = -1;
    double least = INFINITY;
    for (int x = 0; x < curve->n_x; x++) {
        double sum = 0;
        for (int s = 0; s < curve->n_seeds; s++)
            if (!isnan(mask[s])) sum += row(curve, x)[s];
        if (sum < least) { /* false for NAN */
            least = sum;
            best = x;
        }
    }
    return best;
}

EngStatus eng_valley_split(const EngCurve *curve, EngValley *out, EngErr *err)
{
    double choosing[ENG_CURVE_MAX_SEEDS], testing[ENG_CURVE_MAX_SEEDS];
    EngStatus status = check_size(curve, err);
    *out = (EngValley){.low = 0, .valley = -1, .high = curve->n_x - 1, .p = 1};
    if (status) return status;
    for (int s = 0; s < curve->n_seeds; s++) {
        bool chooses = s % 2 == 0 && has_all(curve, s);
        choosing[s] = chooses ? 0 : NAN;
        testing[s] = s % 2 ? 0 : NAN;
        out->n_choosing += chooses;
    }
    out->n_testing = curve->n_seeds / 2;
    if (out->n_testing < 2 || curve->n_x < 3 || !out->n_choosing)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "%d seeds and %d places, %d seeds to choose with have all of these: a "
                        "valley chosen and tested needs 4, 3 and 1",
                        curve->n_seeds, curve->n_x, out->n_choosing);
    int best = lowest(curve, choosing);
    if (best <= 0 || best == curve->n_x - 1) return ENG_OK;
    out->valley = best;
    judge_valley(curve, testing, out);
    return ENG_OK;
}

/* Seeds that have every x, packed: out[x * n + s]. */
static int complete_seeds(const EngCurve *curve, double *out)
{
    int seeds[ENG_CURVE_MAX_SEEDS], n = 0;
    for (int s = 0; s < curve->n_seeds; s++)
        if (has_all(curve, s)) seeds[n++] = s;
    for (int x = 0; x < curve->n_x; x++)
        for (int s = 0; s < n; s++) out[x * n + s] = row(curve, x)[seeds[s]];
    return n;
}

static void bootstrap(const double *loss, int n_x, int n, uint64_t seed, const double *x,
                      EngArgmin *out)
{
    EngRng rng;
    int wins[ENG_CURVE_MAX_X] = {0};
    eng_rng_seed(&rng, seed);
    for (int b = 0; b < BOOTSTRAPS; b++) {
        double sums[ENG_CURVE_MAX_X] = {0};
        int best = 0;
        for (int k = 0; k < n; k++) {
            int s = (int)eng_rng_below(&rng, (uint64_t)n);
            for (int i = 0; i < n_x; i++) sums[i] += loss[i * n + s];
        }
        for (int i = 1; i < n_x; i++)
            if (sums[i] < sums[best]) best = i;
        wins[best]++;
    }
    int below = 0;
    for (int i = 0; i < n_x; i++) {
        out->share[i] = (double)wins[i] / BOOTSTRAPS;
        below += wins[i];
        if (n < ENG_ARGMIN_SEEDS) continue;
        if (isnan(out->lo) && below > 0.025 * BOOTSTRAPS) out->lo = x[i];
        if (isnan(out->hi) && below >= 0.975 * BOOTSTRAPS) out->hi = x[i];
    }
}

EngStatus eng_argmin(const EngCurve *curve, uint64_t seed, EngArgmin *out, EngErr *err)
{
    double loss[ENG_CURVE_MAX_X * ENG_CURVE_MAX_SEEDS], p[ENG_CURVE_MAX_X];
    EngStatus status = check_size(curve, err);
    *out = (EngArgmin){.best = -1, .lo = NAN, .hi = NAN};
    if (status) return status;
    int n = out->n_seeds = complete_seeds(curve, loss);
    if (n < 2 || curve->n_x < 2)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "%d seeds have all of %d places: an interval of the minimum needs 2 and 2",
                        n, curve->n_x);
    EngCurve whole = {.n_x = curve->n_x, .n_seeds = n, .x = curve->x, .loss = loss};
    const double keep_all[ENG_CURVE_MAX_SEEDS] = {0};
    out->best = lowest(&whole, keep_all);
    bootstrap(loss, curve->n_x, n, seed, curve->x, out);
    for (int x = 0; x < curve->n_x; x++)
        p[x] =
            x == out->best ? NAN : eng_paired(row(&whole, x), row(&whole, out->best), n).p_greater;
    status = eng_holm(p, curve->n_x, out->p, err);
    if (status) return status;
    out->p[out->best] = 1;
    for (int x = 0; x < curve->n_x; x++) out->tied[x] = out->p[x] > ENG_PAIRED_ALPHA;
    return ENG_OK;
}

EngSpread eng_spread(const EngCurve *curve)
{
    double loss[ENG_CURVE_MAX_X * ENG_CURVE_MAX_SEEDS], seed_mean[ENG_CURVE_MAX_SEEDS] = {0};
    EngSpread out = {.sigma = NAN, .lo = NAN, .hi = NAN};
    if (check_size(curve, NULL)) return out;
    int n = complete_seeds(curve, loss), k = curve->n_x;
    if (n < 2 || k < 2) return out;
    double mean = 0, squares = 0;
    for (int x = 0; x < k; x++)
        for (int s = 0; s < n; s++) seed_mean[s] += loss[x * n + s] / k;
    for (int s = 0; s < n; s++) mean += seed_mean[s] / n;
    for (int x = 0; x < k; x++) {
        double arm = 0;
        for (int s = 0; s < n; s++) arm += loss[x * n + s] / n;
        for (int s = 0; s < n; s++) {
            double rest = loss[x * n + s] - arm - seed_mean[s] + mean;
            squares += rest * rest;
        }
    }
    out.df = (n - 1) * (k - 1);
    out.sigma = sqrt(squares / out.df);
    out.lo = sqrt(squares / eng_chi_square_quantile_upper(0.025, out.df));
    out.hi = sqrt(squares / eng_chi_square_quantile_upper(0.975, out.df));
    return out;
}

const char *eng_claim_name(EngClaimWord word)
{
    static const char *const names[] = {"not detectable at this scale", "confirmed",
                                        "contradicted"};
    return names[word];
}

/* One-sided p of "the mean is at least x"; NAN with fewer than two seeds. */
static double p_below(const EngPaired *ours, double x)
{
    if (ours->n < 2) return NAN;
    double error = ours->sd / sqrt(ours->n), apart = x - ours->mean;
    double t = error > 0 ? apart / error : apart > 0 ? INFINITY : apart < 0 ? -INFINITY : 0;
    return eng_student_upper(t, ours->n - 1);
}

static double both_sides(double p)
{
    return fmin(1, 2 * p);
}

EngClaimP eng_claim_p(const EngPaired *ours, double published, double margin)
{
    if (ours->n < 2) return (EngClaimP){.agrees = NAN, .disagrees = NAN};
    if (margin > 0) {
        double below = p_below(ours, margin), above = 1 - p_below(ours, -margin);
        return (EngClaimP){.agrees = fmax(below, above),
                           .disagrees = both_sides(fmin(1 - below, 1 - above))};
    }
    double above_0 = 1 - p_below(ours, 0), below_theirs = p_below(ours, published);
    if (published > 0) return (EngClaimP){.agrees = both_sides(above_0), .disagrees = below_theirs};
    return (EngClaimP){.agrees = both_sides(1 - above_0), .disagrees = 1 - below_theirs};
}

EngClaimWord eng_claim_judge(EngClaimP corrected)
{
    if (corrected.agrees <= ENG_PAIRED_ALPHA) return ENG_CLAIM_CONFIRMED;
    return corrected.disagrees <= ENG_PAIRED_ALPHA ? ENG_CLAIM_CONTRADICTED
                                                   : ENG_CLAIM_NOT_DETECTABLE;
}
