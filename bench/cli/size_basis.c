/* What the figures of a path are worth: which of its values are specifications, measurements or
 * assumptions, whether what lies in its tiers is larger than what they were measured with, and
 * whether the hits of its cache are synthetic. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/cli/size_parts.h"

#define GIB       0x1p30
#define MAX_TIERS (ENG_MAX_STAGES + 2)

/* Tiers of a path, then the link of an exchange and a holder of scales that are not on it. */
typedef struct Tiers {
    int n;
    const EngTier *tiers[MAX_TIERS];
} Tiers;

static Tiers tiers_of(const EngSize *s, const EngSizePath *path)
{
    const EngTier *others[] = {s->link, s->scales};
    Tiers t = {.n = path->n};
    memcpy(t.tiers, path->tiers, sizeof path->tiers);
    for (int o = 0; o < 2; o++) {
        bool there = !others[o];
        for (int i = 0; i < t.n; i++) there = there || t.tiers[i] == others[o];
        if (!there) t.tiers[t.n++] = others[o];
    }
    return t;
}

/* Whether this value is part of bytes or times; prices have ranges of their own. */
static bool counts(const EngSize *s, const EngSizePath *path, const EngTier *tier, EngTierField f)
{
    bool tables = tier == path->tiers[0];
    switch (f) {
    case ENG_TIER_RENT:
    case ENG_TIER_DEVICE_PRICE:
    case ENG_TIER_POWER:
    case ENG_TIER_UNIT_PRICE:
    case ENG_TIER_BYTE_PRICE:
    case ENG_TIER_COPY_BANDWIDTH:
    case ENG_TIER_FLOPS:
        return false;
    case ENG_TIER_FETCH_SLOWDOWN:
    case ENG_TIER_COMPUTE_SLOWDOWN:
        return tables && !s->interference_given;
    case ENG_TIER_MEASURED_BYTES:
        return tables || tier == s->cache || tier == s->scales;
    default:
        return true;
    }
}

/* Lists the values of one origin; how many there are. */
static int add_values(const EngSize *s, const EngSizePath *path, const Tiers *t, EngOrigin origin,
                      EngStr *out)
{
    static const char *const words[ENG_ORIGIN_COUNT] = {"", "specification", "measurement",
                                                        "assumption"};
    static const char *const options[] = {"interference", "hash", "issue", "scheduling"};
    int n = 0;
    const char *before = out->n ? "; " : "";
    for (int i = 0; i < t->n; i++)
        for (int f = 0; f < ENG_TIER_FIELD_COUNT; f++) {
            const EngTier *tier = t->tiers[i];
            if (tier->fields[f].origin != origin || !counts(s, path, tier, (EngTierField)f))
                continue;
            if (!n++) eng_str_printf(out, "%s%s:", before, words[origin]);
            eng_str_printf(out, " %s.%s", tier->name, eng_tier_field_name((EngTierField)f));
        }
    for (int o = 0; o < 4 && origin == ENG_ASSUMED; o++) {
        if (!eng_cli_text(s->cli, options[o])) continue;
        if (!n++) eng_str_printf(out, "%s%s:", before, words[origin]);
        eng_str_printf(out, " --%s", options[o]);
    }
    return n;
}

/* Which of these tiers replicas of a host share, of which there may be several. */
static void add_sharing(const EngSize *s, const EngSizePath *path, const Tiers *t, EngStr *out)
{
    bool first = true, peers = s->scheme == ENG_SHARD_PEER_READ;
    if (eng_size_replicas_of_host(s) < 2) return;
    for (int i = 0; i < t->n; i++) {
        bool collective = i >= path->n && t->tiers[i] == s->link && !peers; /* meets none */
        if (collective || !eng_size_of_host(s, path, t->tiers[i])) continue;
        eng_str_printf(out, "%s %s",
                       first ? "; replicas of a host, out of step with each other, share" : "",
                       t->tiers[i]->name);
        first = false;
    }
}

static void add_larger(const EngTier *tier, const char *what, double bytes, EngStr *out)
{
    double measured = tier->fields[ENG_TIER_MEASURED_BYTES].value;
    if (measured > 0 && bytes > measured)
        eng_str_printf(out, "%s%s only with %.3g GiB where %s has %.3g", out->n ? ", " : "",
                       tier->name, measured / GIB, what, bytes / GIB);
}

/* Rates that were measured with less are extrapolated: caches and page walks differ. */
static EngStatus find_larger(const EngSize *s, const EngSizePath *path, EngStr *out, EngErr *err)
{
    EngAddress address;
    EngStatus status = eng_address_build(&s->preset.address, &address, err);
    if (status) return status;
    double rows = (double)address.rows[0];
    double values = rows * (double)eng_row_value_bytes(s->preset.row_format, s->preset.row_dims);
    double scales = rows * (double)eng_row_scale_bytes(s->preset.row_format, s->preset.row_dims);
    double beside = s->scales ? 0 : s->scales_everywhere ? scales : scales / s->shards;
    add_larger(path->tiers[0], "a table", values / s->shards + beside, out);
    if (s->scales) add_larger(s->scales, "a table of scales", scales, out);
    if (s->cache) add_larger(s->cache, "the row cache", s->cache_bytes, out);
    return eng_str_status(out, err);
}

EngStatus eng_size_basis(const EngSize *s, EngSizePath *path, EngErr *err)
{
    Tiers tiers = tiers_of(s, path);
    EngStr values = {0}, larger = {0}, standing = {0}, basis = {0};
    int given = add_values(s, path, &tiers, ENG_SPEC, &values);
    add_values(s, path, &tiers, ENG_MEASURED, &values);
    given += add_values(s, path, &tiers, ENG_ASSUMED, &values);
    add_sharing(s, path, &tiers, &values);
    EngStatus status = find_larger(s, path, &larger, err);
    eng_str_printf(&standing, "%s%severy value of the path was measured",
                   given || larger.n || s->zipf ? "extrapolated: " : "", given ? "not " : "");
    if (larger.n) eng_str_printf(&standing, ", %s", larger.text);
    if (s->zipf) eng_str_printf(&standing, ", hits are %s", s->zipf_label);
    eng_str_printf(&basis, "%s; %s", standing.text ? standing.text : "",
                   values.text ? values.text : "");
    if (!status) status = eng_str_status(&values, err);
    if (!status) status = eng_str_status(&standing, err);
    if (!status) status = eng_str_status(&basis, err);
    eng_str_free(&larger);
    path->values = values.text;
    path->standing = standing.text;
    path->basis = basis.text;
    return status;
}
