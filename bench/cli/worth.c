/* Worth of ratios for the chain, as columns and lines; see worth.h. */
#include "bench/cli/worth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "bench/cli/expected.h"
#include "bench/cli/table.h"
#include "bench/experiments/experiments.h"

#define MAX_LINES 12

static const EngExperiment *experiment_of(const EngSummaryRow *row)
{
    const EngExperiment *e = NULL;
    return eng_experiment_find(&eng_experiments, row->experiment, &e, NULL) ? NULL : e;
}

/* Rows that stand for a point in a table: the experiment's first metric, of an operation, on the
 * backend whose chain is known (eng_db_find_chain). */
static const EngExperiment *stage_of(const EngSummaryRow *row)
{
    const EngExperiment *e = experiment_of(row);
    bool stands = e && e->op >= 0 && !strcmp(row->metric, e->metrics[0].name);
    return stands && !eng_row_is_device(row) ? e : NULL;
}

static bool same_chain(const EngAmdahl *a, const EngSummaryRow *x, const EngSummaryRow *y,
                       int64_t tokens, int64_t threads, const char *preset)
{
    char other[64];
    return !strcmp(x->experiment, y->experiment) && a->tokens == tokens &&
           (!a->found || a->threads == threads) &&
           eng_axes_word(y->axes_json, "preset", other, sizeof other) && !strcmp(preset, other);
}

EngStatus eng_worth_of_rows(EngDb *db, const char *machine_id, const EngSummaryRow *rows, int n,
                            EngArena *arena, EngWorth **out, EngErr *err)
{
    EngWorth *worth = eng_arena_alloc(arena, (size_t)(n ? n : 1) * sizeof *worth);
    bool any = false;
    int last = -1; /* rows of one shape follow each other: mostly one look-up a shape */
    EngStatus status = ENG_OK;
    *out = NULL;
    if (!worth) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a table");
    for (int i = 0; i < n && !status; i++) {
        char preset[64];
        int64_t tokens, threads = 1;
        worth[i] = (EngWorth){.speedup = NAN};
        if (!stage_of(&rows[i]) ||
            !eng_axes_word(rows[i].axes_json, "preset", preset, sizeof preset) ||
            !eng_axes_int(rows[i].axes_json, "tokens", &tokens))
            continue;
        eng_axes_int(rows[i].axes_json, "threads", &threads);
        if (last >= 0 &&
            same_chain(&worth[last].amdahl, &rows[i], &rows[last], tokens, threads, preset))
            worth[i].amdahl = worth[last].amdahl;
        else
            status = eng_amdahl_find(db, machine_id, rows[i].experiment, preset, tokens, threads,
                                     &worth[i].amdahl, err);
        last = i;
        if (rows[i].percent_of_roof > 0 && !eng_row_is_roof(&rows[i]))
            worth[i].speedup = 100 / rows[i].percent_of_roof;
        any |= !status && worth[i].amdahl.found;
    }
    if (!status && any) *out = worth;
    return status;
}

void eng_worth_text(const EngWorth *worth, char *out, size_t size)
{
    *out = 0;
    if (!worth->amdahl.found || isnan(worth->speedup) || worth->speedup <= 1) return;
    double gain = eng_amdahl_gain(worth->amdahl.share, worth->speedup);
    snprintf(out, size, "%+.2g %%%s", 100 * gain, gain > worth->amdahl.floor ? "" : " (nd)");
}

/* ---- variants of one shape ---------------------------------------------------------------------
 */

/* The same point but for the variant. */
static bool same_shape(const EngSummaryRow *a, const EngSummaryRow *b)
{
    char x[512], y[512];
    if (strcmp(a->experiment, b->experiment)) return false;
    eng_axes_text(&eng_experiments, a->experiment, a->axes_json, x, sizeof x);
    eng_axes_text(&eng_experiments, b->experiment, b->axes_json, y, sizeof y);
    return !strcmp(x, y);
}

/* How many times as fast `a` is as `b` by their first metric. */
static double speed_ratio(const EngExperiment *e, const EngSummaryRow *a, const EngSummaryRow *b)
{
    return e->metrics[0].better > 0 ? a->median / b->median : b->median / a->median;
}

