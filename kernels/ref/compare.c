/* Residuals against the oracle; see compare.h. */
#include "kernels/ref/compare.h"

#include "kernels/ref/fp8.h"

#include <math.h>
#include <string.h>

const char *eng_residual_verdict_name(EngResidualVerdict verdict)
{
    static const char *const names[] = {"pass", "marginal", "fail"};
    return (unsigned)verdict < 3 ? names[verdict] : "unknown";
}

double eng_unit_roundoff(EngDtype type)
{
    return type == ENG_BF16 ? 0x1p-8 : 0x1p-24;
}

double eng_rounding_error(EngDtype type, double value)
{
    double half_subnormal = type == ENG_BF16 ? 0x1p-134 : 0x1p-150;
    return fmax(eng_unit_roundoff(type) * fabs(value), half_subnormal);
}

EngLimit eng_limit_sum(EngDtype out, double want, double terms, double abs_sum)
{
    double u = eng_unit_roundoff(ENG_F32);
    double worst = terms * u * abs_sum;
    double likely = fmin(4 * sqrt(terms) * u * abs_sum, worst);
    /* The rounded number is the f32 sum, which lies within the accumulation error of want. */
    return (EngLimit){.warn = likely + eng_rounding_error(out, fabs(want) + likely),
                      .pass = worst + eng_rounding_error(out, fabs(want) + worst)};
}

void eng_residual_start(EngComparison *residual)
{
    *residual = (EngComparison){.worst = -1, .verdict = ENG_RESIDUAL_PASS};
}

static void set_worst(EngComparison *residual, double got, double want, EngLimit limit)
{
    residual->worst = residual->count;
    residual->got = got;
    residual->want = want;
    residual->limit = limit;
}

/* Where want itself overflows the type, infinity of its sign is the right answer. */
static double overflow_of(EngDtype type, double want)
{
    double last = type == ENG_BF16 ? 0x1.ffp127 : 0x1.ffffffp127; /* rounds to infinity from here */
    return fabs(want) >= last ? copysign(INFINITY, want) : want;
}

static void add_nonfinite(EngComparison *residual, double got, double want, EngLimit limit)
{
    if ((isnan(got) && isnan(want)) || got == want) return;
    if (!residual->nonfinite) set_worst(residual, got, want, limit);
    residual->nonfinite++;
    residual->failed++;
    residual->verdict = ENG_RESIDUAL_FAIL;
}

void eng_residual_add(EngComparison *residual, EngDtype type, double got, double want,
                      EngLimit limit)
{
    want = overflow_of(type, want);
    if (!isfinite(got) || !isfinite(want)) {
        add_nonfinite(residual, got, want, limit);
        residual->count++;
        return;
    }
    double error = fabs(got - want);
    double share = error == 0 ? 0 : limit.pass > 0 ? error / limit.pass : INFINITY;
    residual->max_abs = fmax(residual->max_abs, error);
    if (want != 0) residual->max_rel = fmax(residual->max_rel, error / fabs(want));
    if (!residual->nonfinite && (residual->worst < 0 || share > residual->max_share))
        set_worst(residual, got, want, limit);
    residual->max_share = fmax(residual->max_share, share);
    if (!(error <= limit.pass)) { /* a limit that is NaN passes nothing */
        residual->failed++;
        residual->verdict = ENG_RESIDUAL_FAIL;
    } else if (!(error <= limit.warn)) {
        residual->marginal++;
        if (residual->verdict == ENG_RESIDUAL_PASS) residual->verdict = ENG_RESIDUAL_MARGINAL;
    }
    residual->count++;
}

static double element(EngDtype type, const void *base, int64_t i)
{
    const uint8_t *bytes = base;
    uint16_t bf16;
    float f32;
    switch (type) {
    case ENG_FP8:
        return bytes[i];
    case ENG_BF16:
        memcpy(&bf16, bytes + 2 * i, sizeof bf16);
        return eng_ref_bf16(bf16);
    default:
        memcpy(&f32, bytes + 4 * i, sizeof f32);
        return f32;
    }
}

static void compare(EngComparison *residual, EngDtype type, const void *got, const double *want,
                    const double *abs_sums, double terms, int64_t n)
{
    eng_residual_start(residual);
    for (int64_t i = 0; i < n; i++)
        eng_residual_add(residual, type, element(type, got, i), want[i],
                         eng_limit_sum(type, want[i], terms, abs_sums ? abs_sums[i] : 0));
}

void eng_compare_f32(EngComparison *residual, const float *got, const double *want,
                     const double *abs_sums, double terms, int64_t n)
{
    compare(residual, ENG_F32, got, want, abs_sums, terms, n);
}

void eng_compare_bf16(EngComparison *residual, const uint16_t *got, const double *want,
                      const double *abs_sums, double terms, int64_t n)
{
    compare(residual, ENG_BF16, got, want, abs_sums, terms, n);
}

void eng_compare_bits(EngComparison *residual, EngDtype type, const void *got, const void *want,
                      int64_t n)
{
    size_t size = eng_dtype_bytes(type, 1);
    eng_residual_start(residual);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *a = (const uint8_t *)got + (size_t)i * size;
        const uint8_t *b = (const uint8_t *)want + (size_t)i * size;
        double x = element(type, got, i), y = element(type, want, i);
        EngLimit none = {0, 0};
        bool same_value_other_bits = memcmp(a, b, size) && x == y; /* +0 and -0 */
        eng_residual_add(residual, ENG_F32, x, y, none);
        if (!same_value_other_bits) continue;
        residual->failed++;
        residual->verdict = ENG_RESIDUAL_FAIL;
    }
}
