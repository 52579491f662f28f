/* Fitting the models' parameters to a recording; see calibration.h. */
#include "sim/planner/calibration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/planner/knee.h"

#define LEAST_EXPONENT 0.25
#define MOST_EXPONENT  64.0
#define BEST_SHARE     0.95
#define LINES_PER_ROW  5 /* 256 values and 8 scales, split or packed (eng_blocks_touched) */
#define ROW_BYTES      264
#define COLUMNS        24     /* of the tables that are measured */
#define FILE_ROWS      0x1p16 /* a head, of the table in a file */
#define LAYERS         2      /* of the steps that are measured */

typedef struct Fit {
    const EngRecording *recording;
    EngCalibration *out;
    EngStr *missing;
    EngErr *err;
} Fit;

/* A median that a part needs, its point added to the basis; ENG_UNSUPPORTED when it was not
 * measured.
 */
static EngStatus get(const Fit *f, const char *experiment, const char *axes, const char *metric,
                     double *value, char *basis)
{
    const EngRecordedValue *v = eng_recording_find(f->recording, experiment, axes, metric);
    if (!v)
        return ENG_FAIL(f->err, ENG_UNSUPPORTED, "%s: no %s of %s %s", f->recording->name, metric,
                        experiment, axes);
    *value = v->median;
    size_t n = strlen(basis);
    if (!strstr(basis, v->key))
        snprintf(basis + n, ENG_BASIS_TEXT - n, "%s%s %s", n ? ", " : "", v->experiment, v->key);
    return ENG_OK;
}

/* ---- curves ------------------------------------------------------------------------------------
 */

static EngMeasuredCurve *curve_of(EngMeasuredCurve *curves, int *n, const char *pages, int threads)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(curves[i].pages, pages) && curves[i].threads == threads) return &curves[i];
    if (*n == ENG_CURVES) return NULL;
    EngMeasuredCurve *curve = &curves[(*n)++];
    *curve = (EngMeasuredCurve){.threads = threads};
    snprintf(curve->pages, sizeof curve->pages, "%.7s", pages);
    return curve;
}

static void insert(EngMeasuredCurve *curve, double at, double value, const EngRecordedValue *point)
{
    int i = curve->n;
    if (i == ENG_CURVE_POINTS) return;
    for (; i && curve->at[i - 1] > at; i--) {
        curve->at[i] = curve->at[i - 1];
        curve->values[i] = curve->values[i - 1];
    }
    curve->at[i] = at;
    curve->values[i] = value;
    curve->n++;
    size_t n = strlen(curve->basis), room = sizeof curve->basis;
    if (!n)
        snprintf(curve->basis, room, "%s %s", point->experiment, point->key);
    else if (n + 40 < room)
        snprintf(curve->basis + n, room - n, " %s", point->key);
    else if (curve->basis[n - 1] != '.')
        snprintf(curve->basis + n, room - n, " ...");
}

static bool is_power_of_two(double x)
{
    int exponent;
    return frexp(x, &exponent) == 0.5;
}

/* Sizes that are calibrated are powers of two; what lies between is predicted. */
static EngStatus fit_latency(Fit *f)
{
    for (int i = 0; i < f->recording->n; i++) {
        const EngRecordedValue *v = &f->recording->values[i];
        char access[32], pages[32];
        double bytes = eng_recorded_number(v->axes, "bytes");
        if (strcmp(v->experiment, "ladder")) continue;
        eng_recorded_axis(v->axes, "access", access);
        eng_recorded_axis(v->axes, "pages", pages);
        if (strcmp(access, "chains") || !is_power_of_two(bytes) ||
            eng_recorded_number(v->axes, "chains") != 1)
            continue;
        EngMeasuredCurve *curve = curve_of(f->out->latency, &f->out->n_latency, pages, 1);
        if (curve) insert(curve, bytes, v->median * 1e-9, v);
    }
    if (f->out->n_latency && f->out->latency[0].n > 1) return ENG_OK;
    return ENG_FAIL(f->err, ENG_UNSUPPORTED, "%s: no latencies of at least two working sets",
                    f->recording->name);
}

