/* Counting and judging a stream; see audit.h. */
#include "bench/experiments/audit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define COUNTED_TOKENS (1 << 16)          /* of all batches of a size together */
#define NGRAM_TOKENS   ((int64_t)1 << 19) /* of the stream's start, for n-grams */
#define MARGIN         1.25               /* below the least real share, on what is missing to 1 */
#define RANDOM         3.0                /* above the largest: so many times less repeats */
#define HALF           0.5
#define REPLAY         0.9

const int64_t eng_audit_sizes[ENG_AUDIT_SIZES] = {64, 256, 1024, 4096};

/* ---- ids and n-grams ---------------------------------------------------------------------------
 */

static EngStatus distinct_of(const uint32_t *ids, int64_t n, int64_t *distinct, EngErr *err)
{
    EngIdSet set;
    EngStatus status = eng_idset_create(&set, n, err);
    if (status) return status;
    for (int64_t i = 0; i < n; i++) eng_idset_add(&set, ids[i]);
    *distinct = set.n;
    eng_idset_destroy(&set);
    return ENG_OK;
}

typedef struct Window {
    uint64_t mix; /* of its tokens: sorts most windows without looking at them */
    int64_t at;
} Window;

typedef struct Order {
    const int32_t *stream;
    int n;
} Order;

static int compare_windows(const void *a, const void *b, void *context)
{
    const Window *x = a, *y = b;
    const Order *order = context;
    if (x->mix != y->mix) return x->mix < y->mix ? -1 : 1;
    int same = memcmp(order->stream + x->at, order->stream + y->at,
                      (size_t)order->n * sizeof *order->stream);
    return same ? same : (x->at > y->at) - (x->at < y->at);
}

static void keep_top(EngAuditNgram *top, int *n, int64_t at, double share)
{
    int place = *n;
    while (place > 0 && (top[place - 1].share < share ||
                         (top[place - 1].share == share && top[place - 1].at > at)))
        place--;
    if (place == ENG_AUDIT_TOP) return;
    if (*n < ENG_AUDIT_TOP) ++*n;
    memmove(top + place + 1, top + place, (size_t)(*n - 1 - place) * sizeof *top);
    top[place] = (EngAuditNgram){at, share};
}

