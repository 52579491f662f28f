/* The queries behind `engram export`; see db_export.h. */
#include "bench/core/db_export.h"

#include <sqlite3.h>
#include <math.h>
#include <string.h>

#include "bench/core/db_expectation.h"
#include "bench/core/db_sql.h"

typedef struct Export {
    EngDb *db;
    const EngExportOptions *options;
    EngArena *arena;
    const char *run_id; /* NULL: all */
    /* Names in the database, and as columns. */
    const char **axes, **metrics, **columns;
    int n_axes, n_metrics, n_columns;
    int n_named;         /* leading columns that metrics may not be called like */
    char machine_id[64]; /* that the rates are of */
    EngRateTable *rates; /* NULL: none read yet */
    double *cells;       /* of the row in work: values of metrics, times four in a summary */
    EngRowsText rows;
} Export;

static EngStatus no_memory(const Export *e, EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for the export", eng_db_path(e->db));
}

/* The first column of a query, as a list in the arena. The number of rows is asked for first. */
static EngStatus read_names(Export *e, const char *counting, const char *sql, const char ***names,
                            int *n, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    int64_t room = 0;
    const char *experiment = e->options->experiment;
    *n = 0;
    EngStatus status = eng_db_number(e->db, &room, err, counting, "ss", e->run_id, experiment);
    if (status) return status;
    *names = eng_arena_alloc(e->arena, ((size_t)room + 1) * sizeof **names);
    if (!*names) return no_memory(e, err);
    status = eng_db_query(e->db, &statement, err, sql, "ss", e->run_id, experiment);
    while (!status && !(status = eng_db_step(e->db, statement, &row, err)) && row && *n < room) {
        const char *name = eng_db_text(e->arena, statement, 0);
        if (!name) status = no_memory(e, err);
        (*names)[(*n)++] = name;
        if (status) sqlite3_reset(statement);
    }
    return status;
}

#define OF_RUNS                                                                                    \
    "(SELECT DISTINCT p.experiment FROM run_points l JOIN points p USING (point_key)"              \
    " WHERE (?1 IS NULL OR l.run_id = ?1) AND (?2 IS NULL OR p.experiment = ?2))"
#define AXES                                                                                       \
    " FROM axis_values a JOIN points p USING (point_key) JOIN run_points l USING (point_key)"      \
    " WHERE a.axis <> 'variant' AND (?1 IS NULL OR l.run_id = ?1)"                                 \
    " AND (?2 IS NULL OR p.experiment = ?2)"
#define METRICS " FROM metrics WHERE experiment IN " OF_RUNS
#define COUNTERS                                                                                   \
    " FROM run_points l JOIN points p USING (point_key)"                                           \
    " JOIN sample_values v USING (block_id, point_key) WHERE (?1 IS NULL OR l.run_id = ?1)"        \
    " AND (?2 IS NULL OR p.experiment = ?2) AND v.metric GLOB '" ENG_COUNTER_PREFIX "*'"

static EngStatus find_names(Export *e, EngErr *err)
{
    const char **counters = NULL;
    int n_counters = 0;
    EngStatus status =
        read_names(e, "SELECT count(DISTINCT a.axis)" AXES,
                   "SELECT DISTINCT a.axis" AXES " ORDER BY 1", &e->axes, &e->n_axes, err);
    if (!status)
        status = read_names(e, "SELECT count(DISTINCT metric)" METRICS,
                            "SELECT DISTINCT metric" METRICS " ORDER BY 1", &e->metrics,
                            &e->n_metrics, err);
    if (!status && e->options->what == ENG_EXPORT_SAMPLES)
        status = read_names(e, "SELECT count(DISTINCT v.metric)" COUNTERS,
                            "SELECT DISTINCT v.metric" COUNTERS " ORDER BY 1", &counters,
                            &n_counters, err);
    if (status || !n_counters) return status;
    const char **all = eng_arena_alloc(e->arena, (size_t)(e->n_metrics + n_counters) * sizeof *all);
    if (!all) return no_memory(e, err);
    memcpy(all, e->metrics, (size_t)e->n_metrics * sizeof *all);
    memcpy(all + e->n_metrics, counters, (size_t)n_counters * sizeof *all);
    e->metrics = all;
    e->n_metrics += n_counters;
    return ENG_OK;
}

/* ---- columns -----------------------------------------------------------------------------------
 */

