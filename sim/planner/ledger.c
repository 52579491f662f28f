/* Byte ledger; see ledger.h. */
#include "sim/planner/ledger.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define GIB 0x1p30
/* For "%.*f". */
#define GB_OF(bytes)  eng_decimals((bytes) / 1e9, 3), (bytes) / 1e9
#define GIB_OF(bytes) eng_decimals((bytes) / GIB, 2), (bytes) / GIB
#define ID_BYTES      8 /* of a row number in the index buffer */
#define VALUE_BYTES   2 /* of a decoded value, bf16 */

static EngStatus too_large(const char *name, EngErr *err)
{
    return ENG_FAIL(err, ENG_UNSUPPORTED, "ledger: the bytes of %s do not fit 64 bits", name);
}

/* product of n factors, in bytes. */
static EngStatus multiply(const char *name, const uint64_t *factors, int n, uint64_t *product,
                          EngErr *err)
{
    *product = 1;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(*product, factors[i], product)) return too_large(name, err);
    return *product > INT64_MAX ? too_large(name, err) : ENG_OK;
}

static EngStatus add_line(EngLedger *ledger, const EngLedgerLine *line, EngErr *err)
{
    bool moved = ledger->unified && line->place == ENG_PLACE_DEVICE;
    EngPlace place = moved ? ENG_PLACE_HOST : line->place;
    uint64_t *total = &ledger->total[place];
    if (ledger->n == ENG_LEDGER_MAX_LINES)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "ledger: more than %d lines", ENG_LEDGER_MAX_LINES);
    for (int i = 0; i < ledger->n; i++)
        if (ledger->lines[i].layer == line->layer && ledger->lines[i].place == place &&
            !strcmp(ledger->lines[i].name, line->name))
            return ENG_FAIL(err, ENG_USAGE,
                            "reserve=%s: two things of one place would have this name; give the "
                            "reserve another",
                            line->name);
    if (__builtin_add_overflow(*total, line->bytes, total) || *total > INT64_MAX)
        return too_large(line->name, err);
    if (line->pinned) ledger->pinned += line->bytes;
    ledger->lines[ledger->n] = *line;
    ledger->lines[ledger->n++].place = place;
    return ENG_OK;
}

static EngStatus add(EngLedger *ledger, const char *name, int layer, EngPlace place, bool pinned,
                     const uint64_t *factors, int n, EngErr *err)
{
    EngLedgerLine line = {.layer = layer, .place = place, .pinned = pinned};
    snprintf(line.name, sizeof line.name, "%s", name);
    EngStatus status = multiply(name, factors, n, &line.bytes, err);
    return status ? status : add_line(ledger, &line, err);
}

static EngStatus check(const EngLedgerInput *in, EngErr *err)
{
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {{"shards", in->shards},
                  {"numa_copies", in->numa_copies},
                  {"replicas", in->replicas},
                  {"batch_tokens", in->batch_tokens},
                  {"staging_buffers", in->staging_buffers}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value < 1)
            return ENG_FAIL(err, ENG_USAGE, "ledger: %s is %" PRId64 ", at least 1 is needed",
                            counts[i].name, counts[i].value);
    if (in->kv_tokens < 0 || in->kv_streams < 0)
        return ENG_FAIL(err, ENG_USAGE, "ledger: kv_tokens is %" PRId64 ", kv_streams %" PRId64,
                        in->kv_tokens, in->kv_streams);
    if (in->tables != ENG_PLACE_HOST && in->numa_copies > 1)
        return ENG_FAIL(err, ENG_USAGE, "ledger: %d NUMA copies of tables that are not on hosts",
                        in->numa_copies);
    if (eng_row_has_groups(in->format) && in->preset->row_dims % ENG_SCALE_GROUP)
        return ENG_FAIL(err, ENG_USAGE, "ledger: %s rows of %d dims, multiples of %d are possible",
                        eng_row_format_name(in->format), in->preset->row_dims, ENG_SCALE_GROUP);
    return ENG_OK;
}

