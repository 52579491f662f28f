/* engram tune: search the fastest variant and settings of an experiment at one shape. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/cli/worth.h"
#include "bench/core/tune.h"
#include "bench/experiments/experiments.h"

#define LABEL_BYTES 256

static int usable_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* ---- stages, as they go ------------------------------------------------------------------------
 */

static void report_stage(void *context, const EngTuneStageResult *s, int number, int of)
{
    (void)context;
    if (!s->found && s->seconds == 0) {
        eng_info("tune", "stage %d of %d: %d candidates, %d rounds in %d workers", number + 1, of,
                 s->stage.candidates, s->stage.pairs * s->stage.segments, s->stage.segments);
        return;
    }
    if (s->found)
        eng_info("tune", "stage %d of %d: found in the database (run %.8s)", number + 1, of,
                 s->run_id);
}

/* ---- output ------------------------------------------------------------------------------------
 */

static EngStatus print_stages(const EngTuneResult *result, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"stage", true},   {"candidates", true}, {"rounds", true}, {"kept", true},
        {"seconds", true}, {"run", false},       {"", false}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 7, err);
    if (status) return status;
    for (int i = 0; i < result->n_stages; i++) {
        const EngTuneStageResult *s = &result->stages[i];
        eng_table_printf(table, "%d of %d", i + 1, result->n_ladder);
        eng_table_printf(table, "%d", s->stage.candidates);
        eng_table_printf(table, "%d", s->rounds);
        if (s->finished)
            eng_table_printf(table, "%d", s->stage.keep);
        else
            eng_table_text(table, "");
        if (s->found)
            eng_table_text(table, "");
        else
            eng_table_printf(table, "%.1f", s->seconds);
        eng_table_printf(table, "%.8s", s->run_id);
        eng_table_text(table, s->found ? "found" : s->finished ? "" : "cut short by the budget");
    }
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

/* Summary row of a candidate for a metric of the judged run; NULL: none. */
static const EngSummaryRow *row_of(const EngSummaryRow *rows, int n, const char *point_key,
                                   const char *metric)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].point_key, point_key) && !strcmp(rows[i].metric, metric))
            return &rows[i];
    return NULL;
}

/* The metric that the clock judges, to show: the experiment's first on that clock. */
static const EngMetricDef *shown_metric(const EngTuneSpace *space)
{
    const EngExperiment *e = space->experiment;
    for (int i = 0; i < e->n_metrics; i++)
        if (!strcmp(e->metrics[i].clock, space->clock)) return &e->metrics[i];
    return &e->metrics[0];
}

