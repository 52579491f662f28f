/* Reading what a plan rests on; see size_parts.h. Nothing has a default that changes a figure: what
 * is missing is asked for, or the plan says that it is not counted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/cli/size_fields.h"

#define MOST_TOKENS 1e15 /* of context */
#define MOST_YEARS  100
#define MOST_ZIPF   5 /* beyond this a handful of rows is all that is asked for */

/* ---- machines ----------------------------------------------------------------------------------
 */

/* Tiers of several machines side by side, such as an accelerator and its host. */
static EngStatus add_machine(EngSize *s, int index, EngErr *err)
{
    const char *name = eng_cli_repeat(s->cli, "machine", index);
    EngMachineModel *all = &s->machine, one;
    EngStatus status = eng_machine_open(name, &one, err);
    if (status == ENG_NOT_FOUND)
        return ENG_FAIL(err, ENG_BAD_DATA, "--machine=%s: no such file", name);
    if (status == ENG_USAGE) eng_err_prefix(err, "--machine");
    for (int i = 0; !status && i < one.n_tiers; i++) {
        for (int j = 0; j < all->n_tiers; j++)
            if (!strcmp(all->tiers[j].name, one.tiers[i].name))
                return ENG_FAIL(err, ENG_USAGE, "--machine=%s: %s has a tier %s already", name,
                                all->name, one.tiers[i].name);
        if (all->n_tiers == ENG_MAX_TIERS)
            return ENG_FAIL(err, ENG_USAGE, "--machine=%s: more than %d tiers", name,
                            ENG_MAX_TIERS);
        s->tier_from[all->n_tiers] = 1 + index;
        all->tiers[all->n_tiers++] = one.tiers[i];
    }
    if (status) return status;
    size_t n = strlen(all->name), d = strlen(s->machine_digests);
    snprintf(all->name + n, sizeof all->name - n, "%s%s", n ? "+" : "", one.name);
    snprintf(s->machine_digests + d, sizeof s->machine_digests - d, "%s ", one.digest);
    return ENG_OK;
}

static EngStatus open_machines(EngSize *s, EngErr *err)
{
    EngStatus status = ENG_OK;
    int n = eng_cli_repeats(s->cli, "machine");
    if (!n)
        return ENG_FAIL(err, ENG_USAGE,
                        "--machine is needed: a preset, or a file (engram calibrate writes one)");
    for (int i = 0; !status && i < n; i++) status = add_machine(s, i, err);
    s->n_given_tiers = s->machine.n_tiers;
    for (int i = 0; !status && i < eng_cli_repeats(s->cli, "assume"); i++) {
        status = eng_machine_assume(&s->machine, eng_cli_repeat(s->cli, "assume", i), err);
        if (status) eng_err_prefix(err, "--assume");
    }
    return status;
}

/* "dram,pcie": from where the rows lie to who reads them. */
static EngStatus read_path(EngSize *s, const char *text, EngErr *err)
{
    if (s->n_paths == ENG_SIZE_MAX_PATHS)
        return ENG_FAIL(err, ENG_USAGE, "--path: more than %d", ENG_SIZE_MAX_PATHS);
    EngSizePath *path = &s->paths[s->n_paths++];
    char word[32]; /* longer than a name */
    snprintf(path->name, sizeof path->name, "%s", text);
    if (!*text) return ENG_FAIL(err, ENG_USAGE, "--path: names no tier");
    while (eng_size_next_word(&text, word, sizeof word)) {
        if (path->n == ENG_MAX_STAGES)
            return ENG_FAIL(err, ENG_USAGE, "--path=%s: more than %d tiers", path->name,
                            ENG_MAX_STAGES);
        EngStatus status = eng_machine_tier(&s->machine, word, &path->tiers[path->n++], err);
        if (status) return eng_err_prefix(err, "--path=%s", path->name), status;
        for (int i = 0; i + 1 < path->n; i++)
            if (path->tiers[i] == path->tiers[path->n - 1])
                return ENG_FAIL(err, ENG_USAGE, "--path=%s: names %s twice", path->name, word);
    }
    if (!eng_tier_place(path->tiers[0], &path->place))
        return ENG_FAIL(err, ENG_USAGE,
                        "--path=%s: no table lies in %s; begin with hbm, dram, cxl, nvme or file",
                        path->name, path->tiers[0]->name);
    return eng_size_given_once(s, "path", path->name, err);
}