static EngStatus add_tables(const EngLedgerInput *in, const EngAddress *address, EngLedger *ledger,
                            EngErr *err)
{
    bool pinned = in->tables == ENG_PLACE_HOST && in->pinned;
    uint64_t copies = (uint64_t)in->numa_copies * (uint64_t)in->replicas;
    uint64_t value = eng_row_stride_bytes(in->format, in->preset->row_dims);
    uint64_t scale = eng_row_scale_bytes(in->format, in->preset->row_dims);
    for (int l = 0; l < address->n_layers; l++) {
        uint64_t rows = (uint64_t)address->rows[l], shards = (uint64_t)in->shards;
        if (shards > rows)
            return ENG_FAIL(err, ENG_USAGE, "shards=%d: a table has %" PRIu64 " rows", in->shards,
                            rows);
        uint64_t held = (rows + shards - 1) / shards;
        uint64_t scales = in->scales_everywhere || in->scales_apart ? rows : held;
        uint64_t all[] = {rows, value + scale}, bytes;
        EngStatus status = multiply("table", all, 2, &bytes, err);
        if (!status)
            status = add(ledger, "table values", address->layer_ids[l], in->tables, pinned,
                         (const uint64_t[]){held, value, copies}, 3, err);
        if (!status && scale)
            status = add(ledger, "table scales", address->layer_ids[l],
                         in->scales_apart ? in->scales : in->tables,
                         in->scales_apart ? in->scales == ENG_PLACE_HOST : pinned,
                         (const uint64_t[]){scales, scale, in->scales_apart ? 1 : copies}, 3, err);
        if (status) return status;
        ledger->table_bytes += bytes;
    }
    return ENG_OK;
}

/* Raw rows on their way (pinned, unless they never leave the device), decoded rows and row numbers.
 */
static EngStatus add_staging(const EngLedgerInput *in, const EngAddress *address, EngLedger *ledger,
                             EngErr *err)
{
    uint64_t rows = (uint64_t)address->n_columns, tokens = (uint64_t)in->batch_tokens;
    uint64_t dims = (uint64_t)in->preset->row_dims, replicas = (uint64_t)in->replicas;
    uint64_t raw = eng_row_value_bytes(in->format, in->preset->row_dims) +
                   eng_row_scale_bytes(in->format, in->preset->row_dims);
    EngPlace sender = in->tables == ENG_PLACE_DEVICE ? ENG_PLACE_DEVICE : ENG_PLACE_HOST;
    EngStatus status =
        add(ledger, "staging of raw rows", -1, sender, sender == ENG_PLACE_HOST,
            (const uint64_t[]){(uint64_t)in->staging_buffers, tokens, rows, raw, replicas}, 5, err);
    if (!status)
        status = add(ledger, "decoded rows", -1, ENG_PLACE_DEVICE, false,
                     (const uint64_t[]){tokens, rows, dims, VALUE_BYTES}, 4, err);
    if (!status)
        status = add(ledger, "row numbers", -1, ENG_PLACE_DEVICE, false,
                     (const uint64_t[]){tokens, rows, ID_BYTES}, 3, err);
    return status;
}

EngStatus eng_tensor_bytes(const EngTensorShape *shape, uint64_t *bytes, EngErr *err)
{
    uint64_t factors[6] = {(uint64_t)shape->bits, shape->count ? (uint64_t)shape->count : 1}, bits;
    bool wrong = shape->bits < 1 || shape->bits > 64 || shape->count < 0 || shape->split < 0 ||
                 shape->n_dims < 1 || shape->n_dims > 4 || shape->every < 0 || shape->window < 0;
    for (int i = 0; !wrong && i < shape->n_dims; i++) {
        wrong = shape->dims[i] < 1;
        factors[2 + i] = (uint64_t)shape->dims[i];
    }
    if (wrong) return ENG_FAIL(err, ENG_USAGE, "ledger: tensor %s has no shape", shape->name);
    if (shape->split > 1) factors[2] = (factors[2] - 1) / (uint64_t)shape->split + 1;
    EngStatus status = multiply(shape->name, factors, 2 + shape->n_dims, &bits, err);
    *bytes = (bits + 7) / 8;
    return status;
}

static EngStatus add_tensors(const EngLedgerInput *in, EngLedger *ledger, EngErr *err)
{
    uint64_t bytes;
    for (int i = 0; i < in->n_weights; i++) {
        EngStatus status = eng_tensor_bytes(&in->weights[i], &bytes, err);
        if (!status)
            status = add(ledger, in->weights[i].name, -1, ENG_PLACE_DEVICE, false, &bytes, 1, err);
        if (status) return status;
    }
    for (int i = 0; i < in->n_kv; i++) {
        const EngTensorShape *kv = &in->kv[i];
        char name[64];
        snprintf(name, sizeof name, "cache of %s", kv->name);
        EngStatus status = eng_tensor_bytes(kv, &bytes, err);
        if (status) return status;
        uint64_t every = kv->every ? (uint64_t)kv->every : 1, window = (uint64_t)kv->window;
        uint64_t entries = window ? window : ((uint64_t)in->kv_tokens + every - 1) / every;
        if (!window) ledger->kv_per_token += (double)bytes / (double)every;
        status =
            add(ledger, name, -1, ENG_PLACE_DEVICE, false,
                (const uint64_t[]){bytes, entries, window ? (uint64_t)in->kv_streams : 1}, 3, err);
        if (status) return status;
    }
    for (int i = 0; i < in->n_reserves; i++) {
        EngStatus status = add_line(ledger, &in->reserves[i], err);
        if (status) return status;
    }
    return ENG_OK;
}

