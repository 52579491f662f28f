/* A plan's figures, and their text; see size_parts.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/cli/size_parts.h"

#define GIB 0x1p30
#define US  1e6

static const EngTier *memory_on(const EngTier *tier, EngPlace place)
{
    EngPlace held;
    return tier && eng_tier_place(tier, &held) && held == place ? tier : NULL;
}

const EngTier *eng_size_memory(const EngSize *s, const EngSizePath *path, EngPlace place)
{
    static const char *const usual[ENG_PLACE_COUNT] = {"hbm", "dram", ""};
    const EngTier *memory = memory_on(path->tiers[0], place);
    if (!memory) memory = memory_on(s->cache, place);
    if (!memory) memory = memory_on(s->scales, place);
    for (int i = 1; i < path->n && !memory; i++) memory = memory_on(path->tiers[i], place);
    for (int i = 0; i < s->machine.n_tiers && !memory; i++)
        if (!strcmp(s->machine.tiers[i].name, usual[place])) memory = &s->machine.tiers[i];
    return memory;
}

static bool counts_weights(const EngSize *s)
{
    return s->ranks && s->model.n_weights;
}

/* Of the fullest device or host: a replica's cache is split like its rows over readers, or like
 * itself over hosts, and a host holds those of all its replicas. */
static EngLedgerLine cache_line(const EngSize *s)
{
    EngLedgerLine line = {.layer = -1};
    double holders = 1, replicas = eng_size_replicas_of_host(s);
    eng_tier_place(s->cache, &line.place);
    if (line.place == ENG_PLACE_DEVICE) {
        holders = s->link ? s->shards : s->readers > 1 ? s->readers : 1;
        replicas = 1;
    } else /* of an exchange those alone that hold tables */
        holders = s->link ? s->shards : eng_size_hosts_of_replica(s);
    snprintf(line.name, sizeof line.name, "row cache%s", replicas > 1 ? "s of replicas" : "");
    line.bytes = (uint64_t)ceil(s->cache_bytes * replicas / holders);
    line.pinned = line.place == ENG_PLACE_HOST;
    return line;
}

EngStatus eng_size_ledger(const EngSize *s, const EngSizePath *path, EngLedger *ledger, EngErr *err)
{
    EngLedgerLine others[ENG_SIZE_MAX_RESERVES + 1];
    EngLedgerInput in = {.preset = &s->preset,
                         .format = s->preset.row_format,
                         .tables = path->place,
                         .shards = s->shards,
                         .scales_everywhere = s->scales_everywhere,
                         .numa_copies = path->place == ENG_PLACE_HOST ? s->copies : 1,
                         .replicas = path->place == ENG_PLACE_HOST ? 1 : s->copies,
                         .pinned = path->place == ENG_PLACE_HOST,
                         .staging_buffers = 2,
                         .reserves = others,
                         .n_reserves = s->n_reserves,
                         .kv_tokens = (int64_t)s->kv_tokens};
    if (path->place != ENG_PLACE_DEVICE) /* a host stages for all its replicas */
        in.staging_buffers *= eng_size_replicas_of_host(s);
    memcpy(others, s->reserves, sizeof s->reserves);
    if (s->cache) others[in.n_reserves++] = cache_line(s);
    for (int i = 0; i < s->n_traffic; i++) {
        int64_t streams = s->traffic[i].decode ? (int64_t)s->traffic[i].streams : 1;
        if ((int64_t)s->traffic[i].tokens > in.batch_tokens)
            in.batch_tokens = (int64_t)s->traffic[i].tokens;
        if (streams > in.kv_streams) in.kv_streams = streams;
    }
    if (counts_weights(s)) {
        in.weights = s->model.weights;
        in.n_weights = s->model.n_weights;
    }
    if (s->kv_tokens > 0) {
        in.kv = s->model.kv;
        in.n_kv = s->model.n_kv;
    }
    if (s->scales) in.scales_apart = eng_tier_place(s->scales, &in.scales);
    for (int p = 0; p < ENG_PLACE_COUNT; p++) {
        const EngTier *memory = eng_size_memory(s, path, (EngPlace)p);
        if (!memory) continue;
        in.capacity[p] = (uint64_t)memory->fields[ENG_TIER_CAPACITY].value; /* 0: not known */
        if (p == ENG_PLACE_HOST) in.pin_limit = (uint64_t)memory->fields[ENG_TIER_PIN_LIMIT].value;
    }
    in.unified = !in.capacity[ENG_PLACE_DEVICE];
    return eng_ledger_build(&in, ledger, err);
}

