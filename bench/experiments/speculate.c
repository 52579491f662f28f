/* speculate: what do rejected drafts cost where rows must be fetched?
 *
 * A verify step computes a window of `draft` drafted tokens and one more for each sequence; rows of
 * all are needed, those of rejected tokens in vain. With ahead=on the rows of the window after it
 * are asked for while it computes, as if every draft and the token after them had been guessed
 * right. When the step is over, the sequences before the first that was guessed wrong keep theirs,
 * read or not; the rest is cancelled, and the right windows of the other sequences are fetched.
 * Tokens are those of a text; a rejected draft, and what is guessed behind it, are other tokens of
 * it. Acceptance is drawn for each draft, up to the first that fails: no model decides it.
 *
 * A run walks texts through 8 steps, each twice: rows there before, and beside their fetch. A
 * traced one does the latter alone: the ranges of both would be of one step.
 */
#include "bench/experiments/experiments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "bench/experiments/drafts.h"
#include "bench/experiments/fetched_step.h"
#include "bench/trace/interval.h"

#define EST_NS_PER_ROW 2000.0
#define MAX_SEQUENCES  256
#define SEED_ACCEPTED  0x6163636570742d70u
#define SCATTER_GUESS  104729 /* as ENG_SCATTER_DRAFT, for guesses behind rejected drafts */

static const EngAxisDef g_axes[] = {
    {"sequences", ENG_AXIS_INT, "1", "", 1, MAX_SEQUENCES, NULL, "sequences of a step"},
    {"draft", ENG_AXIS_INT, "5", "tokens", 1, 64, NULL,
     "drafted tokens of each sequence, verified with one more (published: 5)"},
    {"acceptance", ENG_AXIS_REAL, "0.7", "share", 0, 1, NULL,
     "drafted tokens that are accepted, each given that all before it were"},
    {"ahead", ENG_AXIS_WORD, "on", "", 0, 0, eng_words_on_off,
     "on: rows of the next window are asked for as if this one were accepted whole"},
    ENG_AXES_STEP,
};

static const EngMetricDef g_metrics[] = {
    {"step_us", "us", -1, "wall", "one verify step beside its fetch"},
    {"step_ready_us", "us", -1, "wall", "one verify step whose rows are there"},
    {"cost_percent", "%", -1, "wall", "by which the former is longer"},
    {"token_us", "us", -1, "wall", "step time per token that a sequence gains"},
    {"gained_tokens", "tokens", +1, "none", "tokens that a sequence gains in a step"},
    {"fetch_us", "us", -1, "wall", "reading the rows of the windows verified, per step"},
    {"stall_us", "us", -1, "wall", "waiting for them, per step"},
    {"hidden", "share", +1, "wall", "1 - stall / fetch, not below 0"},
    {"window_rows", "rows", 0, "none", "rows that a verify step needs"},
    {"rejected_rows", "rows", -1, "none", "of these, rows of rejected drafts"},
    {"ahead_share", "share", +1, "none",
     "windows of sequences whose rows had been asked for in the step before, and were kept"},
    {"kept_rows", "rows", +1, "none", "asked for ahead and kept, per step"},
    {"cancelled_rows", "rows", -1, "none",
     "asked for ahead and cancelled before they were read, per step"},
    {"vain_rows", "rows", -1, "none", "asked for ahead, read and then cancelled, per step"},
    {"vain_share", "share", -1, "none", "rows of rejected drafts and vain rows, of all rows read"},
    {"emulated", "", 0, "none", "1: the window is paced or reads are delayed"},
};

/* A window of every sequence. */
typedef struct Window {
    int64_t at[MAX_SEQUENCES];
    int gained[MAX_SEQUENCES];   /* accepted drafts and one more; 0: guessed behind a wrong one */
    bool guessed[MAX_SEQUENCES]; /* all drafts and the token after them */
} Window;

typedef struct State {
    EngStep step;
    EngRng rng;
    Window windows[2]; /* of a step and of the next */
    double acceptance;
    bool ahead;
    int64_t sequences, draft;
    int64_t known;                  /* tokens of the stream up to the last window's begin */
    EngStepSums timed, ready;       /* of the sample */
    int64_t gained, rejected, kept; /* tokens; windows */
    EngPrefetchStats before;
} State;

/* ---- plan ---- */

static EngStatus check(const EngPoint *point, EngErr *why)
{
    EngStepSpec spec;
    EngBackboneSize size;
    EngStatus status = eng_step_spec_read(point, &spec, why);
    return status ? status : eng_backbone_size(&spec.backbone, &size, why);
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngStepSpec spec;
    *need = (EngNeed){.corpus = eng_point_word(point, "corpus"),
                      .preset = eng_point_word(point, "preset")};
    EngStatus status = eng_step_spec_read(point, &spec, err);
    if (!status) status = eng_step_spec_bytes(&spec, &need->private_bytes, err);
    if (!status) need->max_tokens = spec.text;
    return status;
}

