/* format: what does a row format cost and save? Time and bytes are those of the experiment `gather`
 * at the same axes; beside them stands what the format does to rows and gates (row_drift.h),
 * computed once per worker, outside the timed window. */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/derive.h"
#include "bench/experiments/inputs.h"
#include "bench/experiments/row_drift.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"

#define DRIFT_PACKED_BYTES 4 /* of a weight, as a library product packs it */

static const EngAxisDef g_axes[] = {
    ENG_AXES_TABLE,
    ENG_AXIS_TOKENS_DEF("256", "tokens per call: 1 is a decode step"),
    ENG_AXIS_CORPUS_DEF,
    {"alignment", ENG_AXIS_REAL, "0.02", "", 0, 1, NULL,
     "cosine between synthetic hidden states and the keys of the originals"},
    ENG_AXIS_THREADS_DEF,
    ENG_AXIS_CACHE_DEF,
    ENG_AXIS_VARIANT_DEF("gather"),
};

static const EngMetricDef g_metrics[] = {
    {"wall_us", "us", -1, "wall", "wall time of the gather"},
    {"cpu_us", "us", -1, "cpu", "CPU time of the gather (busiest thread)"},
    {"row_ns", "ns", -1, "cpu", "CPU time per row"},
    {"row_bytes", "B", 0, "none", "of one row, scales and padding included"},
    {"line_bytes", "B", 0, "none", "64-byte lines touched x 64, mean over the windows"},
    {"line_bytes_per_row", "B", 0, "none", "that over the rows of a call: shared lines count once"},
    {"table_bytes", "B", 0, "none", "of the layer's table, scales included"},
    {"row_error", "", -1, "none",
     "rms difference of decoded rows and synthetic bf16 originals, over the originals' rms"},
    {"row_cosine", "", +1, "none", "of decoded rows and these originals"},
    {"gate_drift", "", -1, "none",
     "mean change of gates against the originals' (synthetic rows and hidden states)"},
    {"gate_drift_max", "", -1, "none", "largest such change"},
    {"gate_noise", "", 0, "none",
     "mean change of the originals' gates when another product computes the keys: the floor"},
    {"gate_noise_max", "", 0, "none", "largest such change"},
};

typedef struct State {
    EngShape shape;
    void *gather; /* of eng_experiment_gather */
    bool drifts;  /* false: an unchecked roof, which decodes nothing */
    EngRowDrift drift;
} State;

static EngPoint gather_point(const EngPoint *point)
{
    EngPoint gather;
    eng_point_derive(point, &eng_experiment_gather, &gather);
    return gather;
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngShape shape;
    EngPoint gather = gather_point(point);
    EngStatus status = eng_experiment_gather.check(&gather, why);
    if (!status) status = eng_shape_resolve(point, &shape, why);
    return status ? status : eng_shape_check_matrix(&shape, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngShape shape;
    EngPoint gather = gather_point(point);
    EngStatus status = eng_experiment_gather.need(&gather, need, err);
    if (!status) status = eng_shape_resolve(point, &shape, err);
    if (status) return status;
    need->weight_bytes = (size_t)shape.hidden * (size_t)shape.k;
    need->private_bytes += DRIFT_PACKED_BYTES * need->weight_bytes +
                           8 * ENG_DRIFT_TOKENS * (size_t)(shape.k + shape.hidden);
    if (need->max_tokens < ENG_DRIFT_TOKENS) need->max_tokens = ENG_DRIFT_TOKENS;
    return ENG_OK;
}

static double estimate_ns(const EngPoint *point)
{
    EngPoint gather = gather_point(point);
    return eng_experiment_gather.estimate_ns(&gather);
}

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_experiment_gather.teardown(state->gather);
    eng_free(state);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    const EngKernel *kernel;
    EngPoint gather = gather_point(point);
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "format", err);
    if (status) return status;
    status = eng_shape_resolve(point, &state->shape, err);
    if (!status) status = eng_point_kernel(point, ENG_OP_GATHER, &kernel, err);
    if (!status) status = eng_experiment_gather.setup(bench, &gather, &state->gather, err);
    if (!status) state->drifts = !eng_kernel_unchecked(kernel);
    if (!status && state->drifts)
        status = eng_row_drift(bench, &state->shape, eng_point_word(point, "corpus"),
                               eng_point_real(point, "alignment"), &state->drift, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngStatus run(void *opaque, EngErr *err)
{
    return eng_experiment_gather.run(((State *)opaque)->gather, err);
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    return eng_experiment_gather.verify(((State *)opaque)->gather, residual, err);
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const EngShape *shape = &state->shape;
    const EngRowDrift *drift = &state->drift;
    double gather[ENG_MAX_METRICS], cpu_ns = eng_cpu_ns(timing);
    double rows = (double)shape->tokens * shape->columns;
    eng_experiment_gather.observe(state->gather, timing, gather);
    double lines = gather[eng_metric_index(&eng_experiment_gather, "line_bytes")];
    values[0] = eng_wall_ns(timing) * 1e-3;
    values[1] = cpu_ns * 1e-3;
    values[2] = cpu_ns / rows;
    values[3] = (double)shape->row_bytes;
    values[4] = lines;
    values[5] = lines / rows;
    values[6] = (double)shape->address.rows[0] * (double)shape->row_bytes;
    const double of_drift[] = {drift->row_error,      drift->row_cosine, drift->gate_drift,
                               drift->gate_drift_max, drift->gate_noise, drift->gate_noise_max};
    for (size_t i = 0; i < sizeof of_drift / sizeof *of_drift; i++)
        values[7 + i] = state->drifts ? of_drift[i] : NAN;
}

const EngExperiment eng_experiment_format = {
    .name = "format",
    .question = "What does each row format cost in time and bytes, and change in rows and gates?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = ENG_OP_GATHER,
    .tunables = eng_tunable_placement,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
