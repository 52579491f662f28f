/* Points of hosts, loads, cost, sensitivity and training groups. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/cli/size_points.h"

#define US   1e6
#define STEP 0.25 /* that inputs are moved by for the sensitivity */

static EngStatus target_points(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                               EngSizePoints *p, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (double rate = 1e3; rate <= 1.1e7 && !status; rate *= sqrt(sqrt(10))) {
        EngTraffic at = *t;
        EngSizeResult r;
        at.rate = rate;
        status = eng_size_result(s, path, &at, &r, err);
        if (status) break;
        eng_size_point(p, "hosts");
        eng_size_word(p, "path", path->name);
        eng_size_word(p, "traffic", t->name);
        eng_size_number(p, "target", rate);
        eng_size_value(p, ENG_SIZE_HOSTS, r.fleet.hosts);
        eng_size_value(p, ENG_SIZE_USD_LOW, r.bill.n ? r.bill.low : NAN);
        eng_size_value(p, ENG_SIZE_USD_HIGH, r.bill.n ? r.bill.high : NAN);
        eng_size_value(p, ENG_SIZE_STEP_US, (r.step.step + r.step.added) * US);
        eng_size_value(p, ENG_SIZE_VALUE, t->slo ? t->slo * US : NAN);
        eng_size_rests(p, "%s; %s", path->basis, t->rests_on);
    }
    return status;
}

/* All kinds of traffic that have a rate, in these proportions, on hosts of one kind each; with the
 * step that is furthest from what was asked of it. */
static EngStatus mixed_points(const EngSize *s, const EngSizePath *path, EngSizePoints *p,
                              EngErr *err)
{
    double all = 0;
    int kinds = 0;
    for (int t = 0; t < s->n_traffic; t++) {
        all += s->traffic[t].rate;
        kinds += s->traffic[t].rate > 0;
    }
    for (double rate = 1e3; kinds > 1 && rate <= 1.1e7; rate *= sqrt(sqrt(10))) {
        int hosts = 0;
        double step = NAN, slo = NAN;
        for (int t = 0; t < s->n_traffic; t++) {
            EngTraffic at = s->traffic[t];
            EngSizeResult r;
            if (!at.rate) continue;
            at.rate *= rate / all;
            EngStatus status = eng_size_result(s, path, &at, &r, err);
            if (status) return status;
            hosts += r.fleet.hosts;
            double took = r.step.step + r.step.added;
            if (!at.slo || took / at.slo <= step / slo) continue;
            step = took;
            slo = at.slo;
        }
        eng_size_point(p, "hosts");
        eng_size_word(p, "path", path->name);
        eng_size_word(p, "traffic", "all together");
        eng_size_number(p, "target", rate);
        eng_size_value(p, ENG_SIZE_HOSTS, hosts);
        eng_size_value(p, ENG_SIZE_STEP_US, step * US);
        eng_size_value(p, ENG_SIZE_VALUE, slo * US);
        eng_size_rests(p, "%s; the rates of all traffic in proportion", path->basis);
    }
    return ENG_OK;
}

/* What one host's replicas ask of each tier, over the rate that the host carries. */
static EngStatus load_points(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                             EngSizePoints *p, EngErr *err)
{
    EngSizeResult r;
    EngTraffic at = *t;
    int full = eng_size_replicas_of_host(s);
    at.rate = 1;
    EngStatus status = eng_size_result(s, path, &at, &r, err);
    for (double rate = 1e3; rate <= 1.1e6 && !status; rate *= sqrt(10))
        for (int i = 0; i < path->n; i++) {
            EngFleet one = {.host_rate = rate};
            EngLoad load = eng_fleet_load(&one, t->yield, &r.step, i);
            int carriers = eng_size_carriers(s, &r, path->tiers[i], full);
            eng_size_point(p, "load");
            eng_size_word(p, "path", path->name);
            eng_size_word(p, "traffic", t->name);
            eng_size_word(p, "tier", path->tiers[i]->name);
            eng_size_number(p, "host_rate", rate);
            eng_size_value(p, ENG_SIZE_GBPS, load.bytes_per_s / 1e9);
            eng_size_value(p, ENG_SIZE_REQUESTS_PER_S, load.requests_per_s);
            eng_size_value(p, ENG_SIZE_UNITS, load.units);
            eng_size_value(p, ENG_SIZE_VALUE, carriers);
            eng_size_rests(p, "%s; %s", path->basis, t->rests_on);
        }
    return status;
}

