/* Judging a trained arm; see judge.h. */
#include "bench/ablation/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "bench/ablation/gates.h"
#include "bench/ablation/groups.h"

#define STATES_MAGIC "engram-states-1"

/* ---- residual streams of some tokens ---- */

typedef struct Lens {
    EngTrainStates states;
    int streams_layers; /* entries that came */
    bool failed;
} Lens;

static void keep_streams(void *context, int layer, EngTrainValue what, int64_t first,
                         const EngReal *data, int64_t tokens, int64_t columns)
{
    Lens *lens = context;
    EngTrainStates *s = &lens->states;
    if (what != ENG_TV_STREAMS || layer >= s->layers) return;
    if (!s->values) {
        s->columns = columns;
        s->values = eng_alloc_array((size_t)s->layers * (size_t)s->rows * (size_t)columns,
                                    sizeof *s->values);
        lens->failed = !s->values;
    }
    if (!s->values || columns != s->columns) return;
    float *layer_values = s->values + (size_t)layer * (size_t)s->rows * (size_t)columns;
    for (int64_t t = 0; t < tokens; t++) {
        int64_t at = first + t, row = at / ENG_TRAIN_LENS_EVERY;
        /* The last of each few: its context is the longest. */
        if (at % ENG_TRAIN_LENS_EVERY != ENG_TRAIN_LENS_EVERY - 1 || row >= s->rows) continue;
        for (int64_t c = 0; c < columns; c++)
            layer_values[row * columns + c] = (float)data[t * columns + c];
    }
}

static EngStatus states_write(const EngTrainStates *states, const char *path, EngErr *err)
{
    EngWriter writer;
    size_t cells = (size_t)states->layers * (size_t)states->rows * (size_t)states->columns;
    EngStatus status = eng_writer_open(&writer, path, err);
    if (status) return status;
    status = eng_writer_printf(&writer, err, STATES_MAGIC " %d %lld %lld\n", states->layers,
                               (long long)states->rows, (long long)states->columns);
    if (!status)
        status = eng_writer_put(&writer, states->values, cells * sizeof *states->values, err);
    if (!status) return eng_writer_commit(&writer, err);
    eng_writer_close(&writer);
    return status;
}

EngStatus eng_train_states_read(const char *path, EngTrainStates *states, EngErr *err)
{
    char *bytes = NULL;
    size_t n = 0;
    long long rows, columns;
    int header = 0;
    *states = (EngTrainStates){0};
    EngStatus status = eng_file_read(path, &bytes, &n, err);
    if (status) return status;
    bool known = sscanf(bytes, STATES_MAGIC " %d %lld %lld%n", &states->layers, &rows, &columns,
                        &header) == 3 &&
                 states->layers > 0 && rows > 0 && columns > 0 && rows < 1 << 20 &&
                 columns < 1 << 20;
    size_t cells = known ? (size_t)states->layers * (size_t)rows * (size_t)columns : 0;
    if (!known || n != (size_t)header + 1 + cells * sizeof *states->values)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: truncated, or no residual streams", path);
    if (!status)
        status = eng_alloc_or((void **)&states->values, cells, sizeof *states->values, path, err);
    if (!status) {
        memcpy(states->values, bytes + header + 1, cells * sizeof *states->values);
        states->rows = rows;
        states->columns = columns;
    }
    eng_free(bytes);
    return status;
}

void eng_train_states_free(EngTrainStates *states)
{
    eng_free(states->values);
    *states = (EngTrainStates){0};
}

/* ---- LogitLens ---- */

static void log_softmax(const EngReal *logits, int n, double *out)
{
    double most = logits[0], sum = 0;
    for (int i = 1; i < n; i++) most = fmax(most, logits[i]);
    for (int i = 0; i < n; i++) sum += exp(logits[i] - most);
    for (int i = 0; i < n; i++) out[i] = logits[i] - most - log(sum);
}

/* Row by row: logits of all layers for all rows would be large. */
static EngStatus lens_of(EngTrainer *trainer, const EngTrainStates *states, EngTrainResultText *out,
                         EngErr *err)
{
    int vocab = eng_trainer_config(trainer)->model.vocab, n = states->layers;
    EngReal *row = NULL, *logits = NULL;
    double *final = NULL, *here = NULL, *kl = NULL;
    size_t columns = (size_t)states->columns, layer = (size_t)states->rows * columns;
    EngStatus status = eng_alloc_or((void **)&row, columns, sizeof *row, "streams", err);
    if (!status)
        status = eng_alloc_or((void **)&logits, (size_t)vocab, sizeof *logits, "logits", err);
    if (!status)
        status = eng_alloc_or((void **)&final, (size_t)vocab, sizeof *final, "logits", err);
    if (!status) status = eng_alloc_or((void **)&here, (size_t)vocab, sizeof *here, "logits", err);
    if (!status) status = eng_alloc_or((void **)&kl, (size_t)n, sizeof *kl, "divergences", err);
    for (int64_t r = 0; r < states->rows && !status; r++)
        for (int l = n - 1; l >= 0 && !status; l--) {
            const float *from = states->values + (size_t)l * layer + (size_t)r * columns;
            for (size_t c = 0; c < columns; c++) row[c] = (EngReal)from[c];
            status = eng_trainer_logits(trainer, row, 1, logits, err);
            if (status) break;
            log_softmax(logits, vocab, l == n - 1 ? final : here);
            for (int i = 0; i < vocab && l < n - 1; i++)
                kl[l] += exp(final[i]) * (final[i] - here[i]) / (double)states->rows;
        }
    for (int l = 0; l < n && !status; l++) status = eng_train_put(out, "lens", l, kl[l], err);
    eng_free(row);
    eng_free(logits);
    eng_free(final);
    eng_free(here);
    eng_free(kl);
    return status;
}