/* Whether every reader has all scales, so that only values travel between holders. */
static bool each_has_scales(const EngSize *s)
{
    return s->scales || s->scales_everywhere;
}

EngStatus eng_size_shape(const EngSize *s, const EngTraffic *t, int ranks, EngShardShape *shape,
                         EngErr *err)
{
    EngAddress address;
    EngStatus status = eng_address_build(&s->preset.address, &address, err);
    if (status) return status;
    *shape = (EngShardShape){.ranks = ranks,
                             .tokens = t->tokens,
                             .columns = address.n_columns,
                             .row_dims = s->preset.row_dims,
                             .row = eng_row_layout(s->preset.row_format, s->preset.row_dims),
                             .projected = (int64_t)(s->preset.streams + 1) * s->preset.hidden,
                             .unique = t->unique};
    if (each_has_scales(s)) shape->row.scale_bytes = 0;
    return ENG_OK;
}

EngStatus eng_size_exchange(const EngSize *s, EngSharding scheme, const EngShardShape *shape,
                            double *seconds, EngErr *err)
{
    EngStatus status =
        scheme == ENG_SHARD_PEER_READ ? eng_size_need_requests(s->link, err) : ENG_OK;
    return status ? status : eng_shard_time(scheme, shape, s->link, seconds, err);
}

EngSlowdowns eng_size_beside(const EngSizePath *path)
{
    const EngQuantity *f = path->tiers[0]->fields;
    return (EngSlowdowns){f[ENG_TIER_FETCH_SLOWDOWN].value, f[ENG_TIER_COMPUTE_SLOWDOWN].value};
}

/* Bits of EngStepInput.shared. */
static unsigned shared_tiers(const EngSize *s, const EngSizePath *path, const EngStepInput *in)
{
    unsigned shared = 0;
    for (int i = 0; i < in->n_path; i++)
        shared |= eng_size_of_host(s, path, in->path[i]) ? 1u << i : 0;
    return in->scales && eng_size_of_host(s, path, in->scales) ? shared | 1u << in->n_path : shared;
}

/* Holders that exchange what they hold, each with a memory of its own: hosts, or devices of the
 * replica's; where its devices are not known, these fill hosts. */
static EngStatus share(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                       EngStepInput *in, EngErr *err)
{
    EngShardShape shape;
    in->readers = s->shards;
    if (path->place != ENG_PLACE_DEVICE)
        in->hosts = s->shards;
    else if (!s->ranks && s->host_devices)
        in->hosts = (s->shards + s->host_devices - 1) / s->host_devices;
    /* Ranks of the same tokens need the scales of all rows. */
    if (each_has_scales(s) && s->scheme == ENG_SHARD_ALL_GATHER) in->scale_rows = s->shards;
    if (s->scheme == ENG_SHARD_PEER_READ) {
        in->path[in->n_path++] = s->link;
        in->peers = true;
        in->values_between_peers = each_has_scales(s);
        return ENG_OK;
    }
    EngStatus status = eng_size_shape(s, t, s->shards, &shape, err);
    return status ? status : eng_size_exchange(s, s->scheme, &shape, &in->exchange, err);
}

