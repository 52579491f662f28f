/* Hosts, loads and cost; see fleet.h. */
#include "sim/planner/fleet.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/planner/sharding.h"

#define HOURS_PER_YEAR 8766.0

EngStatus eng_fleet_plan(const EngFleetInput *in, EngFleet *fleet, EngErr *err)
{
    if (!(in->target > 0 && in->step > 0 && in->step_tokens > 0) || in->ranks < 1 ||
        in->devices_per_host < 1 || in->table_hosts < 1)
        return ENG_FAIL(err, ENG_USAGE,
                        "hosts: %g tokens/s with %g tokens in %g s, %d ranks, %d devices a host",
                        in->target, in->step_tokens, in->step, in->ranks, in->devices_per_host);
    *fleet = (EngFleet){.replica_rate = in->step_tokens / in->step};
    double replicas = ceil(in->target / fleet->replica_rate), hosts;
    if (in->ranks <= in->devices_per_host)
        hosts = ceil(replicas / (in->devices_per_host / in->ranks));
    else
        hosts = replicas * ceil((double)in->ranks / in->devices_per_host);
    fleet->tables_bind = hosts < in->table_hosts;
    if (fleet->tables_bind) hosts = in->table_hosts;
    if (replicas * in->ranks > INT_MAX || hosts * in->devices_per_host > INT_MAX)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "hosts: %g tokens/s take %g replicas of %d ranks, more than %d devices",
                        in->target, replicas, in->ranks, INT_MAX);
    fleet->replicas = (int)replicas;
    fleet->hosts = (int)hosts;
    fleet->devices = (int)hosts * in->devices_per_host;
    fleet->busy_devices = (int)replicas * in->ranks;
    fleet->host_rate = in->target / fleet->hosts;
    return ENG_OK;
}

EngLoad eng_fleet_load(const EngFleet *fleet, double step_tokens, const EngStepPlan *plan,
                       int stage)
{
    const EngStage *s = &plan->gathers[0].stages[stage]; /* layers ask for equally many rows */
    double steps = fleet->host_rate / step_tokens, times = steps * plan->n, busy = 0;
    if (s->rows > 0) /* a stage may carry one reader's */
        times *= plan->all_rows * eng_step_stage_share(plan, stage) / s->rows;
    EngLoad load = {.bytes_per_s = s->bytes * times, .requests_per_s = s->requests * times};
    for (int t = 0; t < ENG_GATHER_OUTSTANDING; t++)
        busy = fmax(busy, s->terms[t] / fmax(1, s->crowd) * times);
    load.units = busy > 0 ? busy : NAN;
    return load;
}

static void add(EngBill *cost, const char *name, double low, double high)
{
    if (cost->n == ENG_BILL_MAX_LINES) return;
    EngBillLine *line = &cost->lines[cost->n++];
    snprintf(line->name, sizeof line->name, "%s", name);
    line->low = low;
    line->high = high;
    cost->low += low;
    cost->high += high;
}

static bool priced(EngBill *cost, const char *name, const EngQuantity *price)
{
    size_t n = strlen(cost->unpriced);
    if (price->origin != ENG_UNKNOWN) return true;
    snprintf(cost->unpriced + n, sizeof cost->unpriced - n, "%s%s", n ? ", " : "", name);
    return false;
}

void eng_bill_power(EngBill *cost, double watts, double usd_per_kwh, double tokens_per_s)
{
    double usd = eng_cost_per_million(watts / 1000 * usd_per_kwh, tokens_per_s);
    add(cost, "power", usd, usd);
}

void eng_bill_unpowered(EngBill *cost, const char *name)
{
    size_t n = strlen(cost->unpowered);
    snprintf(cost->unpowered + n, sizeof cost->unpowered - n, "%s%s", n ? ", " : "power of ", name);
}

void eng_bill_rent(EngBill *cost, const char *name, const EngQuantity *per_hour, double count,
                   double tokens_per_s)
{
    if (priced(cost, name, per_hour))
        add(cost, name, eng_cost_per_million(per_hour->low * count, tokens_per_s),
            eng_cost_per_million(per_hour->high * count, tokens_per_s));
}

void eng_bill_bought(EngBill *cost, const char *name, const EngQuantity *price, double amount,
                     double years, double tokens_per_s)
{
    double share = amount / (years * HOURS_PER_YEAR);
    if (priced(cost, name, price))
        add(cost, name, eng_cost_per_million(price->low * share, tokens_per_s),
            eng_cost_per_million(price->high * share, tokens_per_s));
}