EngStatus eng_ledger_build(const EngLedgerInput *in, EngLedger *ledger, EngErr *err)
{
    EngAddress address;
    *ledger = (EngLedger){.pin_limit = in->pin_limit, .unified = in->unified};
    memcpy(ledger->capacity, in->capacity, sizeof ledger->capacity);
    EngStatus status = check(in, err);
    if (!status) status = eng_address_build(&in->preset->address, &address, err);
    if (!status) status = add_tables(in, &address, ledger, err);
    if (!status) status = add_staging(in, &address, ledger, err);
    if (!status) status = add_tensors(in, ledger, err);
    return status;
}

int64_t eng_ledger_left(const EngLedger *ledger, EngPlace place)
{
    return (int64_t)ledger->capacity[place] - (int64_t)ledger->total[place];
}

static bool over_pin_limit(const EngLedger *ledger)
{
    return ledger->pin_limit && ledger->pinned > ledger->pin_limit;
}

static bool over_capacity(const EngLedger *ledger, int place)
{
    return ledger->capacity[place] && eng_ledger_left(ledger, (EngPlace)place) < 0;
}

bool eng_ledger_fits(const EngLedger *ledger)
{
    for (int p = 0; p < ENG_PLACE_COUNT; p++)
        if (over_capacity(ledger, p)) return false;
    return !over_pin_limit(ledger);
}

/* ---- text --------------------------------------------------------------------------------------
 */

static const char *const g_places[ENG_PLACE_COUNT] = {"device", "host", "drive"};

void eng_ledger_over(const EngLedger *ledger, EngStr *out)
{
    const char *comma = "";
    for (int p = 0; p < ENG_PLACE_COUNT; p++) {
        if (!over_capacity(ledger, p)) continue;
        eng_str_printf(out, "%s%s", comma, g_places[p]);
        comma = ", ";
    }
    if (over_pin_limit(ledger)) eng_str_printf(out, "%spinned", comma);
}

static void print_largest(const EngLedger *ledger, int place, EngStr *out)
{
    const EngLedgerLine *largest = NULL;
    for (int i = 0; i < ledger->n; i++)
        if ((int)ledger->lines[i].place == place &&
            (!largest || ledger->lines[i].bytes > largest->bytes))
            largest = &ledger->lines[i];
    if (largest)
        eng_str_printf(out, "; its largest line is %s, %.*f GiB", largest->name,
                       GIB_OF((double)largest->bytes));
}

void eng_ledger_print(const EngLedger *ledger, EngStr *out)
{
    for (int p = 0; p < ENG_PLACE_COUNT; p++) {
        if (!ledger->total[p]) continue;
        for (int i = 0; i < ledger->n; i++) {
            const EngLedgerLine *line = &ledger->lines[i];
            char layer[24] = "";
            if ((int)line->place != p) continue;
            if (line->layer >= 0) snprintf(layer, sizeof layer, " (layer %d)", line->layer);
            eng_str_printf(out, "%-7s %12.*f GB %10.*f GiB  %s%s%s\n", g_places[p],
                           GB_OF((double)line->bytes), GIB_OF((double)line->bytes), line->name,
                           layer, line->pinned ? ", pinned" : "");
        }
        eng_str_printf(out, "%-7s %12.*f GB %10.*f GiB  in all\n", g_places[p],
                       GB_OF((double)ledger->total[p]), GIB_OF((double)ledger->total[p]));
    }
    for (int p = 0; p < ENG_PLACE_COUNT; p++) {
        if (!ledger->capacity[p] || !ledger->total[p]) continue;
        int64_t left = eng_ledger_left(ledger, (EngPlace)p);
        eng_str_printf(out, "%s: %.*f GiB of %.*f GiB, %s by %.*f GiB", g_places[p],
                       GIB_OF((double)ledger->total[p]), GIB_OF((double)ledger->capacity[p]),
                       left < 0 ? "does not fit" : "fits",
                       GIB_OF((double)(left < 0 ? -left : left)));
        if (left < 0)
            print_largest(ledger, p, out);
        else if (p == (ledger->unified ? ENG_PLACE_HOST : ENG_PLACE_DEVICE) && ledger->kv_per_token)
            eng_str_printf(out, ", room for %.0f more tokens of context, of %g B each",
                           floor((double)left / ledger->kv_per_token), ledger->kv_per_token);
        eng_str_add(out, "\n");
    }
    if (over_pin_limit(ledger))
        eng_str_printf(out, "host: %.*f GiB are to be pinned, %.*f GiB can be\n",
                       GIB_OF((double)ledger->pinned), GIB_OF((double)ledger->pin_limit));
}