EngStatus eng_size_result(const EngSize *s, const EngSizePath *path, const EngTraffic *t,
                          EngSizeResult *r, EngErr *err)
{
    *r = (EngSizeResult){.path = path, .traffic = t};
    EngStepInput in = {.preset = &s->preset,
                       .format = s->preset.row_format,
                       .n_path = path->n,
                       .scales = s->scales,
                       .tokens = t->tokens,
                       .unique = t->unique,
                       .hits = t->hits,
                       .cache = path->cache,
                       .hits_label = s->zipf ? s->zipf_label : NULL,
                       .readers = s->readers,
                       .layers = t->times,
                       .n_layers = s->n_layers,
                       .scheduling = s->scheduling,
                       .hash = s->hash,
                       .issue = s->issue,
                       .hosts = eng_size_hosts_of_replica(s),
                       .interference = s->interference};
    memcpy(in.path, path->tiers, sizeof in.path);
    EngStatus status = s->link ? share(s, path, t, &in, err) : ENG_OK;
    if (status) return status;
    for (int i = 0; i < path->n; i++) /* the path's own: it may be a copy that was moved */
        if (s->scales && !strcmp(path->tiers[i]->name, s->scales->name)) in.scales = path->tiers[i];
    if (!s->interference_given) in.interference = eng_size_beside(path);
    int most = eng_size_replicas_of_host(s);
    in.shared = shared_tiers(s, path, &in);
    in.replicas = t->rate ? 1 : most;
    status = eng_step_plan(&in, &r->step, err);
    r->input = in;
    if (status || !t->rate) return status;
    /* A host has as many replicas as the rate takes of it: that they share may make it more. */
    for (in.replicas = 1; !status;) {
        status = eng_size_hosts(s, r, err);
        int beside_each_other = r->fleet.replicas < most ? r->fleet.replicas : most;
        if (status || beside_each_other <= in.replicas) break;
        in.replicas = beside_each_other;
        status = eng_step_plan(&in, &r->step, err);
        r->input = in;
    }
    r->has_fleet = !status;
    return status ? status : eng_size_bill(s, r, err);
}

/* ---- text --------------------------------------------------------------------------------------
 */

static void print_uncounted(const EngSize *s, EngStr *out)
{
    if (!s->model.n_weights)
        eng_str_printf(out,
                       "(weights are not counted: no shapes of %s are known; --weights=FILE)\n",
                       s->preset.name);
    else if (!s->ranks)
        eng_str_add(out, "(weights are not counted: --ranks tells over how many devices)\n");
    else
        eng_str_printf(out, "(weights: %s; %s %s)\n", s->model.summary,
                       eng_origin_name(s->model.weight_info[0].from.origin),
                       s->model.weight_info[0].from.date);
    if (!s->kv_tokens)
        eng_str_add(out, "(caches are not counted: --context tells of how many tokens)\n");
}

static EngStatus print_place(const EngSize *s, const EngSizePath *path, EngStr *out, EngErr *err)
{
    EngLedger ledger;
    EngStatus status = eng_size_ledger(s, path, &ledger, err);
    if (status) return status;
    eng_str_printf(out, "\n== path %s\n\nbytes, of the fullest %s of %d\n", path->name,
                   path->place == ENG_PLACE_DEVICE ? "device"
                   : path->place == ENG_PLACE_HOST ? "host"
                                                   : "drive",
                   s->shards);
    eng_ledger_print(&ledger, out);
    print_uncounted(s, out);
    return eng_size_print_startup(s, path, &ledger, out, err);
}

static void print_sharding(const EngSize *s, const EngTraffic *t, EngStr *out)
{
    EngErr err = {0};
    EngShardShape shape;
    if (s->shards < 2 || eng_size_shape(s, t, s->shards, &shape, &err)) return;
    eng_str_printf(out, "sharing among %d, received per holder and layer:", s->shards);
    for (int k = 0; k < ENG_SHARD_COUNT; k++) {
        double bytes, seconds;
        if (eng_shard_bytes((EngSharding)k, &shape, &bytes, &err)) continue;
        eng_str_printf(out, " %s %.4g MB", eng_sharding_name((EngSharding)k), bytes / 1e6);
        if (s->link && !eng_size_exchange(s, (EngSharding)k, &shape, &seconds, &err))
            eng_str_printf(out, " in %.4g us", seconds * US);
        eng_str_add(out, ",");
    }
    double mean = t->tokens * shape.columns / s->shards;
    eng_str_printf(out, " fullest shard %.3g of the mean%s\n",
                   eng_shard_largest_load(shape.columns, s->shards, t->tokens) / mean,
                   s->link ? ", which peer-read waits for; modelled, no collective was measured"
                           : "");
}

const char *eng_size_fit(const EngSizePath *path, const EngLedger *ledger)
{
    if (!eng_ledger_fits(ledger)) return "does not fit";
    return ledger->capacity[path->place] ? "fits" : "capacity not known";
}

