/* What storing rows in a format does to them, and to the gates: originals in bf16 are encoded as
 * the format says, decoded, projected and gated.
 *
 * Originals are synthetic: standard normals, the same for a row wherever it is looked up. Each of
 * `hidden` outputs is a key of one stream, hidden states are aligned with the keys of the originals
 * as in inputs.h, the gate's norm weights are ones. The noise floor is what the gates of the
 * originals change when another product computes the keys: sums in another order, rounded to bf16.
 */
#ifndef ENG_EXPERIMENTS_ROW_DRIFT_H
#define ENG_EXPERIMENTS_ROW_DRIFT_H

#include "bench/experiments/shape.h"

#define ENG_DRIFT_TOKENS 128

typedef struct EngRowDrift {
    double row_error;  /* root mean square of the difference over that of the originals */
    double row_cosine; /* of all decoded values and the originals */
    double gate_drift, gate_drift_max; /* mean and largest absolute difference of gates */
    double gate_noise, gate_noise_max; /* the same between two products of the originals */
} EngRowDrift;

/* Needs the run's weights [hidden, k]. ENG_UNSUPPORTED: the stream is shorter than
 * ENG_DRIFT_TOKENS. */
EngStatus eng_row_drift(const EngBench *bench, const EngShape *shape, const char *corpus,
                        double alignment, EngRowDrift *drift, EngErr *err);

#endif
