/* Inputs of the projection and the gate: rows of real text as activations, weights as bf16, and
 * synthetic hidden states.
 *
 * Hidden states are synthetic until a trained backbone exists, and whatever shows them says so. For
 * alignment a, key k and noise z of independent standard normals,
 *     h = a * k / rms(k) + sqrt(1 - a^2) * z / rms(z),   rounded to bf16,
 * so the cosine of h and k is a, with deviation (1 - a^2)^1.5 / sqrt(hidden). The gate's score is
 * near sqrt(hidden) * a with deviation (1 - a^2)^1.5.
 */
#ifndef ENG_EXPERIMENTS_INPUTS_H
#define ENG_EXPERIMENTS_INPUTS_H

#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"

/* Gathered rows of several windows, packed as the projection takes them. */
typedef struct EngInputs {
    EngWindows windows;
    EngDtype type;                   /* FP8 with scales, or BF16 */
    uint8_t *values;                 /* [windows, tokens, k] */
    uint8_t *scales;                 /* [windows, tokens, k / 32], NULL for BF16 */
    size_t value_bytes, scale_bytes; /* of one window */
} EngInputs;

/* Reads the rows through the oracle, so that a kernel's input never depends on another kernel. */
EngStatus eng_inputs_create(EngInputs *inputs, const EngBench *bench, const EngShape *shape,
                            const char *corpus, int64_t n_windows, EngDtype type, const char *who,
                            EngErr *err);
void eng_inputs_destroy(EngInputs *inputs);
/* The whole of them, for a runner that will read windows. */
EngStatus eng_inputs_cover(const EngInputs *inputs, EngRunner *runner, EngErr *err);
const void *eng_inputs_x(const EngInputs *inputs, int64_t window);
const uint8_t *eng_inputs_scales(const EngInputs *inputs, int64_t window); /* NULL for BF16 */

/* k and n must be multiples of 32 and fit an int: ENG_UNSUPPORTED with the number. */
EngStatus eng_shape_check_matrix(const EngShape *shape, EngErr *err);

/* fp8 weights [n, k] with 32x32 scales as bf16, exact; caller frees with eng_free. */
EngStatus eng_weights_to_bf16(const uint8_t *values, const uint8_t *scales, int n, int k,
                              uint16_t **bf16, EngErr *err);

/* Standard normals from a table of 4,096 equally likely quantiles: fast, and reproducible. */
typedef struct EngNormals {
    float quantiles[4096];
} EngNormals;
void eng_normals_init(EngNormals *normals);
/* n bf16 values mean + deviation * normal. */
void eng_normals_bf16(const EngNormals *normals, uint64_t seed, uint64_t index, float mean,
                      float deviation, int64_t n, uint16_t *out);

/* Keys and values kv [tokens, (streams + 1) * hidden] and hidden states [tokens, streams, hidden]
 * aligned with their keys as above. Content of token t depends on seed and first + t only. */
EngStatus eng_synthetic_gate_inputs(const EngNormals *normals, uint64_t seed, int64_t first,
                                    int64_t tokens, int streams, int hidden, double alignment,
                                    uint16_t *kv, uint16_t *states, EngErr *err);

#endif
