/* Addressing of an Engram memory: what turns compressed token ids into table rows.
 *
 * Source: engram_facts section 3. Columns are order-major, then head: column c = (order -
 * min_order)
 * * heads + head. Layers are counted from 0 by position in layer_ids; a layer's id enters its seed.
 */
#ifndef ENGRAM_ADDRESS_H
#define ENGRAM_ADDRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ENG_MAX_LAYERS  8
#define ENG_MAX_ORDER   8
#define ENG_MAX_HEADS   64
#define ENG_MAX_COLUMNS 256 /* per layer */

/* A position that holds no text token (image), or lies before the start of a sequence: it and every
 * older position of a window read as the pad token. */
#define ENG_TOKEN_DEAD (-1)

typedef struct EngAddress {
    int n_layers;
    int layer_ids[ENG_MAX_LAYERS]; /* 0-based layer numbers of the model */
    int min_order, max_order;      /* n-gram lengths, 2..4 for V4.1 */
    int heads;                     /* K, per order */
    int n_columns;                 /* (max_order - min_order + 1) * heads */
    int64_t vocab;                 /* V: compressed vocabulary size (multiplier bound) */
    int32_t pad;                   /* compressed id of the pad token */
    int64_t start;                 /* first candidate for a prime, itself included */
    int64_t multipliers[ENG_MAX_LAYERS][ENG_MAX_ORDER]; /* [layer][lag], all odd */
    int64_t primes[ENG_MAX_LAYERS][ENG_MAX_COLUMNS];    /* [layer][column] */
    int64_t offsets[ENG_MAX_LAYERS][ENG_MAX_COLUMNS];   /* exclusive prefix sums of primes */
    int64_t rows[ENG_MAX_LAYERS];                       /* rows of the layer's table */
} EngAddress;

#ifdef __cplusplus
}
#endif
#endif
