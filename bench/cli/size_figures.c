/* Points of a plan's bytes and times: what lies where, rows of a step, fetch against window, which
 * limit binds, sharing, requests under way. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/cli/size_points.h"
#include "sim/planner/knee.h"

#define US 1e6

static void rests_on_path(EngSizePoints *p, const EngSizePath *path, const EngTraffic *t)
{
    eng_size_rests(p, "%s; %s; %s", path->name, path->basis,
                   t ? t->rests_on : "no cache, no deduplication");
}

/* What a plan counts together in a picture of bytes. */
static const char *group_of(const EngLedgerLine *line)
{
    if (!strncmp(line->name, "table", 5)) return "Engram tables";
    if (!strncmp(line->name, "row cache", 9)) return "row cache";
    if (!strncmp(line->name, "cache of", 8)) return "caches of context";
    if (!strncmp(line->name, "staging", 7) || !strncmp(line->name, "decoded", 7) ||
        !strncmp(line->name, "row numbers", 11))
        return "staging";
    return "weights";
}

static EngStatus fit_point(const EngSizePath *path, const EngLedger *ledger, EngSizePoints *p,
                           EngErr *err)
{
    EngStr over = {0};
    eng_ledger_over(ledger, &over);
    EngStatus status = eng_str_status(&over, err);
    eng_size_point(p, "fit");
    eng_size_word(p, "path", path->name);
    eng_size_word(p, "fit", eng_size_fit(path, ledger));
    eng_size_word(p, "over", over.n ? over.text : "nothing");
    eng_size_value(p, ENG_SIZE_BYTES, (double)ledger->pinned);
    eng_size_value(p, ENG_SIZE_VALUE, (double)ledger->pin_limit);
    eng_size_rests(p, "the ledger, and capacities and pin limit of %s", path->name);
    eng_str_free(&over);
    return status;
}

static EngStatus ledger_points(const EngSize *s, EngSizePoints *p, EngErr *err)
{
    static const char *const places[] = {"device", "host", "drive"};
    for (int i = 0; i < s->n_paths; i++) {
        EngLedger ledger;
        EngStatus status = eng_size_ledger(s, &s->paths[i], &ledger, err);
        if (!status) status = fit_point(&s->paths[i], &ledger, p, err);
        if (status) return status;
        for (int l = 0; l < ledger.n; l++) {
            const EngLedgerLine *line = &ledger.lines[l];
            const char *group = group_of(line);
            for (int r = 0; r < s->n_reserves; r++)
                if (!strcmp(line->name, s->reserves[r].name)) group = "reserves";
            eng_size_point(p, "ledger");
            eng_size_word(p, "path", s->paths[i].name);
            eng_size_word(p, "place", places[line->place]);
            eng_size_word(p, "line", line->name);
            eng_size_word(p, "group", group);
            eng_size_number(p, "layer", line->layer);
            eng_size_value(p, ENG_SIZE_BYTES, (double)line->bytes);
            eng_size_value(p, ENG_SIZE_VALUE, (double)ledger.capacity[line->place]);
            eng_size_rests(p, "shapes of %s and addressing of %s",
                           s->model.n_weights ? s->model.name : "no model", s->preset.name);
        }
    }
    return ENG_OK;
}

typedef struct Design {
    const char *name;
    int heads, dims, drafted;
} Design;

static EngStatus row_points(const EngSize *s, EngSizePoints *p)
{
    int k = s->preset.address.heads, dims = s->preset.row_dims;
    int orders = s->preset.address.max_order - s->preset.address.min_order + 1;
    const Design designs[] = {{"as the preset", k, dims, 0},
                              {"5 drafted tokens", k, dims, 5},
                              {"half the heads", k / 2, dims, 0},
                              {"twice the heads", 2 * k, dims, 0},
                              {"half the dims", k, dims / 2, 0}};
    for (size_t d = 0; d < sizeof designs / sizeof *designs; d++)
        for (int streams = 1; streams <= 16384; streams *= 4) {
            double rows = (double)streams * (designs[d].drafted + 1) * orders * designs[d].heads;
            double row = (double)(eng_row_value_bytes(s->preset.row_format, designs[d].dims) +
                                  eng_row_scale_bytes(s->preset.row_format, designs[d].dims));
            eng_size_point(p, "rows");
            eng_size_word(p, "design", designs[d].name);
            eng_size_number(p, "streams", streams);
            eng_size_value(p, ENG_SIZE_ROWS, rows);
            eng_size_value(p, ENG_SIZE_BYTES, rows * row);
            eng_size_rests(p, "preset %s: %d orders, %d heads, %d dims", s->preset.name, orders, k,
                           dims);
        }
    return ENG_OK;
}

/* A step of `tokens` through a path without cache or deduplication. */
static EngStatus bare_step(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                           double tokens, EngSizeResult *result, EngErr *err)
{
    EngTraffic bare = *t;
    bare.tokens = tokens;
    bare.unique = 1;
    bare.hits = 0;
    bare.rate = 0;
    return eng_size_result(s, path, &bare, result, err);
}