static EngStatus bill_points(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                             EngSizePoints *p, EngErr *err)
{
    EngSizeResult r;
    if (!t->rate) return ENG_OK;
    EngStatus status = eng_size_result(s, path, t, &r, err);
    for (int i = 0; i < r.bill.n && !status; i++) {
        eng_size_point(p, "cost");
        eng_size_word(p, "path", path->name);
        eng_size_word(p, "traffic", t->name);
        eng_size_word(p, "item", r.bill.lines[i].name);
        eng_size_word(p, "unpriced", *r.bill.unpriced ? r.bill.unpriced : "nothing");
        eng_size_word(p, "unpowered", *r.bill.unpowered ? r.bill.unpowered : "nothing");
        eng_size_value(p, ENG_SIZE_USD_LOW, r.bill.lines[i].low);
        eng_size_value(p, ENG_SIZE_USD_HIGH, r.bill.lines[i].high);
        eng_size_value(p, ENG_SIZE_VALUE, t->rate);
        eng_size_rests(p,
                       "prices of the machine files, as ranges with their dates; bought things "
                       "over %g years; hosts: %s",
                       s->years, path->basis);
    }
    return status;
}

/* ---- sensitivity -------------------------------------------------------------------------------
 */

typedef struct Outcome {
    double fetch, step, usd; /* s, s, USD (middle of the range) */
} Outcome;

static EngStatus outcome_of(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                            Outcome *out, EngErr *err)
{
    EngSizeResult r;
    EngStatus status = eng_size_result(s, path, t, &r, err);
    *out = (Outcome){r.step.fetches[0].fetch, r.step.step + r.step.added,
                     r.bill.n ? (r.bill.low + r.bill.high) / 2 : NAN};
    return status;
}

static void put_outcome(EngSizePoints *p, const EngSizePath *path, const EngTraffic *t,
                        const char *input, double factor, const Outcome *o, const Outcome *base)
{
    eng_size_point(p, "sensitivity");
    eng_size_word(p, "path", path->name);
    eng_size_word(p, "traffic", t->name);
    eng_size_word(p, "input", input);
    eng_size_number(p, "factor", factor);
    eng_size_value(p, ENG_SIZE_FETCH_US, o->fetch * US);
    eng_size_value(p, ENG_SIZE_STEP_US, o->step * US);
    eng_size_value(p, ENG_SIZE_SHARE, o->fetch / base->fetch - 1);
    eng_size_value(p, ENG_SIZE_VALUE, o->usd / base->usd - 1);
    eng_size_rests(p, "finite differences of %g %%: %s; %s", 100 * STEP, path->basis, t->rests_on);
}

/* One value of a tier of the path moved; the tier is a copy, so the plan stays as it is. */
static EngStatus move_tier(const EngSize *s, const EngSizePath *path, const EngTraffic *t, int tier,
                           EngTierField f, double factor, Outcome *out, EngErr *err)
{
    EngSizePath moved = *path;
    EngTier copy = *path->tiers[tier];
    EngQuantity *q = &copy.fields[f];
    q->value *= factor;
    q->low *= factor;
    q->high *= factor;
    moved.tiers[tier] = &copy;
    return outcome_of(s, &moved, t, out, err);
}

static EngStatus move_devices(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                              double factor, Outcome *out, EngErr *err)
{
    EngSize *moved;
    EngStatus status = eng_alloc_or((void **)&moved, 1, sizeof *moved, "a moved plan", err);
    if (status) return status;
    *moved = *s;
    for (int i = 0; i < moved->machine.n_tiers; i++) {
        EngQuantity *fields = moved->machine.tiers[i].fields;
        EngQuantity *prices[] = {&fields[ENG_TIER_RENT], &fields[ENG_TIER_DEVICE_PRICE]};
        for (int p = 0; p < 2; p++) {
            prices[p]->low *= factor;
            prices[p]->high *= factor;
        }
    }
    status = outcome_of(moved, path, t, out, err);
    eng_free(moved);
    return status;
}

