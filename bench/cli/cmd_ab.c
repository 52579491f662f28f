/* engram ab: did my change help? The same points with two builds of the kernels, judged. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/cli/worth.h"
#include "bench/core/ab.h"
#include "bench/core/plugin.h"
#include "bench/experiments/experiments.h"

#define FILE_ENDING ".sweep"

static const EngCatalog g_catalog = {.experiments = &eng_experiments, .kernels = eng_ab_kernels};

/* ---- what to measure ---------------------------------------------------------------------------
 */

/* Without a sweep: every experiment whose operation the builds share, at its defaults. */
static EngStatus default_sweep(EngCli *cli, EngSweep **sweep, EngErr *err)
{
    EngStr text = {0};
    const char *assignments[ENG_CLI_MAX_ARGS];
    int n = eng_cli_repeats(cli, "axis"), shared;
    for (int i = 0; i < n; i++) assignments[i] = eng_cli_repeat(cli, "axis", i);
    eng_str_add(&text, "[sweep]\nname = ab\n");
    for (int i = 0; i < eng_experiments.n; i++) {
        const EngExperiment *e = eng_experiments.items[i];
        if (e->counted || e->op < 0) continue;
        eng_ab_kernels((EngOp)e->op, &shared);
        if (shared) eng_str_printf(&text, "[%s]\n", e->name);
    }
    EngStatus status = eng_str_status(&text, err);
    if (!status)
        status = eng_sweep_parse(text.text, "command line", &g_catalog, assignments, n, sweep, err);
    eng_str_free(&text);
    return status;
}

/* Pairs and segments are the comparison's own; so is the order of samples, which `seed` starts. */
static EngStatus refuse_settings(const EngCli *cli, EngErr *err)
{
    for (int i = 0; i < eng_cli_repeats(cli, "axis"); i++) {
        const char *text = eng_cli_repeat(cli, "axis", i);
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
        if (eng_sweep_is_setting(name) && strcmp(name, "seed") != 0)
            return ENG_FAIL(err, ENG_USAGE,
                            "-a %s: a comparison has --pairs, --segments and --budget, and no "
                            "precision, settled or trace",
                            text);
    }
    return ENG_OK;
}

static EngStatus read_sweep(EngCli *cli, const char *what, EngSweep **sweep, EngErr *err)
{
    const char *assignments[ENG_CLI_MAX_ARGS];
    int n = eng_cli_repeats(cli, "axis");
    size_t length = what ? strlen(what) : 0, ending = strlen(FILE_ENDING);
    if (!what) return default_sweep(cli, sweep, err);
    for (int i = 0; i < n; i++) assignments[i] = eng_cli_repeat(cli, "axis", i);
    bool file =
        strchr(what, '/') || (length > ending && !strcmp(what + length - ending, FILE_ENDING));
    return file ? eng_sweep_read(what, &g_catalog, assignments, n, sweep, err)
                : eng_sweep_adhoc(what, &g_catalog, assignments, n, sweep, err);
}

static EngStatus read_options(EngCli *cli, EngAbOptions *options, EngErr *err)
{
    int64_t segments = 0, pairs = 0, budget_s = 0;
    const char *threshold = eng_cli_text(cli, "threshold"), *least = eng_cli_text(cli, "absolute");
    options->rules = eng_verdict_rules;
    EngStatus status = eng_cli_int(cli, "segments", ENG_VERDICT_MIN_SEGMENTS,
                                   ENG_VERDICT_MAX_SEGMENTS, &segments, err);
    if (!status) status = eng_cli_int(cli, "pairs", 1, 1000, &pairs, err);
    if (!status) status = eng_cli_int(cli, "budget", 0, 7 * 24 * 3600, &budget_s, err);
    double percent = 0, ns = 0;
    if (!status && (!eng_parse_f64(threshold, &percent) || !(percent >= 0 && percent <= 1000)))
        status =
            ENG_FAIL(err, ENG_USAGE, "--threshold=%s: not a percentage from 0 to 1000", threshold);
    if (!status && least && (!eng_parse_f64(least, &ns) || !(ns > 0 && ns <= 1e12)))
        status = ENG_FAIL(err, ENG_USAGE, "--absolute=%s: not nanoseconds above 0", least);
    options->segments = (int)segments;
    options->pairs = (int)pairs;
    options->budget_ms = budget_s * 1000;
    options->rules.threshold = percent / 100;
    options->rules.resolution_ns = ns;
    return status;
}

/* ---- result ------------------------------------------------------------------------------------
 */

static void print_ratio(EngTextTable *table, const EngRatio *r)
{
    if (isnan(r->ratio)) {
        eng_table_text(table, "");
        eng_table_text(table, "");
        return;
    }
    eng_table_printf(table, "%.3f", r->ratio);
    if (isnan(r->lo))
        eng_table_text(table, "");
    else
        eng_table_printf(table, "%.3f..%.3f", r->lo, r->hi);
}

