/* Counting gates; see gates.h. What is looked at when is in gates_look.c. */
#include "bench/ablation/gates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "bench/experiments/support.h"
#include "kernels/ref/train_gate.h"

#define CLOSED 0.05

bool eng_train_has_gates(const EngTrainConfig *config)
{
    return config->engram_layers > 0 && !config->gate_off && config->fusion != ENG_FUSION_INPUT;
}

static int module_at(const EngTrainConfig *config, int layer)
{
    for (int m = 0; m < config->engram_layers; m++)
        if (config->engram_at[m] == layer) return m;
    return -1;
}

/* ---- tallies ---- */

EngStatus eng_gate_view_open(EngGateView *view, const EngTrainConfig *config, int n_groups,
                             EngErr *err)
{
    int streams = config->fusion == ENG_FUSION_STREAMS ? config->model.streams : 1;
    size_t modules = (size_t)config->engram_layers, groups = (size_t)n_groups;
    *view =
        (EngGateView){.config = config, .n_groups = n_groups, .streams = streams, .n = INT64_MAX};
    EngStatus status = eng_alloc_or((void **)&view->tallies, modules * (size_t)streams * groups,
                                    sizeof *view->tallies, "tallies of gates", err);
    if (!status)
        status = eng_alloc_or((void **)&view->unused, modules * groups, sizeof *view->unused,
                              "tallies of gates", err);
    return status;
}

void eng_gate_view_close(EngGateView *view)
{
    eng_free(view->tallies);
    eng_free(view->unused);
    *view = (EngGateView){0};
}

static EngGateTally *tally_of(const EngGateView *view, int module, int stream, int group)
{
    return view->tallies +
           ((size_t)module * (size_t)view->streams + (size_t)stream) * (size_t)view->n_groups +
           group;
}

/* The group of a position, or -1. */
static int group_of(const EngGateView *view, int module, int64_t position)
{
    const uint8_t *group = view->group[module];
    if (position >= view->n) return -1;
    if (!group) return 0;
    return group[position] < view->n_groups ? group[position] : -1;
}

static void count_gate(EngGateTally *tally, double gate)
{
    tally->n++;
    tally->gate += gate;
    tally->closed += gate <= CLOSED;
    tally->at_05 += gate <= CLOSED || gate >= 1 - CLOSED;
    tally->at_10 += gate <= 0.1 || gate >= 0.9;
    tally->gate_bins[eng_bin_of(gate, 0, 1, ENG_GATE_BINS)]++;
}

static void count_score(EngGateTally *tally, EngGateFormula formula, double score)
{
    double most = eng_signed_log(ENG_GATE_SCORE_LIMIT);
    tally->n_scores++;
    tally->score += fabs(score);
    tally->slope += eng_ref_gate_slope(formula, score);
    tally->score_bins[eng_bin_of(eng_signed_log(score), -most, most, ENG_GATE_BINS)]++;
}

void eng_gate_view_take(EngGateView *view, int layer, EngTrainValue what, int64_t first,
                        const EngReal *data, int64_t tokens, int64_t columns)
{
    int module = module_at(view->config, layer);
    if ((what != ENG_TV_SCORE && what != ENG_TV_GATE) || module < 0) return;
    for (int64_t t = 0; t < tokens; t++) {
        int group = group_of(view, module, first + t), closed = 0;
        if (group < 0) continue;
        for (int s = 0; s < view->streams && s < columns; s++) {
            double value = (double)data[t * columns + s];
            EngGateTally *tally = tally_of(view, module, s, group);
            if (what == ENG_TV_SCORE) {
                count_score(tally, view->config->gate, value);
            } else {
                count_gate(tally, value);
                closed += value <= CLOSED;
            }
        }
        if (closed == view->streams) view->unused[module * view->n_groups + group]++;
    }
}

/* ---- tallies to series ---- */

/* Four digits: shares of samples, many of them in a committed file. */
static EngStatus put_share(EngTrainResultText *out, const char *name, int64_t step, double value,
                           EngErr *err)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    return eng_train_put(out, name, step, atof(text), err);
}

static EngStatus put_tally(const EngGateTally *tally, bool brief, const char *prefix, int layer,
                           int stream, int64_t step, EngTrainResultText *out, EngErr *err)
{
    double n = (double)tally->n, scores = (double)tally->n_scores;
    const struct {
        const char *what;
        double value;
    } values[] = {{"mean", tally->gate / n},
                  {"closed", (double)tally->closed / n},
                  {"saturated05", (double)tally->at_05 / n},
                  {"saturated10", (double)tally->at_10 / n},
                  {"slope", tally->slope / scores},
                  {"score", tally->score / scores}};
    EngStatus status = ENG_OK;
    for (size_t i = 0; i < (brief ? 2 : sizeof values / sizeof *values) && !status; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s:%s:%d:%d", prefix, values[i].what, layer, stream);
        status = put_share(out, name, step, values[i].value, err);
    }
    return status;
}

static EngStatus put_histograms(const EngGateTally *tally, const char *prefix, int layer,
                                int stream, int64_t step, EngTrainResultText *out, EngErr *err)
{
    char name[64];
    snprintf(name, sizeof name, "%s:%lld", prefix, (long long)step);
    EngStatus status = eng_train_put_histogram(out, name, layer, stream, "linear", 0, 1,
                                               tally->gate_bins, ENG_GATE_BINS, err);
    if (status) return status;
    snprintf(name, sizeof name, "%s_score:%lld", prefix, (long long)step);
    return eng_train_put_histogram(out, name, layer, stream, "signed_log", -ENG_GATE_SCORE_LIMIT,
                                   ENG_GATE_SCORE_LIMIT, tally->score_bins, ENG_GATE_BINS, err);
}

