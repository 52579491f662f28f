/* See row_drift.h. */
#include "bench/experiments/row_drift.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/core/resources.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"
#include "kernels/ref/encode.h"
#include "kernels/ref/fp8.h"
#include "kernels/ref/gate.h"
#include "kernels/ref/gather.h"

#define SEED_ROWS  0x6f726967726f7773u
#define SEED_NOISE 0x647269667468u

enum { ORIGINAL = 0, CODED, AGAIN, KEYS }; /* AGAIN: the originals by another product */

typedef struct Work {
    const EngShape *shape;
    EngNormals normals;
    uint16_t *x[2];       /* [T, k] original, coded */
    uint16_t *keys[KEYS]; /* [T, hidden] */
    uint16_t *states;     /* [T, hidden] */
    float *row;           /* [row_dims] */
    uint8_t *values, *scales;
} Work;

/* ---- rows ---- */

static void encode_rows(Work *work, uint64_t seed, const int64_t *rows, EngRowDrift *drift)
{
    const EngShape *shape = work->shape;
    int dims = shape->row_dims;
    double error = 0, xx = 0, qq = 0, xq = 0;
    EngTable one = {.format = shape->row_format,
                    .row_dims = dims,
                    .rows = 1,
                    .values = work->values,
                    .scales = work->scales};
    for (int64_t i = 0; i < (int64_t)ENG_DRIFT_TOKENS * shape->columns; i++) {
        uint16_t *original = work->x[ORIGINAL] + i * dims, *coded = work->x[CODED] + i * dims;
        eng_normals_bf16(&work->normals, seed ^ SEED_ROWS, (uint64_t)rows[i], 0, 1, dims, original);
        for (int d = 0; d < dims; d++) work->row[d] = (float)eng_ref_bf16(original[d]);
        eng_ref_encode_row(shape->row_format, dims, work->row, work->values, work->scales);
        eng_ref_gather_row(&one, 0, ENG_BF16, coded, NULL);
        for (int d = 0; d < dims; d++) {
            double x = work->row[d], q = eng_ref_bf16(coded[d]);
            error += (q - x) * (q - x);
            xx += x * x;
            qq += q * q;
            xq += x * q;
        }
    }
    drift->row_error = sqrt(error / xx);
    drift->row_cosine = xq / sqrt(xx * qq);
}

/* ---- keys ---- */

static EngStatus project(const EngKernel *kernel, const EngProblem *problem, const uint16_t *x,
                         uint16_t *keys, EngErr *err)
{
    EngRunner runner = {0};
    EngArgs args = {.u.project = {.x = x, .out = keys}};
    EngStatus status = eng_runner_open(&runner, kernel, problem, err);
    if (!status) status = eng_runner_run(&runner, &args, err);
    eng_runner_close(&runner);
    return status;
}

static EngStatus make_keys(Work *work, const EngBench *bench, EngErr *err)
{
    const EngShape *shape = work->shape;
    EngProblem problem = {.op = ENG_OP_PROJECT,
                          .threads = shape->threads,
                          .u.project = {.tokens = ENG_DRIFT_TOKENS,
                                        .n = shape->hidden,
                                        .k = (int)shape->k,
                                        .x = ENG_BF16,
                                        .weights = ENG_FP8,
                                        .out = ENG_BF16}};
    EngProjectProblem *p = &problem.u.project;
    EngStatus status =
        eng_resources_weights(bench->resources, p->n, p->k, &p->w, &p->w_scales, err);
    if (status) return status;
    const EngKernel *main = eng_kernel_find(ENG_OP_PROJECT, "onednn_f32");
    const EngKernel *other = eng_kernel_find(ENG_OP_PROJECT, "avx512");
    if (!other || eng_kernel_supports(other, &problem, NULL))
        other = eng_kernel_find(ENG_OP_PROJECT, "portable");
    status = project(main, &problem, work->x[ORIGINAL], work->keys[ORIGINAL], err);
    if (!status) status = project(main, &problem, work->x[CODED], work->keys[CODED], err);
    if (!status) status = project(other, &problem, work->x[ORIGINAL], work->keys[AGAIN], err);
    return status;
}

/* ---- gates ---- */

static double rms_of(const uint16_t *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += eng_ref_bf16(values[i]) * eng_ref_bf16(values[i]);
    return sqrt(sum / n);
}

