/* Predictions of measurements, and how far they are off; see calibration.h. */
#include "sim/planner/calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/planner/knee.h"

#define LINES_PER_ROW 5 /* 256 values and 8 scales, split or packed */
#define ROW_BYTES     264
#define LAYERS        2

static const struct {
    const char *name;
    double gate;
} g_models[ENG_MODEL_COUNT] = {
    [ENG_MODEL_LADDER] = {"latency ladder", 0.15},
    [ENG_MODEL_GATHER] = {"row gather", 0.20},
    [ENG_MODEL_DRIVE] = {"reads by depth", 0.12},
    [ENG_MODEL_PREFETCH] = {"prefetch under compute", 0.15},
};

const char *eng_model_name(EngModelKind model)
{
    return (unsigned)model < ENG_MODEL_COUNT ? g_models[model].name : NULL;
}

double eng_model_gate(EngModelKind model)
{
    return g_models[model].gate;
}

/* ---- curves ------------------------------------------------------------------------------------
 */

static const EngMeasuredCurve *find_curve(const EngMeasuredCurve *curves, int n, const char *pages,
                                          int threads)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(curves[i].pages, pages) && curves[i].threads == threads) return &curves[i];
    return NULL;
}

/* Straight between neighbours over both logarithms; held at its ends. */
static double curve_at(const EngMeasuredCurve *curve, double x, bool *outside)
{
    int last = curve->n - 1, i = 0;
    if (x < curve->at[0] || x > curve->at[last]) *outside = true;
    if (x <= curve->at[0]) return curve->values[0];
    if (x >= curve->at[last]) return curve->values[last];
    while (curve->at[i + 1] < x) i++;
    double part = log(x / curve->at[i]) / log(curve->at[i + 1] / curve->at[i]);
    return curve->values[i] * pow(curve->values[i + 1] / curve->values[i], part);
}

/* Both, or the one, cut where they do not fit. */
static void basis_of(EngPrediction *p, const char *one, const char *other)
{
    int room = (int)sizeof p->basis - 1;
    if (*other)
        snprintf(p->basis, sizeof p->basis, "%.*s, %.*s", room / 2 - 2, one, room / 2 - 2, other);
    else
        snprintf(p->basis, sizeof p->basis, "%.*s", room, one);
}

/* ---- models ------------------------------------------------------------------------------------
 */

static bool predict_ladder(const EngCalibration *c, const EngRecordedValue *v, EngPrediction *p)
{
    char access[32], pages[32];
    double bytes = eng_recorded_number(v->axes, "bytes");
    eng_recorded_axis(v->axes, "access", access);
    eng_recorded_axis(v->axes, "pages", pages);
    const EngMeasuredCurve *curve = find_curve(c->latency, c->n_latency, pages, 1);
    if (strncmp(access, "chains", 6) || !curve || eng_recorded_number(v->axes, "threads") != 1)
        return false;
    double latency = curve_at(curve, bytes, &p->extrapolated);
    double chains = access[6] ? strtod(access + 6, NULL) : eng_recorded_number(v->axes, "chains");
    p->model = ENG_MODEL_LADDER;
    p->value = latency * 1e9;
    basis_of(p, curve->basis, "");
    if (!access[6] && chains == 1) return true;
    if (!(c->chains.latency > 0) || strcmp(pages, "2m")) return false;
    /* Another size has another latency; how many misses are under way is the core's. */
    latency *= c->chains.latency / curve_at(curve, c->chain_bytes, &p->extrapolated);
    p->value = 1e9 / eng_knee_rate(chains, latency, c->chains.most, c->chains.exponent);
    p->extrapolated |= chains > c->chains.tried;
    basis_of(p, c->chains.basis, curve->basis);
    return true;
}

static bool predict_gather(const EngCalibration *c, const EngRecording *recording,
                           const EngRecordedValue *v, EngPrediction *p)
{
    char pages[32], format[32];
    const EngRecordedValue *distinct =
        eng_recording_find(recording, v->experiment, v->axes, "distinct_bytes");
    eng_recorded_axis(v->axes, "pages", pages);
    const EngMeasuredCurve *lines =
        find_curve(c->lines, c->n_lines, pages, (int)eng_recorded_number(v->axes, "threads"));
    eng_recorded_axis(v->axes, "row_format", format);
    bool known = !strcmp(format, "fp8") || !strcmp(format, "fp8_packed");
    if (strcmp(v->metric, "cpu_us") || !known || !lines || !distinct) return false;
    const EngMeasuredCurve *latency = find_curve(c->latency, c->n_latency, pages, 1);
    double rate = curve_at(lines, eng_recorded_number(v->axes, "rows"), &p->extrapolated);
    double time = distinct->median / ROW_BYTES * LINES_PER_ROW / rate;
    if (latency) time += latency->values[latency->n - 1];
    p->model = ENG_MODEL_GATHER;
    p->value = time * 1e6;
    basis_of(p, lines->basis, "");
    return true;
}

