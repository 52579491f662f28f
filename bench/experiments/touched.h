/* The rows that steps of training touch: windows of a token stream as lists of distinct rows, for
 * experiments on scatter-add and on a table's optimizer.
 */
#ifndef ENG_EXPERIMENTS_TOUCHED_H
#define ENG_EXPERIMENTS_TOUCHED_H

#include "bench/experiments/shape.h"
#include "bench/experiments/windows.h"

typedef struct EngTouched {
    EngShape shape;
    EngWindows windows;
    int64_t table_rows, per_window; /* rows of the table; rows read in a window */
    int64_t *rows;                  /* [windows, tokens, columns] */
    int64_t *lists;                 /* [windows, per_window]: distinct rows, ascending */
    int64_t *n;                     /* [windows]: how many */
    int64_t largest;                /* of n */
    double mean;                    /* of n */
} EngTouched;

/* Axes preset, layer, orders, heads, rows, row_dims, corpus and tokens of the point. */
EngStatus eng_touched_create(EngTouched *touched, const EngBench *bench, const EngPoint *point,
                             int64_t windows, EngErr *err);
void eng_touched_destroy(EngTouched *touched); /* accepts an empty one */

/* The point's table in rows, and what run's memory the windows need. */
EngStatus eng_touched_shape(const EngPoint *point, EngShape *shape, int64_t *table_rows,
                            EngErr *err);
void eng_touched_need(const EngPoint *point, const EngShape *shape, int64_t windows, EngNeed *need);

#endif
