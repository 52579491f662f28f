/* The shape of a point: what its axes mean in rows, bytes and matrix sizes.
 *
 * hold says what a sweep keeps fixed (definitions in the design):
 *   row_dims     nothing else follows: rows stay `row_dims` values wide;
 *   embed_dims   an order keeps (preset's K) * row_dims values, so a row has that / K;
 *   total_bytes  the table keeps rows * (preset's columns) * (preset's bytes per row), so the rows
 *                per head follow from the columns and the bytes per row of the point.
 */
#ifndef ENG_EXPERIMENTS_SHAPE_H
#define ENG_EXPERIMENTS_SHAPE_H

#include "bench/core/experiment.h"
#include "bench/experiments/axes.h"
#include "kernels/address/preset.h"
#include <engram/address.h>

typedef struct EngShape {
    EngPreset preset;
    int layer; /* 0-based layer number of the model */
    int min_order, max_order, heads, columns;
    int64_t rows_per_head; /* first candidate for a prime, after hold */
    int row_dims;
    EngRowFormat row_format;
    size_t row_bytes;         /* of one row, scales included */
    size_t table_value_bytes; /* of the layer's table, without scales */
    int streams, hidden;
    int64_t k, n; /* of the projection: columns * row_dims, (streams + 1) * hidden */
    int64_t tokens;
    int threads;
    EngAddress address; /* of that one layer; its primes are those of the whole preset */
} EngShape;

/* Axes that the experiment lacks take the preset's values (tokens and threads: 1). An axis `order`
 * stands for an `orders` that reaches it and the preset's.
 * ENG_USAGE: a value no machine could run, or a layer that the preset lacks (with the list);
 * ENG_NOT_FOUND: no such preset; ENG_UNSUPPORTED: a combination that cannot be, with the reason (K
 * does not divide an order's dims; fp8 rows in other than multiples of 32; no row left). */
EngStatus eng_shape_resolve(const EngPoint *point, EngShape *shape, EngErr *err);

/* The same addressing over another vocabulary. ENG_USAGE from eng_address_build. */
EngStatus eng_shape_address(const EngShape *shape, int64_t vocab, EngAddress *address, EngErr *err);
/* The same for all layers of the preset, not the shape's own alone. */
EngStatus eng_shape_layers(const EngShape *shape, int64_t vocab, EngAddress *address, EngErr *err);

/* "2-4" or "3" into first and last; ENG_USAGE naming the text. */
EngStatus eng_orders_parse(const char *text, int *min_order, int *max_order, EngErr *err);

/* The kernel the `variant` axis names: ENG_USAGE with the nearest name. */
EngStatus eng_point_kernel(const EngPoint *point, EngOp op, const EngKernel **kernel, EngErr *err);
/* Puts the settings that the `variant` axis names ("portable@group=24") into the problem. */
EngStatus eng_point_settings(const EngPoint *point, const EngKernel *kernel, EngProblem *problem,
                             EngErr *err);
/* What tells points of one block apart ("portable 2"): see eng_windows_create. */
#define ENG_WHO_BYTES 96
const char *eng_point_who(const EngPoint *point, char who[ENG_WHO_BYTES]);
/* A kernel's supports(), or ENG_OK when it takes everything. */
EngStatus eng_kernel_supports(const EngKernel *kernel, const EngProblem *problem, EngErr *err);

/* A table of the shape without memory, for supports(). */
EngTable eng_shape_table(const EngShape *shape);

/* A need() of the shape's table and token stream; weights and private bytes are the experiment's.
 */
EngNeed eng_shape_need(const EngPoint *point, const EngShape *shape);

/* An experiment's estimate_ns where the shape's product is what takes the time; 0 for a point
 * without a shape. */
double eng_shape_product_ns(const EngPoint *point);

#endif
