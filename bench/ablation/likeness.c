/* How like are the layers of two trained models? Linear CKA of their residual streams on the same
 * held-out tokens (bench/core/cka.h). Models of one seed share start values and are alike for that
 * alone, so every model is compared with the pure MoE of another seed: one with Engram, and the
 * pure MoE itself as the control that "depth gain" needs. A comparison is a record of the ledger of
 * its own, since streams are not kept with it. */
#include "bench/ablation/jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "bench/ablation/judge.h"
#include "bench/core/cka.h"

#define BATCH 64

static bool is_pure(const EngTrainItem *item)
{
    const EngTrainConfig *config = &item->arm.config;
    return !config->engram_layers && config->model.experts && !config->model.shared_extra;
}

static int64_t seed_of(const EngTrainItem *item)
{
    return eng_point_int(&item->point->point, ENG_ARM_AXIS_SEED);
}

/* Same text, same training, same backbone: what a pure MoE shares with its arms. It has no table.
 */
static bool is_kin(const EngTrainItem *a, const EngTrainItem *b)
{
    for (int i = 0; i < ENG_ARM_AXES; i++) {
        const char *axis = eng_arm_axes[i].name;
        if (!eng_arm_is_training(axis) || !strncmp(axis, "table_", 6)) continue;
        if (strcmp(a->point->point.values[i].text, b->point->point.values[i].text)) return false;
    }
    return true;
}

/* The pure MoE to compare with: of the lowest other seed. */
static const EngTrainItem *reference_of(const EngTrainSweep *sweep, const EngTrainItem *item)
{
    const EngTrainItem *best = NULL;
    for (int i = 0; i < sweep->n_items; i++) {
        const EngTrainItem *other = &sweep->items[i];
        if (!is_pure(other) || !is_kin(item, other) || seed_of(other) == seed_of(item)) continue;
        if (!best || seed_of(other) < seed_of(best)) best = other;
    }
    return best;
}

static EngStatus read_states(const EngTrainSweep *sweep, const EngTrainItem *item,
                             EngTrainStates *states, EngErr *err)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.states", sweep->options.folder, item->key);
    *states = (EngTrainStates){0};
    return eng_file_exists(path) ? eng_train_states_read(path, states, err) : ENG_OK;
}

/* Series cka:R (step: own layer) for each layer R of the reference. */
static EngStatus compare(const EngTrainStates *own, const EngTrainStates *reference,
                         EngTrainResultText *out, EngErr *err)
{
    EngStatus status = ENG_OK;
    int64_t rows = own->rows < reference->rows ? own->rows : reference->rows;
    if (rows < BATCH) return ENG_OK;
    for (int r = 0; r < reference->layers && !status; r++)
        for (int l = 0; l < own->layers && !status; l++) {
            char name[32];
            double value;
            snprintf(name, sizeof name, "cka:%d", r);
            status = eng_cka(own->values + l * own->rows * own->columns, (int)own->columns,
                             reference->values + r * reference->rows * reference->columns,
                             (int)reference->columns, rows, BATCH, &value, err);
            if (!status) status = eng_train_put(out, name, l, value, err);
        }
    return status;
}

static EngStatus record_likeness(EngTrainSweep *sweep, const EngTrainItem *item,
                                 const EngTrainItem *reference, const char *key,
                                 const EngTrainStates *own, const EngTrainStates *other,
                                 EngErr *err)
{
    EngTrainResultText out = {0};
    char utc[32], manifest[2 * ENG_KEY_HEX + 32];
    eng_utc_now(utc, sizeof utc);
    snprintf(manifest, sizeof manifest, "likeness of %s to %s", item->key, reference->key);
    EngTrainRecord record = {.key = key,
                             .axes = item->who,
                             .outcome = "likeness",
                             .reason = "",
                             .finished_utc = utc,
                             .machine = sweep->session->machine.cpu_model,
                             .build = sweep->session->build.commit,
                             .data = item->data->digest,
                             .manifest = manifest};
    for (int i = 0; i < ENG_TM_COUNT; i++) record.metrics[i] = NAN;
    EngStatus status = eng_train_result_begin(&out, err);
    if (!status) status = compare(own, other, &out, err);
    char *series = status ? NULL : json_dumps(out.series, JSON_COMPACT | JSON_REAL_PRECISION(6));
    if (!status && !series) status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a likeness");
    record.series = series;
    if (!status) status = eng_train_ledger_append(&sweep->ledger, &record, err);
    free(series);
    eng_train_result_free(&out);
    return status;
}

EngStatus eng_train_likeness(EngTrainSweep *sweep, int i, const char **series, EngErr *err)
{
    const EngTrainItem *item = &sweep->items[i], *reference = reference_of(sweep, item);
    EngTrainStates own = {0}, other = {0};
    char text[2 * ENG_KEY_HEX + 16], key[ENG_KEY_HEX];
    *series = NULL;
    if (!reference) return ENG_OK;
    snprintf(text, sizeof text, "likeness\n%s\n%s\n", item->key, reference->key);
    EngStatus status = eng_key_of(text, key, err);
    if (status) return status;
    if (!eng_train_ledger_find(&sweep->ledger, key)) {
        status = read_states(sweep, item, &own, err);
        if (!status) status = read_states(sweep, reference, &other, err);
        if (!status && own.values && other.values)
            status = record_likeness(sweep, item, reference, key, &own, &other, err);
        eng_train_states_free(&own);
        eng_train_states_free(&other);
    }
    const EngTrainRecord *record = status ? NULL : eng_train_ledger_find(&sweep->ledger, key);
    if (record) *series = record->series;
    return status;
}