/* Of a module at one layer, as if there were no other. */
static EngStatus hidden_point(const EngSize *s, const EngTraffic *t, double tokens, int layer,
                              const EngSizeResult *r, EngSizePoints *p, EngErr *err)
{
    EngQueuedFetch alone = {.window = s->scheduling + layer * t->layer,
                            .fetch = r->step.fetches[0].fetch};
    double added;
    EngStatus status = eng_queue_stalls(&alone, 1, s->hash, &r->input.interference, &added, err);
    if (status) return status;
    eng_size_point(p, "hidden");
    eng_size_word(p, "path", r->path->name);
    eng_size_number(p, "tokens", tokens);
    eng_size_number(p, "placement", layer);
    eng_size_value(p, ENG_SIZE_WINDOW_US, alone.window * US);
    eng_size_value(p, ENG_SIZE_STALL_US, alone.stall * US);
    eng_size_value(p, ENG_SIZE_STEP_US, r->step.step * US);
    eng_size_value(p, ENG_SIZE_SHARE, alone.stall / (r->step.step + added));
    rests_on_path(p, r->path, NULL);
    return ENG_OK;
}

static EngStatus gather_points(const EngSize *s, const EngSizePath *path, EngSizePoints *p,
                               EngErr *err)
{
    static const int layers[] = {0, 1, 2, 3, 4, 6, 8, 10, 14, 20, 28, 39};
    const EngTraffic *t = &s->traffic[0];
    for (int tokens = 1; tokens <= 65536; tokens *= 2) {
        EngSizeResult r;
        EngStatus status = bare_step(s, path, t, tokens, &r, err);
        if (status) return status;
        eng_size_point(p, "gather");
        eng_size_word(p, "path", path->name);
        eng_size_number(p, "tokens", tokens);
        eng_size_value(p, ENG_SIZE_ROWS, r.step.rows);
        eng_size_value(p, ENG_SIZE_FETCH_US, r.step.fetches[0].fetch * US);
        rests_on_path(p, path, NULL);
        if (tokens > 16384) continue;
        for (size_t l = 0; l < sizeof layers / sizeof *layers && layers[l] < s->n_layers; l++) {
            status = hidden_point(s, t, tokens, layers[l], &r, p, err);
            if (status) return status;
        }
    }
    return ENG_OK;
}

static EngStatus traffic_points(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                                EngSizePoints *p, EngErr *err)
{
    EngSizeResult r;
    EngStatus status = eng_size_result(s, path, t, &r, err);
    for (int k = 0; k < r.step.n && !status; k++) {
        eng_size_point(p, "plan");
        eng_size_word(p, "path", path->name);
        eng_size_word(p, "traffic", t->name);
        eng_size_number(p, "layer", r.step.layers[k]);
        eng_size_value(p, ENG_SIZE_FETCH_US, r.step.fetches[k].fetch * US);
        eng_size_value(p, ENG_SIZE_WINDOW_US, r.step.fetches[k].window * US);
        eng_size_value(p, ENG_SIZE_STALL_US, r.step.fetches[k].stall * US);
        eng_size_value(p, ENG_SIZE_STEP_US, (r.step.step + r.step.added) * US);
        eng_size_value(p, ENG_SIZE_ROWS, r.step.rows);
        rests_on_path(p, path, t);
    }
    for (int i = 0; i < r.step.gathers[0].n_stages && !status; i++) {
        const EngStage *stage = &r.step.gathers[0].stages[i];
        for (int term = 0; term < ENG_GATHER_COUNT; term++) {
            if (!(stage->terms[term] > 0 && stage->rows > 0)) continue;
            eng_size_point(p, "term");
            eng_size_word(p, "path", path->name);
            eng_size_word(p, "traffic", t->name);
            eng_size_word(p, "tier", stage->tier->name);
            eng_size_word(p, "limit", eng_gather_term_name((EngGatherTerm)term));
            eng_size_value(p, ENG_SIZE_TERM_US, stage->terms[term] * US);
            eng_size_value(p, ENG_SIZE_VALUE, (EngGatherTerm)term == stage->binding);
            rests_on_path(p, path, t);
        }
    }
    if (!status && r.step.exchange > 0) {
        eng_size_point(p, "term");
        eng_size_word(p, "path", path->name);
        eng_size_word(p, "traffic", t->name);
        eng_size_word(p, "tier", s->link->name);
        eng_size_word(p, "limit", "exchange");
        eng_size_value(p, ENG_SIZE_TERM_US, r.step.exchange * US);
        rests_on_path(p, path, t);
    }
    return status;
}

/* ---- sharing -----------------------------------------------------------------------------------
 */

static bool link_measured(const EngTier *link)
{
    return link->fields[ENG_TIER_LATENCY].origin == ENG_MEASURED &&
           link->fields[ENG_TIER_BANDWIDTH].origin == ENG_MEASURED;
}

