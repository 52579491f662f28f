/* engram compare: two finished runs, through the roofs that each measured beside its points. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/cli/worth.h"
#include "bench/core/block.h"
#include "bench/core/db_compare.h"
#include "bench/core/db_expectation.h"
#include "bench/core/db_verdicts.h"
#include "bench/core/verdict.h"
#include "bench/experiments/experiments.h"

/* A config key that both runs have. */
typedef struct Common {
    EngComparedPoint *a, *b;
    EngEffect effect;
    EngVerdict verdict;
    const char *instead; /* of a verdict's word, with the reason */
    const char *reason;
} Common;

typedef struct Comparison {
    EngComparedRun a, b;
    Common *common;
    int n_common, only_a, only_b;
} Comparison;

static EngStatus join(Comparison *c, EngArena *arena, bool across, EngErr *err)
{
    int i = 0, k = 0;
    c->common = eng_arena_alloc(arena, ((size_t)c->a.n_points + 1) * sizeof *c->common);
    if (!c->common) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a comparison");
    while (i < c->a.n_points || k < c->b.n_points) {
        EngComparedPoint *a = &c->a.points[i], *b = &c->b.points[k];
        int order = i == c->a.n_points   ? 1
                    : k == c->b.n_points ? -1
                                         : strcmp(a->config_key, b->config_key);
        i += order <= 0;
        k += order >= 0;
        c->only_a += order < 0;
        c->only_b += order > 0;
        if (order) continue;
        if (strcmp(a->backend, b->backend) && !across)
            return ENG_FAIL(err, ENG_USAGE,
                            "compare: %s %s ran on %s and on %s; --across-machines compares anyway",
                            a->experiment, a->variant, a->backend, b->backend);
        c->common[c->n_common++] = (Common){.a = a, .b = b};
    }
    return ENG_OK;
}

/* NULL: counted, or of no experiment that is known. */
static const char *clock_of(const EngComparedPoint *point)
{
    const EngExperiment *e;
    return eng_experiment_find(&eng_experiments, point->experiment, &e, NULL)
               ? NULL
               : eng_judging_clock(e);
}

static double median_of(const EngComparedPoint *point)
{
    const char *clock = clock_of(point);
    return !clock ? NAN : strcmp(clock, "cpu") ? point->wall_ns : point->cpu_ns;
}

static bool measured(const EngComparedPoint *point)
{
    return point->outcome == ENG_OUTCOME_MEASURED;
}

static bool same_measurement(const Common *m)
{
    return measured(m->b) && !strcmp(m->a->block_id, m->b->block_id) &&
           !strcmp(m->a->point_key, m->b->point_key);
}

/* Whether B failed, or was wrong, where A was measured. */
static bool is_lost(const Common *m)
{
    return measured(m->a) && !measured(m->b) && m->b->outcome != ENG_OUTCOME_SKIPPED;
}

/* Without a verdict where one was possible: as good as unclear. */
static bool is_open(const Common *m)
{
    bool both_skipped =
        m->a->outcome == ENG_OUTCOME_SKIPPED && m->b->outcome == ENG_OUTCOME_SKIPPED;
    return m->instead && clock_of(m->a) && !same_measurement(m) && !both_skipped;
}

/* What stands in a verdict's place, NULL: there can be one. */
static const char *instead_of_verdict(const Common *m, const char **reason)
{
    static const char *const words[2][ENG_OUTCOME_WRONG + 1] = {
        {"", "", "A skipped", "A failed", "A wrong"}, {"", "", "B skipped", "B failed", "B wrong"}};
    for (int run = 1; run >= 0; run--) {
        const EngComparedPoint *point = run ? m->b : m->a;
        *reason = point->reason;
        if (!measured(point)) return words[run][point->outcome];
    }
    if (same_measurement(m)) return "same measurement";
    if (clock_of(m->a) && m->a->n && m->b->n) return NULL;
    *reason = clock_of(m->a) ? "no roof measured beside it" : "not timed";
    return "not judged";
}

static EngStatus judge(Comparison *c, EngArena *arena, EngErr *err)
{
    size_t n = (size_t)c->n_common;
    int judged = 0;
    EngEffect *effects = eng_arena_alloc(arena, (n + 1) * sizeof *effects);
    EngVerdict *verdicts = eng_arena_alloc(arena, (n + 1) * sizeof *verdicts);
    if (!effects || !verdicts)
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a comparison");
    for (int i = 0; i < c->n_common; i++) {
        Common *m = &c->common[i];
        m->instead = instead_of_verdict(m, &m->reason);
        if (m->instead) continue;
        m->effect.ratio = eng_two_runs(m->a->log_ratios, m->a->n, m->b->log_ratios, m->b->n);
        m->effect.control.ratio =
            1 + eng_two_runs_floor(eng_threads_of(m->a->axes_json), m->a->roof_ns, m->b->roof_ns,
                                   fmax(m->a->segment_range, m->b->segment_range));
        effects[judged++] = m->effect;
    }
    EngStatus status = eng_verdicts(&eng_verdict_rules, effects, judged, verdicts, err);
    judged = 0;
    for (int i = 0; i < c->n_common && !status; i++) {
        if (c->common[i].instead) continue;
        EngVerdict *v = &c->common[i].verdict;
        *v = verdicts[judged++];
        if (v->word == ENG_VERDICT_SLOWER || v->word == ENG_VERDICT_FASTER)
            snprintf(v->reason, sizeof v->reason, "p %.2g, floor %.0f %%", v->p_corrected,
                     100 * v->floor);
        else if (isnan(c->common[i].effect.ratio.p))
            snprintf(v->reason, sizeof v->reason, "too few samples");
    }
    return status;
}