/* Sorts the windows of an order; equal neighbours are one n-gram, the first of them its first. */
static EngStatus count_ngrams(const EngAuditInput *input, int order, EngAudit *audit, EngErr *err)
{
    int64_t tokens = input->n_tokens < NGRAM_TOKENS ? input->n_tokens : NGRAM_TOKENS;
    int64_t n = tokens - order + 1;
    Order by = {input->compressed, order};
    Window *windows;
    if (n < 1) return ENG_OK;
    EngStatus status = eng_alloc_or((void **)&windows, (size_t)n, sizeof *windows, "n-grams", err);
    if (status) return status;
    for (int64_t i = 0; i < n; i++) {
        uint64_t mix = 0;
        for (int k = 0; k < order; k++)
            mix = (mix ^ (uint32_t)input->compressed[i + k]) * 0x9e3779b97f4a7c15u;
        windows[i] = (Window){mix, i};
    }
    qsort_r(windows, (size_t)n, sizeof *windows, compare_windows, &by);
    for (int64_t i = 0, from = 0; i < n; i++) {
        bool last = i + 1 == n || windows[i + 1].mix != windows[i].mix ||
                    memcmp(input->compressed + windows[i + 1].at, input->compressed + windows[i].at,
                           (size_t)order * sizeof *input->compressed) != 0;
        if (!last) continue;
        keep_top(audit->top[order], &audit->n_top[order], windows[from].at,
                 (double)(i + 1 - from) / (double)n);
        from = i + 1;
    }
    eng_free(windows);
    return ENG_OK;
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static EngStatus count_size(const EngAddress *address, const int32_t *stream, int64_t n_tokens,
                            int64_t size, EngReuseCounts *counts, EngErr *err)
{
    EngReuse reuse;
    EngStatus status = eng_reuse_open(&reuse, address, stream, n_tokens, size, COUNTED_TOKENS, err);
    if (status) return status;
    eng_reuse_count(&reuse, counts);
    eng_reuse_close(&reuse);
    return ENG_OK;
}

static EngStatus count_uncompressed(const EngAuditInput *input, EngAudit *audit, EngErr *err)
{
    EngReuseCounts counts;
    int32_t *ids;
    EngStatus status =
        eng_alloc_or((void **)&ids, (size_t)input->n_tokens, sizeof *ids, "original ids", err);
    if (status) return status;
    for (int64_t i = 0; i < input->n_tokens; i++) ids[i] = (int32_t)input->ids[i];
    status = count_size(input->original, ids, input->n_tokens, eng_audit_sizes[audit->n_sizes - 1],
                        &counts, err);
    if (!status) audit->uncompressed = counts.distinct_all;
    eng_free(ids);
    return status;
}

EngStatus eng_audit_count(const EngAuditInput *input, int only_size, EngAudit *audit, EngErr *err)
{
    int64_t n = input->n_tokens;
    EngStatus status = ENG_OK;
    *audit = (EngAudit){.n_tokens = n,
                        .uncompressed = NAN,
                        .min_order = input->address->min_order,
                        .max_order = input->address->max_order};
    if (n < eng_audit_sizes[0])
        return ENG_FAIL(err, ENG_UNSUPPORTED, "%lld tokens are fewer than a batch of %lld",
                        (long long)n, (long long)eng_audit_sizes[0]);
    audit->n_sizes = 1;
    while (audit->n_sizes < ENG_AUDIT_SIZES && n >= 2 * eng_audit_sizes[audit->n_sizes])
        audit->n_sizes++;
    for (int i = 0; i < audit->n_sizes && !status; i++)
        if (only_size < 0 || only_size == i)
            status = count_size(input->address, input->compressed, n, eng_audit_sizes[i],
                                &audit->counts[i], err);
    if (!status) status = count_ngrams(input, audit->min_order, audit, err);
    if (only_size >= 0 || status) return status;
    for (int order = audit->min_order + 1; order <= audit->max_order && !status; order++)
        status = count_ngrams(input, order, audit, err);
    if (!status)
        status = distinct_of((const uint32_t *)input->compressed, n, &audit->distinct_ids, err);
    if (!status && input->ids) status = distinct_of(input->ids, n, &audit->distinct_original, err);
    if (!status && input->ids && input->original) status = count_uncompressed(input, audit, err);
    return status;
}

/* ---- verdict -----------------------------------------------------------------------------------
 */

static const char *const g_verdicts[] = {"text-like", "filler-like", "replayed",
                                         "repeating", "random-like", "unknown"};

const char *eng_audit_verdict_name(EngAuditVerdict verdict)
{
    return g_verdicts[verdict];
}

typedef struct Range {
    double least, most, filler;
    const EngAuditCorpus *named; /* prose, or the first real corpus */
    int n;
} Range;

static Range range_of(const EngAuditCorpus *corpora, int n)
{
    Range range = {.least = INFINITY, .most = -INFINITY, .filler = NAN};
    for (int i = 0; i < n; i++) {
        const EngAuditCorpus *c = &corpora[i];
        if (!strcmp(c->kind, "filler")) range.filler = c->distinct_all;
        if (strcmp(c->kind, "real") || isnan(c->distinct_all)) continue;
        range.least = fmin(range.least, c->distinct_all);
        range.most = fmax(range.most, c->distinct_all);
        if (!range.named || !strcmp(c->name, "prose")) range.named = c;
        range.n++;
    }
    return range;
}

static EngAuditVerdict judge(double distinct, double repeat, const Range *range)
{
    double typical = range->named->distinct_all;
    bool near_filler = distinct <= 2 * range->filler; /* false when there is none */
    if (near_filler || distinct < HALF * range->least) return ENG_AUDIT_FILLER;
    if (repeat >= REPLAY && repeat > range->named->repeat_prev + HALF) return ENG_AUDIT_REPLAYED;
    /* Shares near 1 are told apart by what is missing to 1. */
    if (1 - distinct > MARGIN * (1 - range->least)) return ENG_AUDIT_REPEATING;
    if (1 - distinct < (1 - range->most) / RANDOM && distinct > typical) return ENG_AUDIT_RANDOM;
    return ENG_AUDIT_TEXT;
}

EngAuditVerdict eng_audit_judge(double distinct_all, double repeat_prev, int64_t batch,
                                const EngAuditCorpus *corpora, int n, char *out, size_t size)
{
    Range range = range_of(corpora, n);
    double share = 100 * distinct_all;
    if (!range.n) {
        snprintf(out, size,
                 "no real corpus to compare with: %.3g %% distinct rows in batches of %lld tokens "
                 "(scripts/fetch_data gets text)",
                 share, (long long)batch);
        return ENG_AUDIT_UNKNOWN;
    }
    EngAuditVerdict verdict = judge(distinct_all, repeat_prev, &range);
    double real = 100 * range.named->distinct_all;
    const char *name = range.named->name, *word = g_verdicts[verdict];
    switch (verdict) {
    case ENG_AUDIT_FILLER:
        snprintf(out, size,
                 "%s: %.2g %% distinct rows in batches of %lld tokens where %s has %.2g %%; gather "
                 "numbers from it flatter by caches",
                 word, share, (long long)batch, name, real);
        break;
    case ENG_AUDIT_REPLAYED:
        snprintf(out, size,
                 "%s: a batch of %lld tokens reads %.2g %% of the rows that the batch before read, "
                 "%s %.2g %%; a cache of one batch would serve it",
                 word, (long long)batch, 100 * repeat_prev, name, 100 * range.named->repeat_prev);
        break;
    case ENG_AUDIT_REPEATING:
        snprintf(out, size,
                 "%s: %.2g %% distinct rows in batches of %lld tokens, fewer than any real corpus "
                 "here (%.2g to %.2g %%); expect more cache hits than text gives",
                 word, share, (long long)batch, 100 * range.least, 100 * range.most);
        break;
    case ENG_AUDIT_RANDOM:
        snprintf(out, size,
                 "%s: %.3g %% distinct rows in batches of %lld tokens, more than any real corpus "
                 "here (%.2g to %.2g %%); caches and deduplication look worse than they are",
                 word, share, (long long)batch, 100 * range.least, 100 * range.most);
        break;
    default:
        snprintf(out, size,
                 "%s: %.2g %% distinct rows in batches of %lld tokens, as real corpora here have "
                 "(%.2g to %.2g %%, %s %.2g %%)",
                 word, share, (long long)batch, 100 * range.least, 100 * range.most, name, real);
    }
    return verdict;
}