static EngStatus read_paths(EngSize *s, EngErr *err)
{
    EngStatus status = ENG_OK;
    int n = eng_cli_repeats(s->cli, "path");
    if (!n)
        return ENG_FAIL(err, ENG_USAGE,
                        "--path is needed: tiers that rows come through, such as "
                        "dram,pcie; several are compared");
    for (int i = 0; !status && i < n; i++)
        status = read_path(s, eng_cli_repeat(s->cli, "path", i), err);
    return status;
}

/* Peers are read through a stage more of each path. */
static EngStatus check_peers(const EngSize *s, EngErr *err)
{
    for (int p = 0; p < s->n_paths && s->scheme == ENG_SHARD_PEER_READ; p++) {
        const EngSizePath *path = &s->paths[p];
        if (path->n == ENG_MAX_STAGES)
            return ENG_FAIL(err, ENG_USAGE,
                            "--exchange: the link to peers is a tier more than the %d that "
                            "--path=%s may have",
                            ENG_MAX_STAGES, path->name);
        for (int i = 0; i < path->n; i++)
            if (path->tiers[i] == s->link)
                return ENG_FAIL(err, ENG_USAGE,
                                "--exchange: rows of --path=%s come through %s already; what "
                                "peers read beside them is not modelled",
                                path->name, s->link->name);
    }
    return ENG_OK;
}

/* Who exchanges reads for one replica: no more devices, or hosts of tables that lie there, than it
 * is of. */
static EngStatus check_holders(const EngSize *s, EngErr *err)
{
    for (int p = 0; p < s->n_paths; p++) {
        bool devices = s->paths[p].place == ENG_PLACE_DEVICE;
        bool known = s->ranks && (devices || s->host_devices);
        int most = devices ? s->ranks : eng_size_hosts_of_replica(s);
        if (known && s->shards > most)
            return ENG_FAIL(err, ENG_USAGE,
                            "--exchange: --shards=%d, with --path=%s each reads a part of a step; "
                            "a replica is of %d %s%s (%s)",
                            s->shards, s->paths[p].name, most, devices ? "device" : "host",
                            most > 1 ? "s" : "",
                            devices ? "--ranks" : "--ranks over --host-devices");
    }
    return ENG_OK;
}

/* "all-gather,nvlink": how rows reach who does not hold them, and over which link. */
static EngStatus read_exchange(EngSize *s, EngErr *err)
{
    const char *text = eng_cli_text(s->cli, "exchange");
    char word[32] = "", names[96] = "";
    int k = 0;
    if (!text) return ENG_OK;
    eng_size_next_word(&text, word, sizeof word);
    while (k < ENG_SHARD_COUNT && strcmp(word, eng_sharding_name((EngSharding)k))) k++;
    for (int i = 0; i < ENG_SHARD_COUNT; i++) {
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                 eng_sharding_name((EngSharding)i));
    }
    if (k == ENG_SHARD_COUNT)
        return ENG_FAIL(err, ENG_USAGE, "--exchange: \"%s\" is none of %s", word, names);
    s->scheme = (EngSharding)k;
    if (!eng_size_next_word(&text, word, sizeof word) || text)
        return ENG_FAIL(err, ENG_USAGE, "--exchange: give a scheme and one link: %s,nvlink",
                        eng_sharding_name(s->scheme));
    if (s->shards < 2)
        return ENG_FAIL(err, ENG_USAGE, "--exchange: nothing is shared with --shards=1");
    if (s->readers)
        return ENG_FAIL(err, ENG_USAGE,
                        "--exchange: each of --shards reads what it holds; leave out --readers");
    EngStatus status = eng_machine_tier(&s->machine, word, &s->link, err);
    if (status) return eng_err_prefix(err, "--exchange"), status;
    status = check_holders(s, err);
    return status ? status : check_peers(s, err);
}

