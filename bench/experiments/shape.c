/* Resolving the common axes; see shape.h. */
#include "bench/experiments/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kernels/address/address.h"
#include "kernels/store/memory.h"

const char *const eng_words_hold[] = {"row_dims", "embed_dims", "total_bytes", NULL};
const char *const eng_words_row_format[] = {"fp8",        "bf16",       "f32",  "fp8_packed",
                                            "fp8_pad272", "fp8_pad288", "int4", NULL};
const char *const eng_words_pin[] = {"none", "compact", "scatter", NULL};
const char *const eng_words_cache[] = {"rotate", "warm", "cold", NULL};
const char *const eng_words_formula[] = {"copysign", "sign", "plain", NULL};
const EngTunableAxis eng_tunable_placement[] = {
    {"threads", ENG_TUNE_CORES}, {"pin", NULL}, {NULL, NULL}};

/* ---- axes that an experiment may lack ---- */

static const EngValue *find_value(const EngPoint *point, const char *axis)
{
    for (int i = 0; i < point->experiment->n_axes; i++)
        if (!strcmp(point->experiment->axes[i].name, axis)) return &point->values[i];
    return NULL;
}

static int64_t int_or(const EngPoint *point, const char *axis, int64_t otherwise)
{
    const EngValue *value = find_value(point, axis);
    return value ? value->i : otherwise;
}

/* ---- orders ---- */

EngStatus eng_orders_parse(const char *text, int *min_order, int *max_order, EngErr *err)
{
    char *end;
    long first = strtol(text, &end, 10), last = first;
    bool good = end != text && text[0] >= '0' && text[0] <= '9';
    if (good && *end == '-') {
        const char *second = end + 1;
        last = strtol(second, &end, 10);
        good = end != second && second[0] >= '0' && second[0] <= '9';
    }
    if (!good || *end) return ENG_FAIL(err, ENG_USAGE, "orders: \"%s\" is not like 2-4 or 3", text);
    if (first < 1 || last > ENG_MAX_ORDER || first > last)
        return ENG_FAIL(err, ENG_USAGE, "orders: \"%s\" must rise within 1 to %d", text,
                        ENG_MAX_ORDER);
    *min_order = (int)first;
    *max_order = (int)last;
    return ENG_OK;
}

static EngStatus resolve_orders(const EngPoint *point, EngShape *shape, EngErr *err)
{
    const EngAddressSpec *spec = &shape->preset.address;
    const EngValue *orders = find_value(point, "orders"), *order = find_value(point, "order");
    shape->min_order = spec->min_order;
    shape->max_order = spec->max_order;
    if (orders) return eng_orders_parse(orders->text, &shape->min_order, &shape->max_order, err);
    if (!order) return ENG_OK;
    if (order->i < 1 || order->i > ENG_MAX_ORDER)
        return ENG_FAIL(err, ENG_USAGE, "order: %" PRId64 " must be 1 to %d", order->i,
                        ENG_MAX_ORDER);
    if (order->i < shape->min_order) shape->min_order = (int)order->i;
    if (order->i > shape->max_order) shape->max_order = (int)order->i;
    return ENG_OK;
}

/* ---- hold ---- */

static int preset_columns(const EngPreset *preset)
{
    const EngAddressSpec *spec = &preset->address;
    return (spec->max_order - spec->min_order + 1) * spec->heads;
}

static size_t row_bytes_of(EngRowFormat format, int row_dims)
{
    return eng_row_stride_bytes(format, row_dims) + eng_row_scale_bytes(format, row_dims);
}

static EngStatus hold_embed_dims(EngShape *shape, EngErr *err)
{
    int64_t dims = (int64_t)shape->preset.address.heads * shape->row_dims;
    if (dims % shape->heads)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "K = %d does not divide the %" PRId64 " dims of an order (hold=embed_dims)",
                        shape->heads, dims);
    if (dims / shape->heads > INT32_MAX)
        return ENG_FAIL(err, ENG_USAGE, "row_dims: %" PRId64 " is too large", dims / shape->heads);
    shape->row_dims = (int)(dims / shape->heads);
    return ENG_OK;
}