static EngStatus put_group(const EngGateView *view, int module, int group, const char *prefix,
                           int64_t step, EngTrainResultText *out, EngErr *err)
{
    int layer = view->config->engram_at[module];
    double n = (double)tally_of(view, module, 0, group)->n;
    double unused = (double)view->unused[module * view->n_groups + group];
    char name[96];
    EngStatus status = ENG_OK;
    for (int s = 0; s < view->streams && !status; s++) {
        const EngGateTally *tally = tally_of(view, module, s, group);
        status = put_tally(tally, view->brief, prefix, layer, s, step, out, err);
        if (!status && !view->brief)
            status = put_histograms(tally, prefix, layer, s, step, out, err);
    }
    snprintf(name, sizeof name, "%s:n:%d", prefix, layer);
    if (!status) status = eng_train_put(out, name, step, n, err);
    snprintf(name, sizeof name, "%s:unused:%d", prefix, layer);
    return status ? status : put_share(out, name, step, unused / n, err);
}

EngStatus eng_gate_view_put(const EngGateView *view, const char *prefix, int64_t step,
                            EngTrainResultText *out, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int m = 0; m < view->config->engram_layers; m++)
        for (int g = 0; g < view->n_groups && !status; g++)
            if (tally_of(view, m, 0, g)->n)
                status = put_group(view, m, g, prefix, step + g, out, err);
    return status;
}

/* ---- streams ---- */

static void take_streams(EngStreamTally *tally, int layer, const EngReal *data, int64_t tokens,
                         int64_t width)
{
    int n = tally->config->model.streams;
    int64_t d = width / n;
    tally->n[layer] += tokens;
    for (int64_t t = 0; t < tokens; t++)
        for (int a = 0; a < n; a++)
            for (int b = 0; b < a; b++) {
                const EngReal *x = data + t * width + a * d, *y = data + t * width + b * d;
                double xx = 0, yy = 0, xy = 0;
                for (int64_t i = 0; i < d; i++) {
                    xx += (double)x[i] * (double)x[i];
                    yy += (double)y[i] * (double)y[i];
                    xy += (double)x[i] * (double)y[i];
                }
                tally->cosine[layer][b][a] += xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
            }
}

void eng_stream_tally_take(EngStreamTally *tally, int layer, EngTrainValue what,
                           const EngReal *data, int64_t tokens, int64_t columns)
{
    int module = module_at(tally->config, layer);
    if (layer > ENG_GATE_MAX_LAYERS || tally->config->model.streams < 2) return;
    if (what == ENG_TV_STREAMS) take_streams(tally, layer, data, tokens, columns);
    if (what != ENG_TV_GATE || module < 0 || !eng_train_has_gates(tally->config)) return;
    if (columns != tally->config->model.streams) return; /* one gate for all */
    tally->n_gates[module] += tokens;
    for (int64_t t = 0; t < tokens; t++)
        for (int a = 0; a < columns; a++) {
            double gate = (double)data[t * columns + a];
            tally->sum[module][a] += gate;
            for (int b = 0; b <= a; b++)
                tally->product[module][b][a] += gate * (double)data[t * columns + b];
        }
}

static EngStatus put_pair(const EngStreamTally *tally, int a, int b, EngTrainResultText *out,
                          EngErr *err)
{
    const EngTrainConfig *config = tally->config;
    char cosine[48], of_gates[48], correlation[48];
    snprintf(cosine, sizeof cosine, "stream_cosine:%d-%d", a, b);
    snprintf(of_gates, sizeof of_gates, "gate_cosine:%d-%d", a, b);
    snprintf(correlation, sizeof correlation, "gate_correlation:%d-%d", a, b);
    EngStatus status = ENG_OK;
    for (int l = 0; l <= config->model.layers && l <= ENG_GATE_MAX_LAYERS && !status; l++)
        if (tally->n[l])
            status =
                eng_train_put(out, cosine, l, tally->cosine[l][a][b] / (double)tally->n[l], err);
    for (int m = 0; m < config->engram_layers && !status; m++) {
        double n = (double)tally->n_gates[m];
        if (n < 2) continue;
        double aa = tally->product[m][a][a], bb = tally->product[m][b][b];
        double ab = tally->product[m][a][b];
        double mean_a = tally->sum[m][a] / n, mean_b = tally->sum[m][b] / n;
        double var_a = aa / n - mean_a * mean_a, var_b = bb / n - mean_b * mean_b;
        /* Sums of n rounded products cannot tell less than this from no movement. */
        bool moves = var_a > 1e-12 && var_b > 1e-12;
        status = eng_train_put(out, of_gates, config->engram_at[m], ab / sqrt(aa * bb), err);
        if (!status && moves)
            status = eng_train_put(out, correlation, config->engram_at[m],
                                   (ab / n - mean_a * mean_b) / sqrt(var_a * var_b), err);
    }
    return status;
}

EngStatus eng_stream_tally_put(const EngStreamTally *tally, EngTrainResultText *out, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int a = 0; a < tally->config->model.streams && !status; a++)
        for (int b = a + 1; b < tally->config->model.streams && !status; b++)
            status = put_pair(tally, a, b, out, err);
    return status;
}
