/* Inputs of projection and gate; see inputs.h. */
#include "bench/experiments/inputs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/ref/fp8.h"
#include "kernels/ref/gather.h"

/* ---- rows as activations ---- */

EngStatus eng_inputs_create(EngInputs *inputs, const EngBench *bench, const EngShape *shape,
                            const char *corpus, int64_t n_windows, EngDtype type, const char *who,
                            EngErr *err)
{
    EngTokens tokens;
    EngTable table;
    int64_t *rows = NULL;
    size_t per_window = (size_t)shape->tokens * (size_t)shape->k;
    memset(inputs, 0, sizeof *inputs);
    inputs->type = type;
    inputs->value_bytes = eng_dtype_bytes(type, per_window);
    inputs->scale_bytes = type == ENG_FP8 ? per_window / ENG_SCALE_GROUP : 0;
    EngStatus status =
        eng_resources_tokens(bench->resources, shape->preset.name, corpus, &tokens, err);
    if (!status)
        status = eng_resources_table(bench->resources, shape->row_format, shape->row_dims,
                                     shape->address.rows[0], &table, err);
    if (!status)
        status = eng_windows_create(&inputs->windows, &tokens, shape->tokens, n_windows,
                                    shape->max_order - 1, bench->seed, who, err);
    if (!status) status = eng_windows_rows(&inputs->windows, &shape->address, &rows, err);
    if (!status)
        status = eng_alloc_or((void **)&inputs->values, (size_t)n_windows, inputs->value_bytes,
                              "activations", err);
    if (!status && inputs->scale_bytes)
        status = eng_alloc_or((void **)&inputs->scales, (size_t)n_windows, inputs->scale_bytes,
                              "activation scales", err);
    EngGatherProblem problem = {
        .table = table, .columns = shape->columns, .tokens = shape->tokens, .out = type};
    for (int64_t w = 0; !status && w < n_windows; w++) {
        EngGatherArgs args = {
            .rows = rows + w * shape->tokens * shape->columns,
            .row_stride = shape->columns,
            .out = inputs->values + (size_t)w * inputs->value_bytes,
            .out_scales = inputs->scales ? inputs->scales + (size_t)w * inputs->scale_bytes : NULL};
        eng_ref_gather(&problem, &args);
    }
    eng_free(rows);
    if (status) eng_inputs_destroy(inputs);
    return status;
}

void eng_inputs_destroy(EngInputs *inputs)
{
    eng_windows_destroy(&inputs->windows);
    eng_free(inputs->values);
    eng_free(inputs->scales);
    memset(inputs, 0, sizeof *inputs);
}

const void *eng_inputs_x(const EngInputs *inputs, int64_t window)
{
    return inputs->values + (size_t)window * inputs->value_bytes;
}

const uint8_t *eng_inputs_scales(const EngInputs *inputs, int64_t window)
{
    return inputs->scales ? inputs->scales + (size_t)window * inputs->scale_bytes : NULL;
}

EngStatus eng_inputs_cover(const EngInputs *inputs, EngRunner *runner, EngErr *err)
{
    size_t n = (size_t)inputs->windows.n;
    EngStatus status = eng_runner_cover(runner, inputs->values, n * inputs->value_bytes, err);
    if (status || !inputs->scales) return status;
    return eng_runner_cover(runner, inputs->scales, n * inputs->scale_bytes, err);
}

/* ---- weights ---- */

EngStatus eng_shape_check_matrix(const EngShape *shape, EngErr *err)
{
    if (shape->k > INT32_MAX || shape->n > INT32_MAX)
        return ENG_FAIL(err, ENG_USAGE, "a matrix of %" PRId64 " x %" PRId64 " is too large",
                        shape->n, shape->k);
    if (shape->k % ENG_SCALE_GROUP || shape->n % ENG_SCALE_GROUP)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "the matrix of %" PRId64 " x %" PRId64 " is not in tiles of %d", shape->n,
                        shape->k, ENG_SCALE_GROUP);
    return ENG_OK;
}

