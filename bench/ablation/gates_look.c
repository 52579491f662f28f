/* When gates are looked at, and what they are joined with; see gates.h. */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "bench/ablation/crowd.h"
#include "bench/ablation/gates.h"
#include "bench/ablation/groups.h"
#include "bench/ablation/phrases.h"

#define NO_GROUP 255

const int eng_gate_points[ENG_GATE_POINTS] = {0, 1, 5, 20, 50, 100};

/* The first held-out tokens, at most `most`: as many as are predicted, whole sequences. */
static int64_t sample_of(const EngTrainData *data, const EngTrainConfig *config, int64_t most)
{
    int64_t n = (data->heldout.n - 1) / config->seq_len * config->seq_len;
    most = most / config->seq_len * config->seq_len;
    return n < most ? n : most;
}

/* The last token of a sample is predicted too: one more id is read. */
static EngStatus look(EngTrainer *trainer, const EngTrainData *data, int64_t n, EngTrainValueFn fn,
                      void *context, EngErr *err)
{
    EngTrainEval eval = {.value = fn, .context = context};
    double loss;
    int64_t predicted;
    return eng_trainer_evaluate(trainer, data->heldout.ids, n + 1, &eval, NULL, &loss, &predicted,
                                err);
}

/* ---- at a point of training ---- */

static void take_view(void *context, int layer, EngTrainValue what, int64_t first,
                      const EngReal *data, int64_t tokens, int64_t columns)
{
    eng_gate_view_take(context, layer, what, first, data, tokens, columns);
}

EngStatus eng_train_gates_at(EngTrainer *trainer, const EngTrainData *data, int percent,
                             EngTrainResultText *out, EngErr *err)
{
    const EngTrainConfig *config = eng_trainer_config(trainer);
    int64_t n = sample_of(data, config, ENG_GATE_SAMPLE_TOKENS);
    EngGateView view;
    if (!eng_train_has_gates(config) || n <= 0) return ENG_OK;
    EngStatus status = eng_gate_view_open(&view, config, 1, err);
    if (!status) status = look(trainer, data, n, take_view, &view, err);
    if (!status) status = eng_gate_view_put(&view, "gate", percent, out, err);
    eng_gate_view_close(&view);
    return status;
}

/* ---- at the end ---- */

typedef struct Look {
    EngGateView decile, foreign;
    EngPhrases phrases;
    EngStreamTally streams;
    uint8_t *foreign_tenth[ENG_MAX_LAYERS]; /* [n] of each module */
    bool has_gates;
} Look;

static void take_all(void *context, int layer, EngTrainValue what, int64_t first,
                     const EngReal *data, int64_t tokens, int64_t columns)
{
    Look *to = context;
    eng_stream_tally_take(&to->streams, layer, what, data, tokens, columns);
    if (!to->has_gates) return;
    eng_gate_view_take(&to->decile, layer, what, first, data, tokens, columns);
    eng_gate_view_take(&to->foreign, layer, what, first, data, tokens, columns);
    eng_phrases_take(&to->phrases, layer, what, first, data, tokens, columns);
}

/* Means of a crowd's shares over tenths by frequency. */
static EngStatus put_crowd(const EngCrowd *crowd, const uint8_t *tenth, int layer,
                           EngTrainResultText *out, EngErr *err)
{
    const struct {
        const char *what;
        const float *share;
    } shares[] = {
        {"foreign", crowd->foreign}, {"collided", crowd->collided}, {"unread", crowd->unread}};
    EngStatus status = ENG_OK;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        double sums[ENG_TRAIN_DECILES] = {0}, n[ENG_TRAIN_DECILES] = {0};
        char name[48];
        for (int64_t p = 0; p < crowd->n; p++) {
            if (tenth[p] >= ENG_TRAIN_DECILES || isnan(shares[i].share[p])) continue;
            sums[tenth[p]] += shares[i].share[p];
            n[tenth[p]]++;
        }
        snprintf(name, sizeof name, "rows_%s:%d", shares[i].what, layer);
        for (int d = 0; d < ENG_TRAIN_DECILES && !status; d++)
            status = eng_train_put(out, name, d, sums[d] / n[d], err);
    }
    return status;
}

/* Which tenth of [0, 1] a position's share of foreign reads lies in. */
static EngStatus group_foreign(const EngCrowd *crowd, uint8_t **group, EngErr *err)
{
    EngStatus status = eng_alloc_or((void **)group, (size_t)crowd->n, 1, "groups of tokens", err);
    for (int64_t p = 0; p < crowd->n && !status; p++) {
        int tenth =
            isnan(crowd->foreign[p]) ? NO_GROUP : (int)(crowd->foreign[p] * ENG_GATE_FOREIGN_BINS);
        (*group)[p] = (uint8_t)(tenth == ENG_GATE_FOREIGN_BINS ? tenth - 1 : tenth);
    }
    return status;
}

