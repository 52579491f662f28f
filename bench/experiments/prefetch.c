/* prefetch: are the rows there before the layer needs them, and what does a step lose when not?
 *
 * A run is three steps of the same kind on different tokens, in changing order: one beside its
 * fetch, one whose rows are all there when its clock starts, and one beside its fetch whose time is
 * not used and whose intervals (reads, waits) give fetch, stall and hidden fraction. The first two
 * give what the fetch costs a step, and with it a second hidden fraction to check the first by.
 */
#include "bench/experiments/experiments.h"

#include <math.h>

#include "base/mem.h"
#include "base/nvtx.h"
#include "bench/experiments/device_step.h"
#include "bench/trace/interval.h"
#include "kernels/store/residency.h"

#define STEPS_PER_RUN  3
#define EST_NS_PER_ROW 2000.0

static const EngAxisDef g_axes[] = {
    ENG_AXIS_TOKENS_DEF("16", "decode: sequences, one token each; prefill: tokens of the prompt"),
    ENG_AXES_STEP,
    {"modules", ENG_AXIS_INT, "1", "", 1, ENG_STEP_MODULES, NULL, "Engram modules of the step"},
    {"apart", ENG_AXIS_INT, "2", "layers", 1, 999, NULL,
     "from the first module's layer to the second's (V4.1: 13)"},
    {"phase", ENG_AXIS_WORD, "decode", "", 0, 0, eng_words_phase,
     "decode: one token of each sequence, no context cached; prefill: one prompt"},
    {"chunk", ENG_AXIS_INT, "0", "tokens", 0, ENG_MAX_POINT_TOKENS, NULL,
     "prefill: tokens of a pass, whose rows are fetched during the pass before; 0: all"},
    {"vision", ENG_AXIS_WORD, "off", "", 0, 0, eng_words_on_off,
     "on: a stand-in for a vision encoder, 4 layers over 64 patches, computes first (paced: takes "
     "as long as 4 layers)"},
    ENG_AXES_DEVICE,
};

static const EngMetricDef g_metrics[] = {
    {"step_us", "us", -1, "wall", "one step beside its fetch, all passes"},
    {"step_ready_us", "us", -1, "wall", "one step whose rows are there"},
    {"cost_percent", "%", -1, "wall", "by which the former is longer"},
    {"window_us", "us", 0, "wall", "from ids known to rows needed, first module, mean of passes"},
    {"wanted_window_us", "us", -1, "wall",
     "from ids known to rows read, first module: the window that would hide it"},
    {"fetch_us", "us", -1, "wall", "reading rows, per step, all modules"},
    {"stall_us", "us", -1, "wall", "waiting for rows, from needed to ready, per step"},
    {"hidden", "share", +1, "wall", "1 - stall / fetch, not below 0, from intervals"},
    {"hidden_first", "share", +1, "wall", "of the first module"},
    {"hidden_second", "share", +1, "wall", "of the second module"},
    {"hidden_steps", "share", +1, "wall",
     "the same from step times, 1 - (step - ready) / fetch: unbounded, and as noisy as steps are "
     "long"},
    {"window_second_us", "us", 0, "wall", "window of the second module"},
    {"stall_second_us", "us", -1, "wall", "stall of the second module"},
    {"interval_steps", "steps", 0, "none", "steps whose intervals were taken, in this sample"},
    {"rows", "rows", 0, "none", "read per step, all modules"},
    {"asked_bytes", "B", 0, "none", "bytes of these rows, scales included"},
    {"row_read_bytes", "B", -1, "none", "bytes given to reads, per row; memory and mmap: none"},
    {"amplification", "", -1, "none", "bytes the device gave this process over bytes of rows"},
    {"hit_rate", "", 0, "none", "row cache: rows found in it"},
    {"resident_share", "", 0, "none", "of the first file, in the page cache at the sample's begin"},
    {"memory_bytes", "B", 0, "none", "held by stores and prefetcher"},
    {"emulated", "", 0, "none", "1: the window is paced or reads are delayed"},
};

typedef struct State {
    bool on_device; /* then `device` is the step */
    EngStep step;
    EngDeviceStep device;
    EngStepSums timed, ready, intervals; /* of the sample */
    EngIoReading before;
    int64_t runs;
} State;

/* ---- plan ---- */

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngStepSpec spec;
    EngBackboneSize size;
    if (eng_point_on_device(point)) return eng_device_step_check(point, why);
    if (eng_point_table_at(point) != ENG_TABLE_LOCAL || eng_point_has_graph(point) ||
        eng_point_int(point, "blocks"))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "table_at, graph and blocks are of backend=cuda");
    EngStatus status = eng_step_spec_read(point, &spec, why);
    return status ? status : eng_backbone_size(&spec.backbone, &size, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngStepSpec spec;
    if (eng_point_on_device(point)) return eng_device_step_need(point, need, err);
    *need = (EngNeed){.corpus = eng_point_word(point, "corpus"),
                      .preset = eng_point_word(point, "preset")};
    EngStatus status = eng_step_spec_read(point, &spec, err);
    if (!status) status = eng_step_spec_bytes(&spec, &need->private_bytes, err);
    if (!status) need->max_tokens = spec.shapes[0].tokens;
    return status;
}

