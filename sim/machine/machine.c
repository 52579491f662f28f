/* Machine descriptions; see machine.h. */
#include "sim/machine/machine.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "sim/machine/json.h"

extern const EngEmbedded eng_embedded_machines[];

#define MAX_MACHINES 64
#define MOST_WHOLE   (1 << 24) /* of granules (16 MiB), requests, nodes */

static const struct {
    const char *name;
    EngDimension dimension;
    const char *example;
} g_fields[ENG_TIER_FIELD_COUNT] = {
    [ENG_TIER_CAPACITY] = {"capacity", ENG_DIM_BYTES, "141GB"},
    [ENG_TIER_BANDWIDTH] = {"bandwidth", ENG_DIM_BYTES_PER_S, "64GB/s"},
    [ENG_TIER_EFFICIENCY] = {"efficiency", ENG_DIM_SHARE, "50%"},
    [ENG_TIER_LATENCY] = {"latency", ENG_DIM_SECONDS, "1.5us"},
    [ENG_TIER_OUTSTANDING] = {"outstanding", ENG_DIM_REQUESTS, "256 requests"},
    [ENG_TIER_REQUEST_RATE] = {"request_rate", ENG_DIM_PER_S, "2.5M/s"},
    [ENG_TIER_GRANULE] = {"granule", ENG_DIM_BYTES, "128B"},
    [ENG_TIER_REQUEST_OVERHEAD] = {"request_overhead", ENG_DIM_BYTES, "24B"},
    [ENG_TIER_KNEE_EXPONENT] = {"knee_exponent", ENG_DIM_NUMBER, "2"},
    [ENG_TIER_KNEE_OUTSTANDING] = {"knee_outstanding", ENG_DIM_REQUESTS, "48 requests"},
    [ENG_TIER_PIN_LIMIT] = {"pin_limit", ENG_DIM_BYTES, "300GB"},
    [ENG_TIER_NUMA_NODES] = {"numa_nodes", ENG_DIM_NODES, "2 nodes"},
    [ENG_TIER_POPULATE_RATE] = {"populate_rate", ENG_DIM_BYTES_PER_S, "2GB/s"},
    [ENG_TIER_PIN_RATE] = {"pin_rate", ENG_DIM_BYTES_PER_S, "4GB/s"},
    [ENG_TIER_RENT] = {"rent", ENG_DIM_USD_PER_H, "3USD/h"},
    [ENG_TIER_DEVICE_PRICE] = {"device_price", ENG_DIM_USD, "3999USD"},
    [ENG_TIER_UNIT_PRICE] = {"unit_price", ENG_DIM_USD, "1500USD"},
    [ENG_TIER_BYTE_PRICE] = {"byte_price", ENG_DIM_USD_PER_GB, "11USD/GB"},
    [ENG_TIER_POWER] = {"power", ENG_DIM_WATTS, "700W"},
    [ENG_TIER_COPY_BANDWIDTH] = {"copy_bandwidth", ENG_DIM_BYTES_PER_S, "40GB/s"},
    [ENG_TIER_FETCH_SLOWDOWN] = {"fetch_slowdown", ENG_DIM_SHARE, "10%"},
    [ENG_TIER_COMPUTE_SLOWDOWN] = {"compute_slowdown", ENG_DIM_SHARE, "10%"},
    [ENG_TIER_FLOPS] = {"flops", ENG_DIM_FLOPS, "900GFLOP/s"},
    [ENG_TIER_MEASURED_BYTES] = {"measured_bytes", ENG_DIM_BYTES, "2GiB"},
};

const char *eng_tier_field_name(EngTierField field)
{
    return (unsigned)field < ENG_TIER_FIELD_COUNT ? g_fields[field].name : NULL;
}

const char *eng_tier_field_unit(EngTierField field)
{
    return (unsigned)field < ENG_TIER_FIELD_COUNT ? eng_dimension_unit(g_fields[field].dimension)
                                                  : "";
}

