/* Counting reuse in a token stream; see size_reuse.h. */
#include "bench/cli/size_reuse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/experiments/drafts.h"
#include "bench/experiments/idset.h"
#include "sim/cache/admission.h"
#include "sim/cache/curve.h"

#define STEPS 64 /* that a mean of distinct shares is over */
#define PARTS 8  /* of a text, between which a rate varies */
#define WAYS  16
#define T_95  2.365 /* Student, 7 degrees of freedom: eighths */
#define SEED  1

double eng_size_acceptance(double drafted, double accepted)
{
    double low = 0, high = 1;
    if (accepted >= drafted + 1) return 1;
    for (int i = 0; i < 60; i++) {
        double a = (low + high) / 2, tokens = (1 - pow(a, drafted + 1)) / (1 - a);
        if (tokens < accepted)
            low = a;
        else
            high = a;
    }
    return (low + high) / 2;
}

static int64_t gained_of(const EngSizeStep *step, EngRng *rng)
{
    return step->acceptance < 1 ? eng_drafts_accepted(rng, step->each - 1, step->acceptance) + 1
                                : step->each;
}

/* ---- distinct keys -----------------------------------------------------------------------------
 */

static EngStatus count_unique(const EngSizeCorpus *c, const EngSizeStep *step, double *share,
                              EngErr *err)
{
    int64_t window[(ENG_SIZE_MAX_DRAFTED + 1) * ENG_MAX_ORDER], n = step->each * c->orders;
    EngIdSet set = {0};
    EngRng rng;
    double distinct = 0;
    EngStatus status = eng_size_keys(c, err);
    if (!status) status = eng_idset_create(&set, step->streams * n, err);
    if (status) return status;
    eng_rng_seed(&rng, SEED);
    for (int s = 0; s < STEPS; s++) {
        eng_idset_clear(&set);
        for (int64_t i = 0; i < step->streams; i++) {
            int64_t at = (int64_t)eng_rng_below(&rng, (uint64_t)(c->n_tokens - step->each + 1));
            int64_t gained = gained_of(step, &rng);
            const int64_t *keys = eng_size_keys_at(c, at);
            if (gained < step->each) {
                eng_size_window_keys(c, at, step->each, gained, window);
                keys = window;
            }
            for (int64_t k = 0; k < n; k++) eng_idset_add(&set, (uint64_t)keys[k]);
        }
        distinct += (double)set.n;
    }
    *share = distinct / STEPS / (double)(step->streams * n);
    eng_idset_destroy(&set);
    return ENG_OK;
}

static EngStatus check_step(const EngSizeCorpus *c, const EngSizeStep *step, int64_t n_tokens,
                            EngErr *err)
{
    int64_t most = INT64_MAX / 64 / c->orders;
    if (step->streams < 1 || step->each < 1 || step->each > n_tokens ||
        step->streams > most / step->each)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "corpus %s has %" PRId64 " tokens, a step takes %" PRId64 " in a row",
                        c->name, n_tokens, step->each);
    if (step->acceptance < 1 && step->each > ENG_SIZE_MAX_DRAFTED + 1)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "corpus %s: more than %d drafts", c->name,
                        ENG_SIZE_MAX_DRAFTED);
    return ENG_OK;
}

static void name_step(EngStr *what, const char *count, const EngSizeStep *step)
{
    eng_str_printf(what, "%s of %" PRId64 " x %" PRId64, count, step->streams, step->each);
    if (step->acceptance < 1) eng_str_printf(what, " accepted %.17g", step->acceptance);
}

EngStatus eng_size_unique(const EngSizeCorpus *corpus, const EngSizeStep *step, double *share,
                          EngErr *err)
{
    EngStr what = {0};
    EngStatus status = check_step(corpus, step, corpus->n_tokens, err);
    name_step(&what, "unique", step);
    if (!status) status = eng_str_status(&what, err);
    if (!status && !eng_size_counts_find(corpus->counts, what.text, share, 1)) {
        status = eng_size_keys(corpus, err);
        int64_t from = eng_now_ns();
        if (!status) status = count_unique(corpus, step, share, err);
        if (!status)
            status = eng_size_counts_add(corpus->counts, what.text, share, 1,
                                         (double)(eng_now_ns() - from) * 1e-9, err);
    }
    eng_str_free(&what);
    return status;
}

