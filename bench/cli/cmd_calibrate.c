/* engram calibrate: measure what a plan may assume of this machine, write it as a machine file, and
 * hold the planner's models against further measurements. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/cli/calibrate_parts.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/core/db_costs.h"
#include "bench/core/db_recording.h"
#include "bench/core/machine.h"
#include "bench/core/runner.h"
#include "bench/experiments/experiments.h"
#include "sim/machine/machine.h"
#include "sim/planner/calibration.h"

#define MOST_RUNS 2 /* calibrate, validate */

typedef struct Calibrate {
    EngCli *cli;
    EngMachine machine;
    EngSweep *sweeps[MOST_RUNS];
    char run_ids[MOST_RUNS][ENG_KEY_HEX];
    int n;
    EngDb *db;
    EngRecording measured; /* of all runs */
    EngRecording held;     /* --validate: points of its run; those that the fit used are left out */
    EngRecording fitted;   /* of --fit; else empty */
    EngCalibration calibration; /* of this occasion, for the machine file */
    EngCalibration predicting;  /* of --fit, or the same */
    int failed;                 /* points */
} Calibrate;

/* ---- measuring ---------------------------------------------------------------------------------
 */

/* The sweep's text with "threads = 1, 2" standing for one and all processors. */
static EngStatus sweep_text(const Calibrate *c, const char *path, EngStr *out, EngErr *err)
{
    static const char two[] = "threads = 1, 2";
    char *text;
    size_t n;
    EngStatus status = eng_file_read(path, &text, &n, err);
    if (status) return status;
    for (char *at = text, *next; at; at = next) {
        next = strstr(at, two);
        if (!next) {
            eng_str_add(out, at);
            break;
        }
        *next = 0;
        eng_str_printf(out, c->machine.cores > 1 ? "%sthreads = 1, %d" : "%sthreads = 1", at,
                       c->machine.cores);
        next += sizeof two - 1;
    }
    eng_free(text);
    return eng_str_status(out, err);
}

static EngStatus read_sweep(Calibrate *c, const char *name, EngErr *err)
{
    static const EngCatalog catalog = {.experiments = &eng_experiments, .kernels = eng_kernels};
    static const char *const quick[] = {"pairs=5", "budget_ms=800"};
    EngStr path = {0}, text = {0};
    eng_str_printf(&path, "%s/sweeps/%s.sweep", ENG_SOURCE_DIR, name);
    EngStatus status = eng_str_status(&path, err);
    if (!status) status = sweep_text(c, path.text, &text, err);
    if (!status)
        status = eng_sweep_parse(text.text, path.text, &catalog, quick,
                                 eng_cli_flag(c->cli, "quick") ? 2 : 0, &c->sweeps[c->n], err);
    if (!status) c->n++;
    eng_str_free(&path);
    eng_str_free(&text);
    return status;
}

/* Said before anything runs; what surrounds the samples is told by history, if there is any. */
static EngStatus print_estimate(Calibrate *c, EngErr *err)
{
    double ns = 0, overhead_ns;
    int points = 0;
    EngDb *db = NULL;
    EngOverheads overheads = {0};
    EngStatus status = ENG_OK;
    eng_db_open(eng_cli_text(c->cli, "db"), ENG_DB_READ, &db, NULL);
    for (int i = 0; i < c->n && !status; i++) {
        EngSession *session;
        status = eng_session_open(c->sweeps[i], eng_cli_text(c->cli, "data"), &session, err);
        if (status) break;
        const EngPlan *plan = eng_session_plan(session);
        points += plan->n_named - plan->n_skipped;
        for (int b = 0; b < plan->n_blocks && !status; b++) {
            const EngPlanBlock *block = &plan->blocks[b];
            status = eng_db_overhead_ns(&overheads, db, block->experiment->name, &overhead_ns, err);
            ns += eng_block_estimate_ns(block) + overhead_ns * (double)eng_block_setups(block);
        }
        eng_session_free(session);
    }
    if (!status)
        eng_info("calibrate",
                 "%d points, about %.0f s unless found in the database; keep the "
                 "machine quiet",
                 points, ns * 1e-9);
    eng_db_close(db);
    return status;
}

/* Threads that wait for each other lose milliseconds to any other program. */
static void warn_of_load(void)
{
    double load;
    if (getloadavg(&load, 1) == 1 && load > 0.5)
        eng_warn("calibrate",
                 "other programs are running (load %.1f): what they take is in the machine file",
                 load);
}

