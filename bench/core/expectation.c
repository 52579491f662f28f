/* See expectation.h. */
#include "bench/core/expectation.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

const char *eng_term_name(EngTerm term)
{
    static const char *const names[ENG_TERM_COUNT] = {"",      "roof",    "bytes",
                                                      "flops", "latency", "pages"};
    return names[term];
}

static void set_terms(const EngWork *work, const EngRates *rates, const EngRoofWork *roof,
                      double *terms)
{
    double lines = work->line_bytes / 64 / (work->threads > 1 ? work->threads : 1);
    terms[ENG_TERM_NONE] = NAN;
    terms[ENG_TERM_ROOF] = roof->ns;
    terms[ENG_TERM_BYTES] = work->moved_bytes / rates->gbps;
    terms[ENG_TERM_FLOPS] = work->flops > 0 ? work->flops / rates->gflops : NAN;
    terms[ENG_TERM_LATENCY] = lines * rates->ns_per_load;
    terms[ENG_TERM_PAGES] = lines * rates->ns_per_load_4k;
    for (int i = 0; i < ENG_TERM_COUNT; i++)
        if (!isfinite(terms[i]) || terms[i] <= 0) terms[i] = NAN;
}

static bool near(double ratio)
{
    return ratio <= ENG_EXPECT_THRESHOLD && ratio >= 1 / ENG_EXPECT_THRESHOLD;
}

static const char *label_of(EngTerm term)
{
    return term == ENG_TERM_ROOF                                ? "measured"
           : term == ENG_TERM_LATENCY || term == ENG_TERM_PAGES ? "counted"
                                                                : "modelled";
}

/* "1.8", "12", "340": two digits, or the whole number. */
static const char *ratio_text(double ratio, char out[16])
{
    snprintf(out, 16, ratio >= 99.5 && ratio < 1e5 ? "%.0f" : "%.2g", ratio);
    return out;
}

/* Slower than expected: what may explain it, and in which term's name. */
static void explain_slow(const EngWork *work, const EngRoofWork *roof, double measured_ns,
                         const EngExpectation *e, EngTerm *term, char *out, size_t size)
{
    const double *t = e->terms_ns;
    double sum = 0, of_roof = e->term == ENG_TERM_ROOF ? 1 : t[ENG_TERM_ROOF] / e->expected_ns;
    double beyond = measured_ns / t[ENG_TERM_ROOF];
    bool fewer_bytes = work->moved_bytes < roof->moved_bytes * 0.95; /* not if one is unknown */
    bool flops = !isnan(t[ENG_TERM_FLOPS]) && work->moved_bytes >= roof->moved_bytes * 0.95;
    for (int i = ENG_TERM_BYTES; i <= ENG_TERM_LATENCY; i++) sum += isnan(t[i]) ? 0 : t[i];
    if (!(work->huge_share > 0.9) && t[ENG_TERM_PAGES] > e->expected_ns &&
        near(measured_ns / t[ENG_TERM_PAGES])) {
        *term = ENG_TERM_PAGES;
        snprintf(out, size, "; page walks (counted)");
    } else if (of_roof > ENG_EXPECT_THRESHOLD && near(beyond)) {
        snprintf(out, size, "; so is its roof");
    } else if (sum > e->expected_ns * ENG_EXPECT_THRESHOLD && near(measured_ns / sum)) {
        snprintf(out, size, "; terms one after the other");
    } else if (of_roof > ENG_EXPECT_THRESHOLD && beyond > 1 && !fewer_bytes) {
        char text[16];
        snprintf(out, size, "; roof %s x, %s", ratio_text(of_roof, text),
                 flops ? "flops (modelled)" : "work beyond it");
    } else if (roof->ns > 0 && !fewer_bytes) {
        if (flops) *term = ENG_TERM_FLOPS;
        snprintf(out, size, flops ? "; flops (modelled)" : "; work that its roof leaves out");
    } else {
        snprintf(out, size, "; no term explains it");
    }
}

static const char *explain_fast(EngTerm term)
{
    return term == ENG_TERM_LATENCY || term == ENG_TERM_PAGES ? "; lines overlap, or cached"
           : term == ENG_TERM_BYTES                           ? "; cached"
           : term == ENG_TERM_FLOPS                           ? "; faster than any product here"
                                                              : "";
}

void eng_expect(const EngWork *work, const EngRates *rates, double measured_ns,
                const EngRoofWork *roof, EngExpectation *out)
{
    *out = (EngExpectation){.expected_ns = NAN, .ratio = NAN};
    set_terms(work, rates, roof, out->terms_ns);
    const double *terms = out->terms_ns;
    bool small_pages = work->huge_share < 0.5 && !isnan(terms[ENG_TERM_PAGES]);
    for (int t = ENG_TERM_BYTES; t <= ENG_TERM_PAGES; t++) {
        if (t == (small_pages ? ENG_TERM_LATENCY : ENG_TERM_PAGES)) continue;
        if (isnan(terms[t]) || terms[t] <= out->expected_ns) continue;
        out->expected_ns = terms[t];
        out->term = (EngTerm)t;
    }
    if (!isnan(terms[ENG_TERM_ROOF]) && !(terms[ENG_TERM_ROOF] > out->expected_ns)) {
        out->expected_ns = terms[ENG_TERM_ROOF];
        out->term = ENG_TERM_ROOF;
    }
    if (!out->term) return;
    out->ratio = measured_ns / out->expected_ns;
    EngTerm term = out->term;
    char more[64] = "", ratio[16];
    if (!(out->ratio > 0) || near(out->ratio)) {
        snprintf(out->why, sizeof out->why, "%s (%s)", eng_term_name(term), label_of(term));
    } else {
        if (out->ratio > 1)
            explain_slow(work, roof, measured_ns, out, &term, more, sizeof more);
        else
            snprintf(more, sizeof more, "%s", explain_fast(term));
        snprintf(out->why, sizeof out->why, "%s x %s (%s)%s", ratio_text(out->ratio, ratio),
                 eng_term_name(out->term), label_of(out->term), more);
    }
    out->term = term;
    out->counted = term == ENG_TERM_LATENCY || term == ENG_TERM_PAGES;
}
