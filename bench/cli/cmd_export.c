/* engram export: points or samples of runs as CSV or JSON for other programs. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "bench/ablation/sweep.h"
#include "bench/cli/verbs.h"
#include "bench/core/db_export.h"
#include "bench/experiments/experiments.h"

static EngStatus put_stdout(void *context, const char *text, size_t n, EngErr *err)
{
    (void)context;
    if (fwrite(text, 1, n, stdout) == n) return ENG_OK;
    return ENG_FAIL(err, ENG_IO, "standard output: cannot write");
}

static EngStatus put_file(void *context, const char *text, size_t n, EngErr *err)
{
    return eng_writer_put(context, text, n, err);
}

static EngStatus export_to(EngDb *db, const EngExportOptions *options, const char *path,
                           EngErr *err)
{
    int64_t n = 0;
    EngWriter writer;
    if (!path || !strcmp(path, "-")) return eng_db_export(db, options, put_stdout, NULL, &n, err);
    EngStatus status = eng_writer_open(&writer, path, err);
    if (status) return status;
    status = eng_db_export(db, options, put_file, &writer, &n, err);
    if (status) {
        eng_writer_close(&writer);
        return status;
    }
    status = eng_writer_commit(&writer, err);
    if (!status) eng_info("export", "%s: %lld rows", path, (long long)n);
    return status;
}

/* A name may be of points that the database has and we do not know, such as imported ones. */
static EngStatus check_experiment(EngDb *db, const char *name, EngErr *err)
{
    const EngExperiment *known;
    bool has = true;
    if (!name || !eng_experiment_find(&eng_train_experiments, name, &known, NULL)) return ENG_OK;
    EngStatus status = eng_db_has_experiment(db, name, &has, err);
    return status || has ? status : eng_experiment_find(&eng_experiments, name, &known, err);
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngDb *db = NULL;
    const char *name = eng_cli_text(cli, "format"), *out = eng_cli_text(cli, "out");
    int format = eng_rows_format_parse(name);
    if (format < 0) return ENG_FAIL(err, ENG_USAGE, "--format=%s: csv or json", name);
    if (out && !*out) return ENG_FAIL(err, ENG_USAGE, "--out= names no file");
    bool samples = eng_cli_flag(cli, "samples"), verdicts = eng_cli_flag(cli, "verdicts");
    if (samples && verdicts)
        return ENG_FAIL(err, ENG_USAGE, "export: --samples or --verdicts, not both");
    EngExportOptions options = {.run = eng_cli_text(cli, "run"),
                                .experiment = eng_cli_text(cli, "experiment"),
                                .format = (EngRowsFormat)format,
                                .what = samples    ? ENG_EXPORT_SAMPLES
                                        : verdicts ? ENG_EXPORT_VERDICTS
                                                   : ENG_EXPORT_POINTS};
    EngStatus status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db, err);
    if (!status) status = check_experiment(db, options.experiment, err);
    if (!status) status = export_to(db, &options, out, err);
    eng_db_close(db);
    return status;
}

static const EngOption g_options[] = {
    ENG_OPTION_DB,
    {.name = "run",
     .value = "RUN",
     .def = "latest",
     .help = "an id, its beginning, latest, latest~N, or all"},
    {.name = "experiment", .value = "NAME", .help = "points of this experiment only"},
    {.name = "format", .value = "FORMAT", .def = "csv", .help = "csv or json"},
    {.name = "samples", .help = "every stored sample, instead of one row per point"},
    {.name = "verdicts", .help = "what `ab` and `compare` decided, instead of points"},
    {.name = "out", .value = "FILE", .help = "write here instead of to standard output"},
};

const EngVerb eng_verb_export = {
    .name = "export",
    .operands = "",
    .summary = "points, samples or verdicts of a run as CSV or JSON",
    .details =
        "One row per point, which is one tuple of axis values: run_id, machine_id, experiment,\n"
        "kind, backend, one column per axis (by name), variant, is_roof, outcome, reason,\n"
        "percent_of_roof, expected_us, why, per metric (by name) its median, _ci_lo, _ci_hi and "
        "_n, then\n"
        "stop_reason, config_key, point_key. Without a value a field is empty, in JSON null.\n"
        "--samples: one row per sample, with its place, both clocks, metrics and counters.\n"
        "--verdicts: one row per verdict that has the run as its new side.\n"
        "The same results give the same bytes.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = 0,
    .run = run,
};
