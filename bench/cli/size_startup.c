/* Start-up of a plan's tables; see size_parts.h. */
#include <math.h>
#include <string.h>

#include "bench/cli/size_parts.h"

/* Devices of a host read one file, of which each keeps its shards: how many of them read. NAN: of
 * several devices it is not known how many a host has. */
static double holders_of_host(const EngSize *s, const EngSizePath *path)
{
    if (path->place != ENG_PLACE_DEVICE || s->shards == 1) return 1;
    if (!s->host_devices) return NAN;
    return s->shards < s->host_devices ? s->shards : s->host_devices;
}

/* That the tables are read from: the first of these whose rate in order is known, or NULL. */
static const EngTier *drive_of(const EngSize *s)
{
    static const char *const drives[] = {"nvme", "file"};
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < s->machine.n_tiers; i++)
            if (!strcmp(s->machine.tiers[i].name, drives[d]) &&
                eng_tier_has(&s->machine.tiers[i], ENG_TIER_BANDWIDTH))
                return &s->machine.tiers[i];
    return NULL;
}

static EngStatus plan(const EngSize *s, const EngSizePath *path, const EngLedger *ledger,
                      EngStartup *startup, EngErr *err)
{
    double bytes = 0, read = 0, pinned = 0, holders = holders_of_host(s, path);
    const EngTier *drive = drive_of(s);
    double rate = drive ? drive->fields[ENG_TIER_BANDWIDTH].value : 0;
    for (int i = 0; i < ledger->n; i++) {
        const EngLedgerLine *line = &ledger->lines[i];
        if (line->layer < 0) continue;
        bool same = s->scales_everywhere && !strcmp(line->name, "table scales");
        bytes += (double)line->bytes;
        read += (double)line->bytes * (same ? 1 : holders);
        if (line->pinned) pinned += (double)line->bytes;
    }
    EngStartupInput in = {.bytes = bytes,
                          .copies = s->copies,
                          .read_rate = isnan(holders) ? 0 : rate * bytes / read,
                          .populate_rate = path->tiers[0]->fields[ENG_TIER_POPULATE_RATE].value,
                          .pin_rate = path->tiers[0]->fields[ENG_TIER_PIN_RATE].value,
                          .pinned = path->place == ENG_PLACE_HOST ? pinned : 0};
    return eng_startup_plan(&in, startup, err);
}

static void print_part(const char *name, double seconds, const char *tier, const char *ask,
                       EngStr *out)
{
    if (isnan(seconds))
        eng_str_printf(out, "%s not known (%s%s)", name, tier, ask);
    else
        eng_str_printf(out, "%s %.3g s", name, seconds);
}

EngStatus eng_size_print_startup(const EngSize *s, const EngSizePath *path, const EngLedger *ledger,
                                 EngStr *out, EngErr *err)
{
    EngStartup start;
    const EngTier *drive = drive_of(s);
    const char *tier = path->tiers[0]->name;
    if (path->place == ENG_PLACE_DRIVE) return ENG_OK; /* the tables lie there */
    EngStatus status = plan(s, path, ledger, &start, err);
    if (status) return status;
    eng_str_printf(out, "start-up: reading %s", drive ? drive->name : "");
    print_part(drive ? " in order" : "in order", start.read, "",
               isnan(holders_of_host(s, path)) ? "--host-devices, which read one drive"
                                               : "a tier nvme or file with a bandwidth",
               out);
    print_part(" beside populating", start.populate, tier, ".populate_rate", out);
    if (path->place == ENG_PLACE_HOST)
        print_part(", then pinning", start.pin, tier, ".pin_rate", out);
    if (isnan(start.total))
        eng_str_add(out, ", in all not known\n");
    else
        eng_str_printf(out, ", in all %.3g s\n", start.total);
    return ENG_OK;
}