static EngStatus measure(Calibrate *c, EngErr *err)
{
    EngRunOptions options = {.db_path = eng_cli_text(c->cli, "db"),
                             .db = c->db,
                             .data_dir = eng_cli_text(c->cli, "data"),
                             .fresh = eng_cli_flag(c->cli, "fresh"),
                             .progress_line = isatty(STDERR_FILENO) == 1,
                             .argv = eng_cli_argv(c->cli),
                             .argc = eng_cli_argc(c->cli),
                             .interrupted = eng_cli_watch_signals()};
    EngStatus status = ENG_OK;
    warn_of_load();
    for (int i = 0; i < c->n && !status; i++) {
        EngRunResult result = {0};
        status = eng_run_sweep(c->sweeps[i], &options, &result, err);
        if (status == ENG_INTERRUPTED)
            ENG_FAIL(err, ENG_INTERRUPTED, "interrupted; the same command goes on");
        memcpy(c->run_ids[i], result.run_id, ENG_KEY_HEX);
        c->failed += result.failed + result.wrong;
    }
    return status;
}

/* ---- machine file ------------------------------------------------------------------------------
 */

static EngMachineFacts find_facts(const Calibrate *c)
{
    EngMachineFacts facts = {.memory_bytes = (double)c->machine.memory_bytes};
    struct statvfs drive;
    glob_t nodes;
    if (!statvfs(eng_cli_text(c->cli, "data"), &drive))
        facts.drive_bytes = (double)drive.f_blocks * (double)drive.f_frsize;
    if (!glob("/sys/devices/system/node/node[0-9]*", 0, NULL, &nodes)) {
        facts.numa_nodes = (double)nodes.gl_pathc;
        globfree(&nodes);
    }
    return facts;
}

static EngStatus write_machine(const Calibrate *c, EngErr *err)
{
    const char *path = eng_cli_text(c->cli, "out");
    EngMachineFacts facts = find_facts(c);
    EngMachineModel model;
    EngStr text = {0};
    if (c->calibration.slowdown_basis[0] && !(c->calibration.slowdowns.fetch > 0))
        eng_warn("calibrate",
                 "a gather beside a product was not slower: fetch_slowdown is left out");
    if (c->calibration.slowdown_basis[0] && !(c->calibration.slowdowns.compute > 0))
        eng_warn("calibrate",
                 "a product beside a gather was not slower: compute_slowdown is left out");
    if (!(c->calibration.populate_rate > 0))
        eng_warn("calibrate", "populating was not measured: dram.populate_rate is left out");
    EngStatus status = eng_calibration_machine(&c->calibration, &facts, &text, err);
    /* What is written must be what a plan can read. */
    if (!status) status = eng_machine_parse(path, text.text, &model, err);
    if (!status) status = eng_file_write(path, text.text, text.n, err);
    for (int t = 0; t < model.n_tiers && !status; t++)
        for (int f = 0; f < ENG_TIER_FIELD_COUNT; f++) {
            const EngQuantity *q = &model.tiers[t].fields[f];
            if (!eng_tier_has(&model.tiers[t], (EngTierField)f)) continue;
            printf("%s.%s = %.6g %s  (%s)\n", model.tiers[t].name,
                   eng_tier_field_name((EngTierField)f), q->value,
                   eng_tier_field_unit((EngTierField)f), q->source);
        }
    if (!status) printf("\nmachine file %s: engram size --machine=%s ...\n", path, path);
    eng_str_free(&text);
    return status;
}

/* ---- validation --------------------------------------------------------------------------------
 */

static EngStatus print_errors(const Calibrate *c, int *beyond, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"model", false}, {"points", true}, {"mean error", true}, {"signed", true},
        {"gate", true},   {"worst", true},  {"at", false},        {"", false}};
    EngModelError errors[ENG_MODEL_COUNT];
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 8, err);
    if (status) return status;
    eng_calibration_errors(&c->predicting, &c->held, errors);
    for (int m = 0; m < ENG_MODEL_COUNT; m++) {
        const EngModelError *e = &errors[m];
        bool missed = e->absolute > eng_model_gate((EngModelKind)m);
        eng_table_text(table, eng_model_name((EngModelKind)m));
        eng_table_printf(table, "%d", e->n);
        eng_table_printf(table, "%.1f %%", 100 * e->absolute);
        eng_table_printf(table, "%+.1f %%", 100 * e->bias);
        eng_table_printf(table, "%.0f %%", 100 * eng_model_gate((EngModelKind)m));
        eng_table_printf(table, "%+.1f %%", 100 * e->worst);
        eng_table_text(table, e->at ? e->at->axes : "");
        eng_table_text(table, !e->n ? "not calibrated" : missed ? "beyond its gate" : "");
        *beyond += missed || !e->n;
    }
    printf("\nfitted on %s of %s:\n", c->predicting.name, c->predicting.date);
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