static EngStatus sharding_points(const EngSize *s, EngSizePoints *p, EngErr *err)
{
    const EngTraffic *t = &s->traffic[0];
    EngStatus status = ENG_OK;
    for (int ranks = 2; ranks <= 64 && !status; ranks *= 2) {
        EngShardShape shape;
        status = eng_size_shape(s, t, ranks, &shape, err);
        for (int k = 0; k < ENG_SHARD_COUNT && !status; k++) {
            double bytes, seconds = NAN, mean = t->tokens * shape.columns / ranks;
            status = eng_shard_bytes((EngSharding)k, &shape, &bytes, err);
            if (!status && s->link && eng_size_exchange(s, (EngSharding)k, &shape, &seconds, NULL))
                seconds = NAN; /* what it needs is asked for when it is the plan's */
            eng_size_point(p, "sharding");
            eng_size_word(p, "scheme", eng_sharding_name((EngSharding)k));
            eng_size_word(p, "scales",
                          s->scales_everywhere ? "everywhere"
                          : s->scales          ? "apart"
                                               : "travel");
            eng_size_number(p, "ranks", ranks);
            eng_size_value(p, ENG_SIZE_BYTES, bytes);
            eng_size_value(p, ENG_SIZE_TERM_US, seconds * US);
            eng_size_value(p, ENG_SIZE_VALUE,
                           eng_shard_largest_load(shape.columns, ranks, t->tokens) / mean);
            eng_size_rests(p, "%s%s%s; %s, unique %.4g from %s",
                           s->link && !link_measured(s->link) ? "extrapolated: " : "",
                           s->link ? "latency and bandwidth of " : "volumes only",
                           s->link ? s->link->name : "", t->name, t->unique, t->rests_on);
        }
    }
    return status;
}

/* ---- requests under way ------------------------------------------------------------------------
 */

static bool most_of(const EngTier *tier, double *most)
{
    const EngQuantity *f = tier->fields;
    double efficiency = f[ENG_TIER_EFFICIENCY].origin ? f[ENG_TIER_EFFICIENCY].value : 1;
    *most = INFINITY;
    if (f[ENG_TIER_REQUEST_RATE].origin) *most = f[ENG_TIER_REQUEST_RATE].value;
    if (f[ENG_TIER_BANDWIDTH].origin && f[ENG_TIER_GRANULE].origin)
        *most = fmin(*most, f[ENG_TIER_BANDWIDTH].value * efficiency / f[ENG_TIER_GRANULE].value);
    return f[ENG_TIER_LATENCY].origin && isfinite(*most);
}

static bool knee_measured(const EngTier *tier)
{
    const EngQuantity *f = tier->fields;
    EngTierField most =
        f[ENG_TIER_REQUEST_RATE].origin ? ENG_TIER_REQUEST_RATE : ENG_TIER_BANDWIDTH;
    return f[ENG_TIER_LATENCY].origin == ENG_MEASURED && f[most].origin == ENG_MEASURED &&
           f[ENG_TIER_KNEE_EXPONENT].origin == ENG_MEASURED;
}

static void knee_points(const EngSize *s, EngSizePoints *p)
{
    for (int i = 0; i < s->machine.n_tiers; i++) {
        const EngTier *tier = &s->machine.tiers[i];
        const EngQuantity *exponent = &tier->fields[ENG_TIER_KNEE_EXPONENT];
        double most, latency = tier->fields[ENG_TIER_LATENCY].value;
        if (!most_of(tier, &most)) continue;
        double e = exponent->origin ? exponent->value : INFINITY;
        double enough = eng_knee_outstanding(latency, most, e, 0.9);
        for (double n = 1; n <= 65536; n *= 2) {
            eng_size_point(p, "knee");
            eng_size_word(p, "tier", tier->name);
            eng_size_number(p, "outstanding", n);
            eng_size_value(p, ENG_SIZE_RATE_PER_S, eng_knee_rate(n, latency, most, e));
            eng_size_value(p, ENG_SIZE_VALUE, ceil(enough));
            eng_size_rests(p, "%s%s: latency %s, knee exponent %s",
                           knee_measured(tier) ? "" : "extrapolated: ", tier->name,
                           eng_origin_name(tier->fields[ENG_TIER_LATENCY].origin),
                           exponent->origin ? eng_origin_name(exponent->origin)
                                            : "unknown: hard minimum, optimistic near the knee");
        }
    }
}

EngStatus eng_size_plan_points(const EngSize *s, EngSizePoints *p, EngErr *err)
{
    EngStatus status = ledger_points(s, p, err);
    if (!status) status = row_points(s, p);
    for (int i = 0; i < s->n_paths && !status; i++) {
        status = gather_points(s, &s->paths[i], p, err);
        for (int t = 0; t < s->n_traffic && !status; t++)
            status = traffic_points(s, &s->paths[i], &s->traffic[t], p, err);
    }
    if (!status) status = sharding_points(s, p, err);
    if (!status) knee_points(s, p);
    return status;
}
