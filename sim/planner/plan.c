/* The plan of a step; see plan.h. */
#include "sim/planner/plan.h"

#include <math.h>

#include "kernels/address/address.h"
#include "sim/planner/sharding.h"

#define US          1e6
#define MOST_ROUNDS 1000
#define SETTLED     1e-9
#define MOST_FASTER 1e9  /* times the rate of a tier that is tried */
#define ENOUGH      1e-6 /* relative width of what is searched */

double eng_ngrams_behind(double rows, double touched)
{
    return touched < rows ? -rows * log1p(-touched / rows) : INFINITY;
}

double eng_rows_touched(double rows, double ngrams)
{
    return -rows * expm1(-ngrams / rows);
}

static EngStatus check(const EngStepInput *in, EngErr *err)
{
    if (!(in->tokens > 0) || isinf(in->tokens))
        return ENG_FAIL(err, ENG_USAGE, "plan: %g tokens in a step", in->tokens);
    if (!(in->unique > 0 && in->unique <= 1))
        return ENG_FAIL(err, ENG_USAGE, "plan: a unique share of %g, not in (0, 1]", in->unique);
    if (!(in->hits >= 0 && in->hits <= 1))
        return ENG_FAIL(err, ENG_USAGE, "plan: a hit share of %g, not in [0, 1]", in->hits);
    if (in->cache < 0 || in->cache >= in->n_path || (in->hits > 0 && !in->cache))
        return ENG_FAIL(err, ENG_USAGE, "plan: a cache in tier %d of %d, not behind the first",
                        in->cache, in->n_path);
    if (in->peers && (in->n_path < 2 || in->readers < 2))
        return ENG_FAIL(err, ENG_USAGE, "plan: %d peers on a path of %d tiers", in->readers,
                        in->n_path);
    if (!(in->exchange >= 0) || isinf(in->exchange))
        return ENG_FAIL(err, ENG_USAGE, "plan: an exchange of %g s", in->exchange);
    return ENG_OK;
}

/* Tiers of a path as one of several replicas has them: 1/crowd of their rates. */
typedef struct Crowded {
    EngTier tiers[ENG_MAX_STAGES + 1]; /* the last: holder of scales off the path */
    double crowd[ENG_MAX_STAGES + 1];
    int fast;      /* a stage that is taken to be ... */
    double faster; /* ... so many times as fast; 0: none is */
} Crowded;

static const EngTier *crowd_tier(Crowded *c, int i, const EngTier *tier)
{
    if (c->crowd[i] <= 1) return tier;
    c->tiers[i] = *tier;
    c->tiers[i].fields[ENG_TIER_BANDWIDTH].value /= c->crowd[i];
    c->tiers[i].fields[ENG_TIER_REQUEST_RATE].value /= c->crowd[i];
    return &c->tiers[i];
}

static int at_least_1(int count)
{
    return count > 1 ? count : 1;
}

double eng_step_stage_share(const EngStepPlan *plan, int stage)
{
    double share = stage < plan->cache ? 1 - plan->hits : 1;
    return stage && stage == plan->peers ? share * (plan->readers - 1) / plan->readers : share;
}

/* Of one reader, or of all that are on a host. */
static double rows_through(const EngStepInput *in, const EngStepPlan *plan, int stage)
{
    int hosts = at_least_1(in->hosts), beside = (plan->readers + hosts - 1) / hosts;
    double rows = in->shared & 1u << stage ? fmin(plan->all_rows, plan->rows * beside) : plan->rows;
    return rows * eng_step_stage_share(plan, stage);
}

static EngStatus gather(const EngStepInput *in, const EngStepPlan *plan, Crowded *c, EngGather *out,
                        EngErr *err)
{
    const EngTier *path[ENG_MAX_STAGES];
    double rows[ENG_MAX_STAGES + 1];
    EngRowLayout layout = eng_row_layout(in->format, in->preset->row_dims);
    layout.scale_rows = in->scale_rows;
    if (in->values_between_peers) layout.values_from = plan->peers;
    for (int i = 0; i < in->n_path; i++) {
        path[i] = crowd_tier(c, i, in->path[i]);
        if (in->path[i] == in->scales) layout.scales = path[i];
    }
    if (in->scales && !layout.scales) layout.scales = crowd_tier(c, in->n_path, in->scales);
    for (int i = 0; i <= in->n_path; i++) rows[i] = rows_through(in, plan, i);
    EngStatus status = eng_gather_plan_rows(path, in->n_path, &layout, rows, in->issue, out, err);
    for (int i = 0; i < out->n_stages && !status; i++) {
        out->stages[i].tier = i < in->n_path ? in->path[i] : in->scales;
        out->stages[i].crowd = fmax(1, c->crowd[i]);
    }
    if (!status && c->faster > 0) {
        out->stages[c->fast].time /= c->faster;
        eng_gather_sum(out);
    }
    return status;
}

