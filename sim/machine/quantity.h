/* Quantities of a machine: a number with its unit, and where it is from. Units are required and
 * checked against what the field measures, so that GB, GiB and Gb can not be mixed up. */
#ifndef ENG_SIM_MACHINE_QUANTITY_H
#define ENG_SIM_MACHINE_QUANTITY_H

#include <stdbool.h>
#include <engram/status.h>

typedef enum EngDimension {
    ENG_DIM_BYTES = 0,   /* B kB MB GB TB KiB MiB GiB TiB */
    ENG_DIM_BYTES_PER_S, /* the same with /s */
    ENG_DIM_SECONDS,     /* ns us ms s */
    ENG_DIM_PER_S,       /* /s k/s M/s G/s */
    ENG_DIM_COUNT,       /* "requests", "nodes" */
    ENG_DIM_RATIO,       /* "1", "%" */
    ENG_DIM_USD,         /* USD */
    ENG_DIM_USD_PER_H,   /* USD/h */
    ENG_DIM_USD_PER_GB,  /* USD/GB */
    ENG_DIM_FLOPS,       /* GFLOP/s TFLOP/s */
    ENG_DIM_KINDS
} EngDimension;

/* Where a value is from. Presets hold specifications and measurements; what is assumed comes from
 * the user of a plan and is printed with it. */
typedef enum EngOrigin {
    ENG_UNKNOWN = 0,
    ENG_SPEC,
    ENG_MEASURED,
    ENG_ASSUMED,
    ENG_ORIGIN_COUNT
} EngOrigin;

typedef struct EngQuantity {
    double value;     /* bytes, bytes/s, s, 1/s, USD, USD/h, USD/B or a plain number */
    double low, high; /* prices: their range, of which value is the middle; else value */
    EngOrigin origin;
    char date[11]; /* YYYY-MM-DD: when the source was read or the measurement made */
    char source[200];
} EngQuantity;

#define ENG_MOST_BYTES 1e18 /* so that sums of bytes fit 64 bits */

/* "64 GB/s", "1.5us", "50 %": a positive number, then a unit of the dimension, which only counts
 * and ratios may lack. ENG_USAGE otherwise, naming the units possible. */
EngStatus eng_quantity_parse(const char *text, EngDimension dimension, double *value, EngErr *err);
EngStatus eng_quantity_unit(const char *unit, EngDimension dimension, double *factor, EngErr *err);
const char *eng_origin_name(EngOrigin origin);

#endif
