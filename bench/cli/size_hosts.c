/* Hosts of a plan, what they ask of each tier, and the bill; see size_parts.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/cli/size_parts.h"

#define USD(value) eng_decimals(value, 4), value /* for "%.*f" */

bool eng_size_of_host(const EngSize *s, const EngSizePath *path, const EngTier *tier)
{
    EngPlace place;
    bool links = s->link && !strcmp(tier->name, s->link->name); /* by name: it may be a copy */
    if (links && path->place == ENG_PLACE_DEVICE) return false;
    return eng_tier_is_adapter(tier) || (eng_tier_place(tier, &place) && place != ENG_PLACE_DEVICE);
}

int eng_size_replicas_of_host(const EngSize *s)
{
    return s->ranks && s->host_devices >= s->ranks ? s->host_devices / s->ranks : 1;
}

int eng_size_hosts_of_replica(const EngSize *s)
{
    return s->ranks && s->host_devices ? (s->ranks + s->host_devices - 1) / s->host_devices : 1;
}

int eng_size_carriers(const EngSize *s, const EngSizeResult *r, const EngTier *tier, int replicas)
{
    int hosts = r->input.hosts;
    return eng_size_of_host(s, r->path, tier) ? 1
                                              : replicas * ((r->step.readers + hosts - 1) / hosts);
}

EngStatus eng_size_hosts(const EngSize *s, EngSizeResult *r, EngErr *err)
{
    EngFleetInput fleet = {.target = r->traffic->rate,
                           .step = r->step.step + r->step.added,
                           .step_tokens = r->traffic->yield,
                           .ranks = s->ranks,
                           .devices_per_host = s->host_devices,
                           .table_hosts = r->path->place == ENG_PLACE_DEVICE
                                              ? (s->shards + s->host_devices - 1) / s->host_devices
                                              : s->shards};
    return eng_fleet_plan(&fleet, &r->fleet, err);
}

/* ---- the bill ----------------------------------------------------------------------------------
 */

static const EngQuantity g_none = {0};

const EngQuantity *eng_size_device_price(const EngSize *s, EngTierField field)
{
    for (int i = 0; i < s->machine.n_tiers; i++)
        if (eng_tier_has(&s->machine.tiers[i], field)) return &s->machine.tiers[i].fields[field];
    return &g_none;
}

bool eng_size_comes_with_device(const EngSize *s, const EngTier *tier)
{
    static const char *const links[] = {"hbm", "pcie", "c2c", "nvlink"};
    int from = 0;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (!strcmp(tier->name, links[i])) return true;
    for (int i = 0; i < s->machine.n_tiers; i++) /* by name: a moved tier is a copy */
        if (!strcmp(s->machine.tiers[i].name, tier->name)) from = s->tier_from[i];
    for (int i = 0; i < s->machine.n_tiers; i++) {
        const EngTier *other = &s->machine.tiers[i];
        bool device = !strcmp(other->name, "hbm") || eng_tier_has(other, ENG_TIER_RENT) ||
                      eng_tier_has(other, ENG_TIER_DEVICE_PRICE);
        if (from && s->tier_from[i] == from && device) return true;
    }
    return false;
}

static void bill_tier(const EngSize *s, EngSizeResult *r, const EngTier *tier,
                      const EngLedger *ledger, const char *what)
{
    const EngQuantity *piece = &tier->fields[ENG_TIER_UNIT_PRICE];
    const EngQuantity *byte = &tier->fields[ENG_TIER_BYTE_PRICE];
    char name[48];
    if (eng_size_comes_with_device(s, tier) && !piece->origin && !byte->origin) return;
    snprintf(name, sizeof name, "%s%s", tier->name, what);
    EngPlace place;
    bool holds = eng_tier_place(tier, &place) && byte->origin;
    const EngTier *memory = holds ? eng_size_memory(s, r->path, place) : tier;
    if (!memory || strcmp(memory->name, tier->name)) return; /* its bytes are another's */
    /* Replicas wait for a tier that they share, so one of a host always carries what they ask. */
    double amount = eng_size_of_host(s, r->path, tier) ? r->fleet.hosts : r->fleet.devices;
    if (holds) amount *= (double)ledger->total[place];
    eng_bill_bought(&r->bill, name,
                    !s->years ? &g_none
                    : holds   ? byte
                              : piece,
                    amount, s->years ? s->years : 1, r->traffic->rate);
}

/* By name: a moved tier is a copy. */
static bool plan_uses(const EngSize *s, const EngSizePath *path, const char *tier)
{
    bool used =
        (s->link && !strcmp(tier, s->link->name)) || (s->scales && !strcmp(tier, s->scales->name));
    for (int i = 0; i < path->n; i++) used = used || !strcmp(tier, path->tiers[i]->name);
    return used;
}