/* The first tokens are a single document's: [*n] ids, sequences at equal distances. Room for the id
 * behind the last, which that sequence predicts. */
static EngStatus spread_sample(const EngTrainData *data, int64_t length, int32_t **ids, int64_t *n,
                               EngErr *err)
{
    int64_t all = (data->heldout.n - 1) / length, taken = ENG_TRAIN_LENS_TOKENS / length;
    if (taken > all) taken = all;
    *n = taken * length;
    EngStatus status = eng_alloc_or((void **)ids, (size_t)*n + 1, sizeof **ids, "a sample", err);
    for (int64_t s = 0; s < taken && !status; s++)
        memcpy(*ids + s * length, data->heldout.ids + s * all / taken * length,
               (size_t)(length + 1) * sizeof **ids);
    return status;
}

static EngStatus look_inside(EngTrainer *trainer, const EngTrainRun *run, const char *states_path,
                             EngTrainResultText *out, EngErr *err)
{
    const EngTrainConfig *config = eng_trainer_config(trainer);
    int32_t *ids = NULL;
    int64_t n;
    EngStatus status = spread_sample(run->data, config->seq_len, &ids, &n, err);
    if (status) return status;
    Lens lens = {.states = {.layers = config->model.layers + 1, .rows = n / ENG_TRAIN_LENS_EVERY}};
    EngTrainEval eval = {.value = keep_streams, .context = &lens};
    double loss;
    int64_t predicted;
    status = eng_trainer_evaluate(trainer, ids, n + 1, &eval, NULL, &loss, &predicted, err);
    if (!status && lens.failed)
        status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for residual streams");
    if (!status && lens.states.values) status = states_write(&lens.states, states_path, err);
    if (!status && lens.states.values) status = lens_of(trainer, &lens.states, out, err);
    eng_train_states_free(&lens.states);
    eng_free(ids);
    return status;
}

/* ---- groups ---- */

#define MOST_GROUPS 32

typedef struct Losses {
    const EngTrainData *data;
    int64_t n;
    float *with, *without; /* without: memory silent, NULL when there is none */
} Losses;

static const char *source_name(const EngTrainData *data, int g)
{
    return data->sources[g].name;
}

static const char *class_name(const EngTrainData *data, int g)
{
    (void)data;
    return eng_token_class_name((EngTokenClass)g);
}

/* name: NULL for groups that are numbers, whose number is the step. */
static EngStatus put_groups(const Losses *losses, EngTrainGrouping *grouping, const char *what,
                            const char *(*name)(const EngTrainData *data, int g),
                            EngTrainResultText *out, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int silent = 0; silent < 2 && !status; silent++) {
        double means[MOST_GROUPS];
        int64_t sizes[MOST_GROUPS];
        const float *values = silent ? losses->without : losses->with;
        if (!values) break;
        eng_train_group_means(grouping, values, losses->n, means, sizes);
        for (int g = 0; g < grouping->n_groups && !status; g++) {
            char series[96];
            snprintf(series, sizeof series, "%s_%s%s%s", silent ? "suppressed" : "loss", what,
                     name ? ":" : "", name ? name(losses->data, g) : "");
            status = eng_train_put(out, series, name ? sizes[g] : g, means[g], err);
        }
    }
    eng_train_grouping_free(grouping);
    return status;
}

/* Tokens differ in length between sources: bits per byte of each. */
static EngStatus put_source_bits(const Losses *losses, const EngTrainGrouping *grouping,
                                 EngTrainResultText *out, EngErr *err)
{
    double means[MOST_GROUPS];
    int64_t sizes[MOST_GROUPS];
    EngStatus status = ENG_OK;
    eng_train_group_means(grouping, losses->with, losses->n, means, sizes);
    for (int g = 0; g < grouping->n_groups && !status; g++) {
        const EngTrainSource *source = &losses->data->sources[g];
        char series[96];
        snprintf(series, sizeof series, "bits_source:%s", source->name);
        if (source->bytes_per_token > 0)
            status = eng_train_put(out, series, sizes[g],
                                   means[g] / log(2) / source->bytes_per_token, err);
    }
    return status;
}