bool eng_tier_place(const EngTier *tier, EngPlace *place)
{
    static const struct {
        const char *name;
        EngPlace place;
    } places[] = {{"hbm", ENG_PLACE_DEVICE},
                  {"dram", ENG_PLACE_HOST},
                  {"cxl", ENG_PLACE_HOST},
                  {"nvme", ENG_PLACE_DRIVE},
                  {"file", ENG_PLACE_DRIVE}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!strcmp(places[i].name, tier->name)) {
            *place = places[i].place;
            return true;
        }
    return false;
}

bool eng_tier_is_adapter(const EngTier *tier)
{
    return !strcmp(tier->name, "nic") || !strcmp(tier->name, "rdma");
}

static int field_of(const char *name)
{
    for (int f = 0; f < ENG_TIER_FIELD_COUNT; f++)
        if (!strcmp(g_fields[f].name, name)) return f;
    return -1;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

typedef struct Reader {
    const char *machine, *tier, *field;
    EngErr *err;
} Reader;

#define WRONG(reader, ...) wrong(reader, ENG_FAIL((reader)->err, ENG_BAD_DATA, __VA_ARGS__))

/* Says where, of an error that has been set. */
static EngStatus wrong(const Reader *reader, EngStatus status)
{
    if (!status) return ENG_OK;
    if (reader->err) reader->err->status = status; /* units are a usage error only in options */
    if (reader->field)
        eng_err_prefix(reader->err, "machine %s: %s.%s", reader->machine, reader->tier,
                       reader->field);
    else if (reader->tier)
        eng_err_prefix(reader->err, "machine %s: %s", reader->machine, reader->tier);
    else
        eng_err_prefix(reader->err, "machine %s", reader->machine);
    return status;
}

static bool is_price(EngDimension dimension)
{
    return dimension == ENG_DIM_USD || dimension == ENG_DIM_USD_PER_H ||
           dimension == ENG_DIM_USD_PER_GB;
}

/* "value", or of a price "low" and "high". */
static EngStatus read_number(const Reader *reader, const json_t *object, EngDimension dimension,
                             const char *unit, EngQuantity *quantity)
{
    bool range = is_price(dimension);
    const json_t *low = json_object_get(object, range ? "low" : "value");
    const json_t *high = json_object_get(object, range ? "high" : "value");
    if (!json_is_number(low) || !json_is_number(high))
        return WRONG(reader, "%s", range ? "is a price: needs low and high" : "has no value");
    if (eng_quantity_of(json_number_value(low), unit, dimension, &quantity->low, reader->err) ||
        eng_quantity_of(json_number_value(high), unit, dimension, &quantity->high, reader->err))
        return wrong(reader, ENG_BAD_DATA);
    quantity->value = (quantity->low + quantity->high) / 2;
    if (quantity->low > quantity->high) return WRONG(reader, "low is above high");
    return ENG_OK;
}

/* {"value", "unit", "kind": "spec" | "measured", "date", "source"}, and nothing else. */
static EngStatus read_quantity(const Reader *reader, const json_t *object, EngDimension dimension,
                               EngQuantity *quantity)
{
    char unit[16];
    EngStatus status = eng_json_text(object, "unit", unit, sizeof unit, reader->err);
    if (!status) status = eng_json_origin(object, quantity, reader->err);
    if (status) return wrong(reader, status);
    status = read_number(reader, object, dimension, unit, quantity);
    if (status) return status;
    if (json_object_size(object) != (is_price(dimension) ? 6 : 5))
        return WRONG(reader, "has other keys than value, unit, kind, date and source");
    return ENG_OK;
}

static double known(const EngTier *tier, EngTierField field, double otherwise)
{
    return eng_tier_has(tier, field) ? tier->fields[field].value : otherwise;
}

/* What one tier's values must not say of each other. */
static EngStatus check_tier(const Reader *reader, const EngTier *tier)
{
    double bandwidth = known(tier, ENG_TIER_BANDWIDTH, INFINITY);
    double moved = known(tier, ENG_TIER_REQUEST_RATE, 0) * known(tier, ENG_TIER_GRANULE, 0);
    if (moved > 1.1 * bandwidth)
        return WRONG(reader, "request_rate blocks of granule are %.3g GB/s, its bandwidth is %.3g",
                     moved / 1e9, bandwidth / 1e9);
    if (known(tier, ENG_TIER_EFFICIENCY, 1) > 1) return WRONG(reader, "efficiency is above 1");
    if (known(tier, ENG_TIER_PIN_LIMIT, 0) > known(tier, ENG_TIER_CAPACITY, INFINITY))
        return WRONG(reader, "pin_limit is above capacity");
    static const EngTierField whole[] = {ENG_TIER_NUMA_NODES, ENG_TIER_GRANULE,
                                         ENG_TIER_OUTSTANDING, ENG_TIER_KNEE_OUTSTANDING};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        double value = known(tier, whole[i], 1);
        if (value != floor(value) || value > MOST_WHOLE)
            return WRONG(reader, "%s is %g, not a whole number up to %g", g_fields[whole[i]].name,
                         value, (double)MOST_WHOLE);
    }
    return ENG_OK;
}