/* Fetches and stalls where each tier is crowded so much. */
static EngStatus plan_crowded(const EngStepInput *in, Crowded *c, EngStepPlan *plan, EngErr *err)
{
    for (int k = 0; k < plan->n; k++) {
        EngStatus status = gather(in, plan, c, &plan->gathers[k], err);
        if (!status)
            status = eng_window(in->layers, in->n_layers, plan->layers[k], in->scheduling,
                                &plan->fetches[k].window, err);
        if (status) return status;
        plan->fetches[k].fetch = plan->gathers[k].time + in->exchange;
    }
    return eng_queue_stalls(plan->fetches, plan->n, plan->rows > 0 ? in->hash : 0,
                            &in->interference, &plan->added, err);
}

/* How crowded the shared tiers are with this plan; returns the largest relative change. */
static double crowd_of(const EngStepInput *in, const EngStepPlan *plan, Crowded *c)
{
    double change = 0;
    for (int i = 0; i < plan->gathers[0].n_stages; i++) {
        double busy = plan->n * plan->gathers[0].stages[i].time / (plan->step + plan->added);
        double crowd = 1 + (in->replicas - 1) * fmin(1, busy);
        if (!(in->shared & 1u << i)) continue;
        change = fmax(change, fabs(crowd / fmax(1, c->crowd[i]) - 1));
        c->crowd[i] = crowd;
    }
    return change;
}

/* Rows of the input, then how crowded tiers are where each replica meets the others so. */
static EngStatus settle(const EngStepInput *in, Crowded *crowded, EngStepPlan *plan, EngErr *err)
{
    double part = eng_shard_largest_load(plan->columns, plan->readers, in->tokens);
    plan->all_rows = plan->looked_up * in->unique;
    plan->rows = fmin(part, plan->looked_up) * in->unique;
    EngStatus status = plan_crowded(in, crowded, plan, err);
    /* A longer fetch is met by more of the others; from below this rises to where it stays. */
    for (int i = 0; i < MOST_ROUNDS && !status && in->replicas > 1 && in->shared; i++) {
        if (crowd_of(in, plan, crowded) < SETTLED) break;
        status = plan_crowded(in, crowded, plan, err);
    }
    return status;
}

EngStatus eng_step_plan(const EngStepInput *in, EngStepPlan *plan, EngErr *err)
{
    EngAddress address;
    Crowded crowded = {0};
    *plan = (EngStepPlan){.hash = in->hash, .exchange = in->exchange, .replicas = in->replicas};
    EngStatus status = check(in, err);
    if (!status) status = eng_address_build(&in->preset->address, &address, err);
    if (status) return status;
    plan->n = address.n_layers;
    plan->columns = address.n_columns;
    plan->cache = in->cache;
    plan->peers = in->peers ? in->n_path - 1 : 0;
    plan->hits = in->hits;
    plan->looked_up = in->tokens * address.n_columns;
    plan->readers = at_least_1(in->readers);
    for (int i = 0; i < in->n_layers; i++) plan->step += in->layers[i];
    for (int k = 0; k < plan->n; k++) plan->layers[k] = address.layer_ids[k];
    return settle(in, &crowded, plan, err);
}

bool eng_step_hidden(const EngStepPlan *plan)
{
    for (int k = 0; k < plan->n; k++)
        if (plan->fetches[k].stall > 0) return false;
    return true;
}

/* ---- what would hide a fetch -------------------------------------------------------------------
 */

/* Whether layer k waits no more where its slowest tier is `faster`, or so large a share of the rows
 * is left: the whole step planned again, since other layers, tiers and replicas gain by it too. */
static bool hidden_with(const EngStepInput *in, const EngStepPlan *plan, int k, double faster,
                        double rows, EngStepPlan *then)
{
    Crowded crowded = {.fast = plan->gathers[k].slowest, .faster = faster};
    EngStepInput fewer = *in;
    fewer.unique *= rows;
    *then = *plan;
    return !settle(&fewer, &crowded, then, NULL) && !(then->fetches[k].stall > 0);
}

/* A unit of the third digit, to which cures are rounded such that what is printed is enough. */
static double third_digit(double value)
{
    return pow(10, floor(log10(value)) - 2);
}

void eng_step_cure(const EngStepInput *in, const EngStepPlan *plan, int k, EngStepCure *cure)
{
    EngStepPlan then;
    const double one_row = 1 / fmax(1, plan->rows);
    *cure = (EngStepCure){.faster = NAN, .rows = NAN};
    if (hidden_with(in, plan, k, MOST_FASTER, 1, &then)) {
        double no = 1, yes = MOST_FASTER;
        while (yes / no > 1 + ENOUGH) {
            double middle = sqrt(no * yes);
            *(hidden_with(in, plan, k, middle, 1, &then) ? &yes : &no) = middle;
        }
        cure->faster = ceil(yes / third_digit(yes)) * third_digit(yes);
        hidden_with(in, plan, k, cure->faster, 1, &then);
    }
    cure->then = then.gathers[k].stages[then.gathers[k].slowest];
    cure->time = then.gathers[k].stages[plan->gathers[k].slowest].time;
    if (hidden_with(in, plan, k, 1, one_row, &then)) {
        double no = 1, yes = one_row;
        while (no / yes > 1 + ENOUGH) {
            double middle = sqrt(no * yes);
            *(hidden_with(in, plan, k, 1, middle, &then) ? &yes : &no) = middle;
        }
        cure->rows = floor(yes / third_digit(yes)) * third_digit(yes);
    } else
        cure->late = then.fetches[k].stall;
}