static double estimate_ns(const EngPoint *point)
{
    EngStepSpec spec;
    if (eng_step_spec_read(point, &spec, NULL)) return 0;
    if (eng_point_on_device(point)) return STEPS_PER_RUN * eng_device_step_ns(&spec);
    double rows = (double)spec.shapes[0].tokens * spec.shapes[0].columns * spec.modules;
    return STEPS_PER_RUN * (eng_step_spec_ns(&spec) + EST_NS_PER_ROW * rows);
}

/* ---- life ---- */

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    if (state->on_device)
        eng_device_step_destroy(&state->device);
    else
        eng_step_destroy(&state->step);
    eng_free(state);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "prefetch", err);
    if (status) return status;
    state->on_device = eng_point_on_device(point);
    status = state->on_device ? eng_device_step_create(&state->device, bench, point, err)
                              : eng_step_create(&state->step, bench, point, err);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngStatus prepare(void *opaque, EngErr *err)
{
    State *state = opaque;
    state->timed = state->ready = state->intervals = (EngStepSums){0};
    EngStatus status = state->on_device ? ENG_OK : eng_step_prepare(&state->step, err);
    eng_io_read(&state->before);
    return status;
}

static EngStatus fetch(State *state, EngStepSums *sums, EngErr *err)
{
    return state->on_device ? eng_device_step_fetch(&state->device, sums, err)
                            : eng_step_fetch(&state->step, sums, err);
}

static EngStatus ready(State *state, EngStepSums *sums, EngErr *err)
{
    return state->on_device ? eng_device_step_ready(&state->device, sums, err)
                            : eng_step_ready(&state->step, sums, err);
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngStatus status = ENG_OK;
    int64_t run = state->runs++, direction = run / STEPS_PER_RUN % 2 ? -1 : 1;
    if (eng_nvtx_traced()) return fetch(state, &state->intervals, err);
    for (int64_t i = 0; i < STEPS_PER_RUN && !status; i++) {
        int64_t which = (run + direction * i + STEPS_PER_RUN) % STEPS_PER_RUN;
        if (which == 0) status = fetch(state, &state->timed, err);
        if (which == 1) status = ready(state, &state->ready, err);
        if (which == 2) status = fetch(state, &state->intervals, err);
    }
    return status;
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    return state->on_device ? eng_device_step_verify(&state->device, residual, err)
                            : eng_step_verify(&state->step, residual, err);
}

static double per(int64_t sum_ns, int64_t n)
{
    return n ? (double)sum_ns / (double)n * 1e-3 : NAN;
}

static const EngStepSpec *spec_of(const State *state)
{
    return state->on_device ? &state->device.spec : &state->step.spec;
}

static void observe_times(const State *state, double *values)
{
    const EngStepSums *s = &state->intervals;
    int64_t passes = s->steps * spec_of(state)->passes;
    bool two = spec_of(state)->modules > 1;
    int64_t fetch_ns = s->fetch_ns[0] + s->fetch_ns[1], stall_ns = s->stall_ns[0] + s->stall_ns[1];
    double step_us = per(state->timed.step_ns, state->timed.steps);
    double ready_us = per(state->ready.step_ns, state->ready.steps);
    double fetch_us = per(fetch_ns, s->steps);
    values[0] = step_us;
    values[1] = ready_us;
    values[2] = 100 * (step_us / ready_us - 1);
    values[3] = per(s->window_ns[0], passes);
    values[4] = per(s->wanted_ns[0], passes);
    values[5] = fetch_us;
    values[6] = per(stall_ns, s->steps);
    values[7] = eng_hidden_fraction(fetch_ns, stall_ns);
    values[8] = eng_hidden_fraction(s->fetch_ns[0], s->stall_ns[0]);
    values[9] = two ? eng_hidden_fraction(s->fetch_ns[1], s->stall_ns[1]) : NAN;
    values[10] = 1 - (step_us - ready_us) / fetch_us;
    values[11] = two ? per(s->window_ns[1], passes) : NAN;
    values[12] = two ? per(s->stall_ns[1], s->steps) : NAN;
    values[13] = (double)s->steps;
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    State *state = opaque;
    EngStoreStats s;
    EngPrefetchStats p;
    EngIoReading now;
    const EngStepSpec *spec = spec_of(state);
    (void)timing;
    double rows = (double)spec->shapes[0].tokens * spec->shapes[0].columns * spec->modules;
    observe_times(state, values);
    values[14] = rows;
    values[15] = rows * (double)spec->shapes[0].row_bytes;
    for (int i = 16; i <= 21; i++) values[i] = NAN; /* of stores */
    if (state->on_device) return;
    eng_step_over(&state->step);
    eng_step_store_stats(&state->step, &s);
    eng_prefetch_stats(state->step.prefetcher, &p);
    eng_io_read(&now);
    values[16] = s.requests ? share_of(s.bytes_read, s.rows) : NAN;
    values[17] = now.device_bytes < 0
                     ? NAN
                     : share_of(now.device_bytes - state->before.device_bytes, s.bytes_asked);
    values[18] = spec->store.cached ? share_of(s.hits, s.hits + s.misses) : NAN;
    values[19] = state->step.tables[0].resident_share;
    values[20] = (double)(s.memory_bytes + p.memory_bytes);
    values[21] = eng_step_emulated(spec);
}

const EngExperiment eng_experiment_prefetch = {
    .name = "prefetch",
    .question = "Are rows there before the layer needs them, and what does a step lose when not?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .prepare = prepare,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