/* A plan counts one memory and one kind of drive of a host, eng_size_memory. */
static EngStatus check_apart(const char *option, const char *text, const EngTier *tier,
                             const EngTier *other, EngErr *err)
{
    EngPlace here, there;
    if (tier == other || !eng_tier_place(tier, &here) || !eng_tier_place(other, &there) ||
        here != there)
        return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE,
                    "--%s=%s: bytes of %s and %s are not told apart, a plan counts one %s of a "
                    "host",
                    option, text, tier->name, other->name,
                    here == ENG_PLACE_DRIVE ? "drive" : "memory");
}

/* Every holder has all scales, so that only values travel. */
static EngStatus read_scales_everywhere(EngSize *s, EngErr *err)
{
    s->scales_everywhere = true;
    if (!eng_row_scale_bytes(s->preset.row_format, s->preset.row_dims))
        return ENG_FAIL(err, ENG_USAGE, "--scales=everywhere: rows of %s have none",
                        s->preset.name);
    if (s->shards < 2)
        return ENG_FAIL(err, ENG_USAGE, "--scales=everywhere: nothing is shared with --shards=1");
    if (s->link && !eng_sharding_is_raw(s->scheme))
        return ENG_FAIL(err, ENG_USAGE,
                        "--scales=everywhere: --exchange=%s sends decoded rows, which have none",
                        eng_sharding_name(s->scheme));
    return ENG_OK;
}

/* "everywhere", or the tier that has them all instead. */
static EngStatus read_scales(EngSize *s, EngErr *err)
{
    const char *text = eng_cli_text(s->cli, "scales");
    EngPlace place;
    if (!text) return ENG_OK;
    if (!strcmp(text, "everywhere")) return read_scales_everywhere(s, err);
    EngStatus status = eng_machine_tier(&s->machine, text, &s->scales, err);
    if (status) return eng_err_prefix(err, "--scales"), status;
    if (!eng_tier_place(s->scales, &place))
        return ENG_FAIL(err, ENG_USAGE, "--scales=%s: nothing lies there", text);
    if (!eng_row_scale_bytes(s->preset.row_format, s->preset.row_dims))
        return ENG_FAIL(err, ENG_USAGE, "--scales=%s: rows of %s have none", text, s->preset.name);
    for (int i = 0; i < s->n_paths; i++) {
        const EngSizePath *path = &s->paths[i];
        int tiers = path->n + (s->link && s->scheme == ENG_SHARD_PEER_READ), on_path = 0;
        for (int t = 0; t < path->n; t++) on_path += path->tiers[t] == s->scales;
        if (path->tiers[0] == s->scales)
            return ENG_FAIL(err, ENG_USAGE, "--scales=%s: with --path=%s they lie there already",
                            text, path->name);
        status = check_apart("scales", text, s->scales, path->tiers[0], err);
        if (status) return status;
        if (tiers == ENG_MAX_STAGES && !on_path)
            return ENG_FAIL(err, ENG_USAGE,
                            "--scales=%s: a tier more than the %d that a fetch through --path=%s "
                            "may have",
                            text, ENG_MAX_STAGES, path->name);
    }
    return ENG_OK;
}

EngStatus eng_size_need_requests(const EngTier *tier, EngErr *err)
{
    double value;
    return eng_tier_need(tier, eng_tier_is_adapter(tier) ? ENG_TIER_REQUEST_RATE : ENG_TIER_GRANULE,
                         &value, err);
}

static EngStatus check_requests(const EngSize *s, EngErr *err)
{
    EngStatus status = s->scales ? eng_size_need_requests(s->scales, err) : ENG_OK;
    if (!status && s->link && s->scheme == ENG_SHARD_PEER_READ)
        status = eng_size_need_requests(s->link, err);
    for (int p = 0; p < s->n_paths; p++)
        for (int i = 0; i < s->paths[p].n && !status; i++)
            status = eng_size_need_requests(s->paths[p].tiers[i], err);
    return status;
}