/* ---- text --------------------------------------------------------------------------------------
 */

static void print_stage(const EngGather *gather, int i, EngStr *out)
{
    const EngStage *s = &gather->stages[i];
    if (!(s->rows > 0)) { /* its latency, too, is not part of the fetch */
        eng_str_printf(out, "    %s: nothing to fetch\n", s->tier->name);
        return;
    }
    eng_str_printf(out, "    %s: %.4g requests, %.4g MB:", s->tier->name, s->requests,
                   s->bytes / 1e6);
    for (int t = 0; t < ENG_GATHER_LATENCY; t++)
        if (s->terms[t] > 0)
            eng_str_printf(out, " %s %.6g us%s", eng_gather_term_name((EngGatherTerm)t),
                           s->terms[t] * US, (EngGatherTerm)t == s->binding ? " (binds)," : ",");
    eng_str_printf(out, " together %.6g us, latency %.6g us%s%s\n", s->time * US,
                   s->terms[ENG_GATHER_LATENCY] * US,
                   s->binding == ENG_GATHER_LATENCY ? " (binds)" : "",
                   s->hard ? "; no knee is known, so near it this is optimistic" : "");
    if (s->crowd > 1)
        eng_str_printf(out, "      %s: shared by replicas, %.4g fetches at once on the mean\n",
                       s->tier->name, s->crowd);
    if (!eng_tier_has(s->tier, ENG_TIER_GRANULE) && s->requests > 0)
        eng_str_printf(out,
                       "      %s: no granule is known, no byte more than asked for is counted\n",
                       s->tier->name);
}

static void print_cure(const EngStepInput *in, const EngStepPlan *plan, int k, EngStr *out)
{
    const EngStage *slow = &plan->gathers[k].stages[plan->gathers[k].slowest];
    EngStepCure cure;
    eng_step_cure(in, plan, k, &cure);
    if (isnan(cure.faster) && isnan(cure.rows)) {
        eng_str_printf(
            out,
            "    not hidden by any rate: of one row, too, issue, latency, hash, exchange "
            "and the fetches before it take %.6g us more than the window\n",
            cure.late * US);
        return;
    }
    if (isnan(cure.faster))
        eng_str_printf(out, "    not hidden by any rate of %s alone: %s takes %.6g us; hidden",
                       slow->tier->name, cure.then.tier->name, cure.then.time * US);
    else
        eng_str_printf(out, "    hidden if %s took %.6g us, not %.6g: %.3g times its rate%s",
                       slow->tier->name, cure.time * US, slow->time * US, cure.faster,
                       isnan(cure.rows) ? "" : "; or");
    if (!isnan(cure.rows)) eng_str_printf(out, " with %.3g %% of the rows", 100 * cure.rows);
    eng_str_add(out, "\n");
}

void eng_step_print(const EngStepInput *in, const EngStepPlan *plan, EngStr *out)
{
    eng_str_printf(out, "rows: %.6g looked up per layer, %.6g read by one reader", plan->looked_up,
                   plan->rows);
    if (plan->readers > 1) eng_str_printf(out, ", %.6g by all %d", plan->all_rows, plan->readers);
    if (plan->cache)
        eng_str_printf(out, "; %.4g %% of them from the cache in %s%s%s%s", 100 * plan->hits,
                       in->path[plan->cache]->name, in->hits_label ? " (" : "",
                       in->hits_label ? in->hits_label : "", in->hits_label ? ")" : "");
    eng_str_add(out, "\n");
    for (int k = 0; k < plan->n; k++) {
        const EngQueuedFetch *f = &plan->fetches[k];
        eng_str_printf(
            out, "layer %d: %s: fetch %.6g us, window %.6g us, stall %.6g us, %.4g %% hidden\n",
            plan->layers[k], f->stall > 0 ? "NOT hidden" : "hidden", f->fetch * US, f->window * US,
            f->stall * US, 100 * f->hidden);
        for (int i = 0; i < plan->gathers[k].n_stages; i++) print_stage(&plan->gathers[k], i, out);
        if (plan->exchange > 0)
            eng_str_printf(out, "    exchange among holders: %.6g us\n", plan->exchange * US);
        if (f->stall > 0) print_cure(in, plan, k, out);
    }
    double waits = 0;
    for (int k = 0; k < plan->n; k++) waits += plan->fetches[k].stall;
    eng_str_printf(out, "step: %.6g us of layers, %.6g us added (%.3g %%)", plan->step * US,
                   plan->added * US, plan->step > 0 ? 100 * plan->added / plan->step : 0);
    if (in->interference.compute > 0)
        eng_str_printf(out, ": %.6g us of waiting, %.6g us by layers that fetches make slower",
                       waits * US, (plan->added - waits) * US);
    eng_str_add(out, "\n");
}