/* Of all tiers that have one, wherever they lie; a rented device comes with its power. */
static void bill_power(const EngSize *s, EngSizeResult *r, bool rented)
{
    double watts = 0;
    bool devices = rented;
    if (!s->power_price) {
        snprintf(r->bill.unpowered, sizeof r->bill.unpowered, "power");
        return;
    }
    for (int i = 0; i < s->machine.n_tiers; i++) {
        const EngTier *tier = &s->machine.tiers[i];
        bool of_device = eng_size_comes_with_device(s, tier),
             known = eng_tier_has(tier, ENG_TIER_POWER);
        if (!known && !of_device && plan_uses(s, r->path, tier->name))
            eng_bill_unpowered(&r->bill, tier->name);
        if (!known || (of_device && rented)) continue;
        devices = devices || of_device;
        watts += tier->fields[ENG_TIER_POWER].value *
                 (eng_size_of_host(s, r->path, tier) ? r->fleet.hosts : r->fleet.devices);
    }
    eng_bill_power(&r->bill, watts, s->power_price, r->traffic->rate);
    if (!devices) eng_bill_unpowered(&r->bill, "devices");
}

EngStatus eng_size_bill(const EngSize *s, EngSizeResult *r, EngErr *err)
{
    const EngQuantity *rent = eng_size_device_price(s, ENG_TIER_RENT);
    const EngQuantity *price = s->years ? eng_size_device_price(s, ENG_TIER_DEVICE_PRICE) : &g_none;
    bool scales_on_path = !s->scales, link_on_path = !s->link;
    EngLedger ledger;
    EngStatus status = eng_size_ledger(s, r->path, &ledger, err);
    if (status) return status;
    r->bill = (EngBill){0};
    if (rent->origin || !price->origin)
        eng_bill_rent(&r->bill, "devices", rent, r->fleet.devices, r->traffic->rate);
    else
        eng_bill_bought(&r->bill, "devices", price, r->fleet.devices, s->years, r->traffic->rate);
    for (int i = 0; i < r->path->n; i++) {
        const EngTier *tier = r->path->tiers[i];
        scales_on_path = scales_on_path || !strcmp(tier->name, s->scales->name);
        link_on_path = link_on_path || !strcmp(tier->name, s->link->name);
        bill_tier(s, r, tier, &ledger, i ? "" : " for the tables");
    }
    if (!scales_on_path) bill_tier(s, r, s->scales, &ledger, " for the scales");
    if (!link_on_path) bill_tier(s, r, s->link, &ledger, " between holders");
    bill_power(s, r, rent->origin != ENG_UNKNOWN);
    return ENG_OK;
}

/* ---- text --------------------------------------------------------------------------------------
 */

void eng_size_print_usd(const EngBill *bill, EngStr *out)
{
    if (!bill->n)
        eng_str_add(out, "cost not known");
    else
        eng_str_printf(out, "%.*f to %.*f USD per million tokens", USD(bill->low), USD(bill->high));
    if (bill->n && *bill->unpriced) eng_str_printf(out, " without %s", bill->unpriced);
}

static void print_load(const EngSize *s, const EngSizeResult *r, int stage, EngStr *out)
{
    const EngTier *tier = r->path->tiers[stage];
    EngLoad load = eng_fleet_load(&r->fleet, r->traffic->yield, &r->step, stage);
    int carriers = eng_size_carriers(s, r, tier, r->step.replicas);
    eng_str_printf(out, "  a host asks %s for %.4g GB/s and %.4g M requests/s", tier->name,
                   load.bytes_per_s / 1e9, load.requests_per_s / 1e6);
    if (!isnan(load.units)) eng_str_printf(out, ": %.3g of one", load.units);
    if (carriers > 1)
        eng_str_printf(out, "; its %d readers have one each", carriers);
    else if (r->step.replicas > 1 && eng_size_of_host(s, r->path, tier))
        eng_str_printf(out, "; its %d replicas share it", r->step.replicas);
    eng_str_add(out, "\n");
}

void eng_size_print_hosts(const EngSize *s, const EngSizeResult *r, EngStr *out)
{
    const EngFleet *f = &r->fleet;
    eng_str_printf(out, "hosts: %d for %.6g tokens/s (%d replica%s of %.6g tokens/s", f->hosts,
                   r->traffic->rate, f->replicas, f->replicas > 1 ? "s" : "", f->replica_rate);
    if (f->busy_devices < f->devices)
        eng_str_printf(out, " on %d of %d devices)", f->busy_devices, f->devices);
    else
        eng_str_printf(out, ", %d devices)", f->devices);
    eng_str_add(out, f->tables_bind ? "; the tables ask for so many\n" : "\n");
    for (int i = 0; i < r->path->n; i++) print_load(s, r, i, out);
    for (int i = 0; i < r->bill.n; i++)
        eng_str_printf(out, "  %-24s %.*f to %.*f USD per million tokens\n", r->bill.lines[i].name,
                       USD(r->bill.lines[i].low), USD(r->bill.lines[i].high));
    if (r->bill.n)
        eng_str_printf(out, "  %-24s %.*f to %.*f USD per million tokens\n", "in all",
                       USD(r->bill.low), USD(r->bill.high));
    if (*r->bill.unpriced || *r->bill.unpowered)
        eng_str_printf(out, "  without: %s%s%s%s\n", r->bill.unpriced,
                       *r->bill.unpriced
                           ? " (no price is known; --assume one, with --years for what "
                             "is bought)"
                           : "",
                       *r->bill.unpriced && *r->bill.unpowered ? ", " : "", r->bill.unpowered);
}