static EngStatus hold_total_bytes(EngShape *shape, EngErr *err)
{
    size_t base, total;
    size_t one = row_bytes_of(shape->preset.row_format, shape->preset.row_dims);
    if (!eng_mul_size((size_t)preset_columns(&shape->preset), one, &base) ||
        !eng_mul_size(base, (size_t)shape->rows_per_head, &total))
        return ENG_FAIL(err, ENG_USAGE, "rows: %" PRId64 " rows per head overflow",
                        shape->rows_per_head);
    shape->rows_per_head = (int64_t)(total / ((size_t)shape->columns * shape->row_bytes));
    if (shape->rows_per_head < 2)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "hold=total_bytes leaves %" PRId64 " rows per head",
                        shape->rows_per_head);
    return ENG_OK;
}

/* ---- layer and addressing ---- */

static EngStatus resolve_layer(const EngPoint *point, EngShape *shape, EngErr *err)
{
    const EngAddressSpec *spec = &shape->preset.address;
    int64_t wanted = int_or(point, "layer", ENG_LAYER_FIRST);
    char list[ENG_MAX_LAYERS * 12] = "";
    size_t used = 0;
    shape->layer = spec->layer_ids[0];
    if (wanted == ENG_LAYER_FIRST) return ENG_OK;
    for (int i = 0; i < spec->n_layers; i++) {
        shape->layer = spec->layer_ids[i];
        if (shape->layer == wanted) return ENG_OK;
        int n = snprintf(list + used, sizeof list - used, "%s%d", i ? ", " : "", shape->layer);
        used += (size_t)n;
    }
    return ENG_FAIL(err, ENG_USAGE, "layer: %" PRId64 " is not a layer of preset %s (%s)", wanted,
                    shape->preset.name, list);
}

EngStatus eng_shape_layers(const EngShape *shape, int64_t vocab, EngAddress *address, EngErr *err)
{
    EngAddressSpec spec = shape->preset.address;
    spec.min_order = shape->min_order;
    spec.max_order = shape->max_order;
    spec.heads = shape->heads;
    spec.start = shape->rows_per_head;
    spec.vocab = vocab;
    return eng_address_build(&spec, address, err);
}

/* Primes are shared by all layers of a preset, so the whole preset is built and one layer kept. */
EngStatus eng_shape_address(const EngShape *shape, int64_t vocab, EngAddress *address, EngErr *err)
{
    EngStatus status = eng_shape_layers(shape, vocab, address, err);
    if (status) return status;
    int at = 0;
    while (address->layer_ids[at] != shape->layer) at++;
    address->n_layers = 1;
    address->layer_ids[0] = shape->layer;
    address->rows[0] = address->rows[at];
    memmove(address->multipliers[0], address->multipliers[at], sizeof address->multipliers[0]);
    memmove(address->primes[0], address->primes[at], sizeof address->primes[0]);
    memmove(address->offsets[0], address->offsets[at], sizeof address->offsets[0]);
    return ENG_OK;
}

static EngStatus resolve_sizes(const EngPoint *point, EngShape *shape, EngErr *err)
{
    const EngPreset *preset = &shape->preset;
    const EngValue *format = find_value(point, "row_format"), *hold = find_value(point, "hold");
    const char *held = hold ? hold->text : "row_dims";
    int64_t heads = int_or(point, "heads", preset->address.heads);
    int64_t row_dims = int_or(point, "row_dims", preset->row_dims);
    shape->rows_per_head = int_or(point, "rows", preset->address.start);
    if (heads < 1 || heads > ENG_MAX_HEADS)
        return ENG_FAIL(err, ENG_USAGE, "heads: %" PRId64 " must be 1 to %d", heads, ENG_MAX_HEADS);
    if (row_dims < 1 || row_dims > 65536)
        return ENG_FAIL(err, ENG_USAGE, "row_dims: %" PRId64 " must be 1 to 65536", row_dims);
    if (shape->rows_per_head < 2 || shape->rows_per_head > (int64_t)1 << 40)
        return ENG_FAIL(err, ENG_USAGE, "rows: %" PRId64 " rows per head must be 2 to 2^40",
                        shape->rows_per_head);
    shape->heads = (int)heads;
    shape->row_dims = (int)row_dims;
    shape->columns = (shape->max_order - shape->min_order + 1) * shape->heads;
    int parsed = format ? eng_row_format_parse(format->text) : (int)preset->row_format;
    if (parsed < 0) return ENG_FAIL(err, ENG_USAGE, "row_format: unknown \"%s\"", format->text);
    shape->row_format = (EngRowFormat)parsed;
    EngStatus status = ENG_OK;
    if (!strcmp(held, "embed_dims")) status = hold_embed_dims(shape, err);
    if (status) return status;
    if (eng_row_has_groups(shape->row_format) && shape->row_dims % ENG_SCALE_GROUP)
        return ENG_FAIL(
            err, ENG_UNSUPPORTED, "%s rows need row_dims in multiples of %d, not %d (hold=%s)",
            eng_row_format_name(shape->row_format), ENG_SCALE_GROUP, shape->row_dims, held);
    shape->row_bytes = row_bytes_of(shape->row_format, shape->row_dims);
    return strcmp(held, "total_bytes") ? ENG_OK : hold_total_bytes(shape, err);
}

