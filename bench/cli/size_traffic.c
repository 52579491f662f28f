/* What a kind of step looks up, and what of it must be read: traffic, means asked for, and shares
 * that options or a token stream give; see size_parts.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/cli/size_fields.h"
#include "sim/cache/zipf.h"

/* ---- traffic -----------------------------------------------------------------------------------
 */

static EngStatus check_traffic(EngTraffic *t, const char *text, EngErr *err)
{
    if (t->decode && !t->streams)
        return ENG_FAIL(err, ENG_USAGE, "--traffic=%s: streams=N is needed", text);
    if (!t->decode && !t->tokens)
        return ENG_FAIL(err, ENG_USAGE, "--traffic=%s: tokens=N of a step is needed", text);
    if (!t->layer)
        return ENG_FAIL(err, ENG_USAGE,
                        "--traffic=%s: layer=TIME is needed, of one layer of such a step: 800us",
                        text);
    if (t->drafted && !t->accepted)
        return ENG_FAIL(err, ENG_USAGE,
                        "--traffic=%s: accepted=N is needed, tokens that a step yields per stream",
                        text);
    if (t->accepted && !(t->accepted >= 1 && t->accepted <= t->drafted + 1))
        return ENG_FAIL(err, ENG_USAGE,
                        "--traffic=%s: accepted=%g is not 1 to %g, the drafted tokens and one more",
                        text, t->accepted, t->drafted + 1);
    if (t->drafted > ENG_SIZE_MAX_DRAFTED)
        return ENG_FAIL(err, ENG_USAGE, "--traffic=%s: more than %d drafted tokens", text,
                        ENG_SIZE_MAX_DRAFTED);
    t->acceptance = t->drafted ? eng_size_acceptance(t->drafted, t->accepted) : 1;
    double whole[] = {t->streams, t->drafted, t->tokens};
    for (int i = 0; i < 3; i++)
        if (whole[i] != floor(whole[i]) || whole[i] > 1e9)
            return ENG_FAIL(err, ENG_USAGE, "--traffic=%s: %g is no whole number up to 1e9", text,
                            whole[i]);
    if (t->decode) {
        t->tokens = t->streams * (t->drafted + 1);
        t->yield = t->streams * (t->drafted ? t->accepted : 1);
    } else
        t->yield = t->tokens;
    return ENG_OK;
}

/* "decode 128", "decode 128 #2": points and lines of a plan are told apart by it. */
static EngStatus name_traffic(EngSize *s, EngTraffic *t, const char *text, EngErr *err)
{
    const char *kind = t->decode ? "decode" : "prefill";
    double size = t->decode ? t->streams : t->tokens;
    int before = 0;
    for (const EngTraffic *other = s->traffic; other < t; other++)
        before +=
            other->decode == t->decode && size == (t->decode ? other->streams : other->tokens);
    if (before)
        snprintf(t->name, sizeof t->name, "%s %.0f #%d", kind, size, before + 1);
    else
        snprintf(t->name, sizeof t->name, "%s %.0f", kind, size);
    return eng_size_given_once(s, "traffic", text, err);
}

EngStatus eng_size_read_traffic(EngSize *s, const char *text, EngErr *err)
{
    if (s->n_traffic == ENG_SIZE_MAX_TRAFFIC)
        return ENG_FAIL(err, ENG_USAGE, "--traffic: more than %d", ENG_SIZE_MAX_TRAFFIC);
    EngTraffic *t = &s->traffic[s->n_traffic++];
    const EngSizeField decode[] = {{"streams", ENG_DIM_COUNT, &t->streams},
                                   {"drafted", ENG_DIM_COUNT, &t->drafted},
                                   {"accepted", ENG_DIM_NUMBER, &t->accepted},
                                   {"layer", ENG_DIM_SECONDS, &t->layer},
                                   {"rate", ENG_DIM_PER_S, &t->rate}};
    const EngSizeField prefill[] = {{"tokens", ENG_DIM_COUNT, &t->tokens},
                                    {"layer", ENG_DIM_SECONDS, &t->layer},
                                    {"rate", ENG_DIM_PER_S, &t->rate}};
    const char *rest = text;
    char word[16] = "";
    eng_size_next_word(&rest, word, sizeof word);
    t->decode = !strcmp(word, "decode");
    if (!t->decode && strcmp(word, "prefill"))
        return ENG_FAIL(err, ENG_USAGE, "--traffic=%s: does not begin with decode or prefill",
                        text);
    EngStatus status = t->decode ? eng_size_read_fields("traffic", rest, decode, 5, err)
                                 : eng_size_read_fields("traffic", rest, prefill, 3, err);
    if (!status) status = check_traffic(t, text, err);
    for (int i = 0; !status && i < s->n_layers; i++) t->times[i] = t->layer;
    return status ? status : name_traffic(s, t, text, err);
}

