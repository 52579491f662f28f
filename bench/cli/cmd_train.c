/* engram train: runs of a sweep of experiment `train`, several side by side, resumable, each
 * written into a CSV file that is committed. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/ablation/sweep.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/core/db.h"
#include "bench/core/runner.h"

static EngStatus read_sweep(EngCli *cli, const char *what, EngSweep **sweep, EngErr *err)
{
    static const EngCatalog catalog = {.experiments = &eng_train_experiments,
                                       .kernels = eng_kernels};
    const char *assignments[ENG_CLI_MAX_ARGS];
    int n = eng_cli_repeats(cli, "axis");
    for (int i = 0; i < n; i++) assignments[i] = eng_cli_repeat(cli, "axis", i);
    size_t length = strlen(what);
    bool is_file = strchr(what, '/') || (length > 6 && !strcmp(what + length - 6, ".sweep"));
    EngStatus status = is_file ? eng_sweep_read(what, &catalog, assignments, n, sweep, err)
                               : eng_sweep_adhoc(what, &catalog, assignments, n, sweep, err);
    return status ? status : eng_arm_check_sweep(*sweep, err);
}

/* Why points have no loss, one line each. */
static void print_reasons(const EngRunStatus *run)
{
    char axes[256];
    for (int i = 0; i < run->n_skips; i++) {
        eng_axes_text(&eng_train_experiments, "train", run->skips[i].axes_json, axes, sizeof axes);
        printf("skipped: %s: %s\n", axes, run->skips[i].reason);
    }
    for (int i = 0; i < run->n_failures; i++) {
        const EngStatusPoint *f = &run->failures[i];
        eng_axes_text(&eng_train_experiments, "train", f->axes_json, axes, sizeof axes);
        eng_warn("train", "%s: failed: %s", axes, f->reason);
    }
}

static EngStatus print_result(EngCli *cli, const EngRunResult *result, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"arm", false},       {"outcome", false},       {"loss", true}, {"bits/byte", true},
        {"suppressed", true}, {"busiest expert", true}, {"from", false}};
    EngDb *db = NULL;
    EngSummaryRow *rows = NULL;
    EngTextTable *table = NULL;
    EngRunStatus run;
    int n = 0;
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the result");
    EngStatus status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db, err);
    if (!status) status = eng_db_summary(db, result->run_id, "train", NULL, arena, &rows, &n, err);
    if (!status) status = eng_table_create(&table, columns, 7, err);
    for (int i = 0; i < n && !status;) {
        static const char *const shown[] = {"loss", "bits_per_byte", "suppressed_loss", "load_max"};
        const EngSummaryRow *first = &rows[i];
        double values[4] = {NAN, NAN, NAN, NAN};
        char axes[256];
        for (; i < n && !strcmp(rows[i].point_key, first->point_key); i++)
            for (int k = 0; k < 4; k++)
                if (!strcmp(rows[i].metric, shown[k])) values[k] = rows[i].median;
        eng_axes_text(&eng_train_experiments, "train", first->axes_json, axes, sizeof axes);
        eng_table_text(table, axes);
        eng_table_text(table, first->outcome);
        for (int k = 0; k < 4; k++) eng_table_number(table, values[k]);
        eng_table_text(table, first->kind);
    }
    if (!status) status = eng_table_print(table, stdout, err);
    if (!status) status = eng_db_status(db, result->run_id, arena, &run, err);
    if (!status) {
        print_reasons(&run);
        if (run.n_failures)
            eng_cli_exit_with(cli, 2);
        else if (!run.total.measured)
            eng_cli_exit_with(cli, 5);
    }
    if (!status)
        printf("\nrun %.8s in %s; `engram report ablation --db=%s` draws it\n", result->run_id,
               eng_cli_text(cli, "db"), eng_cli_text(cli, "db"));
    eng_table_free(table);
    eng_db_close(db);
    eng_arena_destroy(arena);
    return status;
}

static EngStatus describe(EngCli *cli, const EngSweep *sweep, EngTrainSweep *runs, EngErr *err)
{
    EngSession *session = NULL;
    int n_runs = 0;
    EngStatus status = eng_session_open(sweep, eng_cli_text(cli, "data"), &session, err);
    if (!status) status = eng_train_sweep_describe(runs, session, stdout, &n_runs, err);
    if (!status && !n_runs) eng_cli_exit_with(cli, 5);
    eng_session_free(session);
    return status;
}