static void align_states(Work *work, uint64_t seed, double alignment)
{
    int hidden = work->shape->hidden;
    for (int t = 0; t < ENG_DRIFT_TOKENS; t++) {
        const uint16_t *key = work->keys[ORIGINAL] + (int64_t)t * hidden;
        uint16_t *state = work->states + (int64_t)t * hidden;
        double other = sqrt(1 - alignment * alignment);
        eng_normals_bf16(&work->normals, seed ^ SEED_NOISE, (uint64_t)t, 0, 1, hidden, state);
        double of_key = alignment / fmax(rms_of(key, hidden), 1e-30);
        double of_noise = other / rms_of(state, hidden);
        for (int i = 0; i < hidden; i++)
            state[i] = eng_ref_bf16_round(of_key * eng_ref_bf16(key[i]) +
                                          of_noise * eng_ref_bf16(state[i]));
    }
}

static double gate_of(const Work *work, int which, int t)
{
    EngRefGateSums sums = {0};
    int hidden = work->shape->hidden;
    const uint16_t *key = work->keys[which] + (int64_t)t * hidden;
    const uint16_t *state = work->states + (int64_t)t * hidden;
    for (int i = 0; i < hidden; i++)
        eng_ref_gate_add(&sums, eng_ref_bf16(state[i]), 1, eng_ref_bf16(key[i]));
    return eng_ref_gate_finish(&sums, hidden, (double)work->shape->preset.gate_eps,
                               ENG_GATE_COPYSIGN)
        .gate;
}

static void compare_gates(const Work *work, EngRowDrift *drift)
{
    for (int t = 0; t < ENG_DRIFT_TOKENS; t++) {
        double gate = gate_of(work, ORIGINAL, t);
        double moved = fabs(gate_of(work, CODED, t) - gate);
        double noise = fabs(gate_of(work, AGAIN, t) - gate);
        drift->gate_drift += moved / ENG_DRIFT_TOKENS;
        drift->gate_noise += noise / ENG_DRIFT_TOKENS;
        drift->gate_drift_max = fmax(drift->gate_drift_max, moved);
        drift->gate_noise_max = fmax(drift->gate_noise_max, noise);
    }
}

/* ---- all of it ---- */

static EngStatus allocate(Work *work, EngErr *err)
{
    const EngShape *shape = work->shape;
    size_t inputs = ENG_DRIFT_TOKENS * (size_t)shape->k;
    size_t outputs = ENG_DRIFT_TOKENS * (size_t)shape->hidden, dims = (size_t)shape->row_dims;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {
        {(void **)&work->x[ORIGINAL], inputs, 2},
        {(void **)&work->x[CODED], inputs, 2},
        {(void **)&work->keys[ORIGINAL], outputs, 2},
        {(void **)&work->keys[CODED], outputs, 2},
        {(void **)&work->keys[AGAIN], outputs, 2},
        {(void **)&work->states, outputs, 2},
        {(void **)&work->row, dims, sizeof(float)},
        {(void **)&work->values, eng_row_stride_bytes(shape->row_format, shape->row_dims), 1},
        {(void **)&work->scales, 1 + eng_row_scale_bytes(shape->row_format, shape->row_dims), 1},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "row drift", err);
    return status;
}

static void release(Work *work)
{
    if (!work) return;
    for (int i = 0; i < 2; i++) eng_free(work->x[i]);
    for (int i = 0; i < KEYS; i++) eng_free(work->keys[i]);
    eng_free(work->states);
    eng_free(work->row);
    eng_free(work->values);
    eng_free(work->scales);
    eng_free(work);
}

EngStatus eng_row_drift(const EngBench *bench, const EngShape *shape, const char *corpus,
                        double alignment, EngRowDrift *drift, EngErr *err)
{
    Work *work = NULL;
    EngTokens tokens;
    EngWindows windows = {0};
    int64_t *rows = NULL;
    /* The run's, not the block's: all formats code the same rows. */
    uint64_t seed = eng_resources_seed(bench->resources);
    memset(drift, 0, sizeof *drift);
    EngStatus status = eng_alloc_or((void **)&work, 1, sizeof *work, "row drift", err);
    if (status) return status;
    work->shape = shape;
    status = eng_resources_tokens(bench->resources, shape->preset.name, corpus, &tokens, err);
    if (!status)
        status = eng_windows_create(&windows, &tokens, ENG_DRIFT_TOKENS, 1, shape->max_order - 1,
                                    seed, "row drift", err);
    if (!status) status = eng_windows_rows(&windows, &shape->address, &rows, err);
    if (!status) status = allocate(work, err);
    if (!status) {
        eng_normals_init(&work->normals);
        encode_rows(work, seed, rows, drift);
        status = make_keys(work, bench, err);
    }
    if (!status) {
        align_states(work, seed, alignment);
        compare_gates(work, drift);
    }
    eng_windows_destroy(&windows);
    eng_free(rows);
    release(work);
    return status;
}