/* "25ms" for all traffic, or "decode=25ms,prefill=1s". */
EngStatus eng_size_read_slo(EngSize *s, EngErr *err)
{
    const char *text = eng_cli_text(s->cli, "slo");
    double slo[2] = {0};
    int kinds[2] = {0};
    if (!text) return ENG_OK;
    const EngSizeField fields[] = {{"prefill", ENG_DIM_SECONDS, &slo[0]},
                                   {"decode", ENG_DIM_SECONDS, &slo[1]}};
    if (strpbrk(text, "%") || (text[0] == 'p' && strncmp(text, "prefill", 7)))
        return ENG_FAIL(err, ENG_USAGE,
                        "--slo=%s: a percentile needs a model of events, which there is not; give "
                        "a mean: --slo=25ms",
                        text);
    EngStatus status;
    if (strchr(text, '='))
        status = eng_size_read_fields("slo", text, fields, 2, err);
    else {
        status = eng_size_maybe_quantity(s, "slo", ENG_DIM_SECONDS, &slo[0], err);
        slo[1] = slo[0];
    }
    for (int i = 0; i < s->n_traffic; i++) {
        s->traffic[i].slo = slo[s->traffic[i].decode];
        kinds[s->traffic[i].decode]++;
    }
    for (int k = 0; k < 2 && !status && strchr(text, '='); k++)
        if (slo[k] && !kinds[k])
            status = ENG_FAIL(err, ENG_USAGE, "--slo=%s: no --traffic is %s", text, fields[k].key);
    return status;
}

/* ---- shares ------------------------------------------------------------------------------------
 */

static EngStatus given_share(const EngSize *s, const char *option, const char *why, double least,
                             double *value, EngErr *err)
{
    const char *text;
    EngStatus status = eng_size_need_text(s, option, why, &text, err);
    if (status) return status;
    status = eng_share_parse(text, value, err);
    if (status) return eng_err_prefix(err, "--%s", option), status;
    if (!(*value >= least && *value <= 1))
        return ENG_FAIL(err, ENG_USAGE, "--%s=%s: not a share up to 1", option, text);
    return ENG_OK;
}

/* To a cache, repeats inside a step are hits of all look-ups; what it lacks is read once a step, so
 * of the deduplicated rows it holds fewer. */
static double hits_of_unique(double rate, double unique)
{
    return 1 - fmin(1 - rate, unique) / unique;
}

/* Deduplication and cache as the first corpus has them. */
static EngStatus shares_of_corpus(EngSize *s, EngTraffic *t, EngErr *err)
{
    const EngSizeCorpus *c = &s->corpora[0];
    const EngSizeStep step = {.streams = t->decode ? (int64_t)t->streams : 1,
                              .each = (int64_t)(t->decode ? t->drafted + 1 : t->tokens),
                              .acceptance = t->acceptance};
    char drafts[96] = "";
    if (t->acceptance < 1)
        snprintf(drafts, sizeof drafts,
                 ", drafts accepted with %.3g each, others assumed other tokens of it",
                 t->acceptance);
    EngSizeCaches cache = {.n = 1, .capacities = {(int64_t)(s->cache_bytes / c->key_bytes)}};
    EngStatus status = eng_size_unique(c, &step, &t->unique, err);
    if (status) return status;
    if (!s->cache) {
        snprintf(t->rests_on, sizeof t->rests_on, "corpus %s (%s, %lld tokens)%s, no cache",
                 c->name, c->kind, (long long)c->n_tokens, drafts);
        return ENG_OK;
    }
    if (cache.capacities[0] < 1)
        return ENG_FAIL(err, ENG_USAGE, "--cache: holds no key of %.0f B", c->key_bytes);
    status = eng_size_hits(c, s->policy, &step, c->n_tokens, &cache, err);
    if (status) return status;
    t->hits = hits_of_unique(cache.rates[0], t->unique);
    snprintf(t->rests_on, sizeof t->rests_on,
             "corpus %s (%s, %lld tokens, %lld streams side by side)%s, cache of %.3g GB in %s, "
             "%s: %.4g of all look-ups",
             c->name, c->kind, (long long)c->n_tokens, (long long)step.streams, drafts,
             s->cache_bytes / 1e9, s->cache->name, s->policy, cache.rates[0]);
    return ENG_OK;
}