/* What is held against predictions: with --fit everything, else what was not fitted to. */
static EngStatus hold_out(Calibrate *c, EngErr *err)
{
    const char *fitted = c->run_ids[0], *held = c->run_ids[1];
    EngRecording first = {0}, second = {0};
    EngStatus status = eng_db_recording(c->db, &fitted, 1, &first, err);
    if (!status) status = eng_db_recording(c->db, &held, 1, &second, err);
    for (int i = 0; i < second.n && !status; i++) {
        const EngRecordedValue *v = &second.values[i];
        if (eng_cli_text(c->cli, "fit") ||
            !eng_recording_find(&first, v->experiment, v->axes, v->metric))
            status = eng_recording_add(&c->held, v, err);
    }
    eng_recording_free(&first);
    eng_recording_free(&second);
    return status;
}

static EngStatus provenance(const Calibrate *c, const EngPrediction *p, char **out, EngErr *err)
{
    EngStr text = {0};
    eng_str_printf(&text, "%s%s, fitted on %s of %s: %s", p->extrapolated ? "extrapolated: " : "",
                   eng_model_name(p->model), c->predicting.name, c->predicting.date, p->basis);
    EngStatus status = eng_str_status(&text, err);
    *out = text.text;
    return status;
}

/* One simulated point beside each measured one that a model speaks of. */
static EngStatus store_predictions(const Calibrate *c, EngErr *err)
{
    EngSimulated *values;
    char **texts, run_id[ENG_KEY_HEX];
    EngStr model = {0};
    int n = 0;
    EngStatus status =
        eng_alloc_or((void **)&values, (size_t)c->held.n, sizeof *values, "predictions", err);
    if (status) return status;
    status = eng_alloc_or((void **)&texts, (size_t)c->held.n, sizeof *texts, "predictions", err);
    for (int i = 0; i < c->held.n && !status; i++) {
        const EngRecordedValue *v = &c->held.values[i];
        EngPrediction p;
        if (!eng_calibration_predict(&c->predicting, &c->held, v, &p)) continue;
        status = provenance(c, &p, &texts[n], err);
        values[n] = (EngSimulated){v->key, v->metric, p.value, texts[n]};
        n++;
    }
    eng_str_printf(&model, "models of %s, %s of %s", ENG_VERSION, c->predicting.name,
                   c->predicting.date);
    if (!status) status = eng_str_status(&model, err);
    if (!status)
        status = eng_db_put_simulated(c->db, c->run_ids[c->n - 1], "validate, simulated",
                                      model.text, values, n, run_id, err);
    for (int i = 0; texts && i < n; i++) eng_free(texts[i]);
    eng_str_free(&model);
    eng_free(texts);
    eng_free(values);
    return status;
}

/* ---- the verb ----------------------------------------------------------------------------------
 */

/* Before anything is measured: a mistake must not come after minutes. */
static EngStatus open_fitted(Calibrate *c, EngErr *err)
{
    const char *path = eng_cli_text(c->cli, "fit");
    if (!path) return ENG_OK;
    if (!eng_cli_flag(c->cli, "validate"))
        return ENG_FAIL(err, ENG_USAGE,
                        "--fit is for --validate: a machine file is of this machine");
    EngStatus status = eng_recording_open(path, &c->fitted, err);
    if (status == ENG_NOT_FOUND)
        status = ENG_FAIL(err, ENG_BAD_DATA, "--fit=%s: no such file", path);
    return status;
}

/* Parts that lack a measurement are named, and what rests on them is left out. */
static EngStatus fit(Calibrate *c, const EngRecording *recording, EngCalibration *out, EngErr *err)
{
    EngStr missing = {0};
    EngStatus status = eng_calibration_fit(recording, &missing, out, err);
    for (char *line = missing.text, *end; line && *line && !status; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        eng_warn("calibrate", "not calibrated: %s", line);
        c->failed++;
    }
    eng_str_free(&missing);
    return status;
}

