/* Units; see quantity.h. */
#include "sim/machine/quantity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *unit;
    EngDimension dimension;
    double factor;
} g_units[] = {
    {"B", ENG_DIM_BYTES, 1},
    {"kB", ENG_DIM_BYTES, 1e3},
    {"MB", ENG_DIM_BYTES, 1e6},
    {"GB", ENG_DIM_BYTES, 1e9},
    {"TB", ENG_DIM_BYTES, 1e12},
    {"KiB", ENG_DIM_BYTES, 0x1p10},
    {"MiB", ENG_DIM_BYTES, 0x1p20},
    {"GiB", ENG_DIM_BYTES, 0x1p30},
    {"TiB", ENG_DIM_BYTES, 0x1p40},
    {"MB/s", ENG_DIM_BYTES_PER_S, 1e6},
    {"GB/s", ENG_DIM_BYTES_PER_S, 1e9},
    {"TB/s", ENG_DIM_BYTES_PER_S, 1e12},
    {"MiB/s", ENG_DIM_BYTES_PER_S, 0x1p20},
    {"GiB/s", ENG_DIM_BYTES_PER_S, 0x1p30},
    {"ns", ENG_DIM_SECONDS, 1e-9},
    {"us", ENG_DIM_SECONDS, 1e-6},
    {"ms", ENG_DIM_SECONDS, 1e-3},
    {"s", ENG_DIM_SECONDS, 1},
    {"/s", ENG_DIM_PER_S, 1},
    {"k/s", ENG_DIM_PER_S, 1e3},
    {"M/s", ENG_DIM_PER_S, 1e6},
    {"G/s", ENG_DIM_PER_S, 1e9},
    {"1", ENG_DIM_COUNT, 1},
    {"requests", ENG_DIM_REQUESTS, 1},
    {"1", ENG_DIM_REQUESTS, 1},
    {"nodes", ENG_DIM_NODES, 1},
    {"1", ENG_DIM_NODES, 1},
    {"1", ENG_DIM_NUMBER, 1},
    {"%", ENG_DIM_SHARE, 0.01},
    {"1", ENG_DIM_SHARE, 1},
    {"USD", ENG_DIM_USD, 1},
    {"USD/h", ENG_DIM_USD_PER_H, 1},
    {"USD/GB", ENG_DIM_USD_PER_GB, 1e-9},
    {"GFLOP/s", ENG_DIM_FLOPS, 1e9},
    {"TFLOP/s", ENG_DIM_FLOPS, 1e12},
    {"W", ENG_DIM_WATTS, 1},
    {"kW", ENG_DIM_WATTS, 1e3},
    {"USD/kWh", ENG_DIM_USD_PER_KWH, 1},
};

#define N_UNITS (sizeof g_units / sizeof *g_units)

static EngStatus factor_of(const char *unit, EngDimension dimension, double *factor, EngErr *err)
{
    char possible[128] = "";
    size_t n = 0;
    for (size_t i = 0; i < N_UNITS; i++) {
        if (g_units[i].dimension != dimension) continue;
        if (!strcmp(g_units[i].unit, unit)) {
            *factor = g_units[i].factor;
            return ENG_OK;
        }
        n += (size_t)snprintf(possible + n, sizeof possible - n, " %s", g_units[i].unit);
    }
    return ENG_FAIL(err, ENG_USAGE, "%s%s%s, one of%s is needed", *unit ? "unit \"" : "no unit",
                    unit, *unit ? "\"" : "", possible);
}

const char *eng_dimension_unit(EngDimension dimension)
{
    static const char *const units[ENG_DIM_KINDS] = {[ENG_DIM_BYTES] = "B",
                                                     [ENG_DIM_BYTES_PER_S] = "B/s",
                                                     [ENG_DIM_SECONDS] = "s",
                                                     [ENG_DIM_PER_S] = "/s",
                                                     [ENG_DIM_COUNT] = "",
                                                     [ENG_DIM_REQUESTS] = "",
                                                     [ENG_DIM_NODES] = "",
                                                     [ENG_DIM_NUMBER] = "",
                                                     [ENG_DIM_SHARE] = "",
                                                     [ENG_DIM_USD] = "USD",
                                                     [ENG_DIM_USD_PER_H] = "USD/h",
                                                     [ENG_DIM_USD_PER_GB] = "USD/B",
                                                     [ENG_DIM_FLOPS] = "FLOP/s",
                                                     [ENG_DIM_WATTS] = "W",
                                                     [ENG_DIM_USD_PER_KWH] = "USD/kWh"};
    return (unsigned)dimension < ENG_DIM_KINDS ? units[dimension] : "";
}

EngStatus eng_quantity_of(double number, const char *unit, EngDimension dimension, double *value,
                          EngErr *err)
{
    double factor = 1;
    EngStatus status = factor_of(unit, dimension, &factor, err);
    if (status) return status;
    *value = number * factor;
    if (!(number > 0) || isinf(number))
        return ENG_FAIL(err, ENG_USAGE, "%g is not above 0 and finite", number);
    if (*value > ENG_MOST || *value < ENG_LEAST) {
        const char *base = eng_dimension_unit(dimension);
        return ENG_FAIL(err, ENG_USAGE, "is %s than %g%s%s", *value > ENG_MOST ? "more" : "less",
                        *value > ENG_MOST ? ENG_MOST : ENG_LEAST, *base ? " " : "", base);
    }
    if (dimension == ENG_DIM_SHARE && factor == 1 && *value > 1)
        return ENG_FAIL(err, ENG_USAGE, "%g is not a share up to 1; write %g%% or %g%%", number,
                        number, 100 * number);
    return ENG_OK;
}

/* Whether what is counted in this dimension has no unit of its own. */
static bool is_bare(EngDimension dimension)
{
    return dimension == ENG_DIM_COUNT || dimension == ENG_DIM_REQUESTS ||
           dimension == ENG_DIM_NODES || dimension == ENG_DIM_NUMBER || dimension == ENG_DIM_SHARE;
}

EngStatus eng_quantity_parse(const char *text, EngDimension dimension, double *value, EngErr *err)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text) return ENG_FAIL(err, ENG_USAGE, "\"%s\" is no number with a unit", text);
    while (*end == ' ') end++;
    EngStatus status =
        eng_quantity_of(number, !*end && is_bare(dimension) ? "1" : end, dimension, value, err);
    return status ? eng_err_prefix(err, "\"%s\"", text), status : ENG_OK;
}

EngStatus eng_share_parse(const char *text, double *value, EngErr *err)
{
    char *end;
    double number = strtod(text, &end);
    *value = 0;
    if (end > text && number == 0 && (!*end || !strcmp(end, "%"))) return ENG_OK;
    return eng_quantity_parse(text, ENG_DIM_SHARE, value, err);
}

const char *eng_origin_name(EngOrigin origin)
{
    static const char *const names[ENG_ORIGIN_COUNT] = {"unknown", "spec", "measured", "assumed"};
    return (unsigned)origin < ENG_ORIGIN_COUNT ? names[origin] : "unknown";
}
