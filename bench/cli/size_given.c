/* Inputs of a plan as text: whatever was given or assumed, and what was not; see size_parts.h. */
#include <string.h>

#include "bench/cli/size_parts.h"

#define US 1e6

static void print_tiers(const EngSize *s, EngStr *out)
{
    for (int i = 0; i < s->machine.n_tiers; i++)
        for (int f = 0; f < ENG_TIER_FIELD_COUNT; f++) {
            const EngTier *tier = &s->machine.tiers[i];
            const EngQuantity *q = &tier->fields[f];
            double unit = f == ENG_TIER_BYTE_PRICE ? 1e9 : 1; /* USD/GB, as it was given */
            bool used = f >= ENG_TIER_POPULATE_RATE || tier == s->link || tier == s->scales;
            for (int p = 0; p < s->n_paths; p++)
                for (int t = 0; t < s->paths[p].n; t++) used = used || s->paths[p].tiers[t] == tier;
            if (!q->origin || !used) continue;
            eng_str_printf(out, "  %s.%s = ", tier->name, eng_tier_field_name((EngTierField)f));
            if (q->low < q->high)
                eng_str_printf(out, "%.4g to %.4g", q->low * unit, q->high * unit);
            else
                eng_str_printf(out, "%.6g", q->value * unit);
            eng_str_printf(out, " %s, %s%s%s: %s\n",
                           f == ENG_TIER_BYTE_PRICE ? "USD/GB"
                                                    : eng_tier_field_unit((EngTierField)f),
                           eng_origin_name(q->origin), *q->date ? " " : "", q->date, q->source);
        }
}

static void print_traffic(const EngSize *s, const EngTraffic *t, EngStr *out)
{
    eng_str_printf(out,
                   "  traffic %s: %.6g tokens in a step of a replica, %.6g yielded, %d layers of "
                   "%.6g us",
                   t->name, t->tokens, t->yield, s->n_layers, t->layer * US);
    if (t->drafted)
        eng_str_printf(out, ", %.0f drafted and %.4g accepted a stream", t->drafted, t->accepted);
    if (t->rate) eng_str_printf(out, ", %.6g tokens/s wanted", t->rate);
    if (t->slo) eng_str_printf(out, ", a mean step of %.4g ms asked for", t->slo * 1e3);
    eng_str_printf(out, "\n    unique %.4g, hits %.4g: %s\n", t->unique, t->hits, t->rests_on);
}

static void print_holding(const EngSize *s, EngStr *out)
{
    eng_str_printf(out, "  tables: %d shard%s, %d cop%s on each\n", s->shards,
                   s->shards > 1 ? "s" : "", s->copies, s->copies > 1 ? "ies" : "y");
    if (s->ranks) eng_str_printf(out, "  a replica: %d devices\n", s->ranks);
    if (s->host_devices) eng_str_printf(out, "  a host: %d devices\n", s->host_devices);
    if (s->kv_tokens) {
        const char *format = eng_cli_text(s->cli, "kv");
        eng_str_printf(out, "  context: %.0f tokens%s%s\n", s->kv_tokens,
                       format ? ", kept in " : "", format ? format : "");
    }
    for (int i = 0; i < s->n_reserves; i++)
        eng_str_printf(out, "  reserve: %s, %.6g GB\n", s->reserves[i].name,
                       (double)s->reserves[i].bytes / 1e9);
    if (s->power_price) eng_str_printf(out, "  power: %g USD/kWh\n", s->power_price);
    if (s->years) eng_str_printf(out, "  what is bought is used for %g years\n", s->years);
}

static void print_readers(const EngSize *s, EngStr *out)
{
    if (s->link && s->scheme == ENG_SHARD_PEER_READ)
        eng_str_printf(out,
                       "  readers: %d, each the rows of its own tokens, through %s those that "
                       "others hold\n",
                       s->shards, s->link->name);
    else if (s->link)
        eng_str_printf(out, "  readers: %d, each what it holds; %s over %s behind each gather\n",
                       s->shards, eng_sharding_name(s->scheme), s->link->name);
    else
        eng_str_printf(out, "  readers: %d%s\n", s->readers ? s->readers : 1,
                       s->readers ? ""
                                  : " (--readers not given: one path carries all rows of a step)");
    if (s->shards > 1 && !s->link)
        eng_str_add(out, "  exchange among holders: not given, counted as nothing\n");
    if (s->scales_everywhere)
        eng_str_add(out, "  scales: all of them with every holder; only values travel\n");
    if (s->scales)
        eng_str_printf(out, "  scales: all of them in %s, apart from the values\n",
                       s->scales->name);
}

static void print_delays(const EngSize *s, EngStr *out)
{
    const struct {
        const char *name;
        double seconds;
    } delays[] = {{"hash", s->hash}, {"issue", s->issue}, {"scheduling", s->scheduling}};
    for (int i = 0; i < 3; i++)
        if (delays[i].seconds)
            eng_str_printf(out, "  %s: %.6g us\n", delays[i].name, delays[i].seconds * US);
        else
            eng_str_printf(out, "  %s: not given, counted as nothing\n", delays[i].name);
}

static void print_interference(const EngSize *s, const EngSizePath *path, EngStr *out)
{
    EngSlowdowns slower = s->interference_given ? s->interference : eng_size_beside(path);
    eng_str_printf(out, "  interference through %s: ", path->name);
    if (slower.fetch || slower.compute || s->interference_given)
        eng_str_printf(out, "fetches %.3g %% slower beside layers, layers %.3g %%, %s\n",
                       100 * slower.fetch, 100 * slower.compute,
                       s->interference_given ? "as given" : "as measured");
    else
        eng_str_add(out, "not given, counted as none\n");
}

void eng_size_print_inputs(const EngSize *s, EngStr *out)
{
    eng_str_printf(out, "machine %s, model %s. All times are means.\n\ninputs\n", s->machine.name,
                   s->preset.name);
    print_tiers(s, out);
    for (int i = 0; i < s->n_traffic; i++) print_traffic(s, &s->traffic[i], out);
    print_holding(s, out);
    print_readers(s, out);
    print_delays(s, out);
    for (int i = 0; i < s->n_paths; i++) print_interference(s, &s->paths[i], out);
}
