/* Machines to plan for: tiers (memories, links, drives, adapters) with capacities and rates, kept
 * as JSON in sim/machine/presets/ and compiled in, or read from a file of the same form.
 *
 * A field that no source gives is left out, not guessed; a plan that needs it is refused until the
 * user assumes a value. Every value names its unit, source, date and whether it is a specification
 * or a measurement; a file with one that does not is refused whole. Prices are ranges ("low" and
 * "high" instead of "value"): they move by more than a plan's other errors.
 */
#ifndef ENG_SIM_MACHINE_MACHINE_H
#define ENG_SIM_MACHINE_MACHINE_H

#include <stdbool.h>

#include "base/digest.h"
#include "sim/machine/quantity.h"

#define ENG_MAX_TIERS 8

typedef enum EngTierField {
    ENG_TIER_CAPACITY = 0,
    ENG_TIER_BANDWIDTH,        /* of large reads, per direction */
    ENG_TIER_EFFICIENCY,       /* share of it that random rows reach */
    ENG_TIER_LATENCY,          /* of one request when nothing else is under way */
    ENG_TIER_OUTSTANDING,      /* requests it can have under way */
    ENG_TIER_REQUEST_RATE,     /* messages of an adapter, operations of a drive */
    ENG_TIER_GRANULE,          /* a request reads aligned blocks of this size; none: any bytes */
    ENG_TIER_REQUEST_OVERHEAD, /* bytes a request costs besides */
    ENG_TIER_KNEE_EXPONENT,    /* s of the soft minimum (sim/planner/knee.h) */
    ENG_TIER_KNEE_OUTSTANDING, /* more requests than this make it slower */
    ENG_TIER_PIN_LIMIT,        /* bytes that can be pinned */
    ENG_TIER_NUMA_NODES,
    ENG_TIER_POPULATE_RATE, /* B/s at which a table is read in and its pages are touched */
    ENG_TIER_PIN_RATE,      /* B/s at which pages are pinned and registered with a device */
    ENG_TIER_RENT,          /* USD/h of a device with all that comes with it */
    ENG_TIER_DEVICE_PRICE,  /* USD of such a device, bought */
    ENG_TIER_UNIT_PRICE,    /* USD of an adapter or drive */
    ENG_TIER_BYTE_PRICE,    /* USD/GB of memory */
    ENG_TIER_POWER, /* W that a device draws with all that comes with it, a host for its memory, an
                       adapter or a drive */
    ENG_TIER_COPY_BANDWIDTH,   /* bytes read and written by a copy inside it */
    ENG_TIER_FETCH_SLOWDOWN,   /* share by which a gather beside a product is slower ... */
    ENG_TIER_COMPUTE_SLOWDOWN, /* ... and a product beside a gather */
    ENG_TIER_FLOPS,            /* of a product whose weights lie in it */
    ENG_TIER_MEASURED_BYTES, /* largest table its rates were measured with; larger: extrapolated */
    ENG_TIER_FIELD_COUNT
} EngTierField;

typedef struct EngTier {
    char name[24];
    EngQuantity fields[ENG_TIER_FIELD_COUNT]; /* origin ENG_UNKNOWN: not given */
} EngTier;

typedef struct EngMachineModel {
    char name[48], summary[200];
    int n_tiers;
    EngTier tiers[ENG_MAX_TIERS];
    char digest[ENG_KEY_HEX]; /* key of its canonical JSON, prose included: sources are data */
} EngMachineModel;

/* ENG_BAD_DATA names machine, tier and field: unknown keys, a value without unit, source, date or
 * origin, zero, negative or inconsistent rates. */
EngStatus eng_machine_parse(const char *name, const char *text, EngMachineModel *machine,
                            EngErr *err);
/* A preset's name, or the path of a file (with a '/' or ending in ".json"). Unknown: ENG_USAGE. */
EngStatus eng_machine_open(const char *name, EngMachineModel *machine, EngErr *err);
const char *const *eng_machine_names(void); /* NULL-terminated */

/* Unknown: ENG_USAGE, naming the tiers there are. */
EngStatus eng_machine_tier(const EngMachineModel *machine, const char *name, const EngTier **tier,
                           EngErr *err);
/* Sets "tier.field=value unit" as assumed; a tier the machine lacks is added. ENG_USAGE, also for a
 * value that was assumed before. */
EngStatus eng_machine_assume(EngMachineModel *machine, const char *text, EngErr *err);

static inline bool eng_tier_has(const EngTier *tier, EngTierField field)
{
    return tier->fields[field].origin != ENG_UNKNOWN;
}
/* ENG_UNSUPPORTED when the value is not known, saying what to assume. */
EngStatus eng_tier_need(const EngTier *tier, EngTierField field, double *value, EngErr *err);
const char *eng_tier_field_name(EngTierField field);
/* Where a tier of this name holds tables: "hbm" is a device's memory, "dram" and "cxl" a host's,
 * "nvme" and "file" drives. False: it is a link or an adapter, which holds none. */
typedef enum EngPlace {
    ENG_PLACE_DEVICE = 0,
    ENG_PLACE_HOST,
    ENG_PLACE_DRIVE,
    ENG_PLACE_COUNT
} EngPlace;
bool eng_tier_place(const EngTier *tier, EngPlace *place);
/* "nic" and "rdma": sends as many bytes as it is asked for, but only so many messages. */
bool eng_tier_is_adapter(const EngTier *tier);

/* What its value counts: "B", "B/s", "s", "/s", or "" for plain numbers. */
const char *eng_tier_field_unit(EngTierField field);

#endif