static EngStatus print_ranking(const EngTuneSpace *space, const EngTuneResult *result,
                               const EngSummaryRow *rows, int n_rows, EngErr *err)
{
    const EngMetricDef *metric = shown_metric(space);
    const EngTableColumn columns[] = {{"place", true},          {space->experiment->name, false},
                                      {"time / fastest", true}, {metric->name, true},
                                      {"95 % interval", true},  {"% of roof", true}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 6, err);
    if (status) return status;
    for (int i = 0; i < result->n_order; i++) {
        char label[LABEL_BYTES];
        const EngTuneCandidate *c = &space->items[result->order[i]];
        const EngSummaryRow *r = row_of(rows, n_rows, c->point_key, metric->name);
        eng_tune_label(space, result->order[i], label, sizeof label);
        eng_table_printf(table, "%d", i + 1);
        eng_table_text(table, label);
        eng_table_printf(table, "%.3f", result->ratios[i]);
        eng_table_number(table, r ? r->median : NAN);
        if (r && !isnan(r->ci_lo))
            eng_table_printf(table, "%.4g..%.4g", r->ci_lo, r->ci_hi);
        else
            eng_table_text(table, "");
        if (r && !isnan(r->percent_of_roof))
            eng_table_printf(table, "%.0f", r->percent_of_roof);
        else
            eng_table_text(table, "");
    }
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

static void percent_text(double share, char *out, size_t size)
{
    if (isnan(share))
        snprintf(out, size, "unknown (too few rounds)");
    else
        snprintf(out, size, "%.2g %%", 100 * share);
}

static void print_verdict(const EngTuneSpace *space, const EngTuneResult *result)
{
    char first[LABEL_BYTES], second[LABEL_BYTES], floor[48];
    eng_tune_label(space, result->order[0], first, sizeof first);
    percent_text(result->floor, floor, sizeof floor);
    if (result->n_order < 2) {
        printf("winner: %s, the only candidate; A/A floor %s\n", first, floor);
        return;
    }
    const EngMedian *m = &result->margin;
    eng_tune_label(space, result->order[1], second, sizeof second);
    char interval[64] = "no interval";
    if (!isnan(m->ci_lo))
        snprintf(interval, sizeof interval, "%.2f..%.2f %%", 100 * (m->ci_lo - 1),
                 100 * (m->ci_hi - 1));
    printf("%s: %s is %.2f %% ahead of %s (%s, %d pairs, %s time); A/A floor %s\n",
           result->verdict > 0 ? "winner" : "no clear winner", first, 100 * (m->median - 1), second,
           interval, m->n, space->clock, floor);
}

static void print_completeness(const EngTuneSpace *space, const EngTuneResult *result,
                               double budget_s)
{
    if (result->complete) {
        printf("complete=1\n");
        return;
    }
    const EngTuneStageResult *last =
        result->n_stages ? &result->stages[result->n_stages - 1] : NULL;
    int done = result->n_stages - (last && !last->finished);
    printf(
        "complete=0 ceiling=%.3gs: the budget ended the search after %d of %d stages, with %d of "
        "%d candidates left; the same command goes on\n",
        budget_s, done, result->n_ladder,
        done ? result->stages[done - 1].stage.keep : space->n - result->n_skipped, space->n);
}

static void print_use(const EngTuneSpace *space, int candidate)
{
    char flat[1024];
    snprintf(flat, sizeof flat, "%s", space->fixed);
    printf("use: engram run %s", space->experiment->name);
    for (char *line = strtok(flat, "\n"); line; line = strtok(NULL, "\n")) {
        char *equals = strstr(line, " = ");
        if (equals) printf(" -a %.*s=%s", (int)(equals - line), line, equals + 3);
    }
    for (int k = 0; k < space->n_axes; k++)
        printf(" -a %s=%s", space->experiment->axes[space->axes[k]].name,
               space->items[candidate].values[k]);
    putchar('\n');
}

/* ---- worth for the chain -----------------------------------------------------------------------
 */

static EngStatus print_worth(EngDb *db, const EngTuneSpace *space, const EngTuneResult *result,
                             const EngSummaryRow *row, EngErr *err)
{
    const char *stage = space->experiment->name;
    bool is_stage, over = result->n_order > 1;
    EngAmdahl amdahl;
    if (!row) return ENG_OK;
    EngStatus status =
        eng_worth_find(db, result->machine_id, stage, row->axes_json, &amdahl, &is_stage, err);
    if (status || !is_stage) return status;
    if (over || !amdahl.found)
        eng_worth_print_line(&amdahl, stage, row->axes_json, "over the second",
                             over ? result->margin.median : 1);
    if (amdahl.found && row->percent_of_roof > 0 && row->percent_of_roof < 100)
        eng_worth_print_line(&amdahl, stage, row->axes_json, "what is left to the roof",
                             100 / row->percent_of_roof);
    return ENG_OK;
}

static EngStatus print_result(EngCli *cli, const EngTuneSpace *space, const EngTuneResult *result,
                              double budget_s, EngErr *err)
{
    EngDb *db = NULL;
    EngSummaryRow *rows = NULL;
    int n_rows = 0;
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the result");
    printf("%s: %d candidates (%d cannot run here), judged by %s time\n\n", space->experiment->name,
           space->n, result->n_skipped, space->clock);
    EngStatus status = print_stages(result, err);
    if (status || result->judged < 0) goto out;
    const EngTuneStageResult *judged = &result->stages[result->judged];
    status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db, err);
    if (!status)
        status = eng_db_summary(db, judged->run_id, NULL, NULL, arena, &rows, &n_rows, err);
    if (status) goto out;
    const EngSummaryRow *row =
        row_of(rows, n_rows, space->items[result->order[0]].point_key, shown_metric(space)->name);
    printf("\nstage %d, %d rounds:\n", result->judged + 1, judged->rounds);
    status = print_ranking(space, result, rows, n_rows, err);
    if (status) goto out;
    putchar('\n');
    print_verdict(space, result);
    if (row && !isnan(row->percent_of_roof))
        printf("roof: the fastest reaches %.0f %% of its roof\n", row->percent_of_roof);
    status = print_worth(db, space, result, row, err);
    if (!status) print_use(space, result->order[0]);
out:
    if (!status) print_completeness(space, result, budget_s);
    if (!status && result->judged < 0) eng_cli_exit_with(cli, 5);
    eng_db_close(db);
    eng_arena_destroy(arena);
    return status;
}