/* Best effort: a comparison is worth printing where it cannot be written down. */
static void store(const Comparison *c, const char *path, EngArena *arena)
{
    EngDb *db = NULL;
    EngErr err = {0};
    int n = 0;
    EngVerdictRow *rows = eng_arena_alloc(arena, ((size_t)c->n_common + 1) * sizeof *rows);
    EngEffect *effects = eng_arena_alloc(arena, ((size_t)c->n_common + 1) * sizeof *effects);
    EngStatus status = rows && effects ? eng_db_open(path, ENG_DB_WRITE, &db, &err)
                                       : ENG_FAIL(&err, ENG_NO_MEMORY, "out of memory");
    for (int i = 0; i < c->n_common && !status; i++) {
        const Common *m = &c->common[i];
        if (m->instead) continue;
        effects[n] = m->effect;
        effects[n].control.ratio = NAN; /* none was measured: the floor is a rule */
        effects[n].old_ns = median_of(m->a);
        effects[n].new_ns = median_of(m->b);
        rows[n] = (EngVerdictRow){.kind = "compare",
                                  .run_id = c->b.run_id,
                                  .base_run_id = c->a.run_id,
                                  .point_key = m->b->point_key,
                                  .base_point_key = m->a->point_key,
                                  .effect = &effects[n],
                                  .verdict = &m->verdict};
        n++;
    }
    if (!status) status = eng_db_put_verdicts(db, &eng_verdict_rules, rows, n, &err);
    if (status) eng_warn("compare", "the verdicts are not stored: %s", err.text);
    eng_db_close(db);
}

static void print_point(EngTextTable *table, const Common *m)
{
    char axes[256];
    const EngRatio *r = &m->effect.ratio;
    eng_axes_text(&eng_experiments, m->a->experiment, m->a->axes_json, axes, sizeof axes);
    eng_table_text(table, m->a->experiment);
    eng_table_text(table, axes);
    eng_table_text(table, m->a->variant);
    eng_table_text(table, m->instead ? m->instead : eng_verdict_name(m->verdict.word));
    if (m->instead) {
        for (int i = 0; i < 3; i++) eng_table_text(table, "");
    } else {
        eng_table_printf(table, "%.3f", r->ratio);
        if (isnan(r->lo))
            eng_table_text(table, "");
        else
            eng_table_printf(table, "%.3f..%.3f", r->lo, r->hi);
        eng_table_printf(table, "%d, %d", m->a->n, m->b->n);
    }
    eng_table_number(table, median_of(m->a) * 1e-3);
    eng_table_number(table, median_of(m->b) * 1e-3);
    eng_table_text(table, m->instead ? m->reason : m->verdict.reason);
}

static int by_axes(const void *x, const void *y)
{
    const Common *a = x, *b = y;
    int order = strcmp(a->a->experiment, b->a->experiment);
    return order ? order : strcmp(a->a->axes_json, b->a->axes_json);
}

static EngStatus print(EngCli *cli, const Comparison *c, EngErr *err)
{
    static const EngTableColumn columns[] = {{"experiment", false}, {"axes not at default", false},
                                             {"variant", false},    {"verdict", false},
                                             {"B/A", true},         {"95 % interval", true},
                                             {"pairs", true},       {"A us", true},
                                             {"B us", true},        {"reason", false}};
    EngTextTable *table;
    EngVerdictCounts counts = {0};
    int same_run = 0, lost = 0, open = 0, judged = 0;
    qsort(c->common, (size_t)c->n_common, sizeof *c->common, by_axes);
    EngStatus status = eng_table_create(&table, columns, 10, err);
    if (status) return status;
    for (int i = 0; i < c->n_common; i++) {
        const Common *m = &c->common[i];
        print_point(table, m);
        judged += !m->instead;
        same_run += same_measurement(m);
        lost += is_lost(m);
        open += is_open(m);
        if (!m->instead) counts.by_word[m->verdict.word]++;
    }
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    printf(
        "\nA = run %.8s, B = run %.8s; B/A is of times over the roof measured beside each\n"
        "%d points in common (%d only in A, %d only in B)\n"
        "%d slower, %d faster, %d same, %d unclear, %d not judged, %d failed or wrong in B alone\n",
        c->a.run_id, c->b.run_id, c->n_common, c->only_a, c->only_b,
        counts.by_word[ENG_VERDICT_SLOWER], counts.by_word[ENG_VERDICT_FASTER],
        counts.by_word[ENG_VERDICT_SAME], counts.by_word[ENG_VERDICT_UNCLEAR],
        c->n_common - judged - lost, lost);
    counts.by_word[ENG_VERDICT_UNCLEAR] += open;
    int code = eng_verdict_exit_code(&counts, eng_cli_flag(cli, "strict"));
    eng_cli_exit_with(cli, code == 3 ? 3 : lost ? 2 : judged + same_run ? code : 5);
    return status;
}

