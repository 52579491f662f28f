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
    {"requests", ENG_DIM_COUNT, 1},
    {"nodes", ENG_DIM_COUNT, 1},
    {"1", ENG_DIM_COUNT, 1},
    {"1", ENG_DIM_RATIO, 1},
    {"%", ENG_DIM_RATIO, 0.01},
    {"USD", ENG_DIM_USD, 1},
    {"USD/h", ENG_DIM_USD_PER_H, 1},
    {"USD/GB", ENG_DIM_USD_PER_GB, 1e-9},
    {"GFLOP/s", ENG_DIM_FLOPS, 1e9},
    {"TFLOP/s", ENG_DIM_FLOPS, 1e12},
};

#define N_UNITS (sizeof g_units / sizeof *g_units)

EngStatus eng_quantity_unit(const char *unit, EngDimension dimension, double *factor, EngErr *err)
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

EngStatus eng_quantity_parse(const char *text, EngDimension dimension, double *value, EngErr *err)
{
    char *after;
    double factor, number = strtod(text, &after);
    const char *end = after;
    if (end == text) return ENG_FAIL(err, ENG_USAGE, "\"%s\" is no number with a unit", text);
    if (!(number > 0) || !isfinite(number))
        return ENG_FAIL(err, ENG_USAGE, "\"%s\" is not above 0", text);
    while (*end == ' ') end++;
    if (!*end && (dimension == ENG_DIM_COUNT || dimension == ENG_DIM_RATIO)) end = "1";
    EngStatus status = eng_quantity_unit(end, dimension, &factor, err);
    if (status) return eng_err_prefix(err, "\"%s\"", text), status;
    *value = number * factor;
    if (dimension == ENG_DIM_BYTES && *value > ENG_MOST_BYTES)
        return ENG_FAIL(err, ENG_USAGE, "\"%s\" is more than %g B", text, ENG_MOST_BYTES);
    return ENG_OK;
}

const char *eng_origin_name(EngOrigin origin)
{
    static const char *const names[ENG_ORIGIN_COUNT] = {"unknown", "spec", "measured", "assumed"};
    return (unsigned)origin < ENG_ORIGIN_COUNT ? names[origin] : "unknown";
}