/* Tables that are calibrated: 2^12, 2^15 and 2^17 rows a head (sweeps/calibrate.sweep). */
static bool is_calibrated_table(double rows)
{
    return rows == 0x1p12 || rows == 0x1p15 || rows == 0x1p17;
}

static double distinct_lines(const EngRecording *recording, const EngRecordedValue *v)
{
    const EngRecordedValue *bytes =
        eng_recording_find(recording, v->experiment, v->axes, "distinct_bytes");
    return bytes ? bytes->median / ROW_BYTES * LINES_PER_ROW : NAN;
}

static bool is_gather(const EngRecordedValue *v, const char *corpus, const char *format)
{
    char text[32];
    if (strcmp(v->experiment, "gather") || strcmp(v->metric, "cpu_us")) return false;
    eng_recorded_axis(v->axes, "corpus", text);
    if (corpus && strcmp(text, corpus)) return false;
    eng_recorded_axis(v->axes, "row_format", text);
    return !format || !strcmp(text, format);
}

static EngStatus fit_lines(Fit *f)
{
    for (int i = 0; i < f->recording->n; i++) {
        const EngRecordedValue *v = &f->recording->values[i];
        char pages[32];
        double rows = eng_recorded_number(v->axes, "rows");
        if (!is_gather(v, "uniform", "fp8") || !is_calibrated_table(rows)) continue;
        eng_recorded_axis(v->axes, "pages", pages);
        EngMeasuredCurve *curve = curve_of(f->out->lines, &f->out->n_lines, pages,
                                           (int)eng_recorded_number(v->axes, "threads"));
        double rate = distinct_lines(f->recording, v) / (v->median * 1e-6);
        if (curve && rate > 0) insert(curve, rows, rate, v);
        f->out->table_bytes = fmax(f->out->table_bytes, rows * COLUMNS * ROW_BYTES);
    }
    if (f->out->n_lines) return ENG_OK;
    return ENG_FAIL(f->err, ENG_UNSUPPORTED, "%s: no gathers of uniform rows", f->recording->name);
}

/* ---- knees -------------------------------------------------------------------------------------
 */

static double most_of(double latency, double n, double rate, double s)
{
    double rest = pow(1 / rate, s) - pow(latency / n, s);
    return rest > 0 ? pow(rest, -1 / s) : INFINITY;
}

/* The knee through three points: one request, `middle` and `last`. */
static EngStatus fit_knee(Fit *f, double latency, double middle, double middle_rate, double last,
                          double last_rate, EngKnee *knee)
{
    double low = LEAST_EXPONENT, high = MOST_EXPONENT;
    *knee = (EngKnee){.latency = latency, .tried = last};
    for (int i = 0; i < 200; i++) {
        double s = (low + high) / 2, most = most_of(latency, last, last_rate, s);
        bool too_slow = !isinf(most) && eng_knee_rate(middle, latency, most, s) < middle_rate;
        if (isinf(most) || too_slow)
            low = s;
        else
            high = s;
    }
    knee->exponent = (low + high) / 2;
    knee->most = most_of(latency, last, last_rate, knee->exponent);
    if (isfinite(knee->most) &&
        fabs(eng_knee_rate(middle, latency, knee->most, knee->exponent) / middle_rate - 1) < 0.01)
        return ENG_OK;
    *knee = (EngKnee){0};
    return ENG_FAIL(f->err, ENG_UNSUPPORTED,
                    "%s: no knee goes through 1 request in %g us, %g at %g/s and %g at %g/s",
                    f->recording->name, latency * 1e6, middle, middle_rate, last, last_rate);
}

#define CHAIN_AXES(n) "bytes=268435456 access=chains" n " chains=1 line=64 pages=2m threads=1"

static EngStatus fit_chains(Fit *f)
{
    EngCalibration *c = f->out;
    double one = 0, middle = 0, last = 0;
    char basis[ENG_BASIS_TEXT] = "";
    EngStatus status = get(f, "ladder", CHAIN_AXES("1"), "ns_per_load", &one, basis);
    if (!status) status = get(f, "ladder", CHAIN_AXES("32"), "ns_per_load", &middle, basis);
    if (!status) status = get(f, "ladder", CHAIN_AXES("64"), "ns_per_load", &last, basis);
    if (!status) status = fit_knee(f, one * 1e-9, 32, 1e9 / middle, 64, 1e9 / last, &c->chains);
    snprintf(c->chains.basis, sizeof basis, "%s", basis);
    c->chain_bytes = 0x1p28;
    return status;
}