static EngStatus record(const Calibrate *c, EngErr *err)
{
    const char *path = eng_cli_text(c->cli, "record");
    EngStr text = {0};
    if (!path) return ENG_OK;
    EngStatus status = eng_recording_print(&c->measured, &text, err);
    if (!status) status = eng_file_write(path, text.text, text.n, err);
    if (!status) eng_info("calibrate", "recorded %d values in %s", c->measured.n, path);
    eng_str_free(&text);
    return status;
}

static EngStatus calibrate(Calibrate *c, EngErr *err)
{
    const char *runs[MOST_RUNS];
    bool validate = eng_cli_flag(c->cli, "validate");
    int beyond = 0;
    EngStatus status = eng_machine_describe(&c->machine, err);
    if (!status) status = open_fitted(c, err);
    if (!status) status = read_sweep(c, "calibrate", err);
    if (!status && validate) status = read_sweep(c, "validate", err);
    if (!status) status = print_estimate(c, err);
    if (status || eng_cli_flag(c->cli, "dry-run")) return status;
    status = eng_cli_check_writable(c->cli, "out", err);
    if (!status) status = eng_cli_check_writable(c->cli, "record", err);
    if (!status) status = eng_db_open(eng_cli_text(c->cli, "db"), ENG_DB_RUN, &c->db, err);
    if (!status) status = measure(c, err);
    for (int i = 0; i < c->n; i++) runs[i] = c->run_ids[i];
    if (!status) status = eng_db_recording(c->db, runs, c->n, &c->measured, err);
    if (!status) status = record(c, err);
    if (!status) status = fit(c, &c->measured, &c->calibration, err);
    c->predicting = c->calibration;
    if (!status && c->fitted.n) status = fit(c, &c->fitted, &c->predicting, err);
    if (!status) status = write_machine(c, err);
    if (!status && validate) status = hold_out(c, err);
    if (!status && validate) status = store_predictions(c, err);
    if (!status && validate) status = print_errors(c, &beyond, err);
    if (!status && validate)
        status = eng_calibrate_counts(c->db, c->sweeps[1], eng_cli_text(c->cli, "data"),
                                      c->run_ids[1], &c->measured, &beyond, err);
    /* A run that was resumed is older than the one of this call's calibration. */
    if (!status && validate)
        eng_info("calibrate", "engram report validation --db=%s --run=%.8s draws it",
                 eng_cli_text(c->cli, "db"), c->run_ids[1]);
    if (!status && (c->failed || beyond)) eng_cli_exit_with(c->cli, c->failed ? 2 : 3);
    return status;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    Calibrate *c;
    EngStatus status = eng_alloc_or((void **)&c, 1, sizeof *c, "calibrate", err);
    if (status) return status;
    c->cli = cli;
    status = calibrate(c, err);
    for (int i = 0; i < c->n; i++) eng_sweep_free(c->sweeps[i]);
    eng_recording_free(&c->measured);
    eng_recording_free(&c->fitted);
    eng_recording_free(&c->held);
    eng_db_close(c->db);
    eng_machine_free(&c->machine);
    eng_free(c);
    return status;
}

static const EngOption g_options[] = {
    {.name = "out",
     .value = "FILE",
     .def = "out/machine.json",
     .help = "machine file to write, for engram size --machine=FILE"},
    {.name = "quick", .help = "fewer samples: half a minute, wider intervals"},
    {.name = "validate",
     .help = "measure sweeps/validate.sweep too, predict it, and say how far the models are off"},
    {.name = "fit",
     .value = "RECORDING",
     .help = "with --validate: parameters from that occasion instead of this one"},
    {.name = "record",
     .value = "FILE",
     .help = "write this occasion's medians (tests/data/recordings)"},
    {.name = "fresh", .help = "measure again what the database holds already"},
    {.name = "dry-run", .help = "read the sweeps and print the estimate"},
    ENG_OPTION_DB,
    ENG_OPTION_DATA,
};

const EngVerb eng_verb_calibrate = {
    .name = "calibrate",
    .operands = "",
    .summary = "measure this machine for plans: a machine file, and how far the models are off",
    .details =
        "Runs sweeps/calibrate.sweep (resumable: the same command goes on) and fits the planner's\n"
        "parameters. Parts that could not be measured are named and left out of the file; exit\n"
        "code 2 then. With --validate, 3 when a model is beyond its gate. `engram report\n"
        "validation` draws predictions against measurements.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .run = run,
};
