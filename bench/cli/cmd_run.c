/* engram run: measure a sweep file or an ad-hoc set of points; see sweeps/README.md for the
 * grammar. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/cli/expected.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/cli/worth.h"
#include "bench/core/db_costs.h"
#include "bench/core/db_device.h"
#include "bench/core/plugin.h"
#include "bench/core/runner.h"
#include "bench/experiments/experiments.h"
#include "bench/trace/point_tracer.h"

#define MAX_ASSIGNMENTS ENG_CLI_MAX_ARGS
#define FULL_TABLE_ROWS 48 /* more points than this are summed up per experiment */

#define TEXT_OF(x)      #x
#define TEXT(x)         TEXT_OF(x)

static EngStatus read_sweep(EngCli *cli, const char *what, EngSweep **sweep, EngErr *err)
{
    static const EngCatalog catalog = {.experiments = &eng_experiments, .kernels = eng_kernels};
    const char *assignments[MAX_ASSIGNMENTS];
    int n = eng_cli_repeats(cli, "axis");
    bool trace = eng_cli_flag(cli, "trace");
    for (int i = 0; i < n; i++) {
        assignments[i] = eng_cli_repeat(cli, "axis", i);
        if (!strncmp(assignments[i], "trace=", 6)) trace = false; /* says how many */
    }
    if (trace && n < MAX_ASSIGNMENTS) assignments[n++] = "trace=" TEXT(ENG_TRACE_SAMPLES);
    if (!strcmp(what, "train"))
        return ENG_FAIL(err, ENG_USAGE, "run: models are trained by `engram train`");
    size_t length = strlen(what);
    bool is_file = strchr(what, '/') || (length > 6 && !strcmp(what + length - 6, ".sweep"));
    return is_file ? eng_sweep_read(what, &catalog, assignments, n, sweep, err)
                   : eng_sweep_adhoc(what, &catalog, assignments, n, sweep, err);
}

/* ---- dry run -----------------------------------------------------------------------------------
 */

static EngStatus dry_run(EngCli *cli, const EngSweep *sweep, EngErr *err)
{
    EngSession *session = NULL;
    EngDb *db = NULL;
    EngStr text = {0};
    EngOverheads overheads = {0};
    double total_ns = 0;
    EngStatus status = eng_session_open(sweep, eng_cli_text(cli, "data"), &session, err);
    if (status) return status;
    eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db, NULL); /* for its history, if any */
    const EngPlan *plan = eng_session_plan(session);
    status = eng_sweep_text(sweep, &text, err);
    for (int i = 0; i < plan->n_blocks && !status; i++) {
        const EngPlanBlock *block = &plan->blocks[i];
        double ns = eng_block_estimate_ns(block), overhead_ns;
        status = eng_db_overhead_ns(&overheads, db, block->experiment->name, &overhead_ns, err);
        if (status) break;
        ns += overhead_ns * (double)eng_block_setups(block);
        total_ns += ns;
        printf("block %d: %s, %d points, about %.1f s\n", i + 1, block->experiment->name,
               block->n_points, ns * 1e-9);
        for (int k = 0; k < block->n_points && !status; k++) {
            const EngPlanPoint *p = block->points[k];
            EngStr label = {0};
            status = eng_plan_label(p, &label, err);
            if (!status)
                printf("  %.8s %s%s%s%s\n", p->point_key,
                       label.text ? label.text : "(all at default)", p->is_roof ? " [roof]" : "",
                       p->skip ? " skipped: " : "", p->skip ? p->skip : "");
            eng_str_free(&label);
        }
    }
    if (!status)
        printf("\n%d points (%d skipped, %d excluded by where) in %d blocks, about %.0f s, set-up "
               "included\n\n%s",
               plan->n_named, plan->n_skipped, plan->n_excluded, plan->n_blocks, total_ns * 1e-9,
               text.text);
    eng_str_free(&text);
    eng_db_close(db);
    eng_session_free(session);
    return status;
}

/* ---- result table ------------------------------------------------------------------------------
 */

/* The metric that stands for an experiment in a table: its first. */
static const char *first_metric(const char *experiment)
{
    const EngExperiment *e;
    if (eng_experiment_find(&eng_experiments, experiment, &e, NULL)) return "";
    return e->metrics[0].name;
}