static EngStatus read_tier(Reader *reader, const json_t *object, EngTier *tier)
{
    const char *key;
    json_t *value;
    if (!json_object_size(object)) return WRONG(reader, "has no fields");
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        int f = field_of(key);
        if (f < 0) return WRONG(reader, "unknown key %s", key);
        reader->field = key;
        EngStatus status = read_quantity(reader, value, g_fields[f].dimension, &tier->fields[f]);
        if (status) return status;
        reader->field = NULL;
    }
    return check_tier(reader, tier);
}

static EngStatus read_machine(Reader *reader, const json_t *root, EngMachineModel *machine)
{
    const char *key;
    json_t *value, *tiers = json_object_get(root, "tiers");
    EngStatus status = wrong(reader, eng_json_text(root, "summary", machine->summary,
                                                   sizeof machine->summary, reader->err));
    if (status) return status;
    if (json_object_size(root) != 2 || !json_object_size(tiers))
        return WRONG(reader, "is not a summary and tiers");
    json_object_foreach(tiers, key, value)
    {
        reader->tier = key;
        if (machine->n_tiers == ENG_MAX_TIERS)
            return WRONG(reader, "more than %d tiers", ENG_MAX_TIERS);
        EngTier *tier = &machine->tiers[machine->n_tiers++];
        if (strlen(key) >= sizeof tier->name || strchr(key, '.'))
            return WRONG(reader, "is no name of a tier");
        memcpy(tier->name, key, strlen(key) + 1);
        status = read_tier(reader, value, tier);
        if (status) return status;
    }
    return ENG_OK;
}

EngStatus eng_machine_parse(const char *name, const char *text, EngMachineModel *machine,
                            EngErr *err)
{
    json_error_t where;
    *machine = (EngMachineModel){0};
    snprintf(machine->name, sizeof machine->name, "%s", name);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    Reader reader = {.machine = name, .err = err};
    EngStatus status = json_is_object(root)
                           ? read_machine(&reader, root, machine)
                           : ENG_FAIL(err, ENG_BAD_DATA, "machine %s: line %d: %s", name,
                                      where.line, root ? "not an object" : where.text);
    if (!status) {
        char *canonical = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
        status = canonical ? eng_key_of(canonical, machine->digest, err)
                           : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for machine %s", name);
        free(canonical);
    }
    json_decref(root);
    return status;
}

/* ---- finding -----------------------------------------------------------------------------------
 */

static char g_name_text[MAX_MACHINES][48];
static const char *g_names[MAX_MACHINES + 1];
static size_t g_n_names;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static void collect_names(void)
{
    for (; eng_embedded_machines[g_n_names].name && g_n_names < MAX_MACHINES; g_n_names++) {
        const char *file = eng_embedded_machines[g_n_names].name;
        snprintf(g_name_text[g_n_names], sizeof *g_name_text, "%.*s", (int)strcspn(file, "."),
                 file);
        g_names[g_n_names] = g_name_text[g_n_names];
    }
}