/* What says how much a cache holds must be there, and nothing that says it twice or of none. */
static EngStatus check_shares(const EngSize *s, int n_corpora, EngErr *err)
{
    const char *policy = eng_cli_text(s->cli, "policy");
    if (n_corpora > ENG_SIZE_MAX_TRAFFIC)
        return ENG_FAIL(err, ENG_USAGE, "--corpus: more than %d", ENG_SIZE_MAX_TRAFFIC);
    if (n_corpora && (eng_cli_text(s->cli, "hits") || eng_cli_text(s->cli, "unique")))
        return ENG_FAIL(err, ENG_USAGE, "--corpus gives what --unique and --hits would");
    if (s->zipf && (n_corpora || eng_cli_text(s->cli, "hits")))
        return ENG_FAIL(err, ENG_USAGE, "--zipf: --%s tells already what a cache holds",
                        n_corpora ? "corpus" : "hits");
    if (s->zipf && !s->cache)
        return ENG_FAIL(err, ENG_USAGE, "--zipf=%g: of which cache? --cache=BYTES@TIER is needed",
                        s->zipf);
    if (policy && !(s->cache && n_corpora))
        return ENG_FAIL(err, ENG_USAGE,
                        "--policy=%s: needs --cache, and --corpus, whose reuse tells what it holds",
                        policy);
    if (s->cache && n_corpora && strcmp(s->policy, "lru") && strcmp(s->policy, "ways") &&
        strcmp(s->policy, "admission"))
        return ENG_FAIL(err, ENG_USAGE, "--cache: needs --policy=lru, ways (16) or admission");
    return ENG_OK;
}

/* SYNTHETIC: as if each look-up drew a row of its head by a Zipf law. Heads are alike, so a cache
 * holds as many rows of each. */
static EngStatus hits_of_zipf(const EngSize *s, EngTraffic *t, EngErr *err)
{
    EngAddress address;
    double rate;
    EngStatus status = eng_address_build(&s->preset.address, &address, err);
    if (status) return status;
    int64_t rows = address.rows[0] / address.n_columns;
    double bytes = (double)(eng_row_value_bytes(s->preset.row_format, s->preset.row_dims) +
                            eng_row_scale_bytes(s->preset.row_format, s->preset.row_dims)) *
                   address.n_columns * address.n_layers; /* of a row of each head */
    int64_t held = (int64_t)(s->cache_bytes / bytes);
    if (held < 1)
        return ENG_FAIL(err, ENG_USAGE, "--cache: does not hold a row of each head, %.0f B", bytes);
    status = eng_zipf_che_hit_rate(rows, s->zipf, held, &rate, err);
    if (status) return status;
    t->hits = hits_of_unique(rate, t->unique);
    snprintf(t->rests_on, sizeof t->rests_on,
             "--unique; hits are %s; cache of %.3g GB in %s, %lld of the %lld rows of a head: %.4g "
             "of all look-ups",
             s->zipf_label, s->cache_bytes / 1e9, s->cache->name,
             (long long)(held < rows ? held : rows), (long long)rows, rate);
    return ENG_OK;
}

static EngStatus shares_of_options(const EngSize *s, EngTraffic *t, EngErr *err)
{
    EngStatus status =
        given_share(s, "unique", "share of rows left by deduplication (1: none), or --corpus", 1e-9,
                    &t->unique, err);
    if (!status && s->zipf) return hits_of_zipf(s, t, err);
    if (!status)
        status = given_share(s, "hits",
                             "share of these that a cache holds (0: no cache), or --corpus with "
                             "--cache",
                             0, &t->hits, err);
    if (!status && t->hits > 0 && !s->cache)
        status = ENG_FAIL(err, ENG_USAGE, "--hits=%s: held where? --cache=BYTES@TIER is needed",
                          eng_cli_text(s->cli, "hits"));
    snprintf(t->rests_on, sizeof t->rests_on, "--unique and --hits");
    if (!status && s->cache)
        snprintf(t->rests_on, sizeof t->rests_on, "--unique and --hits, cache of %.3g GB in %s",
                 s->cache_bytes / 1e9, s->cache->name);
    return status;
}

EngStatus eng_size_read_shares(EngSize *s, EngErr *err)
{
    const char *policy = eng_cli_text(s->cli, "policy");
    int n = eng_cli_repeats(s->cli, "corpus");
    s->policy = policy ? policy : "";
    EngStatus status = check_shares(s, n, err);
    for (int i = 0; !status && i < n; i++)
        status = eng_size_given_once(s, "corpus", eng_cli_repeat(s->cli, "corpus", i), err);
    if (!status && n > 1 && !eng_cli_text(s->cli, "db"))
        status =
            ENG_FAIL(err, ENG_USAGE,
                     "--corpus=%s: a plan takes the first, others are for the report of a --db",
                     eng_cli_repeat(s->cli, "corpus", 1));
    for (int i = 0; !status && i < n; i++) {
        status =
            eng_size_corpus_open(eng_cli_text(s->cli, "data"), eng_cli_repeat(s->cli, "corpus", i),
                                 &s->preset, &s->corpora[i], err);
        if (!status) s->n_corpora++;
    }
    for (int i = 0; !status && i < s->n_traffic; i++)
        status = n ? shares_of_corpus(s, &s->traffic[i], err)
                   : shares_of_options(s, &s->traffic[i], err);
    return status;
}
