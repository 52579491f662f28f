/* See expectation.h. */
#include "bench/core/expectation.h"

#include <math.h>
#include <stdio.h>

const char *eng_term_name(EngTerm term)
{
    static const char *const names[ENG_TERM_COUNT] = {"",      "roof",    "bytes",
                                                      "flops", "latency", "pages"};
    return names[term];
}

static void set_terms(const EngWork *work, const EngRates *rates, double *terms)
{
    double lines = work->line_bytes / 64 / (work->threads > 1 ? work->threads : 1);
    terms[ENG_TERM_NONE] = NAN;
    terms[ENG_TERM_BYTES] = work->moved_bytes / rates->gbps;
    terms[ENG_TERM_FLOPS] = work->flops > 0 ? work->flops / rates->gflops : NAN;
    terms[ENG_TERM_LATENCY] = lines * rates->ns_per_load;
    terms[ENG_TERM_PAGES] = lines * rates->ns_per_load_4k;
    for (int i = 0; i < ENG_TERM_COUNT; i++)
        if (!isfinite(terms[i])) terms[i] = NAN;
}

static bool near(double ratio)
{
    return ratio <= ENG_EXPECT_THRESHOLD && ratio >= 1 / ENG_EXPECT_THRESHOLD;
}

void eng_expect(const EngWork *work, const EngRates *rates, double measured_ns, double roof_ns,
                EngExpectation *out)
{
    *out = (EngExpectation){.expected_ns = NAN, .ratio = NAN};
    set_terms(work, rates, out->terms_ns);
    out->terms_ns[ENG_TERM_ROOF] = roof_ns > 0 ? roof_ns : NAN;
    for (int t = ENG_TERM_BYTES; t <= ENG_TERM_LATENCY; t++)
        if (out->terms_ns[t] > 0 && !(out->terms_ns[t] <= out->expected_ns)) {
            out->expected_ns = out->terms_ns[t];
            out->term = (EngTerm)t;
        }
    if (!out->term && roof_ns > 0) {
        out->expected_ns = roof_ns;
        out->term = ENG_TERM_ROOF;
    }
    if (!out->term) return;
    out->ratio = measured_ns / out->expected_ns;
    out->counted = out->term == ENG_TERM_LATENCY;
    const char *label = out->term == ENG_TERM_ROOF ? "no ladder or stream"
                        : out->counted             ? "counted"
                                                   : "modelled";
    double walks = out->terms_ns[ENG_TERM_PAGES];
    if (!(out->ratio > 0) || near(out->ratio)) {
        snprintf(out->why, sizeof out->why, "%s (%s)", eng_term_name(out->term), label);
    } else if (out->term == ENG_TERM_LATENCY && out->ratio > 1 && walks > out->expected_ns &&
               near(measured_ns / walks)) {
        out->term = ENG_TERM_PAGES;
        snprintf(out->why, sizeof out->why, "pages: walks explain %.2g x latency (counted)",
                 out->ratio);
    } else {
        /* Neighbouring lines of a row cost less than lines each for itself, which the ladder times.
         */
        const char *note = out->term == ENG_TERM_LATENCY && out->ratio < 1
                               ? ": lines of a row overlap, or were cached"
                               : "";
        snprintf(out->why, sizeof out->why, "%.2g x %s (%s)%s", out->ratio,
                 eng_term_name(out->term), label, note);
    }
}