static bool predict_drive(const EngCalibration *c, const EngRecording *recording,
                          const EngRecordedValue *v, EngPrediction *p)
{
    char text[32];
    const EngRecordedValue *rows =
        eng_recording_find(recording, v->experiment, v->axes, "batch_rows");
    double depth = eng_recorded_number(v->axes, "depth");
    eng_recorded_axis(v->axes, "io", text);
    if (strcmp(v->metric, "wall_us") || strcmp(text, "direct") || !rows || !(c->drive.latency > 0))
        return false;
    p->model = ENG_MODEL_DRIVE;
    p->value = 1e6 * rows->median /
               eng_knee_rate(depth, c->drive.latency, c->drive.most, c->drive.exponent);
    p->extrapolated = depth > c->drive.tried;
    basis_of(p, c->drive.basis, "");
    return true;
}

/* Seconds of a layer, and whether it computes: the fetch slows it then. 0: not known. */
static double layer_time(const EngCalibration *c, const EngRecordedValue *v, bool *computes)
{
    char window[32];
    double hidden = eng_recorded_number(v->axes, "hidden");
    eng_recorded_axis(v->axes, "window", window);
    *computes = !strcmp(window, "backbone");
    if (!*computes) return strncmp(window, "paced:", 6) ? 0 : strtod(window + 6, NULL) * 1e-6;
    for (int i = 0; i < c->n_layers; i++)
        if (c->widths[i] == hidden && eng_recorded_number(v->axes, "tokens") == 64)
            return c->layers[i];
    return 0;
}

static bool predict_prefetch(const EngCalibration *c, const EngRecordedValue *v, EngPrediction *p)
{
    char store[32];
    bool computes;
    double tokens = eng_recorded_number(v->axes, "tokens"), added;
    double layer = layer_time(c, v, &computes);
    eng_recorded_axis(v->axes, "store", store);
    const EngStepCost *cost = !strcmp(store, "memory") ? &c->memory : &c->uring;
    if (strcmp(v->metric, "step_us") || !(layer > 0) || !(cost->tokens > 0)) return false;
    static const EngSlowdowns none;
    double before = cost->before * tokens;
    /* What runs before the layers is part of the window; rows that are late wait behind both. */
    EngQueuedFetch fetch = {.window = before + layer, .fetch = cost->late * tokens};
    if (eng_queue_stalls(&fetch, 1, 0, computes ? &c->slowdowns : &none, &added, NULL))
        return false;
    p->model = ENG_MODEL_PREFETCH;
    p->value = 1e6 * (before + LAYERS * layer + cost->after * tokens + added);
    basis_of(p, cost->basis, computes ? c->layer_basis : "");
    return true;
}

bool eng_calibration_predict(const EngCalibration *calibration, const EngRecording *recording,
                             const EngRecordedValue *value, EngPrediction *prediction)
{
    *prediction = (EngPrediction){0};
    if (!strcmp(value->experiment, "ladder")) return predict_ladder(calibration, value, prediction);
    if (!strcmp(value->experiment, "gather"))
        return predict_gather(calibration, recording, value, prediction);
    if (!strcmp(value->experiment, "tier"))
        return predict_drive(calibration, recording, value, prediction);
    if (!strcmp(value->experiment, "prefetch"))
        return predict_prefetch(calibration, value, prediction);
    return false;
}

void eng_calibration_errors(const EngCalibration *calibration, const EngRecording *recording,
                            EngModelError *errors)
{
    memset(errors, 0, ENG_MODEL_COUNT * sizeof *errors);
    for (int i = 0; i < recording->n; i++) {
        const EngRecordedValue *v = &recording->values[i];
        EngPrediction p;
        if (!eng_calibration_predict(calibration, recording, v, &p)) continue;
        EngModelError *e = &errors[p.model];
        double off = (p.value - v->median) / v->median;
        e->n++;
        e->extrapolated += p.extrapolated;
        e->absolute += fabs(off);
        e->bias += off;
        if (e->at && fabs(off) <= fabs(e->worst)) continue;
        e->worst = off;
        e->at = v;
    }
    for (int m = 0; m < ENG_MODEL_COUNT; m++) {
        errors[m].absolute /= errors[m].n ? errors[m].n : 1;
        errors[m].bias /= errors[m].n ? errors[m].n : 1;
    }
}