static double estimate_ns(const EngPoint *point)
{
    EngStepSpec spec;
    if (eng_step_spec_read(point, &spec, NULL)) return 0;
    double rows = (double)(spec.chunk * spec.shapes[0].columns);
    return 2 * ENG_STEP_CHAIN * (eng_step_spec_ns(&spec) + EST_NS_PER_ROW * rows);
}

/* ---- life ---- */

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_step_destroy(&state->step);
    eng_free(state);
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "speculate", err);
    if (status) return status;
    state->acceptance = eng_point_real(point, "acceptance");
    state->ahead = !strcmp(eng_point_word(point, "ahead"), "on");
    state->sequences = eng_point_int(point, "sequences");
    state->draft = eng_point_int(point, "draft");
    eng_rng_seed(&state->rng, bench->seed ^ SEED_ACCEPTED);
    status = eng_step_create(&state->step, bench, point, err);
    for (int64_t i = 0; i < state->step.windows.n && !status; i++)
        if (state->step.windows.at[i] >= state->known) state->known = state->step.windows.at[i] + 1;
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static EngStatus prepare(void *opaque, EngErr *err)
{
    State *state = opaque;
    state->timed = state->ready = (EngStepSums){0};
    state->gained = state->rejected = state->kept = 0;
    EngStatus status = eng_step_prepare(&state->step, err);
    eng_prefetch_stats(state->step.prefetcher, &state->before);
    return status;
}

/* ---- windows ---- */

/* Draws what will be accepted of a sequence's window at `at`. */
static void draw(State *state, Window *window, int64_t s, int64_t at)
{
    int n = eng_drafts_accepted(&state->rng, state->draft, state->acceptance);
    window->at[s] = at;
    window->gained[s] = n + 1;
    window->guessed[s] = n == state->draft && eng_rng_unit(&state->rng) < state->acceptance;
}

/* Texts begin anew, each in a window of its own. */
static void draw_first(State *state, Window *window)
{
    EngWindows *w = &state->step.windows;
    for (int64_t s = 0; s < state->sequences; s++)
        draw(state, window, s, w->at[eng_windows_next(w)]);
}

/* Of sequences from `from` on: `gained` tokens on, or as many as a window has where everything is
 * taken for guessed. */
static void draw_next(State *state, const Window *last, int64_t from, bool whole, Window *window)
{
    for (int64_t s = from; s < state->sequences; s++)
        draw(state, window, s, last->at[s] + (whole ? state->draft + 1 : last->gained[s]));
}

/* The windows after these, as if all of these were right: nobody knows yet which are not. */
static void guess_next(State *state, const Window *now, Window *next)
{
    draw_next(state, now, 0, true, next);
    for (int64_t s = 0; s < state->sequences; s++)
        if (!now->guessed[s]) next->gained[s] = 0;
}

/* Row numbers of pass `pass` (modulo 2) to the prefetcher, but for those of `asked` sequences,
 * which it has. Rejected drafts are tokens from elsewhere in the same text. */
static EngStatus submit(State *state, int64_t pass, int64_t asked, EngErr *err)
{
    EngStep *step = &state->step;
    const Window *window = &state->windows[pass];
    int64_t n = state->draft + 1;
    for (int64_t s = 0; s < state->sequences; s++) {
        eng_step_take_text(step, s, window->at[s]);
        const int32_t *stream = step->windows.stream;
        for (int64_t j = window->gained[s]; j < n; j++)
            step->tokens[s * n + j] =
                window->gained[s] ? eng_drafts_rejected(stream, state->known, window->at[s] + j)
                                  : stream[(window->at[s] + j) * SCATTER_GUESS % state->known];
    }
    eng_step_keep_ids(step, pass * step->spec.chunk, step->tokens, step->spec.chunk);
    return asked ? eng_step_submit_rest(step, pass, err) : eng_step_submit(step, pass, err);
}

/* ---- steps ---- */

static EngStatus ready_step(State *state, int64_t pass, EngErr *err)
{
    EngStep *step = &state->step;
    step->sums = &state->ready;
    EngStatus status = submit(state, pass, 0, err);
    if (!status) status = eng_step_hold(step, pass, err);
    int64_t from = eng_now_ns();
    if (!status) status = eng_step_hash(step, pass, err);
    if (!status) status = eng_step_forward(step, pass, err);
    state->ready.step_ns += eng_now_ns() - from;
    state->ready.steps++;
    return status;
}