/* ---- caches ------------------------------------------------------------------------------------
 */

typedef struct Walk {
    const EngSizeCorpus *corpus;
    EngSizeStep step;
    int64_t length; /* tokens of each stream's part */
    int64_t n;      /* look-ups */
    int64_t *made;  /* [n] in their order, with rejected drafts; NULL: text only, see key_at */
} Walk;

/* The i-th key of the parts read side by side. */
static int64_t key_at(const Walk *w, int64_t i)
{
    if (w->made) return w->made[i];
    int64_t orders = w->corpus->orders, token = i / orders;
    int64_t part = token % w->step.streams, at = token / w->step.streams;
    return eng_size_keys_at(w->corpus, part * w->length + at)[i % orders];
}

/* Step by step a window of each stream, from where its last one was accepted to. Counts look-ups;
 * writes them where there is room. */
static void make_windows(Walk *w, int64_t *at)
{
    int64_t each = w->step.each, orders = w->corpus->orders;
    EngRng rng;
    eng_rng_seed(&rng, SEED);
    w->n = 0;
    memset(at, 0, (size_t)w->step.streams * sizeof *at);
    for (bool more = true; more;) {
        more = false;
        for (int64_t s = 0; s < w->step.streams; s++) {
            if (at[s] + each > w->length) continue;
            int64_t gained = gained_of(&w->step, &rng);
            if (w->made)
                eng_size_window_keys(w->corpus, s * w->length + at[s], each, gained,
                                     w->made + w->n);
            w->n += each * orders;
            at[s] += gained;
            more = true;
        }
    }
}

static EngStatus begin_walk(Walk *w, EngErr *err)
{
    int64_t *at = NULL;
    w->n = w->length * w->step.streams * w->corpus->orders;
    if (w->step.acceptance >= 1) return ENG_OK;
    EngStatus status =
        eng_alloc_or((void **)&at, (size_t)w->step.streams, sizeof *at, "streams", err);
    if (!status) make_windows(w, at);
    if (!status && w->n)
        status = eng_alloc_or((void **)&w->made, (size_t)w->n, sizeof *w->made, "windows", err);
    if (w->made) make_windows(w, at);
    eng_free(at);
    return status;
}

/* Whether the i-th of n is the last of an eighth, whose number goes to *part. */
static bool ends_part(int64_t i, int64_t n, int *part)
{
    *part = (int)((i + 1) * PARTS / n) - 1;
    return (i + 1) * PARTS / n > i * PARTS / n;
}

typedef struct Hits {
    int64_t hits[PARTS][ENG_SIZE_MAX_CACHES]; /* up to the end of each part */
    int64_t distinct;
} Hits;

static EngStatus walk_admission(const Walk *w, const EngSizeCaches *c, Hits *counts, EngErr *err)
{
    EngAdmission admission;
    int part;
    EngStatus status = eng_admission_init(&admission, err);
    for (int64_t i = 0; i < w->n && !status; i++) {
        status = eng_admission_add(&admission, key_at(w, i), err);
        if (!status && ends_part(i, w->n, &part))
            eng_admission_hits(&admission, c->capacities, c->n, counts->hits[part]);
    }
    counts->distinct = admission.seen.n;
    eng_admission_fini(&admission);
    return status;
}

static EngStatus walk_curve(const Walk *w, EngCachePolicy policy, const EngSizeCaches *c,
                            Hits *counts, EngErr *err)
{
    EngCurve curve;
    int part;
    EngStatus status = eng_curve_open(&curve, policy, policy == ENG_CACHE_WAYS ? WAYS : 0,
                                      c->capacities, c->n, err);
    if (status) return status;
    for (int64_t i = 0; i < w->n && !status; i++) {
        int64_t key = key_at(w, i);
        status = eng_curve_add(&curve, &key, 1, err);
        if (!status && ends_part(i, w->n, &part)) eng_curve_hits(&curve, counts->hits[part]);
    }
    counts->distinct = curve.distinct;
    eng_curve_close(&curve);
    return status;
}