EngStatus eng_shape_resolve(const EngPoint *point, EngShape *shape, EngErr *err)
{
    memset(shape, 0, sizeof *shape);
    EngStatus status = eng_preset_find(find_value(point, "preset")->text, &shape->preset, err);
    if (!status) status = resolve_layer(point, shape, err);
    if (!status) status = resolve_orders(point, shape, err);
    if (!status) status = resolve_sizes(point, shape, err);
    if (!status)
        status = eng_shape_address(shape, shape->preset.address.vocab, &shape->address, err);
    if (!status)
        status = eng_table_value_bytes(shape->row_format, shape->row_dims, shape->address.rows[0],
                                       &shape->table_value_bytes, err);
    if (status) return status;
    shape->tokens = int_or(point, "tokens", 1);
    if (shape->tokens < 1 || shape->tokens > ENG_MAX_POINT_TOKENS)
        return ENG_FAIL(err, ENG_USAGE, "tokens: %" PRId64 " must be 1 to %d", shape->tokens,
                        ENG_MAX_POINT_TOKENS);
    shape->threads = (int)int_or(point, "threads", 1);
    shape->streams = (int)int_or(point, "streams", shape->preset.streams);
    shape->hidden = (int)int_or(point, "hidden", shape->preset.hidden);
    shape->k = (int64_t)shape->columns * shape->row_dims;
    shape->n = (int64_t)(shape->streams + 1) * shape->hidden;
    return ENG_OK;
}

EngTable eng_shape_table(const EngShape *shape)
{
    return (EngTable){
        .format = shape->row_format, .row_dims = shape->row_dims, .rows = shape->address.rows[0]};
}

EngNeed eng_shape_need(const EngPoint *point, const EngShape *shape)
{
    return (EngNeed){.table = true,
                     .row_format = shape->row_format,
                     .row_dims = shape->row_dims,
                     .table_value_bytes = shape->table_value_bytes,
                     .corpus = eng_point_word(point, "corpus"),
                     .preset = eng_point_word(point, "preset"),
                     .max_tokens = shape->tokens};
}

/* ---- kernels ---- */

EngStatus eng_point_kernel(const EngPoint *point, EngOp op, const EngKernel **kernel, EngErr *err)
{
    const char *name = find_value(point, "variant")->text;
    *kernel = eng_kernel_find(op, name);
    if (*kernel) return ENG_OK;
    enum { MAX_NAMES = 64 };
    const char *names[MAX_NAMES];
    int n;
    const EngKernel *const *all = eng_kernels(op, &n);
    if (n > MAX_NAMES) n = MAX_NAMES;
    for (int i = 0; i < n; i++) names[i] = all[i]->name;
    const char *near = eng_nearest(name, names, (size_t)n);
    return ENG_FAIL(err, ENG_USAGE, "variant: %s has no kernel \"%s\"%s%s%s", eng_op_name(op), name,
                    near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

EngStatus eng_point_settings(const EngPoint *point, const EngKernel *kernel, EngProblem *problem,
                             EngErr *err)
{
    return eng_kernel_settings(kernel, find_value(point, "variant")->text, problem->tuned, err);
}

const char *eng_point_who(const EngPoint *point, char who[ENG_WHO_BYTES])
{
    snprintf(who, ENG_WHO_BYTES, "%s %d", find_value(point, "variant")->text,
             (int)int_or(point, "threads", 1));
    return who;
}

EngStatus eng_kernel_supports(const EngKernel *kernel, const EngProblem *problem, EngErr *err)
{
    return kernel->supports ? kernel->supports(problem, err) : ENG_OK;
}

double eng_shape_product_ns(const EngPoint *point)
{
    const double flops_per_ns = 60; /* one core of 2024, many tokens */
    const double bytes_per_ns = 4;  /* what few tokens pay for reading the weights */
    EngShape shape;
    if (eng_shape_resolve(point, &shape, NULL)) return 0;
    double weights = (double)shape.n * (double)shape.k;
    return (weights / bytes_per_ns + 2 * weights * (double)shape.tokens / flops_per_ns) /
           shape.threads;
}