/* Rows that stand for a point in a table: its first metric, or none at all. */
static bool is_wanted(const EngSummaryRow *row)
{
    return !row->metric[0] || !strcmp(row->metric, first_metric(row->experiment));
}

static int wanted_rows(const EngSummaryRow *rows, int n, bool roofs)
{
    int wanted = 0;
    for (int i = 0; i < n; i++)
        wanted += is_wanted(&rows[i]) && (roofs || !eng_row_is_roof(&rows[i]));
    return wanted;
}

/* "roof_copy_d16 (roof)". */
static void variant_text(const EngSummaryRow *row, char *out, size_t size)
{
    eng_variant_text(row->axes_json, out, size);
    size_t used = strlen(out);
    if (eng_row_is_roof(row)) snprintf(out + used, size - used, " (roof)");
}

/* worth: per row, NULL when the database has no chain to tell it by. */
static EngStatus print_points(const EngSummaryRow *rows, int n, bool roofs, const EngWorth *worth,
                              EngErr *err)
{
    static const EngTableColumn columns[] = {{"experiment", false}, {"axes not at default", false},
                                             {"variant", false},    {"metric", false},
                                             {"median", true},      {"95 % interval", true},
                                             {"n", true},           {"% of roof", true},
                                             {"outcome", false},    {"roof for chain", true}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, worth ? 10 : 9, err);
    for (int i = 0; i < n && !status; i++) {
        const EngSummaryRow *r = &rows[i];
        char axes[256];
        if (!is_wanted(r) || (!roofs && eng_row_is_roof(r))) continue;
        eng_axes_text(&eng_experiments, r->experiment, r->axes_json, axes, sizeof axes);
        eng_table_text(table, r->experiment);
        eng_table_text(table, axes);
        variant_text(r, axes, sizeof axes);
        eng_table_text(table, axes);
        eng_table_text(table, r->metric);
        eng_table_number(table, r->median);
        if (isnan(r->ci_lo))
            eng_table_text(table, "");
        else
            eng_table_printf(table, "%.4g..%.4g", r->ci_lo, r->ci_hi);
        eng_table_printf(table, "%lld", (long long)r->n);
        if (isnan(r->percent_of_roof))
            eng_table_text(table, "");
        else
            eng_table_printf(table, "%.0f", r->percent_of_roof);
        eng_table_text(table, r->outcome);
        if (worth) {
            eng_worth_text(&worth[i], axes, sizeof axes);
            eng_table_text(table, axes);
        }
    }
    if (!status) status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

/* One line per experiment: how many points, and the range of its first metric. */
static EngStatus print_experiments(const EngSummaryRow *rows, int n, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"experiment", false}, {"points", true}, {"measured", true}, {"metric", false},
        {"least", true},       {"most", true},   {"% of roof", true}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 7, err);
    for (int i = 0; i < n && !status;) {
        const char *experiment = rows[i].experiment, *metric = first_metric(experiment);
        int points = 0, measured = 0;
        double least = INFINITY, most = -INFINITY, roof_least = INFINITY, roof_most = -INFINITY;
        for (; i < n && !strcmp(rows[i].experiment, experiment); i++) {
            const EngSummaryRow *r = &rows[i];
            if (!is_wanted(r) || eng_row_is_roof(r)) continue;
            points++;
            measured += !strcmp(r->outcome, "measured");
            least = fmin(least, r->median);
            most = fmax(most, r->median);
            roof_least = fmin(roof_least, r->percent_of_roof);
            roof_most = fmax(roof_most, r->percent_of_roof);
        }
        eng_table_text(table, experiment);
        eng_table_printf(table, "%d", points);
        eng_table_printf(table, "%d", measured);
        eng_table_text(table, metric);
        eng_table_number(table, isinf(least) ? NAN : least);
        eng_table_number(table, isinf(most) ? NAN : most);
        if (isinf(roof_least))
            eng_table_text(table, "");
        else
            eng_table_printf(table, "%.0f..%.0f", roof_least, roof_most);
    }
    if (!status) status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

/* Each reason once, with how many points it concerns. */
static void print_skips(const EngRunStatus *run)
{
    for (int i = 0; i < run->n_skips; i++) {
        int n = 0;
        bool first = true;
        for (int k = 0; k < run->n_skips; k++) {
            bool same = !strcmp(run->skips[k].reason, run->skips[i].reason);
            n += same;
            first = first && !(same && k < i);
        }
        if (first)
            printf("skipped (%d): %s: %s\n", n, run->skips[i].experiment, run->skips[i].reason);
    }
}

