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
    ENG_DIM_COUNT,       /* "1": tokens, ranks, years of --years */
    ENG_DIM_REQUESTS,    /* "requests", "1" */
    ENG_DIM_NODES,       /* "nodes", "1" */
    ENG_DIM_NUMBER,      /* "1": neither counted nor a share, such as an exponent */
    ENG_DIM_SHARE,       /* "%", or "1" up to 1: 10 is no share, since 10 % may be meant */
    ENG_DIM_USD,         /* USD */
    ENG_DIM_USD_PER_H,   /* USD/h */
    ENG_DIM_USD_PER_GB,  /* USD/GB */
    ENG_DIM_FLOPS,       /* GFLOP/s TFLOP/s */
    ENG_DIM_WATTS,       /* W kW */
    ENG_DIM_USD_PER_KWH, /* USD/kWh */
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
    double value;     /* bytes, bytes/s, s, 1/s, W, USD, USD/h, USD/B or a plain number */
    double low, high; /* prices: their range, of which value is the middle; else value */
    EngOrigin origin;
    char date[11]; /* YYYY-MM-DD: when the source was read or the measurement made */
    char source[200];
} EngQuantity;

/* Of any value in its base unit: sums of bytes fit 64 bits, and no product or quotient of a few
 * values comes near the ends of a double. */
#define ENG_MOST  1e18
#define ENG_LEAST 1e-18

/* `number` of a unit. ENG_USAGE: a unit of another dimension, naming those possible; a value that
 * is not above 0, not finite, beyond ENG_MOST or ENG_LEAST, or a share above 1 without "%". */
EngStatus eng_quantity_of(double number, const char *unit, EngDimension dimension, double *value,
                          EngErr *err);
/* "64 GB/s", "1.5us", "50 %": a number as above, then its unit, which only what has none may lack:
 * counts, numbers and shares up to 1. ENG_USAGE otherwise. */
EngStatus eng_quantity_parse(const char *text, EngDimension dimension, double *value, EngErr *err);
/* A share that may also be none: "0", "0%". */
EngStatus eng_share_parse(const char *text, double *value, EngErr *err);
/* Base unit, in which values are kept: "B", "B/s", "s", "/s", or "" for plain numbers. */
const char *eng_dimension_unit(EngDimension dimension);
const char *eng_origin_name(EngOrigin origin);

#endif