void eng_worth_print(const EngSummaryRow *rows, int n, const EngWorth *worth)
{
    int lines = 0;
    printf(
        "\nroof for chain: what reaching the roof would be worth for the whole chain at the same "
        "preset and tokens; (nd): less than the chain's own noise, not detectable\n");
    for (int i = 0; i < n && lines < MAX_LINES; i++) {
        const EngExperiment *e = stage_of(&rows[i]);
        char base[ENG_VARIANT_BYTES], variant[ENG_VARIANT_BYTES], text[512];
        int best = -1;
        if (!e || !worth[i].amdahl.found) continue;
        eng_variant_text(rows[i].axes_json, base, sizeof base);
        if (strcmp(base, "portable")) continue;
        for (int k = 0; k < n; k++)
            if (k != i && stage_of(&rows[k]) && same_shape(&rows[i], &rows[k]) &&
                !eng_row_is_roof(&rows[k]) &&
                (best < 0 || speed_ratio(e, &rows[k], &rows[best]) > 1))
                best = k;
        if (best < 0 || !(speed_ratio(e, &rows[best], &rows[i]) > 1)) continue;
        eng_variant_text(rows[best].axes_json, variant, sizeof variant);
        eng_amdahl_text(&worth[i].amdahl, rows[i].experiment, speed_ratio(e, &rows[best], &rows[i]),
                        text, sizeof text);
        printf("chain: %s over portable, %s\n", variant, text);
        lines++;
    }
}

/* ---- changes -----------------------------------------------------------------------------------
 */

/* The chain tells the share of its stages as metrics. */
static bool is_stage_of_chain(const char *experiment)
{
    const EngExperiment *chain;
    char metric[64];
    bool found = false;
    snprintf(metric, sizeof metric, "share_%s", experiment);
    if (eng_experiment_find(&eng_experiments, "chain", &chain, NULL)) return false;
    for (int i = 0; i < chain->n_metrics; i++) found |= !strcmp(chain->metrics[i].name, metric);
    return found;
}

EngStatus eng_worth_find(EngDb *db, const char *machine_id, const char *experiment,
                         const char *axes_json, EngAmdahl *amdahl, bool *is_stage, EngErr *err)
{
    char preset[64];
    int64_t tokens, threads = 1;
    const EngSummaryRow row = {.experiment = experiment, .axes_json = axes_json};
    *is_stage = is_stage_of_chain(experiment) && !eng_row_is_device(&row) &&
                eng_axes_word(axes_json, "preset", preset, sizeof preset) &&
                eng_axes_int(axes_json, "tokens", &tokens);
    if (!*is_stage) return ENG_OK;
    eng_axes_int(axes_json, "threads", &threads);
    EngStatus status =
        eng_amdahl_find(db, machine_id, experiment, preset, tokens, threads, amdahl, err);
    /* A chain was measured, and goes another way: `lookup` is a stage of the fused one alone. */
    if (!status && !amdahl->found && amdahl->chain_us > 0) *is_stage = false;
    return status;
}

void eng_worth_print_line(const EngAmdahl *amdahl, const char *experiment, const char *axes_json,
                          const char *what, double speedup)
{
    char text[512], preset[64] = "";
    long long tokens = (long long)amdahl->tokens;
    size_t at = 0;
    if (amdahl->found) {
        at = (size_t)printf("chain: %s, ", what);
        eng_amdahl_text(amdahl, experiment, speedup, text, sizeof text);
    } else {
        eng_axes_word(axes_json, "preset", preset, sizeof preset);
        snprintf(text, sizeof text,
                 "chain: no measured chain of %s at %lld tokens here, so no word on what this is "
                 "worth (engram run chain -a preset=%s -a tokens=%lld)",
                 preset, tokens, preset, tokens);
    }
    eng_prose_print(stdout, text, at, 4);
}

EngStatus eng_worth_print_changes(EngDb *db, const char *machine_id, const EngChange *changes,
                                  int n, const char *what, EngErr *err)
{
    EngAmdahl best = {.found = false};
    const EngChange *of = NULL;
    double most = 0;
    char name[160];
    EngStatus status = ENG_OK;
    for (int i = 0; i < n && !status; i++) {
        const EngChange *c = &changes[i];
        EngAmdahl amdahl;
        bool is_stage;
        status =
            eng_worth_find(db, machine_id, c->experiment, c->axes_json, &amdahl, &is_stage, err);
        if (status || !is_stage || !(c->ratio > 0)) continue;
        double gain = amdahl.found ? fabs(eng_amdahl_gain(amdahl.share, 1 / c->ratio)) : 0;
        bool more = !of || amdahl.found > best.found ||
                    (amdahl.found == best.found &&
                     (c->called > of->called || (c->called == of->called && gain > most)));
        if (!more) continue;
        best = amdahl;
        of = c;
        most = gain;
    }
    if (status || !of) return status;
    snprintf(name, sizeof name, "%s of %s%s", what, of->variant, n > 1 ? " (the most)" : "");
    eng_worth_print_line(&best, of->experiment, of->axes_json, name, 1 / of->ratio);
    return ENG_OK;
}