/* "4GB@dram": bytes of a replica, and the tier that holds them and answers what it has. */
static EngStatus read_cache(EngSize *s, EngErr *err)
{
    const char *text = eng_cli_text(s->cli, "cache"), *at = text ? strchr(text, '@') : NULL;
    char bytes[32];
    EngPlace place;
    if (!text) return ENG_OK;
    if (!at || at == text || (size_t)(at - text) >= sizeof bytes)
        return ENG_FAIL(err, ENG_USAGE,
                        "--cache=%s: in which tier? Give BYTES@TIER, such as 4GB@dram", text);
    snprintf(bytes, sizeof bytes, "%.*s", (int)(at - text), text);
    EngStatus status = eng_quantity_parse(bytes, ENG_DIM_BYTES, &s->cache_bytes, err);
    if (status) return eng_err_prefix(err, "--cache"), status;
    status = eng_machine_tier(&s->machine, at + 1, &s->cache, err);
    if (status) return eng_err_prefix(err, "--cache=%s", text), status;
    if (!eng_tier_place(s->cache, &place))
        return ENG_FAIL(err, ENG_USAGE, "--cache=%s: nothing lies in %s", text, s->cache->name);
    for (int i = 0; i < s->n_paths; i++) {
        EngSizePath *path = &s->paths[i];
        while (path->cache < path->n && path->tiers[path->cache] != s->cache) path->cache++;
        if (!path->cache)
            return ENG_FAIL(err, ENG_USAGE, "--cache=%s: with --path=%s all rows lie there already",
                            text, path->name);
        if (path->cache == path->n)
            return ENG_FAIL(err, ENG_USAGE,
                            "--cache=%s: --path=%s does not pass %s; what it holds crosses the "
                            "path behind it",
                            text, path->name, s->cache->name);
        status = check_apart("cache", text, s->cache, path->tiers[0], err);
        if (status) return status;
    }
    return s->scales ? check_apart("cache", text, s->cache, s->scales, err) : ENG_OK;
}

/* ---- what nothing asks for ---------------------------------------------------------------------
 */

/* Whether a plan needs a value of this tier; one that no machine has and no path passes is a slip.
 */
static bool uses(const EngSize *s, const EngTier *tier)
{
    bool used = tier == s->link || tier == s->scales || tier == s->cache;
    for (int i = 0; i < s->n_paths; i++)
        for (int t = 0; t < s->paths[i].n; t++) used = used || tier == s->paths[i].tiers[t];
    /* Memories of a device and a host have capacities, tables are read from a drive. */
    bool memory = !strcmp(tier->name, "hbm") || !strcmp(tier->name, "dram");
    bool drive = !strcmp(tier->name, "nvme") || !strcmp(tier->name, "file");
    return used || eng_tier_has(tier, ENG_TIER_RENT) || memory || drive;
}