static void print_point(EngTextTable *table, const EngAbPoint *p)
{
    char axes[256];
    bool measured = p->outcome == ENG_OUTCOME_MEASURED;
    eng_axes_text(&eng_experiments, p->experiment, p->axes_json, axes, sizeof axes);
    eng_table_text(table, p->experiment);
    eng_table_text(table, axes);
    eng_table_text(table, p->variant);
    eng_table_text(table,
                   measured ? eng_verdict_name(p->verdict.word) : eng_outcome_name(p->outcome));
    if (measured) {
        print_ratio(table, &p->effect.ratio);
        eng_table_number(table, p->effect.old_ns * 1e-3);
        eng_table_number(table, p->effect.new_ns * 1e-3);
        eng_table_printf(table, "%+.1f %%", 100 * (p->effect.control.ratio - 1));
        eng_table_printf(table, "%d/%d", p->effect.ratio.n_pairs, p->effect.ratio.n_segments);
        eng_table_printf(table, "%s%s", p->verdict.reason, p->cut_short ? " (time budget)" : "");
    } else {
        for (int i = 0; i < 6; i++) eng_table_text(table, "");
        eng_table_text(table, p->reason);
    }
}

static EngStatus print_points(const EngAb *ab, EngErr *err)
{
    static const EngTableColumn columns[] = {{"experiment", false}, {"axes not at default", false},
                                             {"variant", false},    {"verdict", false},
                                             {"new/old", true},     {"95 % interval", true},
                                             {"old us", true},      {"new us", true},
                                             {"A/A", true},         {"pairs", true},
                                             {"reason", false}};
    EngTextTable *table;
    int n;
    const EngAbPoint *points = eng_ab_points(ab, &n);
    EngStatus status = eng_table_create(&table, columns, 11, err);
    if (status) return status;
    for (int i = 0; i < n; i++) print_point(table, &points[i]);
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

static void sum_up(EngCli *cli, const EngAb *ab, const EngRunResult *result)
{
    EngVerdictCounts counts = {0};
    int n, broken = 0, skipped = 0;
    const EngAbPoint *points = eng_ab_points(ab, &n);
    for (int i = 0; i < n; i++) {
        if (points[i].outcome == ENG_OUTCOME_MEASURED)
            counts.by_word[points[i].verdict.word]++;
        else if (points[i].outcome == ENG_OUTCOME_SKIPPED)
            skipped++;
        else
            broken++;
    }
    int judged = n - broken - skipped;
    printf(
        "\n%d points: %d slower, %d faster, %d same, %d unclear, %d failed or wrong, %d skipped; "
        "run %.8s in %s%s\n",
        n, counts.by_word[ENG_VERDICT_SLOWER], counts.by_word[ENG_VERDICT_FASTER],
        counts.by_word[ENG_VERDICT_SAME], counts.by_word[ENG_VERDICT_UNCLEAR], broken, skipped,
        result->run_id, eng_cli_text(cli, "db"),
        eng_ab_identical(ab) ? "; both hold the same code" : "");
    if (*eng_ab_not_compared(ab))
        eng_warn("ab", "in one of the two only, not compared: %s", eng_ab_not_compared(ab));
    int code = eng_verdict_exit_code(&counts, eng_cli_flag(cli, "strict"));
    eng_cli_exit_with(cli, code == 3 ? 3 : broken ? 2 : !judged ? 5 : code);
}

static bool is_called(const EngVerdict *verdict)
{
    return verdict->word == ENG_VERDICT_SLOWER || verdict->word == ENG_VERDICT_FASTER;
}

static EngStatus print_worth(const EngAb *ab, EngDb *db, const char *run_id, EngArena *arena,
                             EngErr *err)
{
    EngRunStatus run;
    int n, n_changes = 0;
    const EngAbPoint *points = eng_ab_points(ab, &n);
    EngChange *changes = eng_arena_alloc(arena, ((size_t)n + 1) * sizeof *changes);
    if (!changes) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the result");
    for (int i = 0; i < n; i++)
        if (points[i].outcome == ENG_OUTCOME_MEASURED)
            changes[n_changes++] = (EngChange){.experiment = points[i].experiment,
                                               .axes_json = points[i].axes_json,
                                               .variant = points[i].variant,
                                               .ratio = points[i].effect.ratio.ratio,
                                               .called = is_called(&points[i].verdict)};
    EngStatus status = eng_db_status(db, run_id, arena, &run, err);
    if (status) return status;
    return eng_worth_print_changes(db, run.machine_id, changes, n_changes, "new over old", err);
}

static EngStatus read_worth(EngCli *cli, const EngAb *ab, const char *run_id, EngErr *err)
{
    EngDb *db = NULL;
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the result");
    EngStatus status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db, err);
    if (!status) status = print_worth(ab, db, run_id, arena, err);
    eng_db_close(db);
    eng_arena_destroy(arena);
    return status;
}

/* The verdicts stand without it. */
static void say_worth(EngCli *cli, const EngAb *ab, const char *run_id)
{
    EngErr err = {0};
    if (read_worth(cli, ab, run_id, &err))
        eng_warn("ab", "no word on what this is worth for the chain: %s", err.text);
}