static EngStatus train(EngCli *cli, const EngSweep *sweep, EngTrainSweep *runs, EngErr *err)
{
    EngRunResult result = {0};
    EngRunOptions options = {.db_path = eng_cli_text(cli, "db"),
                             .data_dir = eng_cli_text(cli, "data"),
                             .argv = eng_cli_argv(cli),
                             .argc = eng_cli_argc(cli),
                             .interrupted = eng_cli_watch_signals(),
                             .hooks = eng_train_sweep_hooks(runs)};
    bool appends = !eng_cli_flag(cli, "recorded");
    EngStatus status = appends ? eng_cli_check_writable(cli, "runs", err) : ENG_OK;
    if (status == ENG_IO) {
        char why[ENG_ERR_TEXT_BYTES];
        snprintf(why, sizeof why, "%s", err->text);
        ENG_FAIL(err, status, "%.900s (with --recorded nothing is added)", why);
    }
    if (!status) status = eng_run_sweep(sweep, &options, &result, err);
    if (status == ENG_INTERRUPTED)
        ENG_FAIL(err, ENG_INTERRUPTED, "interrupted; the same command goes on where it stopped");
    if (!status) status = print_result(cli, &result, err);
    return status;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngSweep *sweep = NULL;
    EngTrainSweep *runs = NULL;
    EngStr folder = {0};
    int64_t jobs, minutes;
    if (eng_cli_operands(cli) != 1)
        return ENG_FAIL(err, ENG_USAGE,
                        "train: name one sweep file (sweeps/train/*.sweep), or `train`");
    EngStatus status = eng_cli_int(cli, "jobs", 1, 64, &jobs, err);
    if (!status) status = eng_cli_int(cli, "checkpoint", 0, 1440, &minutes, err);
    if (!status) status = read_sweep(cli, eng_cli_operand(cli, 0), &sweep, err);
    if (status) return status;
    if (eng_cli_text(cli, "work"))
        eng_str_add(&folder, eng_cli_text(cli, "work"));
    else
        eng_str_printf(&folder, "%s.train", eng_cli_text(cli, "db"));
    EngTrainSweepOptions options = {.data_dir = eng_cli_text(cli, "data"),
                                    .folder = folder.text,
                                    .ledger = eng_cli_text(cli, "runs"),
                                    .jobs = (int)jobs,
                                    .recorded = eng_cli_flag(cli, "recorded"),
                                    .progress_line = isatty(STDERR_FILENO) == 1,
                                    .checkpoint_ns = minutes * 60000000000,
                                    .interrupted = eng_cli_watch_signals()};
    status = eng_str_status(&folder, err);
    if (!status) status = eng_train_sweep_create(&options, &runs, err);
    if (!status)
        status = eng_cli_flag(cli, "dry-run") ? describe(cli, sweep, runs, err)
                                              : train(cli, sweep, runs, err);
    eng_train_sweep_destroy(runs);
    eng_sweep_free(sweep);
    eng_str_free(&folder);
    return status;
}

static const EngOption g_options[] = {
    {.name = "axis",
     .letter = 'a',
     .value = "NAME=VALUES",
     .repeat = true,
     .help = "values of an axis, e.g. -a model_seed=1,2 (`engram list train` names them)"},
    ENG_OPTION_DB,
    ENG_OPTION_DATA,
    {.name = "runs",
     .value = "FILE",
     .def = ENG_SOURCE_DIR "/docs/measurements/training.csv",
     .env = true,
     .help = "finished runs: what it has is not trained again, what ends is added"},
    {.name = "jobs",
     .value = "N",
     .def = "1",
     .help = "runs side by side, one thread each: as many as there are cores"},
    {.name = "work",
     .value = "DIR",
     .help = "checkpoints and results (default: beside the database)"},
    {.name = "checkpoint", .value = "MINUTES", .def = "2", .help = "between checkpoints of a run"},
    {.name = "recorded", .help = "train nothing: take only what --runs has"},
    {.name = "dry-run", .help = "print the arms, their parameters and the time; train nothing"},
};

const EngVerb eng_verb_train = {
    .name = "train",
    .operands = "SWEEP_FILE | train",
    .summary = "train the arms of an ablation, e.g. `engram train sweeps/train/rho.sweep --jobs=2`",
    .details = "Each section of the sweep may change one variable beside the seed. A run that was "
               "stopped\n"
               "or killed goes on from its checkpoint and ends with the same loss. "
               "docs/replicate.md walks\n"
               "through an ablation.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = 1,
    .run = run,
};