static EngStatus judge_rows(EngTrainer *trainer, const EngTrainData *data, const uint8_t *tenth,
                            int64_t n, Look *to, EngTrainResultText *out, EngErr *err)
{
    const EngTrainConfig *config = eng_trainer_config(trainer);
    int columns = (config->max_order - config->min_order + 1) * config->engram_heads;
    EngStatus status = ENG_OK;
    for (int m = 0; m < config->engram_layers && !status; m++) {
        EngCrowd crowd;
        char name[48];
        snprintf(name, sizeof name, "gathered_bytes:%d", config->engram_at[m]);
        status =
            eng_train_put(out, name, 0, (double)columns * config->row_dims * sizeof(float), err);
        if (status || config->rows == ENG_ROWS_SHUFFLED) continue;
        status = eng_crowd_count(trainer, data, m, config->tokens, n, &crowd, err);
        if (status) break;
        status = put_crowd(&crowd, tenth, config->engram_at[m], out, err);
        if (!status) status = group_foreign(&crowd, &to->foreign_tenth[m], err);
        eng_crowd_free(&crowd);
    }
    return status;
}

static EngStatus open_look(EngTrainer *trainer, const EngTrainData *data, const uint8_t *tenth,
                           int64_t n, Look *to, EngTrainResultText *out, EngErr *err)
{
    const EngTrainConfig *config = eng_trainer_config(trainer);
    to->streams.config = config;
    to->has_gates = eng_train_has_gates(config);
    if (!to->has_gates) return ENG_OK;
    EngStatus status = judge_rows(trainer, data, tenth, n, to, out, err);
    if (!status) status = eng_gate_view_open(&to->decile, config, ENG_TRAIN_DECILES, err);
    if (!status) status = eng_gate_view_open(&to->foreign, config, ENG_GATE_FOREIGN_BINS, err);
    to->decile.n = n;
    to->foreign.brief = true;
    /* Without tenths of foreign reads no position is in one. */
    to->foreign.n = config->rows == ENG_ROWS_SHUFFLED ? 0 : n;
    for (int m = 0; m < config->engram_layers; m++) {
        to->decile.group[m] = tenth;
        to->foreign.group[m] = to->foreign_tenth[m];
    }
    return status ? status : eng_phrases_choose(data, config, n, &to->phrases, err);
}

static EngStatus put_look(const Look *from, const EngTrainData *data, EngTrainResultText *out,
                          EngErr *err)
{
    EngStatus status = eng_stream_tally_put(&from->streams, out, err);
    if (!from->has_gates) return status;
    if (!status) status = eng_gate_view_put(&from->decile, "gate_decile", 0, out, err);
    if (!status) status = eng_gate_view_put(&from->foreign, "gate_foreign", 0, out, err);
    return status ? status : eng_phrases_put(&from->phrases, data, out, err);
}

EngStatus eng_train_judge_gates(EngTrainer *trainer, const EngTrainData *data,
                                EngTrainResultText *out, EngErr *err)
{
    const EngTrainConfig *config = eng_trainer_config(trainer);
    int64_t n = sample_of(data, config, ENG_GATE_TOKENS);
    EngTrainGrouping tenths = {0};
    double counts[ENG_TRAIN_DECILES];
    Look *to = NULL;
    if (n <= 0 || (!eng_train_has_gates(config) && config->model.streams < 2)) return ENG_OK;
    EngStatus status = eng_alloc_or((void **)&to, 1, sizeof *to, "a look at gates", err);
    if (status) return status;
    /* Tenths of the whole held-out text, as losses have them. The n-gram at a position tells the
     * token behind it. */
    status = eng_train_by_frequency(data, data->heldout.n, &tenths, counts, err);
    if (!status) status = open_look(trainer, data, tenths.group + 1, n, to, out, err);
    if (!status) status = look(trainer, data, n, take_all, to, err);
    if (!status) status = put_look(to, data, out, err);
    eng_gate_view_close(&to->decile);
    eng_gate_view_close(&to->foreign);
    for (int m = 0; m < ENG_MAX_LAYERS; m++) eng_free(to->foreign_tenth[m]);
    eng_free(to);
    eng_train_grouping_free(&tenths);
    return status;
}