/* ---- verb --------------------------------------------------------------------------------------
 */

static EngStatus run(EngCli *cli, EngErr *err)
{
    static const EngCatalog catalog = {.experiments = &eng_experiments, .kernels = eng_kernels};
    const char *assignments[ENG_CLI_MAX_ARGS], *experiment = eng_cli_operand(cli, 0);
    int n = eng_cli_repeats(cli, "axis");
    EngSweep *sweep = NULL;
    EngTuneSpace *space = NULL;
    EngTuneResult result = {0};
    double budget_s;
    if (!experiment)
        return ENG_FAIL(err, ENG_USAGE, "tune: name an experiment; `engram list` shows them");
    if (!eng_parse_f64(eng_cli_text(cli, "budget"), &budget_s) || !(budget_s >= 0) ||
        budget_s > 7 * 86400)
        return ENG_FAIL(err, ENG_USAGE, "--budget=%s: not seconds from 0 to 604800",
                        eng_cli_text(cli, "budget"));
    for (int i = 0; i < n; i++) assignments[i] = eng_cli_repeat(cli, "axis", i);
    EngStatus status = eng_sweep_adhoc(experiment, &catalog, assignments, n, &sweep, err);
    if (!status) status = eng_tune_space_open(sweep, usable_cpus(), &space, err);
    if (status) goto out;
    EngTuneOptions options = {.run = {.db_path = eng_cli_text(cli, "db"),
                                      .data_dir = eng_cli_text(cli, "data"),
                                      .progress_line = isatty(STDERR_FILENO) == 1,
                                      .argv = eng_cli_argv(cli),
                                      .argc = eng_cli_argc(cli),
                                      .interrupted = eng_cli_watch_signals()},
                              .fresh = eng_cli_flag(cli, "fresh"),
                              .budget_s = budget_s,
                              .report = report_stage};
    status = eng_tune_run(space, &options, &result, err);
    if (status == ENG_INTERRUPTED)
        ENG_FAIL(err, ENG_INTERRUPTED, "interrupted; the same command goes on where it stopped");
    if (!status) status = print_result(cli, space, &result, budget_s, err);
out:
    eng_tune_result_free(&result);
    eng_tune_space_free(space);
    eng_sweep_free(sweep);
    return status;
}

static const EngOption g_options[] = {
    {.name = "axis",
     .letter = 'a',
     .value = "NAME=VALUES",
     .repeat = true,
     .help = "the shape (one value an axis); lists for variant and tunable axes bound the search"},
    {.name = "budget",
     .value = "SECONDS",
     .def = "120",
     .help = "when to stop, with what is known then; 0: never"},
    ENG_OPTION_DB,
    ENG_OPTION_DATA,
    {.name = "fresh", .help = "measure again what the database holds already"},
};

const EngVerb eng_verb_tune = {
    .name = "tune",
    .operands = "EXPERIMENT",
    .summary = "search the fastest variant and settings, e.g. `engram tune gather -a tokens=4`",
    .details =
        "Successive halving: all candidates are sampled in turn in the same workers, the best "
        "third goes on with "
        "three times the rounds. Stages stay in the database: the same command goes on with a "
        "search that ran out of its budget, and answers at once from a finished one.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = 1,
    .run = run,
};