static bool lacks_only_device(const EngRunStatus *run)
{
    int lacking = 0;
    for (int i = 0; i < run->n_skips; i++)
        lacking += !strncmp(run->skips[i].reason, "no device", strlen("no device"));
    return lacking && lacking == run->n_skips;
}

/* On which device and in what state: a rate within its L2 is not one of its memory. */
static void print_device(const EngDeviceFacts *d)
{
    if (!d->used) return;
    printf("device: L2 %.0f MiB", d->l2_bytes / 0x1p20);
    if (d->sets)
        printf(", working sets %.3g to %.3g MiB (it holds %d of %d)", d->set_bytes[0] / 0x1p20,
               d->set_bytes[1] / 0x1p20, d->fitting, d->sets);
    if (d->pinned_bytes[1] > 0)
        printf(", pinned tables %.3g to %.3g MiB", d->pinned_bytes[0] / 0x1p20,
               d->pinned_bytes[1] / 0x1p20);
    if (d->why_no_clocks[0])
        printf("; clocks: %s", d->why_no_clocks);
    else
        printf("; SM at %d to %d MHz, memory at %d to %d MHz, reasons for less %#llx", d->sm_mhz[0],
               d->sm_mhz[1], d->memory_mhz[0], d->memory_mhz[1], (unsigned long long)d->slow);
    printf("; empty kernel %.1f us\n", d->floor_ns * 1e-3);
}

/* *code: the exit code that this run alone would give. */
static EngStatus print_result(EngCli *cli, const EngRunResult *result, int *code, EngErr *err)
{
    EngDb *db = NULL;
    EngSummaryRow *rows = NULL;
    EngRunStatus run;
    EngDeviceFacts device;
    int n = 0;
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the result");
    EngStatus status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db, err);
    if (!status) status = eng_db_summary(db, result->run_id, NULL, NULL, arena, &rows, &n, err);
    EngWorth *worth = NULL;
    if (!status) status = eng_db_status(db, result->run_id, arena, &run, err);
    if (!status) status = eng_worth_of_rows(db, run.machine_id, rows, n, arena, &worth, err);
    if (!status) status = eng_db_device_facts(db, result->run_id, &device, err);
    bool each = wanted_rows(rows, n, false) <= FULL_TABLE_ROWS;
    bool roofs = wanted_rows(rows, n, true) <= FULL_TABLE_ROWS;
    if (!status)
        status = each ? print_points(rows, n, roofs, worth, err) : print_experiments(rows, n, err);
    if (!status && !(each && roofs))
        printf("\n(%s left out; `engram export` gives every point)\n",
               each ? "rows of the roofs are" : "points and roofs are");
    if (!status && each)
        status = eng_expected_print(db, result->run_id, run.machine_id, rows, n, err);
    if (!status && each && worth) eng_worth_print(rows, n, worth);
    if (!status) {
        printf("\nrun %.8s in %s: %d points measured, %d skipped, %d failed, %d wrong; %d "
               "found from before\n",
               result->run_id, eng_cli_text(cli, "db"), run.total.measured, run.total.skipped,
               run.total.failed, run.total.wrong, run.total.found);
        eng_stops_print(&run);
        print_device(&device);
        for (int i = 0; i < run.n_failures; i++) {
            char point[400];
            const EngStatusPoint *f = &run.failures[i];
            eng_point_text(&eng_experiments, f->experiment, f->axes_json, point, sizeof point);
            eng_warn("run", "%s %s: %s", point, eng_outcome_name(f->outcome), f->reason);
        }
        print_skips(&run);
        /* Roofs too: what stands beside a roof that failed is no share of the limit. */
        if (run.n_failures)
            *code = 2;
        else if (!run.total.measured)
            *code = lacks_only_device(&run) ? 77 : 5;
    }
    eng_db_close(db);
    eng_arena_destroy(arena);
    return status;
}