static const char *const before[] = {"run_id", "machine_id", "experiment", "kind", "backend"};
static const char *const summary[] = {"variant",         "is_roof",     "outcome", "reason",
                                      "percent_of_roof", "expected_us", "why"};
static const char *const sampled[] = {"variant", "is_roof", "outcome",  "block_id",
                                      "segment", "pair",    "position", "inner_iterations",
                                      "wall_ns", "cpu_ns",  "traced"};
static const char *const verdicts[] = {
    "variant",    "comparison",  "verdict",       "ratio",          "ratio_lo",   "ratio_hi",
    "p",          "p_corrected", "n_compared",    "control_ratio",  "floor",      "threshold",
    "band",       "alpha",       "resolution_ns", "base_ns",        "new_ns",     "n_pairs",
    "n_segments", "reason",      "base_run_id",   "base_point_key", "config_key", "point_key"};
static const char *const keys[] = {"config_key", "point_key"};
static const char *const statistics[] = {"", "_ci_lo", "_ci_hi", "_n"};
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

/* Taken by a column that every export has, or by an axis. */
static bool is_taken(const Export *e, const char *name)
{
    const char *const *fixed[] = {before, summary, sampled, verdicts, keys};
    const int n[] = {COUNT(before), COUNT(summary), COUNT(sampled), COUNT(verdicts), COUNT(keys)};
    for (int i = 0; i < e->n_named; i++)
        if (!strcmp(e->columns[i], name)) return true;
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < n[k]; i++)
            if (!strcmp(fixed[k][i], name)) return true;
    return !strcmp(name, "stop_reason");
}

static bool add_column(Export *e, const char *name)
{
    if (name) e->columns[e->n_columns++] = name;
    return name != NULL;
}

static void add_columns(Export *e, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) e->columns[e->n_columns++] = names[i];
}

static bool add_named(Export *e, const char *prefix, const char *name, const char *suffix)
{
    bool taken = is_taken(e, name);
    return add_column(e, eng_arena_printf(e->arena, "%s%s%s", taken ? prefix : "", name, suffix));
}