EngStatus eng_weights_to_bf16(const uint8_t *values, const uint8_t *scales, int n, int k,
                              uint16_t **bf16, EngErr *err)
{
    double decoded[256];
    EngStatus status =
        eng_alloc_or((void **)bf16, (size_t)n, (size_t)k * sizeof **bf16, "bf16 weights", err);
    if (status) return status;
    for (int b = 0; b < 256; b++) decoded[b] = eng_ref_e4m3((uint8_t)b);
    uint16_t *out = *bf16;
    for (int j = 0; j < n; j++)
        for (int tile = 0; tile < k / ENG_SCALE_GROUP; tile++) {
            size_t row = (size_t)(j / ENG_SCALE_GROUP) * (size_t)(k / ENG_SCALE_GROUP);
            double scale = eng_ref_e8m0(scales[row + (size_t)tile]);
            for (int i = 0; i < ENG_SCALE_GROUP; i++, values++, out++)
                *out = eng_ref_bf16_round(decoded[*values] * scale);
        }
    return ENG_OK;
}

/* ---- synthetic hidden states ---- */

/* Middle of each 4,096th of the distribution, by bisection: erf is in the C library, its inverse is
 * not. */
void eng_normals_init(EngNormals *normals)
{
    enum { N = sizeof normals->quantiles / sizeof *normals->quantiles, STEPS = 50 };
    for (int i = N / 2; i < N; i++) {
        double lo = 0, hi = 8, want = (i + 0.5) / N;
        for (int step = 0; step < STEPS; step++) {
            double middle = (lo + hi) / 2;
            if (0.5 * erfc(-middle * 0.70710678118654752) < want)
                lo = middle;
            else
                hi = middle;
        }
        normals->quantiles[i] = (float)lo;
        normals->quantiles[N - 1 - i] = -(float)lo;
    }
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16); /* finite values only */
}

static float from_bf16(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

static void draw(const EngNormals *normals, EngRng *rng, int64_t n, float *out)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < n; i++, bits >>= 12) {
        if (i % 5 == 0) bits = eng_rng_u64(rng);
        out[i] = normals->quantiles[bits & 4095];
    }
}

void eng_normals_bf16(const EngNormals *normals, uint64_t seed, uint64_t index, float mean,
                      float deviation, int64_t n, uint16_t *out)
{
    EngRng rng;
    float some[320];
    eng_rng_seed_at(&rng, seed, index);
    for (int64_t done = 0; done < n;) {
        int64_t now = n - done < 320 ? n - done : 320;
        draw(normals, &rng, now, some);
        for (int64_t i = 0; i < now; i++) out[done + i] = to_bf16(mean + deviation * some[i]);
        done += now;
    }
}

/* One stream of one token: h = along * key + across * noise, both scaled to a mean square of 1. */
static void align(const uint16_t *key, const float *noise, int hidden, double alignment,
                  uint16_t *state)
{
    double kk = 0, zz = 0;
    for (int i = 0; i < hidden; i++) {
        float k = from_bf16(key[i]);
        kk += (double)(k * k);
        zz += (double)(noise[i] * noise[i]);
    }
    double along = kk > 0 ? alignment * sqrt(hidden / kk) : 0;
    double across = zz > 0 ? sqrt(1 - alignment * alignment) * sqrt(hidden / zz) : 0;
    for (int i = 0; i < hidden; i++)
        state[i] = to_bf16((float)(along * (double)from_bf16(key[i]) + across * (double)noise[i]));
}

EngStatus eng_synthetic_gate_inputs(const EngNormals *normals, uint64_t seed, int64_t first,
                                    int64_t tokens, int streams, int hidden, double alignment,
                                    uint16_t *kv, uint16_t *states, EngErr *err)
{
    float *noise;
    size_t width = (size_t)hidden;
    EngStatus status =
        eng_alloc_or((void **)&noise, width, sizeof *noise, "noise of hidden states", err);
    if (status) return status;
    for (int64_t t = 0; t < tokens; t++) {
        EngRng rng;
        uint16_t *keys = kv + (size_t)t * (size_t)(streams + 1) * width;
        eng_normals_bf16(normals, seed, 2 * (uint64_t)(first + t), 0, 1,
                         (int64_t)(streams + 1) * hidden, keys);
        eng_rng_seed_at(&rng, seed, 2 * (uint64_t)(first + t) + 1);
        for (int s = 0; s < streams; s++) {
            draw(normals, &rng, hidden, noise);
            align(keys + (size_t)s * width, noise, hidden, alignment,
                  states + ((size_t)t * (size_t)streams + (size_t)s) * width);
        }
    }
    eng_free(noise);
    return ENG_OK;
}