/* One run each, in order, under one lock: points that several name are measured by the first. */
static EngStatus run_sweeps(EngCli *cli, EngSweep *const *sweeps, int n, EngErr *err)
{
    EngRunOptions options = {.db_path = eng_cli_text(cli, "db"),
                             .data_dir = eng_cli_text(cli, "data"),
                             .fresh = eng_cli_flag(cli, "fresh"),
                             .progress_line = isatty(STDERR_FILENO) == 1,
                             .argv = eng_cli_argv(cli),
                             .argc = eng_cli_argc(cli),
                             .interrupted = eng_cli_watch_signals()};
    int empty = 0, bad = 0, lacking = 0; /* runs without a point, with failures, for a device */
    EngTracer *tracer = eng_point_tracer_create(eng_cli_argv(cli), ENG_VERSION);
    if (!tracer) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a tracer");
    options.tracer = tracer;
    EngStatus status = eng_db_open(options.db_path, ENG_DB_RUN, &options.db, err);
    for (int i = 0; i < n && !status; i++) {
        EngRunResult result = {0};
        int code = 0;
        status = eng_run_sweep(sweeps[i], &options, &result, err);
        if (status == ENG_INTERRUPTED)
            ENG_FAIL(err, ENG_INTERRUPTED,
                     "interrupted; the same command goes on where %s%.8s stopped",
                     result.run_id[0] ? "run " : "it", result.run_id);
        if (i && !status) printf("\n");
        if (!status) status = print_result(cli, &result, &code, err);
        bad += code == 2;
        empty += code == 5;
        lacking += code == 77;
    }
    eng_db_close(options.db);
    eng_point_tracer_destroy(tracer);
    if (bad)
        eng_cli_exit_with(cli, 2);
    else if (empty + lacking == n)
        eng_cli_exit_with(cli, lacking ? 77 : 5);
    return status;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngSweep *sweeps[ENG_CLI_MAX_ARGS] = {NULL};
    int n = eng_cli_operands(cli);
    EngStatus status = ENG_OK;
    if (!n)
        return ENG_FAIL(err, ENG_USAGE,
                        "run: name a sweep file or an experiment; `engram list` shows them");
    for (int i = 0; i < eng_cli_repeats(cli, "plugin") && !status; i++)
        status = eng_plugin_add(eng_cli_repeat(cli, "plugin", i), err);
    /* All are read before any is measured: a mistake in the last must not come after hours. */
    for (int i = 0; i < n && !status; i++)
        status = read_sweep(cli, eng_cli_operand(cli, i), &sweeps[i], err);
    bool dry = eng_cli_flag(cli, "dry-run");
    for (int i = 0; i < n && dry && !status; i++) {
        if (i) printf("\n");
        status = dry_run(cli, sweeps[i], err);
    }
    if (!dry && !status) status = run_sweeps(cli, sweeps, n, err);
    for (int i = 0; i < n; i++) eng_sweep_free(sweeps[i]);
    return status;
}

static const EngOption g_options[] = {
    {.name = "axis",
     .letter = 'a',
     .value = "NAME=VALUES",
     .repeat = true,
     .help =
         "values of an axis or a setting (pairs, segments, budget_ms, seed, precision, settled, "
         "compare, where, zip)"},
    ENG_OPTION_DB,
    ENG_OPTION_DATA,
    {.name = "plugin",
     .value = "FILE.so",
     .repeat = true,
     .help = "kernels of your own as further variants (docs/tune.md, include/engram/plugin.h)"},
    {.name = "fresh", .help = "measure again what the database holds already"},
    {.name = "trace",
     .help = "after its timed samples, trace each measured point: 20 more samples (or -a trace=N),"
             " traces/<point>.sqlite beside the database (docs/trace.md)"},
    {.name = "dry-run", .help = "print points, blocks and estimated time; measure nothing"},
};

const EngVerb eng_verb_run = {
    .name = "run",
    .operands = "(SWEEP_FILE | EXPERIMENT)...",
    .summary = "measure a sweep, e.g. `engram run gather -a tokens=1,4,64 -a heads=8`",
    .details = "Points that the database holds already are not measured again (--fresh does). A "
               "run that was killed\n"
               "goes on with the same command. Several sweeps are one run each; points that they "
               "share are measured once.\n"
               "Values are lists and ranges: 1,4,64  2^10:2^20:x4  "
               "1:16:+5.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = ENG_CLI_MAX_ARGS,
    .run = run,
};