const char *const *eng_machine_names(void)
{
    pthread_once(&g_once, collect_names);
    return g_names;
}

static EngStatus open_file(const char *path, EngMachineModel *machine, EngErr *err)
{
    char *text;
    size_t n;
    EngStatus status = eng_file_read(path, &text, &n, err);
    if (status) return status;
    const char *base = strrchr(path, '/');
    status = eng_machine_parse(base ? base + 1 : path, text, machine, err);
    eng_free(text);
    return status;
}

EngStatus eng_machine_open(const char *name, EngMachineModel *machine, EngErr *err)
{
    const char *const *names = eng_machine_names();
    size_t n = strlen(name);
    if (strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json")))
        return open_file(name, machine, err);
    for (size_t i = 0; i < g_n_names; i++)
        if (!strcmp(names[i], name))
            return eng_machine_parse(name, eng_embedded_machines[i].text, machine, err);
    const char *near = eng_nearest(name, names, g_n_names);
    return ENG_FAIL(err, ENG_USAGE, "no machine preset is called \"%s\"%s%s%s", name,
                    near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

EngStatus eng_machine_tier(const EngMachineModel *machine, const char *name, const EngTier **tier,
                           EngErr *err)
{
    EngStr there = {0};
    for (int i = 0; i < machine->n_tiers; i++) {
        *tier = &machine->tiers[i];
        if (!strcmp(machine->tiers[i].name, name)) {
            eng_str_free(&there);
            return ENG_OK;
        }
        eng_str_printf(&there, " %s", machine->tiers[i].name);
    }
    EngStatus status = ENG_FAIL(err, ENG_USAGE, "machine %s has no tier \"%s\", it has:%s",
                                machine->name, name, there.text ? there.text : " none");
    eng_str_free(&there);
    return status;
}

EngStatus eng_tier_need(const EngTier *tier, EngTierField field, double *value, EngErr *err)
{
    *value = tier->fields[field].value;
    if (eng_tier_has(tier, field)) return ENG_OK;
    return ENG_FAIL(err, ENG_UNSUPPORTED,
                    "no source gives the %s of tier %s; assume one, such as --assume=%s.%s=%s",
                    g_fields[field].name, tier->name, tier->name, g_fields[field].name,
                    g_fields[field].example);
}

EngStatus eng_machine_assume(EngMachineModel *machine, const char *text, EngErr *err)
{
    char tier_name[24], field_name[32];
    int n = 0;
    if (sscanf(text, "%23[^.=].%31[^=]=%n", tier_name, field_name, &n) != 2 || !n)
        return ENG_FAIL(err, ENG_USAGE, "\"%s\": not tier.field=value", text);
    int f = field_of(field_name);
    if (f < 0)
        return ENG_FAIL(err, ENG_USAGE, "\"%s\": a tier has no field \"%s\"", text, field_name);
    double value;
    EngStatus status = eng_quantity_parse(text + n, g_fields[f].dimension, &value, err);
    if (status) return eng_err_prefix(err, "\"%s\"", text), status;
    int t = 0;
    while (t < machine->n_tiers && strcmp(machine->tiers[t].name, tier_name)) t++;
    if (t == ENG_MAX_TIERS)
        return ENG_FAIL(err, ENG_USAGE, "\"%s\": more than %d tiers", text, ENG_MAX_TIERS);
    EngTier *tier = &machine->tiers[t];
    if (t == machine->n_tiers) {
        machine->n_tiers++;
        memcpy(tier->name, tier_name, sizeof tier->name);
    }
    if (tier->fields[f].origin == ENG_ASSUMED)
        return ENG_FAIL(err, ENG_USAGE, "\"%s\": %s.%s is assumed already", text, tier_name,
                        field_name);
    tier->fields[f] = (EngQuantity){
        .value = value, .low = value, .high = value, .origin = ENG_ASSUMED, .source = "the plan"};
    Reader reader = {.machine = machine->name, .tier = tier->name, .err = err};
    if (!check_tier(&reader, tier)) return ENG_OK;
    if (err) err->status = ENG_USAGE;
    return ENG_USAGE;
}