static EngStatus check_assumed_tiers(const EngSize *s, EngErr *err)
{
    const char *names[ENG_MAX_TIERS];
    for (int i = 0; i < s->machine.n_tiers; i++) names[i] = s->machine.tiers[i].name;
    for (int i = s->n_given_tiers; i < s->machine.n_tiers; i++) {
        if (uses(s, &s->machine.tiers[i])) continue;
        const char *near = eng_nearest(names[i], names, (size_t)s->n_given_tiers);
        return ENG_FAIL(err, ENG_USAGE, "--assume: no path passes a tier \"%s\"%s%s%s", names[i],
                        near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return ENG_OK;
}

/* Power that nobody pays for, or that the rent of a device does; a price of none. */
static EngStatus check_power(const EngSize *s, EngErr *err)
{
    int n = 0;
    for (int i = 0; i < s->machine.n_tiers; i++) {
        const EngTier *tier = &s->machine.tiers[i];
        bool assumed = tier->fields[ENG_TIER_POWER].origin == ENG_ASSUMED;
        bool rented =
            eng_size_device_price(s, ENG_TIER_RENT)->origin && eng_size_comes_with_device(s, tier);
        if (assumed && !s->power_price)
            return ENG_FAIL(err, ENG_USAGE,
                            "--assume: %s.power at which price? --power-price=0.1USD/kWh",
                            tier->name);
        if (assumed && rented)
            return ENG_FAIL(err, ENG_USAGE,
                            "--assume: %s.power is paid with the rent of the device", tier->name);
        n += eng_tier_has(tier, ENG_TIER_POWER) && !rented;
    }
    if (!s->power_price || n) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE,
                    "--power-price: of what? Nothing that is not rented has a power, such as "
                    "--assume=%s.power=700W",
                    s->paths[0].tiers[0]->name);
}

/* What would change nothing is refused, since it was meant to. */
static EngStatus check_unused(const EngSize *s, EngErr *err)
{
    EngStatus status = check_power(s, err);
    if (status) return status;
    if (s->power_price > 0 && !(s->ranks && s->host_devices))
        return ENG_FAIL(err, ENG_USAGE,
                        "--power-price: power is of hosts; --ranks, devices of a replica, and "
                        "--host-devices are needed");
    if (s->years > 0 && !(s->ranks && s->host_devices))
        return ENG_FAIL(err, ENG_USAGE,
                        "--years: what is bought is for hosts; --ranks, devices of a replica, and "
                        "--host-devices are needed");
    return check_assumed_tiers(s, err);
}

/* ---- what is held ------------------------------------------------------------------------------
 */

static EngStatus read_model(EngSize *s, EngErr *err)
{
    const char *file = eng_cli_text(s->cli, "weights");
    const char *model;
    EngStatus status =
        eng_size_need_text(s, "model", "an Engram preset, such as v41-flash", &model, err);
    if (status) return status;
    status = eng_preset_find(model, &s->preset, err);
    if (status) return eng_err_prefix(err, "--model"), status;
    status = eng_model_open(file ? file : s->preset.name, &s->model, err);
    if (status != ENG_NOT_FOUND) return status;
    if (file) return ENG_FAIL(err, ENG_BAD_DATA, "--weights=%s: no such file or model", file);
    s->model = (EngModel){0};
    return ENG_OK;
}

/* The format that the model's caches are kept in. */
static EngStatus read_caches(EngSize *s, EngErr *err)
{
    const char *format = eng_cli_text(s->cli, "kv");
    if (!s->kv_tokens)
        return format ? ENG_FAIL(err, ENG_USAGE, "--kv: of how much context? --context=TOKENS")
                      : ENG_OK;
    if (!s->model.n_kv)
        return ENG_FAIL(err, ENG_USAGE, "--context: no shapes of %s are known; --weights=FILE",
                        s->preset.name);
    EngStatus status = eng_model_kv(&s->model, format, err);
    return status ? eng_err_prefix(err, "--kv"), status : ENG_OK;
}

/* "graphs=22GiB" */
static EngStatus read_reserves(EngSize *s, EngErr *err)
{
    for (int i = 0; i < eng_cli_repeats(s->cli, "reserve"); i++) {
        const char *text = eng_cli_repeat(s->cli, "reserve", i), *equal = strchr(text, '=');
        double bytes;
        if (!equal || equal == text || equal - text > 48)
            return ENG_FAIL(err, ENG_USAGE, "--reserve=%s: not NAME=BYTES", text);
        if (s->n_reserves == ENG_SIZE_MAX_RESERVES)
            return ENG_FAIL(err, ENG_USAGE, "--reserve: more than %d", ENG_SIZE_MAX_RESERVES);
        EngStatus status = eng_quantity_parse(equal + 1, ENG_DIM_BYTES, &bytes, err);
        if (status) return eng_err_prefix(err, "--reserve=%s", text), status;
        EngLedgerLine *line = &s->reserves[s->n_reserves++];
        *line = (EngLedgerLine){.layer = -1, .place = ENG_PLACE_DEVICE, .bytes = (uint64_t)bytes};
        snprintf(line->name, sizeof line->name, "%.*s", (int)(equal - text), text);
    }
    return ENG_OK;
}

static EngStatus read_interference(EngSize *s, EngErr *err)
{
    const char *text = eng_cli_text(s->cli, "interference");
    if (!text) return ENG_OK;
    s->interference = (EngSlowdowns){NAN, NAN};
    const EngSizeField fields[] = {{"fetch", ENG_DIM_SHARE, &s->interference.fetch},
                                   {"compute", ENG_DIM_SHARE, &s->interference.compute}};
    EngStatus status = eng_size_read_fields("interference", text, fields, 2, err);
    for (int f = 0; f < 2 && !status; f++)
        if (isnan(*fields[f].value))
            status = ENG_FAIL(err, ENG_USAGE, "--interference: %s=SHARE is needed, 0 for none",
                              fields[f].key);
    s->interference_given = !status;
    return status;
}

static EngStatus read_training(EngSize *s, EngErr *err)
{
    const char *text = eng_cli_text(s->cli, "training");
    double ranks = 0, group = 0, node = 0, stages = 0;
    EngTrainingInput *in = &s->training.input;
    if (!text) return ENG_OK;
    const EngSizeField fields[] = {{"ranks", ENG_DIM_COUNT, &ranks},
                                   {"group", ENG_DIM_COUNT, &group},
                                   {"node", ENG_DIM_COUNT, &node},
                                   {"tokens", ENG_DIM_COUNT, &in->local_tokens},
                                   {"unique", ENG_DIM_SHARE, &in->unique},
                                   {"state", ENG_DIM_BYTES, &in->state_bytes},
                                   {"gradient", ENG_DIM_BYTES, &in->gradient_bytes},
                                   {"near", ENG_DIM_BYTES_PER_S, &in->near_rate},
                                   {"far", ENG_DIM_BYTES_PER_S, &in->far_rate},
                                   {"vision", ENG_DIM_SECONDS, &in->vision},
                                   {"backward", ENG_DIM_SECONDS, &in->backward},
                                   {"stages", ENG_DIM_COUNT, &stages}};
    EngStatus status = eng_size_read_fields("training", text, fields, 12, err);
    for (int f = 0; !status && f < 12; f++)
        if (!*fields[f].value && strcmp(fields[f].key, "vision") &&
            strcmp(fields[f].key, "backward"))
            status = ENG_FAIL(err, ENG_USAGE, "--training: %s=... is needed", fields[f].key);
    for (int f = 0; !status && f < 12; f++)
        if (fields[f].dimension == ENG_DIM_COUNT &&
            !(*fields[f].value == floor(*fields[f].value) && *fields[f].value <= 1e9))
            status = ENG_FAIL(err, ENG_USAGE, "--training: %s=%g is no whole number up to 1e9",
                              fields[f].key, *fields[f].value);
    if (status) return status;
    s->training.given = true;
    s->training.stages = (int)stages;
    in->preset = &s->preset;
    in->ranks = (int)ranks;
    in->group = (int)group;
    in->ranks_per_node = (int)node;
    return ENG_OK;
}

static EngStatus read_numbers(EngSize *s, EngErr *err)
{
    const struct {
        const char *name;
        EngDimension dimension;
        double *value;
    } quantities[] = {{"scheduling", ENG_DIM_SECONDS, &s->scheduling},
                      {"hash", ENG_DIM_SECONDS, &s->hash},
                      {"issue", ENG_DIM_SECONDS, &s->issue},
                      {"context", ENG_DIM_COUNT, &s->kv_tokens},
                      {"years", ENG_DIM_COUNT, &s->years},
                      {"power-price", ENG_DIM_USD_PER_KWH, &s->power_price},
                      {"zipf", ENG_DIM_NUMBER, &s->zipf}};
    EngStatus status = eng_size_need_int(s, "layers", "layers of the backbone",
                                         ENG_SIZE_MAX_BACKBONE, &s->n_layers, err);
    if (!status && s->model.n_weights && s->n_layers != s->model.layers)
        status = ENG_FAIL(err, ENG_USAGE,
                          "--layers=%d: %s has %d; shapes of another backbone are "
                          "given with --weights=FILE",
                          s->n_layers, s->model.name, (int)s->model.layers);
    if (!status)
        status = eng_size_need_int(s, "shards", "devices, hosts or drives that share each table",
                                   INT32_MAX, &s->shards, err);
    if (!status)
        status = eng_size_need_int(s, "copies", "of the tables on each, such as one a NUMA node",
                                   1024, &s->copies, err);
    if (!status) status = eng_size_maybe_int(s, "readers", 1024, &s->readers, err);
    if (!status) status = eng_size_maybe_int(s, "ranks", 1 << 20, &s->ranks, err);
    if (!status) status = eng_size_maybe_int(s, "host-devices", 1024, &s->host_devices, err);
    if (!status && s->ranks && s->readers > s->ranks)
        status = ENG_FAIL(err, ENG_USAGE, "--readers=%d: a replica is of %d devices (--ranks)",
                          s->readers, s->ranks);
    for (size_t i = 0; !status && i < sizeof quantities / sizeof *quantities; i++)
        status = eng_size_maybe_quantity(s, quantities[i].name, quantities[i].dimension,
                                         quantities[i].value, err);
    if (!status && !(s->kv_tokens == floor(s->kv_tokens) && s->kv_tokens <= MOST_TOKENS))
        status = ENG_FAIL(err, ENG_USAGE, "--context=%g is no whole number up to %g", s->kv_tokens,
                          MOST_TOKENS);
    if (!status && s->years > MOST_YEARS)
        status = ENG_FAIL(err, ENG_USAGE, "--years=%g: nothing is used for more than %d", s->years,
                          MOST_YEARS);
    if (!status && s->zipf > MOST_ZIPF)
        status =
            ENG_FAIL(err, ENG_USAGE, "--zipf=%g: the exponent is above %d", s->zipf, MOST_ZIPF);
    snprintf(s->zipf_label, sizeof s->zipf_label, "synthetic: Zipf %g, Che", s->zipf);
    return status;
}

EngStatus eng_size_read(EngSize *s, EngErr *err)
{
    EngStatus status = read_model(s, err);
    int n = eng_cli_repeats(s->cli, "traffic");
    if (!status) status = open_machines(s, err);
    if (!status) status = read_paths(s, err);
    if (!status) status = read_numbers(s, err);
    if (!status) status = read_exchange(s, err);
    if (!status) status = read_scales(s, err);
    if (!status) status = read_cache(s, err);
    if (!status) status = check_requests(s, err);
    if (!status && !n)
        status = ENG_FAIL(err, ENG_USAGE,
                          "--traffic is needed: decode,streams=N,layer=TIME or "
                          "prefill,tokens=N,layer=TIME");
    for (int i = 0; !status && i < n; i++)
        status = eng_size_read_traffic(s, eng_cli_repeat(s->cli, "traffic", i), err);
    for (int i = 0; !status && i < s->n_traffic; i++)
        if (s->traffic[i].rate && !(s->ranks && s->host_devices))
            status = ENG_FAIL(err, ENG_USAGE,
                              "--traffic: rate= asks for hosts: --ranks, devices "
                              "of a replica, and --host-devices are needed");
    if (!status) status = eng_size_read_slo(s, err);
    if (!status) status = read_reserves(s, err);
    if (!status) status = read_interference(s, err);
    for (int i = 0; !status && i < s->n_paths; i++) status = eng_size_basis(s, &s->paths[i], err);
    if (!status) status = read_training(s, err);
    if (!status) status = read_caches(s, err);
    if (!status && s->ranks && s->model.n_weights) {
        status = eng_model_split(&s->model, s->ranks, err);
        if (status) eng_err_prefix(err, "--ranks");
    }
    if (!status) status = check_unused(s, err);
    return status ? status : eng_size_read_shares(s, err);
}

void eng_size_free(EngSize *s)
{
    for (int i = 0; i < s->n_corpora; i++) eng_size_corpus_close(&s->corpora[i]);
    for (int i = 0; i < s->n_paths; i++) {
        eng_free(s->paths[i].values);
        eng_free(s->paths[i].standing);
        eng_free(s->paths[i].basis);
    }
}