static EngStatus print_worth(const Comparison *c, EngDb *db, EngArena *arena, EngErr *err)
{
    int n = 0;
    EngChange *changes = eng_arena_alloc(arena, ((size_t)c->n_common + 1) * sizeof *changes);
    if (!changes) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a comparison");
    for (int i = 0; i < c->n_common; i++) {
        const Common *m = &c->common[i];
        if (m->instead) continue;
        changes[n++] = (EngChange){.experiment = m->b->experiment,
                                   .axes_json = m->b->axes_json,
                                   .variant = m->b->variant,
                                   .ratio = m->effect.ratio.ratio,
                                   .called = m->verdict.word == ENG_VERDICT_SLOWER ||
                                             m->verdict.word == ENG_VERDICT_FASTER};
    }
    return eng_worth_print_changes(db, c->b.machine_id, changes, n, "B over A", err);
}

static EngStatus compare(EngCli *cli, EngDb *db_a, EngDb *db_b, EngArena *arena, EngErr *err)
{
    Comparison c = {0};
    bool across = eng_cli_flag(cli, "across-machines");
    EngStatus status = eng_db_compared_run(db_a, eng_cli_operand(cli, 0), arena, &c.a, err);
    if (!status) status = eng_db_compared_run(db_b, eng_cli_operand(cli, 1), arena, &c.b, err);
    if (status) return status;
    if (strcmp(c.a.machine_id, c.b.machine_id) && !across)
        return ENG_FAIL(err, ENG_USAGE,
                        "compare: run %.8s is of machine %.8s, run %.8s of %.8s; --across-machines "
                        "compares anyway",
                        c.a.run_id, c.a.machine_id, c.b.run_id, c.b.machine_id);
    if (strcmp(c.a.state, "done") || strcmp(c.b.state, "done"))
        eng_warn("compare", "run %.8s is %s, run %.8s is %s: what they have is compared",
                 c.a.run_id, c.a.state, c.b.run_id, c.b.state);
    status = join(&c, arena, across, err);
    if (!status) status = judge(&c, arena, err);
    if (!status) status = print(cli, &c, err);
    EngErr why = {0}; /* verdicts stand without their worth */
    if (!status && print_worth(&c, db_b, arena, &why))
        eng_warn("compare", "no word on what this is worth for the chain: %s", why.text);
    if (!status && db_a == db_b && c.n_common) store(&c, eng_db_path(db_a), arena);
    return status;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngDb *db_a = NULL, *db_b = NULL;
    const char *other = eng_cli_text(cli, "db-b");
    if (eng_cli_operands(cli) != 2)
        return ENG_FAIL(err, ENG_USAGE,
                        "compare: name two runs, e.g. `engram compare latest~1 latest`; "
                        "`engram runs` lists them");
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a comparison");
    EngStatus status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db_a, err);
    if (!status && other) status = eng_db_open(other, ENG_DB_READ, &db_b, err);
    if (!status) status = compare(cli, db_a, other ? db_b : db_a, arena, err);
    eng_db_close(db_b);
    eng_db_close(db_a);
    eng_arena_destroy(arena);
    return status;
}

static const EngOption g_options[] = {
    ENG_OPTION_DB,
    {.name = "db-b", .value = "FILE", .help = "database of RUN_B, when it is another"},
    {.name = "across-machines", .help = "compare runs of different machines or backends"},
    {.name = "strict", .help = "exit 4 when a point is unclear or could not be judged"},
};

const EngVerb eng_verb_compare = {
    .name = "compare",
    .operands = "RUN_A RUN_B",
    .summary = "compare two finished runs, each time over the roof measured beside it",
    .details =
        "Points are joined by configuration. Runs share no pairs, so to be called a difference\n"
        "must exceed 5 % (10 % with several threads), what the roof itself moved by, and what\n"
        "segments of one run differ by; `engram ab` tells smaller ones apart. Exit code 3:\n"
        "something is slower; 2: a point that A measured failed or was wrong in B; 5: nothing\n"
        "could be judged; 4: with --strict, something is unclear or could not be judged.\n"
        "Verdicts are stored (`engram export --verdicts`) unless the runs lie in two databases.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = 2,
    .run = run,
};