static EngStatus make_columns(Export *e, EngErr *err)
{
    bool samples = e->options->what == ENG_EXPORT_SAMPLES, ok = true;
    int per_metric = samples ? 1 : COUNT(statistics);
    size_t room = (size_t)(e->n_axes + per_metric * e->n_metrics) + 32;
    e->columns = eng_arena_alloc(e->arena, room * sizeof *e->columns);
    e->cells =
        eng_arena_alloc(e->arena, ((size_t)(per_metric * e->n_metrics) + 1) * sizeof(double));
    if (!e->columns || !e->cells) return no_memory(e, err);
    add_columns(e, before, COUNT(before));
    for (int i = 0; i < e->n_axes && ok; i++) ok = add_named(e, "axis_", e->axes[i], "");
    e->n_named = e->n_columns;
    if (e->options->what == ENG_EXPORT_VERDICTS) {
        add_columns(e, verdicts, COUNT(verdicts));
        return ok ? ENG_OK : no_memory(e, err);
    }
    if (samples)
        add_columns(e, sampled, COUNT(sampled));
    else
        add_columns(e, summary, COUNT(summary));
    for (int i = 0; i < e->n_metrics && ok; i++)
        for (int k = 0; k < per_metric && ok; k++)
            ok = add_named(e, "metric_", e->metrics[i], statistics[k]);
    if (!samples) ok = ok && add_column(e, "stop_reason");
    add_columns(e, keys, COUNT(keys));
    return ok ? ENG_OK : no_memory(e, err);
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static const char *text_or_null(sqlite3_stmt *statement, int column)
{
    return (const char *)sqlite3_column_text(statement, column);
}

/* The axes of a point into their columns; both lists are sorted by name. */
static EngStatus put_axes(Export *e, const char *point_key, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    int next = 0;
    EngStatus status =
        eng_db_query(e->db, &statement, err,
                     "SELECT axis, value, number FROM axis_values WHERE point_key = ?"
                     " AND axis <> 'variant' ORDER BY axis",
                     "s", point_key);
    while (!status && !(status = eng_db_step(e->db, statement, &row, err)) && row) {
        const char *axis = text_or_null(statement, 0), *value = text_or_null(statement, 1);
        for (; next < e->n_axes && strcmp(e->axes[next], axis) < 0; next++) eng_rows_none(&e->rows);
        if (next < e->n_axes && !strcmp(e->axes[next], axis)) {
            if (sqlite3_column_type(statement, 2) == SQLITE_NULL)
                eng_rows_text(&e->rows, value);
            else
                eng_rows_number_text(&e->rows, value);
            next++;
        }
    }
    for (; next < e->n_axes; next++) eng_rows_none(&e->rows);
    return status;
}

static double number_or_nan(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(statement, column);
}

static int metric_index(const Export *e, const char *metric)
{
    for (int i = 0; metric && i < e->n_metrics; i++)
        if (!strcmp(e->metrics[i], metric)) return i;
    return -1;
}

/* Medians, intervals and counts of a point into e->cells. */
static EngStatus read_summary(Export *e, const char *run_id, const char *point_key,
                              EngPointFacts *facts, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    *facts = eng_no_facts;
    for (int i = 0; i < COUNT(statistics) * e->n_metrics; i++) e->cells[i] = NAN;
    EngStatus status = eng_db_query(
        e->db, &statement, err,
        "SELECT metric, median, ci_lo, ci_hi, n, percent_of_roof, axes_json FROM v_summary"
        " WHERE run_id = ? AND point_key = ?",
        "ss", run_id, point_key);
    while (!status && !(status = eng_db_step(e->db, statement, &row, err)) && row) {
        int metric = metric_index(e, text_or_null(statement, 0));
        if (metric < 0) continue;
        for (int k = 0; k < COUNT(statistics); k++)
            e->cells[COUNT(statistics) * metric + k] = number_or_nan(statement, 1 + k);
        facts->threads = eng_threads_of(text_or_null(statement, 6));
        eng_point_facts_add(facts, e->metrics[metric], number_or_nan(statement, 1),
                            number_or_nan(statement, 5));
    }
    return status;
}

#define POINT_COLUMNS                                                                              \
    "SELECT l.run_id, r.machine_id, p.experiment, p.kind, p.backend, p.variant, p.is_roof,"        \
    " b.outcome, b.reason, b.stop_reason, p.config_key, p.point_key, l.block_id"
#define POINT_FROM                                                                                 \
    " FROM run_points l JOIN runs r USING (run_id) JOIN points p USING (point_key)"                \
    " JOIN block_points b USING (block_id, point_key)"                                             \
    " WHERE (?1 IS NULL OR l.run_id = ?1) AND (?2 IS NULL OR p.experiment = ?2)"                   \
    " ORDER BY r.started_utc, l.run_id, p.experiment, p.axes_json, p.point_key"

static EngStatus put_head(Export *e, sqlite3_stmt *point, EngErr *err)
{
    for (int i = 0; i < COUNT(before); i++) eng_rows_text(&e->rows, text_or_null(point, i));
    EngStatus status = put_axes(e, text_or_null(point, 11), err);
    if (status) return status;
    eng_rows_text(&e->rows, text_or_null(point, 5));
    eng_rows_int(&e->rows, sqlite3_column_int64(point, 6));
    eng_rows_text(&e->rows, text_or_null(point, 7));
    return ENG_OK;
}

/* Runs of several machines follow each other in an export of all. */
static EngStatus find_rates(Export *e, const char *machine_id, EngErr *err)
{
    if (e->rates && !strcmp(e->machine_id, machine_id)) return ENG_OK;
    sqlite3_snprintf(sizeof e->machine_id, e->machine_id, "%s", machine_id);
    return eng_db_rates(e->db, machine_id, e->arena, &e->rates, err);
}

static EngStatus put_point(Export *e, sqlite3_stmt *point, EngErr *err)
{
    EngPointFacts facts;
    EngExpectation expected = {.expected_ns = NAN};
    EngStatus status =
        read_summary(e, text_or_null(point, 0), text_or_null(point, 11), &facts, err);
    if (!status) status = find_rates(e, text_or_null(point, 1), err);
    if (!status)
        status = eng_db_roof_moved_bytes(e->db, text_or_null(point, 0), text_or_null(point, 11),
                                         &facts.roof_moved_bytes, err);
    if (!status) status = put_head(e, point, err);
    if (status) return status;
    if (!strcmp(text_or_null(point, 4), "cpu")) /* so are the rates */
        eng_expect_point(e->rates, text_or_null(point, 0), &facts, &expected);
    eng_rows_text(&e->rows, text_or_null(point, 8));
    eng_rows_real(&e->rows, facts.percent_of_roof);
    eng_rows_real(&e->rows, expected.expected_ns / 1e3);
    eng_rows_text(&e->rows, expected.why[0] ? expected.why : NULL);
    for (int i = 0; i < COUNT(statistics) * e->n_metrics; i++) eng_rows_real(&e->rows, e->cells[i]);
    for (int i = 9; i <= 11; i++) eng_rows_text(&e->rows, text_or_null(point, i));
    return eng_rows_end_row(&e->rows, err);
}

static EngStatus put_sample(Export *e, sqlite3_stmt *point, sqlite3_stmt *sample, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    for (int i = 0; i < e->n_metrics; i++) e->cells[i] = NAN;
    EngStatus status = eng_db_query(
        e->db, &statement, err,
        "SELECT metric, value FROM sample_values WHERE block_id = ? AND point_key = ?"
        " AND segment = ? AND pair = ?",
        "ssii", text_or_null(point, 12), text_or_null(point, 11),
        (int64_t)sqlite3_column_int64(sample, 0), (int64_t)sqlite3_column_int64(sample, 1));
    while (!status && !(status = eng_db_step(e->db, statement, &row, err)) && row) {
        int metric = metric_index(e, text_or_null(statement, 0));
        if (metric >= 0) e->cells[metric] = number_or_nan(statement, 1);
    }
    if (!status) status = put_head(e, point, err);
    if (status) return status;
    eng_rows_text(&e->rows, text_or_null(point, 12));
    for (int i = 0; i < 7; i++) eng_rows_int(&e->rows, sqlite3_column_int64(sample, i));
    for (int i = 0; i < e->n_metrics; i++) eng_rows_real(&e->rows, e->cells[i]);
    for (int i = 10; i <= 11; i++) eng_rows_text(&e->rows, text_or_null(point, i));
    return eng_rows_end_row(&e->rows, err);
}

static EngStatus put_samples(Export *e, sqlite3_stmt *point, EngErr *err)
{
    sqlite3_stmt *sample;
    bool row;
    EngStatus status =
        eng_db_query(e->db, &sample, err,
                     "SELECT segment, pair, position, inner_iterations, wall_ns, cpu_ns, traced"
                     " FROM samples WHERE block_id = ? AND point_key = ? ORDER BY segment, pair",
                     "ss", text_or_null(point, 12), text_or_null(point, 11));
    while (!status && !(status = eng_db_step(e->db, sample, &row, err)) && row) {
        status = put_sample(e, point, sample, err);
        if (status) sqlite3_reset(sample);
    }
    return status;
}

/* ---- verdicts ----------------------------------------------------------------------------------
 */

static void put_real_or_none(Export *e, sqlite3_stmt *statement, int column)
{
    eng_rows_real(&e->rows, number_or_nan(statement, column));
}

static EngStatus put_verdict(Export *e, sqlite3_stmt *v, EngErr *err)
{
    for (int i = 0; i < COUNT(before); i++) eng_rows_text(&e->rows, text_or_null(v, i));
    EngStatus status = put_axes(e, text_or_null(v, 28), err);
    if (status) return status;
    for (int i = 5; i <= 7; i++) eng_rows_text(&e->rows, text_or_null(v, i));
    for (int i = 8; i <= 12; i++) put_real_or_none(e, v, i);
    eng_rows_int(&e->rows, sqlite3_column_int64(v, 13));
    for (int i = 14; i <= 21; i++) put_real_or_none(e, v, i);
    for (int i = 22; i <= 23; i++) eng_rows_int(&e->rows, sqlite3_column_int64(v, i));
    for (int i = 24; i <= 28; i++) eng_rows_text(&e->rows, text_or_null(v, i));
    return eng_rows_end_row(&e->rows, err);
}

#define VERDICT_FROM                                                                               \
    " FROM verdicts v JOIN runs r USING (run_id) JOIN points p USING (point_key)"                  \
    " WHERE (?1 IS NULL OR v.run_id = ?1) AND (?2 IS NULL OR p.experiment = ?2)"

static EngStatus put_verdicts(Export *e, EngErr *err)
{
    sqlite3_stmt *verdict;
    bool row;
    EngStatus status = eng_rows_begin(&e->rows, err);
    if (!status)
        status = eng_db_query(
            e->db, &verdict, err,
            "SELECT v.run_id, r.machine_id, p.experiment, p.kind, p.backend, p.variant, v.kind,"
            " v.verdict, v.ratio, v.ratio_lo, v.ratio_hi, v.p, v.p_corrected, v.n_compared,"
            " v.control_ratio, v.floor, v.threshold, v.band, v.alpha, v.resolution_ns, v.base_ns,"
            " v.new_ns, v.n_pairs, v.n_segments, v.reason, v.base_run_id, v.base_point_key,"
            " p.config_key, v.point_key" VERDICT_FROM
            " ORDER BY r.started_utc, v.run_id, v.base_run_id, p.experiment, p.axes_json,"
            " v.point_key",
            "ss", e->run_id, e->options->experiment);
    while (!status && !(status = eng_db_step(e->db, verdict, &row, err)) && row) {
        status = put_verdict(e, verdict, err);
        if (status) sqlite3_reset(verdict);
    }
    return status ? status : eng_rows_end(&e->rows, err);
}

/* What there must be of the run, so that an export is never empty. */
static EngStatus count_rows(Export *e, int64_t *n, EngErr *err)
{
    if (e->options->what != ENG_EXPORT_VERDICTS)
        return eng_db_number(
            e->db, n, err,
            "SELECT count(*) FROM (SELECT 1 FROM run_points l JOIN points p USING (point_key)"
            " WHERE (?1 IS NULL OR l.run_id = ?1) AND (?2 IS NULL OR p.experiment = ?2) LIMIT 1)",
            "ss", e->run_id, e->options->experiment);
    *n = 0;
    if (e->db->version < 2) return ENG_OK;
    return eng_db_number(e->db, n, err, "SELECT count(*)" VERDICT_FROM, "ss", e->run_id,
                         e->options->experiment);
}

/* ---- export ------------------------------------------------------------------------------------
 */

static EngStatus put_rows(Export *e, EngErr *err)
{
    if (e->options->what == ENG_EXPORT_VERDICTS) return put_verdicts(e, err);

    sqlite3_stmt *point;
    bool row;
    EngStatus status = eng_rows_begin(&e->rows, err);
    if (!status)
        status = eng_db_query(e->db, &point, err, POINT_COLUMNS POINT_FROM, "ss", e->run_id,
                              e->options->experiment);
    while (!status && !(status = eng_db_step(e->db, point, &row, err)) && row) {
        status = e->options->what == ENG_EXPORT_SAMPLES ? put_samples(e, point, err)
                                                        : put_point(e, point, err);
        if (status) sqlite3_reset(point);
    }
    return status ? status : eng_rows_end(&e->rows, err);
}

static EngStatus find_run(Export *e, EngErr *err)
{
    EngRunStatus run;
    const char *wanted = e->options->run;
    int64_t n = 0;
    if (strcmp(wanted, "all")) {
        EngStatus status = eng_db_status(e->db, wanted, e->arena, &run, err);
        if (status) return status;
        e->run_id = run.run_id;
    }
    EngStatus status = count_rows(e, &n, err);
    if (status || n) return status;
    return ENG_FAIL(err, ENG_NOT_FOUND, "%s: run %s has no %s%s%s", eng_db_path(e->db), wanted,
                    e->options->what == ENG_EXPORT_VERDICTS ? "verdicts" : "points",
                    e->options->experiment ? " of " : "",
                    e->options->experiment ? e->options->experiment : "");
}

EngStatus eng_db_has_experiment(EngDb *db, const char *experiment, bool *has, EngErr *err)
{
    int64_t n = 0;
    EngStatus status = eng_db_number(
        db, &n, err, "SELECT count(*) FROM (SELECT 1 FROM points WHERE experiment = ? LIMIT 1)",
        "s", experiment);
    *has = n > 0;
    return status;
}

EngStatus eng_db_export(EngDb *db, const EngExportOptions *options, EngRowsSink sink, void *context,
                        int64_t *n_rows, EngErr *err)
{
    Export e = {.db = db, .options = options, .arena = eng_arena_create()};
    *n_rows = 0;
    if (!e.arena) return no_memory(&e, err);
    /* One snapshot for all queries; it only reads. */
    EngStatus status = eng_db_exec(db, err, "BEGIN", "");
    if (status) goto out;
    status = find_run(&e, err);
    if (!status) status = find_names(&e, err);
    if (!status) status = make_columns(&e, err);
    if (!status) {
        e.rows = (EngRowsText){.format = options->format,
                               .columns = e.columns,
                               .n_columns = e.n_columns,
                               .sink = sink,
                               .context = context};
        status = put_rows(&e, err);
        *n_rows = e.rows.n_rows;
    }
    eng_db_rollback(db);
out:
    eng_rows_free(&e.rows);
    eng_arena_destroy(e.arena);
    return status;
}