static void print_verdict(const EngSizeResult *r, const EngLedger *ledger, EngStr *out)
{
    double step = r->step.step + r->step.added, slo = r->traffic->slo;
    eng_str_printf(out, "verdict %s through %s: %s, %s", r->traffic->name, r->path->name,
                   eng_size_fit(r->path, ledger),
                   eng_step_hidden(&r->step) ? "hidden" : "not hidden");
    if (slo)
        eng_str_printf(out, ", step of %.4g ms %s the mean of %.4g ms asked for%s", step * 1e3,
                       step <= slo ? "keeps" : "misses", slo * 1e3,
                       step > slo && r->step.step <= slo ? " (its layers alone keep it)" : "");
    if (r->has_fleet) {
        eng_str_printf(out, ", %d hosts, ", r->fleet.hosts);
        eng_size_print_usd(&r->bill, out);
    }
    eng_str_printf(out, "\n  rests on: %s\n  %s\n", r->path->values, r->path->standing);
}

static EngStatus print_training(const EngSize *s, EngStr *out, EngErr *err)
{
    const EngTrainingInput *in = &s->training.input;
    EngTraining t;
    EngAddress address;
    double balance, close, layer = 0;
    EngStatus status = eng_training_plan(in, &t, err);
    if (!status) status = eng_address_build(&s->preset.address, &address, err);
    if (status) return status;
    eng_str_printf(out,
                   "\n== training, groups of %d in %d ranks\n"
                   "a rank holds %.3g GiB of tables, %.3g GiB of optimizer state, %.3g GiB of rows "
                   "of its batch\n"
                   "a batch fetches %.3g GB (%.3g %% from other nodes) in %.4g ms, returns %.3g GB "
                   "in %.4g ms, exchanges %.3g GB between replicas in %.4g ms\n"
                   "vision encoder %.4g ms and backward %.4g ms hide all but %.4g ms\n",
                   in->group, in->ranks, t.table_bytes / GIB, t.state_bytes / GIB,
                   t.prefetch_buffer / GIB, t.fetch_bytes / 1e9, 100 * t.far_share, t.fetch * 1e3,
                   t.return_bytes / 1e9, t.give_back * 1e3, t.sync_bytes / 1e9, t.sync * 1e3,
                   in->vision * 1e3, in->backward * 1e3, t.exposed * 1e3);
    if (!s->model.n_weights) return ENG_OK;
    uint64_t weights;
    status = eng_model_bytes(&s->model, &weights, err);
    layer = (double)weights / s->n_layers;
    int side_by_side[ENG_MAX_LAYERS];
    for (int i = 0; i < address.n_layers; i++) side_by_side[i] = address.layer_ids[0] + i;
    double module = t.table_bytes * in->group / address.n_layers; /* whole, as layers are */
    if (!status)
        status = eng_stage_balance(s->n_layers, layer, address.layer_ids, address.n_layers, module,
                                   s->training.stages, &balance, err);
    if (!status)
        status = eng_stage_balance(s->n_layers, layer, side_by_side, address.n_layers, module,
                                   s->training.stages, &close, err);
    if (!status)
        eng_str_printf(out,
                       "%d pipeline stages, if as many ranks share a layer as a table: the fullest "
                       "holds %.3g of the mean with modules at their layers, %.3g with them side "
                       "by side\n",
                       s->training.stages, balance, close);
    return status;
}

EngStatus eng_size_print(const EngSize *s, EngStr *out, EngErr *err)
{
    EngStatus status = ENG_OK;
    eng_size_print_inputs(s, out);
    for (int p = 0; p < s->n_paths && !status; p++) {
        EngLedger ledger;
        status = print_place(s, &s->paths[p], out, err);
        if (!status) status = eng_size_ledger(s, &s->paths[p], &ledger, err);
        int hosts = 0, with_rate = 0;
        for (int t = 0; t < s->n_traffic && !status; t++) {
            EngSizeResult r;
            status = eng_size_result(s, &s->paths[p], &s->traffic[t], &r, err);
            if (status) break;
            eng_str_printf(out, "\n%s through %s\n", r.traffic->name, r.path->name);
            eng_step_print(&r.input, &r.step, out);
            print_sharding(s, r.traffic, out);
            if (r.has_fleet) eng_size_print_hosts(s, &r, out);
            print_verdict(&r, &ledger, out);
            hosts += r.has_fleet ? r.fleet.hosts : 0;
            with_rate += r.has_fleet;
        }
        if (!status && with_rate > 1)
            eng_str_printf(out, "all traffic through %s: %d hosts, each of one kind\n",
                           s->paths[p].name, hosts);
    }
    if (!status && s->training.given) status = print_training(s, out, err);
    return status ? status : eng_str_status(out, err);
}