static EngStatus judge_groups(const Losses *losses, EngTrainResultText *out, EngErr *err)
{
    const EngTrainData *data = losses->data;
    EngTrainGrouping grouping;
    double counts[ENG_TRAIN_DECILES];
    EngStatus status = eng_train_by_source(data, losses->n, &grouping, err);
    if (!status) status = put_source_bits(losses, &grouping, out, err);
    if (!status) status = put_groups(losses, &grouping, "source", source_name, out, err);
    if (!status) status = eng_train_by_class(data, losses->n, &grouping, err);
    if (!status) status = put_groups(losses, &grouping, "class", class_name, out, err);
    if (!status) status = eng_train_by_copy(data, losses->n, &grouping, err);
    if (!status) status = put_groups(losses, &grouping, "copied", NULL, out, err);
    if (!status) status = eng_train_by_frequency(data, losses->n, &grouping, counts, err);
    if (!status) status = put_groups(losses, &grouping, "decile", NULL, out, err);
    for (int d = 0; d < ENG_TRAIN_DECILES && !status; d++)
        status = eng_train_put(out, "count_decile", d, counts[d], err);
    return status;
}

/* ---- loads ---- */

static int largest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

EngStatus eng_train_judge_loads(EngTrainer *trainer, double *metrics, EngTrainResultText *out,
                                EngErr *err)
{
    const EngTrainConfig *config = eng_trainer_config(trainer);
    int experts = config->model.experts;
    int64_t *counts = NULL;
    double most = 0, dead = 0;
    if (!experts) return ENG_OK;
    EngStatus status =
        eng_alloc_or((void **)&counts, (size_t)experts, sizeof *counts, "loads of experts", err);
    for (int layer = 0; layer < config->model.layers && !status; layer++) {
        char name[32];
        int64_t sum = 0;
        int idle = 0;
        eng_trainer_load_counts(trainer, layer, counts, NULL);
        qsort(counts, (size_t)experts, sizeof *counts, largest_first);
        for (int e = 0; e < experts; e++) sum += counts[e];
        double mean = (double)sum / experts;
        if (!sum) continue;
        snprintf(name, sizeof name, "load_share:%d", layer);
        for (int e = 0; e < experts && !status; e++) {
            idle += (double)counts[e] < 0.1 * mean;
            status = eng_train_put(out, name, e, (double)counts[e] / mean, err);
        }
        most = fmax(most, (double)counts[0] / mean);
        dead = fmax(dead, (double)idle / experts);
    }
    eng_free(counts);
    metrics[ENG_TM_LOAD_MAX] = most;
    metrics[ENG_TM_DEAD_SHARE] = dead;
    metrics[ENG_TM_COLLAPSED] = most > ENG_TRAIN_COLLAPSED_LOAD || dead > ENG_TRAIN_COLLAPSED_DEAD;
    return status;
}

/* ---- all of it ---- */

EngStatus eng_train_judge(EngTrainer *trainer, const EngTrainRun *run, const char *states_path,
                          double *metrics, EngTrainResultText *out, EngErr *err)
{
    const EngTrainText *heldout = &run->data->heldout;
    Losses losses = {.data = run->data, .n = heldout->n};
    EngTrainEval silent = {.suppress = true};
    double loss = NAN, without = NAN;
    int64_t predicted = 0;
    bool has_memory = run->arm->config.engram_layers > 0;
    EngStatus status = eng_alloc_or((void **)&losses.with, (size_t)heldout->n, sizeof(float),
                                    "held-out losses", err);
    if (!status && has_memory)
        status = eng_alloc_or((void **)&losses.without, (size_t)heldout->n, sizeof(float),
                              "held-out losses", err);
    EngTrainEval plain = {0};
    if (!status)
        status = eng_trainer_evaluate(trainer, heldout->ids, heldout->n, &plain, losses.with, &loss,
                                      &predicted, err);
    if (!status && has_memory)
        status = eng_trainer_evaluate(trainer, heldout->ids, heldout->n, &silent, losses.without,
                                      &without, &predicted, err);
    metrics[ENG_TM_LOSS] = loss;
    metrics[ENG_TM_SUPPRESSED_LOSS] = without;
    metrics[ENG_TM_BITS_PER_BYTE] = loss / log(2) / run->data->bytes_per_token;
    if (!status) status = judge_groups(&losses, out, err);
    if (!status) status = eng_train_judge_loads(trainer, metrics, out, err);
    if (!status) status = look_inside(trainer, run, states_path, out, err);
    if (!status) status = eng_train_judge_gates(trainer, run->data, out, err);
    eng_free(losses.with);
    eng_free(losses.without);
    return status;
}