/* *asked: sequences, the first ones, whose rows of this pass have been asked for; then: of the
 * next. The last step of a text asks for nothing ahead. */
static EngStatus timed_step(State *state, int64_t pass, bool last, int64_t *asked, EngErr *err)
{
    EngStep *step = &state->step;
    Window *now = &state->windows[pass], *next = &state->windows[1 - pass];
    bool ahead = state->ahead && !last;
    int64_t kept = 0;
    EngStatus status = ENG_OK;
    step->sums = &state->timed;
    step->ahead = false;
    state->kept += *asked;
    if (ahead) guess_next(state, now, next);
    while (ahead && kept < state->sequences && now->guessed[kept]) kept++;
    int64_t from = eng_now_ns();
    if (*asked < state->sequences) status = submit(state, pass, *asked, err);
    if (ahead && !status) status = submit(state, 1 - pass, 0, err);
    if (!status) status = eng_step_forward(step, pass, err);
    if (ahead && !status) eng_step_keep(step, 1 - pass, kept * (state->draft + 1));
    state->timed.step_ns += eng_now_ns() - from;
    state->timed.steps++;
    for (int64_t s = 0; s < state->sequences; s++) {
        state->gained += now->gained[s];
        state->rejected += state->draft + 1 - now->gained[s];
    }
    draw_next(state, now, kept, false, next);
    *asked = kept;
    return status;
}

static EngStatus ready_steps(State *state, EngErr *err)
{
    EngStatus status = ENG_OK;
    draw_first(state, &state->windows[0]);
    for (int64_t i = 0, pass = 0; i < ENG_STEP_CHAIN && !status; i++, pass = 1 - pass) {
        status = ready_step(state, pass, err);
        if (!status) draw_next(state, &state->windows[pass], 0, false, &state->windows[1 - pass]);
    }
    return status;
}

static EngStatus timed_steps(State *state, EngErr *err)
{
    EngStatus status = ENG_OK;
    int64_t asked = 0;
    draw_first(state, &state->windows[0]);
    for (int64_t i = 0, pass = 0; i < ENG_STEP_CHAIN && !status; i++, pass = 1 - pass)
        status = timed_step(state, pass, i + 1 == ENG_STEP_CHAIN, &asked, err);
    return status;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    EngStatus status = eng_nvtx_traced() ? ENG_OK : ready_steps(state, err);
    return status ? status : timed_steps(state, err);
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    *residual = (EngResidual){.of = "exact", .pass = true};
    EngStatus status = prepare(state, err);
    state->step.residual = residual;
    if (!status) status = run(state, err);
    state->step.residual = NULL;
    eng_step_over(&state->step);
    if (residual->pass)
        snprintf(residual->note, sizeof residual->note, "0 of %lld rows and values differ",
                 (long long)residual->n_checked);
    return status;
}

static double per(double sum, int64_t n)
{
    return n ? sum / (double)n : NAN;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    State *state = opaque;
    const EngStepSpec *spec = &state->step.spec;
    const EngStepSums *t = &state->timed;
    EngPrefetchStats now;
    (void)timing;
    eng_step_over(&state->step);
    eng_prefetch_stats(state->step.prefetcher, &now);
    double columns = spec->shapes[0].columns, row = columns * spec->modules;
    double cancelled = (double)(now.rows_dropped - state->before.rows_dropped);
    double vain = (double)(now.rows_in_vain - state->before.rows_in_vain);
    double window = (double)spec->chunk * row;
    double rejected = (double)state->rejected * row, read = (double)t->steps * window + vain;
    values[0] = per((double)t->step_ns * 1e-3, t->steps);
    values[1] = per((double)state->ready.step_ns * 1e-3, state->ready.steps);
    values[2] = 100 * (values[0] / values[1] - 1);
    values[3] = per((double)t->step_ns * 1e-3 * (double)state->sequences, state->gained);
    values[4] = per((double)state->gained / (double)state->sequences, t->steps);
    values[5] = per((double)t->fetch_ns[0] * 1e-3, t->steps);
    values[6] = per((double)t->stall_ns[0] * 1e-3, t->steps);
    values[7] = eng_hidden_fraction(t->fetch_ns[0], t->stall_ns[0]);
    values[8] = window;
    values[9] = per(rejected, t->steps);
    values[10] = per((double)state->kept / (double)state->sequences, t->steps);
    values[11] = values[10] * window;
    values[12] = per(cancelled, t->steps);
    values[13] = per(vain, t->steps);
    values[14] = read > 0 ? (rejected + vain) / read : NAN;
    values[15] = eng_step_emulated(spec);
}

const EngExperiment eng_experiment_speculate = {
    .name = "speculate",
    .question = "What do rejected drafts cost where rows must be fetched?",
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