/* Half of the 95 % interval of the mean of the eighths' own rates: how much the rate depends on
 * the text. */
static double band_of(const Hits *counts, int c, double accesses)
{
    double sum = 0, squares = 0;
    for (int p = 0; p < PARTS; p++) {
        int64_t before = p ? counts->hits[p - 1][c] : 0;
        double rate = (double)(counts->hits[p][c] - before) * PARTS / accesses;
        sum += rate;
        squares += rate * rate;
    }
    double variance = (squares - sum * sum / PARTS) / (PARTS - 1);
    return T_95 * sqrt(fmax(0, variance) / PARTS);
}

static EngStatus count_hits(Walk *w, const char *policy, EngSizeCaches *caches, EngErr *err)
{
    Hits *counts = NULL;
    EngCachePolicy other = !strcmp(policy, "ways") ? ENG_CACHE_WAYS : ENG_CACHE_LRU;
    EngStatus status = begin_walk(w, err);
    if (!status && w->n < PARTS)
        status = ENG_FAIL(err, ENG_UNSUPPORTED,
                          "corpus %s has %" PRId64 " tokens, %" PRId64 " streams need more",
                          w->corpus->name, w->corpus->n_tokens, w->step.streams);
    if (!status) status = eng_alloc_or((void **)&counts, 1, sizeof *counts, "hits", err);
    if (!status)
        status = !strcmp(policy, "admission") ? walk_admission(w, caches, counts, err)
                                              : walk_curve(w, other, caches, counts, err);
    for (int i = 0; i < caches->n && !status; i++) {
        caches->rates[i] = (double)counts->hits[PARTS - 1][i] / (double)w->n;
        caches->bands[i] = band_of(counts, i, (double)w->n);
    }
    if (!status) caches->cold = counts->distinct ? (double)counts->distinct / (double)w->n : NAN;
    eng_free(counts);
    eng_free(w->made);
    return status;
}

EngStatus eng_size_hits(const EngSizeCorpus *corpus, const char *policy, const EngSizeStep *step,
                        int64_t n_tokens, EngSizeCaches *caches, EngErr *err)
{
    Walk w = {.corpus = corpus, .step = *step};
    double values[2 * ENG_SIZE_MAX_CACHES + 1];
    int n = caches->n;
    EngStr what = {0};
    EngStatus status = check_step(corpus, step, corpus->n_tokens, err);
    if (!status && (n > ENG_SIZE_MAX_CACHES || n_tokens > corpus->n_tokens))
        status = ENG_FAIL(err, ENG_UNSUPPORTED, "corpus %s: %" PRId64 " tokens, %d caches",
                          corpus->name, n_tokens, n);
    if (status) return status;
    w.length = n_tokens / step->streams;
    name_step(&what, policy, step);
    eng_str_printf(&what, " in %" PRId64 " tokens, keys", n_tokens);
    for (int i = 0; i < n; i++) eng_str_printf(&what, " %" PRId64, caches->capacities[i]);
    status = eng_str_status(&what, err);
    if (!status && !eng_size_counts_find(corpus->counts, what.text, values, 2 * n + 1)) {
        status = eng_size_keys(corpus, err);
        int64_t from = eng_now_ns();
        if (!status) status = count_hits(&w, policy, caches, err);
        if (status) goto out;
        memcpy(values, caches->rates, (size_t)n * sizeof *values);
        memcpy(values + n, caches->bands, (size_t)n * sizeof *values);
        values[2 * n] = caches->cold;
        status = eng_size_counts_add(corpus->counts, what.text, values, 2 * n + 1,
                                     (double)(eng_now_ns() - from) * 1e-9, err);
    }
    memcpy(caches->rates, values, (size_t)n * sizeof *values);
    memcpy(caches->bands, values + n, (size_t)n * sizeof *values);
    caches->cold = values[2 * n];
out:
    eng_str_free(&what);
    return status;
}