/* Times of every pair, for recordings of noise (tests/data/noise_pairs.csv). */
static EngStatus write_samples(const EngAb *ab, const char *path, EngErr *err)
{
    EngWriter writer = {0};
    int n_points, n;
    eng_ab_points(ab, &n_points);
    EngStatus status = eng_writer_open(&writer, path, err);
    if (!status)
        status = eng_writer_printf(&writer, err, "point,segment,old_ns,control_ns,new_ns\n");
    for (int p = 0; p < n_points && !status; p++) {
        const EngAbSample *s = eng_ab_samples(ab, p, &n);
        for (int i = 0; i < n && !status; i++)
            status = eng_writer_printf(&writer, err, "%d,%d,%.6g,%.6g,%.6g\n", p, s[i].segment,
                                       s[i].old_ns, s[i].control_ns, s[i].new_ns);
    }
    if (!status) status = eng_writer_commit(&writer, err);
    eng_writer_close(&writer);
    return status;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngAb *ab = NULL;
    EngSweep *sweep = NULL;
    EngRunResult result = {0};
    EngRunOptions options = {.db_path = eng_cli_text(cli, "db"),
                             .data_dir = eng_cli_text(cli, "data"),
                             .fresh = eng_cli_flag(cli, "fresh"),
                             .progress_line = isatty(STDERR_FILENO) == 1,
                             .argv = eng_cli_argv(cli),
                             .argc = eng_cli_argc(cli)};
    EngAbOptions ab_options;
    if (eng_cli_operands(cli) < 2)
        return ENG_FAIL(
            err, ENG_USAGE,
            "ab: name the old and the new build, e.g. `engram ab old.so new.so gather`");
    EngStatus status = read_options(cli, &ab_options, err);
    if (!status) status = refuse_settings(cli, err);
    if (!status && eng_cli_flag(cli, "build"))
        status = eng_plugin_build(eng_cli_operand(cli, 1), err);
    if (!status) status = eng_ab_open(eng_cli_operand(cli, 0), eng_cli_operand(cli, 1), &ab, err);
    if (!status) status = read_sweep(cli, eng_cli_operand(cli, 2), &sweep, err);
    options.interrupted = eng_cli_watch_signals();
    if (!status) status = eng_ab_run(ab, sweep, &ab_options, &options, &result, err);
    if (status == ENG_INTERRUPTED && result.run_id[0])
        ENG_FAIL(err, status, "interrupted; the same command goes on where run %.8s stopped",
                 result.run_id);
    if (!status) status = print_points(ab, err);
    if (!status) say_worth(cli, ab, result.run_id);
    if (!status) sum_up(cli, ab, &result);
    if (!status && eng_cli_text(cli, "samples"))
        status = write_samples(ab, eng_cli_text(cli, "samples"), err);
    eng_sweep_free(sweep);
    eng_ab_free(ab);
    return status;
}

static const EngOption g_options[] = {
    {.name = "axis",
     .letter = 'a',
     .value = "NAME=VALUES",
     .repeat = true,
     .help = "values of an axis, as for `engram run`"},
    {.name = "segments", .value = "N", .def = "20", .help = "worker lifetimes a point, 6 or more"},
    {.name = "pairs",
     .value = "N",
     .def = "12",
     .help =
         "pairs of samples in each lifetime; 12 x 20 find 3 % on a busy machine, 4 x 20 need not"},
    {.name = "budget",
     .value = "SECONDS",
     .def = "0",
     .help = "most time for all points, 0: no limit"},
    {.name = "threshold",
     .value = "PERCENT",
     .def = "2",
     .help = "differences up to this are never called"},
    {.name = "absolute",
     .value = "NS",
     .help = "least difference of a sample (about 1 ms) that is called; default: four steps of the "
             "clock"},
    {.name = "build", .help = "bring NEW, a build folder, up to date with its sources first"},
    {.name = "fresh", .help = "measure anew, also what an interrupted run of the same has"},
    {.name = "strict", .help = "exit 4 when a point is unclear"},
    {.name = "samples", .value = "FILE", .help = "write the times of all pairs (CSV)"},
    ENG_OPTION_DB,
    ENG_OPTION_DATA,
};

const EngVerb eng_verb_ab = {
    .name = "ab",
    .operands = "OLD NEW [SWEEP_FILE | EXPERIMENT]",
    .summary = "compare two builds of the kernels: faster, slower, same or unclear",
    .details =
        "OLD and NEW are shared objects with kernels (include/engram/plugin.h) or build folders\n"
        "of cmake. From a folder libengram_kernels.so is taken, and built first when it is\n"
        "missing there, or, for NEW, with --build: `engram ab old.so build gather --build`\n"
        "compiles and judges. Of a sweep file the points count, not its pairs, segments or\n"
        "budget. Ratios are of times: below 1 is faster. Exit code 3: something is slower; 2: a\n"
        "point failed or was wrong; 5: nothing could be judged; 4: something is unclear and\n"
        "--strict is given. Verdicts are stored (`engram export --verdicts`); a killed or\n"
        "interrupted comparison goes on with the same command.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = 3,
    .run = run,
};