static EngStatus drive_rate(Fit *f, int depth, double *rate, char *basis)
{
    char axes[96];
    double wall_us = 0, rows = 0;
    snprintf(axes, sizeof axes, "store=uring io=direct depth=%d tokens=16", depth);
    EngStatus status = get(f, "tier", axes, "wall_us", &wall_us, basis);
    if (!status) status = get(f, "tier", axes, "batch_rows", &rows, basis);
    if (!status) *rate = rows / (wall_us * 1e-6);
    return status;
}

/* A page is read for each row, since scales lie in memory. */
static EngStatus fit_drive(Fit *f)
{
    EngKnee *knee = &f->out->drive;
    double one = 0, middle = 0, last = 0, rate = 0;
    char basis[ENG_BASIS_TEXT] = "", unused[ENG_BASIS_TEXT] = "";
    EngStatus status = drive_rate(f, 1, &one, basis);
    if (!status) status = drive_rate(f, 8, &middle, basis);
    if (!status) status = drive_rate(f, 64, &last, basis);
    if (!status) status = fit_knee(f, 1 / one, 8, middle, 64, last, knee);
    if (status) return status;
    snprintf(knee->basis, sizeof basis, "%s", basis);
    knee->best = 64;
    f->out->file_bytes = FILE_ROWS * COLUMNS * ROW_BYTES;
    for (int depth = 32; depth; depth /= 2)
        if (!drive_rate(&(Fit){.recording = f->recording}, depth, &rate, unused) &&
            rate >= BEST_SHARE * last)
            knee->best = depth;
    return ENG_OK;
}

/* ---- steps -------------------------------------------------------------------------------------
 */

typedef struct Step {
    double step, ready, window; /* s */
} Step;

static EngStatus get_step(const Fit *f, const char *axes, Step *step, char *basis)
{
    EngStatus status = get(f, "prefetch", axes, "step_us", &step->step, basis);
    if (!status) status = get(f, "prefetch", axes, "step_ready_us", &step->ready, basis);
    if (!status) status = get(f, "prefetch", axes, "window_us", &step->window, basis);
    step->step *= 1e-6;
    step->ready *= 1e-6;
    step->window *= 1e-6;
    return status;
}

/* From a step of two paced layers that are too short to hide its fetch. */
static EngStatus fit_step(const Fit *f, const char *store, int tokens, double paced_us,
                          EngStepCost *cost)
{
    char axes[96];
    Step s;
    *cost = (EngStepCost){0};
    snprintf(axes, sizeof axes, "store=%s tokens=%d window=paced:%g hidden=512", store, tokens,
             paced_us);
    EngStatus status = get_step(f, axes, &s, cost->basis);
    if (status) return status;
    double layer = paced_us * 1e-6, before = s.window - layer;
    cost->tokens = tokens;
    cost->before = before / tokens;
    cost->after = fmax(0, s.ready - LAYERS * layer - before) / tokens;
    cost->late = (s.window + fmax(0, s.step - s.ready)) / tokens;
    return ENG_OK;
}

static EngStatus fit_layers(Fit *f)
{
    static const int widths[] = {64, 256, 512};
    EngCalibration *c = f->out;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char axes[96];
        Step s;
        snprintf(axes, sizeof axes, "store=memory tokens=64 window=backbone hidden=%d", widths[i]);
        EngStatus status = get_step(f, axes, &s, c->layer_basis);
        if (status) return status;
        c->widths[c->n_layers] = widths[i];
        c->layers[c->n_layers++] = s.ready - s.window - 64 * c->uring.after;
    }
    return ENG_OK;
}

static EngStatus fit_steps(Fit *f)
{
    EngStatus status = fit_step(f, "memory", 1024, 100, &f->out->memory);
    if (!status) status = fit_step(f, "uring", 64, 500, &f->out->uring);
    return status ? status : fit_layers(f);
}

