/* The plan of a step; see plan.h. */
#include "sim/planner/plan.h"

#include <math.h>

#include "kernels/address/address.h"
#include "sim/planner/sharding.h"

#define US 1e6

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
    if (!(in->exchange >= 0) || isinf(in->exchange))
        return ENG_FAIL(err, ENG_USAGE, "plan: an exchange of %g s", in->exchange);
    return ENG_OK;
}

EngStatus eng_step_plan(const EngStepInput *in, EngStepPlan *plan, EngErr *err)
{
    EngAddress address;
    EngRowLayout layout = eng_row_layout(in->format, in->preset->row_dims);
    layout.scales = in->scales;
    *plan = (EngStepPlan){.hash = in->hash, .exchange = in->exchange};
    EngStatus status = check(in, err);
    if (!status) status = eng_address_build(&in->preset->address, &address, err);
    if (status) return status;
    plan->n = address.n_layers;
    plan->looked_up = in->tokens * address.n_columns;
    int readers = in->readers > 1 ? in->readers : 1;
    double part = eng_shard_largest_load(address.n_columns, readers, in->tokens);
    plan->rows = fmin(part, plan->looked_up) * in->unique * (1 - in->hits);
    for (int i = 0; i < in->n_layers; i++) plan->step += in->layers[i];
    for (int k = 0; k < plan->n; k++) {
        plan->layers[k] = address.layer_ids[k];
        status = eng_gather_plan(in->path, in->n_path, &layout, plan->rows, in->issue,
                                 &plan->gathers[k], err);
        if (!status)
            status = eng_window(in->layers, in->n_layers, plan->layers[k], in->scheduling,
                                &plan->fetches[k].window, err);
        if (status) return status;
        plan->fetches[k].fetch = plan->gathers[k].time + in->exchange;
    }
    return eng_queue_stalls(plan->fetches, plan->n, plan->rows > 0 ? in->hash : 0,
                            &in->interference, &plan->added, err);
}

bool eng_step_hidden(const EngStepPlan *plan)
{
    for (int k = 0; k < plan->n; k++)
        if (plan->fetches[k].stall > 0) return false;
    return true;
}

static void print_stage(const EngGather *gather, int i, EngStr *out)
{
    const EngStage *s = &gather->stages[i];
    eng_str_printf(out, "    %s: %.4g requests, %.4g MB:", s->tier->name, s->requests,
                   s->bytes / 1e6);
    for (int t = 0; t < ENG_GATHER_COUNT; t++)
        if (s->terms[t] > 0)
            eng_str_printf(out, " %s %.6g us%s", eng_gather_term_name((EngGatherTerm)t),
                           s->terms[t] * US, (EngGatherTerm)t == s->binding ? " (binds)," : ",");
    eng_str_printf(out, " together %.6g us, latency %.6g us%s\n", s->time * US, s->latency * US,
                   s->hard ? "; no knee is known, so near it this is optimistic" : "");
    if (!eng_tier_has(s->tier, ENG_TIER_GRANULE) && s->requests > 0)
        eng_str_printf(out,
                       "      %s: no granule is known, no byte more than asked for is counted\n",
                       s->tier->name);
}

static void print_cure(const EngStepPlan *plan, int k, EngStr *out)
{
    const EngGather *g = &plan->gathers[k];
    const EngStage *slow = &g->stages[g->slowest];
    double others = plan->hash;
    for (int j = 0; j < k; j++) others += plan->fetches[j].fetch - plan->fetches[j].stall;
    double room = plan->fetches[k].window - others - (plan->fetches[k].fetch - slow->time);
    if (room > 0)
        eng_str_printf(out,
                       "    hidden if %s took %.6g us, not %.6g: %.2g times its rate, or %.3g %% "
                       "of the rows\n",
                       slow->tier->name, room * US, slow->time * US, slow->time / room,
                       100 * room / slow->time);
    else
        eng_str_printf(out,
                       "    not hidden by any rate: issue, latency, hash, exchange and the fetches "
                       "before it take %.6g us more than the window\n",
                       -room * US);
}

void eng_step_print(const EngStepPlan *plan, EngStr *out)
{
    eng_str_printf(out, "rows: %.6g looked up per layer, %.6g read by one reader\n",
                   plan->looked_up, plan->rows);
    for (int k = 0; k < plan->n; k++) {
        const EngQueuedFetch *f = &plan->fetches[k];
        eng_str_printf(
            out, "layer %d: %s: fetch %.6g us, window %.6g us, stall %.6g us, %.4g %% hidden\n",
            plan->layers[k], f->stall > 0 ? "NOT hidden" : "hidden", f->fetch * US, f->window * US,
            f->stall * US, 100 * f->hidden);
        for (int i = 0; i < plan->gathers[k].n_stages; i++) print_stage(&plan->gathers[k], i, out);
        if (plan->exchange > 0)
            eng_str_printf(out, "    exchange among holders: %.6g us\n", plan->exchange * US);
        if (f->stall > 0) print_cure(plan, k, out);
    }
    eng_str_printf(out, "step: %.6g us of layers, %.6g us added (%.3g %%)\n", plan->step * US,
                   plan->added * US, plan->step > 0 ? 100 * plan->added / plan->step : 0);
}