static EngStatus sensitivity_points(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                                    EngSizePoints *p, EngErr *err)
{
    static const EngTierField fields[] = {
        ENG_TIER_BANDWIDTH,     ENG_TIER_LATENCY,    ENG_TIER_OUTSTANDING, ENG_TIER_REQUEST_RATE,
        ENG_TIER_KNEE_EXPONENT, ENG_TIER_BYTE_PRICE, ENG_TIER_UNIT_PRICE};
    Outcome base, o;
    EngStatus status = outcome_of(s, path, t, &base, err);
    for (int sign = -1; sign <= 1 && !status; sign += 2) {
        double factor = 1 + sign * STEP;
        for (int i = 0; i < path->n && !status; i++)
            for (size_t f = 0; f < sizeof fields / sizeof *fields && !status; f++) {
                char name[64];
                if (!eng_tier_has(path->tiers[i], fields[f])) continue;
                status = move_tier(s, path, t, i, fields[f], factor, &o, err);
                snprintf(name, sizeof name, "%s %s", path->tiers[i]->name,
                         eng_tier_field_name(fields[f]));
                if (!status) put_outcome(p, path, t, name, factor, &o, &base);
            }
        EngTraffic layer = *t, reuse = *t;
        layer.layer *= factor;
        for (int i = 0; i < s->n_layers; i++) layer.times[i] *= factor;
        if (!status) status = outcome_of(s, path, &layer, &o, err);
        if (!status) put_outcome(p, path, t, "layer time", factor, &o, &base);
        reuse.unique = fmin(1, t->unique * factor);
        if (!status) status = outcome_of(s, path, &reuse, &o, err);
        if (!status) put_outcome(p, path, t, "rows left by reuse, up to all", factor, &o, &base);
        EngTraffic cached = *t;
        cached.hits = fmin(1, t->hits * factor);
        if (!status && t->hits > 0) status = outcome_of(s, path, &cached, &o, err);
        if (!status && t->hits > 0)
            put_outcome(p, path, t, "hit rate, up to all", factor, &o, &base);
        if (!status) status = move_devices(s, path, t, factor, &o, err);
        if (!status) put_outcome(p, path, t, "price of devices", factor, &o, &base);
    }
    return status;
}

/* ---- training ----------------------------------------------------------------------------------
 */

static EngStatus training_points(const EngSize *s, EngSizePoints *p, EngErr *err)
{
    EngStatus status = ENG_OK;
    if (!s->training.given) return ENG_OK;
    for (int group = 1; group <= s->training.input.ranks && !status; group *= 2) {
        EngTrainingInput in = s->training.input;
        EngTraining t;
        in.group = group;
        if (in.ranks % group) continue;
        status = eng_training_plan(&in, &t, err);
        if (status) break;
        eng_size_point(p, "training");
        eng_size_number(p, "group", group);
        eng_size_value(p, ENG_SIZE_BYTES, t.table_bytes + t.state_bytes);
        eng_size_value(p, ENG_SIZE_FETCH_US, t.fetch * US);
        eng_size_value(p, ENG_SIZE_STEP_US, t.give_back * US);
        eng_size_value(p, ENG_SIZE_TERM_US, t.sync * US);
        eng_size_value(p, ENG_SIZE_STALL_US, t.exposed * US);
        eng_size_value(p, ENG_SIZE_SHARE, t.far_share);
        eng_size_rests(p, "--training: %d ranks, %d to a node, links of %.3g and %.3g GB/s",
                       in.ranks, in.ranks_per_node, in.near_rate / 1e9, in.far_rate / 1e9);
    }
    return status;
}

EngStatus eng_size_fleet_points(const EngSize *s, EngSizePoints *p, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; i < s->n_paths && !status; i++)
        for (int t = 0; t < s->n_traffic && !status; t++) {
            const EngSizePath *path = &s->paths[i];
            const EngTraffic *traffic = &s->traffic[t];
            if (s->ranks && s->host_devices) {
                status = target_points(s, path, traffic, p, err);
                if (!status && !t) status = load_points(s, path, traffic, p, err);
                if (!status) status = bill_points(s, path, traffic, p, err);
            }
            if (!status && !t) status = sensitivity_points(s, path, traffic, p, err);
            if (!status && !t && s->ranks && s->host_devices)
                status = mixed_points(s, path, p, err);
        }
    return status ? status : training_points(s, p, err);
}