static EngStatus fit_slowdowns(Fit *f)
{
    static const char axes[] = "gatherers=1 victim_tokens=64";
    EngCalibration *c = f->out;
    double compute = 0, fetch = 0;
    EngStatus status =
        get(f, "interference", axes, "slowdown_percent", &compute, c->slowdown_basis);
    if (!status)
        status = get(f, "interference", axes, "gather_slowdown_percent", &fetch, c->slowdown_basis);
    if (status) return status;
    c->slowdowns = (EngSlowdowns){.fetch = fmax(0, fetch / 100), .compute = fmax(0, compute / 100)};
    return ENG_OK;
}

/* ---- rates -------------------------------------------------------------------------------------
 */

/* The largest of an experiment's metric over points with `need` among their axes. 0: none. */
static double largest(const Fit *f, const char *experiment, const char *need, const char *metric,
                      int *threads, char *basis)
{
    double most = 0;
    for (int i = 0; i < f->recording->n; i++) {
        const EngRecordedValue *v = &f->recording->values[i];
        if (strcmp(v->experiment, experiment) || strcmp(v->metric, metric) ||
            !strstr(v->axes, need) || v->median <= most)
            continue;
        most = v->median;
        *threads = (int)eng_recorded_number(v->axes, "threads");
        snprintf(basis, ENG_BASIS_TEXT, "%s %s", v->experiment, v->key);
    }
    return most;
}

static EngStatus fit_rates(Fit *f)
{
    EngCalibration *c = f->out;
    int threads;
    c->read_bandwidth = 1e9 * largest(f, "stream", "pass=read", "gbps", &c->threads, c->read_basis);
    c->copy_bandwidth = 1e9 * largest(f, "stream", "pass=copy", "gbps", &threads, c->copy_basis);
    c->flops = 1e9 * largest(f, "project", "tokens=", "gflops", &threads, c->flops_basis);
    if (c->read_bandwidth > 0 && c->copy_bandwidth > 0 && c->flops > 0) return ENG_OK;
    return ENG_FAIL(f->err, ENG_UNSUPPORTED, "%s: no read stream, copy or product",
                    f->recording->name);
}

/* On the pages and by the threads that random rows are read with (calibrated_machine.c). Occasions
 * before it was measured lack it: nothing else rests on it. */
static EngStatus fit_populate(Fit *f)
{
    EngCalibration *c = f->out;
    double best = 0;
    for (int i = 0; i < f->recording->n; i++) {
        const EngRecordedValue *v = &f->recording->values[i];
        double threads = eng_recorded_number(v->axes, "threads");
        double rank = threads + (strstr(v->axes, "pages=2m") ? 1e6 : 0);
        if (strcmp(v->experiment, "populate") || rank <= best) continue;
        best = rank;
        c->populate_rate = 1e9 * v->median;
        snprintf(c->populate_basis, ENG_BASIS_TEXT, "%s %s", v->experiment, v->key);
    }
    return ENG_OK;
}

EngStatus eng_calibration_fit(const EngRecording *recording, EngStr *missing,
                              EngCalibration *calibration, EngErr *err)
{
    static EngStatus (*const parts[])(Fit *) = {fit_latency, fit_chains,  fit_lines,
                                                fit_drive,   fit_steps,   fit_slowdowns,
                                                fit_rates,   fit_populate};
    EngErr why = {0};
    Fit f = {.recording = recording, .out = calibration, .missing = missing, .err = &why};
    *calibration = (EngCalibration){0};
    snprintf(calibration->name, sizeof calibration->name, "%s", recording->name);
    snprintf(calibration->date, sizeof calibration->date, "%s", recording->date);
    snprintf(calibration->machine, sizeof calibration->machine, "%s", recording->machine);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        EngStatus status = parts[i](&f);
        if (!status) continue;
        if (!missing) return ENG_FAIL(err, status, "calibration: %s", why.text);
        eng_str_printf(missing, "%s\n", why.text);
    }
    return missing ? eng_str_status(missing, err) : ENG_OK;
}
